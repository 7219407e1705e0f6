// The topic record: what the metastore keeps under a topic's name, and how it is stored.
//
// A plain value. The stored form is a FlatBuffer (records.fbs); two equal records have equal bytes on every node, because the
// state digest is taken over them. Every field of releases up to 3.2 is here, also those that only later entry types fill.
// Source: narad/entry-types.md section 2.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace engine::metastore {

// Its place in fan-out. `none` is what a new topic has and `standalone` what a dissolved link leaves: both mean standalone.
// Stored: values never change.
enum class Role : uint8_t { none = 0, standalone = 1, parent = 2, child = 3 };

// "", "standalone", "parent", "child".
std::string_view to_string(Role role);

// A remote child's link (releases from 3.2; filled by entry types 33 and 34).
struct RemoteLink {
  std::string name;       // of the remote
  std::string topic;      // at the remote
  std::string target_id;  // incarnation there
  std::string from;       // "attach", "unconsumed", "earliest"
  int32_t lanes = 0;      // 1..8
  bool paused = false;
  std::string pause_reason;
  std::string paused_by;
  int64_t paused_at_ms = 0;
  std::map<int32_t, std::vector<int64_t>> skip;  // offsets to skip, by partition
  std::string created_by;

  friend bool operator==(const RemoteLink&, const RemoteLink&) = default;
};

struct Topic {
  std::string name;
  std::string id;  // incarnation: 16 hexadecimal digits, drawn by the proposer
  int32_t partitions = 0;
  int64_t retention_ms = 0;  // 0: for ever
  int64_t visibility_timeout_ms = 0;
  int64_t max_in_flight_per_partition = 0;
  int64_t max_acked_ahead_per_partition = 0;
  int64_t created_at = 0;  // Unix seconds, the proposer's clock
  std::string owner;       // user name; empty: none
  Role role = Role::none;
  std::vector<std::string> children;    // of a parent, in order of attaching
  std::string parent;                   // of a child
  std::string attach_epoch;             // of a child
  int64_t fanout_delay_ms = 0;          // of a child
  std::vector<int64_t> attach_offsets;  // of a child: one for each parent partition
  std::optional<RemoteLink> remote;     // of a remote child's stub

  bool is_remote_stub() const { return remote.has_value(); }

  friend bool operator==(const Topic&, const Topic&) = default;
};

// The stored bytes of a record.
std::string encode_topic(const Topic& topic);

// The inverse; nullopt when the bytes are not a well-formed record.
std::optional<Topic> decode_topic(std::string_view bytes);

// `name` with the letters A-Z made small. Names that fold alike are one name to people, so only one of them may be created.
std::string fold_name(std::string_view name);

}  // namespace engine::metastore
