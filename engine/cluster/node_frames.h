// The node protocol's bytes (narad/node-protocol.md sections 2 to 4): frames, requests, replies. Pure: no stream, no clock.
//
// A frame is a 20-byte big-endian header (magic "NRS1", version 1, type, two reserved bytes, request id, payload length) and a
// payload of at most 16 MiB. A request payload is one opcode byte and its fields in order; strings and byte strings are a u32
// length and the bytes, integers big-endian, a bool one byte. The payload must end exactly where its fields do. A reply payload
// is a u16 status, a content type and a body. Opcodes, fields and statuses keep the original's numbers for good.
//
// The numbers of all operations of this release stand here, and the fields of those about topics; those about the cluster are in
// cluster_frames.h. A new one adds its number, its struct and its two functions (field_codec.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/result.h"

namespace engine::cluster {

inline constexpr std::string_view kFrameMagic = "NRS1";
inline constexpr uint8_t kFrameVersion = 1;
inline constexpr size_t kFrameHeaderBytes = 20;
inline constexpr uint32_t kFramePayloadBytesMax = 16u << 20;

enum class FrameType : uint8_t {
  error = 3,         // u16 length and a text; about the connection, not about one request
  ping = 4,          // no payload
  pong = 5,          // answers a ping under its request id
  node_request = 8,
  node_reply = 9,
  auth = 10,         // not used until security exists: refused
  cancel = 11,       // no payload, no reply: the caller of this request id has given up
};

struct FrameHeader {
  FrameType type = FrameType::error;
  uint64_t request_id = 0;
  uint32_t payload_bytes = 0;
};

// The header of a frame; reserved bytes are written as zero and not read. `corrupt` for a wrong magic, version or type, or a
// length above the limit. `bytes` holds at least kFrameHeaderBytes.
io::Result<FrameHeader> decode_frame_header(std::string_view bytes);
// Appends a whole frame to `out`. `payload` is within the limit.
void append_frame(std::string& out, FrameType type, uint64_t request_id, std::string_view payload);
// The payload of an error frame, and its text back (what there is of it).
std::string encode_error_text(std::string_view text);
std::string decode_error_text(std::string_view payload);

enum class Op : uint8_t {
  create_topic = 4,
  alter_topic = 5,
  delete_topic = 6,
  purge_topic = 7,
  register_member = 9,
  attach_child = 15,
  detach_child = 16,
  get_topic = 20,
  join_cluster = 21,
  decommission_member = 25,
  complete_move = 26,
  abort_move = 27,
  get_assignment = 28,
  applied_index = 29,
  node_status = 33,
  forget_server = 34,
};

// "create_topic" and so on, as in metric labels; "unknown" for a number this release does not serve.
std::string_view op_name(uint8_t op);

struct CreateTopicRequest {
  std::string topic;
  std::string body;                  // the create JSON
  std::optional<std::string> actor;  // who asked at the ingress node; absent from releases without the field
};

struct AlterTopicRequest {
  std::string topic;
  std::string body;  // the alter JSON
  std::optional<std::string> actor;
};

struct DeleteTopicRequest {
  std::string topic;
  std::optional<std::string> id;  // the incarnation that the ingress node read; absent: whichever is live
  std::optional<std::string> actor;
};

struct GetTopicRequest {
  std::string topic;
};

// Request payloads, opcode first. An optional field is written when it is set, and those before it with it.
std::string encode(const CreateTopicRequest& request);
std::string encode(const AlterTopicRequest& request);
std::string encode(const DeleteTopicRequest& request);
std::string encode(const GetTopicRequest& request);
std::string encode_applied_index_request();

// The fields of a payload whose opcode has been read; `payload` is the whole of it. `invalid` with the text that goes behind
// "invalid <op> request: ".
io::Result<CreateTopicRequest> decode_create_topic(std::string_view payload);
io::Result<AlterTopicRequest> decode_alter_topic(std::string_view payload);
io::Result<DeleteTopicRequest> decode_delete_topic(std::string_view payload);
io::Result<GetTopicRequest> decode_get_topic(std::string_view payload);
io::Status decode_applied_index(std::string_view payload);

struct NodeReply {
  uint16_t status = 200;
  std::string content_type;
  std::string body;
};

std::string encode(const NodeReply& reply);
io::Result<NodeReply> decode_reply(std::string_view payload);

// {"error":"<text>"} and a newline, under `status`.
NodeReply error_reply(uint16_t status, std::string_view text);
// 421: this node does not lead; both may be empty.
NodeReply not_leader_reply(std::string_view leader_id, std::string_view leader_addr);
// `body` is JSON without its closing newline.
NodeReply json_reply(uint16_t status, std::string body);

}  // namespace engine::cluster
