#include "engine/cluster/rebalance_plan.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/members.h"

namespace engine::cluster {
namespace {

using tests::make_dead;
using tests::make_draining;
using tests::make_member;
using tests::make_row;

// `count` partitions of `topic` on `owner`.
void put(std::vector<PlacedPartition>& rows, const std::string& topic, const std::string& owner, int32_t count, int32_t first = 0) {
  for (int32_t p = first; p < first + count; ++p) {
    rows.push_back({make_row(topic, p, owner), ""});
  }
}

TEST(RebalancePlan, ABalancedClusterMovesNothing) {
  std::vector<PlacedPartition> rows;
  put(rows, "t", "a", 3);
  put(rows, "u", "b", 2);
  EXPECT_TRUE(plan_rebalance(rows, {make_member("a"), make_member("b")}).empty()) << "3 and 2 is ceil and floor of 5 by 2";
}

TEST(RebalancePlan, MovesNoMoreThanFloorOrCeilTakes) {
  std::vector<PlacedPartition> rows;
  put(rows, "t", "a", 5);
  put(rows, "u", "b", 2);
  const auto moves = plan_rebalance(rows, {make_member("a"), make_member("b"), make_member("c")});
  // 7 by 3: a keeps 3 and gives two away, both to c.
  EXPECT_EQ(moves, (std::vector<PlannedMove>{{"t", 0, "a", "c"}, {"t", 1, "a", "c"}}));
}

TEST(RebalancePlan, AMoveUnderWayCountsAtItsDestinationAndIsLeftAlone) {
  std::vector<PlacedPartition> rows;
  put(rows, "t", "a", 2);
  rows.push_back({make_row("t", 2, "a", "b"), ""});
  rows.push_back({make_row("t", 3, "a", "b"), ""});
  EXPECT_TRUE(plan_rebalance(rows, {make_member("a"), make_member("b")}).empty());
}

TEST(RebalancePlan, ADeadOwnersPartitionsStayAndDoNotCount) {
  std::vector<PlacedPartition> rows;
  put(rows, "t", "dead", 9);
  put(rows, "u", "a", 1);
  put(rows, "v", "b", 1);
  put(rows, "w", "stranger", 5);
  EXPECT_TRUE(plan_rebalance(rows, {make_member("a"), make_member("b"), make_dead("dead")}).empty());
}

TEST(RebalancePlan, ADrainingMemberIsEmptiedFirst) {
  std::vector<PlacedPartition> rows;
  put(rows, "t", "a", 4);
  put(rows, "z", "leaving", 2);
  const auto moves = plan_rebalance(rows, {make_member("a"), make_member("b"), make_draining("leaving")});
  ASSERT_EQ(moves.size(), 3u) << "6 by 2: two to b off the member that leaves, and one off a";
  EXPECT_EQ(moves[0], (PlannedMove{"z", 0, "leaving", "b"}));
  EXPECT_EQ(moves[1], (PlannedMove{"z", 1, "leaving", "b"}));
  EXPECT_EQ(moves[2], (PlannedMove{"t", 0, "a", "b"}));
}

TEST(RebalancePlan, NoMoreThanEightAreUnderWay) {
  std::vector<PlacedPartition> rows;
  put(rows, "t", "a", 40);
  const std::vector<metastore::Member> members{make_member("a"), make_member("b")};
  EXPECT_EQ(plan_rebalance(rows, members).size(), kMovesInFlightMax);
  for (size_t i = 0; i < 5; ++i) {
    rows[i].row.target_id = "b";
  }
  EXPECT_EQ(plan_rebalance(rows, members).size(), 3u);
  for (size_t i = 0; i < 8; ++i) {
    rows[i].row.target_id = "b";
  }
  EXPECT_TRUE(plan_rebalance(rows, members).empty());
}

TEST(RebalancePlan, PrefersToPartAChildFromItsParentAndSpendsNoMoveOnIt) {
  // a holds both of parent and child; b nothing.
  std::vector<PlacedPartition> rows{{make_row("child", 0, "a"), "parent"}, {make_row("parent", 0, "a"), ""},
                                    {make_row("aaa", 0, "a"), ""},         {make_row("bbb", 0, "a"), ""}};
  const auto moves = plan_rebalance(rows, {make_member("a"), make_member("b")});
  ASSERT_EQ(moves.size(), 2u);
  EXPECT_EQ(moves[0].topic, "child") << "the first move parts them, although others come first by name";
  EXPECT_EQ(count_colocated(rows), 1u);
  // Together, and even: nothing moves for their sake.
  std::vector<PlacedPartition> even{{make_row("child", 0, "a"), "parent"}, {make_row("parent", 0, "a"), ""}, {make_row("x", 0, "b"), ""},
                                    {make_row("y", 0, "b"), ""}};
  EXPECT_TRUE(plan_rebalance(even, {make_member("a"), make_member("b")}).empty());
}

TEST(RebalancePlan, NobodyToReceiveMeansNoMove) {
  std::vector<PlacedPartition> rows;
  put(rows, "t", "a", 3);
  EXPECT_TRUE(plan_rebalance(rows, {make_draining("a"), make_dead("b")}).empty());
  EXPECT_TRUE(plan_rebalance({}, {make_member("a")}).empty());
}

}  // namespace
}  // namespace engine::cluster
