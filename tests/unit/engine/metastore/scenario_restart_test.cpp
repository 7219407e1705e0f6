// Scenarios of snapshots, installs, restarts and damage: files that a kill, a loss of power, a backup or a flipped bit left at moments
// of their own, met step by step by servers with the production stores.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/metastore/kept_rows.h"
#include "io/sim/switches.h"
#include "tests/support/images.h"
#include "tests/support/metastore_world.h"
#include "tests/support/topics.h"

namespace {

using namespace engine::metastore;
using namespace std::chrono_literals;
using io::sim::DiskOp;
using io::sim::FaultAction;
using raft::RestartRow;
using tests::create_entry;
using tests::make_entry;
using tests::make_topic;
using tests::MetastoreWorld;

class RestartScenario : public testing::Test {
 protected:
  static CreateTopic create(int i) { return {make_topic("t" + std::to_string(i))}; }
  static size_t other_than(size_t i) { return (i + 1) % 3; }
  static void write_topics(MetastoreWorld& cluster, int from, int to) {
    for (int i = from; i < to; ++i) ASSERT_TRUE(cluster.writes(create(i))) << i;
  }
  // Long enough for a snapshot that is due, and the compaction behind it.
  static void rest(MetastoreWorld& cluster) { cluster.world.run_for(300ms); }
  // Slowly enough for a snapshot now and then.
  static void write_slowly(MetastoreWorld& cluster, int from, int to) {
    for (int i = from; i < to; i += 8) {
      ASSERT_NO_FATAL_FAILURE(write_topics(cluster, i, std::min(i + 8, to)));
      cluster.world.run_for(100ms);
    }
  }
  static void flip_a_bit(uint64_t seed, bool& has_led);
  static void take_snapshots(MetastoreWorld& cluster) { cluster.options.snapshots.threshold = 5; }

  // One machine and no raft: a process with an open metastore on it. True when `body` ran to its end.
  struct One {
    explicit One(uint64_t seed) : world(seed), machine(add(world)) {}
    static io::sim::Machine& add(io::sim::World& world) {
      io::sim::MachineSettings settings;
      settings.name = "n1";
      return world.add_machine(settings);
    }
    bool live(const std::function<void(Fsm&)>& body, FsmSettings settings = {}) {
      bool is_done = false;
      machine.start([&](io::Env& env) {
        auto fsm = Fsm::open(env, settings);
        EXPECT_TRUE(fsm.ok()) << (fsm.ok() ? "" : fsm.error().to_text());
        if (!fsm.ok()) return 1;
        body(**fsm);
        (*fsm)->close();
        is_done = true;
        return 0;
      });
      world.run_while([&] { return machine.process() != nullptr; }, world.now() + 300s);
      EXPECT_EQ(machine.process(), nullptr) << "it hangs";
      EXPECT_TRUE(world.violations().empty());
      return is_done;
    }
    io::sim::World world;
    io::sim::Machine& machine;
  };

  io::sim::Switchboard board;
  io::sim::SwitchboardGuard guard{&board};
};

// ---- One write, whole or not at all ----------------------------------------------------------------------------------------------

// Entries of one kind after another, with their digests; each changes several rows.
struct Story {
  std::vector<raft::Entry> entries;
  std::vector<uint64_t> digests{0};  // by index

  template <typename Command>
  void add(const Command& command) {
    entries.push_back(make_entry(entries.size() + 1, encode_command(command)));
    MemoryRows rows;
    Evaluation run = evaluate(rows, {}, entries, kNewestEntryType);
    EXPECT_EQ(decode_answer(run.answers.back())->code, Code::ok);
    digests.push_back(run.state.digest);
  }
};

// A parent with a schema, then children that are each made with a schema and a link in one entry.
Story linked_creates(int children) {
  Story story;
  story.add(CreateTopic{make_topic("parent")});
  story.add(PutSchema{"parent", 1, R"({"type":"object"})"});
  for (int i = 0; i < children; ++i) {
    const std::string name = "child" + std::to_string(i);
    story.add(CreateTopicLinked{make_topic(name), R"({ "type" : "object" })",
                                ParentLink{"parent", make_topic("parent").id, "e" + std::to_string(i), 0, {0, 0, 0}}});
  }
  return story;
}

// Scenario RS-06.
TEST_F(RestartScenario, AnEntryOfManyRowsIsThereWholeOrNotAtAllWhereverAKillStrikes) {
  const Story story = linked_creates(4);
  for (const FaultAction action : {FaultAction::kill, FaultAction::power_loss}) {
    bool is_struck = true;
    for (uint64_t nth = 1; is_struck; ++nth) {
      SCOPED_TRACE(nth);
      ASSERT_LT(nth, 200u);
      One one(6000 + nth);
      one.machine.volume().script({.action = action, .op = std::nullopt, .prefix = "fsm.db/000001/", .nth = nth});
      is_struck = !one.live([&](Fsm& fsm) {
        for (const raft::Entry& entry : story.entries) ASSERT_TRUE(fsm.apply({entry}).ok());
      }, {.flush_bytes = 900});
      one.machine.volume().clear_scripted();
      one.world.run_for(1ms);
      one.live([&](Fsm& fsm) {
        const raft::Index index = fsm.applied_index();
        ASSERT_LT(index, story.digests.size());
        EXPECT_EQ(fsm.audit()->digest_of_rows, story.digests[index]) << "half of an entry at index " << index;
        for (const raft::Entry& entry : story.entries) ASSERT_TRUE(fsm.apply({entry}).ok());
        EXPECT_EQ(fsm.audit()->digest_of_rows, story.digests.back());
      });
    }
  }
}

// Scenario PT-12.
TEST_F(RestartScenario, AfterAFailedWriteOfItsLogAndAKillRowsAndIndexAgree) {
  const Story story = linked_creates(8);
  size_t struck = 0;
  for (uint64_t refused = 1; refused <= 8; ++refused) {
    for (uint64_t killed = 1; killed <= 40; killed += 3) {
      SCOPED_TRACE("write " + std::to_string(refused) + " is refused, the kill comes at operation " + std::to_string(killed));
      One one(12'000 + 100 * refused + killed);
      io::sim::Volume& volume = one.machine.volume();
      raft::Index answered = 0;
      const bool is_done = one.live([&](Fsm& fsm) {
        volume.script({.action = FaultAction::no_space, .op = DiskOp::write, .prefix = "fsm.db/000001/", .nth = refused});
        volume.script({.action = FaultAction::kill, .op = std::nullopt, .prefix = "fsm.db/000001/", .nth = refused + killed});
        for (const raft::Entry& entry : story.entries) {
          if (!fsm.apply({entry}).ok()) return;
          answered = entry.index;
        }
      }, {.flush_bytes = 1200});
      struck += is_done ? 0 : 1;
      volume.clear_scripted();
      one.world.run_for(1ms);
      one.live([&](Fsm& fsm) {
        const raft::Index index = fsm.applied_index();
        ASSERT_LT(index, story.digests.size());
        EXPECT_GE(index, answered) << "what was answered is there";
        EXPECT_EQ(fsm.digest(), story.digests[index]);
        EXPECT_EQ(fsm.audit()->digest_of_rows, story.digests[index]) << "rows of another moment than index " << index;
      });
    }
  }
  EXPECT_GT(struck, 40u);
}

// ---- Snapshots and the log behind them -------------------------------------------------------------------------------------------

// Scenario PT-13.
TEST_F(RestartScenario, TheLogIsNotCutBeyondWhatTheDatabaseHoldsAfterALossOfPower) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    MetastoreWorld cluster(1300 + seed, 1, 1);
    cluster[0].settings.flush_bytes = 8u << 20;  // nothing is flushed by itself
    cluster.lead();
    write_topics(cluster, 0, 40);
    take_snapshots(cluster);
    cluster.kill(0);
    cluster.start(0);
    ASSERT_EQ(cluster.await_leader(), 0);
    write_slowly(cluster, 40, 60 + static_cast<int>(seed) * 3);
    const raft::Index base = cluster[0].server->status().log_base;
    ASSERT_GT(base, 40u) << "the log was cut";
    cluster[0].machine->power_loss();
    cluster.world.run_for(1s);
    raft::Index held = 0;
    cluster[0].machine->start([&held](io::Env& env) {
      const auto found = Fsm::look(env);
      EXPECT_TRUE(found.ok() && found->is_trusted);
      if (found.ok()) held = found->meta.state.applied_index;
      return 0;
    });
    ASSERT_TRUE(cluster.await_end(0, 10s));
    EXPECT_GE(held, base) << "the database alone reaches the log";
    cluster.start(0);
    ASSERT_EQ(cluster.await_leader(), 0) << cluster[0].failure;
    EXPECT_NE(cluster[0].row, RestartRow::hole);
    ASSERT_TRUE(cluster.all_level());
    for (int i = 0; i < 60 + static_cast<int>(seed) * 3; ++i) EXPECT_TRUE(cluster.has_topic(0, "t" + std::to_string(i)));
  }
}

// Scenario SC-01.
TEST_F(RestartScenario, NoSnapshotIsTakenOrSentWhileTheDatabaseIsAheadOfTheReplay) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    MetastoreWorld cluster(100 + seed);
    const size_t leader = cluster.lead();
    const size_t lagging = other_than(leader);
    const size_t other = other_than(lagging);
    write_topics(cluster, 0, 10);
    ASSERT_TRUE(cluster.all_level());
    cluster.kill(lagging);
    for (const size_t i : {leader, other}) cluster.kill(i);
    take_snapshots(cluster);
    for (const size_t i : {leader, other}) cluster.start(i);
    write_slowly(cluster, 10, 60);
    write_topics(cluster, 60, 63);
    ASSERT_TRUE(cluster.all_level());
    cluster.kill(leader);
    cluster.kill(other);
    // What was known to be committed is not on record; the newest snapshot is older than the database.
    for (const size_t i : {leader, other}) {
      cluster.start(i);
      ASSERT_TRUE(cluster.await_up(i));
    }
    // At every step until a leader has committed everything again: an image of one that is ahead of the replay is refused.
    cluster.run_until([&] {
      bool is_reached = true;
      for (const size_t i : {leader, other}) {
        if (!cluster.is_up(i)) continue;
        const raft::Index replayed = cluster[i].server->core().applied_index();
        if (replayed == 0 || cluster[i].fsm->applied_index() <= replayed) continue;
        is_reached = false;
        tests::MemorySink sink;
        const auto image = cluster.on(i, [&] { return cluster[i].fsm->write_image(sink, replayed).is(io::ErrorKind::busy); });
        EXPECT_EQ(image, true);
        EXPECT_TRUE(sink.image.empty());
      }
      return is_reached && cluster.leader() >= 0 && cluster[leader].server->core().applied_index() > 60;
    }, 10s);
    write_slowly(cluster, 63, 90);
    ASSERT_GE(cluster.leader(), 0);
    EXPECT_GT(cluster[static_cast<size_t>(cluster.leader())].server->status().log_base, 20u);
    cluster.start(lagging);
    ASSERT_TRUE(cluster.all_level());
    EXPECT_GT(cluster[lagging].server->counters().snapshots_installed, 0u);
    EXPECT_TRUE(cluster.all_agree());
    EXPECT_TRUE(cluster.world.violations().empty());
  }
}

// Scenario SC-02.
TEST_F(RestartScenario, RefusedEntriesMoveTheIndexAndTheLabelAndARestartRestoresNothing) {
  MetastoreWorld cluster(202, 1, 1);
  take_snapshots(cluster);
  cluster.lead();
  write_topics(cluster, 0, 10);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(cluster.write(create(i % 10))->code, Code::already_exists);
  const raft::Index last = cluster[0].server->core().last_index();
  EXPECT_EQ(cluster[0].fsm->applied_index(), last) << "the last entry is a refused one";
  ASSERT_TRUE(cluster.run_until([&] { return cluster[0].server->status().snapshot + 5 > last; }, 10s));
  rest(cluster);
  const raft::Index label = cluster[0].server->status().snapshot;
  EXPECT_GT(cluster[0].server->status().log_base, 10u) << "the log was cut behind refused entries";
  const uint64_t digest = cluster[0].fsm->digest();
  cluster.kill(0);
  cluster.start(0);
  ASSERT_EQ(cluster.await_leader(), 0) << cluster[0].failure;
  EXPECT_EQ(cluster[0].row, RestartRow::held) << "nothing is restored";
  EXPECT_GE(label, last - 5);
  EXPECT_GE(cluster[0].fsm->applied_index(), last);
  EXPECT_EQ(cluster[0].fsm->digest(), digest);
  EXPECT_EQ(cluster[0].server->counters().snapshots_installed, 0u);
  ASSERT_TRUE(cluster.all_level());
}

// Scenarios SC-03 and IO-08.
TEST_F(RestartScenario, WithoutRoomForASnapshotTheLogStaysNothingIsLeftOverAndWritesGoOn) {
  MetastoreWorld cluster(308, 1, 1);
  take_snapshots(cluster);
  cluster.lead();
  write_slowly(cluster, 0, 30);
  rest(cluster);
  const raft::ServerStatus before = cluster[0].server->status();
  ASSERT_GT(before.log_base, 0u);
  const std::vector<std::string> kept = cluster.snapshots(0);
  ASSERT_EQ(kept.size(), 2u);
  const uint64_t failed = cluster[0].server->counters().snapshots_failed;
  const auto files = [&] { return cluster.volume(0).copy("raft/snapshots").files.size(); };

  // A file is begun each time, and the first bytes of the image find no room.
  for (uint64_t nth = 1; nth <= 100; ++nth) {
    cluster.volume(0).script({.action = FaultAction::no_space, .op = DiskOp::write, .prefix = "raft/snapshots/writing", .nth = nth});
  }
  int next = 30;
  for (int interval = 0; interval < 12; ++interval) {
    write_topics(cluster, next, next + 3);
    next += 3;
    cluster.world.run_for(40ms);  // between one interval and two
    EXPECT_TRUE(cluster.has_topic(0, "t" + std::to_string(next - 1)));
  }
  EXPECT_GE(cluster[0].server->counters().snapshots_failed, failed + 6) << "each is counted, and the next interval tries again";
  EXPECT_EQ(cluster[0].server->status().log_base, before.log_base) << "what no snapshot holds stays in the log";
  EXPECT_EQ(cluster.snapshots(0), kept);
  EXPECT_EQ(files(), kept.size());

  // Room for the beginning of a copy: a kill in the middle of one, whose leftover goes with the next start.
  ASSERT_GT(cluster.volume(0).scripted_left(), 0u);
  cluster.volume(0).clear_scripted();
  cluster.volume(0).script({.action = FaultAction::kill, .op = DiskOp::write, .prefix = "raft/snapshots/writing", .nth = 2});
  ASSERT_TRUE(cluster.await_end(0, 5s));
  cluster.volume(0).set_rates({{.prefix = "raft/snapshots/writing", .no_space_ppm = 1'000'000}});
  cluster.start(0);
  ASSERT_EQ(cluster.await_leader(), 0) << cluster[0].failure;
  EXPECT_EQ(cluster[0].row, RestartRow::held);
  EXPECT_EQ(files(), kept.size()) << "the leftover is gone";
  ASSERT_TRUE(cluster.all_level());
  for (int i = 0; i < next; ++i) EXPECT_TRUE(cluster.has_topic(0, "t" + std::to_string(i)));
  EXPECT_LE(cluster[0].server->status().log_base, before.log_base) << "whole segments go: the rest is found again";

  cluster.volume(0).set_rates({});
  ASSERT_TRUE(cluster.run_until([&] { return cluster[0].server->status().log_base > before.log_base; }, 10s) ||
              (write_slowly(cluster, next, next + 20), cluster[0].server->status().log_base > before.log_base));
  EXPECT_EQ(files(), 2u) << "it works once there is room";
}

// Scenario SC-07.
TEST_F(RestartScenario, WhenTheNewestSnapshotIsDamagedTheOlderOneAndTheLogBehindItDo) {
  for (const bool is_older_damaged : {false, true}) {
    SCOPED_TRACE(is_older_damaged);
    MetastoreWorld cluster(307, 1, 1);
    // Further apart than a segment of the log is long.
    cluster.options.snapshots.threshold = 40;
    cluster.lead();
    write_slowly(cluster, 0, 150);
    ASSERT_GT(cluster[0].server->status().log_base, 0u);
    const uint64_t digest = cluster[0].fsm->digest();
    cluster.kill(0);
    const std::vector<std::string> kept = cluster.snapshots(0);
    ASSERT_EQ(kept.size(), 2u);
    ASSERT_TRUE(cluster.volume(0).flip_bit(kept[1], 700, 3));
    ASSERT_TRUE(!is_older_damaged || cluster.volume(0).flip_bit(kept[0], 700, 3));
    cluster.volume(0).restore("fsm.db", {});
    const auto before = cluster.volume(0).copy("");
    cluster.start(0);
    if (is_older_damaged) {
      ASSERT_TRUE(cluster.await_end(0, 10s));
      EXPECT_EQ(cluster[0].row, RestartRow::hole);
      EXPECT_NE(cluster[0].failure.find("entries between them are missing"), std::string::npos) << cluster[0].failure;
      EXPECT_TRUE(cluster.volume(0).copy("").files == before.files) << "nothing is touched";
      continue;
    }
    ASSERT_EQ(cluster.await_leader(), 0) << cluster[0].failure;
    EXPECT_EQ(cluster[0].row, RestartRow::behind);
    ASSERT_TRUE(cluster.all_level());
    EXPECT_EQ(cluster[0].fsm->digest(), digest);
    for (int i = 0; i < 150; ++i) EXPECT_TRUE(cluster.has_topic(0, "t" + std::to_string(i)));
  }
}

// Scenario SC-09.
TEST_F(RestartScenario, AKillAtAnyStepOfASnapshotLeavesOnlyWholeOnesToTheFollowerThatAsks) {
  bool is_struck = true;
  size_t kills = 0;
  for (uint64_t nth = 1; is_struck && nth <= 24; ++nth) {
    SCOPED_TRACE(nth);
    MetastoreWorld cluster(900 + nth);
    const size_t leader = cluster.lead();
    const size_t f = other_than(leader);
    write_topics(cluster, 0, 4);
    ASSERT_TRUE(cluster.all_level());
    cluster.kill(f);
    take_snapshots(cluster);
    for (const size_t i : {leader, other_than(f)}) {
      cluster.kill(i);
      cluster.start(i);
    }
    ASSERT_GE(cluster.await_leader(), 0);
    ASSERT_TRUE(cluster.make_leader(leader));
    cluster.volume(leader).script({.action = FaultAction::kill, .op = std::nullopt, .prefix = "raft/snapshots", .nth = nth});
    for (int i = 4; i < 60 && cluster.is_up(leader); ++i) {
      const auto call = cluster.begin_propose(leader, encode_command(create(i)));
      cluster.run_until([&] { return call->has_value() || !cluster.is_up(leader); }, 5s);
      if (i % 8 == 0) cluster.world.run_for(100ms);
    }
    is_struck = !cluster.is_up(leader);
    kills += is_struck ? 1 : 0;
    cluster.volume(leader).clear_scripted();
    if (is_struck) cluster.start(leader);
    ASSERT_TRUE(cluster.await_up(leader)) << cluster[leader].failure;
    EXPECT_EQ(cluster.volume(leader).copy("raft/snapshots").files.size(), cluster.snapshots(leader).size()) << "nothing half-written stays";
    // The follower asks at once.
    cluster.start(f);
    ASSERT_GE(cluster.await_leader(), 0);
    (void)cluster.make_leader(leader);
    write_slowly(cluster, 60, 84);
    ASSERT_TRUE(cluster.all_level()) << cluster[f].failure;
    EXPECT_TRUE(cluster.all_agree());
    EXPECT_TRUE(cluster.world.violations().empty());
  }
  EXPECT_GT(kills, 10u);
}

// ---- Installs --------------------------------------------------------------------------------------------------------------------

// F is cut off from the cluster at 20 topics; the others then delete some of them, make new ones and cut their logs.
struct Behind {
  explicit Behind(uint64_t seed) : cluster(seed) {}

  void make() {
    leader = cluster.lead();
    f = (leader + 1) % 3;
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(cluster.writes(CreateTopic{make_topic("old" + std::to_string(i))}));
    ASSERT_TRUE(cluster.writes(PutSchema{"old3", 1, "true"}));
    ASSERT_TRUE(cluster.all_level());
    cluster.kill(f);
    index = cluster[f].digests.rbegin()->first;
    for (const size_t i : {leader, (f + 1) % 3}) cluster.kill(i);
    cluster.options.snapshots.threshold = 5;
    for (const size_t i : {leader, (f + 1) % 3}) cluster.start(i);
    ASSERT_GE(cluster.await_leader(), 0);
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(cluster.writes(DeleteTopic{"old" + std::to_string(i)}));
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(cluster.writes(CreateTopic{make_topic("new" + std::to_string(i))}));
    cluster.world.run_for(500ms);
    const int l = cluster.await_leader();
    ASSERT_GE(l, 0);
    ASSERT_GT(cluster[static_cast<size_t>(l)].server->status().log_base, index) << "an image is all that helps F";
  }
  void expect_it_equals_the_image() {
    ASSERT_TRUE(cluster.all_level()) << cluster[f].failure;
    EXPECT_TRUE(cluster.all_agree());
    for (int i = 0; i < 20; ++i) EXPECT_EQ(cluster.has_topic(f, "old" + std::to_string(i)), i >= 10) << i;
    for (int i = 0; i < 30; ++i) EXPECT_TRUE(cluster.has_topic(f, "new" + std::to_string(i))) << i;
    EXPECT_FALSE(cluster.row(f, Bucket::schemas, schema_key("old3", 1)).has_value());
    EXPECT_FALSE(cluster.row(f, Bucket::topic_names, "old3").has_value());
    EXPECT_TRUE(cluster.world.violations().empty());
  }

  MetastoreWorld cluster;
  size_t leader = 0;
  size_t f = 0;
  raft::Index index = 0;  // that F has applied
};

// Scenario SI-01.
TEST_F(RestartScenario, WhatWasDeletedWhileAFollowerWasAwayDoesNotComeBackWithTheImage) {
  Behind behind(401);
  ASSERT_NO_FATAL_FAILURE(behind.make());
  MetastoreWorld& cluster = behind.cluster;
  cluster.start(behind.f);
  ASSERT_TRUE(cluster.await_up(behind.f));
  EXPECT_TRUE(cluster.has_topic(behind.f, "old3")) << "and in its cache";
  behind.expect_it_equals_the_image();
  EXPECT_GT(cluster[behind.f].server->counters().snapshots_installed, 0u);
}

// Scenario SI-09.
TEST_F(RestartScenario, AnImageThatItsReceiverCouldNotKeepIsKnownToItsSenderAndSentAgain) {
  for (const FaultAction action : {FaultAction::error, FaultAction::no_space}) {
    for (const DiskOp op : {DiskOp::sync, DiskOp::rename}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(action)) + " " + std::to_string(static_cast<int>(op)));
      Behind behind(409);
      ASSERT_NO_FATAL_FAILURE(behind.make());
      MetastoreWorld& cluster = behind.cluster;
      const size_t f = behind.f;
      cluster.options.snapshots.threshold = 1'000'000;  // it takes none of its own
      const char* const path = op == DiskOp::rename ? "raft/snapshots" : "raft/snapshots/receiving";
      cluster.volume(f).script({.action = action, .op = op, .prefix = path, .nth = 1});
      cluster.start(f);
      const auto told = [&] {
        size_t lines = 0;
        for (size_t i = 0; i < 3; ++i) {
          if (i == f || !cluster.is_up(i)) continue;
          for (const io::sim::LogLine& line : cluster[i].machine->process()->log_lines()) {
            lines += line.text.starts_with("raft: an image was not sent, or not all of it") ? 1 : 0;
          }
        }
        return lines;
      };
      ASSERT_TRUE(cluster.run_until([&] { return cluster.volume(f).scripted_left() == 0; }, 20s));
      EXPECT_TRUE(cluster.run_until([&] { return told() > 0 || !cluster.is_up(f); }, 5s));
      if (!cluster.is_up(f)) {
        cluster.volume(f).clear_scripted();
        cluster.start(f);
      } else {
        EXPECT_GT(told(), 0u) << "its sender hears of it";
      }
      ASSERT_NO_FATAL_FAILURE(behind.expect_it_equals_the_image());
      EXPECT_EQ(cluster.volume(f).copy("raft/snapshots").files.size(), cluster.snapshots(f).size()) << "no leftover";
    }
  }
}

// Scenario RS-01.
TEST_F(RestartScenario, AKillBetweenTheImageAndTheDatabaseIsMadeGoodByTheDatabasesOwnIndex) {
  bool is_struck = true;
  size_t restored = 0;
  for (uint64_t nth = 1; is_struck; nth += 2) {
    SCOPED_TRACE(nth);
    ASSERT_LT(nth, 120u);
    Behind behind(500 + nth);
    ASSERT_NO_FATAL_FAILURE(behind.make());
    MetastoreWorld& cluster = behind.cluster;
    const size_t f = behind.f;
    cluster.start(f);
    ASSERT_TRUE(cluster.await_up(f));
    // All that it does to its database from now on is the install.
    cluster.volume(f).script({.action = FaultAction::kill, .op = std::nullopt, .prefix = "fsm.db/", .nth = nth});
    cluster.run_until([&] { return !cluster.is_up(f) || cluster[f].fsm->applied_index() > behind.index; }, 20s);
    cluster.world.run_for(50ms);
    is_struck = !cluster.is_up(f);
    cluster.volume(f).clear_scripted();
    if (is_struck) {
      EXPECT_FALSE(cluster.snapshots(f).empty()) << "the image is the newest snapshot by then";
      cluster.start(f);
      ASSERT_TRUE(cluster.await_up(f)) << cluster[f].failure;
      EXPECT_TRUE(cluster[f].row == RestartRow::behind || cluster[f].row == RestartRow::held);
      restored += cluster[f].row == RestartRow::behind ? 1 : 0;
      EXPECT_GT(cluster[f].fsm->applied_index(), behind.index) << "it is not taken for what the image holds";
    }
    ASSERT_NO_FATAL_FAILURE(behind.expect_it_equals_the_image());
  }
  EXPECT_GT(restored, 8u);
}

// Scenario RS-03.
TEST_F(RestartScenario, ADatabaseOfBeforeTheSnapshotIsRestoredAndWithoutTheSnapshotRefused) {
  for (const bool has_snapshot : {true, false}) {
    SCOPED_TRACE(has_snapshot);
    MetastoreWorld cluster(503, 1, 1);
    cluster.lead();
    write_topics(cluster, 0, 10);
    cluster.kill(0);
    const auto older = cluster.volume(0).copy("fsm.db");
    take_snapshots(cluster);
    cluster.start(0);
    ASSERT_EQ(cluster.await_leader(), 0);
    write_slowly(cluster, 10, 60);
    ASSERT_GT(cluster[0].server->status().log_base, 20u);
    const uint64_t digest = cluster[0].fsm->digest();
    cluster.kill(0);
    cluster.volume(0).restore("fsm.db", {});
    cluster.volume(0).restore("fsm.db", older);
    if (!has_snapshot) cluster.volume(0).restore("raft/snapshots", {});
    const auto before = cluster.volume(0).copy("");
    cluster.start(0);
    if (!has_snapshot) {
      ASSERT_TRUE(cluster.await_end(0, 10s));
      EXPECT_EQ(cluster[0].row, RestartRow::hole);
      EXPECT_TRUE(cluster.volume(0).copy("").files == before.files) << "nothing is touched";
      continue;
    }
    ASSERT_EQ(cluster.await_leader(), 0) << cluster[0].failure;
    EXPECT_EQ(cluster[0].row, RestartRow::behind);
    ASSERT_TRUE(cluster.all_level());
    EXPECT_EQ(cluster[0].fsm->digest(), digest);
  }
}

// Scenario RS-04.
TEST_F(RestartScenario, ADatabasePastTheEndOfTheLogIsSetAsideByAMemberAndRefusedByOneThatWouldBootstrap) {
  for (const bool is_joining : {true, false}) {
    SCOPED_TRACE(is_joining);
    MetastoreWorld cluster(504);
    const size_t leader = cluster.lead();
    const size_t f = other_than(leader);
    write_topics(cluster, 0, 10);
    ASSERT_TRUE(cluster.all_level());
    const auto older = cluster.volume(f).copy("raft");
    write_topics(cluster, 10, 30);
    ASSERT_TRUE(cluster.all_level());
    cluster.kill(f);
    cluster.volume(f).restore("raft", {});
    cluster.volume(f).restore("raft", older);
    const auto before = cluster.volume(f).copy("");
    cluster[f].is_joining = is_joining;
    cluster.start(f);
    if (!is_joining) {
      ASSERT_TRUE(cluster.await_end(f, 10s));
      EXPECT_EQ(cluster[f].row, RestartRow::ahead);
      EXPECT_NE(cluster[f].failure.find("raft state is older than fsm.db"), std::string::npos) << cluster[f].failure;
      EXPECT_TRUE(cluster.volume(f).copy("").files == before.files) << "nothing is touched";
      continue;
    }
    ASSERT_TRUE(cluster.await_up(f)) << cluster[f].failure;
    EXPECT_EQ(cluster[f].row, RestartRow::ahead);
    EXPECT_FALSE(cluster.volume(f).copy("fsm.db.stale").files.empty());
    EXPECT_TRUE(cluster[f].server->core().is_rebuilding()) << "it votes by nothing that it has forgotten";
    ASSERT_TRUE(cluster.all_level()) << "its state comes from the cluster";
    EXPECT_TRUE(cluster.run_until([&] { return !cluster[f].server->core().is_rebuilding(); }, 5s)) << "it votes again";
    EXPECT_TRUE(cluster.world.violations().empty());
    for (int i = 0; i < 30; ++i) EXPECT_TRUE(cluster.has_topic(f, "t" + std::to_string(i)));
  }
}

// ---- Damage ----------------------------------------------------------------------------------------------------------------------

// `has_led`: whether F led for a moment.
void RestartScenario::flip_a_bit(uint64_t seed, bool& has_led) {
  constexpr int kTopics = 200;
  MetastoreWorld cluster(seed, 4, 3);
  const size_t leader = cluster.lead();
  const size_t f = other_than(leader);
  cluster[f].settings.flush_bytes = 8u << 20;
  cluster.kill(f);
  cluster.start(f);
  write_topics(cluster, 0, kTopics);
  ASSERT_TRUE(cluster.all_level());
  // The next start finds all of it in one table, and merges nothing.
  cluster.kill(f);
  cluster.start(f);
  ASSERT_TRUE(cluster.await_up(f));
  cluster.kill(f);
  // In a record of a table, behind what a start reads, so that only a checksum tells.
  std::string damaged;
  for (const std::string& path : cluster.volume(f).tree().files()) {
    if (!path.starts_with("fsm.db/") || !path.ends_with(".sst")) continue;
    const size_t at = cluster.volume(f).tree().content(path)->rfind(make_topic("t").id);
    if (at == std::string::npos) continue;
    ASSERT_TRUE(cluster.volume(f).flip_bit(path, at, 2));
    damaged = path;
  }
  ASSERT_NE(damaged, "");
  take_snapshots(cluster);
  cluster.start(f);
  ASSERT_TRUE(cluster.await_up(f)) << cluster[f].failure;
  // Reads: an error or the truth.
  size_t errors = 0;
  for (int i = 0; i < kTopics; ++i) {
    const auto read = cluster.on(f, [&] {
      const auto topic = cluster[f].fsm->get_topic("t" + std::to_string(i));
      return !topic.ok() ? 1 : *topic != nullptr && **topic == make_topic("t" + std::to_string(i)) ? 0 : -1;
    });
    ASSERT_TRUE(read.has_value());
    ASSERT_NE(*read, -1) << "a wrong answer for t" << i;
    errors += static_cast<size_t>(*read);
  }
  EXPECT_GT(errors, 0u);
  // An image of itself is none, and says so.
  tests::MemorySink sink;
  const auto image = cluster.on(f, [&] { return cluster[f].fsm->write_image(sink, cluster[f].server->core().applied_index()); });
  ASSERT_TRUE(image.has_value());
  EXPECT_FALSE(image->ok());
  EXPECT_FALSE(image->is(io::ErrorKind::busy)) << image->error().to_text();
  has_led = cluster.make_leader(f);
  // It is to send an image of itself to a new server; entries touch what is damaged.
  cluster[3].is_joining = true;
  cluster.start(3);
  for (int tries = 0; tries < 100; ++tries) {
    const int l = cluster.await_leader();
    ASSERT_GE(l, 0);
    raft::ConfigurationChange change;
    change.kind = raft::ConfigurationChange::Kind::add;
    change.id = "n4";
    change.address = cluster[3].address;
    const auto added = cluster.on(static_cast<size_t>(l), [&] {
      return cluster[static_cast<size_t>(l)].server->change_configuration(change, cluster[static_cast<size_t>(l)].machine->process()->env().after(5s));
    });
    if (added && (added->ok() || added->refusal == raft::Refusal::already_so)) break;
  }
  for (int i = 0; i < kTopics; ++i) ASSERT_TRUE(cluster.write(UpdateTopic{make_topic("t" + std::to_string(i), 7)}).has_value());
  ASSERT_TRUE(cluster.await_end(f, 60s)) << "it does not go on from damaged rows";
  EXPECT_EQ(cluster[f].exit_code, 1);
  ASSERT_TRUE(cluster.all_level()) << "all but it, and the new one";
  EXPECT_TRUE(cluster.is_up(3));
  EXPECT_TRUE(cluster.all_agree());
  for (int i = 0; i < kTopics; ++i) EXPECT_TRUE(cluster.has_topic(3, "t" + std::to_string(i)));
}

// Scenario IO-06.
TEST_F(RestartScenario, AFlippedBitInADatabaseIsNeitherAnsweredNorSentNorLedFrom) {
  bool has_led = false;
  for (uint64_t seed = 606; seed < 612 && !has_led; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_NO_FATAL_FAILURE(flip_a_bit(seed, has_led));
  }
  EXPECT_TRUE(has_led) << "in one of them it leads, and then it ends";
}

}  // namespace
