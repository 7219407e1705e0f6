// What io/net.h promises: order, half-close, backpressure, deadlines, refusals.
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/arms/conformance.h"

namespace {

using namespace io;

class Streams : public tests::Conformance {
 protected:
  struct Pair {
    std::unique_ptr<Listener> listener;
    std::unique_ptr<Stream> client;
    std::unique_ptr<Stream> server;
  };

  static Pair connected(Env& env) {
    Pair pair;
    Result<std::unique_ptr<Listener>> listener = env.net.listen("127.0.0.1:0");
    EXPECT_TRUE(listener.ok()) << listener.error().to_text();
    pair.listener = std::move(*listener);
    with_scope([&](Scope& scope) {
      scope.spawn("accept", [&] {
        Result<std::unique_ptr<Stream>> accepted = pair.listener->accept(env.after(30s));
        EXPECT_TRUE(accepted.ok()) << accepted.error().to_text();
        pair.server = std::move(*accepted);
      });
      Result<std::unique_ptr<Stream>> made = env.net.connect(pair.listener->address(), env.after(30s));
      EXPECT_TRUE(made.ok()) << made.error().to_text();
      pair.client = std::move(*made);
    });
    return pair;
  }

  // Reads until `bytes` have come or the stream ends.
  static std::string read_exactly(Stream& stream, size_t bytes) {
    std::string all;
    while (all.size() < bytes) {
      Result<std::string> part = stream.read(bytes - all.size());
      EXPECT_TRUE(part.ok()) << part.error().to_text();
      if (!part.ok() || part->empty()) {
        break;
      }
      all += *part;
    }
    return all;
  }
};
NARAD_ALL_ARMS(Streams);

TEST_P(Streams, BytesArriveInOrderBothWays) {
  run([&](Env& env) {
    Pair pair = connected(env);
    with_scope([&](Scope& scope) {
      scope.spawn("server", [&] {
        for (int i = 0; i < 200; ++i) {
          const std::string got = read_exactly(*pair.server, 4);
          ASSERT_TRUE(pair.server->write(got + got).ok());
        }
      });
      for (int i = 0; i < 200; ++i) {
        const std::string sent = std::to_string(1000 + i);
        ASSERT_TRUE(pair.client->write(sent).ok());
        EXPECT_EQ(read_exactly(*pair.client, 8), sent + sent);
      }
    });
  });
}

TEST_P(Streams, AReadReturnsAtMostWhatItAskedForAndLosesNothing) {
  run([&](Env& env) {
    Pair pair = connected(env);
    ASSERT_TRUE(pair.client->write("abcdefghij").ok());
    std::string all;
    while (all.size() < 10) {
      Result<std::string> part = pair.server->read(3);
      ASSERT_TRUE(part.ok());
      EXPECT_GE(part->size(), 1u);
      EXPECT_LE(part->size(), 3u);
      all += *part;
    }
    EXPECT_EQ(all, "abcdefghij");
  });
}

TEST_P(Streams, ManyMegabytesArriveWhole) {
  run([&](Env& env) {
    Pair pair = connected(env);
    std::string sent(8 * 1024 * 1024, '\0');
    for (size_t i = 0; i < sent.size(); ++i) {
      sent[i] = static_cast<char>(i * 7 + (i >> 11));
    }
    with_scope([&](Scope& scope) {
      scope.spawn("writer", [&] {
        EXPECT_TRUE(pair.client->write(sent).ok());
        EXPECT_TRUE(pair.client->shutdown_write().ok());
      });
      const std::string got = read_exactly(*pair.server, sent.size() + 1);
      EXPECT_TRUE(got == sent);
    });
  });
}

TEST_P(Streams, AHalfClosedStreamStillCarriesTheOtherDirection) {
  run([&](Env& env) {
    Pair pair = connected(env);
    ASSERT_TRUE(pair.client->write("request").ok());
    ASSERT_TRUE(pair.client->shutdown_write().ok());
    EXPECT_EQ(read_exactly(*pair.server, 100), "request");
    EXPECT_EQ(*pair.server->read(10), "") << "the end stays the end";
    EXPECT_TRUE(pair.client->write("more").is(ErrorKind::invalid));
    ASSERT_TRUE(pair.server->write("response").ok());
    EXPECT_EQ(read_exactly(*pair.client, 8), "response");
    ASSERT_TRUE(pair.server->shutdown_write().ok());
    EXPECT_EQ(*pair.client->read(10), "");
  });
}

TEST_P(Streams, TheServersHalfCloseWorksAlike) {
  run([&](Env& env) {
    Pair pair = connected(env);
    ASSERT_TRUE(pair.server->write("bye").ok());
    ASSERT_TRUE(pair.server->shutdown_write().ok());
    EXPECT_EQ(read_exactly(*pair.client, 100), "bye");
    ASSERT_TRUE(pair.client->write("still here").ok());
    EXPECT_EQ(read_exactly(*pair.server, 10), "still here");
  });
}

TEST_P(Streams, TheEndWakesAReaderThatWaits) {
  run([&](Env& env) {
    Pair pair = connected(env);
    with_scope([&](Scope& scope) {
      scope.spawn("reader", [&] { EXPECT_EQ(*pair.server->read(10), ""); });
      sleep_for(2ms);
      ASSERT_TRUE(pair.client->shutdown_write().ok());
    });
  });
}

TEST_P(Streams, AWriterStallsUntilTheReaderReads) {
  run([&](Env& env) {
    Pair pair = connected(env);
    constexpr size_t kPartBytes = 64 * 1024;
    constexpr size_t kBoundBytes = 64 * 1024 * 1024;
    size_t written = 0;
    bool go_on = true;
    with_scope([&](Scope& scope) {
      scope.spawn("writer", [&] {
        while (go_on) {
          ASSERT_TRUE(pair.client->write(std::string(kPartBytes, 'w')).ok());
          written += kPartBytes;
          ASSERT_LT(written, kBoundBytes) << "what nobody reads is bounded";
        }
        EXPECT_TRUE(pair.client->shutdown_write().ok());
      });
      size_t seen = 0;
      do {  // until it makes no progress
        seen = written;
        sleep_for(50ms);
      } while (written != seen);
      EXPECT_GT(written, 0u);
      go_on = false;
      size_t read = 0;
      while (true) {
        Result<std::string> part = pair.server->read(kPartBytes);
        ASSERT_TRUE(part.ok());
        if (part->empty()) {
          break;
        }
        read += part->size();
      }
      EXPECT_EQ(read, written);
      EXPECT_GT(written, seen) << "reading let the writer go on";
    });
  });
}

TEST_P(Streams, ATimedOutReadLosesNothing) {
  run([&](Env& env) {
    Pair pair = connected(env);
    EXPECT_TRUE(pair.server->read(10, env.after(3ms)).is(ErrorKind::timed_out));
    ASSERT_TRUE(pair.client->write("late").ok());
    EXPECT_EQ(read_exactly(*pair.server, 4), "late");
    EXPECT_TRUE(pair.server->read(10, env.now() - 1s).is(ErrorKind::timed_out));
  });
}

TEST_P(Streams, ACancelledReadLosesNothing) {
  run([&](Env& env) {
    Pair pair = connected(env);
    with_scope([&](Scope& scope) {
      Task reader = scope.spawn("reader", [&] {
        (void)pair.server->read(10);
        ADD_FAILURE() << "a cancelled read returned";
      });
      sleep_for(2ms);
      reader.cancel();
    });
    ASSERT_TRUE(pair.client->write("after").ok());
    EXPECT_EQ(read_exactly(*pair.server, 5), "after");
  });
}

TEST_P(Streams, ATimedOutWriteEndsTheWritingDirection) {
  run([&](Env& env) {
    Pair pair = connected(env);
    Status status;
    for (int i = 0; i < 2000 && status.ok(); ++i) {
      status = pair.client->write(std::string(64 * 1024, 'w'), env.after(30ms));
    }
    EXPECT_TRUE(status.is(ErrorKind::timed_out));
    EXPECT_TRUE(pair.client->write("x").is(ErrorKind::invalid));
    ASSERT_TRUE(pair.server->write("other way").ok());
    EXPECT_EQ(read_exactly(*pair.client, 9), "other way");
  });
}

TEST_P(Streams, CloseWakesReaderAndWriter) {
  run([&](Env& env) {
    Pair pair = connected(env);
    with_scope([&](Scope& scope) {
      scope.spawn("reader", [&] { EXPECT_TRUE(pair.client->read(10).is(ErrorKind::io)); });
      scope.spawn("writer", [&] {
        Status status;
        while (status.ok()) {
          status = pair.client->write(std::string(1024 * 1024, 'w'));
        }
        EXPECT_TRUE(status.is(ErrorKind::io)) << status.error().to_text();
      });
      sleep_for(100ms);
      pair.client->close();
    });
    EXPECT_FALSE(pair.client->read(10).ok());
    EXPECT_FALSE(pair.client->write("x").ok());
    EXPECT_FALSE(pair.client->shutdown_write().ok());
    pair.client->close();
  });
}

TEST_P(Streams, AStreamThatDiesEndsTheFarSide) {
  run([&](Env& env) {
    Pair pair = connected(env);
    ASSERT_TRUE(pair.client->write("last words").ok());
    EXPECT_EQ(read_exactly(*pair.server, 10), "last words");
    pair.client.reset();
    Result<std::string> end = pair.server->read(10, env.after(10s));
    EXPECT_TRUE((end.ok() && end->empty()) || end.is(ErrorKind::io));
    Status status;
    for (int i = 0; i < 200 && status.ok(); ++i) {
      status = pair.server->write("anybody?");
      sleep_for(1ms);
    }
    EXPECT_TRUE(status.is(ErrorKind::io));
  });
}

TEST_P(Streams, BytesSentBeforeTheFarSideClosedAreStillRead) {
  run([&](Env& env) {
    Pair pair = connected(env);
    ASSERT_TRUE(pair.client->write("first").ok());
    ASSERT_TRUE(pair.client->shutdown_write().ok());
    sleep_for(5ms);
    pair.client.reset();
    sleep_for(5ms);
    EXPECT_EQ(read_exactly(*pair.server, 100), "first");
  });
}

TEST_P(Streams, NobodyListensMeansRefused) {
  run([&](Env& env) {
    std::string address;
    {
      auto listener = std::move(*env.net.listen("127.0.0.1:0"));
      address = listener->address();
    }
    Result<std::unique_ptr<Stream>> refused = env.net.connect(address, env.after(10s));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::io) << refused.error().to_text();
    EXPECT_NE(refused.error().message.find(address), std::string::npos) << refused.error().message;
  });
}

TEST_P(Streams, APortInUseIsBusyAndFreeAgainAfterwards) {
  run([&](Env& env) {
    auto listener = std::move(*env.net.listen("127.0.0.1:0"));
    const std::string address = listener->address();
    Result<std::unique_ptr<Listener>> second = env.net.listen(address);
    ASSERT_TRUE(second.is(ErrorKind::busy));
    EXPECT_EQ(second.error().message, "listen " + address + ": address already in use");
    with_scope([&](Scope& scope) {
      scope.spawn("accept", [&] { EXPECT_TRUE(listener->accept(env.after(1ms)).is(ErrorKind::timed_out)); });
    });
    listener.reset();
    EXPECT_TRUE(env.net.listen(address).ok());
  });
}

TEST_P(Streams, AddressesAreCheckedAndShown) {
  run([&](Env& env) {
    for (std::string_view bad :
         {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:70000", "::1:80", "[::1:80"}) {
      EXPECT_TRUE(env.net.listen(bad).is(ErrorKind::invalid)) << bad;
      EXPECT_TRUE(env.net.connect(bad).is(ErrorKind::invalid)) << bad;
    }
    Pair pair = connected(env);
    EXPECT_EQ(pair.client->peer_address(), pair.listener->address());
    EXPECT_EQ(pair.listener->address().rfind("127.0.0.1:", 0), 0u);
    EXPECT_EQ(pair.server->peer_address().rfind("127.0.0.1:", 0), 0u);
    EXPECT_NE(pair.server->peer_address(), pair.listener->address());
  });
}

TEST_P(Streams, AnAttemptThatNobodyAnswersEndsAtItsDeadline) {
  run([&](Env& env) {
    EXPECT_TRUE(env.net.connect(arm().silent_address(), env.after(30ms)).is(ErrorKind::timed_out));
  });
}

TEST_P(Streams, AnAcceptEndsAtItsDeadlineAndTheListenerGoesOn) {
  run([&](Env& env) {
    auto listener = std::move(*env.net.listen("127.0.0.1:0"));
    EXPECT_TRUE(listener->accept(env.after(3ms)).is(ErrorKind::timed_out));
    with_scope([&](Scope& scope) {
      scope.spawn("client", [&] { EXPECT_TRUE(env.net.connect(listener->address()).ok()); });
      EXPECT_TRUE(listener->accept(env.after(10s)).ok());
    });
  });
}

TEST_P(Streams, ConnectionsWaitUntilTheyAreAccepted) {
  run([&](Env& env) {
    auto listener = std::move(*env.net.listen("127.0.0.1:0"));
    std::vector<std::unique_ptr<Stream>> clients;
    for (int i = 0; i < 20; ++i) {
      clients.push_back(std::move(*env.net.connect(listener->address(), env.after(10s))));
      ASSERT_TRUE(clients.back()->write("c").ok());
    }
    for (int i = 0; i < 20; ++i) {
      auto accepted = listener->accept(env.after(10s));
      ASSERT_TRUE(accepted.ok());
      EXPECT_EQ(*(*accepted)->read(1), "c");
    }
  });
}

TEST_P(Streams, ManyStreamsAtOnceDoNotMix) {
  run([&](Env& env) {
    auto listener = std::move(*env.net.listen("127.0.0.1:0"));
    constexpr int kStreams = 100;
    with_scope([&](Scope& scope) {
      scope.spawn("acceptor", [&] {
        with_scope([&](Scope& sessions) {
          for (int i = 0; i < kStreams; ++i) {
            std::shared_ptr<Stream> stream = std::move(*listener->accept());
            sessions.spawn("session", [stream] {
              while (true) {
                Result<std::string> part = stream->read(1000);
                if (!part.ok() || part->empty()) {
                  return;
                }
                EXPECT_TRUE(stream->write(std::move(*part)).ok());
              }
            });
          }
        });
      });
      for (int i = 0; i < kStreams; ++i) {
        scope.spawn("client", [&, i] {
          auto stream = std::move(*env.net.connect(listener->address()));
          for (int k = 0; k < 20; ++k) {
            const std::string sent = std::to_string(100000 + i * 100 + k);
            ASSERT_TRUE(stream->write(sent).ok());
            EXPECT_EQ(read_exactly(*stream, sent.size()), sent);
          }
        });
      }
    });
  });
}

TEST_P(Streams, OneFiberReadsWhileAnotherWrites) {
  run([&](Env& env) {
    Pair pair = connected(env);
    static constexpr size_t kBytes = 3 * 1024 * 1024;
    with_scope([&](Scope& scope) {
      for (Stream* end : {pair.client.get(), pair.server.get()}) {
        scope.spawn("writer", [end] { EXPECT_TRUE(end->write(std::string(kBytes, 'x')).ok()); });
        scope.spawn("reader", [end] { EXPECT_EQ(read_exactly(*end, kBytes).size(), kBytes); });
      }
    });
  });
}

}  // namespace
