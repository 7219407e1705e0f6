#include "engine/cluster/cluster_frames.h"

#include <utility>

#include "engine/cluster/field_codec.h"
#include "engine/cluster/link_frames.h"

namespace engine::cluster {

std::string encode(const RegisterMemberRequest& request) {
  std::string out = begin_payload(Op::register_member);
  append_bytes(out, request.id);
  append_bytes(out, request.addr);
  append_bytes(out, request.cluster_addr);
  append_bytes(out, request.status);
  append_big_endian(out, static_cast<uint64_t>(request.last_heartbeat));
  if (request.release.has_value()) {
    append_bytes(out, request.release->build);
    append_big_endian(out, request.release->entry_types);
  }
  return out;
}

std::string encode(const JoinClusterRequest& request) {
  std::string out = begin_payload(Op::join_cluster);
  append_bytes(out, request.id);
  append_bytes(out, request.cluster_addr);
  if (request.fresh.has_value() || request.entry_types.has_value()) {
    append_bool(out, request.fresh.value_or(false));
  }
  if (request.entry_types.has_value()) {
    append_big_endian(out, *request.entry_types);
  }
  return out;
}

std::string encode(const ForgetServerRequest& request) {
  std::string out = begin_payload(Op::forget_server);
  append_bytes(out, request.id);
  return out;
}

io::Result<RegisterMemberRequest> decode_register_member(std::string_view payload) {
  FieldReader reader(payload);
  RegisterMemberRequest request;
  request.id = reader.bytes("id");
  request.addr = reader.bytes("addr");
  request.cluster_addr = reader.bytes("cluster_addr");
  request.status = reader.bytes("status");
  request.last_heartbeat = reader.i64("last_heartbeat");
  if (!reader.at_end()) {
    RegisterMemberRequest::Release release;
    release.build = reader.bytes("build");
    release.entry_types = reader.u32("entry_types");
    request.release = std::move(release);
  }
  return finish_fields(reader, std::move(request));
}

io::Result<JoinClusterRequest> decode_join_cluster(std::string_view payload) {
  FieldReader reader(payload);
  JoinClusterRequest request;
  request.id = reader.bytes("id");
  request.cluster_addr = reader.bytes("cluster_addr");
  if (!reader.at_end()) {
    request.fresh = reader.boolean("fresh");
  }
  if (!reader.at_end()) {
    request.entry_types = reader.u32("entry_types");
  }
  return finish_fields(reader, std::move(request));
}

io::Result<ForgetServerRequest> decode_forget_server(std::string_view payload) {
  FieldReader reader(payload);
  ForgetServerRequest request;
  request.id = reader.bytes("id");
  return finish_fields(reader, std::move(request));
}

RegisterMemberRequest older_frame(RegisterMemberRequest request) {
  request.release.reset();
  return request;
}

JoinClusterRequest older_frame(JoinClusterRequest request) {
  request.fresh.reset();
  request.entry_types.reset();
  return request;
}

bool is_refused_as_trailing(const NodeReply& reply) {
  return reply.status == 400 && reply.body.find("trailing") != std::string::npos;
}

io::Status check_known_fields(std::string_view payload, const FrameFields& known) {
  const auto has_actor = [](const auto& request) { return request.ok() && request->actor.has_value(); };
  bool is_unknown = false;
  switch (static_cast<Op>(payload.front())) {
    case Op::register_member: {
      const io::Result<RegisterMemberRequest> request = decode_register_member(payload);
      is_unknown = request.ok() && request->release && !known.build;
      break;
    }
    case Op::join_cluster: {
      const io::Result<JoinClusterRequest> request = decode_join_cluster(payload);
      is_unknown = request.ok() && ((request->fresh && !known.fresh) || (request->entry_types && !known.entry_types));
      break;
    }
    case Op::create_topic:
      is_unknown = has_actor(decode_create_topic(payload)) && !known.actor;
      break;
    case Op::alter_topic:
      is_unknown = has_actor(decode_alter_topic(payload)) && !known.actor;
      break;
    case Op::delete_topic:
      is_unknown = has_actor(decode_delete_topic(payload)) && !known.actor;
      break;
    case Op::attach_child:
      is_unknown = has_actor(decode_attach_child(payload)) && !known.actor;
      break;
    case Op::detach_child:
      is_unknown = has_actor(decode_detach_child(payload)) && !known.actor;
      break;
    default:
      break;
  }
  return is_unknown ? io::fail(io::ErrorKind::invalid, "trailing node rpc payload data") : io::Status{};
}

}  // namespace engine::cluster
