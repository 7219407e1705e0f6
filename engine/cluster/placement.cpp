#include "engine/cluster/placement.h"

#include <algorithm>

#include "io/probe.h"

namespace engine::cluster {

using metastore::Member;
using metastore::MemberStatus;

std::vector<std::string> placeable_members(const std::vector<Member>& members) {
  std::vector<std::string> ids;
  for (const Member& member : members) {
    if (member.status == MemberStatus::alive && !member.draining) {
      ids.push_back(member.id);
    }
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

bool are_all_draining(const std::vector<Member>& members) {
  bool is_any_alive = false;
  for (const Member& member : members) {
    if (member.status == MemberStatus::alive) {
      if (!member.draining) {
        return false;
      }
      is_any_alive = true;
    }
  }
  return is_any_alive;
}

Owners owners_of(const std::vector<metastore::Assignment>& rows, int32_t partitions) {
  Owners owners(static_cast<size_t>(std::max(partitions, 0)));
  for (const metastore::Assignment& row : rows) {
    if (row.partition >= 0 && row.partition < partitions) {
      owners[static_cast<size_t>(row.partition)] = row.owner_id;
    }
  }
  return owners;
}

PlacementPlan plan_placement(const Owners& owners, const std::vector<std::string>& active, const Owners* parent) {
  PlacementPlan plan;
  for (size_t p = 0; p < owners.size(); ++p) {
    const auto partition = static_cast<int32_t>(p);
    if (!owners[p].empty()) {
      continue;
    }
    if (active.empty()) {
      plan.without_owner.push_back(partition);
      continue;
    }
    size_t chosen = p % active.size();
    if (parent != nullptr && p < parent->size()) {
      const std::string& avoided = (*parent)[p];
      if (avoided.empty()) {
        SOMETIMES("placement: a child's partition waits for its parent's");
        plan.deferred.push_back(partition);
        continue;
      }
      if (active[chosen] == avoided && active.size() > 1) {
        SOMETIMES("placement: a child's partition skips the owner of its parent's");
        chosen = (chosen + 1) % active.size();
      }
    }
    plan.placements.push_back({partition, active[chosen]});
  }
  return plan;
}

}  // namespace engine::cluster
