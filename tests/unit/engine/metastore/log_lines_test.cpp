// The lines that operators search for: each with its level, its text and the names of its fields (narad/log-lines.md, "Metastore").
//
// Not here, because they cannot come about in this metastore: "could not record a consumed raft entry as applied" (the index of a
// refused entry stands in the batch that its neighbours are in; if that cannot be written, the write is retried, and then the node stops).
// Those of the gate that holds new entry types back: unit/engine/cluster/cluster_gate_test.cpp.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/metastore/fsm.h"
#include "engine/metastore/fsm_home.h"
#include "io/log.h"
#include "io/sim/machine.h"
#include "io/sim/switches.h"
#include "io/sim/volume.h"
#include "io/sim/world.h"
#include "raft/restart.h"
#include "tests/support/images.h"
#include "tests/support/topics.h"

namespace {

using namespace engine::metastore;
using namespace std::chrono_literals;
using io::sim::DiskOp;
using io::sim::FaultAction;
using tests::create_entry;

struct Line {
  io::LogLevel level;
  std::string text;
  std::vector<std::string> fields;

  friend bool operator==(const Line&, const Line&) = default;
};

void PrintTo(const Line& line, std::ostream* out) {
  *out << io::to_string(line.level) << " " << line.text;
  for (const std::string& field : line.fields) *out << " " << field;
}

class KeptLog final : public io::Log {
 public:
  void write(io::LogLevel level, std::string_view text, const std::vector<io::LogField>& fields) override {
    Line line{level, std::string(text), {}};
    for (const io::LogField& field : fields) line.fields.emplace_back(field.key);
    lines.push_back(std::move(line));
  }
  bool enabled(io::LogLevel) const override { return true; }
  std::vector<Line> lines;
};

struct MetastoreLogLines : testing::Test {
  io::sim::Switchboard board;
  io::sim::SwitchboardGuard guard{&board};
  io::sim::World world{5};
  io::sim::Machine& machine = world.add_machine([] {
    io::sim::MachineSettings settings;
    settings.name = "n1";
    return settings;
  }());

  // What an open metastore that applied "a" at index 1 logs while `body` runs.
  std::vector<Line> lines(const std::function<void(Fsm&)>& body) {
    KeptLog log;
    machine.start([&](io::Env& real) {
      io::Env env{real.clock, real.random, real.disk, real.net, real.store_lane, real.pool, real.kv, log};
      FsmSettings settings;
      settings.build = "a build";
      io::Result<std::unique_ptr<Fsm>> fsm = Fsm::open(env, settings);
      EXPECT_TRUE(fsm.ok()) << fsm.error().to_text();
      if (fsm.ok()) {
        EXPECT_TRUE((*fsm)->apply({create_entry(1, "a")}).ok());
        log.lines.clear();
        body(**fsm);
        (*fsm)->close();
      }
      return 0;
    });
    EXPECT_TRUE(world.run_while([&] { return machine.process() != nullptr; }, world.now() + 600s));
    return log.lines;
  }
};

TEST_F(MetastoreLogLines, AnEntryThatCannotBeDecoded) {
  EXPECT_EQ(lines([](Fsm& fsm) { EXPECT_TRUE(fsm.apply({tests::make_entry(2, "no command")}).ok()); }),
            std::vector<Line>({{io::LogLevel::error, "metastore: consumed a raft entry it cannot decode", {"index", "error"}}}));
}

TEST_F(MetastoreLogLines, AnUnknownEntryTypeStopsTheNode) {
  std::string error;
  EXPECT_EQ(lines([&error](Fsm& fsm) {
              std::string unknown = encode_create_topic(tests::make_topic("b"));
              unknown[6] = 1;  // type 257
              const auto applied = fsm.apply({tests::make_entry(2, unknown)});
              ASSERT_FALSE(applied.ok());
              error = applied.error().message;
            }),
            std::vector<Line>({{io::LogLevel::error,
                                "metastore: stopped applying raft entries; this node leaves raft and exits",
                                {"index", "entry_type", "build", "error"}}}));
  EXPECT_NE(error.find("raft entry at index 2 has entry type 257, which this build (a build) does not know (it applies entry types 1 to " +
                       std::to_string(kNewestEntryType) + "): a newer Narad release proposed it"),
            std::string::npos)
      << error;
}

TEST_F(MetastoreLogLines, AnImageOfANewerReleaseStopsTheNode) {
  std::string image;
  (void)lines([&image](Fsm& fsm) {
    tests::MemorySink sink;
    EXPECT_TRUE(fsm.write_image(sink, 1).ok());
    image = sink.image;
  });
  // Of a release that knows no entry type at all.
  KeptLog log;
  std::string error;
  machine.start([&](io::Env& real) {
    io::Env env{real.clock, real.random, real.disk, real.net, real.store_lane, real.pool, real.kv, log};
    EXPECT_TRUE(Fsm::set_aside(env).ok());
    FsmSettings settings;
    settings.newest_type = 0;
    io::Result<std::unique_ptr<Fsm>> fsm = Fsm::open(env, settings);
    EXPECT_TRUE(fsm.ok());
    tests::MemorySource source(image);
    const io::Status checked = (*fsm)->check_image(source, 1);
    error = checked.ok() ? "" : checked.error().message;
    (*fsm)->close();
    return 0;
  });
  EXPECT_TRUE(world.run_while([&] { return machine.process() != nullptr; }, world.now() + 60s));
  EXPECT_EQ(log.lines, std::vector<Line>({{io::LogLevel::error,
                                           "metastore: stopped applying raft entries; this node leaves raft and exits",
                                           {"index", "entry_type", "build", "error"}}}));
  EXPECT_NE(error.find("the raft snapshot holds raft entry type 1, written by a newer Narad release"), std::string::npos) << error;
}

TEST_F(MetastoreLogLines, ARefusedWriteIsToldOnceAndSoIsItsSuccess) {
  EXPECT_EQ(lines([this](Fsm& fsm) {
              machine.volume().script({.action = FaultAction::no_space, .op = DiskOp::write, .prefix = "fsm.db/"});
              EXPECT_TRUE(fsm.apply({create_entry(2, "b")}).ok());
            }),
            std::vector<Line>({{io::LogLevel::warn,
                                "metastore: could not write raft entry; retrying",
                                {"index", "entry_type", "path", "error", "retry_for"}},
                               {io::LogLevel::info, "metastore: wrote raft entry on retry", {"index", "after"}}}));
}

TEST_F(MetastoreLogLines, AFlushThatFailedIsToldOnceAndSoIsItsSuccess) {
  EXPECT_EQ(lines([this](Fsm& fsm) {
              machine.volume().script({.action = FaultAction::no_space, .op = DiskOp::create, .prefix = "fsm.db/"});
              EXPECT_FALSE(fsm.flush().ok());
              EXPECT_TRUE(fsm.check_background().ok());
            }),
            std::vector<Line>({{io::LogLevel::warn,
                                "metastore: fsm.db failed while it wrote in the background; opening it anew",
                                {"path", "error", "retry_for"}},
                               {io::LogLevel::info, "metastore: fsm.db works again", {"after"}}}));
}

TEST_F(MetastoreLogLines, AWriteRefusedForTooLongStopsTheNode) {
  std::string error;
  const std::vector<Line> found = lines([&](Fsm& fsm) {
    machine.volume().set_capacity(machine.volume().used());
    const auto applied = fsm.apply({create_entry(2, "b")});
    machine.volume().set_capacity(8ULL << 30);
    ASSERT_FALSE(applied.ok());
    error = applied.error().message;
  });
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1], (Line{io::LogLevel::error,
                            "metastore: stopped applying raft entries; this node leaves raft and exits",
                            {"index", "entry_type", "build", "error"}}));
  EXPECT_NE(error.find("could not write raft entry at index 2 (entry type 1) to fsm.db after retrying for "), std::string::npos) << error;
}

TEST_F(MetastoreLogLines, ASnapshotIsDeferredWhileTheDatabaseIsAheadOfTheReplay) {
  EXPECT_EQ(lines([](Fsm& fsm) {
              ASSERT_TRUE(fsm.apply({create_entry(7, "b")}).ok());
              tests::MemorySink sink;
              EXPECT_TRUE(fsm.write_image(sink, 5).is(io::ErrorKind::busy));
            }),
            std::vector<Line>({{io::LogLevel::info,
                                "metastore: snapshot deferred: the database holds raft index 7 but the replay since the start has "
                                "reached only 5",
                                {}}}));
}

TEST_F(MetastoreLogLines, ASnapshotThatFindsNoRoom) {
  EXPECT_EQ(lines([](Fsm& fsm) {
              tests::MemorySink sink;
              sink.before_write = [] { return io::Status(io::fail(io::ErrorKind::no_space, "no room")); };
              EXPECT_TRUE(fsm.write_image(sink, 1).is(io::ErrorKind::no_space));
            }),
            std::vector<Line>({{io::LogLevel::error, "metastore: could not copy the database for a raft snapshot", {"error"}}}));
}

TEST_F(MetastoreLogLines, ADatabaseThatCannotBeCopiedForASnapshot) {
  const std::vector<Line> found = lines([this](Fsm& fsm) {
    for (raft::Index index = 2; index < 4000; ++index) {
      ASSERT_TRUE(fsm.apply({create_entry(index, "t" + std::to_string(index))}).ok());
    }
    ASSERT_TRUE(fsm.flush().ok());
    tests::MemorySink sink;
    machine.volume().script({.action = FaultAction::error, .op = DiskOp::read, .prefix = "fsm.db/"});
    EXPECT_FALSE(fsm.write_image(sink, 4000).ok());
  });
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.back(), (Line{io::LogLevel::error, "metastore: could not copy the database for a raft snapshot", {"error"}}));
}

// ---- Starts --------------------------------------------------------------------------------------------------------------------

TEST_F(MetastoreLogLines, WhatAStartMakesOfTheDatabase) {
  using Action = raft::RestartDecision::Action;
  using Row = raft::RestartRow;
  struct Case {
    const char* what;
    bool is_trusted;
    bool has_snapshot;
    Row row;
    Action action;
    std::vector<Line> expected;
  };
  const Case cases[] = {
      {"the snapshot is held", true, true, Row::held, Action::keep,
       {{io::LogLevel::info,
         "metastore: fsm.db already holds the latest raft snapshot; skipping its restore and the entries fsm.db holds",
         {"applied_index", "snapshot_index"}}}},
      {"nothing to skip", true, false, Row::held, Action::keep, {}},
      {"behind the snapshot", true, true, Row::behind, Action::restore,
       {{io::LogLevel::info,
         "metastore: restoring the latest raft snapshot over an older fsm.db",
         {"applied_index", "snapshot_index"}}}},
      {"an index that is not trusted", false, true, Row::behind, Action::restore,
       {{io::LogLevel::info,
         "metastore: fsm.db has no applied index this release can trust; restoring the latest raft snapshot over it",
         {"snapshot_index", "reason"}}}},
      {"nothing to rebuild from", false, false, Row::replayed_onto, Action::rebase,
       {{io::LogLevel::error,
         "metastore: fsm.db has no applied index this release can trust, there is no raft snapshot to restore and the raft log no "
         "longer starts at index 1; replaying the log onto fsm.db as it is",
         {"first_log_index", "last_log_index", "reason"}}}},
  };
  KeptLog log;
  machine.start([&](io::Env& real) {
    io::Env env{real.clock, real.random, real.disk, real.net, real.store_lane, real.pool, real.kv, log};
    FsmHome home(env, {});
    for (const Case& each : cases) {
      SCOPED_TRACE(each.what);
      log.lines.clear();
      raft::RestartFacts facts;
      facts.state_machine.holds_anything = true;
      facts.state_machine.is_trusted = each.is_trusted;
      facts.state_machine.index = 100;
      facts.log_last = 200;
      if (each.has_snapshot) facts.snapshot = raft::RestartFacts::Snapshot{150, 1, 1};
      raft::RestartDecision decision;
      decision.row = each.row;
      decision.action = each.action;
      home.decided(facts, decision);
      EXPECT_EQ(log.lines, each.expected);
    }
    return 0;
  });
  EXPECT_TRUE(world.run_while([&] { return machine.process() != nullptr; }, world.now() + 60s));
}

TEST_F(MetastoreLogLines, ADatabaseThatIsSetAside) {
  (void)lines([](Fsm&) {});
  KeptLog log;
  machine.start([&](io::Env& real) {
    io::Env env{real.clock, real.random, real.disk, real.net, real.store_lane, real.pool, real.kv, log};
    FsmHome home(env, {});
    EXPECT_TRUE(home.set_aside("why").ok());
    return 0;
  });
  EXPECT_TRUE(world.run_while([&] { return machine.process() != nullptr; }, world.now() + 60s));
  EXPECT_EQ(log.lines,
            std::vector<Line>({{io::LogLevel::warn,
                                "metastore: set aside fsm.db as fsm.db.stale and rebuilding it from the raft log; delete fsm.db.stale "
                                "once the node is ready",
                                {"reason", "stale"}}}));
}

}  // namespace
