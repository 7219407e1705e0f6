#include "io/sim/world.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "io/channel.h"

namespace {

using namespace io;
using namespace io::sim;

MachineSettings named(std::string name) {
  MachineSettings settings;
  settings.name = std::move(name);
  return settings;
}

constexpr Instant at(Duration since_start) { return Instant(since_start); }

// A small busy world: two machines that talk, write and sync, with their clocks apart.
uint64_t hash_of_a_busy_world(uint64_t seed, std::vector<std::string>* trace = nullptr) {
  World world(seed);
  if (trace != nullptr) {
    world.set_trace_sink([trace](std::string_view line) { trace->emplace_back(line); });
  }
  MachineSettings fast = named("b");
  fast.clock_drift_ppm = 500;
  Machine& a = world.add_machine(named("a"));
  Machine& b = world.add_machine(fast);
  a.start([](Env& env) {
    auto listener = env.net.listen("a:7000");
    with_scope([&](Scope& scope) {
      for (int i = 0; i < 3; ++i) {
        scope.spawn("serve", [&] {
          auto stream = (*listener)->accept();
          auto file = env.disk.open("log" + (*stream)->peer_address(), OpenMode::create);
          uint64_t offset = 0;
          while (true) {
            auto bytes = (*stream)->read(100);
            if (!bytes.ok() || bytes->empty()) {
              return;
            }
            offset += bytes->size();
            EXPECT_TRUE((*file)->write_and_sync(offset, *bytes).ok());
            EXPECT_TRUE((*stream)->write("ok").ok());
          }
        });
      }
    });
    return 0;
  });
  b.start([](Env& env) {
    with_scope([&](Scope& scope) {
      for (int i = 0; i < 3; ++i) {
        scope.spawn("client", [&env, i] {
          RandomStream draws = env.random.stream("client", static_cast<uint64_t>(i));
          auto stream = env.net.connect("a:7000", env.after(1s));
          for (int n = 0; n < 20; ++n) {
            sleep_for(draws.between(Duration(1ms), Duration(20ms)));
            EXPECT_TRUE((*stream)->write(std::string(draws.below(50) + 1, 'x')).ok());
            EXPECT_TRUE((*stream)->read(10).ok());
          }
        });
      }
    });
    return 7;
  });
  world.run_until(at(5s));
  EXPECT_EQ(a.process(), nullptr) << "the server ends when its clients have";
  return world.hash();
}

TEST(World, TheSameSeedGivesTheSameTrace) {
  std::vector<std::string> first;
  std::vector<std::string> second;
  const uint64_t hash = hash_of_a_busy_world(1, &first);
  EXPECT_EQ(hash_of_a_busy_world(1, &second), hash);
  EXPECT_EQ(first, second);
  EXPECT_GT(first.size(), 300u);
}

TEST(World, ATraceSinkDoesNotChangeTheHash) {
  std::vector<std::string> trace;
  EXPECT_EQ(hash_of_a_busy_world(3, &trace), hash_of_a_busy_world(3));
}

TEST(World, AnotherSeedGivesAnotherTrace) { EXPECT_NE(hash_of_a_busy_world(1), hash_of_a_busy_world(2)); }

TEST(World, IdleTimeIsSkipped) {
  World world(1);
  Machine& machine = world.add_machine(named("a"));
  int64_t slept = 0;
  machine.start([&](Env& env) {
    const Instant before = env.now();
    sleep_for(std::chrono::hours(1000));
    slept = (env.now() - before).count();
    return 0;
  });
  world.run_until(at(std::chrono::hours(2000)));
  EXPECT_EQ(slept, Duration(std::chrono::hours(1000)).count());
  EXPECT_LT(world.events(), 10u);
  EXPECT_EQ(world.now(), at(std::chrono::hours(2000)));
}

TEST(World, ASliceHoldsItsProcessForItsCost) {
  WorldSettings settings;
  settings.cost.slice = 1ms;
  World world(1, settings);
  Machine& machine = world.add_machine(named("a"));
  std::vector<Instant> ran;
  machine.start([&](Env&) {
    with_scope([&](Scope& scope) {
      for (int i = 0; i < 3; ++i) {
        scope.spawn("f", [&] { ran.push_back(world.now()); });
      }
    });
    return 0;
  });
  world.run_until(at(1s));
  ASSERT_EQ(ran.size(), 3u);
  EXPECT_EQ(ran[0], at(1ms));
  EXPECT_GE(ran[1], ran[0] + 1ms);
  EXPECT_GE(ran[2], ran[1] + 1ms);
}

TEST(World, ASlowMachineTakesLonger) {
  WorldSettings settings;
  settings.cost.slice = 1ms;
  World world(1, settings);
  Machine& machine = world.add_machine(named("a"));
  machine.set_slow_percent(250);
  Instant ran{};
  machine.start([&](Env&) {
    yield();
    ran = world.now();
    return 0;
  });
  world.run_until(at(1s));
  EXPECT_EQ(ran, at(2500us));
}

TEST(World, WhichRunnableFiberGoesNextIsDrawnBySeed) {
  auto order = [](uint64_t seed) {
    World world(seed);
    std::string order;
    world.add_machine(named("a")).start([&](Env&) {
      with_scope([&](Scope& scope) {
        for (char c = 'a'; c <= 'h'; ++c) {
          scope.spawn("f", [&order, c] { order.push_back(c); });
        }
      });
      return 0;
    });
    world.run_until(at(1s));
    return order;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
}

TEST(World, TooManyEventsAtOneInstantAreAViolation) {
  WorldSettings settings;
  settings.events_at_one_instant_max = 1000;
  World world(1, settings);
  std::function<void()> again = [&] { world.after(Duration::zero(), again); };
  world.at(at(1ms), again);
  world.run_until(at(1s));
  EXPECT_EQ(world.violations().size(), 1u);
  EXPECT_TRUE(world.stopped());
  EXPECT_EQ(world.now(), at(1ms));
}

TEST(World, TheHookSeesEveryEventAndWhoseItWas) {
  World world(1);
  Machine& machine = world.add_machine(named("a"));
  std::vector<TraceKind> kinds;
  world.set_after_event([&](const Occurrence& occurrence) {
    kinds.push_back(occurrence.kind);
    EXPECT_EQ(occurrence.machine == &machine,
              occurrence.kind == TraceKind::slice || occurrence.kind == TraceKind::disk);
  });
  machine.start([&](Env& env) { return env.disk.open("f", OpenMode::create).ok() ? 0 : 1; });
  world.at(at(1s), [] {});
  world.run_until(at(2s));
  EXPECT_EQ(kinds, (std::vector<TraceKind>{TraceKind::slice, TraceKind::disk, TraceKind::slice, TraceKind::world}));
}

TEST(World, RunWhileEndsWithItsPredicateOrItsTime) {
  World world(1);
  bool reached = false;
  world.at(at(1s), [&] { reached = true; });
  EXPECT_TRUE(world.run_while([&] { return !reached; }, at(5s)));
  EXPECT_EQ(world.now(), at(1s));
  EXPECT_FALSE(world.run_while([] { return true; }, at(2s)));
  EXPECT_EQ(world.now(), at(2s));
}

TEST(World, ALaneCallHoldsItsLaneAndItsEffectMayBeSeenBeforeItsAnswer) {
  WorldSettings settings;
  settings.cost.lane_cpu_low = settings.cost.lane_cpu_high = 1ms;
  World world(1, settings);
  std::vector<std::string> story;
  world.add_machine(named("a")).start([&](Env& env) {
    with_scope([&](Scope& scope) {
      for (int i = 0; i < 2; ++i) {
        scope.spawn("caller", [&, i] {
          auto value = env.store_lane.run([&, i] {
            story.push_back("work " + std::to_string(i));
            return i;
          });
          story.push_back("answer " + std::to_string(*value));
        });
      }
      scope.spawn("watcher", [&] {
        sleep_for(500us);
        story.push_back("watcher");
      });
    });
    return 0;
  });
  world.run_until(at(1s));
  ASSERT_EQ(story.size(), 5u);
  EXPECT_EQ(story[0].substr(0, 4), "work");
  EXPECT_EQ(story[1], "watcher");
  EXPECT_EQ(story[2].substr(0, 4), "answ");
  EXPECT_EQ(story[3].substr(0, 4), "work") << "the second call waits until the first has been answered";
}

}  // namespace
