// The node protocol's requests about the cluster itself: heartbeats, joining, forgetting a server. Pure; the frame around them and
// the form of fields: node_frames.h, field_codec.h.
//
// Trailing fields that older releases do not know are optional here. A reader takes their absence for "not given"; a writer that talks
// to an older release, which refuses what it does not know as trailing data, leaves them out (older_frame()).
// Source: narad/node-protocol.md sections 4 to 7.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/cluster/frame_fields.h"
#include "engine/cluster/node_frames.h"
#include "io/result.h"

namespace engine::cluster {

// A node's heartbeat to the leader.
struct RegisterMemberRequest {
  std::string id;
  std::string addr;            // HTTP
  std::string cluster_addr;
  std::string status;          // "alive", "dead"; empty: alive
  int64_t last_heartbeat = 0;  // Unix seconds by the sender's clock; the leader does not use it
  // Of the sender's release. They go together; absent from releases without them.
  struct Release {
    std::string build;
    uint32_t entry_types = 0;  // the newest raft entry type that it applies
    friend bool operator==(const Release&, const Release&) = default;
  };
  std::optional<Release> release;
  friend bool operator==(const RegisterMemberRequest&, const RegisterMemberRequest&) = default;
};

struct JoinClusterRequest {
  std::string id;
  std::string cluster_addr;
  std::optional<bool> fresh;            // the sender's volume is empty, as far as it knows; absent: a release without the field
  std::optional<uint32_t> entry_types;  // the newest raft entry type that the sender applies; written only behind `fresh`
  friend bool operator==(const JoinClusterRequest&, const JoinClusterRequest&) = default;
};

struct ForgetServerRequest {
  std::string id;
  friend bool operator==(const ForgetServerRequest&, const ForgetServerRequest&) = default;
};

// Request payloads, opcode first.
std::string encode(const RegisterMemberRequest& request);
std::string encode(const JoinClusterRequest& request);
std::string encode(const ForgetServerRequest& request);

// `payload` is the whole of it, opcode first. `invalid` with the text that goes behind "invalid <op> request: ".
io::Result<RegisterMemberRequest> decode_register_member(std::string_view payload);
io::Result<JoinClusterRequest> decode_join_cluster(std::string_view payload);
io::Result<ForgetServerRequest> decode_forget_server(std::string_view payload);

// ---- Talking to older releases -----------------------------------------------------------------------------------------------

// The same request as releases know it that have no optional fields.
RegisterMemberRequest older_frame(RegisterMemberRequest request);
JoinClusterRequest older_frame(JoinClusterRequest request);

// The peer is of a release that does not know a field of the request: 400, and the text names trailing data.
bool is_refused_as_trailing(const NodeReply& reply);

// What a node whose release knows only these fields makes of a request payload with others: `invalid`, trailing data. Ok for every
// other payload.
io::Status check_known_fields(std::string_view payload, const FrameFields& known);

}  // namespace engine::cluster
