// Gives owners to partitions that have none, and removes rows that belong to no partition: the effects around placement.h.
//
// Promises
//  - Nothing is placed but under the assignment lock, after topic, rows and members were read again under it, and only in the term in
//    which the placement began. Before a replica's rows are trusted there was a barrier: once a term, and again after any write of ours
//    whose outcome is unknown. So of two placements of one partition the later one sees the earlier one's owner, also where the cluster
//    still uses the entry (type 5) that would put another owner in its place; with type 29 the state machine refuses it besides.
//  - What could not be placed is remembered (has_left_over()), and the controller comes back to it.
//  - Orphan rows are pruned by an entry that the state machine refuses for a live partition (type 30), or not at all: while the gate
//    holds that type back each row is logged once.
//
// Used by the topic manager (topics/placer.h) and by the controller's passes; on the leader. Fiber only.
// Source: narad/lifecycle.md section 6.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/cluster/assignment_lock.h"
#include "engine/cluster/entry_gate.h"
#include "engine/cluster/picture.h"
#include "engine/cluster/placement.h"
#include "engine/cluster/term_write.h"
#include "engine/metastore/reader.h"
#include "engine/topics/placer.h"
#include "engine/topics/proposer.h"
#include "io/env.h"

namespace engine::cluster {

inline constexpr io::Duration kFormingWait = std::chrono::seconds(2);
inline constexpr io::Duration kFormingPoll = std::chrono::milliseconds(50);
inline constexpr io::Duration kControllerBarrierTimeout = std::chrono::seconds(5);
inline constexpr io::Duration kControllerWriteTimeout = std::chrono::seconds(5);
// Placements of one topic that are under way at a time.
inline constexpr size_t kPlacementsAtOnce = 16;

// Some voters have a member record and others have none.
bool is_forming(const std::vector<std::string>& voters, const std::vector<metastore::Member>& members);

class Assigner final : public topics::Placer {
 public:
  struct Parts {
    io::Env& env;
    metastore::Reader& reader;
    Proposer& proposer;
    EntryGate& gate;
    std::function<std::vector<std::string>()> voters;  // of the newest configuration
  };
  explicit Assigner(Parts parts) : parts_(std::move(parts)) {}

  // ---- topics::Placer ------------------------------------------------------------------------------------------------------
  std::optional<Reply> ready_to_place(io::Instant deadline) override;
  void place(std::string_view topic, topics::PlacementCause cause, io::Instant deadline) override;

  // ---- The controller's passes, in term `term`; a barrier was passed just before -------------------------------------------
  struct Swept {
    size_t placed = 0;
    size_t left = 0;  // partitions without an owner still
  };
  // Places every partition that has no owner. Errors: what kept it from reading.
  io::Result<Swept> sweep(const Picture& picture, raft::Term term, io::Instant deadline);
  // Removes the rows that belong to no partition. The number of those removed.
  size_t prune(const Picture& picture, raft::Term term, io::Instant deadline);

  // The members as the controller sees them: how long the cluster has been forming counts from here too.
  void note_members(const std::vector<metastore::Member>& members);

  // A create or an increase left partitions without an owner since the last sweep.
  bool has_left_over() const { return has_left_over_; }
  AssignmentLock& lock() { return lock_; }

 private:
  struct Outcome {
    size_t placed = 0;
    size_t left = 0;
    std::string why;  // of the first one left
  };
  io::Status trust(raft::Term term, io::Instant deadline);
  // Under the lock.
  io::Result<Outcome> place_topic(std::string_view topic, raft::Term term, io::Instant deadline);
  io::Result<std::optional<Owners>> parent_owners(const metastore::Topic& topic, io::Instant deadline);
  Written place_one(const metastore::Topic& topic, const Placement& placement, raft::Term term, io::Instant deadline);
  void place_all(const metastore::Topic& topic, const std::vector<Placement>& placements, raft::Term term, io::Instant deadline,
                 Outcome& outcome);
  bool prune_one(const metastore::Assignment& row, raft::Term term, io::Instant deadline);
  void note_unknown() {
    trusted_term_ = 0;
    ++distrusts_;
  }

  Parts parts_;
  AssignmentLock lock_;
  std::optional<io::Instant> forming_since_;
  bool has_left_over_ = false;
  raft::Term trusted_term_ = 0;  // in which a barrier has succeeded; 0 again after a write of unknown outcome
  uint64_t distrusts_ = 0;
  std::set<std::pair<std::string, int32_t>> logged_orphans_;
};

}  // namespace engine::cluster
