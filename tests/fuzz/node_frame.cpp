// Node protocol frames: header, request payloads and replies, from anybody who reaches the cluster port.
//
// Input: one byte that chooses what the rest is (0: a frame with its header, 1: a reply, 2: an error's text, else: a request
// payload whose first byte is the opcode).

#include "engine/cluster/node_frames.h"

#include <tuple>

#include "engine/cluster/cluster_frames.h"
#include "io/check.h"
#include "tests/fuzz/support/fuzz.h"

namespace fuzz {

namespace {

using namespace engine::cluster;

auto fields(const CreateTopicRequest& request) { return std::tie(request.topic, request.body, request.actor); }
auto fields(const AlterTopicRequest& request) { return std::tie(request.topic, request.body, request.actor); }
auto fields(const DeleteTopicRequest& request) { return std::tie(request.topic, request.id, request.actor); }
auto fields(const GetTopicRequest& request) { return std::tie(request.topic); }
auto fields(const RegisterMemberRequest& request) {
  return std::tie(request.id, request.addr, request.cluster_addr, request.status, request.last_heartbeat, request.release);
}
auto fields(const JoinClusterRequest& request) {
  return std::tie(request.id, request.cluster_addr, request.fresh, request.entry_types);
}
auto fields(const ForgetServerRequest& request) { return std::tie(request.id); }
auto fields(const NodeReply& reply) { return std::tie(reply.status, reply.content_type, reply.body); }

template <typename Decode>
void decode_one(std::string_view bytes, const Decode& decode, io::ErrorKind refusal) {
  const Aligned payload(bytes);
  auto decoded = [&] {
    const AllocationBound bound(4 * bytes.size() + 4096);
    return decode(payload.view());
  }();
  if (!decoded.ok()) {
    NARAD_CHECK(decoded.is(refusal) && !decoded.error().message.empty(), "what is no payload is refused with a reason");
    return;
  }
  const std::string first = encode(*decoded);
  auto repeated = decode(first);
  NARAD_CHECK(repeated.ok() && fields(*repeated) == fields(*decoded), "decode(encode(x)) is x");
}

void decode_request(std::string_view payload) {
  if (payload.empty()) return;
  const auto op = static_cast<std::uint8_t>(payload[0]);
  switch (static_cast<Op>(op)) {
    case Op::create_topic:
      return decode_one(payload, decode_create_topic, io::ErrorKind::invalid);
    case Op::alter_topic:
      return decode_one(payload, decode_alter_topic, io::ErrorKind::invalid);
    case Op::delete_topic:
      return decode_one(payload, decode_delete_topic, io::ErrorKind::invalid);
    case Op::get_topic:
      return decode_one(payload, decode_get_topic, io::ErrorKind::invalid);
    case Op::register_member:
      return decode_one(payload, decode_register_member, io::ErrorKind::invalid);
    case Op::join_cluster:
      return decode_one(payload, decode_join_cluster, io::ErrorKind::invalid);
    case Op::forget_server:
      return decode_one(payload, decode_forget_server, io::ErrorKind::invalid);
    case Op::purge_topic:
    case Op::attach_child:
    case Op::detach_child:
    case Op::decommission_member:
    case Op::complete_move:
    case Op::abort_move:
    case Op::get_assignment:
    case Op::node_status:
      return;
    case Op::applied_index:
      NARAD_CHECK(decode_applied_index(payload).ok() == (payload.size() == 1), "a payload ends where its fields do");
      return;
  }
  NARAD_CHECK(op_name(op) == "unknown", "an opcode that is served has its decoder here");
}

void decode_frame(std::string_view bytes) {
  if (bytes.size() < kFrameHeaderBytes) return;
  auto header = decode_frame_header(bytes);
  if (!header.ok()) {
    NARAD_CHECK(header.is(io::ErrorKind::corrupt), "what is no header is said to be none");
    return;
  }
  NARAD_CHECK(header->payload_bytes <= kFramePayloadBytesMax, "a length above the limit is refused before anything is read");
  const std::string_view payload = bytes.substr(kFrameHeaderBytes);
  if (header->payload_bytes != payload.size()) return;
  std::string again;
  append_frame(again, header->type, header->request_id, payload);
  auto repeated = decode_frame_header(again);
  NARAD_CHECK(repeated.ok() && repeated->type == header->type && repeated->request_id == header->request_id &&
                  repeated->payload_bytes == header->payload_bytes && again.substr(kFrameHeaderBytes) == payload,
              "a frame is read back as it was written");
  if (header->type == FrameType::node_request) decode_request(payload);
  if (header->type == FrameType::node_reply) decode_one(payload, decode_reply, io::ErrorKind::corrupt);
}

void decode_text(std::string_view bytes) {
  const Aligned payload(bytes);
  const std::string text = decode_error_text(payload.view());
  NARAD_CHECK(decode_error_text(encode_error_text(text)) == text, "decode(encode(x)) is x");
}

}  // namespace

std::vector<std::string> seeds() {
  const std::vector<std::string> requests = {
      encode(CreateTopicRequest{"orders", R"({"partitions":4})", std::nullopt}),
      encode(CreateTopicRequest{"orders", R"({"partitions":4})", "admin"}),
      encode(AlterTopicRequest{"orders", R"({"retention_ms":5})", "admin"}),
      encode(DeleteTopicRequest{"orders", "0123456789abcdef", "admin"}),
      encode(DeleteTopicRequest{"orders", std::nullopt, std::nullopt}),
      encode(GetTopicRequest{"orders"}),
      encode_applied_index_request(),
      encode(RegisterMemberRequest{"n1", "n1:7942", "n1:7943", "alive", 1'700'000'000, std::nullopt}),
      encode(RegisterMemberRequest{"n1", "n1:7942", "n1:7943", "alive", 1'700'000'000, {{"3.2.0", 37}}}),
      encode(JoinClusterRequest{"n1", "n1:7943", std::nullopt, std::nullopt}),
      encode(JoinClusterRequest{"n1", "n1:7943", true, 37}),
      encode(ForgetServerRequest{"n1"}),
  };
  std::vector<std::string> all;
  for (const std::string& request : requests) {
    std::string frame;
    append_frame(frame, FrameType::node_request, 7, request);
    all.push_back(std::string(1, '\0') + frame);
    all.push_back(std::string(1, '\3') + request);
  }
  const std::string reply = encode(NodeReply{201, "application/json", "{\"name\":\"orders\"}\n"});
  std::string frame;
  append_frame(frame, FrameType::node_reply, 7, reply);
  all.push_back(std::string(1, '\0') + frame);
  all.push_back(std::string(1, '\1') + reply);
  all.push_back(std::string(1, '\2') + encode_error_text("unknown opcode"));
  return all;
}

void run_one(std::string_view bytes) {
  Input input(bytes);
  switch (input.byte()) {
    case 0:
      return decode_frame(input.rest());
    case 1:
      return decode_one(input.rest(), decode_reply, io::ErrorKind::corrupt);
    case 2:
      return decode_text(input.rest());
    default:
      return decode_request(input.rest());
  }
}

}  // namespace fuzz
