// What the operator is shown: the JSON, and the service that fills it.

#include <gtest/gtest.h>

#include "engine/cluster/admin_json.h"
#include "engine/cluster/admin_service.h"
#include "engine/cluster/assigner.h"
#include "engine/topics/json.h"
#include "tests/support/controller_parts.h"

namespace engine::cluster {
namespace {

using namespace std::chrono_literals;
using tests::make_dead;
using tests::make_draining;
using tests::make_member;
using tests::make_row;

TEST(AdminJson, MembersHaveTheFieldsOfTheDocuments) {
  MemberRow row;
  row.id = "n1";
  row.addr = "n1:7942";
  row.status = "alive";
  row.is_draining = true;
  row.owned_partitions = 3;
  row.outbound_moves = 1;
  row.is_voter = true;
  row.heartbeat_age_seconds = 4;
  EXPECT_EQ(members_json({row}),
            R"({"members":[{"id":"n1","addr":"n1:7942","status":"alive","draining":true,"owned_partitions":3,"outbound_moves":1,)"
            R"("voter":true,"leader":false,"heartbeat_age_seconds":4}]})");
  row.decommission_blocked = {{DecommissionReason::move_target, "m"}};
  row.node_status = "{}";
  row.status_error = "e";
  EXPECT_TRUE(members_json({row}).ends_with(
      R"("decommission_blocked":[{"code":"move_target","message":"m"}],"node_status":{},"status_error":"e"}]})"));
}

TEST(AdminJson, MovesAndDryRunsHaveTheFieldsOfTheDocuments) {
  MoveRow row{"t", 2, "n1", "n2", "dead", "alive", "source_dead", "", ""};
  EXPECT_EQ(moves_json({row}),
            R"({"moves":[{"topic":"t","partition":2,"from":"n1","to":"n2","from_status":"dead","to_status":"alive","blocked":"source_dead"}]})");
  EXPECT_EQ(dry_run_json({"n1", {}, true, 3, 1}),
            R"({"member":"n1","would_decommission":true,"reasons":[],"voter":true,"owned_partitions":3,"inbound_moves":1})");
  EXPECT_EQ(refusal_json("n1", {{DecommissionReason::owner_dead, "a"}, {DecommissionReason::no_receivers, "b"}}),
            R"({"error":"decommission of n1 refused: a; b","reasons":[{"code":"owner_dead","message":"a"},{"code":"no_receivers","message":"b"}]})");
}

TEST(AdminJson, ANodesStatusIsReadAsItIsWritten) {
  NodeStatusFacts facts;
  facts.node = "n1";
  facts.is_draining = true;
  facts.produce_in_flight = 2;
  facts.dispatch_backlog = 3;
  facts.moves = {{"t", 1, "n2", "n1", 1'700'000'000, "flip_pending", 4, "late", 5}};
  EXPECT_EQ(parse_node_status(node_status_json(facts)), facts);
  EXPECT_NE(node_status_json(facts).find(R"("quarantine":{"copies":0,"bytes":0,"list":[]})"), std::string::npos);
}

TEST(AdminJson, AStatusThatDoesNotTellItsBacklogIsNone) {
  EXPECT_EQ(parse_node_status("[]"), std::nullopt);
  EXPECT_EQ(parse_node_status("{"), std::nullopt);
  EXPECT_EQ(parse_node_status(R"({"node":"n1"})"), std::nullopt);
  EXPECT_TRUE(parse_node_status(R"({"node":"n1","dispatch_backlog":0})").has_value());
}

struct AdminTest : testing::Test, tests::ControllerParts {
  std::unique_ptr<Assigner> assigner;
  std::unique_ptr<Moves> moves;
  std::unique_ptr<Decommission> decommission;
  std::unique_ptr<NodeClientPool> clients;
  std::unique_ptr<StatusClient> statuses;
  std::unique_ptr<AdminService> admin;

  void test(const std::function<void()>& body) {
    servers.have({"n1", "n2", "n3"});
    EXPECT_TRUE(run([&](io::Env& given) {
      const auto own = [] { return NodeStatusFacts{"n1", false, 0, 0, {}}; };
      assigner = std::make_unique<Assigner>(Assigner::Parts{given, store, store, gate, [this] { return servers.voters(); }});
      moves = std::make_unique<Moves>(Moves::Parts{given, store, store, *assigner, servers});
      decommission = std::make_unique<Decommission>(
          Decommission::Parts{given, store, store, *assigner, servers, [](const metastore::Member&, io::Instant) { return NodeBacklog(); }});
      clients = std::make_unique<NodeClientPool>(given, NodeClientSettings{});
      statuses = std::make_unique<StatusClient>(given, *clients, servers, own);
      admin = std::make_unique<AdminService>(AdminService::Parts{given, store, store, servers, *moves, *decommission, *statuses,
                                                                 [] { return std::string("n2"); }, own});
      io::with_scope([&](io::Scope& scope) {
        clients->run(scope);
        body();
        scope.cancel();
      });
      admin.reset();
      statuses.reset();
      clients.reset();
      decommission.reset();
      moves.reset();
      assigner.reset();
    }));
  }
};

TEST_F(AdminTest, ListsMembersWithWhatTheyHoldAndWhoLeads) {
  test([&] {
    member(make_member("n1"));
    member(make_draining("n2"));
    topic("t");
    row(make_row("t", 0, "n1", "n2"));
    row(make_row("t", 1, "n1"));
    row(make_row("gone", 0, "n1"));
    const Reply reply = admin->members(false, io::kNever);
    EXPECT_EQ(reply.status, 200);
    const auto value = json::parse(reply.body);
    const auto& rows = value->find("members")->array;
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].find("id")->text, "n1");
    EXPECT_EQ(rows[0].find("owned_partitions")->integer, 2) << "an orphan is nobody's partition";
    EXPECT_EQ(rows[0].find("outbound_moves")->integer, 1);
    EXPECT_FALSE(rows[0].find("leader")->boolean);
    EXPECT_TRUE(rows[1].find("leader")->boolean);
    EXPECT_TRUE(rows[1].find("draining")->boolean);
    EXPECT_EQ(rows[1].find("node_status"), nullptr);
  });
}

TEST_F(AdminTest, DetailAsksEveryMemberWithinTwoSecondsInTotal) {
  test([&] {
    member(make_member("n1"));
    member(make_member("n2"));
    member(make_member("n3"));
    const io::Instant begun = env->now();
    const auto value = json::parse(admin->members(true, io::kNever).body);
    EXPECT_LE(env->now() - begun, kStatusTimeout);
    const auto& rows = value->find("members")->array;
    EXPECT_EQ(rows[0].find("node_status")->find("node")->text, "n1");
    EXPECT_EQ(rows[0].find("status_error"), nullptr);
    EXPECT_EQ(rows[1].find("node_status"), nullptr);
    EXPECT_FALSE(rows[1].find("status_error")->text.empty()) << "nobody listens there";
  });
}

TEST_F(AdminTest, ListsMovesByTopicAndPartitionWithWhatBlocksThem) {
  test([&] {
    member(make_member("n1"));
    member(make_draining("n2"));
    member(make_dead("n3"));
    topic("t");
    topic("s");
    row(make_row("t", 0, "n3", "n1"));
    row(make_row("t", 1, "n1"));
    row(make_row("s", 2, "n1", "n9"));
    row(make_row("s", 0, "n1", "n2"));
    const auto value = json::parse(admin->moves(true, io::kNever).body);
    const auto& rows = value->find("moves")->array;
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[0].find("topic")->text + std::to_string(rows[0].find("partition")->integer), "s0");
    EXPECT_EQ(rows[0].find("to_status")->text, "draining");
    EXPECT_EQ(rows[0].find("blocked"), nullptr);
    EXPECT_EQ(rows[1].find("to_status")->text, "not_a_member");
    EXPECT_EQ(rows[1].find("blocked")->text, "target_not_member");
    EXPECT_EQ(rows[2].find("from_status")->text, "dead");
    EXPECT_EQ(rows[2].find("blocked")->text, "source_dead");
  });
}

TEST_F(AdminTest, ADryRunSaysWhatTheGuardsWouldAndChangesNothing) {
  test([&] {
    for (const char* id : {"n1", "n2", "n3"}) member(make_member(id));
    topic("t");
    row(make_row("t", 0, "n2", "n1"));
    const Reply reply = admin->decommission_dry_run("n2", io::kNever);
    EXPECT_EQ(reply.status, 200);
    const auto value = json::parse(reply.body);
    EXPECT_FALSE(value->find("would_decommission")->boolean);
    EXPECT_EQ(value->find("reasons")->array.at(0).find("code")->text, "below_min_voters");
    EXPECT_EQ(value->find("owned_partitions")->integer, 1);
    EXPECT_EQ(admin->decommission_dry_run("n9", io::kNever).status, 404);
    EXPECT_EQ(store.proposals, 0);
  });
}

TEST_F(AdminTest, AnAbortShowsTheMoveThatItEnded) {
  test([&] {
    member(make_member("n1"));
    topic("t");
    row(make_row("t", 0, "n1", "n2"));
    const Reply reply = admin->abort_move_here("t", 0, "", io::kNever);
    EXPECT_EQ(reply.status, 202);
    const auto value = json::parse(reply.body);
    EXPECT_EQ(value->find("move")->find("to")->text, "n2");
    EXPECT_FALSE(value->find("note")->text.empty());
    EXPECT_EQ(owners("t"), "n1 - -");
    EXPECT_EQ(admin->abort_move_here("t", 0, "", io::kNever).status, 409);
    EXPECT_EQ(admin->abort_move_here("t", 5, "", io::kNever).status, 404);
  });
}

TEST_F(AdminTest, AnAssignmentIsReadBehindABarrier) {
  test([&] {
    store.during_barrier = [&] {
      store.during_barrier = nullptr;
      row(make_row("t", 0, "n1", "n2"));
    };
    const Reply reply = admin->assignment_here("t", 0, io::kNever);
    EXPECT_EQ(reply.body, "{\"topic\":\"t\",\"partition\":0,\"owner_id\":\"n1\",\"target_id\":\"n2\",\"leader_read\":true}\n");
    EXPECT_EQ(admin->assignment_here("t", 1, io::kNever).status, 404);
    store.barrier_status = io::fail(io::ErrorKind::busy, "no quorum");
    EXPECT_EQ(admin->assignment_here("t", 0, io::kNever).status, 503);
  });
}

TEST_F(AdminTest, WhatCannotBeReadIsUnavailable) {
  test([&] {
    store.read_error = io::fail(io::ErrorKind::busy, "closed");
    EXPECT_EQ(admin->members(false, io::kNever).status, 503);
    EXPECT_EQ(admin->moves(false, io::kNever).status, 503);
    EXPECT_EQ(admin->decommission_dry_run("n1", io::kNever).status, 503);
  });
}

}  // namespace
}  // namespace engine::cluster
