// Raft as an operator sees and steers it: this node's view of it as JSON, and the order to hand leadership over.
//
//   GET  /v1/cluster/raft           200: the status of this node, below
//   POST /v1/cluster/raft/transfer  {"to":"<id>"}; {} or no body: to the most caught-up voter
//        200 {"from","to","leader","term"}; 400 a body that is not this; 409 not the leader, not possible, or the other did not take over;
//        503 this node has left raft, or the outcome is not known
//
// Status: id, store, cluster, role, is_voter, term, leader{id,address} (null: none known), commit_index, applied_index, last_index,
// durable_index, log_base_index, snapshot{index,term,bytes,took_ms} (null: none), voters, non_voters, disk_full, stopped, rebuilding,
// leader_contact_ms (null: never), peers[{id,address,voter,connected} and on the leader {match_index,state,last_contact_ms}],
// counters{...}. Times are milliseconds before the answer.
//
// Both are additions to the original's API. What they say is not forwarded: each node tells of itself.
#pragma once

#include <string>

#include "engine/api/http_types.h"
#include "io/env.h"
#include "raft/server.h"

namespace engine::api {

// How long an order to hand over waits for the next leader.
inline constexpr io::Duration kTransferTimeout = std::chrono::seconds(5);

// The status as a JSON text with a newline at its end.
std::string raft_status_json(const raft::ServerStatus& status, const raft::ServerCounters& counters, io::Instant now);

// Carries out an order to hand over. Waits; throws Cancelled.
HttpResponse transfer_leadership(io::Env& env, raft::RaftServer& raft, const std::string& body);

}  // namespace engine::api
