// Whether a member may leave, and what keeps one that is leaving from it. Pure: facts in, reasons out.
//
// A decommission is asked for (the guards below may refuse it up front), the member is marked as draining, the planner moves its
// partitions away, and when it owns nothing, receives nothing and holds nothing undelivered, it is taken out of raft and its record is
// replaced by a tombstone. On the way each look finds reasons to wait; some clear by themselves, some need an operator.
//
// Reason codes are part of the API: they never change. Source: narad/lifecycle.md section 12, http-api.md section 6.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/metastore/records.h"

namespace engine::cluster {

// Voters that must be left, as raft's core demands it too.
inline constexpr size_t kMinVoters = 3;

enum class DecommissionReason : uint8_t {
  // Refused up front; of a member that drains already: an operator is needed.
  below_min_voters,
  no_healthy_majority,
  no_receivers,
  owner_dead,
  // Only of a member that drains.
  node_status_unavailable,  // an operator is needed
  dispatch_backlog,         // these clear by themselves
  move_target,
  move_budget_full,
  leader_transfer,
};

std::string_view code_of(DecommissionReason reason);
bool clears_by_itself(DecommissionReason reason);

struct Blocked {
  DecommissionReason reason = DecommissionReason::below_min_voters;
  std::string message;  // for people

  friend bool operator==(const Blocked&, const Blocked&) = default;
};

struct VoterFact {
  std::string id;
  bool is_healthy = false;  // on record as alive and, where the leader looks, in contact with it
};

struct DecommissionFacts {
  std::string id;
  bool is_alive = false;
  std::vector<VoterFact> voters;            // of the newest configuration, itself included when it is one
  std::vector<metastore::Member> members;   // all on record
  size_t owned_partitions = 0;
  size_t outbound_moves = 0;                // of partitions that it owns
  size_t inbound_moves = 0;                 // with it as their destination
  size_t moves_in_flight = 0;               // in the cluster
};

// Why the member may not begin to leave; empty: it may. Voters that drain already count as gone.
std::vector<Blocked> refuse_decommission(const DecommissionFacts& facts);

// Why a draining member does not lose its partitions now; nullopt: they are moving, or it has none and receives none.
std::optional<Blocked> blocked_draining(const DecommissionFacts& facts);

// Why a draining member that owns nothing may not be taken out of raft; nullopt: it may.
std::optional<Blocked> blocked_removal(const DecommissionFacts& facts);

// What the member itself says.
struct NodeBacklog {
  enum class Kind { told, unavailable, unsupported };  // unsupported: its release has no such question; not held against it
  Kind kind = Kind::unavailable;
  uint64_t produce_in_flight = 0;
  uint64_t dispatch_backlog = 0;
  std::string error;  // unavailable
};
std::optional<Blocked> blocked_backlog(const std::string& id, const NodeBacklog& backlog);

}  // namespace engine::cluster
