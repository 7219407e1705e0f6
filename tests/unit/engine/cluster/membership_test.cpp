// Whole nodes in the simulated world: how a cluster forms, grows, takes back wiped volumes and keeps removed members out.
// Stories of clocks, older releases and a node that removes itself: scenario_membership_test.cpp.

#include <gtest/gtest.h>

#include <string>

#include "engine/cluster/cluster_frames.h"
#include "tests/support/member_world.h"

namespace engine::cluster {
namespace {

using namespace std::chrono_literals;

struct MembershipTest : tests::MemberWorld {};

TEST_F(MembershipTest, ThreeEmptyNodesFormAClusterAndRegister) {
  for (size_t i = 0; i < 3; ++i) start(i);
  const io::Instant begun = world.now();
  await_leader();
  ASSERT_TRUE(eventually([&] { return is_ready(0) && is_ready(1) && is_ready(2); }, 5s));
  EXPECT_LE(world.now() - begun, 5s);
  EXPECT_EQ(configuration().voter_count(), 3u);
  ASSERT_TRUE(eventually([&] { return member(0) && member(1) && member(2); }, 2s));
  EXPECT_EQ(member(1)->addr, "n2:7942");
  EXPECT_EQ(member(1)->cluster_addr, "n2:7943");
  EXPECT_EQ(member(1)->entry_types, metastore::kNewestEntryType);
  EXPECT_FALSE(member(1)->build.empty());
}

TEST_F(MembershipTest, NodesThatStartOneAfterTheOtherFormOneCluster) {
  start(0);
  world.run_for(20s);
  EXPECT_FALSE(leader().has_value());
  start(1);
  await_leader();
  EXPECT_TRUE(eventually([&] { return is_ready(0) && is_ready(1); }, 10s));
  start(2);
  EXPECT_TRUE(eventually([&] { return is_ready(2); }, 10s));
  EXPECT_EQ(configuration().voter_count(), 3u);
  EXPECT_EQ(nodes[0].view->raft.status().cluster, nodes[2].view->raft.status().cluster);
}

TEST_F(MembershipTest, ANewNodeIsStagedThenPromotedAndReadyOnceItIsIn) {
  start_first();
  start(3);
  ASSERT_TRUE(eventually([&] { return is_server(3); }, 10s));
  EXPECT_FALSE(is_voter(3));
  ASSERT_TRUE(eventually([&] { return is_voter(3); }, 30s));
  EXPECT_TRUE(eventually([&] { return is_ready(3); }, 2s));
  EXPECT_EQ(count_lines(3, "node is not an initial member; will join the existing cluster instead of bootstrapping"), 1u);
  EXPECT_EQ(count_lines(3, "cluster join: admitted"), 1u);
  EXPECT_TRUE(eventually([&] { return count_lines(3, "cluster join: promoted to raft voter") == 1u; }, 1s));
}

TEST_F(MembershipTest, AHeartbeatComesAtOnceAndThenEveryFiveSeconds) {
  start_first();
  ASSERT_TRUE(eventually([&] { return member(0).has_value(); }, 2s));
  const int64_t first = member(0)->last_heartbeat;
  world.run_for(20s);
  EXPECT_GE(member(0)->last_heartbeat, first + 15);
  EXPECT_LE(member(0)->last_heartbeat, first + 26);
}

TEST_F(MembershipTest, FailingHeartbeatsAreWarnedOfAfterTenSecondsThenOnceAMinute) {
  start_first();
  ASSERT_TRUE(eventually([&] { return member(0) && member(1) && member(2); }, 10s));
  const size_t lonely = (await_leader() + 1) % 3;
  for (size_t i = 0; i < 3; ++i) {
    if (i != lonely) world.network().cut_both(*nodes[lonely].machine, *nodes[i].machine);
  }
  world.run_for(9s);
  EXPECT_EQ(count_lines(lonely, "warn member heartbeat failing"), 0u);
  world.run_for(16s);
  EXPECT_EQ(count_lines(lonely, "warn member heartbeat failing"), 1u);
  world.run_for(40s);
  EXPECT_EQ(count_lines(lonely, "warn member heartbeat failing"), 1u);
  world.run_for(25s);
  EXPECT_EQ(count_lines(lonely, "warn member heartbeat failing"), 2u);
  world.network().heal_all();
  EXPECT_TRUE(eventually([&] { return count_lines(lonely, "info member heartbeat recovered") == 1; }, 20s));
}

TEST_F(MembershipTest, ANodeThatIsNotCaughtUpInAMinuteSkipsItsStartupSweepAndIsReadyOnceItIs) {
  start_first();
  const size_t lonely = (await_leader() + 1) % 3;
  kill(lonely);
  for (size_t i = 0; i < 3; ++i) {
    if (i != lonely) world.network().cut_both(*nodes[lonely].machine, *nodes[i].machine);
  }
  start(lonely);
  world.run_for(55s);
  EXPECT_EQ(count_lines(lonely, "skipping startup orphan sweep"), 0u);
  world.run_for(10s);
  EXPECT_EQ(count_lines(lonely, "warn skipping startup orphan sweep: metastore not caught up within timeout; node stays not ready until it is"), 1u);
  EXPECT_FALSE(is_ready(lonely));
  world.network().heal_all();
  EXPECT_TRUE(eventually([&] { return is_ready(lonely); }, 20s));
}

// Scenario MB-13: its join is blocked for 90 s; it makes no configuration of its own and is not ready.
TEST_F(MembershipTest, ANodeThatOnlyJoinsServesNothingUntilALeaderAdmitsIt) {
  start_first();
  for (size_t i = 0; i < 3; ++i) world.network().cut_both(*nodes[3].machine, *nodes[i].machine);
  start(3);
  for (int i = 0; i < 9; ++i) {
    world.run_for(10s);
    ASSERT_TRUE(is_live(3));
    EXPECT_TRUE(nodes[3].view->raft.core().configuration().servers.empty());
    EXPECT_EQ(nodes[3].view->raft.core().term(), 0u);
    EXPECT_EQ(ask(3, "GET", "/readyz").status, 503);
    EXPECT_EQ(ask(3, "POST", "/v1/topics", R"({"name":"phantom"})").status, 503);
  }
  world.network().heal_all();
  EXPECT_TRUE(eventually([&] { return is_ready(3); }, 30s));
  EXPECT_EQ(nodes[3].view->raft.status().cluster, nodes[0].view->raft.status().cluster);
  EXPECT_EQ(ask(3, "GET", "/v1/topics/phantom").status, 404);
}

// Scenario MB-13, the variant of a full peer list without initial members: the probe finds the cluster.
TEST_F(MembershipTest, AnEmptyNodeThatMayBootstrapFindsTheClusterAndJoinsIt) {
  start_first();
  nodes[3].config.cluster.initial_members.clear();
  start(3);
  EXPECT_TRUE(eventually([&] { return is_ready(3); }, 30s));
  EXPECT_EQ(count_lines(3, "initial member has no raft state but a configured cluster answered; joining it instead of bootstrapping"), 1u);
  EXPECT_EQ(configuration().servers.size(), 4u);
}

// Scenario RS-05: two of three are replaced by empty machines, one after the other; the third cannot be reached while each of them begins,
// then comes back.
TEST_F(MembershipTest, AWipedInitialMemberJoinsTheClusterThatExistsAndVotesAgainOnceItIsPromoted) {
  start_first();
  EXPECT_EQ(ask(0, "POST", "/v1/topics", R"({"name":"kept"})").status, 201);
  world.run_for(13s);
  for (const size_t wiped : {size_t{0}, size_t{1}}) {
    SCOPED_TRACE(wiped);
    kill(wiped);
    nodes[wiped].machine->volume().wipe();
    for (const size_t other : {size_t{0}, size_t{1}}) world.network().cut_both(*nodes[2].machine, *nodes[other].machine);
    start(wiped);
    // The one that is left knows a cluster, and without the third nobody leads it: the empty machine waits and makes nothing of its own.
    ASSERT_TRUE(eventually([&] { return count_lines(wiped, "initial member has no raft state but a configured cluster answered") == 1; }, 30s));
    world.run_for(30s);
    ASSERT_TRUE(is_live(wiped));
    EXPECT_TRUE(nodes[wiped].view->raft.core().configuration().servers.empty());
    EXPECT_NE(ask(wiped, "GET", "/readyz").status, 200);
    EXPECT_FALSE(leader().has_value());
    world.network().heal_all();
    // Under its old id it is a new server: it is staged, and promoted when it asks again.
    ASSERT_TRUE(eventually([&] { return count_lines(wiped, "cluster join: promoted to raft voter") == 1; }, 60s));
    EXPECT_TRUE(is_voter(wiped));
    EXPECT_TRUE(eventually([&] { return is_ready(wiped); }, 5s));
    EXPECT_EQ(ask(wiped, "GET", "/v1/topics/kept").status, 200);
  }
  EXPECT_EQ(configuration().voter_count(), 3u);
}

// Scenario RS-05, both at once: nobody who could tell is reached, so the empty machines make a cluster. The third comes back, and is
// started again beside them.
TEST_F(MembershipTest, AServerOfAnotherClusterNeverTakesEntriesOfTheOneThatEmptyMachinesMade) {
  start_first();
  EXPECT_EQ(ask(0, "POST", "/v1/topics", R"({"name":"kept"})").status, 201);
  world.run_for(1s);
  const raft::ClusterId before = nodes[2].view->raft.status().cluster;
  for (const size_t wiped : {size_t{0}, size_t{1}}) {
    kill(wiped);
    nodes[wiped].machine->volume().wipe();
    world.network().cut_both(*nodes[wiped].machine, *nodes[2].machine);
  }
  start(0);
  start(1);
  ASSERT_TRUE(eventually([&] { return is_ready(0) && is_ready(1); }, 60s));
  EXPECT_NE(nodes[0].view->raft.status().cluster, before) << "or there is nothing to keep apart";
  const raft::Index last = nodes[2].view->raft.core().last_index();
  const size_t joinings = count_lines(2, "joining it instead of bootstrapping");
  for (int life = 0; life < 2; ++life) {
    SCOPED_TRACE(life);
    world.network().heal_all();
    world.run_for(30s);
    ASSERT_TRUE(is_live(2)) << nodes[2].reason;
    EXPECT_EQ(nodes[2].view->raft.status().cluster, before);
    EXPECT_EQ(nodes[2].view->raft.core().last_index(), last);
    EXPECT_EQ(ask(2, "GET", "/v1/topics/kept").status, 200);
    EXPECT_EQ(count_lines(2, "joining it instead of bootstrapping"), joinings) << "it has state of its own";
    kill(2);
    start(2);
  }
  EXPECT_TRUE(is_ready(0) && is_ready(1));
  EXPECT_EQ(ask(0, "GET", "/v1/topics/kept").status, 404) << "nor does anything go the other way";
}

TEST_F(MembershipTest, StateOfItsOwnKeepsANodeFromAsking) {
  start_first();
  kill(0);
  kill(1);
  kill(2);
  start(0);
  world.run_for(3s);
  ASSERT_TRUE(is_live(0));
  EXPECT_EQ(count_lines(0, "joining it instead of bootstrapping"), 0u);
}

// Scenario MB-15, step 2: a removed server asks again at its restart and stays out until an operator gives it an empty volume.
TEST_F(MembershipTest, ARemovedMemberIsRefusedWithItsOldVolumeAndReadmittedWithAnEmptyOne) {
  start_first();
  start(3);
  ASSERT_TRUE(eventually([&] { return is_voter(3); }, 60s));
  ASSERT_TRUE(eventually([&] { return member(3).has_value(); }, 10s));
  remove_from_raft("n4");
  commit(metastore::RemoveMember{"n4", 1});
  for (int life = 0; life < 2; ++life) {
    world.run_for(25s);
    EXPECT_FALSE(is_server(3));
    EXPECT_NE(ask(3, "GET", "/readyz").status, 200);
    EXPECT_EQ(count_lines(3, "cluster join refused: this node was decommissioned and removed"), static_cast<size_t>(life + 1));
    kill(3);
    start(3);
  }
  const JoinClusterRequest again{"n4", "n4:7943", false, metastore::kNewestEntryType};
  const CallResult refused = rpc(await_leader(), encode(again));
  EXPECT_EQ(refused.reply.status, 409);
  EXPECT_EQ(refused.reply.body,
            "{\"error\":\"node was decommissioned and removed from the cluster; delete its data directory (volume) to rejoin as a new "
            "node\"}\n");
  kill(3);
  nodes[3].machine->volume().wipe();
  start(3);
  EXPECT_TRUE(eventually([&] { return is_ready(3) && is_voter(3); }, 60s));
  ASSERT_TRUE(eventually([&] { return member(3).has_value(); }, 10s));
}

TEST_F(MembershipTest, ARemovedMembersHeartbeatIsRefusedAndSaidOnce) {
  start_first();
  ASSERT_TRUE(eventually([&] { return member(2).has_value(); }, 10s));
  const size_t leading = await_leader();
  const size_t removed = (leading + 1) % 3;
  commit(metastore::RemoveMember{nodes[removed].config.cluster.node_id, 1});
  world.run_for(30s);
  EXPECT_EQ(count_lines(removed, "error member heartbeat refused"), 1u);
  EXPECT_FALSE(member(removed).has_value());
}

TEST_F(MembershipTest, AVoterThatMovedTellsTheLeaderWhereItIs) {
  start_first();
  const size_t moved = (await_leader() + 1) % 3;
  kill(moved);
  const std::string id = nodes[moved].config.cluster.node_id;
  nodes[moved].config.cluster.addr = id + ":7999";
  nodes[moved].config.cluster.advertise_addr = id + ":7999";
  start(moved);
  ASSERT_TRUE(eventually([&] { return configuration().find(id)->address == id + ":7999"; }, 60s));
  EXPECT_TRUE(is_voter(moved));
  EXPECT_TRUE(eventually([&] { return is_ready(moved); }, 10s));
}

// Scenario UG-05, step 2, and the probe, the loop and the promotion of a new node at old leaders.
TEST_F(MembershipTest, ANewNodeJoinsAndBeatsAtLeadersThatRefuseItsNewFields) {
  for (size_t i = 0; i < 3; ++i) {
    nodes[i].config.tuning.release = {"3.0.1", metastore::kEveryReleaseEntryType, true, false, {false, false, false, false, 32}};
  }
  start_first();
  start(3);
  ASSERT_TRUE(eventually([&] { return is_voter(3); }, 60s));
  ASSERT_TRUE(eventually([&] { return member(3).has_value(); }, 2s));
  EXPECT_EQ(member(3)->build, "") << "the old leader has not been told";
  EXPECT_EQ(count_lines(3, "member heartbeat failing"), 0u);
  EXPECT_EQ(member(0)->entry_types, 0u);
}

// Scenario UG-06.
TEST_F(MembershipTest, AnOlderJoinerIsRefusedKeepsAskingAndNeverBootstraps) {
  start_first();
  nodes[3].config.cluster.initial_members.clear();  // it may bootstrap
  nodes[3].config.tuning.release = {"3.0.1", metastore::kEveryReleaseEntryType, true, false, {false, false, false, false, 32}};
  start(3);
  world.run_for(60s);
  ASSERT_TRUE(is_live(3));
  EXPECT_FALSE(is_server(3));
  EXPECT_TRUE(nodes[3].view->raft.core().configuration().servers.empty());
  EXPECT_EQ(count_lines(3, "cluster join refused: this node runs an older release than every member"), 1u);
  const size_t lines_of_leader = count_lines(await_leader(), "cluster join refused: the joiner runs an older release than the cluster");
  EXPECT_GE(lines_of_leader, 1u);
  EXPECT_LE(lines_of_leader, 2u);
  EXPECT_NE(ask(3, "GET", "/readyz").status, 200);
}

// The joiner is not reached at the address that it gives.
TEST_F(MembershipTest, AnUnreachableJoinerStaysANonVoter) {
  start_first();
  world.run_for(15s);
  const JoinClusterRequest join{"n9", "n4:7943", true, metastore::kNewestEntryType};  // nobody listens there
  EXPECT_EQ(rpc(await_leader(), encode(join)).reply.body, "{\"status\":\"staged\",\"reason\":\"\"}\n");
  const CallResult again = rpc(await_leader(), encode(join));
  EXPECT_EQ(again.reply.body, "{\"status\":\"deferred\",\"reason\":\"the leader's raft heartbeats to it are failing\"}\n");
  EXPECT_EQ(configuration().voter_count(), 3u);
}

TEST_F(MembershipTest, AVoterIsForgottenOnlyWhereTheOthersAreEnough) {
  start_first();
  ASSERT_TRUE(eventually([&] { return member(0) && member(1) && member(2); }, 10s));
  world.run_for(13s);
  const size_t leading = await_leader();
  const std::string id = nodes[(leading + 1) % 3].config.cluster.node_id;
  commit(metastore::RemoveMember{id, 1});  // it votes, and has no record
  kill((leading + 2) % 3);
  world.run_for(2s);
  const NodeReply refused = rpc(leading, encode(ForgetServerRequest{id})).reply;
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(refused.body,
            "{\"error\":\"server " + id + " is not forgotten: the voters that can be reached may be too few without it\"}\n");
  start((leading + 2) % 3);
  ASSERT_TRUE(eventually([&] { return is_live((leading + 2) % 3) && is_ready((leading + 2) % 3); }, 20s));
  EXPECT_EQ(rpc(leading, encode(ForgetServerRequest{id})).reply.body, "{\"id\":\"" + id + "\",\"voter\":true}\n");
  EXPECT_EQ(configuration().voter_count(), 2u);
}

TEST_F(MembershipTest, AServerThatNeverRegisteredIsForgottenOnDemand) {
  start_first();
  ASSERT_TRUE(eventually([&] { return member(0) && member(1) && member(2); }, 10s));
  rpc(await_leader(), encode(JoinClusterRequest{"n9", "n4:7943", true, metastore::kNewestEntryType}));
  const auto forget = [&](const std::string& id) {
    const NodeReply reply = rpc(await_leader(), encode(ForgetServerRequest{id})).reply;
    return std::to_string(reply.status) + " " + reply.body;
  };
  const size_t leading = await_leader();
  EXPECT_EQ(forget("n9"), "200 {\"id\":\"n9\",\"voter\":false}\n");
  EXPECT_EQ(configuration().find("n9"), nullptr);
  EXPECT_TRUE(forget("n9").starts_with("404 "));
  EXPECT_TRUE(forget("").starts_with("400 "));
  EXPECT_TRUE(forget(nodes[leading].config.cluster.node_id).starts_with("400 "));
  EXPECT_TRUE(forget(nodes[(leading + 1) % 3].config.cluster.node_id).starts_with("409 "));
  EXPECT_TRUE(rpc((leading + 1) % 3, encode(ForgetServerRequest{"n9"})).reply.status == 421);
}

}  // namespace
}  // namespace engine::cluster
