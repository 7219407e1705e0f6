#include "raft/core.h"

#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/defence.h"
#include "io/probe.h"

namespace raft {

const char* to_string(Refusal refusal) {
  switch (refusal) {
    case Refusal::none: return "accepted";
    case Refusal::not_leader: return "not the leader";
    case Refusal::too_much_backlog: return "too many entries wait to be applied";
    case Refusal::payload_too_large: return "payload too large";
    case Refusal::too_many_reads: return "too many reads wait";
    case Refusal::transfer_in_progress: return "transfer in progress";
    case Refusal::not_committed_in_term: return "no entry of the leader's term has committed yet";
    case Refusal::change_in_progress: return "another change is in progress";
    case Refusal::already_so: return "nothing to change";
    case Refusal::not_a_member: return "not a member";
    case Refusal::invalid_change: return "invalid change";
    case Refusal::not_caught_up: return "not caught up";
    case Refusal::no_live_majority: return "no live majority would remain";
    case Refusal::not_a_voter: return "not a voter";
  }
  return "unknown";
}

void Ready::clear() {
  hard_state.reset();
  log_reset.reset();
  entries.clear();
  replaces_suffix = false;
  append_term = 0;
  messages.clear();
  messages_after_persist.clear();
  committed.clear();
  install.reset();
  log_reads.clear();
  snapshot_wishes.clear();
  lacks_snapshot = false;
  reads.clear();
  role_changes.clear();
  transfers.clear();
  vote_refusals.clear();
  message_refusals.clear();
}

bool Ready::is_empty() const {
  return !hard_state && !log_reset && entries.empty() && messages.empty() && messages_after_persist.empty() &&
         committed.empty() && !install && log_reads.empty() && snapshot_wishes.empty() && !lacks_snapshot &&
         reads.empty() && role_changes.empty() && transfers.empty() && vote_refusals.empty() &&
         message_refusals.empty();
}

namespace {

// What was in force at the log's base; nothing where no snapshot tells (an old one could be long gone, and elect a leader beside the
// real one): this server then learns it from a leader. The snapshot may know a newer one, whose entry then stands in the log; what came before it
// was in force among committed entries only, where nobody asks any more.
ConfigurationLog configurations_at_base(const InitialState& initial) {
  if (initial.base_index == 0) return ConfigurationLog(0, initial.base_configuration);
  const SnapshotLabel& snapshot = initial.snapshot;
  return ConfigurationLog(std::min(snapshot.configuration_index, initial.base_index), snapshot.configuration);
}

}  // namespace

Core::Core(Identity identity, Settings settings, InitialState initial, io::RandomStream random, io::Instant now)
    : identity_(std::move(identity)),
      settings_(std::move(settings)),
      random_(random),
      now_(now),
      hard_state_(std::move(initial.hard_state)),
      handed_hard_state_(hard_state_),
      durable_hard_state_(hard_state_),
      log_(initial.base_index, initial.base_term),
      configurations_(configurations_at_base(initial)),
      cluster_(initial.cluster),
      snapshot_(std::move(initial.snapshot)) {
  NARAD_CHECK(!identity_.id.empty() && identity_.store.is_known() && identity_.session != 0, "the identity is complete");
  NARAD_CHECK(settings_.election_timeout_min > settings_.heartbeat_interval &&
                  settings_.election_timeout_max >= settings_.election_timeout_min &&
                  settings_.heartbeat_interval > io::Duration::zero(),
              "heartbeats come more often than elections");
  NARAD_CHECK(snapshot_.index == 0 || snapshot_.index >= initial.base_index, "a snapshot reaches the log's base");

  if (initial.older_last != 0) log_.extend_unheld(initial.older_terms, initial.older_last);
  for (auto& [index, configuration] : initial.older_configurations) {
    NARAD_CHECK(index > log_.base_index() && index <= log_.last_index(), "an older configuration lies among older entries");
    configurations_.append(index, std::move(configuration));
  }
  for (Entry& entry : initial.entries) append_to_log(std::move(entry));
  if (snapshot_.term > hard_state_.term) {
    // The image was published before the term in which it was offered reached the disk. Nobody was given a vote in that term.
    SOMETIMES("raft: the snapshot is of a later term than the stored one");
    hard_state_ = HardState{snapshot_.term, {}, hard_state_.is_rebuilding};
    is_hard_state_durable_ = false;
  }
  NARAD_CHECK(log_.last_term() <= hard_state_.term, "the stored term is at least the last entry's");
  durable_ = handed_ = stored_last_ = log_.last_index();

  NARAD_CHECK(initial.applied >= log_.base_index() && initial.applied <= log_.last_index(),
              "the state machine lies within the log");
  NARAD_CHECK(initial.applied + 1 >= log_.held_from(), "what is not in memory is applied");
  NARAD_CHECK(snapshot_.index == 0 || log_.matches(snapshot_.index, snapshot_.term), "the log leads to the snapshot");
  for (Index index = log_.held_from(); index <= initial.applied; ++index) unapplied_bytes_ -= log_.at(index).cost_bytes();
  applied_ = applying_ = initial.applied;
  commit_to(std::max(initial.applied, snapshot_.index));
  release_tail();

  draw_election_deadline();
  // Nobody else could lead: no reason to wait.
  if (can_campaign() && configuration().is_voter(identity_.id) && configuration().voter_count() == 1) {
    election_deadline_ = now_;
  }
}

void Core::observe_time(io::Instant now) {
  NARAD_CHECK(now >= now_, "the monotonic clock never goes back");
  now_ = now;
}

void Core::tick(io::Instant now) {
  observe_time(now);
  if (role_ == Role::leader) {
    if (give_way_if_stalled()) return;
    if (transfer_ && now_ >= transfer_->deadline) end_transfer(TransferEnd::Outcome::timed_out);
    if (role_ == Role::leader && now_ >= heartbeat_deadline_) heartbeat();
  } else if (can_campaign() && now_ >= election_deadline_) {
    start_pre_vote();
  }
}

io::Instant Core::next_deadline() const {
  if (role_ == Role::leader) {
    const io::Instant due = std::min(heartbeat_deadline_, stall_deadline());
    return transfer_ ? std::min(due, transfer_->deadline) : due;
  }
  return can_campaign() ? election_deadline_ : io::kNever;
}

bool Core::is_plausible(const Message& message) const {
  if (message.to != identity_.id || message.from.empty() || message.from == identity_.id) return false;
  if (message.cluster.is_known() && cluster_.is_known() && message.cluster != cluster_) {
    SOMETIMES("raft: message of another cluster dropped");
    return false;
  }
  return true;
}

// Why a message that only a broken or hostile server can have sent is dropped; null: it is taken.
const char* Core::why_not_heard(const Message& message) const {
  if (is_term_out_of_reach(message.term)) {
    SOMETIMES("raft: message of a term out of reach dropped");
    return "its term is too far above this server's";
  }
  if (message.type != MessageType::append_request || message.term != hard_state_.term) return nullptr;
  const bool has_other_leader = role_ == Role::leader || (!leader_.empty() && leader_ != message.from);
  if (!has_other_leader) return nullptr;
  SOMETIMES("raft: request of a second leader of the term dropped");
  return role_ == Role::leader ? "this server leads that term" : "another server leads that term";
}

// A server that joins has no term to compare with.
bool Core::is_term_out_of_reach(Term term) const {
  const bool joins = hard_state_.term == 0 && configuration().servers.empty();
  return term > hard_state_.term + (joins ? kTermOfJoinerMax : kTermLeapMax);
}

void Core::note_message_refused(const Message& message, const char* reason) {
  message_refusals_.push_back(MessageRefusal{message.from, message.term, reason});
}

void Core::step(Message&& message, io::Instant now) {
  observe_time(now);
  if (!is_plausible(message)) return;
  if (const char* reason = why_not_heard(message)) return note_message_refused(message, reason);
  if (!settle_term(message)) return;
  switch (message.type) {
    case MessageType::pre_vote_request:
    case MessageType::vote_request:
      on_vote_request(message);
      break;
    case MessageType::pre_vote_reply:
    case MessageType::vote_reply:
      on_vote_reply(message);
      break;
    case MessageType::append_request:
      on_append_request(std::move(message));
      break;
    case MessageType::append_reply:
      on_append_reply(message);
      break;
    case MessageType::timeout_now:
      on_timeout_now(message);
      break;
  }
}

ProposeResult Core::propose(std::span<const Payload> payloads) {
  ProposeResult result;
  if (role_ != Role::leader) {
    result.refusal = Refusal::not_leader;
    result.leader = leader_;
    return result;
  }
  if (transfer_) {
    SOMETIMES("raft: proposal refused, leadership is being handed over");
    result.refusal = Refusal::transfer_in_progress;
    return result;
  }
  if (unapplied_bytes_ >= settings_.unapplied_bytes_max) {
    SOMETIMES("raft: proposal refused, applies lag");
    result.refusal = Refusal::too_much_backlog;
    return result;
  }
  for (const Payload& payload : payloads) {
    if (payload && payload->size() > settings_.payload_bytes_max) {
      result.refusal = Refusal::payload_too_large;
      return result;
    }
  }
  result.term = hard_state_.term;
  result.first = log_.last_index() + 1;
  for (const Payload& payload : payloads) {
    append_to_log(Entry{hard_state_.term, log_.last_index() + 1, EntryType::command, payload});
  }
  if (!payloads.empty()) {
    append_term_ = hard_state_.term;
    must_send_ = true;
    if (!io::defence(io::Defence::ack_before_sync)) advance_commit();
  }
  return result;
}

void Core::hard_state_persisted(const HardState& hard_state) {
  NARAD_CHECK(hard_state.term >= durable_hard_state_.term, "hard states are stored in the order they were handed out");
  NARAD_CHECK(hard_state.term <= hard_state_.term, "only a hard state that was handed out is stored");
  durable_hard_state_ = hard_state;
  is_hard_state_durable_ = durable_hard_state_ == hard_state_;
  watch_disk(true);
  if (is_hard_state_durable_) count_own_vote();
}

void Core::persisted(Term append_term, Index index) {
  if (append_term != append_term_) {
    // The log has changed under another leader since; the notice of that change covers whatever of this still stands.
    NARAD_CHECK(append_term < append_term_, "only what was handed out is persisted");
    SOMETIMES("raft: persisted notice of an older leader ignored");
    return;
  }
  // Only the defect cuts without putting other entries in their place, under a new term.
  NARAD_CHECK(index <= handed_ || !io::defence(io::Defence::stale_append_truncates),
              "only what was handed out is persisted");
  index = std::min(index, handed_);
  if (index <= durable_) return;
  durable_ = index;
  watch_disk(true);
  if (role_ == Role::leader) {
    advance_commit();
  } else if (owes_ack_ && !leader_.empty()) {
    accept_append(leader_, proven_);
  }
  release_tail();
}

void Core::applied(Index index) {
  NARAD_CHECK(index >= applied_ && index <= applying_, "only what was handed out is applied, in order");
  // An image may have taken the log's place while these were being applied: then they are counted no more.
  for (Index i = std::max(applied_, log_.base_index()) + 1; i <= index; ++i) {
    const std::uint64_t cost = log_.at(i).cost_bytes();
    unapplied_bytes_ -= cost;
    applying_bytes_ -= cost;
  }
  applied_ = index;
  if (applied_ == applying_) applying_bytes_ = 0;
  watch_applies(true);
  release_tail();
}

// Applied entries are kept for followers only, which can be served from the disk.
void Core::release_tail() {
  const Index limit = std::min(applied_, durable_);
  std::uint64_t cost = log_.cost_bytes();
  Index upto = log_.held_from() - 1;
  while (cost > settings_.tail_bytes_max && upto < limit) cost -= log_.at(++upto).cost_bytes();
  log_.release(upto);
}

std::optional<io::Instant> Core::leader_contact() const {
  if (role_ == Role::leader) return io::Instant(io::Duration(quorum_contact_ns()));
  if (leader_contact_ns_ == 0) return std::nullopt;
  return io::Instant(io::Duration(leader_contact_ns_));
}

// --- the log ---

void Core::append_to_log(Entry&& entry) {
  unapplied_bytes_ += entry.cost_bytes();
  if (entry.type == EntryType::configuration) {
    std::optional<Configuration> configuration = decode_configuration(entry.bytes());
    NARAD_CHECK(configuration.has_value(), "a configuration entry decodes");
    configurations_.append(entry.index, std::move(*configuration));
  }
  log_.append(std::move(entry));
}

void Core::commit_to(Index index) {
  NARAD_CHECK(index >= commit_ && index <= log_.last_index(), "commit moves forward, within the log");
  commit_ = index;
  if (cluster_.is_known()) return;
  cluster_ = configurations_.at(commit_).cluster;
}

Index Core::apply_limit() const {
  // A leader may commit on the others' disks first. To apply then would leave the state machine ahead of this server's
  // own log after a power loss.
  return io::defence(io::Defence::apply_before_durable) ? std::min(commit_, durable_) : commit_;
}

// --- what goes out ---

Message Core::make(MessageType type, const ServerId& to) const {
  Message message;
  message.type = type;
  message.from = identity_.id;
  message.to = to;
  message.term = hard_state_.term;
  message.from_store = identity_.store;
  message.cluster = cluster_;
  message.session = identity_.session;
  message.sent_at_ns = now_ns();
  return message;
}

void Core::send(Message&& message) {
  // A message speaks for its sender's term and vote: it waits until a crash cannot take them back.
  (is_hard_state_durable_ ? messages_ : messages_after_persist_).push_back(std::move(message));
}

void Core::note_role(const char* reason) {
  role_changes_.push_back(RoleChange{role_, hard_state_.term, leader_, reason});
}

Index Core::hand_out_limit() const {
  if (is_installing()) return applying_;
  return applying_bytes_ >= settings_.applying_bytes_max ? applying_ : std::max(applying_, apply_limit());
}

bool Core::has_ready() const {
  return must_send_ || handed_ < log_.last_index() || !messages_.empty() || !messages_after_persist_.empty() ||
         applying_ < hand_out_limit() || can_install() || log_reset_ || !log_reads_.empty() || !snapshot_wishes_.empty() ||
         !(handed_hard_state_ == hard_state_) || !read_results_.empty() ||
         !role_changes_.empty() || !transfer_ends_.empty() || !vote_refusals_.empty() || !message_refusals_.empty();
}

void Core::ready(Ready& out) {
  out.clear();
  if (role_ == Role::leader && must_send_) {
    begin_read_round();
    send_appends();
  }
  must_send_ = false;
  hand_out_for_disk(out);
  hand_out_for_apply(out);
  // Swapping hands the caller's old buffers back for reuse.
  out.messages.swap(messages_);
  out.messages_after_persist.swap(messages_after_persist_);
  out.reads.swap(read_results_);
  out.role_changes.swap(role_changes_);
  out.transfers.swap(transfer_ends_);
  out.vote_refusals.swap(vote_refusals_);
  out.message_refusals.swap(message_refusals_);
  out.log_reads.swap(log_reads_);
  out.snapshot_wishes.swap(snapshot_wishes_);
  out.lacks_snapshot = std::exchange(lacks_snapshot_, false);
}

Ready Core::ready() {
  Ready out;
  ready(out);
  return out;
}

void Core::hand_out_for_disk(Ready& out) {
  if (!(handed_hard_state_ == hard_state_)) {
    out.hard_state = hard_state_;
    handed_hard_state_ = hard_state_;
    watch_disk(false);
  }
  if (log_reset_) {
    out.log_reset = std::exchange(log_reset_, std::nullopt);
    watch_disk(false);
  }
  if (handed_ == log_.last_index()) return;
  out.append_term = append_term_;
  out.replaces_suffix = stored_last_ > handed_;
  log_.copy(handed_ + 1, log_.last_index(), ~std::uint64_t{0}, out.entries);
  handed_ = stored_last_ = log_.last_index();
  watch_disk(false);
}

void Core::hand_out_for_apply(Ready& out) {
  if (can_install()) {
    installing_ = to_install_->index;
    out.install = std::exchange(to_install_, std::nullopt);
    return;
  }
  const Index limit = hand_out_limit();
  if (applying_ >= limit) return;
  std::uint64_t cost = 0;
  applying_ = log_.copy(applying_ + 1, limit, settings_.applying_bytes_max - applying_bytes_, out.committed, &cost);
  applying_bytes_ += cost;
  watch_applies(false);
}

}  // namespace raft
