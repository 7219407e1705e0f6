// Real processes that form a cluster, join it, and are kept out of it.

#include <gtest/gtest.h>

#include <cstdio>

#include "engine/cluster/move_frames.h"
#include "engine/cluster/node_frames.h"
#include "tests/integration/cluster.h"
#include "tests/integration/ticker.h"
#include "tests/integration/writers.h"

namespace tests {
namespace {

struct MembershipProcesses : testing::Test {
  explicit MembershipProcesses(size_t nodes = 5, size_t initial = 3) : cluster(nodes, initial) {}
  void TearDown() override {
    if (HasFailure()) {
      std::fprintf(stderr, "%s\n", cluster.logs().c_str());
    }
  }
  void start(size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) cluster.node(i).start();
  }
  bool wait_ready(size_t first, size_t last, Milliseconds patience) {
    return eventually(
        [&] {
          for (size_t i = first; i < last; ++i) {
            if (!cluster.node(i).is_ready()) return false;
          }
          return true;
        },
        patience);
  }
  bool wait_voters(double voters, Milliseconds patience) {
    return eventually(
        [&] {
          const std::optional<size_t> leader = cluster.leader();
          return leader && cluster.node(*leader).metric("narad_raft_voters") == voters;
        },
        patience);
  }
  bool logs(size_t i, const std::string& text, Milliseconds patience) {
    return eventually([&] { return cluster.node(i).log().find(text) != std::string::npos; }, patience);
  }

  Cluster cluster;
};

TEST_F(MembershipProcesses, ThreeFromEmptyDirectoriesAreReadyWithinFiveSecondsOfTheLastStart) {
  const Ticker ticker;
  start(0, 3);
  const auto started = Ticker::Clock::now();
  EXPECT_TRUE(wait_ready(0, 3, 30s));
  const auto ready = Ticker::Clock::now();
  const auto awake = std::chrono::duration_cast<Milliseconds>(ticker.awake(started, ready));
  std::printf("ready %lld ms after the last start, without the machine's stalls\n", static_cast<long long>(awake.count()));
  EXPECT_LE(awake, 5s);
}

TEST_F(MembershipProcesses, ScaleOutFromThreeToFiveUnderWritesLosesNothing) {
  start(0, 3);
  ASSERT_TRUE(wait_ready(0, 3, 30s));
  std::vector<std::string> acknowledged;
  {
    Writers writers(cluster, 2);
    std::this_thread::sleep_for(500ms);
    start(3, 5);
    EXPECT_TRUE(wait_voters(5, 60s));
    EXPECT_TRUE(wait_ready(0, 5, 30s));
    std::this_thread::sleep_for(500ms);
    writers.stop();
    acknowledged = writers.acknowledged();
  }
  std::printf("%zu acknowledged topics\n", acknowledged.size());
  EXPECT_GT(acknowledged.size(), 10u);
  for (size_t i = 0; i < 5; ++i) {
    for (const std::string& name : acknowledged) {
      const auto read = cluster.node(i).request("GET", "/v1/topics/" + name);
      ASSERT_TRUE(read && read->status == 200) << name << " was acknowledged and is not on " << cluster.node(i).id();
    }
  }
}

struct FourProcesses : MembershipProcesses {
  FourProcesses() : MembershipProcesses(4, 3) {}

  // One request of the node protocol, and the status of its answer.
  int ask_leader(const std::string& payload) {
    namespace cluster_frames = engine::cluster;
    std::string frame;
    cluster_frames::append_frame(frame, cluster_frames::FrameType::node_request, 1, payload);
    const std::string address = cluster.node(*cluster.leader()).cluster_address();
    const auto port = static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
    const std::string answer = talk_raw(port, frame, false, 2s);
    const size_t head = cluster_frames::kFrameHeaderBytes;
    const auto reply = cluster_frames::decode_reply(answer.size() > head ? answer.substr(head) : std::string());
    return reply.ok() ? reply->status : 0;
  }
};

TEST_F(FourProcesses, ATombstonedNodeIsRefusedWithItsText) {
  start(0, 4);
  ASSERT_TRUE(wait_voters(4, 60s));
  ASSERT_TRUE(wait_ready(0, 4, 30s));
  ASSERT_TRUE(eventually([&] { return ask_leader(encode(engine::cluster::DecommissionRequest{"n4", false})) == 204; }, 30s));
  ASSERT_TRUE(wait_voters(3, 90s));
  const std::string refusal = "cluster join refused: this node was decommissioned and removed; it will not rejoin with its old data directory";
  EXPECT_TRUE(logs(3, refusal, 60s));
  EXPECT_TRUE(logs(3, "node was decommissioned and removed from the cluster; delete its data directory (volume) to rejoin as a new node", 5s));
  EXPECT_FALSE(cluster.node(3).is_ready());
}

}  // namespace
}  // namespace tests
