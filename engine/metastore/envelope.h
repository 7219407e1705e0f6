// The command envelope: how a metadata change travels in a raft entry.
//
//   bytes 0-1  magic "NC"
//   bytes 2-3  envelope version, big-endian: 1
//   bytes 4-7  entry type, big-endian (entry-types.md numbers them 1 to 37)
//   bytes 8-   the payload, a FlatBuffer (entries.fbs)
//
// A departure from the original's JSON, granted by architecture.md. What every node must judge alike:
//  - too short, no magic, or version 0: undecodable, which is counted as applied;
//  - a version or a type that this release does not know: it stops, since a newer release meant something by it;
//  - a known type whose payload the verifier refuses (limits below): undecodable.
// The limits are part of the format. A released type's payload never gains a field: a change is a new type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/metastore/topic.h"

namespace engine::metastore {

enum class EntryType : uint32_t {
  // every release
  create_topic = 1,
  update_topic = 2,
  delete_topic = 3,
  put_schema = 4,
  assign_partition = 5,
  register_member = 6,
  heartbeat_member = 7,
  mark_member_dead = 8,
  create_user = 9,
  update_user = 10,
  delete_user = 11,
  seed_root_user = 12,
  attach_child = 13,
  detach_child = 14,
  set_move_target = 15,
  complete_move = 16,
  abort_move = 17,
  set_member_draining = 18,
  remove_member = 19,
  readmit_member = 20,
  set_user_password = 21,
  set_user_grants = 22,
  // since 3.1
  create_topic_linked = 23,
  update_topic_if = 24,
  delete_topic_if = 25,
  put_schema_if = 26,
  attach_child_if = 27,
  detach_child_if = 28,
  place_partition = 29,
  prune_assignment = 30,
  mark_member_dead_if = 31,
  delete_user_releasing = 32,
  // since 3.2
  attach_remote_child = 33,
  change_remote_child = 34,
  create_remote = 35,
  change_remote = 36,
  delete_remote = 37,
};

// The newest entry type that this build applies.
inline constexpr uint32_t kNewestEntryType = 37;
// Of a release to come, which exists in simulations only: an entry that changes nothing.
inline constexpr uint32_t kHypotheticalEntryType = 38;
// The newest of every 3.0 release, and what a member that reports nothing counts as.
inline constexpr uint32_t kEveryReleaseEntryType = 22;
// The newest of 3.1.
inline constexpr uint32_t kNewestEntryTypeOf31 = 32;
// The type's name in logs ("create topic with schema and link").
std::string_view name_of(EntryType type);

// What the verifier accepts of a payload: nesting, tables, bytes.
inline constexpr uint32_t kPayloadDepthMax = 16;
inline constexpr uint32_t kPayloadTablesMax = 100'000;
inline constexpr size_t kPayloadBytesMax = 16u << 20;

inline constexpr uint16_t kEnvelopeVersion = 1;
inline constexpr size_t kEnvelopeHeaderBytes = 8;

struct Envelope {
  uint16_t version = 0;
  uint32_t type = 0;
  std::string_view payload;  // into the bytes it was read from
};

// The header; nullopt when the bytes are undecodable. Knows nothing of types and payloads.
std::optional<Envelope> read_envelope(std::string_view bytes);

// The topic commands of commands.h by themselves, ready to be proposed.
std::string encode_create_topic(const Topic& topic);  // type 1: the record as it is to be stored
std::string encode_update_topic(const Topic& topic);  // type 2: identity and links are kept as stored
std::string encode_delete_topic(std::string_view name);  // type 3

// Payloads; nullopt when undecodable.
std::optional<Topic> decode_create_topic(std::string_view payload);
std::optional<Topic> decode_update_topic(std::string_view payload);
std::optional<std::string> decode_delete_topic(std::string_view payload);

}  // namespace engine::metastore
