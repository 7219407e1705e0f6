// The disk refuses once, at every mutating operation of RocksDB's in turn: for want of room, or with an error. Entries are applied whole
// or not at all, in this life or the next, and none is counted that is not there.

#include <gtest/gtest.h>

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
using io::sim::DiskOp;
using io::sim::FaultAction;

constexpr raft::Index kEntries = 24;
constexpr size_t kBatch = 3;
// Several flushes in a life, enough for tables to be merged.
const FsmSettings kSettings{.flush_bytes = 1000};

std::vector<raft::Entry> script() {
  std::vector<raft::Entry> entries;
  for (raft::Index index = 1; index <= kEntries; ++index) {
    const std::string name = "topic" + std::to_string(index % 7);
    entries.push_back(index % 4 == 0   ? tests::delete_entry(index, name)
                      : index % 4 == 1 ? tests::update_entry(index, name, static_cast<int32_t>(index))
                                       : tests::create_entry(index, name));
  }
  return entries;
}

uint64_t digest_at(raft::Index last) {
  MemoryRows rows;
  FsmState state;
  std::vector<raft::Entry> entries = script();
  entries.resize(last);
  Evaluation run = evaluate(rows, state, entries, kNewestEntryType);
  return run.state.digest;
}

struct Outcome {
  bool is_struck = false;
  bool is_stopped = false;
  raft::Index counted = 0;  // the last entry of the last batch that apply() took
  size_t retries_logged = 0;
  size_t retries_ended = 0;
  size_t stops_logged = 0;
};

// Applies what is left of the script, and flushes at the end.
Outcome life(io::sim::World& world, io::sim::Machine& machine) {
  Outcome outcome;
  machine.start([&](io::Env& env) {
    auto fsm = Fsm::open(env, kSettings);
    if (!fsm.ok()) {
      return 1;
    }
    const std::vector<raft::Entry> entries = script();
    for (size_t at = 0; at < entries.size() && !(*fsm)->is_stopped(); at += kBatch) {
      const std::vector<raft::Entry> batch(entries.begin() + at, entries.begin() + at + kBatch);
      if ((*fsm)->apply(batch).ok()) {
        outcome.counted = batch.back().index;
        EXPECT_EQ((*fsm)->applied_index(), std::max(outcome.counted, (*fsm)->applied_index()));
      } else {
        EXPECT_TRUE((*fsm)->is_stopped());
      }
    }
    outcome.is_stopped = (*fsm)->is_stopped();
    if (!outcome.is_stopped) {
      (void)(*fsm)->flush();
    }
    for (const io::sim::LogLine& line : machine.process()->log_lines()) {
      outcome.retries_logged += line.text.starts_with("metastore: could not write raft entry; retrying") ? 1 : 0;
      outcome.retries_ended += line.text.starts_with("metastore: wrote raft entry on retry") ? 1 : 0;
      outcome.stops_logged += line.text.starts_with("metastore: stopped applying raft entries") ? 1 : 0;
    }
    (*fsm)->close();
    return 0;
  });
  world.run_while([&] { return machine.process() != nullptr; }, world.now() + 300s);
  EXPECT_EQ(machine.process(), nullptr);
  return outcome;
}

// Returns how many operations struck stopped the node.
size_t sweep(FaultAction action, bool may_stop) {
  size_t stops = 0;
  bool is_struck = true;
  uint64_t nth = 1;
  for (; is_struck; ++nth) {
    SCOPED_TRACE(nth);
    io::sim::World world(nth);
    io::sim::MachineSettings settings;
    settings.name = "n1";
    io::sim::Machine& machine = world.add_machine(settings);
    // An open that is refused is no start; the sweep is over what follows.
    machine.start([](io::Env& env) {
      auto fsm = Fsm::open(env, kSettings);
      EXPECT_TRUE(fsm.ok());
      (*fsm)->close();
      return 0;
    });
    world.run_while([&] { return machine.process() != nullptr; }, world.now() + 10s);
    machine.volume().script({.action = action, .op = std::nullopt, .prefix = "fsm.db/000001/", .nth = nth});
    const Outcome first = life(world, machine);
    is_struck = machine.volume().scripted_left() == 0;
    machine.volume().clear_scripted();
    EXPECT_TRUE(may_stop || !first.is_stopped) << "a moment without room stops nobody";
    EXPECT_EQ(first.stops_logged, first.is_stopped ? 1u : 0u);
    EXPECT_LE(first.retries_logged, 1u);
    EXPECT_EQ(first.retries_ended, first.is_stopped ? 0u : first.retries_logged);
    stops += first.is_stopped ? 1 : 0;
    machine.start([&](io::Env& env) {
      auto held = Fsm::look(env);
      EXPECT_TRUE(held.ok());
      EXPECT_GE(held->meta.state.applied_index, first.counted) << "what was counted is there";
      EXPECT_EQ(held->meta.state.applied_index % kBatch, 0u) << "half a batch";
      EXPECT_EQ(held->meta.state.digest, digest_at(held->meta.state.applied_index));
      return 0;
    });
    world.run_while([&] { return machine.process() != nullptr; }, world.now() + 10s);
    const Outcome second = life(world, machine);
    EXPECT_FALSE(second.is_stopped);
    EXPECT_EQ(second.counted, kEntries) << "with room, or with a disk that works, the entry applies";
    EXPECT_TRUE(world.violations().empty());
    if (nth >= 500) {
      ADD_FAILURE() << "a life has fewer operations";
      break;
    }
  }
  EXPECT_GT(nth, 20u) << "a life has more operations than that";
  return stops;
}

TEST(RefusalSweep, WithoutRoomAtAnyOperationItRetriesAndLosesNothing) { EXPECT_EQ(sweep(FaultAction::no_space, false), 0u); }

TEST(RefusalSweep, AnErrorAtAnyOperationIsRetriedOrStopsItWithNothingCountedThatIsNotThere) {
  EXPECT_GT(sweep(FaultAction::error, true), 0u) << "a failed sync stops it";
}

TEST(RefusalSweep, WithARefusedWriteCountedSomeEntryIsLost) {
  io::sim::Switchboard board;
  board.off.insert(io::Defence::refused_write_counted);
  io::sim::SwitchboardGuard guard(&board);
  io::sim::World world(1);
  io::sim::MachineSettings settings;
  settings.name = "n1";
  io::sim::Machine& machine = world.add_machine(settings);
  machine.start([&](io::Env& env) {
    auto fsm = Fsm::open(env, {});
    EXPECT_TRUE((*fsm)->apply({tests::create_entry(1, "a")}).ok());
    machine.volume().script({.action = FaultAction::no_space, .op = DiskOp::write, .prefix = "fsm.db/"});
    EXPECT_TRUE((*fsm)->apply({tests::create_entry(2, "b")}).ok());
    EXPECT_TRUE((*fsm)->apply({tests::create_entry(3, "c")}).ok());
    EXPECT_EQ((*fsm)->applied_index(), 3u);
    EXPECT_EQ((*fsm)->list_topics("", 10)->size(), 2u);
    (*fsm)->close();
    return 0;
  });
  world.run_while([&] { return machine.process() != nullptr; }, world.now() + 60s);
  EXPECT_EQ(machine.process(), nullptr);
}

}  // namespace
