// The client pool and the server of the node protocol, against each other and against peers that misbehave.

#include <gtest/gtest.h>

#include "engine/cluster/cluster_frames.h"
#include "engine/cluster/node_client.h"
#include "engine/cluster/node_server.h"
#include "tests/unit/engine/api/sim_pair.h"

namespace engine::cluster {
namespace {

using namespace std::chrono_literals;
using Kind = CallResult::Kind;

class NodeRpcTest : public engine::test::SimPair {
 protected:
  std::vector<std::string> handled;
  std::function<NodeReply(std::string_view)> handler = [](std::string_view payload) {
    return json_reply(200, std::string(payload.substr(1)));
  };
  size_t accepted = 0;
  io::Stream* last_stream = nullptr;

  void serve() {
    start_server([this](io::Env& env) {
      NodeServer server(env, [this](std::string_view payload) {
        handled.emplace_back(payload);
        return handler(payload);
      });
      auto listener = env.net.listen("0.0.0.0:90");
      ASSERT_TRUE(listener.ok());
      io::with_scope([&](io::Scope& scope) {
        while (true) {
          auto stream = std::make_shared<std::unique_ptr<io::Stream>>(*(*listener)->accept());
          ++accepted;
          last_stream = stream->get();
          scope.spawn("conn", [&, stream] { server.serve(std::move(*stream), {}); });
        }
      });
    });
  }

  void with_pool(std::function<void(io::Env&, io::Scope&, NodeClientPool&)> body, NodeClientSettings settings = {}) {
    start_client([body = std::move(body), settings](io::Env& env) {
      NodeClientPool pool(env, settings);
      io::with_scope([&](io::Scope& scope) {
        pool.run(scope);
        body(env, scope, pool);
        scope.cancel();
      });
    });
  }
};

std::string op(Op which, std::string rest = {}) { return std::string(1, static_cast<char>(which)) + std::move(rest); }

TEST_F(NodeRpcTest, CallsShareOneConnectionAndGetTheirOwnAnswers) {
  handler = [](std::string_view payload) {
    io::sleep_for(std::chrono::milliseconds(100 - payload.back()));  // later calls answer first
    return json_reply(200, std::string(payload.substr(1)));
  };
  serve();
  with_pool([&](io::Env& env, io::Scope&, NodeClientPool& pool) {
    io::with_scope([&](io::Scope& scope) {
      for (char i = 0; i < 50; ++i) {
        scope.spawn("call", [&, i] {
          const CallResult result = pool.call("server:90", op(Op::create_topic, std::string(1, i)), env.after(5s));
          ASSERT_EQ(result.kind, Kind::answered);
          EXPECT_EQ(result.reply.body, std::string(1, i) + "\n");
        });
      }
    });
  });
  run();
  EXPECT_EQ(accepted, 1u);
  EXPECT_EQ(handled.size(), 50u);
}

// Scenario NW-07: a hundred forwarded writes and the heartbeats of one node on one connection; one write is cancelled, another runs out
// of time, and the answer to that one comes late.
TEST_F(NodeRpcTest, ACancelledAndALateCallLeaveTheOthersAndTheHeartbeatsAlone) {
  constexpr int kForwards = 100;
  handler = [](std::string_view payload) {
    const auto write = decode_create_topic(payload);
    if (!write.ok()) return NodeReply{204, {}, {}};  // a heartbeat
    io::sleep_for(write->topic == "slow" ? 3s : 1s);
    return json_reply(201, write->body);
  };
  serve();
  int forwarded = 0;
  int beats = 0;
  with_pool([&](io::Env& env, io::Scope&, NodeClientPool& pool) {
    const std::string slow = encode(CreateTopicRequest{"slow", "{}", std::nullopt});
    const std::string beat = encode(RegisterMemberRequest{"n2", "n2:7942", "n2:7943", "alive", 1, std::nullopt});
    const io::Instant end = env.after(6s);
    io::with_scope([&](io::Scope& scope) {
      scope.spawn("heartbeats", [&] {
        for (; env.now() < end; ++beats, io::sleep_for(100ms)) {
          const CallResult result = pool.call("server:90", beat, env.after(50ms));
          ASSERT_EQ(result.kind, Kind::answered) << beats << ": " << result.detail;
          ASSERT_EQ(result.reply.status, 204) << result.reply.body;
        }
      });
      for (int i = 0; i < kForwards; ++i) {
        scope.spawn("forward", [&, i] {
          const std::string body = "{\"n\":" + std::to_string(i) + "}";
          const CallResult result = pool.call("server:90", encode(CreateTopicRequest{"t", body, std::nullopt}), env.after(5s));
          ASSERT_EQ(result.kind, Kind::answered) << i << ": " << result.detail;
          EXPECT_EQ(result.reply.body, body + "\n") << "the answer is its own";
          ++forwarded;
        });
      }
      io::Task doomed = scope.spawn("doomed", [&] { (void)pool.call("server:90", slow, env.after(5s)); });
      scope.spawn("late", [&] {
        const CallResult result = pool.call("server:90", slow, env.after(100ms));
        EXPECT_EQ(result.kind, Kind::unknown);
        EXPECT_TRUE(result.timed_out);
      });
      io::sleep_for(20ms);
      doomed.cancel();
    });
    EXPECT_EQ(pool.call("server:90", beat, env.after(50ms)).kind, Kind::answered);
  });
  run();
  EXPECT_EQ(forwarded, kForwards);
  EXPECT_GT(beats, 50);
  EXPECT_EQ(accepted, 1u);
}

// Scenario NW-07: a server that does not know that its client has given up answers all the same.
TEST_F(NodeRpcTest, ALateAnswerIsDroppedByItsIdAndTheConnectionGoesOn) {
  start_server([&](io::Env& env) {
    auto listener = env.net.listen("0.0.0.0:90");
    auto stream = *(*listener)->accept();
    ++accepted;
    // Takes no notice of what it is told; answers the first request late, and the second one behind that.
    std::string bytes;
    std::vector<uint64_t> ids;
    while (ids.size() < 2) {
      auto more = stream->read(64 << 10, io::kNever);
      if (!more.ok() || more->empty()) return;
      bytes += *more;
      while (bytes.size() >= kFrameHeaderBytes) {
        const FrameHeader header = *decode_frame_header(bytes);
        if (bytes.size() < kFrameHeaderBytes + header.payload_bytes) break;
        if (header.type == FrameType::node_request) ids.push_back(header.request_id);
        bytes.erase(0, kFrameHeaderBytes + header.payload_bytes);
      }
    }
    std::string out;
    for (const uint64_t id : ids) append_frame(out, FrameType::node_reply, id, encode(json_reply(200, std::to_string(id))));
    (void)stream->write(out);
    io::sleep_for(10s);
  });
  with_pool([&](io::Env& env, io::Scope&, NodeClientPool& pool) {
    EXPECT_EQ(pool.call("server:90", op(Op::get_topic), env.after(100ms)).kind, Kind::unknown);
    const CallResult second = pool.call("server:90", op(Op::get_topic), env.after(5s));
    ASSERT_EQ(second.kind, Kind::answered) << second.detail;
    EXPECT_EQ(second.reply.body, "2\n") << "not the first one's";
  });
  run();
  EXPECT_EQ(accepted, 1u);
}

TEST_F(NodeRpcTest, ANodeThatIsNotThereIsNeverSentAndDialledAgainAfterABackoff) {
  serve();
  with_pool([&](io::Env& env, io::Scope&, NodeClientPool& pool) {
    const io::Instant begin = env.now();
    EXPECT_EQ(pool.call("server:91", op(Op::get_topic), env.after(5s)).kind, Kind::never_sent);
    EXPECT_EQ(pool.call("server:91", op(Op::get_topic), env.after(5s)).kind, Kind::never_sent);
    EXPECT_LT(env.now() - begin, 200ms) << "within the backoff a call fails at once";
    auto listener = env.net.listen("0.0.0.0:91");
    io::sleep_for(3s);
    EXPECT_EQ(pool.call("client:91", op(Op::get_topic), env.after(500ms)).kind, Kind::unknown) << "it was dialled again";
  });
  run();
}

TEST_F(NodeRpcTest, ALostConnectionLeavesSentCallsUnknownAndTheNextCallMakesANewOne) {
  handler = [this](std::string_view payload) {
    if (payload.size() > 1) {
      last_stream->close();
      io::sleep_for(1s);
    }
    return json_reply(200, "{}");
  };
  serve();
  with_pool([&](io::Env& env, io::Scope&, NodeClientPool& pool) {
    const CallResult lost = pool.call("server:90", op(Op::create_topic, "x"), env.after(5s));
    EXPECT_EQ(lost.kind, Kind::unknown);
    EXPECT_FALSE(lost.timed_out);
    EXPECT_EQ(pool.call("server:90", op(Op::create_topic), env.after(5s)).kind, Kind::answered);
  });
  run();
  EXPECT_EQ(accepted, 2u);
}

// NW-01
TEST_F(NodeRpcTest, AHalfOpenConnectionIsFoundByAPingAndReplaced) {
  serve();
  with_pool([&](io::Env& env, io::Scope&, NodeClientPool& pool) {
    EXPECT_EQ(pool.call("server:90", op(Op::get_topic), env.after(5s)).kind, Kind::answered);
    world.network().cut_both(client_machine, server_machine);
    EXPECT_EQ(pool.call("server:90", op(Op::get_topic), env.after(500ms)).kind, Kind::unknown);
    io::sleep_for(2s);  // the ping goes unanswered
    world.network().heal_all();
    EXPECT_EQ(pool.call("server:90", op(Op::get_topic), env.after(5s)).kind, Kind::answered);
  });
  run();
  EXPECT_EQ(accepted, 2u);
}

TEST_F(NodeRpcTest, ControlOperationsWaitForTheirTurnAndACancelledOneIsDroppedUnapplied) {
  size_t running = 0;
  size_t most = 0;
  handler = [&](std::string_view) {
    most = std::max(most, ++running);
    io::sleep_for(1s);
    --running;
    return json_reply(200, "{}");
  };
  serve();
  with_pool([&](io::Env& env, io::Scope&, NodeClientPool& pool) {
    io::with_scope([&](io::Scope& scope) {
      for (int i = 0; i < 100; ++i) {
        const io::Duration patience = i < 64 ? 5s : 200ms;
        scope.spawn("call", [&, patience] { (void)pool.call("server:90", op(Op::alter_topic), env.after(patience)); });
        if (i == 63) {
          io::sleep_for(100ms);
        }
      }
    });
    io::sleep_for(5s);
  });
  run();
  EXPECT_EQ(most, 64u);
  EXPECT_EQ(handled.size(), 64u);
}

// NW-08
TEST_F(NodeRpcTest, HostileBytesCloseTheirConnectionAndNothingElse) {
  serve();
  with_pool([&](io::Env& env, io::Scope&, NodeClientPool& pool) {
    std::string huge;
    append_frame(huge, FrameType::node_request, 1, "");
    huge[16] = '\xff';
    std::string truncated;
    append_frame(truncated, FrameType::node_request, 1, "\x14 half a payload");
    for (const std::string& bytes :
         {std::string("GET / HTTP/1.1\r\n\r\n"), huge, std::string(64, '\0'), std::string("NRS1\x02xxxxxxxxxxxxxxxx")}) {
      auto stream = env.net.connect("server:90", env.after(1s));
      ASSERT_TRUE((*stream)->write(bytes).ok());
      (void)engine::test::read_all(**stream, env.after(5s));
      EXPECT_FALSE((*stream)->read(1, env.after(1s)).is(io::ErrorKind::timed_out)) << "still open";
    }
    auto cut = env.net.connect("server:90", env.after(1s));
    ASSERT_TRUE((*cut)->write(truncated.substr(0, 25)).ok());
    (*cut)->close();
    EXPECT_EQ(pool.call("server:90", op(Op::get_topic), env.after(5s)).kind, Kind::answered);
  });
  run();
  EXPECT_EQ(handled.size(), 1u);
}

TEST_F(NodeRpcTest, AnEmptyRequestIs400) {
  serve();
  start_client([&](io::Env& env) {
    auto stream = env.net.connect("server:90", env.after(1s));
    std::string frame;
    append_frame(frame, FrameType::node_request, 9, "");
    append_frame(frame, FrameType::ping, 10, "");
    ASSERT_TRUE((*stream)->write(frame).ok());
    (void)(*stream)->shutdown_write();
    const std::string answer = engine::test::read_all(**stream, env.after(2s));
    EXPECT_NE(answer.find("invalid rpc request"), std::string::npos);
    std::string pong;
    append_frame(pong, FrameType::pong, 10, "");
    EXPECT_NE(answer.find(pong), std::string::npos);
  });
  run();
}

}  // namespace
}  // namespace engine::cluster
