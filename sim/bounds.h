// What one server may hold in memory at any moment: each queue against the bound that its own settings state.
//
//   tail        applied entries kept for followers              tail_bytes_max
//   backlog     entries above the applied index                 unapplied_bytes_max, or installing_bytes_max while an image is
//                                                               installed; and what may be handed out or accepted last
//   in flight   unanswered requests at one server               the window's messages, and its bytes with one request more
//   link        messages that wait for one server's connection  queue_bytes_max, and one message
//
// The backlog's bound counts what a server may take although it is at the limit: one request or payload, and what its state machine
// has been handed. Looked at after every event, at a cost of a few comparisons for each other server.
//
// Left to others: memory of the process (bench/image and bench/raft measure it), RocksDB's (its caches are bounded by its options).
// Source: design/simulation.md, "Checks": memory of a node, its disk, and each queue stay within their stated bounds.
#pragma once

#include <optional>
#include <string>

#include "raft/core.h"
#include "raft/peer_link.h"

namespace raft {
class RaftServer;
}

namespace sim {

inline constexpr const char* kBoundsRule = "each queue stays within its bound";

// One sentence about the first bound that `core` is beyond; nothing when there is none. `settings`: the core's own, but in tests of
// this check.
std::optional<std::string> beyond_bounds(const raft::Core& core, const raft::Settings& settings);
// The same of the server's links.
std::optional<std::string> beyond_bounds(const raft::RaftServer& server, const raft::LinkSettings& link, const raft::Settings& settings);

}  // namespace sim
