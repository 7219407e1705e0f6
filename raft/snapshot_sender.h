// Sends one image to one server, on a connection of its own: chunk after chunk, each acknowledged before the next is read, so that
// neither side holds more than one. A transfer that broke goes on where the receiver says.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "io/env.h"
#include "raft/core.h"
#include "raft/peer_link.h"
#include "raft/snapshot_store.h"
#include "raft/wire.h"

namespace raft {

class SnapshotSender {
 public:
  // `bytes_per_second`: 0 is no bound. All but it outlive the sender.
  SnapshotSender(io::Env& env, const LinkSettings& settings, std::uint64_t bytes_per_second, SnapshotStore& snapshots)
      : env_(env), settings_(settings), bytes_per_second_(bytes_per_second), snapshots_(snapshots) {}

  // One attempt over one connection. Success: the other server has the image in place. `exists`: it needs it no more. `not_found`: it
  // is not kept any more. `denied`: the other server refuses it. Others may be tried again. Ends soon after is_wanted() turns false
  // (`cancelled`). Waits.
  io::Status send(const std::string& address, const wire::Hello& hello, const SnapshotOffer& offer,
                  const std::function<bool()>& is_wanted);

 private:
  io::Status send_pieces(io::Stream& stream, wire::FrameReader& frames, SnapshotReader& image, std::uint64_t offset,
                         const std::function<bool()>& is_wanted);
  io::Result<wire::SnapshotState> next_state(io::Stream& stream, wire::FrameReader& frames);

  io::Env& env_;
  const LinkSettings& settings_;
  const std::uint64_t bytes_per_second_;
  SnapshotStore& snapshots_;
};

}  // namespace raft
