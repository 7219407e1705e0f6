// Which members the leader marks dead, and the stamps by which it can tell.
//
// A member is silent when its heartbeat stamp has not been seen to change. Silence is counted by the leader's own monotonic clock, while it
// leads and watches: calendar times are never compared, so neither a clock that steps nor the records of the leader before say that
// anybody is dead. A new leader therefore waits a full kDeadAfter, and so does one that has not watched for kWatchGapMax, since it may
// have been frozen while heartbeats waited for it.
//
// The breaker: a pass whose marks would leave fewer alive voters than a quorum (the leader counts itself) marks no voter at all. Such a
// verdict contradicts that this node leads: what is broken is the way of heartbeats to it, not the voters. Non-voters are judged as ever.
//
// A mark carries the heartbeat that was observed (entry type 31), and the state machine refuses it when a newer one has committed. While
// not every member applies that type, the older mark (type 8) is proposed, after still_silent() has looked at the record again.
//
// A dead member's partitions stay where they are; its next heartbeat makes it alive again.
//
// Pure: no clock, no fiber, no effect. Source: narad/lifecycle.md section 5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/metastore/records.h"
#include "io/log.h"
#include "io/time.h"
#include "raft/types.h"

namespace engine::cluster {

inline constexpr io::Duration kDeadAfter = std::chrono::seconds(30);
// Longer between two looks, and the silence before the second one is not counted: more than one tick of the controller.
inline constexpr io::Duration kWatchGapMax = std::chrono::seconds(15);

struct DeadMark {
  std::string id;
  int64_t last_heartbeat = 0;  // as observed

  friend bool operator==(const DeadMark&, const DeadMark&) = default;
};

// What one pass comes to.
struct DeadPass {
  std::vector<DeadMark> marks;       // to be proposed, in id order
  std::vector<std::string> refused;  // voters that are silent and that the breaker keeps from being marked, in id order
  size_t alive_voters_after = 0;     // had the refused ones been marked; else with all marks carried out
  size_t quorum = 0;
  size_t voters = 0;
  bool is_first_refusal = false;  // the first refusing pass of a streak: to be logged
  bool is_cleared = false;        // the first pass after a streak
};

class DeadMarking {
 public:
  // A leader's look at the records, at least every kWatchGapMax: notes which stamps have changed. Another `term` than the last begins
  // anew. `now`: monotonic.
  void observe(raft::Term term, io::Instant now, const std::vector<metastore::Member>& members);

  // observe(), and whom to mark. `members`: every record. `voters`: ids of the newest configuration's voters; a voter without a record does
  // not count as alive. `self` is the leader: it is never marked and always counts as alive.
  DeadPass judge(raft::Term term, io::Instant now, const std::vector<metastore::Member>& members, const std::vector<std::string>& voters,
                 const std::string& self);

  // This node does not lead any more.
  void stop() { *this = DeadMarking(); }

  // How many voters the last pass refused to mark; for the metric narad_dead_marking_refused.
  size_t refused() const { return refused_; }

 private:
  struct Seen {
    int64_t stamp = 0;
    io::Instant at{};  // when it was seen to change
  };

  bool is_silent(const metastore::Member& member, io::Instant now) const;

  raft::Term term_ = 0;
  io::Instant looked_at_{};
  std::map<std::string, Seen> seen_;
  size_t refused_ = 0;
};

// Whether `mark` still fits the record, read again just before the older mark (type 8) is proposed.
bool still_silent(const DeadMark& mark, const std::optional<metastore::Member>& record);

// The mark as a command: type 31 when every member applies it, else type 8.
std::string dead_mark_command(const DeadMark& mark, bool carries_heartbeat);

// The lines of a pass: an error once a streak of refusals, info when it is over.
void log_dead_pass(io::Log& log, const DeadPass& pass);

}  // namespace engine::cluster
