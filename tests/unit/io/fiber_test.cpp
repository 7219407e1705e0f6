#include "io/fiber.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "io/channel.h"

namespace {

using namespace io;

// The smallest loop: runs fibers in order on a clock that jumps to the next deadline.
class StepLoop : public Runtime {
 public:
  void run() {
    while (true) {
      if (!runnable_.empty()) {
        Fiber* next = runnable_.front();
        runnable_.pop_front();
        if (!next->group().deaf()) {
          resume(*next);
        }
        continue;
      }
      if (next_timer() == kNever) {
        return;
      }
      now = std::max(now, next_timer());
      fire_timers(now);
    }
  }
  void drop_runnable() { runnable_.clear(); }

  Instant now{};

 protected:
  void on_runnable(Fiber& fiber) override { runnable_.push_back(&fiber); }
  Instant local_now(FiberGroup&) override { return now; }

 private:
  std::deque<Fiber*> runnable_;
};

struct FiberTest : testing::Test {
  StepLoop loop;
  FiberGroup group{loop, "node", 1};
  std::vector<std::string> story;
};

TEST_F(FiberTest, ASleepEndsAtItsDeadline) {
  loop.spawn(group, "sleeper", [&] {
    sleep_for(5ms);
    story.push_back(std::to_string(to_ns(loop.now)));
  });
  loop.run();
  EXPECT_EQ(story, std::vector<std::string>{"5000000"});
}

TEST_F(FiberTest, AnEventWakesItsWaiterAndADeadlineEndsTheWait) {
  Event event;
  loop.spawn(group, "waiter", [&] {
    story.push_back(event.wait(loop.now + 1ms) ? "set" : "late");
    story.push_back(event.wait() ? "set" : "late");
  });
  loop.spawn(group, "setter", [&] {
    sleep_for(2ms);
    event.set();
  });
  loop.run();
  EXPECT_EQ(story, (std::vector<std::string>{"late", "set"}));
}

TEST_F(FiberTest, AScopeWaitsForItsChildren) {
  loop.spawn(group, "parent", [&] {
    with_scope([&](Scope& scope) {
      for (int i = 3; i > 0; --i) {
        scope.spawn("child", [&, i] {
          sleep_for(i * 1ms);
          story.push_back("child " + std::to_string(i));
        });
      }
    });
    story.push_back("parent");
  });
  loop.run();
  EXPECT_EQ(story, (std::vector<std::string>{"child 1", "child 2", "child 3", "parent"}));
}

TEST_F(FiberTest, CancellationReachesChildrenAndIsSeenByEveryLaterWait) {
  Task parent = loop.spawn(group, "parent", [&] {
    with_scope([&](Scope& scope) {
      scope.spawn("child", [&] {
        struct Note {
          std::vector<std::string>& story;
          ~Note() { story.push_back("child unwound"); }
        } note{story};
        sleep_for(1s);
      });
      sleep_for(10s);
    });
    story.push_back("never reached");
  });
  loop.spawn(group, "canceller", [&] {
    sleep_for(1ms);
    parent.cancel();
    parent.join();
    story.push_back("joined");
  });
  loop.run();
  EXPECT_EQ(story, (std::vector<std::string>{"child unwound", "joined"}));
  EXPECT_EQ(loop.now, Instant(1ms));
}

TEST_F(FiberTest, AKillUnwindsChildrenFirstAndAtOnce) {
  Event never;
  struct Note {
    std::vector<std::string>& story;
    std::string text;
    ~Note() { story.push_back(text); }
  };
  loop.spawn(group, "parent", [&] {
    Note note{story, "parent"};
    with_scope([&](Scope& scope) {
      scope.spawn("child", [&] {
        Note inner{story, "child"};
        never.wait();
      });
      never.wait();
    });
  });
  loop.run();  // both wait, nothing is left to do
  ASSERT_EQ(group.live_fibers(), 2u);
  loop.spawn(group, "unstarted", [&] { story.push_back("never runs"); });
  group.deafen();
  loop.unwind(group);
  loop.drop_runnable();
  EXPECT_EQ(story, (std::vector<std::string>{"child", "parent"}));
  EXPECT_EQ(group.live_fibers(), 0u);
  never.set();
  EXPECT_TRUE(loop.spawn(group, "ghost", [&] { story.push_back("ghost"); }).done());
  loop.run();
  EXPECT_EQ(story.size(), 2u);
}

TEST_F(FiberTest, AMutexAdmitsOneAtATimeEvenWhenAWokenWaiterIsCancelled) {
  Mutex mutex;
  int inside = 0;
  std::vector<Task> tasks;
  for (int i = 0; i < 4; ++i) {
    tasks.push_back(loop.spawn(group, "locker", [&, i] {
      MutexLock lock(mutex);
      EXPECT_EQ(inside++, 0);
      sleep_for(1ms);
      --inside;
      story.push_back(std::to_string(i));
      if (i == 0) {
        tasks[1].cancel();
      }
    }));
  }
  loop.run();
  EXPECT_EQ(story, (std::vector<std::string>{"0", "2", "3"}));
}

TEST_F(FiberTest, AChannelIsBoundedAndDrainsAfterClose) {
  Channel<int> channel(2);
  loop.spawn(group, "sender", [&] {
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(channel.send(i));
      EXPECT_LE(channel.size(), 2u);
    }
    EXPECT_TRUE(channel.try_send(4) || channel.size() == 2);
    channel.close();
    EXPECT_FALSE(channel.send(9));
  });
  loop.spawn(group, "receiver", [&] {
    while (auto item = channel.receive()) {
      story.push_back(std::to_string(*item));
      sleep_for(1ms);
    }
  });
  loop.run();
  EXPECT_GE(story.size(), 4u);
  EXPECT_EQ(story.front(), "0");
}

TEST_F(FiberTest, ExceptionsOfOneFiberStayItsOwnAcrossASwitch) {
  auto thrower = [&](const char* name) {
    return [&, name] {
      for (int i = 0; i < 3; ++i) {
        std::string caught;
        try {
          throw std::runtime_error(name);
        } catch (const std::runtime_error& error) {
          caught = error.what();
        }
        sleep_for(1ms);
        story.push_back(caught);
      }
    };
  };
  loop.spawn(group, "a", thrower("a"));
  loop.spawn(group, "b", thrower("b"));
  loop.run();
  EXPECT_EQ(story, (std::vector<std::string>{"a", "b", "a", "b", "a", "b"}));
}

}  // namespace
