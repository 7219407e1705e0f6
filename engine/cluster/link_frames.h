// The node protocol's requests about fan-out links, and topic writes as older releases know them. Pure; the frame around them and the
// form of fields: node_frames.h, field_codec.h.
//
// The field `actor` came with 3.1. A leader of an older release refuses it as trailing data, before it looks at anything else; the
// request is then sent again without, and that leader trusts the rights that the sending node has checked.
// Source: narad/node-protocol.md sections 4 and 7.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/cluster/node_frames.h"
#include "io/result.h"

namespace engine::cluster {

struct AttachChildRequest {
  std::string parent;
  std::string child;
  int64_t delay_ms = 0;
  std::optional<std::string> actor;  // who asked at the ingress node
  friend bool operator==(const AttachChildRequest&, const AttachChildRequest&) = default;
};

struct DetachChildRequest {
  std::string parent;
  std::string child;
  int64_t delay_ms = 0;  // always written; means nothing
  std::optional<std::string> actor;
  friend bool operator==(const DetachChildRequest&, const DetachChildRequest&) = default;
};

std::string encode(const AttachChildRequest& request);
std::string encode(const DetachChildRequest& request);
io::Result<AttachChildRequest> decode_attach_child(std::string_view payload);
io::Result<DetachChildRequest> decode_detach_child(std::string_view payload);

// A write's payload, and the one for a leader that refuses it as trailing data; empty when that is the same.
struct WriteFrames {
  std::string payload;
  std::string older;
};

// `Request`: one of the five writes with an actor.
template <typename Request>
WriteFrames write_frames(Request request) {
  WriteFrames frames{encode(request), ""};
  if (request.actor.has_value()) {
    request.actor.reset();
    frames.older = encode(request);
  }
  return frames;
}

}  // namespace engine::cluster
