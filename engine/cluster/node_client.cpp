#include "engine/cluster/node_client.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "engine/cluster/frame_stream.h"
#include "io/check.h"

namespace engine::cluster {

// A call that waits for its answer; stands on the caller's stack.
struct NodeClientPool::Pending {
  bool handed_over = false;  // its bytes have gone to the stream
  bool ended = false;
  CallResult result;
  io::Event done;

  void end(CallResult with) {
    ended = true;
    result = std::move(with);
    done.set();
  }
};

struct NodeClientPool::Peer {
  struct Outgoing {
    uint64_t id = 0;
    bool is_call = false;  // else cancel or ping: sent whatever became of its call
    std::string frame;
  };

  std::string address;
  io::Task fiber;
  bool wanted = false;         // a call waits for a connection
  io::Event wake;              // for the fiber: wanted
  io::Instant dial_not_before{};
  io::Duration backoff{0};
  bool connected = false;
  std::string last_failure;
  uint64_t next_id = 1;
  std::map<uint64_t, Pending*> pending;
  std::deque<Outgoing> outgoing;
  size_t queued_bytes = 0;
  io::Condition has_outgoing;
  uint64_t frames_received = 0;
  std::optional<io::Instant> last_ping;
  bool ping_wanted = false;
  io::Condition ping_requested;
  io::Instant last_use{};

  void queue(uint64_t id, bool is_call, FrameType type, std::string_view payload) {
    std::string frame;
    frame.reserve(kFrameHeaderBytes + payload.size());
    append_frame(frame, type, id, payload);
    queued_bytes += frame.size();
    outgoing.push_back({id, is_call, std::move(frame)});
    has_outgoing.notify_all();
  }
};

NodeClientPool::NodeClientPool(io::Env& env, NodeClientSettings settings, Observer observer)
    : env_(env), settings_(settings), observer_(std::move(observer)) {}

NodeClientPool::~NodeClientPool() = default;

void NodeClientPool::run(io::Scope& scope) {
  NARAD_CHECK(scope_ == nullptr, "a pool runs once");
  scope_ = &scope;
}

NodeClientPool::Peer& NodeClientPool::peer(std::string_view address) {
  auto place = peers_.find(address);
  if (place == peers_.end()) {
    place = peers_.emplace(std::string(address), std::make_unique<Peer>()).first;
    Peer& made = *place->second;
    made.address = place->first;
    NARAD_CHECK(scope_ != nullptr, "a pool runs before it calls");
    made.fiber = scope_->spawn("node/peer", [this, &made] { maintain(made); });
  }
  return *place->second;
}

CallResult NodeClientPool::call(std::string_view address, std::string_view payload, io::Instant deadline) {
  NARAD_CHECK(!payload.empty() && payload.size() <= kFramePayloadBytesMax, "a call has an opcode and fits a frame");
  const io::Instant begin = env_.now();
  CallResult result = exchange(peer(address), payload, deadline);
  if (observer_) {
    observer_(static_cast<uint8_t>(payload.front()), result, env_.now() - begin);
  }
  return result;
}

CallResult NodeClientPool::exchange(Peer& peer, std::string_view payload, io::Instant deadline) {
  using Kind = CallResult::Kind;
  if (!peer.connected && !peer.wanted && env_.now() < peer.dial_not_before) {
    return {Kind::never_sent, {}, peer.last_failure, false};
  }
  if (peer.queued_bytes + payload.size() > settings_.queued_bytes_max) {
    return {Kind::never_sent, {}, "too much is queued for " + peer.address, false};
  }
  const uint64_t id = peer.next_id++;
  Pending pending;
  // However this call ends, nobody may find its stack again, and the far side need not work for nothing.
  struct Leave {
    Peer& peer;
    uint64_t id;
    Pending& pending;
    ~Leave() {
      peer.pending.erase(id);
      if (!pending.ended && pending.handed_over) {
        peer.queue(id, false, FrameType::cancel, {});
      }
    }
  } leave{peer, id, pending};
  peer.pending.emplace(id, &pending);
  peer.queue(id, true, FrameType::node_request, payload);
  peer.last_use = env_.now();
  if (!peer.connected) {
    peer.wanted = true;
    peer.wake.set();
  }
  if (pending.done.wait(deadline)) {
    return std::move(pending.result);
  }
  if (pending.handed_over) {
    suspect(peer);
    return {Kind::unknown, {}, peer.address + " did not answer in time", true};
  }
  return {Kind::never_sent, {}, "no connection to " + peer.address + " in time", true};
}

// Asks for a ping when the last one was a second ago or more.
void NodeClientPool::suspect(Peer& peer) {
  if (peer.connected && (!peer.last_ping.has_value() || env_.now() - *peer.last_ping >= settings_.ping_timeout)) {
    peer.last_ping = env_.now();
    peer.ping_wanted = true;
    peer.ping_requested.notify_all();
  }
}

void NodeClientPool::fail_all(Peer& peer, const std::string& why) {
  using Kind = CallResult::Kind;
  peer.outgoing.clear();
  peer.queued_bytes = 0;
  for (auto& [id, pending] : peer.pending) {
    if (!pending->ended) {
      pending->end({pending->handed_over ? Kind::unknown : Kind::never_sent, {}, why, false});
    }
  }
}

// The peer's fiber: a connection at a time, while calls want one.
void NodeClientPool::maintain(Peer& peer) {
  while (true) {
    peer.wake.wait();
    peer.wake.reset();
    if (peer.pending.empty()) {
      peer.wanted = false;
      continue;
    }
    io::Result<std::unique_ptr<io::Stream>> stream = env_.net.connect(peer.address, env_.after(settings_.dial_timeout));
    peer.wanted = false;
    if (!stream.ok()) {
      peer.backoff = peer.backoff == io::Duration::zero() ? settings_.backoff_min
                                                          : std::min(peer.backoff * 2, settings_.backoff_max);
      peer.dial_not_before = env_.after(peer.backoff);
      peer.last_failure = "cannot reach " + peer.address + ": " + stream.error().message;
      fail_all(peer, peer.last_failure);
      continue;
    }
    peer.backoff = io::Duration::zero();
    peer.connected = true;
    struct Disconnect {
      Peer& peer;
      ~Disconnect() { peer.connected = false; }
    };
    {
      Disconnect disconnect{peer};
      converse(peer, **stream);
    }
    fail_all(peer, "lost the connection to " + peer.address);
  }
}

// Returns when the connection is of no more use.
void NodeClientPool::converse(Peer& peer, io::Stream& stream) {
  io::with_scope([&](io::Scope& scope) {
    scope.spawn("node/write", [&] {
      write_loop(peer, stream);
      stream.close();  // ends the reader
    });
    scope.spawn("node/ping", [&] {
      while (true) {
        while (!peer.ping_wanted) {
          peer.ping_requested.wait();
        }
        peer.ping_wanted = false;
        const uint64_t before = peer.frames_received;
        peer.queue(peer.next_id++, false, FrameType::ping, {});
        io::sleep_for(settings_.ping_timeout);
        if (peer.frames_received == before) {
          stream.close();
          return;
        }
      }
    });
    read_loop(peer, stream);
    peer.connected = false;
    scope.cancel();
  });
}

void NodeClientPool::write_loop(Peer& peer, io::Stream& stream) {
  while (true) {
    while (peer.outgoing.empty()) {
      peer.has_outgoing.wait();
    }
    std::string bytes;
    while (!peer.outgoing.empty() && bytes.size() < (1u << 20)) {
      Peer::Outgoing next = std::move(peer.outgoing.front());
      peer.outgoing.pop_front();
      peer.queued_bytes -= next.frame.size();
      if (next.is_call) {
        const auto waiting = peer.pending.find(next.id);
        if (waiting == peer.pending.end()) {
          continue;  // given up before it was sent
        }
        waiting->second->handed_over = true;
      }
      if (bytes.empty()) {
        bytes = std::move(next.frame);
      } else {
        bytes += next.frame;
      }
    }
    if (!bytes.empty() && !stream.write(std::move(bytes)).ok()) {
      return;
    }
  }
}

void NodeClientPool::read_loop(Peer& peer, io::Stream& stream) {
  FrameReader reader(stream, {});
  while (true) {
    io::Result<std::optional<Frame>> frame = reader.next(env_.after(settings_.idle_close));
    if (frame.is(io::ErrorKind::timed_out)) {
      if (peer.pending.empty() && env_.now() - peer.last_use >= settings_.idle_close) {
        return;
      }
      continue;
    }
    if (!frame.ok() || !frame->has_value()) {
      return;
    }
    ++peer.frames_received;
    const FrameHeader& header = (*frame)->header;
    if (header.type == FrameType::error) {
      env_.log.warn("cluster: peer ended the connection",
                    {{"addr", peer.address}, {"err", decode_error_text((*frame)->payload)}});
      return;
    }
    if (header.type != FrameType::node_reply) {
      continue;
    }
    const auto waiting = peer.pending.find(header.request_id);
    if (waiting == peer.pending.end() || waiting->second->ended) {
      continue;  // late: its caller has gone
    }
    io::Result<NodeReply> reply = decode_reply((*frame)->payload);
    if (!reply.ok()) {
      return;
    }
    waiting->second->end({CallResult::Kind::answered, std::move(*reply), {}, false});
  }
}

}  // namespace engine::cluster
