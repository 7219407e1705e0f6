#include "engine/cluster/link_frames.h"

#include "engine/cluster/field_codec.h"

namespace engine::cluster {

namespace {

template <typename Request>
std::string encode_link(Op op, const Request& request) {
  std::string out = begin_payload(op);
  append_bytes(out, request.parent);
  append_bytes(out, request.child);
  append_big_endian(out, static_cast<uint64_t>(request.delay_ms));
  if (request.actor.has_value()) {
    append_bytes(out, *request.actor);
  }
  return out;
}

template <typename Request>
io::Result<Request> decode_link(std::string_view payload) {
  FieldReader reader(payload);
  Request request;
  request.parent = reader.bytes("parent");
  request.child = reader.bytes("child");
  request.delay_ms = reader.i64("delay_ms");
  request.actor = reader.optional_bytes("actor");
  return finish_fields(reader, std::move(request));
}

}  // namespace

std::string encode(const AttachChildRequest& request) { return encode_link(Op::attach_child, request); }
std::string encode(const DetachChildRequest& request) { return encode_link(Op::detach_child, request); }

io::Result<AttachChildRequest> decode_attach_child(std::string_view payload) { return decode_link<AttachChildRequest>(payload); }
io::Result<DetachChildRequest> decode_detach_child(std::string_view payload) { return decode_link<DetachChildRequest>(payload); }

}  // namespace engine::cluster
