#include "raft/progress.h"

#include <algorithm>

#include "io/check.h"

namespace raft {

bool Progress::can_send_entries(const FlightLimits& limits) const {
  if (state_ == State::snapshot) return false;
  if (state_ == State::probe) return !probe_outstanding_;
  return in_flight_.size() < limits.messages_max && in_flight_bytes_ < limits.bytes_max;
}

void Progress::sent_entries(Index last, std::uint64_t bytes) {
  NARAD_CHECK(last >= next_, "entries are sent from next on");
  if (state_ == State::probe) {
    probe_outstanding_ = true;
    return;
  }
  in_flight_.push_back(Flight{last, bytes});
  in_flight_bytes_ += bytes;
  next_ = last + 1;
}

bool Progress::accepted(Index proven, Index match) {
  NARAD_CHECK(match <= proven, "what is durable at the server is proven too");
  const bool advanced = match > match_;
  match_ = std::max(match_, match);
  while (!in_flight_.empty() && in_flight_.front().last <= match_) {
    in_flight_bytes_ -= in_flight_.front().bytes;
    in_flight_.pop_front();
  }
  if (state_ != State::replicate) {
    // The logs meet at `proven`, whichever probe this answers. (Or the server needs no image any more.)
    to_probe();
    state_ = State::replicate;
    next_ = std::max(match_, proven) + 1;
  } else {
    next_ = std::max(next_, match_ + 1);
  }
  return advanced;
}

bool Progress::refused(Index refused, Index retry_at) {
  if (state_ == State::snapshot) return false;
  if (state_ == State::replicate) {
    // Something sent earlier got lost, or this is the late answer to an old probe. What is proven stays proven.
    if (refused <= match_ || refused >= next_) return false;
    to_probe();
    next_ = std::max(match_, std::min(retry_at, refused - 1)) + 1;
    return true;
  }
  if (refused != next_ - 1 || refused <= match_) return false;
  next_ = std::max(match_, std::min(retry_at, refused - 1)) + 1;
  probe_outstanding_ = false;
  return true;
}

void Progress::begin_catch_up(Index goal, std::int64_t now_ns) {
  goal_ = goal;
  goal_since_ns_ = now_ns;
  was_round_short_ = false;
}

void Progress::follow_catch_up(Index last, std::int64_t now_ns, std::int64_t round_ns_max) {
  if (match_ < goal_ || state_ != State::replicate) return;
  was_round_short_ = now_ns - goal_since_ns_ <= round_ns_max;
  goal_ = last;
  goal_since_ns_ = now_ns;
}

bool Progress::is_caught_up(std::int64_t now_ns, std::int64_t round_ns_max) const {
  return was_round_short_ && state_ == State::replicate && now_ns - goal_since_ns_ <= round_ns_max;
}

Index Progress::spared_from() const {
  if (state_ == State::snapshot) return snapshot_index_;
  return brought_to_ == 0 ? 0 : std::max(match_, brought_to_);
}

void Progress::restart(Index base) {
  to_probe();
  brought_to_ = 0;
  next_ = std::max(match_, base) + 1;
}

void Progress::begin_session(Index base) {
  restart(base);
  match_ = 0;
  was_round_short_ = false;
}

void Progress::begin_snapshot(Index index, std::uint64_t number) {
  NARAD_CHECK(index > 0 && number != 0, "an image has an index, its transfer a number");
  NARAD_CHECK(state_ != State::snapshot, "one image at a time is sent to a server");
  to_probe();
  state_ = State::snapshot;
  snapshot_index_ = index;
  snapshot_number_ = number;
}

void Progress::end_snapshot(bool has_arrived, Index base) {
  NARAD_CHECK(state_ == State::snapshot, "an image was on its way");
  const Index meets = has_arrived ? snapshot_index_ : base;
  to_probe();
  next_ = std::max(match_, meets) + 1;
  brought_to_ = has_arrived ? meets : 0;
  // A transfer that failed is not tried again at once.
  probe_outstanding_ = !has_arrived;
}

bool Progress::end_read(Index first) {
  if (reading_from_ != first || first == 0) return false;
  reading_from_ = 0;
  return state_ == State::replicate && next_ == first;
}

void Progress::reset(Index next) {
  NARAD_CHECK(next > 0, "next is at least 1");
  to_probe();
  brought_to_ = 0;
  match_ = 0;
  next_ = next;
  was_round_short_ = false;
  round_acked = 0;
  commit_sent = 0;
}

void Progress::to_probe() {
  state_ = State::probe;
  probe_outstanding_ = false;
  in_flight_.clear();
  in_flight_bytes_ = 0;
  snapshot_index_ = 0;
  snapshot_number_ = 0;
}

}  // namespace raft
