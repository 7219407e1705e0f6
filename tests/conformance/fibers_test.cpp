// The fiber primitives on each loop: timers, events, scopes, cancellation of waits.
#include <set>
#include <string>
#include <vector>

#include "io/channel.h"
#include "tests/conformance/arms/conformance.h"

namespace {

using namespace io;

class Fibers : public tests::Conformance {};
NARAD_ALL_ARMS(Fibers);

TEST_P(Fibers, ASleepEndsNotBeforeItsDeadline) {
  run([&](Env& env) {
    for (Duration length : {Duration(1), Duration(10us), Duration(1ms), Duration(7ms)}) {
      const Instant begin = env.now();
      sleep_for(length);
      EXPECT_GE(env.now() - begin, length);
    }
    sleep_until(env.now() - 1s);
  });
}

TEST_P(Fibers, TimersFireInOrderOfTheirDeadlines) {
  run([&](Env& env) {
    std::vector<int> order;
    const Instant begin = env.now();
    with_scope([&](Scope& scope) {
      for (int i : {3, 1, 4, 2, 0}) {
        scope.spawn("sleeper", [&order, begin, i] {
          sleep_until(begin + i * 10ms);
          order.push_back(i);
        });
      }
    });
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
  });
}

TEST_P(Fibers, TheClockNeverStepsBack) {
  run([&](Env& env) {
    Instant last = env.now();
    for (int i = 0; i < 1000; ++i) {
      const Instant now = env.now();
      EXPECT_GE(now, last);
      last = now;
    }
    EXPECT_GT(to_unix_seconds(env.clock.wall()), 0);
  });
}

TEST_P(Fibers, AnEventWakesItsWaitersAndADeadlineEndsTheWait) {
  run([&](Env& env) {
    Event event;
    EXPECT_FALSE(event.wait(env.after(2ms)));
    int woken = 0;
    with_scope([&](Scope& scope) {
      for (int i = 0; i < 10; ++i) {
        scope.spawn("waiter", [&] { woken += event.wait() ? 1 : 0; });
      }
      sleep_for(1ms);
      event.set();
    });
    EXPECT_EQ(woken, 10);
    EXPECT_TRUE(event.wait(env.now() - 1s));
  });
}

TEST_P(Fibers, AYieldLetsTheOthersGo) {
  run([&](Env&) {
    int other = 0;
    bool ended = false;
    with_scope([&](Scope& scope) {
      scope.spawn("other", [&] {
        for (int i = 0; i < 5; ++i) {
          ++other;
          yield();
        }
        ended = true;
      });
      while (!ended) {
        yield();
      }
    });
    EXPECT_EQ(other, 5);
  });
}

TEST_P(Fibers, ACancelledScopeEndsEveryKindOfWait) {
  run([&](Env& env) {
    Result<std::unique_ptr<Listener>> listener = env.net.listen("127.0.0.1:0");
    ASSERT_TRUE(listener.ok());
    int ended = 0;
    struct CountEnd {
      int& ended;
      ~CountEnd() { ++ended; }
    };
    with_scope([&](Scope& scope) {
      scope.spawn("sleep", [&] {
        CountEnd count{ended};
        sleep_for(1h);
      });
      scope.spawn("event", [&] {
        CountEnd count{ended};
        Event never;
        never.wait();
      });
      scope.spawn("accept", [&] {
        CountEnd count{ended};
        (void)(*listener)->accept();
      });
      scope.spawn("channel", [&] {
        CountEnd count{ended};
        Channel<int> empty(1);
        (void)empty.receive();
      });
      scope.spawn("connect", [&] {
        CountEnd count{ended};
        (void)env.net.connect(arm().silent_address());
      });
      sleep_for(5ms);
      EXPECT_EQ(ended, 0);
      scope.cancel();
    });
    EXPECT_EQ(ended, 5);
  });
}

TEST_P(Fibers, ACancelledFiberCanStartNothing) {
  run([&](Env& env) {
    Result<std::unique_ptr<Listener>> listener = env.net.listen("127.0.0.1:0");
    ASSERT_TRUE(listener.ok());
    int refused = 0;
    with_scope([&](Scope& scope) {
      auto expect_cancelled = [&](std::function<void()> wait) {
        Task task = scope.spawn("cancelled before it starts", [&refused, wait] {
          struct CountUnwound {
            int& refused;
            ~CountUnwound() { ++refused; }
          };
          auto count = std::make_unique<CountUnwound>(refused);
          wait();
          ADD_FAILURE() << "a wait in a cancelled fiber returned";
        });
        task.cancel();
        EXPECT_TRUE(task.join(env.after(10s)));
      };
      expect_cancelled([&] { (void)env.disk.list(""); });
      expect_cancelled([&] { (void)env.disk.open("a", OpenMode::create); });
      expect_cancelled([&] { (void)env.store_lane.run([] {}); });
      expect_cancelled([&] { (void)(*listener)->accept(); });
      expect_cancelled([&] { (void)env.net.connect((*listener)->address()); });
      expect_cancelled([&] { yield(); });
    });
    EXPECT_EQ(refused, 6);
  });
}

TEST_P(Fibers, RandomStreamsOfOneNameDiffer) {
  run([&](Env& env) {
    std::set<uint64_t> draws;
    for (int i = 0; i < 100; ++i) {
      draws.insert(env.random.stream("conformance", 1).next());
    }
    EXPECT_EQ(draws.size(), 100u);
  });
}

}  // namespace
