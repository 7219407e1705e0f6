#include "engine/cluster/listener.h"

#include <utility>

#include "engine/cluster/node_frames.h"
#include "io/check.h"

namespace engine::cluster {

namespace {
constexpr std::string_view kRaftMagic = "NRF1";
constexpr io::Duration kAcceptPause = std::chrono::milliseconds(50);
}  // namespace

io::Status ClusterListener::listen(std::string_view address) {
  io::Result<std::unique_ptr<io::Listener>> listener = env_.net.listen(address);
  if (!listener.ok()) {
    return listener.error();
  }
  listener_ = std::move(*listener);
  address_ = listener_->address();
  return {};
}

void ClusterListener::run(io::Scope& scope) {
  NARAD_CHECK(listener_ != nullptr, "a listener is bound before it serves");
  scope.spawn("cluster/accept", [this, &scope] { accept_loop(scope); });
}

void ClusterListener::accept_loop(io::Scope& scope) {
  while (true) {
    io::Result<std::unique_ptr<io::Stream>> accepted = listener_->accept();
    if (!accepted.ok()) {
      warn("cluster: cannot accept a connection", {{"err", accepted.error().to_text()}});
      io::sleep_for(kAcceptPause);
      continue;
    }
    if (connections_ >= kConnectionsMax) {
      warn("cluster: too many connections, closing the newest", {{"connections", connections_}});
      continue;
    }
    // The body must be copyable, so the stream waits in a shared place for its fiber.
    auto stream = std::make_shared<std::unique_ptr<io::Stream>>(std::move(*accepted));
    ++connections_;
    scope.spawn("cluster/conn", [this, stream] {
      struct Leave {
        size_t& connections;
        ~Leave() { --connections; }
      } leave{connections_};
      serve(std::move(*stream));
    });
  }
}

void ClusterListener::warn(std::string_view text, const std::vector<io::LogField>& fields) {
  if (env_.now() >= next_warning_) {
    next_warning_ = env_.after(kWarningPause);
    env_.log.warn(text, fields);
  }
}

void ClusterListener::serve(std::unique_ptr<io::Stream> stream) {
  const io::Instant deadline = env_.after(kHelloTimeout);
  std::string first_bytes;
  while (first_bytes.size() < kFrameMagic.size()) {
    const io::Result<std::string> bytes = stream->read(16 * 1024, deadline);
    if (!bytes.ok() || bytes->empty()) {
      return;
    }
    first_bytes += *bytes;
  }
  if (first_bytes.starts_with(kFrameMagic)) {
    serve_node_(std::move(stream), std::move(first_bytes));
  } else if (first_bytes.starts_with(kRaftMagic)) {
    serve_raft_(std::move(stream), std::move(first_bytes));
  } else {
    warn("cluster: closing a connection that speaks neither protocol", {{"peer", stream->peer_address()}});
  }
}

}  // namespace engine::cluster
