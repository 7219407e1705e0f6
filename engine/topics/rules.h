// The rules of topic requests: which bodies are accepted, what they mean, and the text of each refusal.
//
// Pure: a body goes in, a request with every default filled in or a refusal comes out. What depends on the stored record (a
// name that exists, partitions that may only grow) is checked by the manager. Source: narad/http-api.md sections 1 and 3.
//
// Answered 501: what links a child at another cluster (remote, remote_topic, from, lanes, dry_run).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "engine/topics/reply.h"

namespace engine::topics {

inline constexpr size_t kNameMax = 200;            // of a new topic, bytes
inline constexpr size_t kChildNameMax = 230;       // of a topic that becomes a child
inline constexpr int64_t kPartitionsMin = 3;
inline constexpr int64_t kRetentionMinMs = 3'600'000;  // unless 0: for ever
inline constexpr int64_t kFanoutDelayMaxMs = 31'536'000'000;

inline constexpr int64_t kListLimitDefault = 100;
inline constexpr int64_t kListLimitMax = 1000;

// The configuration's share.
struct Limits {
  int64_t default_partitions = 3;
  int64_t max_partitions = 108;
  int64_t default_retention_ms = 604'800'000;
  int64_t default_visibility_timeout_ms = 30'000;
  int64_t default_max_in_flight = 1024;
  int64_t default_max_acked_ahead = 1024;
};

struct CreateRequest {
  std::string name;
  int32_t partitions = 0;    // 0: as many as the parent has
  int64_t retention_ms = 0;  // 0: for ever
  int64_t visibility_timeout_ms = 0;
  int64_t max_in_flight = 0;
  int64_t max_acked_ahead = 0;
  std::string schema;  // compacted; empty: none
  std::string parent;  // empty: none
  int64_t fanout_delay_ms = 0;
};

struct AlterRequest {
  std::optional<int64_t> retention_ms;
  std::optional<int64_t> max_in_flight;
  std::optional<int64_t> max_acked_ahead;
  std::optional<int32_t> partitions;
  std::optional<std::string> schema;           // compacted
  std::optional<int64_t> schema_base_version;  // that the schema must follow; 0: the first

  // Anything that stands in the topic's record.
  bool changes_record() const { return retention_ms || max_in_flight || max_acked_ahead || partitions; }
};

struct AttachRequest {
  std::string child;
  int64_t delay_ms = 0;
};

struct ListRequest {
  size_t limit = 0;
  std::string after;
};

template <typename T>
using Checked = std::variant<T, Reply>;

Checked<CreateRequest> parse_create(std::string_view body, const Limits& limits);
Checked<AlterRequest> parse_alter(std::string_view body, const Limits& limits);
// Of POST /v1/topics/{parent}/children.
Checked<AttachRequest> parse_attach(std::string_view parent, std::string_view body);
// The same for a request that came as fields.
std::optional<Reply> why_not_attach(std::string_view parent, const AttachRequest& request);
// Query values as they came, decoded; nullopt when absent.
Checked<ListRequest> parse_list(const std::optional<std::string>& limit, const std::optional<std::string>& page_token);

// 1 to kNameMax of A-Z a-z 0-9 . _ - and neither "." nor "..".
bool is_valid_new_name(std::string_view name);

// 400 "invalid argument: <what>".
Reply invalid_argument(std::string_view what);

}  // namespace engine::topics
