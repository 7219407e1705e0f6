// Placement and rebalancing over random clusters: what the plans promise whoever is alive, drains or is dead.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/cluster/placement.h"
#include "engine/cluster/rebalance_plan.h"
#include "tests/support/members.h"

namespace engine::cluster {
namespace {

using metastore::Member;
using metastore::MemberStatus;

std::vector<Member> some_members() {
  std::vector<Member> members;
  const auto count = *rc::gen::inRange<size_t>(0, 8);
  for (size_t i = 0; i < count; ++i) {
    members.push_back(tests::make_member("n" + std::to_string(i), *rc::gen::weightedElement<MemberStatus>({{4, MemberStatus::alive}, {1, MemberStatus::dead}}),
                                         *rc::gen::weightedElement<bool>({{4, false}, {1, true}})));
  }
  return members;
}

// An owner on record: a member of any state, or a stranger.
std::string some_owner() { return "n" + std::to_string(*rc::gen::inRange(0, 10)); }

Owners some_owners() {
  return *rc::gen::container<Owners>(rc::gen::exec([] { return *rc::gen::arbitrary<bool>() ? std::string() : some_owner(); }));
}

RC_GTEST_PROP(PlacementProperty, OnlyUnownedPartitionsAreGivenToPlaceableMembersAndEachIsAccountedFor, ()) {
  const std::vector<std::string> active = placeable_members(some_members());
  const Owners owners = some_owners();
  const Owners parent = some_owners();
  const bool is_child = *rc::gen::arbitrary<bool>();
  const PlacementPlan plan = plan_placement(owners, active, is_child ? &parent : nullptr);
  std::set<int32_t> told(plan.deferred.begin(), plan.deferred.end());
  told.insert(plan.without_owner.begin(), plan.without_owner.end());
  for (const Placement& placement : plan.placements) {
    const auto p = static_cast<size_t>(placement.partition);
    RC_ASSERT(owners.at(p).empty());
    RC_ASSERT(std::binary_search(active.begin(), active.end(), placement.owner));
    if (is_child && p < parent.size()) {
      RC_ASSERT(!parent[p].empty());
      RC_ASSERT(active.size() == 1 || placement.owner != parent[p]);
    } else {
      RC_ASSERT(placement.owner == active[p % active.size()]);
    }
    RC_ASSERT(told.insert(placement.partition).second);
  }
  const auto unowned = static_cast<size_t>(std::count(owners.begin(), owners.end(), std::string()));
  RC_ASSERT(told.size() == unowned);
  RC_ASSERT(plan.without_owner.empty() || active.empty());
}

RC_GTEST_PROP(PlacementProperty, CarryingAPlanOutLeavesNothingToPlanButWhatWasDeferred, ()) {
  const std::vector<std::string> active = placeable_members(some_members());
  Owners owners = some_owners();
  const Owners parent = some_owners();
  const PlacementPlan plan = plan_placement(owners, active, &parent);
  for (const Placement& placement : plan.placements) {
    owners[static_cast<size_t>(placement.partition)] = placement.owner;
  }
  RC_ASSERT(plan_placement(owners, active, &parent).placements.empty());
}

// ---- Moves -----------------------------------------------------------------------------------------------------------------

std::vector<PlacedPartition> some_partitions() {
  std::vector<PlacedPartition> placed;
  for (const std::string topic : {"p", "q", "r"}) {
    const auto partitions = *rc::gen::inRange(0, 14);
    for (int32_t p = 0; p < partitions; ++p) {
      const bool moves = *rc::gen::weightedElement<bool>({{9, false}, {1, true}});
      placed.push_back({tests::make_row(topic, p, some_owner(), moves ? some_owner() : ""), topic == "q" ? "p" : ""});
    }
  }
  return placed;
}

struct Cluster {
  std::set<std::string> receivers;
  std::set<std::string> alive;
  explicit Cluster(const std::vector<Member>& members) {
    for (const Member& member : members) {
      if (member.status == MemberStatus::alive) {
        alive.insert(member.id);
        if (!member.draining) receivers.insert(member.id);
      }
    }
  }
};

PlacedPartition* find(std::vector<PlacedPartition>& placed, const PlannedMove& move) {
  const auto found = std::find_if(placed.begin(), placed.end(), [&](const PlacedPartition& one) {
    return one.row.topic == move.topic && one.row.partition == move.partition;
  });
  return found == placed.end() ? nullptr : &*found;
}

RC_GTEST_PROP(RebalanceProperty, MovesGoFromTheLivingToReceiversAndStayWithinTheBudget, ()) {
  const std::vector<Member> members = some_members();
  const Cluster cluster(members);
  std::vector<PlacedPartition> placed = some_partitions();
  const auto in_flight = static_cast<size_t>(
      std::count_if(placed.begin(), placed.end(), [](const PlacedPartition& one) { return !one.row.target_id.empty(); }));
  const std::vector<PlannedMove> moves = plan_rebalance(placed, members);
  RC_ASSERT(moves.empty() || in_flight + moves.size() <= kMovesInFlightMax);
  std::set<std::pair<std::string, int32_t>> moved;
  for (const PlannedMove& move : moves) {
    const PlacedPartition* row = find(placed, move);
    RC_ASSERT(row != nullptr);
    RC_ASSERT(row->row.owner_id == move.from);
    RC_ASSERT(row->row.target_id.empty());
    RC_ASSERT(cluster.alive.contains(move.from));
    RC_ASSERT(cluster.receivers.contains(move.to));
    RC_ASSERT(move.from != move.to);
    RC_ASSERT(moved.emplace(move.topic, move.partition).second);
  }
}

// With every move carried out, pass after pass, each receiver ends with floor or ceil, members that drain with nothing, the dead with
// what they had; and no more moved than had to.
RC_GTEST_PROP(RebalanceProperty, EndsEvenWithAsFewMovesAsThatTakes, ()) {
  const std::vector<Member> members = some_members();
  const Cluster cluster(members);
  RC_PRE(!cluster.receivers.empty());
  std::vector<PlacedPartition> placed = some_partitions();
  for (PlacedPartition& one : placed) {
    one.row.target_id.clear();
  }
  const std::vector<PlacedPartition> before = placed;
  std::map<std::string, size_t> held;
  size_t total = 0;
  for (const PlacedPartition& one : placed) {
    if (cluster.alive.contains(one.row.owner_id)) {
      ++held[one.row.owner_id];
      ++total;
    }
  }
  // The fewest: every partition on a member that drains, and what receivers hold over their shares when those that hold most get the
  // larger ones.
  std::vector<size_t> loads;
  size_t fewest = 0;
  for (const std::string& id : cluster.alive) {
    if (cluster.receivers.contains(id)) {
      loads.push_back(held[id]);
    } else {
      fewest += held[id];
    }
  }
  std::sort(loads.rbegin(), loads.rend());
  for (size_t i = 0; i < loads.size(); ++i) {
    const size_t share = total / loads.size() + (i < total % loads.size() ? 1 : 0);
    fewest += loads[i] > share ? loads[i] - share : 0;
  }
  size_t moves = 0;
  for (int pass = 0; pass < 100; ++pass) {
    const std::vector<PlannedMove> plan = plan_rebalance(placed, members);
    if (plan.empty()) break;
    for (const PlannedMove& move : plan) {
      find(placed, move)->row.owner_id = move.to;
      ++moves;
    }
  }
  RC_ASSERT(moves == fewest);
  std::map<std::string, size_t> after;
  for (size_t i = 0; i < placed.size(); ++i) {
    ++after[placed[i].row.owner_id];
    RC_ASSERT(cluster.alive.contains(before[i].row.owner_id) || placed[i].row.owner_id == before[i].row.owner_id);
  }
  for (const std::string& id : cluster.alive) {
    if (!cluster.receivers.contains(id)) {
      RC_ASSERT(after[id] == 0u);
    } else {
      RC_ASSERT(after[id] >= total / cluster.receivers.size());
      RC_ASSERT(after[id] <= (total + cluster.receivers.size() - 1) / cluster.receivers.size());
    }
  }
}

RC_GTEST_PROP(RebalanceProperty, CountsMovesUnderWayAtTheirDestination, ()) {
  const std::vector<Member> members = some_members();
  const Cluster cluster(members);
  std::vector<PlacedPartition> placed = some_partitions();
  for (PlacedPartition& one : placed) {
    one.row.target_id.clear();
  }
  // A plan that is under way is a plan: nothing is moved twice, and the next one only goes on with it.
  const std::vector<PlannedMove> first = plan_rebalance(placed, members);
  RC_PRE(first.size() < kMovesInFlightMax);
  for (const PlannedMove& move : first) {
    find(placed, move)->row.target_id = move.to;
  }
  RC_ASSERT(plan_rebalance(placed, members).empty());
}

}  // namespace
}  // namespace engine::cluster
