// Each row of the restart table (raft/restart.h) reached by real steps: a server of its own cluster with the production stores and
// fsm.db, whose files are lost, restored from an older moment, exchanged, or written by another program between two lives.

#include "engine/metastore/fsm_home.h"

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "engine/metastore/database_options.h"
#include "io/sim/machine.h"
#include "io/sim/switches.h"
#include "io/sim/volume.h"
#include "io/sim/world.h"
#include "raft/server.h"
#include "tests/support/topics.h"

namespace {

using namespace engine::metastore;
using namespace std::chrono_literals;
using raft::RestartRow;
using Action = raft::RestartDecision::Action;
using io::sim::FaultAction;

// What a start leaves, whichever way it came there.
struct End {
  raft::Index applied = 0;  // by the database
  uint64_t digest = 0;
  raft::Index base = 0;  // of the log
  raft::Index last = 0;
  raft::Index snapshot = 0;
  raft::Term term = 0;
  bool is_rebuilding = false;

  friend bool operator==(const End&, const End&) = default;
};

void PrintTo(const End& end, std::ostream* out) {
  *out << "applied " << end.applied << " digest " << end.digest << " log after " << end.base << " to " << end.last << " snapshot "
       << end.snapshot << " term " << end.term << (end.is_rebuilding ? " rebuilding" : "");
}

struct HomeTest : testing::Test {
  // What became of a start.
  struct Start {
    std::optional<RestartRow> row;
    std::string refusal;
    uint64_t mutations = 0;  // by it
    size_t topics = 0;       // at its end
    raft::StoreId store;
    bool is_rebuilding = false;
    size_t errors = 0;  // logged while it was opened, refusals left aside
    size_t set_asides = 0;
    bool is_its_own = false;  // its rows are those that its index stands for
    End end;
  };

  io::sim::Switchboard board;
  io::sim::SwitchboardGuard guard{&board};
  io::sim::World world{31};
  io::sim::Machine& machine = add("n1");
  bool is_joining = false;
  FsmSettings settings{.build = "narad test", .flush_bytes = 2000};
  raft::Index snapshot_threshold = 1'000'000;
  int written = 0;

  io::sim::Machine& add(std::string name) {
    io::sim::MachineSettings made;
    made.name = std::move(name);
    return world.add_machine(made);
  }

  // A life that writes `topics` topics more, or only starts.
  Start live(int topics, io::sim::Machine* where = nullptr) {
    io::sim::Machine& on = where != nullptr ? *where : machine;
    Start start;
    const uint64_t mutations = on.volume().mutations();
    on.start([&](io::Env& env) {
      raft::ServerOptions options;
      options.id = "n";
      options.address = "n:7943";
      options.is_joining = is_joining;
      if (!is_joining) {
        options.bootstrap = raft::bootstrap_configuration({{"n", "n:7943"}});
      }
      options.log.segment_bytes = 4096;
      options.log.fill_step_bytes = 4096;
      options.snapshots.threshold = snapshot_threshold;
      options.snapshots.interval = 20ms;
      options.snapshots.trailing = 0;
      options.snapshots.store.chunk_bytes = 4096;
      FsmHome home(env, settings);
      raft::RaftServer server(env, options);
      io::Status opened = server.read();
      if (opened.ok()) {
        opened = server.open(home);
      }
      if (server.decision()) {
        start.row = server.decision()->row;
      }
      for (const io::sim::LogLine& line : on.process()->log_lines()) {
        start.errors += line.level == io::LogLevel::error && line.text != "raft: start refused" ? 1 : 0;
        start.set_asides += line.text.starts_with("metastore: set aside fsm.db as fsm.db.stale") ? 1 : 0;
      }
      if (!opened.ok()) {
        start.refusal = opened.error().message;
        return 1;
      }
      start.store = server.core().store();
      start.is_rebuilding = server.core().is_rebuilding();
      start.end = {home.fsm().applied_index(), home.fsm().digest(),        server.core().log().base_index(), server.core().last_index(),
                   server.core().snapshot().index, server.core().term(), start.is_rebuilding};
      if (topics > 0) {
        io::with_scope([&](io::Scope& scope) {
          scope.spawn("raft", [&] { server.run(); });
          const int last = written + topics;
          while (written < last) {
            const std::string name = "t" + std::to_string(written);
            const raft::Proposed done = server.propose(encode_create_topic(tests::make_topic(name)), env.after(5s));
            if (done.outcome == raft::Outcome::not_leader) {
              io::sleep_for(20ms);
              continue;
            }
            EXPECT_TRUE(done.ok()) << to_string(done.outcome) << " " << done.reason;
            ++written;
          }
          // Long enough for a snapshot that is due, and the compaction behind it.
          io::sleep_for(200ms);
          server.stop();
          while (!server.stopped().is_set()) {
            io::sleep_for(10ms);
          }
        });
      }
      start.topics = home.fsm().list_topics("", 1000)->size();
      auto audit = home.fsm().audit();
      start.is_its_own = audit->digest_of_rows == audit->stored.digest;
      home.fsm().close();
      return 0;
    });
    world.run_while([&] { return on.process() != nullptr; }, world.now() + 300s);
    EXPECT_EQ(on.process(), nullptr);
    EXPECT_TRUE(world.violations().empty());
    start.mutations = on.volume().mutations() - mutations;
    return start;
  }

  void lose(std::string_view path) { machine.volume().restore(path, {}); }
  // Another program's write.
  void write_foreign() {
    machine.start([](io::Env& env) {
      auto done = env.store_lane.run([&env] {
        rocksdb::DB* raw = nullptr;
        auto held = rocksdb::DB::Open(database_options(env.kv.env(), false, block_cache(1 << 20)),
                                      env.kv.path("fsm.db/000001"), &raw);
        EXPECT_TRUE(held.ok());
        std::unique_ptr<rocksdb::DB> db(raw);
        env.kv.pump();
        EXPECT_TRUE(db->Put(rocksdb::WriteOptions(), "users/foreign", "x").ok());
      });
      EXPECT_TRUE(done.ok());
      return 0;
    });
    world.run_while([&] { return machine.process() != nullptr; }, world.now() + 10s);
  }
  // Lives until the log no longer begins at 1. The live database is then still the first one.
  void fill_and_compact() {
    snapshot_threshold = 5;
    live(60);
    EXPECT_EQ(machine.volume().copy("raft/snapshots").files.size(), 2u);
  }
  void expect_refused(RestartRow row, std::string_view text) {
    const Start start = live(0);
    ASSERT_TRUE(start.row.has_value());
    EXPECT_EQ(*start.row, row) << to_string(*start.row);
    EXPECT_NE(start.refusal.find(text), std::string::npos) << start.refusal;
    EXPECT_EQ(start.mutations, 0u) << "nothing is touched";
  }
  void expect_started(RestartRow row, size_t set_asides = 0, size_t errors = 0) {
    const Start start = live(1);
    ASSERT_TRUE(start.row.has_value()) << start.refusal;
    EXPECT_EQ(*start.row, row) << to_string(*start.row);
    EXPECT_EQ(start.refusal, "");
    EXPECT_EQ(start.topics, static_cast<size_t>(written));
    EXPECT_EQ(start.set_asides, set_asides);
    EXPECT_EQ(start.errors, errors);
    EXPECT_TRUE(start.is_its_own);
  }
};

TEST_F(HomeTest, NothingStartsAndWhatIsHeldIsKept) {
  expect_started(RestartRow::empty);
  expect_started(RestartRow::held);
  snapshot_threshold = 5;
  live(20);
  expect_started(RestartRow::held);
}

TEST_F(HomeTest, AnOlderReleaseIsRefused) {
  live(3);
  settings.newest_type = 0;
  expect_refused(RestartRow::newer_release, "fsm: fsm.db holds raft entry type 1, written by a newer Narad release than this build "
                                            "(narad test, which knows entry types up to 0); run that release or newer");
  snapshot_threshold = 5;
  settings.newest_type = kNewestEntryType;
  live(20);
  lose("fsm.db");
  settings.newest_type = 0;
  expect_refused(RestartRow::newer_release, "the raft snapshot at index ");
}

TEST_F(HomeTest, ALostVoteRecordIsRefused) {
  live(3);
  machine.volume().tree().erase("raft/stable");
  const Start start = live(0);
  EXPECT_NE(start.refusal.find("the votes of this server are lost"), std::string::npos) << start.refusal;
  EXPECT_EQ(start.mutations, 0u);
}

TEST_F(HomeTest, LostRaftStateIsRefusedAndSetAsideByAJoiner) {
  const Start before = live(5);
  lose("raft");
  expect_refused(RestartRow::no_raft_state, "fsm.db holds metadata, but there is no raft state beside it");
  is_joining = true;
  const Start joined = live(0);
  EXPECT_EQ(joined.row, RestartRow::no_raft_state);
  EXPECT_EQ(joined.refusal, "");
  EXPECT_EQ(joined.set_asides, 1u);
  EXPECT_EQ(joined.topics, 0u);
  EXPECT_NE(joined.store, before.store) << "a new volume";
  EXPECT_FALSE(machine.volume().copy("fsm.db.stale").files.empty());
}

TEST_F(HomeTest, AnotherNodesDatabaseIsRefusedAndResetByAJoiner) {
  io::sim::Machine& other = add("n2");
  live(4, &other);
  written = 0;
  const Start before = live(4);
  lose("fsm.db");
  machine.volume().restore("fsm.db", other.volume().copy("fsm.db"));
  expect_refused(RestartRow::foreign, "fsm.db belongs to store ");
  is_joining = true;
  const Start joined = live(0);
  EXPECT_EQ(joined.row, RestartRow::foreign);
  EXPECT_EQ(joined.refusal, "");
  EXPECT_EQ(joined.topics, 0u);
  EXPECT_TRUE(joined.is_rebuilding);
  EXPECT_EQ(joined.store, before.store);
  // And stays so, whoever starts it.
  is_joining = false;
  const Start again = live(0);
  EXPECT_EQ(again.row, RestartRow::empty);
  EXPECT_TRUE(again.is_rebuilding) << "a term is on record: it does not bootstrap";
}

TEST_F(HomeTest, OlderRaftStateIsRefusedAndRebuiltFromByAJoiner) {
  live(3);
  const auto older = machine.volume().copy("raft");
  live(4);
  lose("raft");
  machine.volume().restore("raft", older);
  expect_refused(RestartRow::ahead, "raft state is older than fsm.db");
  is_joining = true;
  const Start joined = live(0);
  EXPECT_EQ(joined.row, RestartRow::ahead);
  EXPECT_EQ(joined.refusal, "");
  EXPECT_EQ(joined.set_asides, 1u);
  EXPECT_EQ(joined.topics, 0u) << "its entries are applied once they are committed again";
}

TEST_F(HomeTest, AnOlderDatabaseIsReplayedOrRestoredOver) {
  live(3);
  const auto older = machine.volume().copy("fsm.db");
  live(4);
  lose("fsm.db");
  machine.volume().restore("fsm.db", older);
  expect_started(RestartRow::held);
  snapshot_threshold = 5;
  live(20);
  lose("fsm.db");
  machine.volume().restore("fsm.db", older);
  expect_started(RestartRow::behind);
}

TEST_F(HomeTest, ALostDatabaseIsReplayedOrRestored) {
  live(3);
  lose("fsm.db");
  expect_started(RestartRow::replayed);
  fill_and_compact();
  lose("fsm.db");
  expect_started(RestartRow::behind);
}

TEST_F(HomeTest, AForeignWriteIsRebuiltFromTheLogOrRestoredOver) {
  live(3);
  write_foreign();
  expect_started(RestartRow::rebuilt, 1);
  fill_and_compact();
  write_foreign();
  expect_started(RestartRow::behind);
  expect_started(RestartRow::held);
}

TEST_F(HomeTest, AForeignWriteBesideACutLogIsReplayedOnto) {
  fill_and_compact();
  write_foreign();
  lose("raft/snapshots");
  const Start start = live(0);
  EXPECT_EQ(start.row, RestartRow::replayed_onto) << start.refusal;
  EXPECT_EQ(start.errors, 1u);
  EXPECT_EQ(start.set_asides, 0u);
  EXPECT_EQ(start.topics, static_cast<size_t>(written));
  EXPECT_EQ(live(0).row, RestartRow::held) << "its rows were declared its own";
}

TEST_F(HomeTest, AHoleIsRefusedAndResetByAJoiner) {
  fill_and_compact();
  lose("raft/snapshots");
  lose("fsm.db");
  expect_refused(RestartRow::hole, "entries between them are missing; refusing to start");
  is_joining = true;
  const Start joined = live(0);
  EXPECT_EQ(joined.row, RestartRow::hole);
  EXPECT_EQ(joined.refusal, "");
  EXPECT_TRUE(joined.is_rebuilding);
}

// ---- A start that something ends, at every file operation of it ------------------------------------------------------------------

struct HomeSweep : HomeTest {
  // From the files as they are: whatever strikes a start of that row, the next one, with room, ends in the same state. `last`: of raft's log.
  void sweep(RestartRow row, raft::Index last = 0) {
    const auto before = machine.volume().copy("");
    const auto again = [&] {
      world.run_for(1s);
      machine.volume().clear_scripted();
      machine.volume().wipe();
      machine.volume().restore("", before);
    };
    const Start undisturbed = live(0);
    ASSERT_EQ(undisturbed.row, row) << undisturbed.refusal;
    ASSERT_EQ(undisturbed.refusal, "");
    ASSERT_GT(undisturbed.mutations, 5u);
    for (const FaultAction action : {FaultAction::kill, FaultAction::power_loss, FaultAction::no_space, FaultAction::error}) {
      size_t struck = 0;
      for (uint64_t nth = 1; nth <= undisturbed.mutations; ++nth) {
        SCOPED_TRACE("action " + std::to_string(static_cast<int>(action)) + " at operation " + std::to_string(nth));
        again();
        machine.volume().script({.action = action, .op = std::nullopt, .prefix = "", .nth = nth});
        (void)live(0);
        struck += machine.volume().scripted_left() == 0 ? 1 : 0;
        machine.volume().clear_scripted();
        world.run_for(1s);
        const Start next = live(0);
        ASSERT_EQ(next.refusal, "");
        EXPECT_TRUE(next.is_its_own);
        // A reset that has set the database aside may leave raft's own state whole: the node goes on by it, and gives no vote all the same.
        const bool goes_by_raft = row == RestartRow::foreign && next.end.is_rebuilding && next.end.base == 0 && next.end.last == last;
        if (goes_by_raft) continue;
        EXPECT_EQ(next.end, undisturbed.end);
        EXPECT_EQ(next.topics, undisturbed.topics);
      }
      EXPECT_GT(struck, 5u);
    }
  }
};

TEST_F(HomeSweep, Row5AResetOfWhatIsNotItsOwn) {
  io::sim::Machine& other = add("n2");
  live(4, &other);
  written = 0;
  snapshot_threshold = 5;
  live(20);
  const raft::Index last = live(0).end.last;
  lose("fsm.db");
  machine.volume().restore("fsm.db", other.volume().copy("fsm.db"));
  is_joining = true;
  sweep(RestartRow::foreign, last);
}

TEST_F(HomeSweep, Row6ADatabaseAheadIsSetAside) {
  live(3);
  const auto older = machine.volume().copy("raft");
  live(4);
  lose("raft");
  machine.volume().restore("raft", older);
  is_joining = true;
  sweep(RestartRow::ahead);
}

TEST_F(HomeSweep, Row6ADatabaseAheadIsRestoredOver) {
  snapshot_threshold = 5;
  live(20);
  const auto older = machine.volume().copy("raft");
  live(4);
  lose("raft");
  machine.volume().restore("raft", older);
  is_joining = true;
  sweep(RestartRow::ahead);
}

TEST_F(HomeSweep, Row8AnOlderDatabaseIsRestoredOver) {
  live(3);
  const auto older = machine.volume().copy("fsm.db");
  snapshot_threshold = 5;
  live(20);
  lose("fsm.db");
  machine.volume().restore("fsm.db", older);
  sweep(RestartRow::behind);
}

TEST_F(HomeSweep, Row10ADatabaseThatIsNotTrustedIsRebuilt) {
  live(3);
  write_foreign();
  sweep(RestartRow::rebuilt);
}

TEST_F(HomeSweep, Row11TheLogIsReplayedOntoIt) {
  fill_and_compact();
  write_foreign();
  lose("raft/snapshots");
  sweep(RestartRow::replayed_onto);
}

TEST_F(HomeTest, WithAForeignWriteUnnoticedItStaysInTheRows) {
  live(3);
  write_foreign();
  board.off.insert(io::Defence::foreign_write_unnoticed);
  const Start start = live(0);
  EXPECT_EQ(start.row, RestartRow::held);
  EXPECT_FALSE(start.is_its_own);
}

TEST_F(HomeTest, WithoutItsDefenceItBootstrapsOverData) {
  live(3);
  lose("raft");
  board.off.insert(io::Defence::bootstrap_over_data);
  const Start start = live(0);
  EXPECT_EQ(start.refusal, "");
  EXPECT_EQ(start.topics, 3u) << "topics that no entry of the new cluster has created";
}

}  // namespace
