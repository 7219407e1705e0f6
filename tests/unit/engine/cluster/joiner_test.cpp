#include "engine/cluster/joiner.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>

#include "engine/cluster/node_server.h"
#include "io/sim/world.h"

namespace engine::cluster {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> walked(JoinWalk walk) {
  std::vector<std::string> all;
  while (const std::optional<std::string> address = walk.next()) all.push_back(*address);
  return all;
}

TEST(JoinWalk, GoesFromTheKnownLeaderOverThePeersToLearnedLeaders) {
  EXPECT_EQ(walked(JoinWalk("me:1", "l:1", {"a:1", "b:1"}, {"new:1", "old:1"})),
            (std::vector<std::string>{"l:1", "a:1", "b:1", "new:1", "old:1"}));
}

TEST(JoinWalk, AsksNobodyTwiceAndNeverItself) {
  EXPECT_EQ(walked(JoinWalk("me:1", "", {"a:1", "me:1", "a:1"}, {"a:1", "b:1"})), (std::vector<std::string>{"a:1", "b:1"}));
}

TEST(JoinWalk, AHintIsAskedNextUnlessItWasAskedAlready) {
  JoinWalk walk("me:1", "", {"a:1", "b:1", "c:1"}, {});
  EXPECT_EQ(walk.next(), "a:1");
  EXPECT_TRUE(walk.follow_hint("c:1"));
  EXPECT_FALSE(walk.follow_hint(""));
  EXPECT_FALSE(walk.follow_hint("me:1"));
  EXPECT_EQ(walk.next(), "c:1");
  EXPECT_FALSE(walk.follow_hint("a:1"));
  EXPECT_EQ(walk.next(), "b:1");
  EXPECT_EQ(walk.next(), std::nullopt);
}

TEST(JoinWalk, FollowsFourHintsAnAttempt) {
  JoinWalk walk("me:1", "", {"a:1", "b:1"}, {});
  EXPECT_EQ(walk.next(), "a:1");
  for (size_t i = 0; i < kHintsPerAttempt; ++i) {
    const std::string hint = "h" + std::to_string(i) + ":1";
    EXPECT_TRUE(walk.follow_hint(hint));
    EXPECT_EQ(walk.next(), hint);
  }
  EXPECT_FALSE(walk.follow_hint("one-more:1"));
  EXPECT_EQ(walk.next(), "b:1");
  EXPECT_EQ(walk.next(), std::nullopt);
}

// ---- The probe ---------------------------------------------------------------------------------------------------------------

// n1 probes; the peers that serve answer what a test says.
struct ProbeTest : testing::Test {
  using Answer = std::function<NodeReply(const JoinClusterRequest& request)>;

  ProbeTest() {
    for (const char* name : {"n1", "n2", "n3"}) {
      io::sim::MachineSettings settings;
      settings.name = name;
      machines[name] = &world.add_machine(settings);
    }
  }
  void serve(const std::string& name, Answer answer) {
    machines[name]->start([this, name, answer = std::move(answer)](io::Env& env) {
      NodeServer server(env, [this, name, answer](std::string_view payload) {
        ++asked[name];
        const auto request = decode_join_cluster(payload);
        EXPECT_TRUE(request.ok());
        return answer(*request);
      });
      auto listener = env.net.listen(name + ":7943");
      EXPECT_TRUE(listener.ok());
      io::with_scope([&](io::Scope& scope) {
        while (true) {
          auto stream = std::make_shared<std::unique_ptr<io::Stream>>(*(*listener)->accept());
          scope.spawn("conn", [&server, stream] { server.serve(std::move(*stream), {}); });
        }
      });
      return 0;
    });
  }
  bool probe() {
    std::optional<bool> found;
    machines["n1"]->start([&](io::Env& env) {
      NodeClientPool clients(env, {});
      JoinerSettings settings;
      settings.id = "n1";
      settings.cluster_addr = "n1:7943";
      settings.peers = {"n2:7943", "n3:7943"};
      settings.entry_types = 37;
      const io::Instant begun = env.now();
      bool has_cluster = false;
      io::with_scope([&](io::Scope& scope) {
        clients.run(scope);
        has_cluster = probe_for_cluster(env, clients, settings);
        scope.cancel();
      });
      took = env.now() - begun;
      found = has_cluster;
      return 0;
    });
    EXPECT_TRUE(world.run_while([&] { return !found; }, world.now() + 30s));
    return found.value_or(false);
  }
  static Answer status(uint16_t status) {
    return [status](const JoinClusterRequest&) { return error_reply(status, "as the test says"); };
  }

  io::sim::World world{5};
  std::map<std::string, io::sim::Machine*> machines;
  std::map<std::string, int> asked;
  io::Duration took{0};
};

TEST_F(ProbeTest, AnAnswerOf200Or421Or409SaysThatAClusterExists) {
  serve("n2", status(412));
  for (const uint16_t answer : {200, 421, 409}) {
    serve("n3", status(answer));
    EXPECT_TRUE(probe()) << answer;
    EXPECT_LT(took, 1s);
    machines["n3"]->kill();
    world.run_for(1s);
  }
}

TEST_F(ProbeTest, ARoundInWhichEveryPeerAnswers412EndsIt) {
  serve("n2", status(412));
  serve("n3", status(412));
  EXPECT_FALSE(probe());
  EXPECT_EQ(asked["n2"], 1);
  EXPECT_EQ(asked["n3"], 1);
  EXPECT_LT(took, 1s);
}

TEST_F(ProbeTest, WithoutAnAnswerOfEverybodyThereAreThreeRoundsASecondApart) {
  serve("n2", status(412));
  EXPECT_FALSE(probe());  // nobody listens at n3
  EXPECT_EQ(asked["n2"], kProbeRounds);
  EXPECT_GE(took, 2 * kProbePause);
  EXPECT_LT(took, 2 * kProbePause + kProbeRounds * kProbeTimeout);
}

TEST_F(ProbeTest, APeerThatDoesNotAnswerCostsTwoSecondsARound) {
  serve("n2", status(412));
  serve("n3", [](const JoinClusterRequest&) {
    io::sleep_for(60s);
    return error_reply(412, "");
  });
  EXPECT_FALSE(probe());
  EXPECT_GE(took, 2 * kProbePause + kProbeRounds * kProbeTimeout);
  EXPECT_LT(took, 2 * kProbePause + kProbeRounds * kProbeTimeout + 500ms);
}

// Scenario UG-05, the probe.
TEST_F(ProbeTest, AnOlderPeerIsAskedAgainWithoutTheFieldsThatItDoesNotKnow) {
  serve("n2", status(412));
  serve("n3", [](const JoinClusterRequest& request) {
    return request.fresh || request.entry_types ? error_reply(400, "invalid join request: trailing node rpc payload data")
                                                : error_reply(421, "not the metastore leader");
  });
  EXPECT_TRUE(probe());
  EXPECT_EQ(asked["n3"], 3);
}

TEST_F(ProbeTest, TheProbeClaimsAnEmptyVolumeAndSaysWhichEntriesItApplies) {
  std::optional<JoinClusterRequest> heard;
  serve("n2", [&](const JoinClusterRequest& request) {
    heard = request;
    return error_reply(409, "");
  });
  EXPECT_TRUE(probe());
  EXPECT_EQ(heard, (JoinClusterRequest{"n1", "n1:7943", true, 37}));
}

}  // namespace
}  // namespace engine::cluster
