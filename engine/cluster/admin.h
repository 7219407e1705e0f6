// The operator's view of the cluster and the operator's hand on it: members, moves, decommission, abort (narad/http-api.md section 6).
//
// Two halves. What any node calls for its HTTP API: lists and the dry run come from its own replica; writes are carried out here on the
// leader and are forwarded to it elsewhere. And what the leader carries out, for itself and for whoever forwards (*_here): each behind
// a barrier, each a 503 on a node that does not lead.
//
// A "Reply" is status and JSON body, a NodeReply has the leader's content type as well. All wait; all throw Cancelled. Forgetting a
// server is not here (cluster/join).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "engine/cluster/node_frames.h"
#include "engine/topics/reply.h"
#include "io/time.h"

namespace engine::cluster {

class Admin {
 public:
  virtual ~Admin() = default;

  // ---- On any node ---------------------------------------------------------------------------------------------------------
  // GET /v1/cluster/members: 200 {"members":[...]} by id, 503. With `detail` every member is asked for its status, all within 2 s.
  virtual Reply members(bool detail, io::Instant deadline) = 0;
  // GET /v1/cluster/moves: 200 {"moves":[...]} by topic and partition, 503. With `detail` the destinations are asked.
  virtual Reply moves(bool detail, io::Instant deadline) = 0;
  // POST /v1/cluster/members/{id}/decommission?dry_run=true: 200 with what the guards would say, 404, 503. Never forwarded.
  virtual Reply decommission_dry_run(std::string_view id, io::Instant deadline) = 0;

  // ---- On the leader ---------------------------------------------------------------------------------------------------------
  // POST (cancel: DELETE) /v1/cluster/members/{id}/decommission: 204; 404 for no such member; 409 with the reasons; 503.
  // Forward as encode(DecommissionRequest{id, cancel}) of move_frames.h.
  virtual Reply decommission_here(std::string_view id, bool cancel, io::Instant deadline) = 0;
  // POST /v1/cluster/moves/{topic}/{partition}/abort?target=: 202 {"move":...,"note":...}; 404 for no assignment; 409 when it is not
  // being moved, or not to `target`; 503. Forward as encode(AbortMoveRequest{topic, partition, target}); `target` is empty for
  // whichever there is.
  virtual Reply abort_move_here(std::string_view topic, int32_t partition, std::string_view target, io::Instant deadline) = 0;
  // Node protocol: 204; 404 no assignment; 409 refused; 503 (outcome unknown among them).
  virtual Reply complete_move_here(std::string_view topic, int32_t partition, std::string_view expected_owner, std::string_view target,
                                   io::Instant deadline) = 0;
  // Node protocol: 200 with the row, 404, 503. Behind a barrier.
  virtual Reply assignment_here(std::string_view topic, int32_t partition, io::Instant deadline) = 0;

  // ---- About this node -------------------------------------------------------------------------------------------------------
  // Node protocol NodeStatus: 200, the object that HTTP shows as node_status.
  virtual Reply node_status() = 0;
};

}  // namespace engine::cluster
