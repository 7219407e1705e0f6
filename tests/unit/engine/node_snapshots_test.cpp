// Snapshots of whole nodes: what one that finds no room leaves as it was, and tells; and what a cluster does whose logs begin behind
// snapshots that are lost.

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "engine/metastore/fsm.h"
#include "engine/node.h"
#include "io/sim/volume.h"
#include "raft/server.h"
#include "tests/support/node_world.h"

namespace engine {
namespace {

using namespace std::chrono_literals;

struct NodeSnapshots : tests::NodeWorld {
  explicit NodeSnapshots(size_t count = 3) : NodeWorld(count) {
    for (Node& node : nodes) {
      node.config.cluster.raft_snapshot_threshold = 4;
      node.config.cluster.raft_snapshot_interval = 1s;
      node.config.cluster.raft_trailing_logs = 0;
      node.config.tuning.raft_segment_bytes = 4096;
    }
  }
  bool run_until(const std::function<bool()>& condition, io::Duration limit) {
    return world.run_while([&] { return !condition(); }, world.now() + limit);
  }
};

struct OneNodeSnapshots : NodeSnapshots {
  OneNodeSnapshots() : NodeSnapshots(1) {}
  int create(const std::string& name) { return ask(0, "POST", "/v1/topics", R"({"name":")" + name + "\"}").status; }
  size_t log_lines(io::LogLevel level, std::string_view text) {
    size_t count = 0;
    for (const io::sim::LogLine& line : nodes[0].machine->process()->log_lines()) {
      count += line.level == level && line.text.starts_with(text) ? 1 : 0;
    }
    return count;
  }
  // The value of a line of /metrics.
  std::string metric(const std::string& name) {
    const std::string text = "\n" + ask(0, "GET", "/metrics").body;
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? "" : text.substr(at + name.size() + 2, text.find('\n', at + 1) - at - name.size() - 2);
  }
};

TEST_F(OneNodeSnapshots, ASnapshotThatFindsNoRoomIsToldCountedAndTakenAtALaterIntervalWhileTheNodeServes) {
  start(0);
  await_leader();
  io::sim::Volume& volume = nodes[0].machine->volume();
  volume.set_rates({io::sim::FaultRates{.prefix = "raft/snapshots", .no_space_ppm = 1'000'000}});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(create("t" + std::to_string(i)), 201);
  }
  EXPECT_TRUE(run_until([&] { return nodes[0].view->raft.counters().snapshots_failed >= 2; }, 20s)) << "tried again at an interval";
  EXPECT_EQ(metric("narad_metastore_snapshot_failures_total"), std::to_string(nodes[0].view->raft.counters().snapshots_failed));
  EXPECT_GE(log_lines(io::LogLevel::error, "raft: no snapshot could be taken"), 2u);
  EXPECT_GE(log_lines(io::LogLevel::error, "metastore: could not copy the database for a raft snapshot"), 2u)
      << "also when not even its file can be begun";
  EXPECT_EQ(create("meanwhile"), 201);
  EXPECT_EQ(ask(0, "GET", "/v1/topics/t3").status, 200);
  EXPECT_EQ(ask(0, "GET", "/readyz").status, 200);
  EXPECT_EQ(nodes[0].view->raft.status().snapshot, 0u);
  volume.set_rates({});
  EXPECT_TRUE(run_until([&] { return nodes[0].view->raft.status().snapshot > 0; }, 20s));
  EXPECT_NE(metric("narad_metastore_snapshot_bytes"), "0");
}

TEST_F(NodeSnapshots, ALeaderWithoutASnapshotTakesOneForTheFollowerThatNeedsIt) {
  start_all();
  const size_t a = await_leader();
  const size_t b = (a + 1) % 3;
  const size_t c = (a + 2) % 3;
  world.run_for(1s);
  nodes[c].machine->kill();
  nodes[c].view.reset();
  int topics = 0;
  const auto is_cut = [&](size_t i) { return nodes[i].view->raft.status().log_base > 20; };
  for (int round = 0; round < 20 && !(is_cut(a) && is_cut(b)); ++round) {
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(ask(a, "POST", "/v1/topics", R"({"name":"t)" + std::to_string(topics++) + "\"}").status, 201);
    }
    world.run_for(3s);
  }
  ASSERT_TRUE(is_cut(a) && is_cut(b));
  // The configuration stands in the log behind its begin: without the snapshots nobody else would know one, nor lead.
  std::optional<raft::Proposed> changed;
  const auto first = leader();
  ASSERT_TRUE(first.has_value());
  nodes[*first].machine->process()->spawn("demote", [&, &raft = nodes[*first].view->raft, &env = nodes[*first].machine->process()->env()] {
    raft::ConfigurationChange change;
    change.kind = raft::ConfigurationChange::Kind::demote;
    change.id = nodes[c].config.cluster.node_id;
    changed = raft.change_configuration(change, env.after(5s));
  });
  ASSERT_TRUE(run_until([&] { return changed.has_value(); }, 10s));
  ASSERT_TRUE(changed->ok()) << changed->reason;
  EXPECT_EQ(ask(*first, "POST", "/v1/topics", R"({"name":"last"})").status, 201);
  world.run_for(100ms);
  for (const size_t i : {a, b}) {
    nodes[i].machine->kill();
    nodes[i].view.reset();
    nodes[i].machine->volume().restore("raft/snapshots", {});
    // None is due for a long time.
    nodes[i].config.cluster.raft_snapshot_threshold = 1 << 20;
    nodes[i].config.cluster.raft_snapshot_interval = 3600s;
  }
  world.run_for(1s);
  start(a);
  start(b);
  const size_t leader = await_leader();
  world.run_for(2s);
  ASSERT_EQ(nodes[leader].view->raft.status().snapshot, 0u);
  const raft::Index base = nodes[leader].view->raft.status().log_base;
  ASSERT_GT(base, 0u);
  EXPECT_EQ(nodes[leader].view->raft.counters().snapshots_taken, 0u) << "nobody needs one";
  start(c);
  EXPECT_TRUE(run_until([&] { return nodes[c].view && nodes[c].view->raft.counters().snapshots_installed == 1; }, 20s));
  EXPECT_EQ(nodes[c].view->fsm.applied_index(), nodes[leader].view->fsm.applied_index());
  EXPECT_EQ(nodes[leader].view->raft.counters().snapshots_taken, 1u);
  EXPECT_EQ(nodes[c].view->fsm.digest(), nodes[leader].view->fsm.digest());
  EXPECT_EQ(ask(c, "POST", "/v1/topics", R"({"name":"after"})").status, 201);
}

}  // namespace
}  // namespace engine
