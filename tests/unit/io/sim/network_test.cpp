#include "io/sim/network.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "io/sim/world.h"

namespace {

using namespace io;
using namespace io::sim;

MachineSettings named(std::string name) {
  MachineSettings settings;
  settings.name = std::move(name);
  return settings;
}

struct NetworkTest : testing::Test {
  World world{11};
  Machine& a = world.add_machine(named("a"));
  Machine& b = world.add_machine(named("b"));
  Network& net = world.network();
  std::vector<std::string> story;

  void tell(std::string what) { story.push_back(std::move(what)); }
  template <typename T>
  static std::string shown(const Result<T>& result) {
    return result.ok() ? "ok" : std::string(to_string(result.error().kind));
  }
  static std::string shown_bytes(const Result<std::string>& result) {
    return result.ok() ? "\"" + *result + "\"" : std::string(to_string(result.error().kind));
  }
  // b accepts one connection on b:1 and serves it.
  void serve(std::function<void(Env&, Stream&)> session) {
    b.start([session](Env& env) {
      auto listener = env.net.listen("b:1");
      EXPECT_TRUE(listener.ok());
      auto stream = (*listener)->accept();
      EXPECT_TRUE(stream.ok());
      session(env, **stream);
      return 0;
    });
  }
  void dial(std::function<void(Env&, Stream&)> session) {
    a.start([session](Env& env) {
      auto stream = env.net.connect("b:1", env.after(60s));
      EXPECT_TRUE(stream.ok());
      session(env, **stream);
      return 0;
    });
  }
  static std::string read_to_end(Stream& stream) {
    std::string all;
    while (true) {
      auto bytes = stream.read(4096);
      if (!bytes.ok() || bytes->empty()) {
        return all;
      }
      all += *bytes;
    }
  }
};

TEST_F(NetworkTest, BytesArriveInOrderAndTheEndAfterThem) {
  std::string sent;
  std::string received;
  serve([&](Env&, Stream& stream) { received = read_to_end(stream); });
  dial([&](Env& env, Stream& stream) {
    RandomStream draws = env.random.stream("bytes", 1);
    for (int i = 0; i < 200; ++i) {
      std::string part(draws.below(3000), static_cast<char>('a' + i % 26));
      sent += part;
      EXPECT_TRUE(stream.write(part).ok());
    }
    EXPECT_TRUE(stream.shutdown_write().ok());
    EXPECT_EQ(stream.read(1).value(), "") << "the far side ends its direction when it closes";
  });
  world.run_for(10s);
  EXPECT_EQ(received.size(), sent.size());
  EXPECT_TRUE(received == sent);
  EXPECT_EQ(net.open_connections(), 0u);
}

TEST_F(NetworkTest, ANodeReachesItsOwnAddressAndItsLoopback) {
  a.start([&](Env& env) {
    auto listener = env.net.listen("127.0.0.1:0");
    const std::string address = (*listener)->address();
    with_scope([&](Scope& scope) {
      scope.spawn("serve", [&] {
        auto stream = (*listener)->accept();
        tell((*stream)->read(10).value());
      });
      auto stream = env.net.connect(address, env.after(1s));
      EXPECT_TRUE((*stream)->write("hello").ok());
      EXPECT_EQ((*stream)->read(1).value(), "");
    });
    return 0;
  });
  world.run_for(2s);
  EXPECT_EQ(story, std::vector<std::string>{"hello"});
}

TEST_F(NetworkTest, WhatListensOnTheLoopbackIsNotReachedFromElsewhere) {
  b.start([&](Env& env) {
    auto listener = env.net.listen("127.0.0.1:1");
    sleep_for(5s);
    return 0;
  });
  a.start([&](Env& env) {
    tell(shown(env.net.connect("b:1", env.after(1s))));
    return 0;
  });
  world.run_for(2s);
  EXPECT_EQ(story, std::vector<std::string>{"io"});
}

TEST_F(NetworkTest, AttemptsFailAsTheyShould) {
  b.start([](Env&) {
    sleep_for(1h);
    return 0;
  });
  net.cut(b, a);
  a.start([&](Env& env) {
    tell(shown(env.net.connect("nowhere:1", env.after(1s))));
    tell(shown(env.net.connect("b:1", env.after(3s))));
    net.heal(b, a);
    tell(shown(env.net.connect("b:1", env.after(3s))));
    tell(shown(env.net.connect("b", env.after(3s))));
    return 0;
  });
  world.run_for(20s);
  EXPECT_EQ(story, (std::vector<std::string>{"not found", "timed out", "io", "invalid"}));
  EXPECT_EQ(net.open_connections(), 0u);
}

TEST_F(NetworkTest, APortInUseIsBusyUntilItsListenerDies) {
  a.start([&](Env& env) {
    auto first = env.net.listen("a:80");
    tell(shown(env.net.listen("a:80")));
    first->reset();
    tell(shown(env.net.listen("a:80")));
    tell(shown(env.net.listen("b:80")));
    return 0;
  });
  world.run_for(1s);
  EXPECT_EQ(story, (std::vector<std::string>{"busy", "ok", "not found"}));
}

TEST_F(NetworkTest, AWriterWaitsWhileTheFarSideDoesNotRead) {
  const size_t window = world.settings().net.buffer_bytes;
  serve([&](Env&, Stream& stream) {
    sleep_for(5s);
    tell("reads");
    EXPECT_EQ(read_to_end(stream).size(), 3 * window);
  });
  dial([&](Env& env, Stream& stream) {
    EXPECT_TRUE(stream.write(std::string(window, 'x'), env.after(1s)).ok());
    EXPECT_TRUE(stream.write(std::string(2 * window, 'y'), env.after(10s)).ok());
    tell("written");
  });
  world.run_for(20s);
  EXPECT_EQ(story, (std::vector<std::string>{"reads", "written"}));
}

TEST_F(NetworkTest, AWriteThatTimesOutClosesTheStreamForWriting) {
  serve([&](Env&, Stream&) { sleep_for(1h); });
  dial([&](Env& env, Stream& stream) {
    tell(shown(stream.write(std::string(1 << 20, 'x'), env.after(1s))));
    tell(shown(stream.write("more", env.after(1s))));
  });
  world.run_for(5s);
  EXPECT_EQ(story, (std::vector<std::string>{"timed out", "invalid"}));
}

TEST_F(NetworkTest, AReadThatTimesOutLosesNothing) {
  serve([&](Env&, Stream& stream) {
    sleep_for(2s);
    EXPECT_TRUE(stream.write("late").ok());
    sleep_for(1h);
  });
  dial([&](Env& env, Stream& stream) {
    tell(shown_bytes(stream.read(1, env.after(1s))));
    std::string all;
    while (all.size() < 4) {
      all += stream.read(10).value();
    }
    tell(all);
  });
  world.run_for(5s);
  EXPECT_EQ(story, (std::vector<std::string>{"timed out", "late"}));
}

TEST_F(NetworkTest, AKilledProcessClosesItsPeersConnections) {
  serve([&](Env&, Stream& stream) {
    EXPECT_TRUE(stream.write("hello").ok());
    sleep_for(1h);
  });
  dial([&](Env&, Stream& stream) {
    std::string all;
    while (all.size() < 5) {
      all += stream.read(10).value();
    }
    tell(all);
    auto end = stream.read(10);
    tell(!end.ok() || end->empty() ? "ended" : "more");
    // What is sent into the void comes back as a reset.
    Status status;
    while (status.ok()) {
      status = stream.write("x");
      sleep_for(10ms);
    }
    tell(shown(status));
  });
  world.after(1s, [&] { b.kill(); });
  world.run_for(3s);
  EXPECT_EQ(story, (std::vector<std::string>{"hello", "ended", "io"}));
}

TEST_F(NetworkTest, APowerLossLeavesThePeerHalfOpenUntilItSpeaksToTheReturnedMachine) {
  serve([&](Env&, Stream&) { sleep_for(1h); });
  dial([&](Env& env, Stream& stream) {
    tell(shown_bytes(stream.read(10, env.after(30min))));
    tell(shown(stream.write("anybody?", env.after(1s))));
    tell(shown_bytes(stream.read(10, env.after(30min))));
  });
  world.after(1s, [&] { b.power_loss(); });
  world.run_for(50min);
  EXPECT_EQ(story, (std::vector<std::string>{"timed out", "ok"}));
  b.start([](Env&) {
    sleep_for(1h);
    return 0;
  });
  world.run_for(5min);
  EXPECT_EQ(story, (std::vector<std::string>{"timed out", "ok", "io"}));
}

TEST_F(NetworkTest, ACutHoldsWhatIsInFlightAndTheHealDeliversItInOrder) {
  serve([&](Env&, Stream& stream) { tell(read_to_end(stream)); });
  dial([&](Env&, Stream& stream) {
    EXPECT_TRUE(stream.write("before ").ok());
    sleep_for(1s);
    net.cut(a, b);
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(stream.write(std::to_string(i)).ok());
      sleep_for(100ms);
    }
    EXPECT_TRUE(stream.shutdown_write().ok());
    sleep_for(1h);
  });
  world.run_for(30min);
  EXPECT_TRUE(story.empty());
  net.heal(a, b);
  world.run_for(5s);
  EXPECT_EQ(story, std::vector<std::string>{"before 01234"});
}

TEST_F(NetworkTest, ACutOneWayLetsTheOtherWayThrough) {
  serve([&](Env& env, Stream& stream) {
    tell("server read " + shown_bytes(stream.read(1, env.after(2s))));
    EXPECT_TRUE(stream.write("x").ok());
    sleep_for(1h);
  });
  dial([&](Env& env, Stream& stream) {
    net.cut(a, b);
    EXPECT_TRUE(stream.write("y").ok());
    tell("client read " + shown_bytes(stream.read(1, env.after(10s))));
    sleep_for(1h);
  });
  world.run_for(20s);
  EXPECT_EQ(story, (std::vector<std::string>{"server read timed out", "client read \"x\""}));
}

TEST_F(NetworkTest, AnAttemptAcrossACutSucceedsOnceItHeals) {
  serve([&](Env&, Stream& stream) { read_to_end(stream); });
  net.cut_both(a, b);
  world.after(5s, [&] { net.heal_all(); });
  a.start([&](Env& env) {
    tell(shown(env.net.connect("b:1", env.after(30s))));
    return 0;
  });
  world.run_for(4s);
  EXPECT_TRUE(story.empty());
  world.run_for(10s);
  EXPECT_EQ(story, std::vector<std::string>{"ok"});
}

TEST_F(NetworkTest, LossDelaysAndNeverReorders) {
  net.set_loss(100'000, 0);
  std::string sent;
  serve([&](Env&, Stream& stream) { tell(read_to_end(stream)); });
  dial([&](Env&, Stream& stream) {
    for (int i = 0; i < 300; ++i) {
      const std::string part = std::to_string(i) + " ";
      sent += part;
      EXPECT_TRUE(stream.write(part).ok());
      sleep_for(1ms);
    }
    EXPECT_TRUE(stream.shutdown_write().ok());
    sleep_for(1h);
  });
  world.run_for(60s);
  ASSERT_EQ(story.size(), 1u);
  EXPECT_EQ(story[0], sent);
}

TEST_F(NetworkTest, ALossThatBreaksTheConnectionLeavesAPrefixAndResetsBothEnds) {
  net.set_loss(20'000, 1'000'000);
  std::string sent;
  std::string received;
  serve([&](Env&, Stream& stream) {
    Result<std::string> bytes = stream.read(100);
    while (bytes.ok() && !bytes->empty()) {
      received += *bytes;
      bytes = stream.read(100);
    }
    tell("server " + shown_bytes(bytes));
  });
  dial([&](Env&, Stream& stream) {
    Status status;
    for (int i = 0; status.ok(); ++i) {
      const std::string part = std::to_string(i) + " ";
      sent += part;
      status = stream.write(part);
      sleep_for(1ms);
    }
    tell("client " + shown(status));
  });
  world.run_for(60s);
  EXPECT_EQ(story.size(), 2u);
  for (const std::string& line : story) {
    EXPECT_TRUE(line.ends_with(" io")) << line;
  }
  EXPECT_TRUE(sent.starts_with(received));
  EXPECT_FALSE(received.empty());
}

TEST_F(NetworkTest, CloseWakesAWaitingReaderAndAcceptTimesOut) {
  serve([&](Env&, Stream&) { sleep_for(1h); });
  a.start([&](Env& env) {
    auto listener = env.net.listen("a:0");
    tell(shown((*listener)->accept(env.after(1s))));
    auto stream = env.net.connect("b:1");
    with_scope([&](Scope& scope) {
      scope.spawn("closer", [&] {
        sleep_for(1s);
        (*stream)->close();
      });
      tell(shown_bytes((*stream)->read(1)));
      tell(shown((*stream)->write("x")));
    });
    return 0;
  });
  world.run_for(5s);
  EXPECT_EQ(story, (std::vector<std::string>{"timed out", "io", "io"}));
}

TEST_F(NetworkTest, ACancelledAttemptLeavesNoConnection) {
  serve([&](Env&, Stream& stream) { tell(shown_bytes(stream.read(1))); });
  a.start([&](Env& env) {
    with_scope([&](Scope& scope) {
      Task attempt = scope.spawn("attempt", [&] {
        auto stream = env.net.connect("b:1");
        tell("connected");
      });
      sleep_for(30us);
      attempt.cancel();
    });
    return 0;
  });
  world.run_for(5s);
  ASSERT_EQ(story.size(), 1u);
  EXPECT_NE(story[0], "connected");
  EXPECT_EQ(net.open_connections(), 0u);
}

TEST_F(NetworkTest, ASlowReaderGetsItsBytesLater) {
  net.set_read_delay(b, 1s);
  Instant read{};
  serve([&](Env&, Stream& stream) {
    EXPECT_TRUE(stream.read(1).ok());
    read = world.now();
  });
  Instant written{};
  dial([&](Env&, Stream& stream) {
    written = world.now();
    EXPECT_TRUE(stream.write("x").ok());
    sleep_for(1min);
  });
  world.run_for(10s);
  EXPECT_GE(read - written, 1s);
}

}  // namespace
