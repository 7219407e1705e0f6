// Stories about the controller and its moves, told with whole nodes in the simulated world. What needs a controller alone is in
// controller_test.cpp and assigner_test.cpp.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/cluster/move_frames.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/fsm.h"
#include "engine/metastore/records_reader.h"
#include "engine/topics/json.h"
#include "engine/topics/proposer.h"
#include "tests/support/members.h"
#include "tests/support/node_world.h"
#include "tests/support/topics.h"

namespace engine::cluster {
namespace {

using namespace std::chrono_literals;
namespace ms = metastore;
using tests::make_row;

struct ControllerScenario : tests::NodeWorld {
  explicit ControllerScenario(size_t count = 3) : NodeWorld(count) {}

  // Runs `body` in a fiber of node `i`, to its end.
  void on_node(size_t i, std::function<void(const NodeView& view, io::Env& env)> body) {
    bool ended = false;
    nodes[i].machine->process()->spawn("test", [&, i] {
      body(*nodes[i].view, nodes[i].machine->process()->env());
      ended = true;
    });
    ASSERT_TRUE(world.run_while([&] { return !ended; }, world.now() + 30s));
  }
  template <typename C>
  void propose(size_t i, const C& command) {
    on_node(i, [&](const NodeView& view, io::Env& env) {
      const Proposed proposed = view.proposer.propose(ms::encode_command(command), env.after(10s));
      EXPECT_EQ(proposed.outcome, Proposed::Outcome::applied) << proposed.reason;
    });
  }
  // Owners by partition on node `i`, "-" for none, "a>b" for a move.
  std::string owners(size_t i, const std::string& topic, int32_t partitions = 3) {
    std::string text;
    on_node(i, [&](const NodeView& view, io::Env&) {
      for (int32_t p = 0; p < partitions; ++p) {
        const auto row = ms::get_assignment(view.fsm, topic, p);
        const bool is_placed = row.ok() && row->has_value();
        text += (p == 0 ? "" : " ") + (is_placed ? (*row)->owner_id : "-");
        if (is_placed && !(*row)->target_id.empty()) text += ">" + (*row)->target_id;
      }
    });
    return text;
  }
  std::vector<ms::Member> members(size_t i) {
    std::vector<ms::Member> found;
    on_node(i, [&](const NodeView& view, io::Env&) { found = *ms::list_members(view.fsm); });
    return found;
  }
  size_t rows_of(size_t i, const std::string& topic) {
    size_t count = 0;
    on_node(i, [&](const NodeView& view, io::Env&) { count = ms::list_assignments(view.fsm, topic)->size(); });
    return count;
  }
  bool within(io::Duration bound, const std::function<bool()>& done) {
    for (const io::Instant end = world.now() + bound; world.now() < end; world.run_for(20ms)) {
      if (done()) return true;
    }
    return done();
  }
  // Every node runs and has registered. The leader.
  size_t form() {
    start_all();
    const size_t first = await_leader();
    EXPECT_TRUE(within(20s, [&] { return members(leader().value_or(first)).size() == nodes.size(); }));
    return await_leader();
  }
  // Kills the leader and waits for another one.
  size_t kill_leader(size_t old) {
    nodes[old].machine->power_loss();
    nodes[old].view.reset();
    const size_t next = await_leader();
    world.run_for(1s);
    return next;
  }
  std::string id(size_t i) const { return nodes[i].config.cluster.node_id; }
};

// Scenario PL-08, with whole nodes.
TEST_F(ControllerScenario, ATopicMadeInAClustersFirstMomentIsPlacedWithinOneAndAHalfSecondsOfTheFirstMember) {
  start_all();
  const size_t first = await_leader();
  // Made by an entry of its own: before anybody can have registered.
  propose(first, ms::CreateTopic{tests::make_topic("early")});
  ASSERT_TRUE(within(10s, [&] { return !members(leader().value_or(first)).empty(); }));
  const io::Instant registered = world.now();
  EXPECT_TRUE(within(1500ms, [&] { return owners(leader().value_or(first), "early").find('-') == std::string::npos; }))
      << owners(first, "early");
  EXPECT_LE(world.now() - registered, 1500ms);
}

// Scenario PL-01: the partition moves from A to C while B leads.
TEST_F(ControllerScenario, TheFlipOfAMoveBetweenFollowersGoesToTheLeaderAndHappensOnce) {
  const size_t leading = form();
  const size_t a = (leading + 1) % 3;
  const size_t c = (leading + 2) % 3;
  propose(leading, ms::CreateTopic{tests::make_topic("t")});
  for (int32_t p = 0; p < 3; ++p) {
    propose(leading, ms::AssignPartition{make_row("t", p, id(p == 0 ? a : p == 1 ? leading : c))});
  }
  propose(leading, ms::SetMoveTarget{"t", 0, id(c)});
  EXPECT_TRUE(within(3s, [&] { return owners(leading, "t").starts_with(id(c) + " "); })) << owners(leading, "t");
  // The destination's own word to a follower is not enough, and the leader does not do it twice.
  EXPECT_EQ(rpc(leading, encode(CompleteMoveRequest{"t", 0, id(a), id(c)})).reply.status, 204) << "it is so already";
  EXPECT_EQ(rpc(leading, encode(CompleteMoveRequest{"t", 0, id(a), id(leading)})).reply.status, 409);
  EXPECT_EQ(rpc(a, encode(CompleteMoveRequest{"t", 1, id(leading), id(c)})).reply.status, 503);
  EXPECT_TRUE(owners(leading, "t").starts_with(id(c) + " "));
}

// Scenario PL-03: the leader is lost after each step of a create that takes several, and after a delete.
TEST_F(ControllerScenario, HalfATopicCanBeListedDeletedAndCreatedAgainUnderTheNextLeader) {
  size_t leading = form();
  propose(leading, ms::CreateTopic{tests::make_topic("parent")});
  propose(leading, ms::PutSchema{"parent", 1, R"({"type":"object"})"});
  for (int step = 1; step <= 5; ++step) {
    SCOPED_TRACE(step);
    const std::string name = "half-" + std::to_string(step);
    propose(leading, ms::CreateTopic{tests::make_topic(name)});
    if (step >= 2) propose(leading, ms::PutSchema{name, 1, R"({"type":"object"})"});
    if (step >= 3) propose(leading, ms::AttachChild{"parent", name, "e1", 0, {0, 0, 0}});
    if (step >= 4) propose(leading, ms::AssignPartition{make_row(name, 0, id(leading))});
    if (step >= 5) propose(leading, ms::DeleteTopic{name});
    const size_t lost = leading;
    leading = kill_leader(lost);
    const bool stands = step < 5;
    if (stands) {
      EXPECT_TRUE(within(12s, [&] { return owners(leading, name).find('-') == std::string::npos; })) << "the next leader places the rest";
    }
    EXPECT_EQ(ask(leading, "GET", "/v1/topics/" + name).status, stands ? 200 : 404);
    EXPECT_EQ(ask(leading, "POST", "/v1/topics", R"({"name":")" + name + "\"}").status, stands ? 409 : 201);
    EXPECT_EQ(ask(leading, "DELETE", "/v1/topics/" + name).status, 204);
    EXPECT_EQ(rows_of(leading, name), 0u) << "nothing of it is left";
    EXPECT_EQ(ask(leading, "POST", "/v1/topics", R"({"name":")" + name + "\"}").status, 201);
    EXPECT_TRUE(within(12s, [&] { return owners(leading, name).find('-') == std::string::npos; })) << "it blocks nothing";
    start(lost);
    world.run_for(2s);
    leading = await_leader();
  }
}

TEST_F(ControllerScenario, RowsThatAnEarlierReleaseLeftBehindGoWithTheNextLeaderAndLiveOnesStay) {
  size_t leading = form();
  EXPECT_EQ(ask(leading, "POST", "/v1/topics", R"({"name":"live"})").status, 201);
  ASSERT_TRUE(within(12s, [&] { return owners(leading, "live").find('-') == std::string::npos; }));
  const std::string placed = owners(leading, "live");
  propose(leading, ms::AssignPartition{make_row("gone", 0, id(leading))});
  propose(leading, ms::AssignPartition{make_row("live", 3, id(leading))});
  const size_t lost = leading;
  leading = kill_leader(lost);
  EXPECT_TRUE(within(5s, [&] { return rows_of(leading, "gone") == 0 && rows_of(leading, "live") == 3; }));
  EXPECT_EQ(owners(leading, "live"), placed);
}

// Scenario PL-05: the topic is deleted while a partition of it moves, and the leader changes.
TEST_F(ControllerScenario, ATopicDeletedInTheMiddleOfAMoveIsGoneAndOtherWorkGoesOn) {
  size_t leading = form();
  const size_t a = (leading + 1) % 3;
  const size_t c = (leading + 2) % 3;
  propose(leading, ms::CreateTopic{tests::make_topic("t")});
  for (int32_t p = 0; p < 3; ++p) propose(leading, ms::AssignPartition{make_row("t", p, id(a))});
  propose(leading, ms::SetMoveTarget{"t", 0, id(c)});
  EXPECT_EQ(ask(leading, "DELETE", "/v1/topics/t").status, 204);
  const size_t lost = leading;
  leading = kill_leader(lost);
  EXPECT_EQ(rpc(leading, encode(CompleteMoveRequest{"t", 0, id(a), id(c)})).reply.status, 404) << "the late flip";
  EXPECT_EQ(ask(leading, "POST", "/v1/topics", R"({"name":"next"})").status, 201);
  EXPECT_TRUE(within(12s, [&] { return owners(leading, "next").find('-') == std::string::npos; }));
  world.run_for(15s);
  EXPECT_EQ(rows_of(leading, "t"), 0u) << "no row is made again";
}

struct FiveNodes : ControllerScenario {
  FiveNodes() : ControllerScenario(5) {}
};

TEST_F(FiveNodes, AMemberIsDrainedRemovedAndRemembered) {
  size_t leading = form();
  EXPECT_EQ(ask(leading, "POST", "/v1/topics", R"({"name":"t","partitions":10})").status, 201);
  ASSERT_TRUE(within(12s, [&] { return owners(leading, "t", 10).find('-') == std::string::npos; }));
  const size_t leaver = (leading + 1) % 5;
  EXPECT_EQ(rpc(leading, encode(DecommissionRequest{"nobody", false})).reply.status, 404);
  EXPECT_EQ(rpc(leading, encode(DecommissionRequest{id(leaver), false})).reply.status, 204);
  EXPECT_TRUE(within(60s, [&] {
    leading = leader().value_or(leading);
    return members(leading).size() == 4;
  })) << rpc(leading, encode_node_status_request()).reply.body;
  EXPECT_EQ(nodes[leading].view->raft.core().configuration().find(id(leaver)), nullptr);
  EXPECT_EQ(owners(leading, "t", 10).find(id(leaver)), std::string::npos);
  on_node(leading, [&](const NodeView& view, io::Env&) { EXPECT_TRUE(*ms::get_tombstone(view.fsm, id(leaver))); });
}

TEST_F(FiveNodes, ADrainingLeaderHandsOverAndTheNextOneRemovesIt) {
  const size_t old = form();
  EXPECT_EQ(rpc(old, encode(DecommissionRequest{id(old), false})).reply.status, 204);
  EXPECT_TRUE(within(60s, [&] {
    const auto now = leader();
    return now && *now != old && members(*now).size() == 4;
  }));
}

// Scenario MB-08: an operator asks for more than the cluster can lose.
TEST_F(FiveNodes, RemovalsStopAtThreeVotersAndAtTheHealthyMajority) {
  const size_t leading = form();
  std::vector<size_t> others;
  for (size_t i = 1; i < 5; ++i) others.push_back((leading + i) % 5);
  for (const size_t down : {others[0], others[1]}) {
    nodes[down].machine->power_loss();
    nodes[down].view.reset();
  }
  // The members are marked dead; nobody is removed by itself, however long that takes.
  ASSERT_TRUE(within(60s, [&] {
    size_t dead = 0;
    for (const ms::Member& member : members(leading)) dead += member.status == ms::MemberStatus::dead ? 1 : 0;
    return dead == 2;
  }));
  world.run_for(2min);
  EXPECT_EQ(nodes[leading].view->raft.core().configuration().voter_count(), 5u);
  // None of the living may leave: of the four voters that would be left only two are well.
  EXPECT_EQ(rpc(leading, encode(DecommissionRequest{id(others[2]), false})).reply.status, 409);
  EXPECT_EQ(rpc(leading, encode(DecommissionRequest{id(leading), false})).reply.status, 409);
  EXPECT_EQ(nodes[leading].view->raft.core().configuration().voter_count(), 5u);
}

TEST_F(ControllerScenario, TheOperationsAboutMovesAreTheLeaders) {
  const size_t leading = form();
  const size_t follower = (leading + 1) % 3;
  propose(leading, ms::CreateTopic{tests::make_topic("t")});
  propose(leading, ms::AssignPartition{make_row("t", 0, "elsewhere")});
  EXPECT_EQ(rpc(leading, encode(GetAssignmentRequest{"t", 0})).reply.body,
            "{\"topic\":\"t\",\"partition\":0,\"owner_id\":\"elsewhere\",\"leader_read\":true}\n");
  EXPECT_EQ(rpc(leading, encode(GetAssignmentRequest{"t", 9})).reply.status, 404);
  const CallResult elsewhere = rpc(follower, encode(GetAssignmentRequest{"t", 0}));
  EXPECT_EQ(elsewhere.reply.status, 421);
  EXPECT_NE(elsewhere.reply.body.find("\"leader_id\":\"" + id(leading) + "\""), std::string::npos) << elsewhere.reply.body;
  EXPECT_EQ(rpc(leading, encode(AbortMoveRequest{"t", 0, ""})).reply.status, 409);
  EXPECT_EQ(rpc(leading, encode(AbortMoveRequest{"t", 9, ""})).reply.status, 404);
  EXPECT_EQ(rpc(leading, encode(DecommissionRequest{id(follower), false})).reply.status, 409) << "three voters stay";
  EXPECT_EQ(rpc(leading, encode(DecommissionRequest{id(follower), true})).reply.status, 204);
  EXPECT_EQ(rpc(leading, encode(AbortMoveRequest{"t", 0, ""}) + "x").reply.body,
            "{\"error\":\"invalid abort move request: trailing node rpc payload data\"}\n");
  const CallResult status = rpc(follower, encode_node_status_request());
  EXPECT_EQ(status.reply.status, 200);
  EXPECT_EQ(json::parse(status.reply.body)->find("node")->text, id(follower));
}

}  // namespace
}  // namespace engine::cluster
