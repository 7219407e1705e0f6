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
  create_topic = 1,
  update_topic = 2,
  delete_topic = 3,
};

// The newest entry type that this build applies.
inline constexpr uint32_t kNewestEntryType = 3;

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

// Commands, ready to be proposed.
std::string encode_create_topic(const Topic& topic);  // type 1: the record as it is to be stored
std::string encode_update_topic(const Topic& topic);  // type 2: identity and links are kept as stored
std::string encode_delete_topic(std::string_view name);  // type 3

// Payloads; nullopt when undecodable.
std::optional<Topic> decode_create_topic(std::string_view payload);
std::optional<Topic> decode_update_topic(std::string_view payload);
std::optional<std::string> decode_delete_topic(std::string_view payload);

}  // namespace engine::metastore
