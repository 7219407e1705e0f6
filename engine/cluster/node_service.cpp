#include "engine/cluster/node_service.h"

#include <algorithm>

#include "engine/cluster/cluster_frames.h"
#include "engine/cluster/forget_service.h"
#include "engine/cluster/forward.h"
#include "engine/cluster/join_service.h"
#include "engine/cluster/link_frames.h"
#include "engine/cluster/registry.h"
#include "io/check.h"
#include "io/defence.h"

namespace engine::cluster {

namespace {

NodeReply to_node_reply(Reply reply) {
  return NodeReply{static_cast<uint16_t>(reply.status), reply.body.empty() ? std::string() : "application/json",
                   std::move(reply.body)};
}

NodeReply invalid_request(std::string_view op, const io::Error& error) {
  return cluster::error_reply(400, "invalid " + std::string(op) + " request: " + error.message);
}

// "register member" and so on.
std::string op_words(uint8_t op) {
  std::string words(op_name(op));
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

}  // namespace

NodeReply NodeService::answer(std::string_view payload) {
  NARAD_CHECK(!payload.empty(), "a request has an opcode");
  const auto op = static_cast<uint8_t>(payload.front());
  if (op > cluster_.known.newest_op) {
    return cluster::error_reply(400, "unsupported rpc operation " + std::to_string(op));
  }
  if (const io::Status known = check_known_fields(payload, cluster_.known); !known.ok()) {
    return invalid_request(op_words(op), known.error());
  }
  switch (static_cast<Op>(op)) {
    case Op::create_topic:
      return create_topic(payload);
    case Op::alter_topic:
      return alter_topic(payload);
    case Op::delete_topic:
      return delete_topic(payload);
    case Op::get_topic:
      return get_topic(payload);
    case Op::applied_index:
      return applied_index(payload);
    case Op::register_member:
      if (cluster_.registry == nullptr) break;
      return cluster_.registry->register_member(decode_register_member(payload));
    case Op::join_cluster:
      if (cluster_.join == nullptr) break;
      return cluster_.join->answer(payload);
    case Op::forget_server:
      if (cluster_.forget == nullptr) break;
      return cluster_.forget->answer(payload);
    case Op::attach_child:
      return attach_child(payload);
    case Op::detach_child:
      return detach_child(payload);
    case Op::decommission_member:
    case Op::complete_move:
    case Op::abort_move:
    case Op::get_assignment:
    case Op::node_status:
      return moves_.answer(static_cast<Op>(op), payload);
    case Op::purge_topic:
      break;
  }
  return cluster::error_reply(400, "unsupported rpc operation " + std::to_string(op));
}

std::optional<NodeReply> NodeService::answer_at_once(std::string_view payload) {
  if (payload.size() != 1 || static_cast<Op>(payload.front()) != Op::applied_index || !raft_.is_leader() ||
      raft_.core().term() != trusted_term_ || replica_.has_stopped()) {
    return std::nullopt;
  }
  return json_reply(200, applied_index_json(raft_.applied_index()));
}

NodeReply NodeService::create_topic(std::string_view payload) {
  const io::Result<CreateTopicRequest> request = decode_create_topic(payload);
  if (!request.ok()) {
    return invalid_request("create topic", request.error());
  }
  return to_node_reply(manager_.create(request->body, request->actor, env_.after(kWriteTimeout)));
}

NodeReply NodeService::alter_topic(std::string_view payload) {
  const io::Result<AlterTopicRequest> request = decode_alter_topic(payload);
  if (!request.ok()) {
    return invalid_request("alter topic", request.error());
  }
  return to_node_reply(manager_.alter(request->topic, request->body, request->actor, env_.after(kWriteTimeout)));
}

NodeReply NodeService::delete_topic(std::string_view payload) {
  const io::Result<DeleteTopicRequest> request = decode_delete_topic(payload);
  if (!request.ok()) {
    return invalid_request("delete topic", request.error());
  }
  return to_node_reply(manager_.remove(request->topic, request->id, request->actor, env_.after(kWriteTimeout)));
}

NodeReply NodeService::attach_child(std::string_view payload) {
  const io::Result<AttachChildRequest> request = decode_attach_child(payload);
  if (!request.ok()) {
    return invalid_request("attach child", request.error());
  }
  return to_node_reply(
      manager_.attach(request->parent, {request->child, request->delay_ms}, request->actor, env_.after(kWriteTimeout)));
}

NodeReply NodeService::detach_child(std::string_view payload) {
  const io::Result<DetachChildRequest> request = decode_detach_child(payload);
  if (!request.ok()) {
    return invalid_request("detach child", request.error());
  }
  return to_node_reply(manager_.detach(request->parent, request->child, request->actor, env_.after(kWriteTimeout)));
}

NodeReply NodeService::get_topic(std::string_view payload) {
  const io::Result<GetTopicRequest> request = decode_get_topic(payload);
  if (!request.ok()) {
    return invalid_request("get topic", request.error());
  }
  // "Not found" makes whoever asks destroy something: a replica's own word is not enough, not even the leader's.
  const io::Instant deadline = env_.after(topics::kBarrierTimeout);
  if (io::defence(io::Defence::confirm_answer_unbarriered)) {
    const io::Status reached = raft_.is_leader() ? replica_.barrier(deadline) : io::Status();
    if (!raft_.is_leader()) {
      const raft::LeaderHint leader = raft_.leader();
      return not_leader_reply(leader.id, leader.address);
    }
    if (!reached.ok()) {
      return cluster::error_reply(503, kUnavailableText);
    }
  }
  return to_node_reply(manager_.get_record(request->topic, deadline));
}

NodeReply NodeService::applied_index(std::string_view payload) {
  const io::Status decoded = decode_applied_index(payload);
  if (!decoded.ok()) {
    return invalid_request("applied index", decoded.error());
  }
  if (!raft_.is_leader()) {
    return cluster::error_reply(503, "node is not the leader");
  }
  const raft::Term term = raft_.core().term();
  if (!replica_.barrier(env_.after(topics::kBarrierTimeout)).ok()) {
    return cluster::error_reply(503, raft_.is_leader() ? kUnavailableText : "node is not the leader");
  }
  if (raft_.core().term() == term) {
    trusted_term_ = term;
  }
  return json_reply(200, applied_index_json(raft_.applied_index()));
}

}  // namespace engine::cluster
