#include "engine/topics/rules.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "engine/topics/json.h"
#include "engine/topics/json_source.h"
#include "engine/topics/schema_rules.h"

namespace engine::topics {

namespace {

using json::Value;

// Collects the first thing wrong with a body; every check after it does nothing.
class Check {
 public:
  // A schema stands one level down in its body.
  explicit Check(std::string_view body) : source_(body) {
    io::Result<Value> parsed = json::parse(body, kSchemaDepthMax + 1);
    if (!parsed.ok()) {
      refuse(error_reply(400, "invalid request body: " + parsed.error().message));
    } else if (!parsed->is(Value::Kind::object)) {
      refuse(error_reply(400, "invalid request body: it must be a JSON object, not " + std::string(name_of(parsed->kind))));
    } else {
      body_ = std::move(*parsed);
    }
  }

  bool failed() const { return refusal_.has_value(); }
  Reply take_refusal() { return std::move(*refusal_); }

  void allow_only(std::initializer_list<std::string_view> names) {
    for (const auto& [name, value] : body_.object) {
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        refuse(error_reply(400, "invalid request body: unknown field \"" + name + "\""));
      }
    }
  }

  // The field's value; null when it is absent or null.
  const Value* field(const std::string& name) const {
    const Value* value = body_.find(name);
    return value == nullptr || value->is(Value::Kind::null) ? nullptr : value;
  }
  bool holds(const std::string& name) const { return body_.find(name) != nullptr; }

  std::string text(const std::string& name) {
    const Value* value = field(name);
    if (value == nullptr) {
      return {};
    }
    require(value->is(Value::Kind::string), name + " must be a string, not " + std::string(name_of(value->kind)));
    return value->text;
  }

  std::optional<int64_t> integer(const std::string& name) {
    const Value* value = field(name);
    if (value == nullptr) {
      return std::nullopt;
    }
    if (value->is(Value::Kind::number)) {
      require(false, name + " must be an integer of 64 bits, not " + value->text.substr(0, 40));
    }
    require(value->is(Value::Kind::integer), name + " must be an integer, not " + std::string(name_of(value->kind)));
    return value->integer;
  }

  // The field's value as it was written.
  std::string_view source(std::string_view name) const { return json::member_text(source_, name).value_or(std::string_view()); }

  void require(bool holds, const std::string& text) {
    if (!holds) {
      refuse(invalid_argument(text));
    }
  }
  void refuse(Reply reply) {
    if (!failed()) {
      refusal_ = std::move(reply);
    }
  }

 private:
  std::string_view source_;
  Value body_;
  std::optional<Reply> refusal_;
};

Reply not_supported(std::string_view field) {
  return error_reply(501, std::string(field) + " is not supported by this release");
}

void check_retention(Check& check, int64_t retention_ms) {
  check.require(retention_ms == 0 || retention_ms >= kRetentionMinMs,
                "retention_ms must be 0 (for ever) or at least " + std::to_string(kRetentionMinMs));
}

void check_partitions(Check& check, int64_t partitions, const Limits& limits) {
  check.require(partitions >= kPartitionsMin && partitions <= limits.max_partitions,
                "partitions must be between " + std::to_string(kPartitionsMin) + " and " +
                    std::to_string(limits.max_partitions));
}

// 0 asks for the default.
int64_t value_or_default(Check& check, const std::string& name, std::optional<int64_t> value, int64_t otherwise) {
  check.require(value.value_or(0) >= 0, name + " must not be negative (0 sets the default, " + std::to_string(otherwise) + ")");
  return value.value_or(0) == 0 ? otherwise : *value;
}

// The schema to be stored; nullopt when there is none, or a bad one.
std::optional<std::string> read_schema(Check& check) {
  if (!check.holds("schema")) {
    return std::nullopt;
  }
  check.require(check.field("schema") != nullptr, "schema must be a JSON object or true");
  if (check.failed()) {
    return std::nullopt;
  }
  Checked<std::string> schema = check_schema(check.source("schema"));
  if (Reply* wrong = std::get_if<Reply>(&schema)) {
    check.refuse(std::move(*wrong));
    return std::nullopt;
  }
  return std::get<std::string>(std::move(schema));
}

}  // namespace

Reply invalid_argument(std::string_view what) { return error_reply(400, "invalid argument: " + std::string(what)); }

bool is_valid_new_name(std::string_view name) {
  auto is_allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= kNameMax && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), is_allowed);
}

Checked<CreateRequest> parse_create(std::string_view body, const Limits& limits) {
  Check check(body);
  check.allow_only({"name", "partitions", "retention_ms", "visibility_timeout_ms", "max_in_flight_per_partition",
                    "max_acked_ahead_per_partition", "schema", "parent", "fanout_delay_ms", "owner"});
  CreateRequest request;
  request.name = check.text("name");
  check.require(is_valid_new_name(request.name), "name must be 1 to " + std::to_string(kNameMax) +
                                                     " characters of A-Z a-z 0-9 . _ - and neither \".\" nor \"..\"");
  int64_t partitions = check.integer("partitions").value_or(0);
  const bool is_parents = partitions == 0 && !check.text("parent").empty();
  if (!is_parents) {
    partitions = partitions == 0 ? limits.default_partitions : partitions;
    check_partitions(check, partitions, limits);
  }
  request.retention_ms = check.integer("retention_ms").value_or(limits.default_retention_ms);
  check_retention(check, request.retention_ms);
  request.visibility_timeout_ms = value_or_default(check, "visibility_timeout_ms", check.integer("visibility_timeout_ms"),
                                                   limits.default_visibility_timeout_ms);
  request.max_in_flight = value_or_default(check, "max_in_flight_per_partition",
                                           check.integer("max_in_flight_per_partition"), limits.default_max_in_flight);
  request.max_acked_ahead = value_or_default(check, "max_acked_ahead_per_partition",
                                             check.integer("max_acked_ahead_per_partition"), limits.default_max_acked_ahead);
  int64_t delay = check.integer("fanout_delay_ms").value_or(0);
  check.require(delay >= 0 && delay <= kFanoutDelayMaxMs,
                "fanout_delay_ms must be between 0 and " + std::to_string(kFanoutDelayMaxMs));
  request.fanout_delay_ms = delay;
  request.parent = check.text("parent");
  check.require(delay == 0 || !request.parent.empty(), "fanout_delay_ms needs a parent");
  check.require(request.parent.empty() || request.parent != request.name, "a topic cannot be its own parent");
  check.text("owner");
  request.schema = read_schema(check).value_or("");
  if (check.failed()) {
    return check.take_refusal();
  }
  request.partitions = static_cast<int32_t>(partitions);
  return request;
}

Checked<AlterRequest> parse_alter(std::string_view body, const Limits& limits) {
  Check check(body);
  check.allow_only({"retention_ms", "max_in_flight_per_partition", "max_acked_ahead_per_partition", "partitions", "schema",
                    "schema_base_version"});
  AlterRequest request;
  request.retention_ms = check.integer("retention_ms");
  if (request.retention_ms) {
    check_retention(check, *request.retention_ms);
  }
  if (std::optional<int64_t> cap = check.integer("max_in_flight_per_partition")) {
    request.max_in_flight = value_or_default(check, "max_in_flight_per_partition", cap, limits.default_max_in_flight);
  }
  if (std::optional<int64_t> cap = check.integer("max_acked_ahead_per_partition")) {
    request.max_acked_ahead = value_or_default(check, "max_acked_ahead_per_partition", cap, limits.default_max_acked_ahead);
  }
  if (std::optional<int64_t> partitions = check.integer("partitions")) {
    check_partitions(check, *partitions, limits);
    request.partitions = static_cast<int32_t>(std::clamp<int64_t>(*partitions, 0, INT32_MAX));
  }
  request.schema_base_version = check.integer("schema_base_version");
  check.require(!request.schema_base_version || check.holds("schema"), "schema_base_version needs a schema");
  check.require(request.schema_base_version.value_or(0) >= 0, "schema_base_version must not be negative");
  request.schema = read_schema(check);
  check.require(request.changes_record() || request.schema,
                "at least one of retention_ms, max_in_flight_per_partition, max_acked_ahead_per_partition, partitions, schema "
                "must be given");
  if (check.failed()) {
    return check.take_refusal();
  }
  return request;
}

Checked<AttachRequest> parse_attach(std::string_view parent, std::string_view body) {
  Check check(body);
  check.allow_only({"child", "delay_ms", "remote", "remote_topic", "from", "lanes", "dry_run"});
  for (const char* name : {"remote", "remote_topic", "from", "lanes", "dry_run"}) {
    if (check.holds(name)) {
      check.refuse(not_supported("a remote child"));
    }
  }
  AttachRequest request;
  request.child = check.text("child");
  request.delay_ms = check.integer("delay_ms").value_or(0);
  if (check.failed()) {
    return check.take_refusal();
  }
  if (std::optional<Reply> wrong = why_not_attach(parent, request)) {
    return *std::move(wrong);
  }
  return request;
}

std::optional<Reply> why_not_attach(std::string_view parent, const AttachRequest& request) {
  if (request.child.empty()) {
    return invalid_argument("child must be given");
  }
  if (request.child == parent) {
    return invalid_argument("a topic cannot be its own child");
  }
  if (request.child.size() > kChildNameMax) {
    return invalid_argument("child must be at most " + std::to_string(kChildNameMax) + " bytes");
  }
  if (request.delay_ms < 0 || request.delay_ms > kFanoutDelayMaxMs) {
    return invalid_argument("delay_ms must be between 0 and " + std::to_string(kFanoutDelayMaxMs));
  }
  return std::nullopt;
}

Checked<ListRequest> parse_list(const std::optional<std::string>& limit, const std::optional<std::string>& page_token) {
  int64_t wanted = kListLimitDefault;
  if (limit && !limit->empty()) {
    const char* end = limit->data() + limit->size();
    auto [stop, error] = std::from_chars(limit->data(), end, wanted);
    if (error != std::errc() || stop != end || wanted <= 0) {
      return invalid_argument("limit must be a positive integer");
    }
  }
  return ListRequest{static_cast<size_t>(std::min(wanted, kListLimitMax)), page_token.value_or("")};
}

}  // namespace engine::topics
