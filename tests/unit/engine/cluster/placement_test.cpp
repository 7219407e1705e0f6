#include "engine/cluster/placement.h"

#include <gtest/gtest.h>

#include "tests/support/members.h"

namespace engine::cluster {
namespace {

using tests::make_dead;
using tests::make_draining;
using tests::make_member;
using tests::make_row;

using Plan = std::vector<Placement>;

TEST(Placement, GoesToAliveMembersThatDoNotDrainSortedById) {
  EXPECT_EQ(placeable_members({make_member("n3"), make_dead("n0"), make_draining("n2"), make_member("n1")}),
            (std::vector<std::string>{"n1", "n3"}));
  EXPECT_EQ(placeable_members({}), std::vector<std::string>());
}

TEST(Placement, AClusterWhoseLiveNodesAllDrainTakesNothing) {
  EXPECT_TRUE(are_all_draining({make_draining("n1"), make_dead("n2")}));
  EXPECT_FALSE(are_all_draining({make_draining("n1"), make_member("n2")}));
  EXPECT_FALSE(are_all_draining({make_dead("n1")})) << "nobody is alive, which is another matter";
  EXPECT_FALSE(are_all_draining({}));
}

TEST(Placement, PartitionPGoesToMemberPModN) {
  const PlacementPlan plan = plan_placement(Owners(5), {"a", "b", "c"}, nullptr);
  EXPECT_EQ(plan.placements, (Plan{{0, "a"}, {1, "b"}, {2, "c"}, {3, "a"}, {4, "b"}}));
  EXPECT_TRUE(plan.is_complete());
}

TEST(Placement, NeverPlansAPartitionThatHasAnOwner) {
  const PlacementPlan plan = plan_placement({"z", "", "b"}, {"a", "b", "c"}, nullptr);
  EXPECT_EQ(plan.placements, (Plan{{1, "b"}}));
}

TEST(Placement, AChildSkipsTheOwnerOfItsParentsPartition) {
  const Owners parent{"a", "c", "c"};
  EXPECT_EQ(plan_placement(Owners(3), {"a", "b", "c"}, &parent).placements, (Plan{{0, "b"}, {1, "b"}, {2, "a"}}));
  const Owners alone{"a", "a"};
  EXPECT_EQ(plan_placement(Owners(2), {"a"}, &alone).placements, (Plan{{0, "a"}, {1, "a"}})) << "there is no second member";
}

TEST(Placement, AChildsPartitionWaitsForItsParents) {
  const Owners parent{"a", "", "c"};
  const PlacementPlan plan = plan_placement(Owners(4), {"a", "b", "c"}, &parent);
  EXPECT_EQ(plan.placements, (Plan{{0, "b"}, {2, "a"}, {3, "a"}})) << "the parent has no partition 3";
  EXPECT_EQ(plan.deferred, std::vector<int32_t>{1});
  EXPECT_FALSE(plan.is_complete());
}

TEST(Placement, WithoutAMemberNothingIsPlaced) {
  const PlacementPlan plan = plan_placement({"", "a", ""}, {}, nullptr);
  EXPECT_TRUE(plan.placements.empty());
  EXPECT_EQ(plan.without_owner, (std::vector<int32_t>{0, 2}));
}

TEST(Placement, RowsBeyondTheTopicCountForNothing) {
  EXPECT_EQ(owners_of({make_row("t", 1, "b"), make_row("t", 3, "c"), make_row("t", -1, "x")}, 3), (Owners{"", "b", ""}));
  EXPECT_EQ(owners_of({make_row("t", 0, "b")}, 0), Owners());
}

}  // namespace
}  // namespace engine::cluster
