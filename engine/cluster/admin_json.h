// The JSON of the cluster's administration (narad/http-api.md section 6). Pure; no closing newline.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cluster/decommission_rules.h"

namespace engine::cluster {

struct MemberRow {
  std::string id;
  std::string addr;    // HTTP
  std::string status;  // "alive", "dead"
  bool is_draining = false;
  uint64_t owned_partitions = 0;
  uint64_t outbound_moves = 0;
  bool is_voter = false;
  bool is_leader = false;
  int64_t heartbeat_age_seconds = 0;
  std::vector<Blocked> decommission_blocked;  // left out when empty
  std::string node_status;   // JSON; left out when empty
  std::string status_error;  // left out when empty
};
std::string members_json(const std::vector<MemberRow>& rows);

struct MoveRow {
  std::string topic;
  int32_t partition = 0;
  std::string from;
  std::string to;
  std::string from_status;  // "alive", "dead", "draining", "not_a_member"
  std::string to_status;
  std::string blocked;       // left out when empty
  std::string worker;        // JSON, as the destination tells; left out when empty
  std::string worker_error;  // left out when empty
};
std::string moves_json(const std::vector<MoveRow>& rows);
// {"move":{...},"note":"..."}
std::string aborted_json(const MoveRow& move, std::string_view note);

struct DryRun {
  std::string member;
  std::vector<Blocked> reasons;
  bool is_voter = false;
  uint64_t owned_partitions = 0;
  uint64_t inbound_moves = 0;
};
std::string dry_run_json(const DryRun& result);
std::string refusal_json(std::string_view id, const std::vector<Blocked>& reasons);

// {"topic":...,"partition":...,"owner_id":...,"leader_read":true}, with "target_id" where there is one: what a leader read behind a
// barrier.
std::string assignment_json(std::string_view topic, int32_t partition, std::string_view owner, std::string_view target);

// What a node says of itself.
struct NodeStatusFacts {
  struct Move {
    std::string topic;
    int32_t partition = 0;
    std::string source;
    std::string target;
    int64_t started_at = 0;  // Unix seconds
    std::string phase;       // "copying", "frozen", "flip_pending", "waiting_for_source", "blocked"
    uint64_t attempts = 0;
    std::string last_error;
    uint64_t copied_bytes = 0;
    friend bool operator==(const Move&, const Move&) = default;
  };
  std::string node;
  bool is_draining = false;
  uint64_t produce_in_flight = 0;
  uint64_t dispatch_backlog = 0;
  std::vector<Move> moves;
  friend bool operator==(const NodeStatusFacts&, const NodeStatusFacts&) = default;
};
std::string node_status_json(const NodeStatusFacts& facts);

// The inverse, of what another node says; nullopt for anything but such an object, with its backlog. Other fields that are not there
// read as zero or nothing; unknown ones are passed over.
std::optional<NodeStatusFacts> parse_node_status(std::string_view text);
// One of `moves`, as it stands in the status.
std::string node_move_json(const NodeStatusFacts::Move& move);

}  // namespace engine::cluster
