// The cluster port: accepts connections, reads their first four bytes, and hands each to who speaks that way: "NRS1" is the
// node protocol, "NRF1" are raft's own frames. Anything else, or four bytes that do not come in time, is closed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/env.h"
#include "io/fiber.h"

namespace engine::cluster {

class ClusterListener {
 public:
  // Serves a connection to its end, in the calling fiber; `first_bytes` were read off it.
  using Serve = std::function<void(std::unique_ptr<io::Stream> stream, std::string first_bytes)>;

  ClusterListener(io::Env& env, Serve serve_node, Serve serve_raft)
      : env_(env), serve_node_(std::move(serve_node)), serve_raft_(std::move(serve_raft)) {}

  // Binds; errors as Net::listen.
  io::Status listen(std::string_view address);
  const std::string& address() const { return address_; }
  // Serves until `scope` is cancelled.
  void run(io::Scope& scope);

  static constexpr size_t kConnectionsMax = 1024;  // more are closed at once
  static constexpr io::Duration kHelloTimeout = std::chrono::seconds(10);
  static constexpr io::Duration kWarningPause = std::chrono::seconds(10);

 private:
  void accept_loop(io::Scope& scope);
  void serve(std::unique_ptr<io::Stream> stream);
  // What anybody who reaches the port can cause is logged at most once in kWarningPause.
  void warn(std::string_view text, const std::vector<io::LogField>& fields);

  io::Env& env_;
  Serve serve_node_;
  Serve serve_raft_;
  std::unique_ptr<io::Listener> listener_;
  std::string address_;
  size_t connections_ = 0;
  io::Instant next_warning_{};
};

}  // namespace engine::cluster
