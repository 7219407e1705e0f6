// Writes whose answer, leader or second half is lost: what clients are told, and what is left behind.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/cluster/forward.h"
#include "engine/cluster/link_frames.h"
#include "engine/topics/json.h"
#include "engine/topics/reply.h"
#include "tests/support/registered_world.h"

namespace engine {
namespace {

using namespace std::chrono_literals;
using api::HttpResponse;
using cluster::CallResult;

struct WriteScenario : tests::RegisteredWorld {
  size_t await_other_leader(size_t than) {
    EXPECT_TRUE(world.run_while([&] { return !leader().has_value() || *leader() == than; }, world.now() + 30s));
    world.run_for(1s);
    return leader().value_or(0);
  }
  void kill(size_t i) {
    nodes[i].machine->kill();
    nodes[i].view.reset();
  }
  static bool is_unknown(const HttpResponse& answer) {
    return answer.status == 503 && answer.body.find(kOutcomeUnknownText) != std::string::npos;
  }
  json::Value shown(size_t node, const std::string& target) {
    const HttpResponse answer = ask(node, "GET", target);
    EXPECT_EQ(answer.status, 200) << target << ": " << answer.body;
    const auto parsed = json::parse(answer.body);
    return parsed.ok() ? *parsed : json::Value();
  }
  static std::string text_of(const json::Value& value, const char* name) {
    return value.find(name) == nullptr ? "" : value.find(name)->text;
  }
  static int64_t version_of(const json::Value& schemas) {
    return schemas.find("version") == nullptr ? -1 : schemas.find("version")->integer;
  }
};

// Scenario CL-01.
TEST_F(WriteScenario, ACommittedCreateWhoseAnswerIsLostIsNotMadeTwiceAndTheRetryTellsSo) {
  const size_t leader = lead();
  const size_t follower = (leader + 1) % 3;
  EXPECT_EQ(ask(follower, "POST", "/v1/topics", R"({"name":"first"})").status, 201) << "the connection stands";
  world.network().cut(*nodes[leader].machine, *nodes[follower].machine);
  ASSERT_TRUE(is_unknown(ask(follower, "POST", "/v1/topics", R"({"name":"a"})")));
  const std::string id = text_of(shown((leader + 2) % 3, "/v1/topics/a"), "id");
  kill(leader);
  world.network().heal_all();
  await_other_leader(leader);
  const HttpResponse retry = ask(follower, "POST", "/v1/topics", R"({"name":"a"})");
  EXPECT_EQ(retry.status, 409);
  EXPECT_EQ(retry.body, "{\"error\":\"topic already exists: a\"}\n");
  EXPECT_EQ(text_of(shown(follower, "/v1/topics/a"), "id"), id) << "the one that was made first";
}

// Scenario CL-01.
TEST_F(WriteScenario, ACommittedSchemaWhoseAnswerIsLostBelongsToItsIncarnationAlone) {
  const size_t leader = lead();
  const size_t follower = (leader + 1) % 3;
  const size_t third = (leader + 2) % 3;
  EXPECT_EQ(ask(follower, "POST", "/v1/topics", R"({"name":"a"})").status, 201);
  world.network().cut(*nodes[leader].machine, *nodes[follower].machine);
  const std::string patch = R"({"schema":{"type":"object"},"schema_base_version":0})";
  EXPECT_TRUE(is_unknown(ask(follower, "PATCH", "/v1/topics/a", patch)));
  world.network().heal_all();
  world.run_for(3s);
  // It is there: the retry is told so by its base version, and without one it finds its own schema.
  EXPECT_EQ(ask(third, "PATCH", "/v1/topics/a", patch).status, 409);
  EXPECT_EQ(ask(third, "PATCH", "/v1/topics/a", R"({"schema":{"type":"object"}})").status, 200);
  EXPECT_EQ(version_of(shown(third, "/v1/topics/a/schema")), 1);
  // Another client makes the topic anew: nothing of the old one's schema is left, and the version that a retry was based on is gone.
  EXPECT_EQ(ask(third, "DELETE", "/v1/topics/a").status, 204);
  EXPECT_EQ(ask(third, "POST", "/v1/topics", R"({"name":"a"})").status, 201);
  kill(leader);
  const size_t successor = await_other_leader(leader);
  EXPECT_EQ(version_of(shown(successor, "/v1/topics/a/schema")), 0);
  EXPECT_EQ(ask(successor, "PATCH", "/v1/topics/a", R"({"schema":{},"schema_base_version":1})").status, 409);
}

// Scenario CL-02.
TEST_F(WriteScenario, AWriteForwardedToALeaderThatJustDiedEndsInTime) {
  const size_t leader = lead();
  const size_t follower = (leader + 1) % 3;
  EXPECT_EQ(ask(follower, "POST", "/v1/topics", R"({"name":"first"})").status, 201);
  // The power goes: the connection stays open, and nobody answers on it.
  nodes[leader].machine->power_loss();
  nodes[leader].view.reset();
  const io::Instant asked = world.now();
  const HttpResponse answer = ask(follower, "POST", "/v1/topics", R"({"name":"second"})");
  EXPECT_LE(world.now() - asked, cluster::kForwardTimeout + 1s);
  EXPECT_EQ(answer.status, 503) << answer.body;
  await_other_leader(leader);
  EXPECT_EQ(ask(follower, "POST", "/v1/topics", R"({"name":"second"})").status, 201) << "it never reached the dead one's log";
}

// Scenario CL-04.
TEST_F(WriteScenario, AWriteThatALostLeadershipLeavesBehindIsUnknownAndMayBeCommittedByTheNextLeader) {
  const size_t leader = lead();
  const size_t heir = (leader + 1) % 3;
  const size_t other = (leader + 2) % 3;
  EXPECT_EQ(ask(leader, "POST", "/v1/topics", R"({"name":"first"})").status, 201) << "it has passed the barrier of its term";
  world.run_for(1s);
  world.network().cut_both(*nodes[leader].machine, *nodes[other].machine);
  world.network().cut_both(*nodes[heir].machine, *nodes[other].machine);
  // The heir gets the entry; its acknowledgement never arrives.
  world.network().cut(*nodes[heir].machine, *nodes[leader].machine);
  const HttpResponse answer = ask(leader, "POST", "/v1/topics", R"({"name":"a"})");
  EXPECT_TRUE(is_unknown(answer)) << answer.status << " " << answer.body;
  ASSERT_EQ(nodes[heir].view->raft.core().last_index(), nodes[leader].view->raft.core().last_index());
  nodes[leader].machine->kill();
  nodes[leader].view.reset();
  world.network().heal_all();
  await_other_leader(leader);  // only the heir can win first: the other one's log is behind
  EXPECT_EQ(ask(other, "GET", "/v1/topics/a").status, 200) << "unknown was not failed";
}

// Scenario CL-06.
TEST_F(WriteScenario, RefusalsOfTheLeaderPassThroughAFollowerUnchanged) {
  const size_t leader = lead();
  const size_t follower = (leader + 1) % 3;
  for (const char* body : {R"({"name":"p","schema":{"type":"object","minProperties":2}})", R"({"name":"c","parent":"p"})", R"({"name":"free"})"}) {
    ASSERT_EQ(ask(leader, "POST", "/v1/topics", body).status, 201);
  }
  std::string versions;
  for (int i = 0; i < 16; ++i) {
    versions += (i > 0 ? "," : "") + std::to_string(i);
    const std::string schema = "{\"schema\":{\"enum\":[" + versions + "],\"title\":\"" + std::string(255 << 10, 't') + "\"}}";
    ASSERT_EQ(ask(leader, "PATCH", "/v1/topics/free", schema).status, 200) << i;
  }
  world.run_for(1s);
  const struct {
    const char* method;
    std::string target, body;
    int status;
  } kRefused[] = {
      {"POST", "/v1/topics", R"({"name":"p"})", 409},
      {"POST", "/v1/topics", R"({"name":"x","parent":"nowhere"})", 404},
      {"POST", "/v1/topics", R"({"name":"x","parent":"c"})", 409},
      {"PATCH", "/v1/topics/p", R"({"partitions":3})", 400},
      {"PATCH", "/v1/topics/p", R"({"schema":{"type":"object","minProperties":3}})", 400},
      {"PATCH", "/v1/topics/p", R"({"schema":{},"schema_base_version":5})", 409},
      {"PATCH", "/v1/topics/c", R"({"schema":{}})", 409},
      {"PATCH", "/v1/topics/free", "{\"schema\":{\"title\":\"" + std::string(255 << 10, 't') + "\"}}", 409},
      {"PATCH", "/v1/topics/nowhere", R"({"retention_ms":0})", 404},
      {"DELETE", "/v1/topics/nowhere", "", 404},
      {"POST", "/v1/topics/p/children", R"({"child":"c"})", 409},
      {"POST", "/v1/topics/p/children", R"({"child":"free"})", 409},
      {"DELETE", "/v1/topics/p/children/free", "", 404},
  };
  for (const auto& each : kRefused) {
    const HttpResponse here = ask(leader, each.method, each.target, each.body);
    const HttpResponse forwarded = ask(follower, each.method, each.target, each.body);
    EXPECT_EQ(here.status, each.status) << each.method << " " << each.target << ": " << here.body;
    EXPECT_EQ(forwarded.status, here.status) << each.target;
    EXPECT_EQ(forwarded.body, here.body);
    EXPECT_EQ(forwarded.content_type, here.content_type);
  }
  // One that does not lead refuses what is forwarded to it, and says that nothing was changed.
  const CallResult refused = rpc(follower, cluster::encode(cluster::AttachChildRequest{"p", "free", 0, std::nullopt}));
  EXPECT_EQ(refused.reply.status, 503);
  EXPECT_TRUE(is_unavailable(refused.reply.status, refused.reply.body)) << refused.reply.body;
}

TEST_F(WriteScenario, WhatALeaderRefusesAsTrailingDataIsSentAgainInItsOlderForm) {
  const size_t leader = lead();
  const size_t follower = (leader + 1) % 3;
  // Data behind the last field is what a field is to a release that does not know it.
  const std::string known = cluster::encode(cluster::CreateTopicRequest{"a", R"({"name":"a"})", std::nullopt});
  const std::string newer = cluster::encode(cluster::CreateTopicRequest{"a", R"({"name":"a"})", "me"}) + "newer";
  std::vector<int> statuses;
  as_client([&](io::Env& env) {
    cluster::NodeClientPool pool(env, {});
    io::with_scope([&](io::Scope& scope) {
      pool.run(scope);
      cluster::Forwarder forwarder(env, nodes[follower].view->raft, pool);
      statuses.push_back(forwarder.write(newer).status);
      statuses.push_back(forwarder.write(newer, known).status);
      statuses.push_back(forwarder.write(known, known).status);
      scope.cancel();
    });
  });
  EXPECT_EQ(statuses, (std::vector<int>{400, 201, 409})) << "a refusal of another kind is not asked for again";
}

// Scenario PL-03.
TEST_F(WriteScenario, ALeaderKilledAtAnyMomentOfACreateLeavesAWholeTopicOrNone) {
  size_t leader = lead();
  ASSERT_EQ(ask(leader, "POST", "/v1/topics", R"({"name":"p","schema":{"type":"object"}})").status, 201);
  int whole = 0;
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    const std::string name = "c" + std::to_string(round);
    const size_t killed = leader;
    client_machine->start([&](io::Env& env) {
      api::HttpClient client(env.net, nodes[killed].config.http.addr);
      (void)client.request({"POST", "/v1/topics", {{"Content-Type", "application/json"}}, R"({"name":")" + name + R"(","parent":"p"})"},
                           env.after(20s));
      return 0;
    });
    world.run_for(round * 700us);
    kill(killed);
    leader = await_other_leader(killed);
    const HttpResponse found = ask(leader, "GET", "/v1/topics/" + name);
    if (found.status == 200) {
      ++whole;
      EXPECT_NE(found.body.find("\"parent\":\"p\""), std::string::npos) << found.body;
      EXPECT_NE(found.body.find("\"schema_version\":1"), std::string::npos) << found.body;
      EXPECT_NE(ask(leader, "GET", "/v1/topics/p/children").body.find("\"" + name + "\""), std::string::npos);
      EXPECT_EQ(ask(leader, "DELETE", "/v1/topics/" + name).status, 204);
    } else {
      EXPECT_EQ(found.status, 404);
    }
    // The name is free for a whole topic, and that one can be removed again.
    EXPECT_EQ(ask(leader, "POST", "/v1/topics", R"({"name":")" + name + R"(","parent":"p"})").status, 201);
    EXPECT_EQ(ask(leader, "DELETE", "/v1/topics/" + name).status, 204);
    EXPECT_EQ(ask(leader, "GET", "/v1/topics/p/children").body.find("\"" + name + "\""), std::string::npos);
    client_machine->kill();
    start(killed);
    world.run_for(3s);
    leader = await_leader();
  }
  EXPECT_GT(whole, 0);
  EXPECT_LT(whole, 12);
}

}  // namespace
}  // namespace engine
