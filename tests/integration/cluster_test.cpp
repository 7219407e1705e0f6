// Three real processes: what a client is promised of a cluster, and what it keeps through kill -9.

#include "tests/integration/cluster.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/integration/writers.h"

namespace tests {
namespace {

struct ClusterTest : testing::Test {
  Cluster cluster;
  void TearDown() override {
    if (HasFailure()) {
      std::fprintf(stderr, "%s\n", cluster.logs().c_str());
    }
  }
  int status(size_t node, std::string method, std::string target, std::string body = {}) {
    const auto response = cluster.node(node).request(std::move(method), std::move(target), std::move(body));
    return response.has_value() ? response->status : 0;
  }
  bool everywhere(const std::string& name, int wanted) {
    return eventually([&] {
      for (size_t i = 0; i < cluster.size(); ++i) {
        if (status(i, "GET", "/v1/topics/" + name) != wanted) {
          return false;
        }
      }
      return true;
    });
  }
};

TEST_F(ClusterTest, ATopicCreatedOnAnyNodeIsReadOnThatNodeAtOnceAndOnAllSoon) {
  ASSERT_TRUE(cluster.start_and_wait());
  for (size_t i = 0; i < cluster.size(); ++i) {
    const std::string name = "topic-" + std::to_string(i);
    EXPECT_EQ(status(i, "POST", "/v1/topics", topic_body(name)), 201);
    EXPECT_EQ(status(i, "GET", "/v1/topics/" + name), 200);
    EXPECT_TRUE(everywhere(name, 200));
  }
}

TEST_F(ClusterTest, ChangesAndDeletesThroughAFollowerAreTheLeadersAnswers) {
  ASSERT_TRUE(cluster.start_and_wait());
  const size_t follower = *cluster.follower();
  NodeProcess& node = cluster.node(follower);
  EXPECT_EQ(status(follower, "POST", "/v1/topics", topic_body("orders")), 201);
  const auto again = node.request("POST", "/v1/topics", topic_body("Orders"));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->status, 409);
  EXPECT_EQ(again->content_type, "application/json");
  EXPECT_NE(again->body.find("orders"), std::string::npos) << again->body;
  const auto changed = node.request("PATCH", "/v1/topics/orders", R"({"partitions":7})");
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(changed->status, 200);
  EXPECT_NE(changed->body.find("\"partitions\":7"), std::string::npos) << changed->body;
  const auto read = node.request("GET", "/v1/topics/orders");
  EXPECT_NE(read->body.find("\"partitions\":7"), std::string::npos) << read->body;
  EXPECT_EQ(status(follower, "PATCH", "/v1/topics/none", R"({"partitions":7})"), 404);
  EXPECT_EQ(status(follower, "DELETE", "/v1/topics/orders"), 204);
  EXPECT_EQ(status(follower, "GET", "/v1/topics/orders"), 404);
  EXPECT_EQ(status(follower, "DELETE", "/v1/topics/orders"), 404);
  EXPECT_TRUE(everywhere("orders", 404));
}

TEST_F(ClusterTest, AFollowerWithoutALeaderAnswersWhatItHasAnd503ForTheRest) {
  ASSERT_TRUE(cluster.start_and_wait());
  EXPECT_EQ(status(0, "POST", "/v1/topics", topic_body("kept")), 201);
  EXPECT_TRUE(everywhere("kept", 200));
  cluster.node(1).kill9();
  cluster.node(2).kill9();
  EXPECT_TRUE(eventually([&] { return !cluster.node(0).is_ready(); }));
  EXPECT_EQ(status(0, "GET", "/healthz"), 200);
  EXPECT_EQ(status(0, "GET", "/v1/topics/kept"), 200);
  EXPECT_EQ(status(0, "GET", "/v1/topics/unknown"), 503);
  EXPECT_EQ(status(0, "POST", "/v1/topics", topic_body("lost")), 503);
  cluster.node(1).start();
  EXPECT_TRUE(cluster.node(0).wait_ready());
  EXPECT_EQ(status(0, "GET", "/v1/topics/unknown"), 404);
}

TEST_F(ClusterTest, AStoppedClusterFindsItsTopicsAgain) {
  ASSERT_TRUE(cluster.start_and_wait());
  EXPECT_EQ(status(1, "POST", "/v1/topics", topic_body("kept")), 201);
  for (size_t i = 0; i < cluster.size(); ++i) {
    EXPECT_EQ(cluster.node(i).stop(), 0);
  }
  ASSERT_TRUE(cluster.start_and_wait());
  EXPECT_TRUE(everywhere("kept", 200));
}

TEST_F(ClusterTest, AfterAKillOfTheLeaderWritesWorkAgain) {
  ASSERT_TRUE(cluster.start_and_wait());
  const size_t leader = *cluster.leader();
  const size_t other = (leader + 1) % cluster.size();
  cluster.node(leader).kill9();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(eventually([&] { return status(other, "POST", "/v1/topics", topic_body("after")) == 201; }));
  const auto took = std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - begin);
  std::printf("writes work again after %lld ms\n", static_cast<long long>(took.count()));
  EXPECT_LT(took, 15s);
}

TEST_F(ClusterTest, AStopOfTheLeaderHandsLeadershipOverAndNoWriteFails) {
  ASSERT_TRUE(cluster.start_and_wait());
  const size_t leader = *cluster.leader();
  const size_t other = (leader + 1) % cluster.size();
  std::atomic<bool> stopping{false};
  int failed = 0;
  int written = 0;
  auto last = std::chrono::steady_clock::now();
  auto longest = last - last;
  std::thread writer([&] {
    while (!stopping) {
      const int answer = status(other, "POST", "/v1/topics", topic_body("t" + std::to_string(written + failed)));
      const auto now = std::chrono::steady_clock::now();
      (answer == 201 ? written : failed) += 1;
      longest = std::max(longest, now - last);
      last = now;
    }
  });
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(cluster.node(leader).stop(), 0);
  std::this_thread::sleep_for(500ms);
  stopping = true;
  writer.join();
  std::printf("longest gap between acknowledged writes: %lld ms\n",
              static_cast<long long>(std::chrono::duration_cast<Milliseconds>(longest).count()));
  EXPECT_EQ(failed, 0);
  EXPECT_GT(written, 0);
  EXPECT_NE(cluster.node(leader).log().find("leadership transferred before shutdown"), std::string::npos);
}

size_t kills_wanted() {
  const char* given = std::getenv("NARAD_KILLS");
  return given != nullptr ? static_cast<size_t>(std::atol(given)) : 20;
}

TEST_F(ClusterTest, NoAcknowledgedTopicIsLostOverRandomKills) {
  ASSERT_TRUE(cluster.start_and_wait());
  std::mt19937 random(20);
  const size_t kills = kills_wanted();
  std::vector<std::string> acknowledged;
  {
    Writers writers(cluster, 4);
    for (size_t i = 0; i < kills; ++i) {
      std::this_thread::sleep_for(Milliseconds(100 + random() % 600));
      // Mostly one node, now and then two at once: the majority is gone, and comes back.
      const size_t victims = random() % 5 == 0 ? 2 : 1;
      const size_t first = random() % cluster.size();
      for (size_t v = 0; v < victims; ++v) {
        cluster.node((first + v) % cluster.size()).kill9();
      }
      std::this_thread::sleep_for(Milliseconds(random() % 700));
      for (size_t v = 0; v < victims; ++v) {
        cluster.node((first + v) % cluster.size()).start();
      }
      for (size_t v = 0; v < victims; ++v) {
        ASSERT_TRUE(cluster.node((first + v) % cluster.size()).wait_ready(60s)) << "after kill " << i;
      }
    }
    writers.stop();
    acknowledged = writers.acknowledged();
  }
  std::printf("%zu kills, %zu acknowledged topics\n", kills, acknowledged.size());
  EXPECT_GT(acknowledged.size(), kills);
  for (size_t i = 0; i < cluster.size(); ++i) {
    ASSERT_TRUE(cluster.node(i).wait_ready());
    size_t missing = 0;
    for (const std::string& name : acknowledged) {
      if (status(i, "GET", "/v1/topics/" + name) != 200) {
        ++missing;
        ADD_FAILURE() << name << " was acknowledged and is not on " << cluster.node(i).id();
        if (missing > 10) {
          break;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tests
