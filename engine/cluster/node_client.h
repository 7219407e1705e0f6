// Calls to other nodes by the node protocol: one connection a peer address, shared by every call to it, told apart by request
// id. Control connections of their own: raft's run beside them and never wait for a call.
//
// Promises:
//  - every call ends by its deadline, with an answer of its own or with the knowledge whether it may have been received;
//  - a call that is cancelled or runs out of time leaves the connection and every other call on it alone; the far side is told
//    (Cancel), and its late answer is dropped by id;
//  - a connection is made when a call needs one; after a failed dial further calls fail at once until a backoff (250 ms,
//    doubling to 2 s) has passed, then the next call dials again, for ever;
//  - after a call ran out of time the connection must answer a ping within 1 s or is replaced (a half-open peer is noticed).
// Nothing is ever sent twice.
//
// Sources: narad/node-protocol.md sections 2, 3 and 11; scenarios NW-01, NW-05, NW-07.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "engine/cluster/node_frames.h"
#include "io/env.h"
#include "io/fiber.h"

namespace engine::cluster {

struct NodeClientSettings {
  io::Duration dial_timeout = std::chrono::seconds(1);
  io::Duration backoff_min = std::chrono::milliseconds(250);
  io::Duration backoff_max = std::chrono::seconds(2);
  io::Duration ping_timeout = std::chrono::seconds(1);
  io::Duration idle_close = std::chrono::seconds(60);  // a connection without calls for this long is closed
  size_t queued_bytes_max = 32u << 20;                 // of one peer, not yet handed to the stream; more is refused
};

struct CallResult {
  enum class Kind {
    answered,    // `reply` is the peer's
    never_sent,  // the peer cannot have received it
    unknown,     // it may have been received and carried out
  };
  Kind kind = Kind::never_sent;
  NodeReply reply;
  std::string detail;  // not answered: why
  bool timed_out = false;
};

class NodeClientPool {
 public:
  // After every call: opcode, result, how long it took.
  using Observer = std::function<void(uint8_t op, const CallResult& result, io::Duration took)>;

  NodeClientPool(io::Env& env, NodeClientSettings settings, Observer observer = nullptr);
  ~NodeClientPool();
  NodeClientPool(const NodeClientPool&) = delete;
  NodeClientPool& operator=(const NodeClientPool&) = delete;

  // Where the connections' fibers live; once, before the first call.
  void run(io::Scope& scope);

  // Sends `payload` (opcode first) to the node at `address` (its cluster address) and waits for the answer. Throws Cancelled.
  CallResult call(std::string_view address, std::string_view payload, io::Instant deadline);

 private:
  struct Pending;
  struct Peer;

  Peer& peer(std::string_view address);
  CallResult exchange(Peer& peer, std::string_view payload, io::Instant deadline);
  void maintain(Peer& peer);
  void converse(Peer& peer, io::Stream& stream);
  void write_loop(Peer& peer, io::Stream& stream);
  void read_loop(Peer& peer, io::Stream& stream);
  void fail_all(Peer& peer, const std::string& why);
  void suspect(Peer& peer);

  io::Env& env_;
  NodeClientSettings settings_;
  Observer observer_;
  io::Scope* scope_ = nullptr;
  std::map<std::string, std::unique_ptr<Peer>, std::less<>> peers_;
};

}  // namespace engine::cluster
