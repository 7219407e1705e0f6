// Moves of partitions from one member to another, on the leader, as far as the metadata goes: a row gets a destination (type 15), the
// destination asks for the flip when it holds everything (type 16), or the move is given up (type 17).
//
// Promises
//  - A destination is set only on a row that is as the plan saw it, read again under the assignment lock, and only on a member that is
//    alive and not draining then. No more than kMovesInFlightMax are under way.
//  - A dead owner's partition is not given a destination; one that has it already stays until its destination settles it.
//  - Flip and abort compare with what their caller saw. The flip's comparison is the state machine's: of two flips one counts.
//  - A destination that is gone, has been dead for kTargetDeadMax, or is out of raft while dead or draining, is cleared.
//
// Copying the data is the destination's work (cluster/mover.h). Fiber only.
// Source: narad/lifecycle.md section 13.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "engine/cluster/assigner.h"
#include "engine/cluster/picture.h"
#include "engine/cluster/servers.h"
#include "engine/topics/reply.h"

namespace engine::cluster {

inline constexpr io::Duration kTargetDeadMax = std::chrono::minutes(2);

// Why a move cannot go on; what the API calls it.
enum class MoveBlock { none, source_dead, target_dead, target_not_member };
std::string_view to_string(MoveBlock block);
// Of a row with a destination.
MoveBlock block_of(const metastore::Assignment& row, const Picture& picture);

class Moves {
 public:
  struct Parts {
    io::Env& env;
    metastore::Reader& reader;
    Proposer& proposer;
    Assigner& assigner;  // whose lock it is
    Servers& servers;
  };
  explicit Moves(Parts parts) : parts_(std::move(parts)) {}

  // ---- The controller's passes, in term `term`; a barrier was passed just before -------------------------------------------
  // Sets the destinations that plan_rebalance() names. How many were set.
  size_t start(const Picture& picture, raft::Term term, io::Instant deadline);
  // Looks after the moves under way: tells of those that are blocked, once a move and term, and clears destinations that will not come.
  void settle(const Picture& picture, raft::Term term, io::Instant deadline);
  // Nothing of an earlier term is remembered.
  void stop_leading();

  // ---- For whoever asks the leader; narad/node-protocol.md section 4 ---------------------------------------------------------
  // 204; 404 no assignment; 409 refused; 503.
  Reply complete(std::string_view topic, int32_t partition, std::string_view expected_owner, std::string_view target, io::Instant deadline);
  // Empty `target`: whichever there is. 204; 404 no assignment; 409 no move, or another; 503. The row as it was before: `*before`.
  Reply abort(std::string_view topic, int32_t partition, std::string_view target, io::Instant deadline,
              metastore::Assignment* before = nullptr);

  size_t blocked(MoveBlock block) const;  // as settle() saw it last
  size_t colocated() const { return colocated_; }

 private:
  bool start_one(const PlannedMove& move, raft::Term term, io::Instant deadline);
  bool is_given_up(const metastore::Assignment& row, const Picture& picture) const;
  void note_dead(const Picture& picture);
  void tell_blocked(const metastore::Assignment& row, MoveBlock block);
  Reply answer_of(const Written& written) const;

  Parts parts_;
  std::map<std::string, io::Instant> dead_since_;  // by this leader's clock, since it has looked
  std::set<std::pair<std::pair<std::string, int32_t>, MoveBlock>> told_;
  std::map<MoveBlock, size_t> blocked_;
  size_t colocated_ = 0;
};

}  // namespace engine::cluster
