#include "io/sim/machine.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "io/channel.h"
#include "io/probe.h"
#include "io/sim/switches.h"
#include "io/sim/world.h"

namespace {

using namespace io;
using namespace io::sim;

struct MachineTest : testing::Test {
  World world{7};
  Machine& machine = world.add_machine([] {
    MachineSettings settings;
    settings.name = "a";
    return settings;
  }());
  std::vector<std::string> story;
};

TEST_F(MachineTest, AnExitHasTheCodeOfMain) {
  Incarnation& process = machine.start([](Env&) {
    sleep_for(1s);
    return 42;
  });
  world.run_for(500ms);
  EXPECT_TRUE(process.live());
  world.run_for(1s);
  EXPECT_EQ(process.ending(), Ending::exited);
  EXPECT_EQ(process.exit_code(), 42);
  EXPECT_EQ(machine.process(), nullptr);
}

TEST_F(MachineTest, AKillUnwindsEveryFiberChildrenFirst) {
  struct Tell {
    std::vector<std::string>& story;
    std::string what;
    ~Tell() { story.push_back(what); }
  };
  machine.start([this](Env&) {
    Tell outer{story, "main"};
    with_scope([this](Scope& scope) {
      scope.spawn("child", [this] {
        Tell inner{story, "child"};
        sleep_for(1h);
      });
      scope.spawn("never started", [] {});
      sleep_for(1h);
    });
    return 0;
  });
  world.run_for(1s);
  EXPECT_TRUE(story.empty());
  machine.kill();
  EXPECT_EQ(story, (std::vector<std::string>{"child", "main"}));
}

TEST_F(MachineTest, AKillFromInsideTheProcessWaitsForTheEndOfTheSlice) {
  machine.start([this](Env&) {
    machine.kill();
    story.push_back("the slice goes on");
    sleep_for(1ms);
    story.push_back("never");
    return 0;
  });
  world.run_for(1s);
  EXPECT_EQ(story, std::vector<std::string>{"the slice goes on"});
  EXPECT_EQ(machine.process(), nullptr);
}

TEST_F(MachineTest, ADeafProcessDoesNothing) {
  Switchboard board;
  SwitchboardGuard guard(&board);
  struct ActWhenUnwound {
    Env& env;
    Channel<int>& channel;
    std::unique_ptr<Stream> stream;
    ~ActWhenUnwound() {
      env.log.error("not heard");
      SOMETIMES("machine test: a dead process probes");
      channel.try_send(1);
      stream->close();
    }
  };
  Machine& peer = world.add_machine([] {
    MachineSettings settings;
    settings.name = "b";
    return settings;
  }());
  peer.start([](Env& env) {
    auto listener = env.net.listen("b:1");
    auto stream = (*listener)->accept();
    sleep_for(1h);
    return 0;
  });
  std::vector<std::string> log;
  world.set_log_sink(LogLevel::debug, [&](Incarnation& process, LogLevel, std::string_view line) {
    log.push_back(process.label() + " " + std::string(line));
  });
  Channel<int> channel(1);
  Incarnation& process = machine.start([&](Env& env) {
    ActWhenUnwound act{env, channel, std::move(*env.net.connect("b:1"))};
    env.log.info("heard", {{"number", 5}});
    channel.receive();
    return 0;
  });
  world.run_for(1s);
  machine.kill();
  world.run_for(1s);
  EXPECT_EQ(log, std::vector<std::string>{"a#1 heard number=5"});
  EXPECT_TRUE(board.probes.empty());
  EXPECT_FALSE(board.deaf);
  ASSERT_EQ(process.log_lines().size(), 1u);
  EXPECT_EQ(process.log_lines()[0].text, "heard number=5");
}

TEST_F(MachineTest, ASupervisorMayStartTheNextProcessAtTheEndOfOne) {
  int starts = 0;
  std::function<int(Env&)> main = [&](Env&) {
    ++starts;
    sleep_for(1s);
    return 0;
  };
  machine.set_on_end([&](Incarnation& ended) {
    story.push_back(ended.label() + " " + to_string(ended.ending()));
    if (starts < 3) {
      machine.start(main);
    }
  });
  machine.start(main);
  world.after(500ms, [&] { machine.kill(); });
  world.run_for(10s);
  EXPECT_EQ(story, (std::vector<std::string>{"a#1 killed", "a#2 exited", "a#3 exited"}));
}

TEST_F(MachineTest, AFrozenProcessDoesNotRunAndItsClockGoesOn) {
  std::vector<Duration> ran;
  machine.start([&](Env&) {
    while (ran.size() < 40) {
      sleep_for(100ms);
      ran.push_back(world.now().time_since_epoch());
    }
    return 0;
  });
  world.after(1050ms, [&] { machine.freeze(2s); });
  world.run_for(20s);
  ASSERT_EQ(ran.size(), 40u);
  for (Duration when : ran) {
    EXPECT_FALSE(when > 1050ms && when < 3050ms) << when.count();
  }
  EXPECT_LT(ran.back(), 6200ms) << "it went on at once after the thaw";
}

TEST_F(MachineTest, ADriftingClockMovesItsDeadlines) {
  machine.clock().set_drift_ppm(100'000);  // 10 % fast
  Duration slept_local{};
  Instant woken{};
  machine.start([&](Env& env) {
    const Instant before = env.now();
    sleep_for(11s);
    slept_local = env.now() - before;
    woken = world.now();
    return 0;
  });
  world.run_for(60s);
  EXPECT_GE(slept_local, 11s);
  EXPECT_LT(slept_local, 11s + 1us);
  EXPECT_EQ(std::chrono::round<std::chrono::milliseconds>(woken.time_since_epoch()), 10s);
}

TEST_F(MachineTest, AJumpOfTheCalendarLeavesTheMonotonicClockAlone) {
  const Instant now = machine.clock().now();
  const WallTime wall = machine.clock().wall();
  machine.clock().jump_wall(-24h);
  EXPECT_EQ(machine.clock().now(), now);
  EXPECT_EQ(machine.clock().wall(), wall - 24h);
}

TEST_F(MachineTest, AChangeOfDriftNeverMovesTheClockBack) {
  world.run_for(10s);
  machine.clock().set_drift_ppm(5000);
  world.run_for(10s);
  const Instant fast = machine.clock().now();
  machine.clock().set_drift_ppm(-5000);
  EXPECT_GE(machine.clock().now(), fast);
  EXPECT_EQ(machine.clock().virtual_time_of(kNever), kNever);
  const Instant later = machine.clock().now() + 3s;
  world.run_until(machine.clock().virtual_time_of(later));
  EXPECT_GE(machine.clock().now(), later);
  EXPECT_LT(machine.clock().now() - later, 1us);
}

TEST_F(MachineTest, EachIncarnationDrawsOfItsOwn) {
  std::vector<uint64_t> drawn;
  auto main = [&](Env& env) {
    drawn.push_back(env.random.stream("x", 1).next());
    return 0;
  };
  machine.start(main);
  world.run_for(1s);
  machine.start(main);
  world.run_for(1s);
  ASSERT_EQ(drawn.size(), 2u);
  EXPECT_NE(drawn[0], drawn[1]);
}

}  // namespace
