#include "sim/placement_check.h"

#include <gtest/gtest.h>

#include "engine/metastore/apply.h"
#include "engine/metastore/commands.h"
#include "tests/support/members.h"
#include "tests/support/topics.h"

namespace sim {
namespace {

namespace ms = engine::metastore;
using tests::make_entry;
using tests::make_row;

struct PlacementCheck : testing::Test {
  PlacementCheck() {
    apply(ms::CreateTopic{tests::make_topic("t")});
    apply(ms::CreateTopic{tests::make_topic("m0")});
    apply(ms::RegisterMember{tests::make_member("n0")});
    apply(ms::RegisterMember{tests::make_dead("n1")});
    apply(ms::AssignPartition{make_row("t", 0, "n0")});
    apply(ms::AssignPartition{make_row("t", 1, "n1")});
    apply(ms::AssignPartition{make_row("t", 2, "n0", "n2")});
    apply(ms::AssignPartition{make_row("m0", 0, "n0")});
    apply(ms::AssignPartition{make_row("gone", 0, "n0")});
  }
  template <typename C>
  void apply(const C& command) {
    auto run = ms::evaluate(rows, state, {make_entry(state.applied_index + 1, ms::encode_command(command))}, ms::kNewestEntryType);
    rows.take(run.rows);
    state = run.state;
  }
  template <typename C>
  bool is_wrong(const C& command, ms::Answer answer = {}) {
    return judge_assignment(rows, make_entry(state.applied_index + 1, ms::encode_command(command)), answer).has_value();
  }
  ms::MemoryRows rows;
  ms::FsmState state;
};

TEST_F(PlacementCheck, APlacementOverAnOwnerIsWrongUnlessItIsRefused) {
  const std::string id = tests::make_topic("t").id;
  EXPECT_TRUE(is_wrong(ms::PlacePartition{"t", 0, "n2", id}));
  EXPECT_FALSE(is_wrong(ms::PlacePartition{"t", 0, "n2", id}, ms::refuse(ms::Code::partition_assigned)));
  EXPECT_TRUE(is_wrong(ms::PlacePartition{"t", 3, "n2", id})) << "out of range";
  EXPECT_TRUE(is_wrong(ms::PlacePartition{"m0", 1, "n2", "another"}));
  EXPECT_FALSE(is_wrong(ms::PlacePartition{"m0", 1, "n2", id}));
  EXPECT_TRUE(is_wrong(ms::AssignPartition{make_row("t", 0, "n2")})) << "the older entry, from a node";
  EXPECT_FALSE(is_wrong(ms::AssignPartition{make_row("t", 0, "n0")}));
  EXPECT_FALSE(is_wrong(ms::AssignPartition{make_row("m0", 0, "n2")})) << "the load's own";
}

TEST_F(PlacementCheck, AMoveCompletesByComparingOwnerAndDestination) {
  EXPECT_FALSE(is_wrong(ms::CompleteMove{"t", 2, "n0", "n2"}));
  EXPECT_TRUE(is_wrong(ms::CompleteMove{"t", 2, "n1", "n2"}));
  EXPECT_TRUE(is_wrong(ms::CompleteMove{"t", 2, "n0", "n1"}));
  EXPECT_FALSE(is_wrong(ms::CompleteMove{"t", 0, "n9", "n0"})) << "it is so already";
  EXPECT_TRUE(is_wrong(ms::CompleteMove{"none", 0, "n0", "n1"}));
}

TEST_F(PlacementCheck, ADeadOwnersPartitionGetsNoDestination) {
  EXPECT_TRUE(is_wrong(ms::SetMoveTarget{"t", 1, "n0"}));
  EXPECT_FALSE(is_wrong(ms::SetMoveTarget{"t", 1, ""}));
  EXPECT_FALSE(is_wrong(ms::SetMoveTarget{"t", 0, "n2"}));
}

TEST_F(PlacementCheck, OnlyWhatBelongsToNoPartitionIsPruned) {
  EXPECT_TRUE(is_wrong(ms::PruneAssignment{"t", 0}));
  EXPECT_FALSE(is_wrong(ms::PruneAssignment{"gone", 0}));
  EXPECT_FALSE(is_wrong(ms::PruneAssignment{"t", 3}));
}

TEST_F(PlacementCheck, TellsWhatTheControllerStillOwes) {
  EXPECT_EQ(unplaced_partition(rows), "m0/1");
  apply(ms::AssignPartition{make_row("m0", 1, "n0")});
  apply(ms::AssignPartition{make_row("m0", 2, "n0")});
  EXPECT_EQ(unplaced_partition(rows), std::nullopt);
  apply(ms::CreateTopic{tests::make_topic("u")});
  EXPECT_EQ(unplaced_partition(rows), "u/0");
  apply(ms::SetMemberDraining{"n0", true});
  EXPECT_EQ(unplaced_partition(rows), std::nullopt) << "nobody takes it";

  raft::Configuration configuration;
  configuration.servers = {{"n0", "n0:7943", true, {}}};
  EXPECT_EQ(orphan_row(rows, configuration), "gone/0");
  configuration.servers.push_back({"n5", "n5:7943", false, {}});
  EXPECT_EQ(orphan_row(rows, configuration), std::nullopt) << "a server without a record holds the prune back";
  configuration.servers.pop_back();
  apply(ms::PruneAssignment{"gone", 0});
  EXPECT_EQ(orphan_row(rows, configuration), std::nullopt);
}

}  // namespace
}  // namespace sim
