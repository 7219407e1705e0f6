// A node whose metastore can go on no further: it leaves raft, is not ready, takes no write and passes no barrier, ends its process with an
// exit code that is not 0, and has counted nothing that it did not apply. And what a node notices without being written to.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/cluster/leader_confirm.h"
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
using io::sim::FaultRates;

// A request whose last bytes are held back, and the answer to it.
class HeldRequest {
 public:
  HeldRequest(io::Env& env, const std::string& address, const std::string& method, const std::string& target, const std::string& body)
      : env_(env) {
    auto stream = env.net.connect(address, env.after(5s));
    EXPECT_TRUE(stream.ok());
    if (!stream.ok()) {
      return;
    }
    stream_ = std::move(*stream);
    const std::string head = method + " " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n" +
                             "Content-Length: " + std::to_string(body.size()) + "\r\n";
    EXPECT_TRUE(stream_->write(head, env.after(5s)).ok());
    rest_ = "\r\n" + body;
  }
  // The status line and everything after it; empty when nothing was answered.
  std::string finish() {
    std::string answer;
    if (stream_ == nullptr || !stream_->write(rest_, env_.after(5s)).ok()) {
      return answer;
    }
    for (;;) {
      const io::Result<std::string> bytes = stream_->read(4096, env_.after(60s));
      if (!bytes.ok() || bytes->empty()) {
        return answer;
      }
      answer += *bytes;
    }
  }

 private:
  io::Env& env_;
  std::unique_ptr<io::Stream> stream_;
  std::string rest_;
};

class StoppedNode : public tests::NodeWorld {
 protected:
  explicit StoppedNode(size_t count = 3) : NodeWorld(count) {
    for (Node& node : nodes) {
      node.config.http.read_timeout = 120s;
      node.config.tuning.fsm_flush_bytes = 2000;
    }
  }

  static std::string topic(const std::string& name) { return R"({"name":")" + name + "\"}"; }
  int create(size_t node, const std::string& name) { return ask(node, "POST", "/v1/topics", topic(name)).status; }

  // What a stopped node says in the moment between its stop and its end, which requests that had begun before hold open.
  struct LastWords {
    std::string ready;
    std::string write;
    std::string absent;
    std::string metrics;
    std::optional<io::Status> barrier;
    std::optional<metastore::Currency> currency;
    bool is_running = true;
    raft::Index applied = 0;
  };
  // Calls `strike` once the requests have begun, and waits for the metastore's stop.
  LastWords last_words(size_t i, const std::function<void()>& strike, const std::function<void()>& at_end = [] {}) {
    LastWords words;
    Node& node = nodes[i];
    as_client([&](io::Env& env) {
      HeldRequest ready(env, node.config.http.addr, "GET", "/readyz", "");
      HeldRequest write(env, node.config.http.addr, "POST", "/v1/topics", topic("too-late"));
      HeldRequest absent(env, node.config.http.addr, "GET", "/v1/topics/absent", "");
      HeldRequest metrics(env, node.config.http.addr, "GET", "/metrics", "");
      io::sleep_for(10ms);
      strike();
      const io::Instant give_up = env.after(100s);
      while (node.view && !node.view->fsm.is_stopped() && env.now() < give_up) io::sleep_for(1ms);
      ASSERT_TRUE(node.view && node.view->fsm.is_stopped());
      io::sleep_for(1ms);
      ASSERT_TRUE(node.view);
      words.currency = node.view->replica.currency();
      words.is_running = node.view->raft.is_running();
      words.applied = node.view->fsm.applied_index();
      node.machine->process()->spawn("barrier", [&, &replica = node.view->replica] {
        words.barrier = replica.barrier(node.machine->process()->env().after(5s));
      });
      io::sleep_for(1ms);
      words.ready = ready.finish();
      words.write = write.finish();
      words.absent = absent.finish();
      words.metrics = metrics.finish();
      if (node.view) at_end();
    });
    return words;
  }
  void expect_stopped(size_t i, const LastWords& words) {
    EXPECT_TRUE(words.ready.starts_with("HTTP/1.1 503 ")) << words.ready;
    EXPECT_TRUE(words.write.starts_with("HTTP/1.1 503 ")) << words.write;
    EXPECT_TRUE(words.absent.starts_with("HTTP/1.1 503 ")) << words.absent;
    EXPECT_NE(words.metrics.find("\nnarad_metastore_apply_stopped 1\n"), std::string::npos) << words.metrics;
    EXPECT_NE(words.metrics.find("\nnarad_metastore_apply_stalled 0\n"), std::string::npos);
    EXPECT_FALSE(words.is_running) << "it has left raft";
    EXPECT_EQ(words.currency, metastore::Currency::stopped);
    ASSERT_TRUE(words.barrier.has_value());
    EXPECT_TRUE(words.barrier->is(io::ErrorKind::busy));
    EXPECT_EQ(words.barrier->error().message, "metastore: stopped applying raft entries; this node leaves raft");
    EXPECT_TRUE(world.run_while([&] { return !nodes[i].exit_code.has_value(); }, world.now() + 30s));
    EXPECT_EQ(nodes[i].exit_code, 1);
    EXPECT_NE(nodes[i].reason.find("metastore: stopped applying raft entries: "), std::string::npos) << nodes[i].reason;
    world.run_for(1s);
  }
  // Of a node that does not run.
  raft::Index stored_index(size_t i) {
    raft::Index index = 0;
    nodes[i].machine->start([&index](io::Env& env) {
      auto held = metastore::Fsm::look(env);
      EXPECT_TRUE(held.ok() && held->is_trusted);
      index = held.ok() ? held->meta.state.applied_index : 0;
      return 0;
    });
    world.run_for(1s);
    return index;
  }
  // The value of a line of /metrics.
  std::string metric(size_t i, const std::string& name) {
    const std::string text = "\n" + ask(i, "GET", "/metrics").body;
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? "" : text.substr(at + name.size() + 2, text.find('\n', at + 1) - at - name.size() - 2);
  }
  size_t log_lines(size_t i, std::string_view text) {
    size_t count = 0;
    for (const io::sim::LogLine& line : nodes[i].machine->process()->log_lines()) {
      count += line.text.starts_with(text) ? 1 : 0;
    }
    return count;
  }
  bool run_until(const std::function<bool()>& condition, io::Duration limit = 60s) {
    return world.run_while([&] { return !condition(); }, world.now() + limit);
  }

  static Config::Tuning::Release next() { return {"next", metastore::kHypotheticalEntryType, false, true, {}}; }
  // A command of the type that only that release knows.
  static std::string hypothetical() {
    std::string bytes = metastore::encode_delete_topic("x");
    bytes[metastore::kEnvelopeHeaderBytes - 1] = static_cast<char>(metastore::kHypotheticalEntryType);
    return bytes;
  }
  bool proposes(size_t i, std::string command) {
    std::optional<Proposed> proposed;
    nodes[i].machine->process()->spawn("propose", [&, &proposer = nodes[i].view->proposer] {
      proposed = proposer.propose(std::move(command), nodes[i].machine->process()->env().after(5s));
    });
    (void)run_until([&] { return proposed.has_value() || !nodes[i].view; }, 10s);
    return proposed && proposed->outcome == Proposed::Outcome::applied;
  }
  void kill(size_t i) {
    nodes[i].machine->kill();
    nodes[i].view.reset();
    world.run_for(1ms);
  }
  void stop(size_t i) {
    nodes[i].stop->set();
    EXPECT_TRUE(run_until([&] { return nodes[i].exit_code.has_value(); }));
    world.run_for(1s);
  }
};

struct OneStoppedNode : StoppedNode {
  OneStoppedNode() : StoppedNode(1) {}
};

TEST_F(OneStoppedNode, AnUnknownEntryTypeEndsTheNodeEveryTimeAndIsNeverCounted) {
  start(0);
  await_leader();
  EXPECT_EQ(create(0, "before"), 201);
  std::string unknown = metastore::encode_create_topic(tests::make_topic("unknown"));
  unknown[6] = 1;  // type 257
  std::optional<Proposed> proposed;
  const LastWords words = last_words(0, [&] {
    nodes[0].machine->process()->spawn("propose", [&, &proposer = nodes[0].view->proposer] {
      proposed = proposer.propose(unknown, nodes[0].machine->process()->env().after(60s));
    });
  });
  expect_stopped(0, words);
  ASSERT_TRUE(proposed.has_value());
  EXPECT_EQ(proposed->outcome, Proposed::Outcome::unknown) << "it stands in the log, and may be applied one day";
  EXPECT_NE(words.metrics.find("\nnarad_metastore_apply_errors_total{kind=\"unknown_entry_type\"} 1\n"), std::string::npos);
  EXPECT_NE(nodes[0].reason.find("has entry type 257, which this build ("), std::string::npos) << nodes[0].reason;
  const raft::Index applied = words.applied;
  EXPECT_LT(applied, proposed->index);
  for (int life = 0; life < 2; ++life) {
    EXPECT_EQ(stored_index(0), applied);
    start(0);
    EXPECT_TRUE(run_until([&] { return nodes[0].exit_code.has_value(); }));
    EXPECT_EQ(nodes[0].exit_code, 1);
    world.run_for(1s);
  }
}

TEST_F(StoppedNode, AWriteRefusedForTooLongEndsTheNodeAndTheEntryAppliesOnceThereIsRoom) {
  start_all();
  const size_t struck = await_leader();
  const size_t other = (struck + 1) % 3;
  world.run_for(1s);
  EXPECT_EQ(create(struck, "before"), 201);
  world.run_for(1s);
  nodes[struck].machine->volume().set_rates({FaultRates{.prefix = "fsm.db/", .no_space_ppm = 1'000'000}});
  // Committed by all, applied by two: whether the leader that cannot apply it can say so is another matter.
  (void)create(other, "refused-there");
  EXPECT_TRUE(run_until([&] { return leader().has_value() && *leader() != struck; }, 10s)) << "the leader gives way";
  world.run_for(1s);
  EXPECT_EQ(ask(other, "GET", "/v1/topics/refused-there").status, 200);
  EXPECT_EQ(metric(struck, "narad_metastore_apply_stalled"), "1");
  EXPECT_NE(metric(struck, "narad_metastore_apply_errors_total{kind=\"storage\"}"), "0");
  const LastWords words = last_words(struck, [] {});
  expect_stopped(struck, words);
  EXPECT_NE(nodes[struck].reason.find(" to fsm.db after retrying for "), std::string::npos) << nodes[struck].reason;
  EXPECT_EQ(stored_index(struck), words.applied);
  nodes[struck].machine->volume().set_rates({});
  start(struck);
  EXPECT_TRUE(run_until([&] { return nodes[struck].view && nodes[struck].view->replica.has_caught_up(); }));
  EXPECT_EQ(ask(struck, "GET", "/v1/topics/refused-there").status, 200);
  EXPECT_EQ(nodes[struck].view->fsm.digest(), nodes[other].view->fsm.digest());
  EXPECT_EQ(create(struck, "after"), 201);
}

TEST_F(OneStoppedNode, AFailedSyncEndsTheNodeAtOnceAlthoughNothingIsWrittenAnyMore) {
  start(0);
  await_leader();
  EXPECT_EQ(create(0, "before"), 201);
  world.run_for(2s);
  const LastWords words = last_words(0, [&] {
    nodes[0].machine->volume().set_rates({FaultRates{.prefix = "fsm.db/", .sync_error_ppm = 1'000'000}});
    nodes[0].machine->process()->spawn("flush", [&fsm = nodes[0].view->fsm] { (void)fsm.flush(); });
  });
  expect_stopped(0, words);
  nodes[0].machine->volume().set_rates({});
  start(0);
  EXPECT_TRUE(run_until([&] { return nodes[0].view && nodes[0].view->replica.has_caught_up(); }));
  EXPECT_EQ(ask(0, "GET", "/v1/topics/before").status, 200);
}

TEST_F(StoppedNode, ALeaderWhoseMetastoreStoppedLeavesRaftAtOnceAndHandsNothingOver) {
  start_all();
  const size_t struck = await_leader();
  world.run_for(1s);
  EXPECT_EQ(create(struck, "before"), 201);
  world.run_for(2s);
  const raft::Term term = nodes[struck].view->raft.core().term();
  size_t transfers = 0;
  const LastWords words = last_words(struck, [&] {
    nodes[struck].machine->volume().set_rates({FaultRates{.prefix = "fsm.db/", .sync_error_ppm = 1'000'000}});
    nodes[struck].machine->process()->spawn("flush", [&fsm = nodes[struck].view->fsm] { (void)fsm.flush(); });
  }, [&] { transfers = log_lines(struck, "leadership transfer"); });
  expect_stopped(struck, words);
  EXPECT_EQ(transfers, 0u);
  EXPECT_NE(nodes[struck].reason.find("fsm.db failed while it wrote in the background"), std::string::npos) << nodes[struck].reason;
  EXPECT_TRUE(run_until([&] { return leader().has_value(); }, 10s)) << "the others elect one of them";
  EXPECT_GT(nodes[*leader()].view->raft.core().term(), term);
  nodes[struck].machine->volume().set_rates({});
  start(struck);
  EXPECT_TRUE(run_until([&] { return nodes[struck].view && nodes[struck].view->replica.has_caught_up(); }));
  EXPECT_EQ(ask(struck, "GET", "/v1/topics/before").status, 200);
}

TEST_F(OneStoppedNode, AFlushThatFailedInTheBackgroundIsMadeGoodWithoutAWrite) {
  start(0);
  await_leader();
  EXPECT_EQ(create(0, "before"), 201);
  world.run_for(2s);
  io::sim::Volume& volume = nodes[0].machine->volume();
  volume.script({.action = io::sim::FaultAction::no_space, .op = io::sim::DiskOp::create, .prefix = "fsm.db/"});
  std::optional<io::Status> flushed;
  nodes[0].machine->process()->spawn("flush", [&, &fsm = nodes[0].view->fsm] { flushed = fsm.flush(); });
  EXPECT_TRUE(run_until([&] { return flushed.has_value(); }));
  EXPECT_FALSE(flushed->ok());
  EXPECT_EQ(volume.scripted_left(), 0u);
  const raft::Index last = nodes[0].view->raft.core().last_index();
  EXPECT_TRUE(run_until([&] { return log_lines(0, "metastore: fsm.db works again") == 1; }, 5s));
  EXPECT_EQ(log_lines(0, "metastore: fsm.db failed while it wrote in the background; opening it anew"), 1u);
  EXPECT_EQ(log_lines(0, "metastore: could not write raft entry"), 0u);
  EXPECT_EQ(nodes[0].view->raft.core().last_index(), last) << "nothing was written meanwhile";
  EXPECT_EQ(nodes[0].view->fsm.stats().errors_storage, 1u);
  EXPECT_FALSE(nodes[0].view->fsm.stats().is_stalled);
  EXPECT_EQ(nodes[0].view->fsm.durable_index(), nodes[0].view->fsm.applied_index()) << "opening has flushed";
  EXPECT_EQ(ask(0, "GET", "/v1/topics/before").status, 200);
  EXPECT_EQ(create(0, "after"), 201);
  EXPECT_EQ(log_lines(0, "metastore: could not write raft entry"), 0u) << "and no write has to find out";
  EXPECT_FALSE(nodes[0].exit_code.has_value());
}

TEST_F(OneStoppedNode, ABackgroundThatFailsForTooLongEndsTheNode) {
  start(0);
  await_leader();
  EXPECT_EQ(create(0, "before"), 201);
  world.run_for(2s);
  const LastWords words = last_words(0, [&] {
    nodes[0].machine->volume().set_rates({FaultRates{.prefix = "fsm.db/", .no_space_ppm = 1'000'000}});
    nodes[0].machine->process()->spawn("flush", [&fsm = nodes[0].view->fsm] { (void)fsm.flush(); });
  });
  expect_stopped(0, words);
  EXPECT_NE(nodes[0].reason.find("fsm.db failed while it wrote in the background after retrying for "), std::string::npos)
      << nodes[0].reason;
}

// ---- Of a release that is too old ------------------------------------------------------------------------------------------------

TEST_F(StoppedNode, AnImageOfANewerReleaseEndsANodeThatIsTooOldForIt) {
  for (Node& node : nodes) {
    node.config.cluster.raft_snapshot_threshold = 4;
    node.config.cluster.raft_snapshot_interval = 1s;
    node.config.cluster.raft_trailing_logs = 0;
    node.config.tuning.raft_segment_bytes = 4096;
  }
  start_all();
  const size_t first = await_leader();
  const size_t f = (first + 1) % 3;
  EXPECT_EQ(create(first, "before"), 201);
  world.run_for(1s);
  const raft::Index held = nodes[f].view->fsm.applied_index();
  kill(f);
  // The others are of the next release from now on, and use what it brings.
  for (size_t i = 0; i < 3; ++i) {
    if (i == f) continue;
    stop(i);
    nodes[i].config.tuning.release = next();
  }
  for (size_t i = 0; i < 3; ++i) {
    if (i != f) start(i);
  }
  const size_t leader = await_leader();
  world.run_for(1s);
  EXPECT_TRUE(proposes(leader, hypothetical()));
  const auto is_cut = [&] { return nodes[leader].view->raft.status().log_base > held; };
  for (int i = 0; i < 100 && !is_cut(); ++i) {
    EXPECT_EQ(create(leader, "t" + std::to_string(i)), 201);
    world.run_for(500ms);
  }
  ASSERT_TRUE(is_cut()) << "an image is all that helps it";
  for (size_t i = 0; i < 3; ++i) {
    if (i != f) world.network().cut_both(*nodes[i].machine, *nodes[f].machine);
  }
  start(f);
  ASSERT_TRUE(run_until([&] { return nodes[f].view.has_value(); }, 10s));
  const LastWords words = last_words(f, [&] {
    for (size_t i = 0; i < 3; ++i) {
      if (i != f) world.network().heal_both(*nodes[i].machine, *nodes[f].machine);
    }
  });
  expect_stopped(f, words);
  EXPECT_NE(nodes[f].reason.find("metastore: stopped applying raft entries: "), std::string::npos) << nodes[f].reason;
  EXPECT_NE(nodes[f].reason.find("holds raft entry type 38, written by a newer Narad release"), std::string::npos) << nodes[f].reason;
  EXPECT_NE(words.metrics.find("\nnarad_metastore_apply_errors_total{kind=\"newer_database\"} 1\n"), std::string::npos);
  EXPECT_EQ(stored_index(f), held) << "nothing of it is taken";
  EXPECT_EQ(create(leader, "after"), 201) << "the others go on";
}

TEST_F(StoppedNode, AnEntryThatOnlyTheLeaderDoesNotKnowEndsTheLeader) {
  for (Node& node : nodes) node.config.tuning.release = next();
  start_all();
  const size_t old = await_leader();
  world.run_for(1s);
  EXPECT_EQ(create(old, "before"), 201);
  stop(old);
  nodes[old].config.tuning.release = {};
  start(old);
  ASSERT_TRUE(run_until([&] { return nodes[old].view && nodes[old].view->replica.has_caught_up(); }));
  for (int tries = 0; tries < 20 && leader() != old; ++tries) {
    const size_t now = await_leader();
    if (now == old) break;
    nodes[now].machine->process()->spawn("transfer", [&, now, &raft = nodes[now].view->raft] {
      (void)raft.transfer_leadership(nodes[old].config.cluster.node_id, nodes[now].machine->process()->env().after(2s));
    });
    world.run_for(3s);
  }
  ASSERT_EQ(leader(), old);
  const raft::Index applied = nodes[old].view->fsm.applied_index();
  const LastWords words = last_words(old, [&] {
    nodes[old].machine->process()->spawn("propose", [&, &proposer = nodes[old].view->proposer] {
      (void)proposer.propose(hypothetical(), nodes[old].machine->process()->env().after(5s));
    });
  });
  expect_stopped(old, words);
  EXPECT_NE(nodes[old].reason.find("has entry type 38, which this build ("), std::string::npos) << nodes[old].reason;
  EXPECT_EQ(stored_index(old), applied) << "it is not counted";
  ASSERT_TRUE(run_until([&] { return leader().has_value(); }, 10s));
  EXPECT_EQ(create(*leader(), "after"), 201) << "the others know it, and go on";
  EXPECT_EQ(ask(*leader(), "GET", "/v1/topics/before").status, 200);
  // It ends every time until the right release runs.
  start(old);
  EXPECT_TRUE(run_until([&] { return nodes[old].exit_code.has_value(); }));
  EXPECT_EQ(nodes[old].exit_code, 1);
  world.run_for(1s);
  nodes[old].config.tuning.release = next();
  start(old);
  EXPECT_TRUE(run_until([&] { return nodes[old].view && nodes[old].view->replica.has_caught_up(); }));
}

}  // namespace
}  // namespace engine
