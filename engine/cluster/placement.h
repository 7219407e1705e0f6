// Which member owns a partition that nobody owns yet. Pure: records in, owners out; the same on every machine.
//
// Members that may be given partitions are those that are alive and not draining, sorted by id; partition p goes to number p mod n of
// them. A fan-out child skips the owner of its parent's partition p where there is a second member, so that a replica child's copy lies on
// another disk than the original; while the parent's partition is itself unplaced, the child's waits. A partition that has an owner on
// record is never part of a plan, however wrong that owner looks.
//
// Left to others: when to plan, and that the plan's ground still holds when it is proposed (cluster/assigner.h).
// Source: spec, "Leader and controller"; narad/lifecycle.md section 6.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/metastore/records.h"

namespace engine::cluster {

// The ids of the members that may be given partitions, sorted.
std::vector<std::string> placeable_members(const std::vector<metastore::Member>& members);
// Members are alive, and every one of them is draining: no new partition can be placed, now or soon.
bool are_all_draining(const std::vector<metastore::Member>& members);

// Owners of a topic's partitions, by partition; empty: not placed. Rows beyond `partitions` are left out.
using Owners = std::vector<std::string>;
Owners owners_of(const std::vector<metastore::Assignment>& rows, int32_t partitions);

struct Placement {
  int32_t partition = 0;
  std::string owner;

  friend bool operator==(const Placement&, const Placement&) = default;
};

struct PlacementPlan {
  std::vector<Placement> placements;  // by partition
  std::vector<int32_t> deferred;      // wait for the parent's partition
  std::vector<int32_t> without_owner;  // there is nobody to own them

  bool is_complete() const { return deferred.empty() && without_owner.empty(); }
};

// What to place of a topic with these owners. `active`: placeable_members(). `parent`: the owners of the parent's partitions; null for a
// topic without a parent. A child's partition that the parent does not have is placed like a topic's of its own.
PlacementPlan plan_placement(const Owners& owners, const std::vector<std::string>& active, const Owners* parent);

}  // namespace engine::cluster
