// The answering side of the node protocol: reads request frames of one connection, runs the handler of each, sends the replies
// in whatever order they come to be.
//
// Bounds: at most kRequestsPerConnection requests and kRequestBytesPerConnection bytes of them are in hand for one connection
// (a single request may exceed the bytes; more wait in the stream), at most
// `control_concurrency` control operations of the whole node run at once; creates and deletes are not gated. A reply is written
// within 5 s and 1 s for each 256 KiB, or the connection is closed.
//
// A cancelled request that still waits for its turn is dropped unapplied; one that has begun runs to its end and its reply is
// not sent. So does one whose connection was lost.
//
// Source: narad/node-protocol.md sections 2 to 4.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/cluster/node_frames.h"
#include "io/env.h"
#include "io/fiber.h"

namespace engine::cluster {

inline constexpr size_t kRequestsPerConnection = 1024;
inline constexpr size_t kRequestBytesPerConnection = 16u << 20;

class NodeServer {
 public:
  // Answers one request; `payload` begins with its opcode and is not empty. May wait.
  using Handler = std::function<NodeReply(std::string_view payload)>;
  // Answers what can be answered without waiting, before a fiber is made for it; nullopt leaves it to the handler.
  using Immediate = std::function<std::optional<NodeReply>(std::string_view payload)>;

  NodeServer(io::Env& env, Handler handler, Immediate immediate = nullptr, size_t control_concurrency = 64);
  NodeServer(const NodeServer&) = delete;
  NodeServer& operator=(const NodeServer&) = delete;

  // Serves one connection to its end, in the calling fiber. `first_bytes`: what was read off it already.
  void serve(std::unique_ptr<io::Stream> stream, std::string first_bytes);

 private:
  struct Connection;
  void take_request(Connection& connection, io::Scope& scope, uint64_t id, std::string payload);
  void handle(Connection& connection, uint64_t id, const std::string& payload);
  NodeReply run(std::string_view payload);

  io::Env& env_;
  Handler handler_;
  Immediate immediate_;
  size_t control_concurrency_;
  size_t control_running_ = 0;
  io::Condition control_freed_;
};

}  // namespace engine::cluster
