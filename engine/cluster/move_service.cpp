#include "engine/cluster/move_service.h"

#include <utility>

#include "engine/cluster/forward.h"
#include "engine/cluster/move_frames.h"
#include "engine/json_text.h"
#include "raft/server.h"

namespace engine::cluster {

namespace {

NodeReply to_node_reply(Reply reply) {
  return NodeReply{static_cast<uint16_t>(reply.status), reply.body.empty() ? std::string() : "application/json",
                   std::move(reply.body)};
}

NodeReply invalid_request(std::string_view op, const io::Error& error) {
  return cluster::error_reply(400, "invalid " + std::string(op) + " request: " + error.message);
}

}  // namespace

NodeReply MoveService::answer(Op op, std::string_view payload) {
  switch (op) {
    case Op::decommission_member: return decommission(payload);
    case Op::complete_move: return complete_move(payload);
    case Op::abort_move: return abort_move(payload);
    case Op::get_assignment: return get_assignment(payload);
    case Op::node_status: return node_status(payload);
    default: return cluster::error_reply(400, "unsupported rpc operation " + std::to_string(static_cast<int>(op)));
  }
}

NodeReply MoveService::decommission(std::string_view payload) {
  const io::Result<DecommissionRequest> request = decode_decommission(payload);
  if (!request.ok()) {
    return invalid_request("decommission member", request.error());
  }
  return to_node_reply(admin_.decommission_here(request->id, request->cancel, env_.after(kWriteTimeout)));
}

NodeReply MoveService::complete_move(std::string_view payload) {
  const io::Result<CompleteMoveRequest> request = decode_complete_move(payload);
  if (!request.ok()) {
    return invalid_request("complete move", request.error());
  }
  return to_node_reply(admin_.complete_move_here(request->topic, request->partition, request->expected_owner, request->target,
                                                 env_.after(kWriteTimeout)));
}

NodeReply MoveService::abort_move(std::string_view payload) {
  const io::Result<AbortMoveRequest> request = decode_abort_move(payload);
  if (!request.ok()) {
    return invalid_request("abort move", request.error());
  }
  NodeReply reply = to_node_reply(
      admin_.abort_move_here(request->topic, request->partition, request->expected_target, env_.after(kWriteTimeout)));
  if (reply.status == 202) {
    reply.status = 200;  // HTTP's word for it; between nodes it is done
  }
  return reply;
}

NodeReply MoveService::get_assignment(std::string_view payload) {
  const io::Result<GetAssignmentRequest> request = decode_get_assignment(payload);
  if (!request.ok()) {
    return invalid_request("get assignment", request.error());
  }
  if (!raft_.is_leader()) {
    const raft::LeaderHint leader = raft_.leader();
    return json_reply(421, "{\"error\":\"not the metastore leader\",\"leader_id\":" + json_quoted(leader.id) +
                               ",\"leader_addr\":" + json_quoted(leader.address) + "}");
  }
  return to_node_reply(admin_.assignment_here(request->topic, request->partition, env_.after(kWriteTimeout)));
}

NodeReply MoveService::node_status(std::string_view payload) {
  const io::Status decoded = decode_node_status(payload);
  if (!decoded.ok()) {
    return invalid_request("node status", decoded.error());
  }
  return to_node_reply(admin_.node_status());
}

}  // namespace engine::cluster
