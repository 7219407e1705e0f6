#include "engine/cluster/node_frames.h"

#include "engine/json_text.h"
#include "io/check.h"

namespace engine::cluster {

namespace {

template <typename Unsigned>
void append_big_endian(std::string& out, Unsigned value) {
  for (int shift = static_cast<int>(sizeof(Unsigned)) * 8 - 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(static_cast<uint8_t>(value >> shift)));
  }
}

template <typename Unsigned>
Unsigned read_big_endian(std::string_view bytes) {
  Unsigned value = 0;
  for (size_t i = 0; i < sizeof(Unsigned); ++i) {
    value = static_cast<Unsigned>(value << 8 | static_cast<uint8_t>(bytes[i]));
  }
  return value;
}

void append_bytes(std::string& out, std::string_view bytes) {
  NARAD_CHECK(bytes.size() <= kFramePayloadBytesMax, "a field longer than a frame");
  append_big_endian(out, static_cast<uint32_t>(bytes.size()));
  out.append(bytes);
}

std::string begin(Op op) { return std::string(1, static_cast<char>(op)); }

// Reads fields off the front; the first failure sticks.
class FieldReader {
 public:
  // `payload` begins with the opcode.
  explicit FieldReader(std::string_view payload) : rest_(payload.substr(1)) {}

  std::string bytes(std::string_view name) {
    if (failed()) {
      return {};
    }
    if (rest_.size() < 4) {
      error_ = "truncated " + std::string(name);
      return {};
    }
    const uint32_t length = read_big_endian<uint32_t>(rest_);
    if (length > rest_.size() - 4) {
      error_ = "truncated " + std::string(name);
      return {};
    }
    std::string value(rest_.substr(4, length));
    rest_.remove_prefix(4 + length);
    return value;
  }

  std::optional<std::string> optional_bytes(std::string_view name) {
    if (failed() || rest_.empty()) {
      return std::nullopt;
    }
    return bytes(name);
  }

  io::Status finish() const {
    if (failed()) {
      return io::fail(io::ErrorKind::invalid, error_);
    }
    if (!rest_.empty()) {
      return io::fail(io::ErrorKind::invalid, "trailing node rpc payload data");
    }
    return {};
  }

 private:
  bool failed() const { return !error_.empty(); }
  std::string_view rest_;
  std::string error_;
};

template <typename Request>
io::Result<Request> finish(const FieldReader& reader, Request request) {
  io::Status ended = reader.finish();
  if (!ended.ok()) {
    return ended.error();
  }
  return request;
}

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
    case Op::get_topic:
      return "get_topic";
    case Op::applied_index:
      return "applied_index";
  }
  return "unknown";
}

std::string encode(const CreateTopicRequest& request) {
  std::string out = begin(Op::create_topic);
  append_bytes(out, request.topic);
  append_bytes(out, request.body);
  if (request.actor.has_value()) {
    append_bytes(out, *request.actor);
  }
  return out;
}

std::string encode(const AlterTopicRequest& request) {
  std::string out = begin(Op::alter_topic);
  append_bytes(out, request.topic);
  append_bytes(out, request.body);
  if (request.actor.has_value()) {
    append_bytes(out, *request.actor);
  }
  return out;
}

std::string encode(const DeleteTopicRequest& request) {
  std::string out = begin(Op::delete_topic);
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
  std::string out = begin(Op::get_topic);
  append_bytes(out, request.topic);
  return out;
}

std::string encode_applied_index_request() { return begin(Op::applied_index); }

io::Result<CreateTopicRequest> decode_create_topic(std::string_view payload) {
  FieldReader reader(payload);
  CreateTopicRequest request;
  request.topic = reader.bytes("topic");
  request.body = reader.bytes("body");
  request.actor = reader.optional_bytes("actor");
  return finish(reader, std::move(request));
}

io::Result<AlterTopicRequest> decode_alter_topic(std::string_view payload) {
  FieldReader reader(payload);
  AlterTopicRequest request;
  request.topic = reader.bytes("topic");
  request.body = reader.bytes("body");
  request.actor = reader.optional_bytes("actor");
  return finish(reader, std::move(request));
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
  return finish(reader, std::move(request));
}

io::Result<GetTopicRequest> decode_get_topic(std::string_view payload) {
  FieldReader reader(payload);
  GetTopicRequest request;
  request.topic = reader.bytes("topic");
  return finish(reader, std::move(request));
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

NodeReply json_reply(uint16_t status, std::string body) {
  body.push_back('\n');
  return NodeReply{status, "application/json", std::move(body)};
}

}  // namespace engine::cluster
