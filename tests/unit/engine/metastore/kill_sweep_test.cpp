// Ends the process, or the machine's power, at every file operation of a state machine's life (open, applies, flushes, reopen), and
// judges what the next life finds: all of a batch or nothing of it, with an index that says which.

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/metastore/fsm.h"
#include "io/sim/machine.h"
#include "io/sim/switches.h"
#include "io/sim/volume.h"
#include "io/sim/world.h"
#include "tests/support/topics.h"

namespace {

using namespace engine::metastore;
using namespace std::chrono_literals;
using io::sim::FaultAction;

constexpr raft::Index kEntries = 24;
constexpr size_t kBatch = 3;
// About two flushes in a life.
const FsmSettings kSettings{.flush_bytes = 3000};

std::vector<raft::Entry> script() {
  std::vector<raft::Entry> entries;
  for (raft::Index index = 1; index <= kEntries; ++index) {
    std::string name = "topic" + std::to_string(index % 7);
    switch (index % 4) {
      case 0: entries.push_back(tests::delete_entry(index, name)); break;
      case 1: entries.push_back(tests::update_entry(index, name, static_cast<int32_t>(index))); break;
      default: entries.push_back(tests::create_entry(index, name)); break;
    }
  }
  return entries;
}

// The digest after each index, and after index 0.
std::vector<uint64_t> true_digests() {
  MemoryRows rows;
  FsmState state;
  std::vector<uint64_t> digests{0};
  for (const raft::Entry& entry : script()) {
    Evaluation run = evaluate(rows, state, {entry}, kNewestEntryType);
    rows.take(run.rows);
    state = run.state;
    digests.push_back(state.digest);
  }
  return digests;
}

struct Found {
  bool is_struck = false;      // the fault came before the life ended
  raft::Index answered = 0;    // last index that was answered before the end
  raft::Index index = 0;       // what the next life finds
  uint64_t digest = 0;         // as stored
  uint64_t digest_of_rows = 0;
};

// One life that is ended at its `nth` mutating operation, and a second one that looks and goes on to the end. `full_at`: an operation of
// RocksDB's before that, at which the disk has no room; 0: none.
Found sweep_step(uint64_t seed, FaultAction action, uint64_t nth, bool finishes = true, uint64_t full_at = 0) {
  io::sim::World world(seed);
  io::sim::MachineSettings settings;
  settings.name = "n1";
  io::sim::Machine& machine = world.add_machine(settings);
  Found found;
  if (full_at > 0) {
    machine.volume().script({.action = FaultAction::no_space, .op = std::nullopt, .prefix = "fsm.db/000001/", .nth = full_at});
  }
  machine.volume().script({.action = action, .op = std::nullopt, .prefix = "", .nth = nth});
  machine.start([&](io::Env& env) {
    auto fsm = Fsm::open(env, kSettings);
    std::vector<raft::Entry> entries = script();
    for (size_t at = 0; fsm.ok() && at < entries.size(); at += kBatch) {
      std::vector<raft::Entry> batch(entries.begin() + at, entries.begin() + at + kBatch);
      if ((*fsm)->apply(batch).ok()) {
        found.answered = batch.back().index;
      }
    }
    io::sleep_for(1h);
    return 0;
  });
  world.run_while([&] { return machine.process() != nullptr; }, io::Instant{} + 60s);
  found.is_struck = machine.process() == nullptr;
  if (!found.is_struck) {
    machine.kill();
    world.run_for(1ms);
  }
  machine.volume().clear_scripted();
  machine.start([&](io::Env& env) {
    auto fsm = Fsm::open(env, kSettings);
    EXPECT_TRUE(fsm.ok()) << "operation " << nth << ": " << fsm.error().to_text();
    if (!fsm.ok()) {
      return 1;
    }
    found.index = (*fsm)->applied_index();
    found.digest = (*fsm)->digest();
    found.digest_of_rows = (*fsm)->audit()->digest_of_rows;
    if (finishes) {
      EXPECT_TRUE((*fsm)->apply(script()).ok());
      EXPECT_EQ((*fsm)->applied_index(), kEntries);
      EXPECT_EQ((*fsm)->digest(), true_digests().back());
    }
    (*fsm)->close();
    return 0;
  });
  world.run_while([&] { return machine.process() != nullptr; }, world.now() + 60s);
  EXPECT_EQ(machine.process(), nullptr);
  EXPECT_TRUE(world.violations().empty());
  return found;
}

void sweep(FaultAction action, bool keeps_answered, size_t indexes_min) {
  const std::vector<uint64_t> digests = true_digests();
  std::set<raft::Index> indexes;
  uint64_t nth = 1;
  // Whether the operation at which the end comes still lands is drawn: each one is met several times.
  constexpr uint64_t kTimes = 4;
  bool is_struck = true;
  for (uint64_t run = 0; is_struck; ++run) {
    nth = run / kTimes + 1;
    ASSERT_LT(nth, 2000u);
    Found found = sweep_step(run, action, nth);
    is_struck = found.is_struck;
    indexes.insert(found.index);
    ASSERT_LE(found.index, kEntries);
    EXPECT_EQ(found.index % kBatch, 0u) << "operation " << nth << ": half a batch";
    EXPECT_EQ(found.digest, digests[found.index]) << "operation " << nth;
    EXPECT_EQ(found.digest_of_rows, digests[found.index]) << "operation " << nth << ": index and effects disagree";
    if (keeps_answered) {
      EXPECT_GE(found.index, found.answered) << "operation " << nth;
    }
  }
  EXPECT_GT(nth, 30u) << "a life has more file operations than that";
  EXPECT_GE(indexes.size(), indexes_min) << "the lives ended in many places";
}

// Scenario RS-02.
TEST(KillSweep, AKillAtAnyOperationLeavesWholeBatchesAndTheirIndex) { sweep(FaultAction::kill, true, kEntries / kBatch + 1); }

// Scenario RS-02.
TEST(KillSweep, APowerLossAtAnyOperationLeavesWholeBatchesAndTheirIndex) { sweep(FaultAction::power_loss, false, 6); }

// A write that was reported as failed, and then the end: while it is waited for room, at any step of the reopening, or of what follows.
TEST(KillSweep, AKillAfterARefusedWriteLeavesWholeBatchesToo) {
  const std::vector<uint64_t> digests = true_digests();
  std::set<raft::Index> indexes;
  uint64_t seed = 0;
  for (uint64_t full_at = 1; full_at <= 60; full_at += 3) {
    for (uint64_t nth : {full_at + 1, full_at + 4, full_at + 8, full_at + 12, full_at + 16, full_at + 22, full_at + 30}) {
      ++seed;
      const Found found = sweep_step(seed, seed % 2 == 0 ? FaultAction::kill : FaultAction::power_loss, nth, true, full_at);
      indexes.insert(found.index);
      ASSERT_LE(found.index, kEntries);
      EXPECT_EQ(found.index % kBatch, 0u) << "operations " << full_at << " and " << nth << ": half a batch";
      EXPECT_EQ(found.digest, digests[found.index]) << "operations " << full_at << " and " << nth;
      EXPECT_EQ(found.digest_of_rows, digests[found.index]) << "operations " << full_at << " and " << nth;
    }
  }
  EXPECT_GE(indexes.size(), 6u) << "the lives ended in many places";
}

TEST(KillSweep, WithTheIndexApartSomeKillLosesEffects) {
  io::sim::Switchboard board;
  board.off.insert(io::Defence::index_apart_from_effects);
  io::sim::SwitchboardGuard guard(&board);
  const std::vector<uint64_t> digests = true_digests();
  size_t lost = 0;
  for (uint64_t nth = 1; nth < 60; ++nth) {
    Found found = sweep_step(nth, FaultAction::kill, nth, false);
    EXPECT_EQ(found.digest_of_rows, found.digest) << "the digest stands with the effects";
    lost += found.digest != digests[found.index] ? 1 : 0;
  }
  EXPECT_GT(lost, 3u);
}

}  // namespace
