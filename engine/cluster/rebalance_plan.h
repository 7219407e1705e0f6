// Which partitions should move, and where to. Pure: the same rows and members give the same moves on every machine.
//
// Every receiver (alive, not draining) is to hold floor(T/R) or ceil(T/R) of the T partitions that alive members hold, with as few moves
// as that takes: the members that hold most keep the larger share. A partition whose move is under way counts at its destination and
// is left alone. Draining members are emptied. A dead owner's partitions stay where their data is: they are neither moved nor counted
// (unless their move is under way). That a child's partition lies elsewhere than its parent's is preferred where the counts leave a
// choice, and never costs a move of its own.
//
// Source: narad/lifecycle.md section 13, "Planner".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/metastore/records.h"

namespace engine::cluster {

inline constexpr size_t kMovesInFlightMax = 8;

// One placed partition of a topic that exists.
struct PlacedPartition {
  metastore::Assignment row;
  std::string parent;  // the topic's; empty: none
};

struct PlannedMove {
  std::string topic;
  int32_t partition = 0;
  std::string from;
  std::string to;

  friend bool operator==(const PlannedMove&, const PlannedMove&) = default;
};

// Up to kMovesInFlightMax moves, less those under way, in the order in which they are to begin: partitions of draining members first.
// `partitions` in any order.
std::vector<PlannedMove> plan_rebalance(const std::vector<PlacedPartition>& partitions, const std::vector<metastore::Member>& members);

// Partitions of children that lie on the same member as their parent's partition of that number; destinations count for moves under
// way.
size_t count_colocated(const std::vector<PlacedPartition>& partitions);

}  // namespace engine::cluster
