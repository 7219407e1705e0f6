#include "sim/bounds.h"

#include <algorithm>
#include <cstdint>

#include "raft/server.h"

namespace sim {

namespace {

// Of an entry or a message beside its payload, with room to spare.
constexpr std::uint64_t kFrameBytesMax = 1024;

// The largest single request that the settings allow.
std::uint64_t request_bytes_max(const raft::Settings& settings) {
  return std::max(settings.append_bytes_max, settings.payload_bytes_max + kFrameBytesMax) + kFrameBytesMax;
}

std::optional<std::string> beyond(const raft::ServerId& id, const std::string& what, std::uint64_t held, std::uint64_t bound) {
  if (held <= bound) {
    return std::nullopt;
  }
  return id + " holds " + what + ": " + std::to_string(held) + ", and " + std::to_string(bound) + " is the most";
}

std::optional<std::string> flight_beyond(const raft::Core& core, const raft::Settings& settings) {
  for (const auto& [to, progress] : core.tracked()) {
    const raft::FlightLimits& flight = settings.flight;
    if (auto wrong = beyond(core.id(), "messages in flight to " + to, progress.in_flight_messages(), flight.messages_max)) {
      return wrong;
    }
    if (auto wrong = beyond(core.id(), "bytes in flight to " + to, progress.in_flight_bytes(),
                            flight.bytes_max + request_bytes_max(settings))) {
      return wrong;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> beyond_bounds(const raft::Core& core, const raft::Settings& settings) {
  const std::uint64_t held = core.log().cost_bytes();
  const std::uint64_t unapplied = core.unapplied_bytes();
  if (held > unapplied) {  // more of the one than of the other: while an image waits to be installed, entries count as neither
    if (auto wrong = beyond(core.id(), "bytes of applied entries", held - unapplied, settings.tail_bytes_max)) {
      return wrong;
    }
  }
  const std::uint64_t taken_max =
      core.is_installing() ? std::min(settings.installing_bytes_max, settings.unapplied_bytes_max) : settings.unapplied_bytes_max;
  const std::uint64_t backlog_max = taken_max + settings.applying_bytes_max + 2 * request_bytes_max(settings);
  if (auto wrong = beyond(core.id(), "bytes of entries to apply", unapplied, backlog_max)) {
    return wrong;
  }
  return core.role() == raft::Role::leader ? flight_beyond(core, settings) : std::nullopt;
}

std::optional<std::string> beyond_bounds(const raft::RaftServer& server, const raft::LinkSettings& link,
                                         const raft::Settings& settings) {
  std::optional<std::string> wrong =
      beyond(server.core().id(), "messages that wait for its disk", server.messages_behind_disk(), raft::kMessagesBehindDiskMax);
  server.visit_links([&](const raft::PeerLink& each) {
    if (!wrong) {
      wrong = beyond(server.core().id(), "bytes that wait for the connection to " + each.to(), each.queued_bytes(),
                     link.queue_bytes_max + request_bytes_max(settings));
    }
  });
  return wrong;
}

}  // namespace sim
