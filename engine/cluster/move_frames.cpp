#include "engine/cluster/move_frames.h"

#include <utility>

#include "engine/cluster/field_codec.h"

namespace engine::cluster {

namespace {

void append_partition(std::string& out, int32_t partition) { append_big_endian(out, static_cast<uint32_t>(partition)); }

}  // namespace

std::string encode(const DecommissionRequest& request) {
  std::string out = begin_payload(Op::decommission_member);
  append_bytes(out, request.id);
  append_bool(out, request.cancel);
  return out;
}

std::string encode(const CompleteMoveRequest& request) {
  std::string out = begin_payload(Op::complete_move);
  append_bytes(out, request.topic);
  append_partition(out, request.partition);
  append_bytes(out, request.expected_owner);
  append_bytes(out, request.target);
  return out;
}

std::string encode(const AbortMoveRequest& request) {
  std::string out = begin_payload(Op::abort_move);
  append_bytes(out, request.topic);
  append_partition(out, request.partition);
  append_bytes(out, request.expected_target);
  return out;
}

std::string encode(const GetAssignmentRequest& request) {
  std::string out = begin_payload(Op::get_assignment);
  append_bytes(out, request.topic);
  append_partition(out, request.partition);
  return out;
}

std::string encode_node_status_request() { return begin_payload(Op::node_status); }

io::Result<DecommissionRequest> decode_decommission(std::string_view payload) {
  FieldReader reader(payload);
  DecommissionRequest request;
  request.id = reader.bytes("id");
  request.cancel = reader.boolean("cancel");
  return finish_fields(reader, std::move(request));
}

io::Result<CompleteMoveRequest> decode_complete_move(std::string_view payload) {
  FieldReader reader(payload);
  CompleteMoveRequest request;
  request.topic = reader.bytes("topic");
  request.partition = reader.i32("partition");
  request.expected_owner = reader.bytes("expected owner");
  request.target = reader.bytes("target");
  return finish_fields(reader, std::move(request));
}

io::Result<AbortMoveRequest> decode_abort_move(std::string_view payload) {
  FieldReader reader(payload);
  AbortMoveRequest request;
  request.topic = reader.bytes("topic");
  request.partition = reader.i32("partition");
  request.expected_target = reader.bytes("expected target");
  return finish_fields(reader, std::move(request));
}

io::Result<GetAssignmentRequest> decode_get_assignment(std::string_view payload) {
  FieldReader reader(payload);
  GetAssignmentRequest request;
  request.topic = reader.bytes("topic");
  request.partition = reader.i32("partition");
  return finish_fields(reader, std::move(request));
}

io::Status decode_node_status(std::string_view payload) { return FieldReader(payload).finish(); }

}  // namespace engine::cluster
