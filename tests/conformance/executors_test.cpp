// What io/executor.h promises: order, results, ends that outlive their callers.
#include <chrono>
#include <string>
#include <vector>

#include "tests/conformance/arms/conformance.h"

namespace {

using namespace io;

class Executors : public tests::Conformance {};
NARAD_ALL_ARMS(Executors);

TEST_P(Executors, ACallReturnsTheValueOfItsWork) {
  run([&](Env& env) {
    EXPECT_EQ(*env.store_lane.run([] { return 42; }), 42);
    EXPECT_EQ(*env.pool.run([text = std::string("owned")] { return text + "!"; }), "owned!");
    bool ran = false;
    EXPECT_TRUE(env.store_lane.run([&ran] { ran = true; }).ok());
    EXPECT_TRUE(ran);
  });
}

TEST_P(Executors, TheLaneRunsFirstInFirstOut) {
  run([&](Env& env) {
    std::vector<int> ran;
    std::vector<Completion<void>> ends;
    for (int i = 0; i < 200; ++i) {
      ends.push_back(env.store_lane.start([&ran, i] { ran.push_back(i); }));
    }
    for (const Completion<void>& end : ends) {
      EXPECT_TRUE(end.await().ok());
    }
    ASSERT_EQ(ran.size(), 200u);
    for (int i = 0; i < 200; ++i) {
      EXPECT_EQ(ran[static_cast<size_t>(i)], i);
    }
  });
}

TEST_P(Executors, ManyFibersShareTheLane) {
  run([&](Env& env) {
    int total = 0;
    with_scope([&](Scope& scope) {
      for (int i = 0; i < 50; ++i) {
        scope.spawn("caller", [&] {
          for (int k = 0; k < 10; ++k) {
            EXPECT_TRUE(env.store_lane.run([&total] { ++total; }).ok());
          }
        });
      }
    });
    EXPECT_EQ(total, 500);
  });
}

TEST_P(Executors, WorkRunsToItsEndWhenItsCallerIsCancelled) {
  run([&](Env& env) {
    auto ran = std::make_shared<int>(0);
    with_scope([&](Scope& scope) {
      Task caller = scope.spawn("caller", [&] {
        for (int i = 0; i < 1000; ++i) {
          (void)env.store_lane.start([ran] { ++*ran; });
        }
        (void)env.store_lane.run([ran] { ++*ran; });
        ADD_FAILURE() << "a cancelled call returned";
      });
      yield();
      caller.cancel();
    });
    EXPECT_TRUE(env.store_lane.run([] {}).ok()) << "the lane is drained up to here";
    EXPECT_EQ(*ran, 1001);
  });
}

TEST_P(Executors, TheLoopGoesOnWhileWorkRuns) {
  run([&](Env& env) {
    Completion<void> end = env.pool.start([] {
      // Long enough to be seen, without a sleep: the simulator runs this at one instant.
      volatile uint64_t sum = 0;
      for (uint64_t i = 0; i < 3'000'000; ++i) {
        sum = sum + i;
      }
    });
    int turns = 0;
    while (!end.is_complete()) {
      sleep_for(10us);
      ++turns;
    }
    EXPECT_GT(turns, 0);
    EXPECT_TRUE(end.await().ok());
  });
}

}  // namespace
