// A cluster of three whose nodes have fsm.db and the raft log on two small disks of their own. The leader's fill up, in turn: it retries,
// gives way or stops by its rules, comes back once there is room, and nothing that was acknowledged is lost.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>

#include "tests/integration/cluster.h"
#include "tests/support/paths.h"

namespace tests {
namespace {

namespace fs = std::filesystem;

struct FullDisksTest : testing::Test {
  Cluster cluster;
  std::vector<std::unique_ptr<SmallDisk>> fsm;   // by node
  std::vector<std::unique_ptr<SmallDisk>> raft;  // by node
  std::mutex acknowledged_mutex;
  std::set<std::string> acknowledged;
  std::atomic<int> next_name = 0;

  void TearDown() override {
    if (HasFailure()) {
      std::fprintf(stderr, "%s\n", cluster.logs().c_str());
    }
    for (size_t i = 0; i < cluster.size(); ++i) {
      if (cluster.node(i).is_running()) {
        cluster.node(i).kill9();
      }
    }
  }

  // Before the first start. Says why nothing can be mounted here; empty when all is.
  std::string give_disks(uint64_t fsm_bytes, uint64_t raft_bytes) {
    for (size_t i = 0; i < cluster.size(); ++i) {
      for (const auto& [name, bytes, disks] : {std::tuple("/fsm.db", fsm_bytes, &fsm), std::tuple("/raft", raft_bytes, &raft)}) {
        const std::string directory = cluster.node(i).data_dir() + name;
        fs::create_directories(directory);
        disks->push_back(std::make_unique<SmallDisk>(bytes, directory));
        if (!disks->back()->is_mounted()) {
          return disks->back()->why_not();
        }
      }
    }
    return {};
  }

  // One topic more, asked of `node`; true, and remembered, when that is acknowledged.
  bool create(size_t node) {
    // Long, so that disks fill soon.
    std::string name = "topic-" + std::to_string(next_name++) + "-";
    name.resize(200, 'x');
    const auto answer = cluster.node(node).request("POST", "/v1/topics", topic_body(name), 5s);
    if (!answer.has_value() || answer->status != 201) {
      EXPECT_TRUE(!answer.has_value() || answer->status == 503) << answer->status << " " << answer->body;
      return false;
    }
    std::lock_guard lock(acknowledged_mutex);
    acknowledged.insert(name);
    return true;
  }
  // Creates topics through `node` until `condition` holds.
  bool create_until(size_t node, const std::function<bool()>& condition, Milliseconds patience = 60s) {
    return eventually(
        [&] {
          (void)create(node);
          return condition();
        },
        patience);
  }
  size_t lines(size_t node, const std::string& text) {
    const std::string log = cluster.node(node).log();
    size_t count = 0;
    for (size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) {
      ++count;
    }
    return count;
  }
  bool has_same_state_everywhere() {
    return eventually([&] {
      std::set<double> indexes;
      for (size_t i = 0; i < cluster.size(); ++i) {
        indexes.insert(cluster.node(i).metric("narad_metastore_applied_index").value_or(-1.0 - static_cast<double>(i)));
      }
      return indexes.size() == 1;
    });
  }
  struct Dump {
    std::set<std::string> topics;
    std::string sum;  // the last line
  };
  Dump dump(size_t node) {
    const std::string output = cluster.node(node).data_dir() + ".dump";
    Process process({narad_program(), "metastore", "dump", cluster.node(node).data_dir()}, {}, output);
    EXPECT_EQ(process.wait(60s), 0);
    Dump found;
    std::ifstream file(output);
    const std::string topic = "{\"bucket\":\"topics\",\"key\":\"";
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(topic)) {
        found.topics.insert(line.substr(topic.size(), line.find('"', topic.size()) - topic.size()));
      }
      found.sum = std::move(line);
    }
    return found;
  }
  // Ends all at one moment, and reads what each one's database holds; how many different states they were in.
  size_t read_all() {
    EXPECT_TRUE(has_same_state_everywhere());
    for (size_t i = 0; i < cluster.size(); ++i) {
      cluster.node(i).kill9();
    }
    std::set<std::string> sums;
    for (size_t i = 0; i < cluster.size(); ++i) {
      const Dump held = dump(i);
      size_t missing = 0;
      for (const std::string& name : acknowledged) {
        missing += held.topics.contains(name) ? 0 : 1;
      }
      EXPECT_EQ(missing, 0u) << "of " << acknowledged.size() << " acknowledged topics, on n" << i + 1;
      EXPECT_TRUE(held.sum.starts_with("{\"rows\":")) << held.sum;
      sums.insert(held.sum);
    }
    return sums.size();
  }
  // Heartbeats are entries too: one may have come between the look at the nodes and their end.
  void expect_nothing_lost() {
    size_t states = read_all();
    for (int again = 0; again < 4 && states != 1; ++again) {
      ASSERT_TRUE(cluster.start_and_wait());
      states = read_all();
    }
    EXPECT_EQ(states, 1u) << "the nodes hold the same rows";
  }
};

TEST_F(FullDisksTest, AFullFsmDbIsRetriedAndThenStopsTheNodeWhichGoesOnOnceThereIsRoom) {
  const std::string no_disks = give_disks(12u << 20, 64u << 20);
  if (!no_disks.empty()) {
    GTEST_SKIP() << no_disks;
  }
  ASSERT_TRUE(cluster.start_and_wait());
  const size_t struck = *cluster.leader();
  const size_t other = (struck + 1) % cluster.size();
  NodeProcess& node = cluster.node(struck);
  const std::string retrying = "metastore: could not write raft entry; retrying";
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(create(struck));
  }
  // For a moment: the write is retried, and works.
  fsm[struck]->fill();
  ASSERT_TRUE(create_until(other, [&] { return lines(struck, retrying) == 1; }));
  fsm[struck]->make_room();
  ASSERT_TRUE(eventually([&] { return lines(struck, "metastore: wrote raft entry on retry") == 1; }));
  ASSERT_TRUE(node.wait_ready());
  // For good: the node stops by itself, and the others go on.
  fsm[struck]->fill();
  ASSERT_TRUE(create_until(other, [&] { return lines(struck, retrying) == 2; }));
  std::optional<int> code;
  EXPECT_TRUE(create_until(other, [&] { return (code = node.wait(0ms)).has_value(); }));
  EXPECT_EQ(code, 1);
  EXPECT_EQ(lines(struck, retrying), 2u) << "one line an entry";
  EXPECT_EQ(lines(struck, "metastore: stopped applying raft entries; this node leaves raft and exits"), 1u);
  EXPECT_EQ(lines(struck, "narad: raft: metastore: stopped applying raft entries: could not write raft entry at index "), 1u)
      << "the process's last word";
  EXPECT_GE(lines(struck, " to fsm.db after retrying for "), 1u);
  ASSERT_TRUE(eventually([&] { return create(other); })) << "two of three serve";
  // Without room it does not come back; with room it does.
  node.start();
  EXPECT_EQ(node.wait(60s), 1);
  fsm[struck]->make_room();
  node.start();
  ASSERT_TRUE(node.wait_ready());
  EXPECT_TRUE(eventually([&] { return create(struck); }));
  expect_nothing_lost();
}

TEST_F(FullDisksTest, AFullRaftLogMakesTheLeaderGiveWayAndGoesOnOnceThereIsRoom) {
  // One segment of the log is 16 MiB; there is no room for a second one until the ballast goes.
  const std::string no_disks = give_disks(256u << 20, 40u << 20);
  if (!no_disks.empty()) {
    GTEST_SKIP() << no_disks;
  }
  ASSERT_TRUE(cluster.start_and_wait());
  const size_t struck = *cluster.leader();
  const size_t other = (struck + 1) % cluster.size();
  const std::string full = "raft: the disk is full, entries wait and are not acknowledged";
  raft[struck]->fill();
  std::atomic<bool> is_full = false;
  std::vector<std::thread> writers;
  for (int i = 0; i < 16; ++i) {
    writers.emplace_back([&] {
      while (!is_full) {
        (void)create(struck);
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return lines(struck, full) == 1; }, 600s));
  is_full = true;
  for (std::thread& writer : writers) {
    writer.join();
  }
  EXPECT_EQ(cluster.node(struck).metric("narad_raft_disk_full"), 1);
  EXPECT_TRUE(eventually([&] { return cluster.leader() != struck; })) << "it gives way";
  EXPECT_TRUE(eventually([&] { return create(other); }));
  EXPECT_TRUE(cluster.node(struck).is_running()) << "a full log is waited for";
  raft[struck]->make_room();
  EXPECT_TRUE(eventually([&] { return lines(struck, "raft: the disk has room again, the log goes on") == 1; }));
  EXPECT_TRUE(cluster.node(struck).wait_ready());
  EXPECT_TRUE(eventually([&] { return create(struck); }));
  EXPECT_EQ(cluster.node(struck).metric("narad_raft_disk_full"), 0);
  expect_nothing_lost();
}

}  // namespace
}  // namespace tests
