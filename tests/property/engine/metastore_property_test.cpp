// Random sequences of every entry type, cut into batches, lives and power losses in every way: it makes no difference.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/metastore/fsm.h"
#include "io/sim/machine.h"
#include "io/sim/volume.h"
#include "io/sim/world.h"
#include "tests/support/entry_log.h"

namespace {

using namespace engine::metastore;
using namespace std::chrono_literals;
using tests::any_commands;
using tests::apply_one_by_one;
using tests::LogOutcome;
using tests::to_entries;

// One way to end a life of the process that holds the database.
enum class End { exit, kill, power_loss };

RC_GTEST_PROP(MetastoreRestarts, LivesAndPowerLossesMakeNoDifference, ()) {
  const auto entries = to_entries(*rc::gen::resize(60, any_commands()));
  const LogOutcome expected = apply_one_by_one(entries);
  io::sim::World world(*rc::gen::arbitrary<uint64_t>());
  io::sim::MachineSettings settings;
  settings.name = "n1";
  io::sim::Machine& machine = world.add_machine(settings);
  FsmState reached;
  bool is_done = false;
  for (int lives = 1; !is_done; ++lives) {
    const bool is_last = lives == 8;
    const size_t entries_of_this_life = is_last ? entries.size() : *rc::gen::inRange<size_t>(1, 30);
    const End end = is_last ? End::exit : *rc::gen::elementOf(std::vector<End>{End::exit, End::kill, End::power_loss});
    const size_t batch_max = *rc::gen::inRange<size_t>(1, 8);
    bool is_idle = false;
    machine.start([&](io::Env& env) {
      auto fsm = Fsm::open(env, {.flush_bytes = 4000});
      if (!fsm.ok()) {
        return 1;
      }
      size_t given = 0;
      auto next = std::find_if(entries.begin(), entries.end(),
                               [&](const raft::Entry& entry) { return entry.index > (*fsm)->applied_index(); });
      while (next != entries.end() && given < entries_of_this_life) {
        size_t count = std::min<size_t>(batch_max, entries.end() - next);
        std::vector<raft::Entry> batch(next, next + count);
        auto answers = (*fsm)->apply(batch);
        for (size_t i = 0; answers.ok() && i < count; ++i) {
          RC_ASSERT((*answers)[i] == expected.answers[next - entries.begin() + i]);
        }
        next += count;
        given += count;
      }
      reached = (*fsm)->state();
      RC_ASSERT((*fsm)->audit()->digest_of_rows == reached.digest);
      is_done = next == entries.end();
      is_idle = true;
      if (end != End::exit && !is_done) {
        io::sleep_for(1h);
      }
      (*fsm)->close();
      return 0;
    });
    world.run_while([&] { return machine.process() != nullptr && !(is_idle && end != End::exit); }, world.now() + 1min);
    RC_ASSERT(is_idle);
    if (machine.process() != nullptr && !is_done) {
      end == End::kill ? machine.kill() : machine.power_loss();
    }
    world.run_while([&] { return machine.process() != nullptr; }, world.now() + 1min);
    RC_ASSERT(machine.process() == nullptr);
  }
  RC_ASSERT(reached == expected.state);
  RC_ASSERT(world.violations().empty());
}

}  // namespace
