#include "engine/cluster/node_frames.h"

#include "engine/cluster/field_codec.h"
#include "engine/json_text.h"
#include "io/check.h"

namespace engine::cluster {

namespace {

bool is_known(uint8_t type) {
  switch (static_cast<FrameType>(type)) {
    case FrameType::error:
    case FrameType::ping:
    case FrameType::pong:
    case FrameType::node_request:
    case FrameType::node_reply:
    case FrameType::auth:
    case FrameType::cancel:
      return true;
  }
  return false;
}

}  // namespace

io::Result<FrameHeader> decode_frame_header(std::string_view bytes) {
  NARAD_CHECK(bytes.size() >= kFrameHeaderBytes, "a frame header is 20 bytes");
  if (bytes.substr(0, 4) != kFrameMagic) {
    return io::fail(io::ErrorKind::corrupt, "not a node protocol frame");
  }
  if (static_cast<uint8_t>(bytes[4]) != kFrameVersion) {
    return io::fail(io::ErrorKind::corrupt, "unknown frame version");
  }
  if (!is_known(static_cast<uint8_t>(bytes[5]))) {
    return io::fail(io::ErrorKind::corrupt, "unknown frame type");
  }
  FrameHeader header;
  header.type = static_cast<FrameType>(bytes[5]);
  header.request_id = read_big_endian<uint64_t>(bytes.substr(8));
  header.payload_bytes = read_big_endian<uint32_t>(bytes.substr(16));
  if (header.payload_bytes > kFramePayloadBytesMax) {
    return io::fail(io::ErrorKind::corrupt, "frame payload too long");
  }
  return header;
}

void append_frame(std::string& out, FrameType type, uint64_t request_id, std::string_view payload) {
  NARAD_CHECK(payload.size() <= kFramePayloadBytesMax, "a frame's payload is at most 16 MiB");
  out.append(kFrameMagic);
  out.push_back(static_cast<char>(kFrameVersion));
  out.push_back(static_cast<char>(type));
  append_big_endian(out, uint16_t{0});
  append_big_endian(out, request_id);
  append_big_endian(out, static_cast<uint32_t>(payload.size()));
  out.append(payload);
}

std::string encode_error_text(std::string_view text) {
  text = text.substr(0, 0xffff);
  std::string out;
  append_big_endian(out, static_cast<uint16_t>(text.size()));
  out.append(text);
  return out;
}

std::string decode_error_text(std::string_view payload) {
  if (payload.size() < 2) {
    return {};
  }
  return std::string(payload.substr(2, read_big_endian<uint16_t>(payload)));
}

std::string_view op_name(uint8_t op) {
  switch (static_cast<Op>(op)) {
    case Op::create_topic:
      return "create_topic";
    case Op::alter_topic:
      return "alter_topic";
    case Op::delete_topic:
      return "delete_topic";
    case Op::purge_topic:
      return "purge_topic";
    case Op::register_member:
      return "register_member";
    case Op::attach_child:
      return "attach_child";
    case Op::detach_child:
      return "detach_child";
    case Op::get_topic:
      return "get_topic";
    case Op::join_cluster:
      return "join_cluster";
    case Op::decommission_member:
      return "decommission_member";
    case Op::complete_move:
      return "complete_move";
    case Op::abort_move:
      return "abort_move";
    case Op::get_assignment:
      return "get_assignment";
    case Op::applied_index:
      return "applied_index";
    case Op::node_status:
      return "node_status";
    case Op::forget_server:
      return "forget_server";
  }
  return "unknown";
}

std::string encode(const CreateTopicRequest& request) {
  std::string out = begin_payload(Op::create_topic);
  append_bytes(out, request.topic);
  append_bytes(out, request.body);
  if (request.actor.has_value()) {
    append_bytes(out, *request.actor);
  }
  return out;
}

std::string encode(const AlterTopicRequest& request) {
  std::string out = begin_payload(Op::alter_topic);
  append_bytes(out, request.topic);
  append_bytes(out, request.body);
  if (request.actor.has_value()) {
    append_bytes(out, *request.actor);
  }
  return out;
}

std::string encode(const DeleteTopicRequest& request) {
  std::string out = begin_payload(Op::delete_topic);
  append_bytes(out, request.topic);
  if (request.id.has_value() || request.actor.has_value()) {
    append_bytes(out, request.id.value_or(std::string()));
  }
  if (request.actor.has_value()) {
    append_bytes(out, *request.actor);
  }
  return out;
}

std::string encode(const GetTopicRequest& request) {
  std::string out = begin_payload(Op::get_topic);
  append_bytes(out, request.topic);
  return out;
}

std::string encode_applied_index_request() { return begin_payload(Op::applied_index); }

io::Result<CreateTopicRequest> decode_create_topic(std::string_view payload) {
  FieldReader reader(payload);
  CreateTopicRequest request;
  request.topic = reader.bytes("topic");
  request.body = reader.bytes("body");
  request.actor = reader.optional_bytes("actor");
  return finish_fields(reader, std::move(request));
}

io::Result<AlterTopicRequest> decode_alter_topic(std::string_view payload) {
  FieldReader reader(payload);
  AlterTopicRequest request;
  request.topic = reader.bytes("topic");
  request.body = reader.bytes("body");
  request.actor = reader.optional_bytes("actor");
  return finish_fields(reader, std::move(request));
}

io::Result<DeleteTopicRequest> decode_delete_topic(std::string_view payload) {
  FieldReader reader(payload);
  DeleteTopicRequest request;
  request.topic = reader.bytes("topic");
  request.id = reader.optional_bytes("id");
  if (request.id.has_value() && request.id->empty()) {
    request.id.reset();
  }
  request.actor = reader.optional_bytes("actor");
  return finish_fields(reader, std::move(request));
}

io::Result<GetTopicRequest> decode_get_topic(std::string_view payload) {
  FieldReader reader(payload);
  GetTopicRequest request;
  request.topic = reader.bytes("topic");
  return finish_fields(reader, std::move(request));
}

io::Status decode_applied_index(std::string_view payload) { return FieldReader(payload).finish(); }

std::string encode(const NodeReply& reply) {
  std::string out;
  out.reserve(10 + reply.content_type.size() + reply.body.size());
  append_big_endian(out, reply.status);
  append_bytes(out, reply.content_type);
  append_bytes(out, reply.body);
  return out;
}

io::Result<NodeReply> decode_reply(std::string_view payload) {
  if (payload.size() < 2) {
    return io::fail(io::ErrorKind::corrupt, "truncated node rpc reply");
  }
  NodeReply reply;
  reply.status = read_big_endian<uint16_t>(payload);
  FieldReader reader(payload.substr(1));
  reply.content_type = reader.bytes("content type");
  reply.body = reader.bytes("body");
  io::Status ended = reader.finish();
  if (!ended.ok() || reply.status < 100 || reply.status > 599) {
    return io::fail(io::ErrorKind::corrupt, "malformed node rpc reply");
  }
  return reply;
}

NodeReply error_reply(uint16_t status, std::string_view text) {
  return json_reply(status, "{\"error\":" + json_quoted(text) + "}");
}

NodeReply not_leader_reply(std::string_view leader_id, std::string_view leader_addr) {
  return json_reply(421, "{\"error\":\"not the metastore leader\",\"leader_id\":" + json_quoted(leader_id) +
                             ",\"leader_addr\":" + json_quoted(leader_addr) + "}");
}

NodeReply json_reply(uint16_t status, std::string body) {
  body.push_back('\n');
  return NodeReply{status, "application/json", std::move(body)};
}

}  // namespace engine::cluster
