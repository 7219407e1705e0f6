// Changing the configuration: what may be appended when, and what a leader does that is no longer part of it.
#include <utility>

#include "io/check.h"
#include "io/defence.h"
#include "io/probe.h"
#include "raft/core.h"

namespace raft {

namespace {

Refusal refusal_of(ChangeVerdict verdict) {
  switch (verdict) {
    case ChangeVerdict::changed: return Refusal::none;
    case ChangeVerdict::already_so: return Refusal::already_so;
    case ChangeVerdict::not_a_member: return Refusal::not_a_member;
    case ChangeVerdict::invalid: return Refusal::invalid_change;
  }
  return Refusal::invalid_change;
}

}  // namespace

ChangeResult Core::change_configuration(const ConfigurationChange& change) {
  ChangeResult result;
  if (role_ != Role::leader) {
    result.refusal = Refusal::not_leader;
    result.leader = leader_;
    return result;
  }
  Configuration next = configuration();
  const ChangeVerdict verdict = apply(change, next);
  // What is not committed may yet be undone: "already so" is said of committed configurations only.
  const bool is_pending = configurations_.current_index() > commit_;
  if (transfer_) {
    result.refusal = Refusal::transfer_in_progress;
  } else if (!has_committed_in_term() && io::defence(io::Defence::config_change_before_term_commit)) {
    SOMETIMES("raft: configuration change refused, nothing of the term has committed");
    result.refusal = Refusal::not_committed_in_term;
  } else if (is_pending && io::defence(io::Defence::config_change_before_term_commit)) {
    SOMETIMES("raft: configuration change refused, another is not committed");
    result.refusal = Refusal::change_in_progress;
  } else if (verdict != ChangeVerdict::changed) {
    result.refusal = refusal_of(verdict);
  } else {
    result.refusal = why_not_change(change, next);
  }
  if (result.refusal != Refusal::none) return result;
  append_configuration(next);
  result.term = hard_state_.term;
  result.index = log_.last_index();
  return result;
}

Refusal Core::why_not_change(const ConfigurationChange& change, const Configuration& next) const {
  if (change.kind == ConfigurationChange::Kind::promote && !is_caught_up(change.id)) {
    SOMETIMES("raft: promotion refused, the server has not caught up");
    return Refusal::not_caught_up;
  }
  if (next.same_voters(configuration())) return Refusal::none;
  if (next.voter_count() < settings_.voters_min || !has_live_majority(next)) {
    SOMETIMES("raft: configuration change refused, no live majority would remain");
    return Refusal::no_live_majority;
  }
  return Refusal::none;
}

void Core::append_configuration(const Configuration& next) {
  NARAD_CHECK(role_ == Role::leader, "only a leader creates entries");
  append_to_log(Entry{hard_state_.term, log_.last_index() + 1, EntryType::configuration,
                      std::make_shared<const std::string>(encode(next))});
  append_term_ = hard_state_.term;
  must_send_ = true;
  track_servers();
}

bool Core::is_caught_up(const ServerId& id) const {
  const auto at = progress_.find(id);
  if (role_ != Role::leader || at == progress_.end()) return false;
  const Progress& progress = at->second;
  return progress.recorded.is_known() && progress.recorded == progress.store && is_live(id) &&
         progress.is_caught_up(now_ns(), settings_.election_timeout_max.count());
}

// Whether `id` answered, through the volume on record, something sent within the last election timeout.
bool Core::is_live(const ServerId& id) const {
  if (id == identity_.id) return true;
  const auto at = progress_.find(id);
  if (at == progress_.end()) return false;
  const Progress& progress = at->second;
  return progress.session != 0 && progress.recorded.is_known() && progress.recorded == progress.store &&
         now_ns() - progress.contact_ns <= settings_.election_timeout_max.count();
}

bool Core::has_live_majority(const Configuration& servers) const {
  std::size_t live = 0;
  for (const Server& server : servers.servers) {
    if (server.voter && is_live(server.id) && holds_earlier_terms(server.id)) ++live;
  }
  return live >= servers.quorum();
}

// One that has lost its log answers, and gives no vote until it has been brought up: a majority that needs it could elect nobody to do that.
bool Core::holds_earlier_terms(const ServerId& id) const {
  const auto at = progress_.find(id);
  return id == identity_.id || (at != progress_.end() && at->second.match() >= term_start_);
}

// A leader that is no voter of a committed configuration has one duty left: to see that somebody else leads.
void Core::leave_when_removed() {
  if (configuration().is_voter(identity_.id) || configurations_.current_index() > commit_) return;
  if (transfer_) return;
  SOMETIMES("raft: leader has removed itself");
  if (const ServerId* to = most_caught_up_voter()) begin_transfer(*to);
  // With nobody to hand over to, the followers' own timeouts have to do.
  if (!transfer_) become_follower(hard_state_.term, ServerId(), "it is no voter any more");
}

}  // namespace raft
