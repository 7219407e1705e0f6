// Whole nodes in the simulated world: what they answer each other and their clients when the leader is elsewhere, silent or
// gone, and what they refuse to start on. Histories under random faults are narad-chaos's business.

#include "engine/node.h"

#include <gtest/gtest.h>

#include <optional>

#include "engine/cluster/node_client.h"
#include "engine/metastore/fsm.h"
#include "engine/topics/json.h"
#include "io/sim/switches.h"
#include "raft/server.h"
#include "tests/support/node_world.h"

namespace engine {
namespace {

using namespace std::chrono_literals;
using cluster::CallResult;

using NodeTest = tests::NodeWorld;

struct OneNodeTest : NodeTest {
  OneNodeTest() : NodeTest(1) {}
};

TEST_F(NodeTest, AWriteThroughAFollowerIsReadThereAtOnce) {
  start_all();
  const size_t leader = await_leader();
  world.run_for(1s);
  const size_t follower = (leader + 1) % 3;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "t" + std::to_string(i);
    EXPECT_EQ(ask(follower, "POST", "/v1/topics", R"({"name":")" + name + "\"}").status, 201);
    EXPECT_EQ(ask(follower, "GET", "/v1/topics/" + name).status, 200);
  }
}

TEST_F(NodeTest, AForwardedWriteWhoseAnswerIsLostIsUnknownAndNotSentTwice) {
  start_all();
  const size_t leader = await_leader();
  world.run_for(1s);
  const size_t follower = (leader + 1) % 3;
  EXPECT_EQ(ask(follower, "POST", "/v1/topics", R"({"name":"first"})").status, 201);
  // The request gets through and nothing comes back: the leader commits with the third node.
  world.network().cut(*nodes[leader].machine, *nodes[follower].machine);
  const api::HttpResponse answer = ask(follower, "POST", "/v1/topics", R"({"name":"unheard"})");
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("the change may still be applied, read it back before retrying"), std::string::npos) << answer.body;
  world.network().heal_all();
  world.run_for(5s);
  EXPECT_EQ(ask(follower, "GET", "/v1/topics/unheard").status, 200);
}

TEST_F(NodeTest, WithoutAQuorumHitsAreServedMissesAndWritesAre503) {
  start_all();
  await_leader();
  world.run_for(1s);
  EXPECT_EQ(ask(0, "POST", "/v1/topics", R"({"name":"kept"})").status, 201);
  world.run_for(1s);
  nodes[1].machine->power_loss();
  nodes[2].machine->power_loss();
  world.run_for(8s);
  EXPECT_EQ(ask(0, "GET", "/v1/topics/kept").status, 200);
  EXPECT_EQ(ask(0, "GET", "/v1/topics/other").status, 503);
  EXPECT_EQ(ask(0, "POST", "/v1/topics", R"({"name":"other"})").status, 503);
  EXPECT_EQ(ask(0, "GET", "/healthz").status, 200);
  const api::HttpResponse ready = ask(0, "GET", "/readyz");
  EXPECT_EQ(ready.status, 503);
  EXPECT_TRUE(ready.body.starts_with("{\"error\":\"metastore: node is not ready: ")) << ready.body;
  start(1);
  world.run_for(5s);
  EXPECT_EQ(ask(0, "GET", "/readyz").status, 200);
  EXPECT_EQ(ask(0, "GET", "/v1/topics/other").status, 404);
}

TEST_F(NodeTest, ANodeThatNeverHeardALeaderSaysSo) {
  start(0);
  world.run_for(5s);
  EXPECT_EQ(ask(0, "GET", "/readyz").body, "{\"error\":\"not ready\"}\n") << "its startup is not finished";
  EXPECT_EQ(ask(0, "POST", "/v1/topics", R"({"name":"a"})").status, 503);
}

// Scenario EL-08: an empty volume, and nobody to be reached for twenty election timeouts.
TEST_F(NodeTest, ANodeThatReachesNobodyNeverLeadsAndServesNothing) {
  // One that only joins, and one that may bootstrap with others.
  for (const std::string members : {"n2,n3", "n1,n2,n3"}) {
    SCOPED_TRACE(members);
    nodes[0].config.cluster.initial_members = members;
    start(0);
    world.run_for(10s);  // it asks its peers first whether there is a cluster
    for (int i = 0; i < 20; ++i) {
      world.run_for(nodes[0].config.cluster.raft_election_timeout_max);
      ASSERT_TRUE(nodes[0].view.has_value()) << nodes[0].reason;
      const raft::Core& core = nodes[0].view->raft.core();
      EXPECT_EQ(core.term(), 0u) << "it asked nobody to vote in a term";
      EXPECT_NE(core.role(), raft::Role::leader);
      EXPECT_EQ(ask(0, "GET", "/readyz").status, 503);
    }
    EXPECT_EQ(ask(0, "GET", "/v1/topics/a").status, 503);
    EXPECT_EQ(ask(0, "POST", "/v1/topics", R"({"name":"a"})").status, 503);
    EXPECT_EQ(ask(0, "GET", "/healthz").status, 200);
    nodes[0].machine->kill();
    world.run_for(10ms);
    nodes[0].machine->volume().wipe();
  }
}

// Found by the simulator (seed 129): the only voter had lost raft's state, a node that it had admitted said that a cluster exists, and it set
// the one copy of everything aside to join it.
TEST_F(NodeTest, ANodeThatHasLostRaftsStateAloneRefusesToStartAlsoBesideItsCluster) {
  io::sim::Switchboard board;
  const io::sim::SwitchboardGuard guard(&board);
  start_all();
  await_leader();
  world.run_for(1s);
  EXPECT_EQ(ask(0, "POST", "/v1/topics", R"({"name":"kept"})").status, 201);
  world.run_for(1s);
  nodes[0].machine->kill();
  world.run_for(10ms);
  io::sim::FileTree& tree = nodes[0].machine->volume().tree();
  const io::sim::FileTree::Image state = tree.copy("raft");
  tree.erase("raft");
  start(0);
  world.run_for(10s);
  ASSERT_TRUE(nodes[0].exit_code.has_value());
  EXPECT_NE(*nodes[0].exit_code, 0);
  EXPECT_TRUE(nodes[0].reason.starts_with("metastore: ")) << nodes[0].reason;
  EXPECT_GT(board.probes["cluster: a node that has lost raft's state alone does not ask for a cluster"], 0u);
  // Nothing has been touched: with raft's state back it goes on.
  tree.erase("raft");
  tree.put("raft", state);
  start(0);
  world.run_for(10s);
  EXPECT_EQ(ask(0, "GET", "/v1/topics/kept").status, 200);
  EXPECT_EQ(ask(0, "GET", "/readyz").status, 200);
}

TEST_F(NodeTest, OnlyTheLeaderVouchesForATopicAndForItsAppliedIndex) {
  start_all();
  const size_t leader = await_leader();
  world.run_for(1s);
  const size_t follower = (leader + 1) % 3;
  EXPECT_EQ(ask(leader, "POST", "/v1/topics", R"({"name":"a"})").status, 201);
  EXPECT_EQ(rpc(leader, cluster::encode(cluster::GetTopicRequest{"a"})).reply.status, 200);
  const CallResult missing = rpc(leader, cluster::encode(cluster::GetTopicRequest{"b"}));
  EXPECT_EQ(missing.reply.status, 404);
  EXPECT_EQ(missing.reply.body, "{\"error\":\"topic not found\"}\n");
  const CallResult elsewhere = rpc(follower, cluster::encode(cluster::GetTopicRequest{"a"}));
  EXPECT_EQ(elsewhere.reply.status, 421);
  const std::string id = nodes[leader].config.cluster.node_id;
  EXPECT_EQ(elsewhere.reply.body, "{\"error\":\"not the metastore leader\",\"leader_id\":\"" + id + "\",\"leader_addr\":\"" + id +
                                      ":7943\"}\n");
  EXPECT_EQ(rpc(leader, cluster::encode_applied_index_request()).reply.status, 200);
  const CallResult index = rpc(follower, cluster::encode_applied_index_request());
  EXPECT_EQ(index.reply.status, 503);
  EXPECT_EQ(index.reply.body, "{\"error\":\"node is not the leader\"}\n");
}

TEST_F(NodeTest, EachNodeTellsOfItsRaftAndTheLeaderOfTheOthers) {
  start_all();
  const size_t leader = await_leader();
  const size_t follower = (leader + 1) % 3;
  world.run_for(2s);
  const auto status = [&](size_t i) {
    const api::HttpResponse answer = ask(i, "GET", "/v1/cluster/raft");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.content_type, "application/json");
    const auto parsed = json::parse(answer.body);
    EXPECT_TRUE(parsed.ok()) << answer.body;
    return parsed.ok() ? *parsed : json::Value();
  };
  const auto integer = [](const json::Value& value, const char* name) {
    const json::Value* found = value.find(name);
    EXPECT_TRUE(found != nullptr && found->is(json::Value::Kind::integer)) << name;
    return found == nullptr ? -1 : found->integer;
  };
  const json::Value led = status(leader);
  const json::Value followed = status(follower);
  const std::string leader_id = nodes[leader].config.cluster.node_id;
  EXPECT_EQ(led.find("role")->text, "leader");
  EXPECT_EQ(followed.find("role")->text, "follower");
  for (const json::Value* each : {&led, &followed}) {
    EXPECT_EQ(each->find("leader")->find("id")->text, leader_id);
    EXPECT_EQ(integer(*each, "term"), static_cast<int64_t>(nodes[leader].view->raft.core().term()));
    EXPECT_EQ(integer(*each, "commit_index"), static_cast<int64_t>(nodes[leader].view->raft.core().commit_index()));
    EXPECT_EQ(integer(*each, "voters"), 3);
    EXPECT_TRUE(each->find("snapshot")->is(json::Value::Kind::null));
    EXPECT_EQ(each->find("peers")->array.size(), 2u);
    EXPECT_GE(integer(*each, "leader_contact_ms"), 0);
    EXPECT_EQ(each->find("counters")->object.size(), 26u);
  }
  for (const json::Value& peer : led.find("peers")->array) {
    EXPECT_EQ(integer(peer, "match_index"), integer(led, "last_index"));
    EXPECT_EQ(peer.find("state")->text, "replicate");
    EXPECT_LT(integer(peer, "last_contact_ms"), 1000);
    EXPECT_TRUE(peer.find("connected")->boolean);
  }
  EXPECT_EQ(followed.find("peers")->array[0].find("match_index"), nullptr) << "a follower does not know";
  EXPECT_EQ(integer(*led.find("counters"), "elections"), 1);
  EXPECT_EQ(integer(*followed.find("counters"), "elections"), 0);
}

TEST_F(NodeTest, LeadershipIsHandedOverOnCommandAndOnlyByTheLeader) {
  start_all();
  const size_t leader = await_leader();
  const size_t follower = (leader + 1) % 3;
  world.run_for(2s);
  const std::string target = nodes[follower].config.cluster.node_id;
  const struct {
    size_t node;
    const char* body;
    int status;
    std::string text;
  } kRefused[] = {
      {leader, "[1]", 400, "it must be a JSON object, not an array"},
      {leader, R"({"two":"n1"})", 400, "unknown field \\\"two\\\""},
      {leader, R"({"to":7})", 400, "to must be the id of a voter"},
      {leader, R"({"to":"n9"})", 409, raft::to_string(raft::Refusal::not_a_voter)},
      {follower, "", 409, "this node does not lead; ask " + nodes[leader].config.cluster.node_id + " ("},
  };
  for (const auto& each : kRefused) {
    const api::HttpResponse answer = ask(each.node, "POST", "/v1/cluster/raft/transfer", each.body);
    EXPECT_EQ(answer.status, each.status) << each.body;
    EXPECT_NE(answer.body.find(each.text), std::string::npos) << answer.body;
    EXPECT_EQ(this->leader(), leader);
  }
  const api::HttpResponse moved = ask(leader, "POST", "/v1/cluster/raft/transfer", R"({"to":")" + target + "\"}");
  EXPECT_EQ(moved.status, 200) << moved.body;
  EXPECT_NE(moved.body.find("\"leader\":\"" + target + "\""), std::string::npos) << moved.body;
  world.run_for(1s);
  EXPECT_EQ(this->leader(), follower);
  const api::HttpResponse again = ask(follower, "POST", "/v1/cluster/raft/transfer");
  EXPECT_EQ(again.status, 200) << "to whoever is caught up: " << again.body;
  world.run_for(1s);
  ASSERT_TRUE(this->leader().has_value());
  EXPECT_NE(this->leader(), follower);
}

TEST_F(NodeTest, RequestsOfTheNodeProtocolAreJudgedAsWritten) {
  start_all();
  const size_t leader = await_leader();
  world.run_for(1s);
  const CallResult unknown = rpc(leader, "\x63");
  EXPECT_EQ(unknown.reply.status, 400);
  EXPECT_EQ(unknown.reply.body, "{\"error\":\"unsupported rpc operation 99\"}\n");
  const CallResult trailing = rpc(leader, cluster::encode(cluster::GetTopicRequest{"a"}) + "x");
  EXPECT_EQ(trailing.reply.status, 400);
  EXPECT_EQ(trailing.reply.body, "{\"error\":\"invalid get topic request: trailing node rpc payload data\"}\n");
  const CallResult created = rpc(leader, cluster::encode(cluster::CreateTopicRequest{"a", R"({"name":"a"})", std::nullopt}));
  EXPECT_EQ(created.reply.status, 201);
  EXPECT_EQ(rpc(leader, cluster::encode(cluster::CreateTopicRequest{"a", R"({"name":"a"})", std::nullopt})).reply.status, 409);
  EXPECT_EQ(rpc(leader, cluster::encode(cluster::AlterTopicRequest{"a", R"({"partitions":5})", std::nullopt})).reply.status, 200);
  EXPECT_EQ(rpc(leader, cluster::encode(cluster::DeleteTopicRequest{"a", "0123456789abcdef", std::nullopt})).reply.status, 409);
  EXPECT_EQ(rpc(leader, cluster::encode(cluster::DeleteTopicRequest{"a", std::nullopt, std::nullopt})).reply.status, 204);
}

TEST_F(OneNodeTest, ASingleNodeLeadsItselfAndKeepsItsTopicsOverStopAndPowerLoss) {
  start(0);
  await_leader();
  EXPECT_EQ(ask(0, "POST", "/v1/topics", R"({"name":"a"})").status, 201);
  nodes[0].stop->set();
  world.run_while([&] { return !nodes[0].exit_code.has_value(); }, world.now() + 30s);
  EXPECT_EQ(nodes[0].exit_code, 0);
  world.run_for(1s);
  start(0);
  await_leader();
  EXPECT_EQ(ask(0, "GET", "/v1/topics/a").status, 200);
  EXPECT_EQ(ask(0, "POST", "/v1/topics", R"({"name":"b"})").status, 201);
  nodes[0].machine->power_loss();
  nodes[0].view.reset();
  world.run_for(1s);
  start(0);
  await_leader();
  EXPECT_EQ(ask(0, "GET", "/v1/topics/a").status, 200);
  EXPECT_EQ(ask(0, "GET", "/v1/topics/b").status, 200);
}

TEST_F(OneNodeTest, ADataDirectoryOfANewerFormatIsRefusedAndUntouched) {
  const struct {
    const char* text;
    const char* reason;
  } kCases[] = {
      {"narad data directory, layout 9\n",
       "the data directory has format 9, written by a newer Narad release than this build (0.1.0, which knows formats up to 1); "
       "run that release or newer"},
      {"narad data directory, layout x\n", "the file FORMAT of the data directory does not name a layout; refusing to start"},
      {"nonsense", "the file FORMAT of the data directory does not name a layout; refusing to start"},
  };
  for (const auto& each : kCases) {
    SCOPED_TRACE(each.text);
    nodes[0].machine->start([&each](io::Env& env) {
      auto file = env.disk.open("FORMAT", io::OpenMode::create);
      EXPECT_TRUE(file.ok());
      EXPECT_TRUE((*file)->truncate(0).ok());
      EXPECT_TRUE((*file)->write_and_sync(0, each.text).ok());
      return 0;
    });
    world.run_for(1s);
    const auto before = nodes[0].machine->volume().copy("");
    start(0);
    world.run_for(1s);
    EXPECT_EQ(nodes[0].exit_code, 1);
    EXPECT_EQ(nodes[0].reason, each.reason);
    const auto after = nodes[0].machine->volume().copy("");
    // The lock's own file is made before anything is read.
    EXPECT_EQ(after.files.size() - after.files.count("LOCK"), before.files.size() - before.files.count("LOCK"));
    EXPECT_TRUE(after.files.at("FORMAT") == before.files.at("FORMAT"));
  }
}

TEST_F(OneNodeTest, EmptyDirectoriesForVolumesAreNoDataAndWhatLiesInThemWithoutAFormatIsRefused) {
  const auto prepare = [this](bool with_file) {
    nodes[0].machine->start([with_file](io::Env& env) {
      EXPECT_TRUE(env.disk.make_directory("raft").ok());
      EXPECT_TRUE(env.disk.make_directory("fsm.db").ok());
      if (with_file) {
        EXPECT_TRUE(env.disk.open("fsm.db/ACTIVE", io::OpenMode::create_new).ok());
      } else {
        EXPECT_TRUE(env.disk.remove("fsm.db/ACTIVE").ok());
      }
      return 0;
    });
    world.run_for(1s);
  };
  prepare(true);
  start(0);
  world.run_for(1s);
  EXPECT_EQ(nodes[0].exit_code, 1);
  EXPECT_EQ(nodes[0].reason, "the data directory holds fsm.db but no file FORMAT, so its layout is unknown; refusing to start");
  prepare(false);
  start(0);
  await_leader();
  EXPECT_EQ(ask(0, "POST", "/v1/topics", R"({"name":"a"})").status, 201);
}

TEST_F(OneNodeTest, AMetastoreWithoutRaftStateIsRefusedAndUntouched) {
  start(0);
  await_leader();
  EXPECT_EQ(ask(0, "POST", "/v1/topics", R"({"name":"a"})").status, 201);
  nodes[0].stop->set();
  world.run_while([&] { return !nodes[0].exit_code.has_value(); }, world.now() + 30s);
  world.run_for(1s);
  nodes[0].machine->start([](io::Env& env) {
    EXPECT_TRUE(env.disk.rename("raft", "aside").ok());
    return 0;
  });
  world.run_for(1s);
  const uint64_t mutations = nodes[0].machine->volume().mutations();
  start(0);
  world.run_for(2s);
  EXPECT_EQ(nodes[0].exit_code, 1);
  EXPECT_NE(nodes[0].reason.find("there is no raft state beside it"), std::string::npos) << nodes[0].reason;
  EXPECT_EQ(nodes[0].machine->volume().mutations(), mutations);
}

// Scenario PT-08: the log was put back to an older copy, and the record of term and vote is no newer than that. What the
// metastore has applied gives it away.
TEST_F(NodeTest, ANodeWhoseLogIsOlderThanItsMetastoreNeitherVotesNorLeads) {
  start_all();
  const size_t a = await_leader();
  const size_t b = (a + 1) % 3;
  const size_t c = (a + 2) % 3;
  const auto create = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      EXPECT_EQ(ask(a, "POST", "/v1/topics", R"({"name":"t)" + std::to_string(i) + "\"}").status, 201);
    }
  };
  const auto has_applied_all = [&](size_t i) {
    return nodes[i].view->raft.core().applied_index() == nodes[a].view->raft.core().last_index();
  };
  create(0, 6);
  EXPECT_TRUE(world.run_while([&] { return !has_applied_all(b) || !has_applied_all(c); }, world.now() + 10s));
  io::sim::Volume& volume = nodes[b].machine->volume();
  const auto older = volume.copy("raft/log");
  for (const size_t i : {a, b}) world.network().cut_both(*nodes[i].machine, *nodes[c].machine);
  create(6, 10);
  EXPECT_TRUE(world.run_while([&] { return !has_applied_all(b); }, world.now() + 10s));
  for (const size_t i : {a, b}) {
    nodes[i].machine->kill();
    nodes[i].view.reset();
  }
  world.network().heal_all();
  volume.restore("raft/log", older);
  const auto before = volume.copy("");
  for (int life = 0; life < 2; ++life) {
    start(b);
    world.run_for(5s);
    ASSERT_EQ(nodes[b].exit_code, 1);
    EXPECT_NE(nodes[b].reason.find("raft state is older than fsm.db"), std::string::npos) << nodes[b].reason;
    EXPECT_TRUE(volume.copy("").files == before.files) << "a refused start changed the disk";
  }
  EXPECT_FALSE(leader().has_value()) << "C and a log that lost its end are no quorum";
  start(a);
  const size_t successor = await_leader();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(ask(successor, "GET", "/v1/topics/t" + std::to_string(i)).status, 200);
}

TEST_F(OneNodeTest, DamageInTheRaftLogIsRefusedByFileAndOffsetAndNothingOnTheDiskChanges) {
  start(0);
  await_leader();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(ask(0, "POST", "/v1/topics", R"({"name":"t)" + std::to_string(i) + "\"}").status, 201);
  }
  nodes[0].machine->kill();
  nodes[0].view.reset();
  world.run_for(1s);
  io::sim::Volume& volume = nodes[0].machine->volume();
  const std::string segment = "raft/log/00000000000000000001.log";
  ASSERT_TRUE(volume.flip_bit(segment, 600, 4));
  const auto before = volume.copy("");
  start(0);
  world.run_for(2s);
  EXPECT_EQ(nodes[0].exit_code, 1);
  EXPECT_NE(nodes[0].reason.find(segment + ": damaged at offset "), std::string::npos) << nodes[0].reason;
  const auto after = volume.copy("");
  EXPECT_EQ(after.directories, before.directories);
  EXPECT_TRUE(after.files == before.files) << "a refused start changed the disk";
}

}  // namespace
}  // namespace engine
