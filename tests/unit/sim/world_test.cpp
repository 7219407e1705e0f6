// The cluster in its world: it serves, survives kills and power losses, and the same run is the same run.

#include "sim/world.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/client.h"
#include "sim/liveness.h"

namespace sim {
namespace {

using namespace std::chrono_literals;

WorldOptions options_of(uint64_t seed, int nodes) {
  WorldOptions options;
  options.seed = seed;
  options.nodes = nodes;
  options.node.tuning.raft_segment_bytes = 128 * 1024;
  options.load.ops_per_minute = 600;
  return options;
}

void start(World& world) {
  world.start();
  world.client_machine().start([&world](io::Env& env) { return run_clients(world, env); });
}

std::string violation_of(const World& world) {
  return world.violation() ? world.violation()->rule + ": " + world.violation()->sentence : "";
}

TEST(World, AClusterOfEachSizeServesAndRecovers) {
  for (int nodes = 1; nodes <= 5; ++nodes) {
    World world(options_of(static_cast<uint64_t>(nodes), nodes));
    start(world);
    world.io().run_for(10s);
    EXPECT_GE(world.leader(), 0) << nodes;
    world.end_load();
    check_liveness(world, {20s, 20s, 20s});
    EXPECT_EQ(check_history(world, true, 20'000), 0u);
    EXPECT_EQ(violation_of(world), "") << nodes;
    EXPECT_GT(world.counts().calls_ok, 30u);
    EXPECT_GT(world.book().model().count_now(), static_cast<size_t>(nodes) - 1);
  }
}

TEST(World, AKilledLeaderIsReplacedAndComesBack) {
  World world(options_of(7, 3));
  start(world);
  world.io().run_for(5s);
  const int first = world.leader();
  ASSERT_GE(first, 0);
  world.kill(first, 5s);
  world.io().run_for(3s);
  EXPECT_FALSE(world.is_up(first));
  EXPECT_NE(world.leader(), first);
  EXPECT_GE(world.leader(), 0);
  world.io().run_for(5s);
  EXPECT_TRUE(world.is_up(first));
  EXPECT_EQ(violation_of(world), "");
}

TEST(World, WritesWorkAgainWithinTwoSecondsAfterAKillOfTheLeader) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    WorldOptions options = options_of(seed, 3);
    options.load.ops_per_minute = 3'000;
    World world(std::move(options));
    start(world);
    world.io().run_for(5s);
    const int first = world.leader();
    ASSERT_GE(first, 0) << seed;
    world.kill(first, 10s);
    const io::Instant killed = world.now();
    const auto calls_before = static_cast<std::ptrdiff_t>(world.calls().size());
    const auto is_written = [&] {
      return std::any_of(world.calls().begin() + calls_before, world.calls().end(), [&](const auto& call) {
        return call->asked > killed && call->outcome == Outcome::ok &&
               (call->kind == CallKind::create || call->kind == CallKind::patch || call->kind == CallKind::remove);
      });
    };
    EXPECT_TRUE(world.io().run_while([&] { return !is_written(); }, killed + 2s)) << seed;
    EXPECT_EQ(violation_of(world), "") << seed;
  }
}

TEST(World, APowerLossOfAllNodesLosesNothingThatWasAcknowledged) {
  World world(options_of(8, 3));
  start(world);
  for (int round = 0; round < 5; ++round) {
    world.io().run_for(4s);
    for (int node = 0; node < 3; ++node) {
      world.power_loss(node, 20ms);
    }
  }
  world.io().run_for(2s);
  world.end_load();
  check_liveness(world, {20s, 20s, 20s});
  EXPECT_EQ(violation_of(world), "");
  EXPECT_GE(world.counts().starts, 18u);
}

TEST(World, AGracefulStopExitsWithoutAReasonToComplain) {
  World world(options_of(9, 3));
  start(world);
  world.io().run_for(3s);
  for (int node = 0; node < 3; ++node) {
    world.stop(node, 100ms);
    world.io().run_for(4s);
  }
  EXPECT_EQ(violation_of(world), "");
  EXPECT_EQ(world.counts().starts, 6u);
}

TEST(World, AnUnexplainedExitIsAViolation) {
  World world(options_of(10, 3));
  world.start();
  world.io().run_for(2s);
  io::sim::ScriptedFault fault;
  fault.op = io::sim::DiskOp::sync;
  world.machine(world.leader()).volume().script(fault);
  world.client_machine().start([&world](io::Env& env) { return run_clients(world, env); });
  world.io().run_for(10s);
  ASSERT_TRUE(world.violation());
}

TEST(World, ALateDutyIsAViolation) {
  World world(options_of(11, 3));
  start(world);
  world.io().run_for(3s);
  world.io().network().cut_both(world.machine(0), world.machine(1));
  world.io().network().cut_both(world.machine(1), world.machine(2));
  world.io().network().cut_both(world.machine(0), world.machine(2));
  world.io().run_for(3s);
  world.end_load();
  check_liveness(world, {5s, 5s, 5s});
  ASSERT_TRUE(world.violation());
  EXPECT_EQ(world.violation()->rule, "liveness: one leader");
}

TEST(World, TheSameSeedIsTheSameRunAndAnotherSeedAnother) {
  const auto hash = [](uint64_t seed) {
    World world(options_of(seed, 3));
    start(world);
    world.io().run_for(6s);
    world.power_loss(1, 50ms);
    world.io().run_for(6s);
    return world.io().hash();
  };
  EXPECT_EQ(hash(12), hash(12));
  EXPECT_NE(hash(12), hash(13));
}

}  // namespace
}  // namespace sim
