// What a node shows of its metastore: the counters of /metrics, provoked and read, and the one line with which a start is refused because of a
// release that is too old, or of raft state that is.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/metastore/envelope.h"
#include "engine/metastore/fsm.h"
#include "engine/metastore/replica.h"
#include "engine/node.h"
#include "engine/topics/proposer.h"
#include "io/sim/volume.h"
#include "raft/server.h"
#include "tests/support/node_world.h"
#include "tests/support/topics.h"

namespace engine {
namespace {

using namespace std::chrono_literals;

// A command of the type that only the release to come knows.
std::string hypothetical() {
  std::string bytes = metastore::encode_delete_topic("x");
  bytes[metastore::kEnvelopeHeaderBytes - 1] = static_cast<char>(metastore::kHypotheticalEntryType);
  return bytes;
}

class MetastoreNode : public tests::NodeWorld {
 protected:
  MetastoreNode() : NodeWorld(1) {
    for (Node& node : nodes) {
      node.config.http.read_timeout = 120s;
      node.config.cluster.raft_trailing_logs = 0;
      node.config.tuning.raft_segment_bytes = 4096;
    }
  }
  void take_snapshots() {
    for (Node& node : nodes) {
      node.config.cluster.raft_snapshot_threshold = 4;
      node.config.cluster.raft_snapshot_interval = 1s;
    }
  }
  static Config::Tuning::Release next() { return {"next", metastore::kHypotheticalEntryType, false, true, {}}; }

  int create(size_t node, const std::string& name) {
    return ask(node, "POST", "/v1/topics", R"({"name":")" + name + "\"}").status;
  }
  // The value of a line of /metrics.
  static std::string value_in(const std::string& text, const std::string& name) {
    const size_t at = ("\n" + text).find("\n" + name + " ");
    return at == std::string::npos ? "" : text.substr(at + name.size() + 1, text.find('\n', at) - at - name.size() - 1);
  }
  std::string metric(size_t i, const std::string& name) { return value_in(ask(i, "GET", "/metrics").body, name); }
  static std::string errors(const std::string& kind) { return "narad_metastore_apply_errors_total{kind=\"" + kind + "\"}"; }

  std::optional<Proposed> propose(size_t i, std::string command) {
    std::optional<Proposed> proposed;
    nodes[i].machine->process()->spawn("propose", [&, &proposer = nodes[i].view->proposer] {
      proposed = proposer.propose(std::move(command), nodes[i].machine->process()->env().after(5s));
    });
    (void)run_until([&] { return proposed.has_value() || !nodes[i].view; }, 10s);
    return proposed;
  }
  bool run_until(const std::function<bool()>& condition, io::Duration limit = 60s) {
    return world.run_while([&] { return !condition(); }, world.now() + limit);
  }
  void stop(size_t i) {
    nodes[i].stop->set();
    EXPECT_TRUE(run_until([&] { return nodes[i].exit_code.has_value(); }));
    world.run_for(1s);
  }
  void expect_refused(size_t i, const std::string& reason) {
    const uint64_t mutations = nodes[i].machine->volume().mutations();
    start(i);
    EXPECT_TRUE(run_until([&] { return nodes[i].exit_code.has_value(); }, 10s));
    EXPECT_EQ(nodes[i].exit_code, 1);
    EXPECT_EQ(nodes[i].reason, reason);
    EXPECT_EQ(nodes[i].machine->volume().mutations(), mutations) << "nothing is touched";
    world.run_for(1s);
  }
};

TEST_F(MetastoreNode, MetricsTellOfEntriesThatCannotBeDecodedOfTheDatabaseAndOfSnapshots) {
  take_snapshots();
  start(0);
  await_leader();
  EXPECT_EQ(create(0, "a"), 201);
  EXPECT_EQ(metric(0, errors("undecodable")), "0");
  EXPECT_EQ(metric(0, errors("newer_database")), "0");
  EXPECT_EQ(metric(0, "narad_metastore_snapshot_duration_seconds"), "0");
  const auto proposed = propose(0, "no command at all");
  ASSERT_TRUE(proposed.has_value());
  EXPECT_EQ(proposed->outcome, Proposed::Outcome::applied) << "counted as applied, on every node alike";
  EXPECT_EQ(metric(0, errors("undecodable")), "1");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(create(0, "t" + std::to_string(i)), 201);
  EXPECT_TRUE(run_until([&] { return nodes[0].view->raft.status().snapshot > 0; }, 20s));
  const std::string took = metric(0, "narad_metastore_snapshot_duration_seconds");
  ASSERT_NE(took, "");
  EXPECT_GT(std::stod(took), 0.0);
  EXPECT_LT(std::stod(took), 10.0);
  EXPECT_EQ(metric(0, "narad_metastore_snapshot_bytes"), std::to_string(nodes[0].view->raft.status().snapshot_bytes));
  const std::string bytes = metric(0, "narad_metastore_fsm_bytes");
  ASSERT_NE(bytes, "");
  EXPECT_GT(std::stoll(bytes), 500);
  for (int i = 10; i < 20; ++i) EXPECT_EQ(create(0, "t" + std::to_string(i)), 201);
  EXPECT_GT(std::stoll(metric(0, "narad_metastore_fsm_bytes")), std::stoll(bytes)) << "it grows with what it holds";
}

TEST_F(MetastoreNode, ADatabaseOrSnapshotOfANewerReleaseIsRefusedInOneLine) {
  take_snapshots();
  nodes[0].config.tuning.release = next();
  start(0);
  await_leader();
  EXPECT_EQ(propose(0, hypothetical())->outcome, Proposed::Outcome::applied);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(create(0, "t" + std::to_string(i)), 201);
  EXPECT_TRUE(run_until([&] { return nodes[0].view->raft.status().snapshot > 5; }, 20s));
  const std::string label = std::to_string(nodes[0].view->raft.status().snapshot);
  stop(0);
  nodes[0].config.tuning.release = {"narad of today", metastore::kNewestEntryType, false, true, {}};
  const std::string newer =
      " holds raft entry type 38, written by a newer Narad release than this build (narad of today, which knows entry types up to 37); "
      "run that release or newer";
  expect_refused(0, "metastore: fsm: fsm.db" + newer);
  nodes[0].machine->volume().restore("fsm.db", {});
  expect_refused(0, "metastore: the raft snapshot at index " + label + newer);
}

TEST_F(MetastoreNode, RaftStateOlderThanTheDatabaseIsRefusedInOneLine) {
  start(0);
  await_leader();
  EXPECT_EQ(create(0, "a"), 201);
  const raft::Index end = nodes[0].view->raft.core().last_index();
  stop(0);
  const auto older = nodes[0].machine->volume().copy("raft");
  start(0);
  await_leader();
  EXPECT_EQ(create(0, "b"), 201);
  const raft::Index applied = nodes[0].view->fsm.applied_index();
  stop(0);
  nodes[0].machine->volume().restore("raft", {});
  nodes[0].machine->volume().restore("raft", older);
  expect_refused(0, "metastore: raft state is older than fsm.db: fsm.db has applied raft index " + std::to_string(applied) +
                        ", past the end of the raft log (index " + std::to_string(end) +
                        ") and the latest raft snapshot (index 0) in raft/; starting would drop every metadata change after index " +
                        std::to_string(end) +
                        ", so refusing to start. Restore raft/ from the same moment as fsm.db or later, or move the whole data directory "
                        "away and let this node join its cluster as a new one");
}

}  // namespace
}  // namespace engine
