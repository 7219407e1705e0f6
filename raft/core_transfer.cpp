// Giving leadership away: on request, and because this server's disk or state machine no longer moves.
#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/probe.h"
#include "raft/core.h"

namespace raft {

const char* to_string(TransferEnd::Outcome outcome) {
  switch (outcome) {
    case TransferEnd::Outcome::handed_over: return "handed over";
    case TransferEnd::Outcome::timed_out: return "timed out";
    case TransferEnd::Outcome::lost: return "leadership lost";
  }
  return "unknown";
}

// --- handing over ---

TransferStart Core::transfer_leadership(const ServerId& to) {
  TransferStart result;
  const auto refuse = [&](Refusal refusal) {
    result.refusal = refusal;
    return result;
  };
  if (role_ != Role::leader) {
    result.leader = leader_;
    return refuse(Refusal::not_leader);
  }
  if (transfer_) {
    if (!to.empty() && to != transfer_->to) return refuse(Refusal::transfer_in_progress);
    result.to = transfer_->to;
    return result;
  }
  if (to == identity_.id) return refuse(Refusal::already_so);
  const ServerId* target = to.empty() ? most_caught_up_voter() : &to;
  if (target == nullptr) return refuse(Refusal::not_caught_up);
  if (!configuration().is_voter(*target)) return refuse(Refusal::not_a_voter);
  if (!is_live(*target)) return refuse(Refusal::not_caught_up);
  begin_transfer(*target);
  result.to = transfer_->to;
  return result;
}

const ServerId& Core::transfer_target() const {
  static const ServerId kNobody;
  return transfer_ ? transfer_->to : kNobody;
}

// Among the live voters the one with the greatest match; the first in id order among equals. Null: there is none.
const ServerId* Core::most_caught_up_voter() const {
  const ServerId* best = nullptr;
  Index best_match = 0;
  for (const auto& [id, progress] : progress_) {
    if (!progress.counts() || !is_live(id)) continue;
    if (best != nullptr && progress.match() <= best_match) continue;
    best = &id;
    best_match = progress.match();
  }
  return best;
}

void Core::begin_transfer(const ServerId& to) {
  NARAD_CHECK(role_ == Role::leader && !transfer_ && to != identity_.id, "a leader hands over once, to another");
  transfer_ = Transfer{to, hard_state_.term, now_ + settings_.election_timeout_max, false};
  must_send_ = true;
  advance_transfer();
}

// Tells the target to campaign once it holds everything; again at each heartbeat, in case that was lost.
void Core::advance_transfer() {
  if (!transfer_) return;
  const auto at = progress_.find(transfer_->to);
  if (at == progress_.end() || !at->second.counts()) return;
  if (at->second.match() < log_.last_index()) {
    SOMETIMES("raft: transfer waits until its target has caught up");
    return;
  }
  transfer_->is_told = true;
  Message order = make(MessageType::timeout_now, transfer_->to);
  order.log_index = log_.last_index();
  order.log_term = log_.last_term();
  send(std::move(order));
}

void Core::end_transfer(TransferEnd::Outcome outcome) {
  NARAD_CHECK(transfer_.has_value(), "a transfer was under way");
  if (outcome == TransferEnd::Outcome::timed_out) SOMETIMES("raft: transfer timed out");
  transfer_ends_.push_back(TransferEnd{transfer_->to, transfer_->term, outcome});
  transfer_.reset();
  if (outcome != TransferEnd::Outcome::timed_out) return;
  // It was to go anyway.
  const bool is_removed = !configuration().is_voter(identity_.id) && configurations_.current_index() <= commit_;
  if (is_removed) become_follower(hard_state_.term, ServerId(), "it is no voter any more");
}

void Core::on_timeout_now(const Message& message) {
  NARAD_CHECK(message.term == hard_state_.term, "the term is settled first");
  const bool is_from_leader = leader_.empty() || leader_ == message.from;
  if (role_ == Role::leader || !is_from_leader || !can_campaign() || !log_.matches(message.log_index, message.log_term) ||
      !could_serve()) {
    SOMETIMES("raft: order to campaign ignored");
    return;
  }
  SOMETIMES("raft: campaigns because the leader hands over");
  start_election(true);
}

// --- stalls ---

// The wait begins anew whenever something has moved: a slow disk is not a stalled one.
void Core::watch_disk(bool has_moved) {
  disk_wait_.update(handed_ > durable_ || (reset_pending_ != 0 && !log_reset_) || !(handed_hard_state_ == durable_hard_state_), has_moved, now_);
}

void Core::watch_applies(bool has_moved) { apply_wait_.update(applying_ > applied_, has_moved, now_); }

bool Core::is_stalled(io::Duration bound) const {
  return disk_wait_.is_over(now_, bound) || apply_wait_.is_over(now_, bound);
}

// Whether this server, elected now, could store and apply.
bool Core::could_serve() const { return !is_installing() && !is_stalled(settings_.election_timeout_max); }

// A leader whose own disk or state machine hangs can acknowledge on the others' disks, but serves nobody and would keep
// those from leading who could. Returns whether it leads no more.
bool Core::give_way_if_stalled() {
  if (is_stalled(settings_.stall_bound)) {
    SOMETIMES("raft: leader steps down, its disk or its applies stall");
    become_follower(hard_state_.term, ServerId(), "its disk or its applies stall");
    return true;
  }
  if (transfer_ || !is_stalled(settings_.stall_bound - handover_time())) return false;
  if (const ServerId* to = most_caught_up_voter()) {
    SOMETIMES("raft: leader hands over, its disk or its applies stall");
    begin_transfer(*to);
  }
  return false;
}

io::Duration Core::handover_time() const { return std::min(settings_.election_timeout_max, settings_.stall_bound / 2); }

io::Instant Core::stall_deadline() const {
  const io::Instant since = std::min(disk_wait_.since, apply_wait_.since);
  if (since == io::kNever) return io::kNever;
  const io::Instant handover = since + settings_.stall_bound - handover_time();
  return now_ < handover ? handover : since + settings_.stall_bound;
}

}  // namespace raft
