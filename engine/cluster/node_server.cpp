#include "engine/cluster/node_server.h"

#include <map>
#include <utility>

#include "engine/cluster/frame_stream.h"
#include "io/check.h"

namespace engine::cluster {

namespace {

// Clients close what they do not use after a minute; what is silent for longer than this has lost its client.
constexpr io::Duration kSilenceMax = std::chrono::minutes(10);

io::Duration write_limit(size_t bytes) {
  return std::chrono::seconds(5) + std::chrono::seconds(1) * static_cast<int64_t>(bytes / (256 * 1024));
}

// Runs as long as it takes to place a write (create, delete); everything else of this release is a control operation.
bool is_gated(uint8_t op) { return op != static_cast<uint8_t>(Op::create_topic) && op != static_cast<uint8_t>(Op::delete_topic); }

}  // namespace

struct NodeServer::Connection {
  io::Env& env;
  std::unique_ptr<io::Stream> stream;
  struct Request {
    size_t bytes = 0;
    bool cancelled = false;
  };
  std::map<uint64_t, Request> requests;  // in hand
  size_t request_bytes = 0;
  io::Condition request_ended;
  std::string outgoing;
  bool writing = false;
  bool broken = false;

  // Queues a frame; the first fiber to find nobody writing writes for all.
  void send(FrameType type, uint64_t id, std::string_view payload) {
    if (broken) {
      return;
    }
    append_frame(outgoing, type, id, payload);
    if (writing) {
      return;
    }
    writing = true;
    while (!outgoing.empty() && !broken) {
      std::string bytes = std::exchange(outgoing, std::string());
      const io::Instant deadline = env.after(write_limit(bytes.size()));
      if (!stream->write(std::move(bytes), deadline).ok()) {
        broken = true;
        stream->close();
      }
    }
    writing = false;
  }
};

NodeServer::NodeServer(io::Env& env, Handler handler, Immediate immediate, size_t control_concurrency)
    : env_(env),
      handler_(std::move(handler)),
      immediate_(std::move(immediate)),
      control_concurrency_(control_concurrency) {}

void NodeServer::serve(std::unique_ptr<io::Stream> stream, std::string first_bytes) {
  Connection connection{env_, std::move(stream), {}, 0, {}, {}, false, false};
  FrameReader reader(*connection.stream, std::move(first_bytes));
  io::with_scope([&](io::Scope& scope) {
    while (!connection.broken) {
      io::Result<std::optional<Frame>> frame = reader.next(env_.after(kSilenceMax));
      if (!frame.ok()) {
        if (frame.is(io::ErrorKind::corrupt)) {
          connection.send(FrameType::error, 0, encode_error_text(frame.error().message));
        }
        return;
      }
      if (!frame->has_value()) {
        return;
      }
      const uint64_t id = (*frame)->header.request_id;
      switch ((*frame)->header.type) {
        case FrameType::node_request:
          take_request(connection, scope, id, std::move((*frame)->payload));
          break;
        case FrameType::cancel: {
          const auto request = connection.requests.find(id);
          if (request != connection.requests.end()) {
            request->second.cancelled = true;
            control_freed_.notify_all();
          }
          break;
        }
        case FrameType::ping:
          connection.send(FrameType::pong, id, {});
          break;
        case FrameType::pong:
        case FrameType::error:
        case FrameType::node_reply:
          break;
        case FrameType::auth:
          connection.send(FrameType::error, id, encode_error_text("authentication is not in use here"));
          return;
      }
    }
  });
}

void NodeServer::take_request(Connection& connection, io::Scope& scope, uint64_t id, std::string payload) {
  if (immediate_ && !payload.empty()) {
    if (const std::optional<NodeReply> reply = immediate_(payload)) {
      connection.send(FrameType::node_reply, id, encode(*reply));
      return;
    }
  }
  const auto is_full = [&] {
    return connection.requests.size() >= kRequestsPerConnection ||
           (!connection.requests.empty() && connection.request_bytes + payload.size() > kRequestBytesPerConnection);
  };
  while (is_full() && !connection.broken) {
    connection.request_ended.wait();
  }
  if (!connection.requests.emplace(id, Connection::Request{payload.size(), false}).second) {
    connection.send(FrameType::error, id, encode_error_text("request id is in use"));
    return;
  }
  connection.request_bytes += payload.size();
  scope.spawn("node/request", [this, &connection, id, payload = std::move(payload)] {
    struct Leave {
      Connection& connection;
      uint64_t id;
      ~Leave() {
        const auto request = connection.requests.find(id);
        connection.request_bytes -= request->second.bytes;
        connection.requests.erase(request);
        connection.request_ended.notify_all();
      }
    } leave{connection, id};
    handle(connection, id, payload);
  });
}

void NodeServer::handle(Connection& connection, uint64_t id, const std::string& payload) {
  Connection::Request& request = connection.requests.at(id);
  const bool gated = !payload.empty() && is_gated(static_cast<uint8_t>(payload.front()));
  while (gated && control_running_ >= control_concurrency_) {
    control_freed_.wait();
    if (request.cancelled) {
      return;
    }
  }
  struct Slot {
    NodeServer& server;
    bool held;
    ~Slot() {
      if (held) {
        --server.control_running_;
        server.control_freed_.notify_all();  // a cancelled waiter would keep a single wake to itself
      }
    }
  } slot{*this, gated};
  control_running_ += gated ? 1 : 0;
  const std::string reply = encode(run(payload));
  if (!request.cancelled) {
    connection.send(FrameType::node_reply, id, reply);
  }
}

NodeReply NodeServer::run(std::string_view payload) {
  if (payload.empty()) {
    return error_reply(400, "invalid rpc request");
  }
  NodeReply reply = handler_(payload);
  if (reply.body.size() > kFramePayloadBytesMax - 1024) {
    return error_reply(500, "the reply is too long for a frame");
  }
  return reply;
}

}  // namespace engine::cluster
