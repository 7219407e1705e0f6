#include "engine/topics/topic_json.h"

#include <algorithm>

#include "engine/topics/json.h"

namespace engine::topics {

namespace {

using json::Value;
using json::Writer;
using metastore::RemoteLink;
using metastore::Role;

void write_strings(Writer& out, const std::vector<std::string>& items) {
  out.begin_array();
  for (const std::string& item : items) {
    out.string(item);
  }
  out.end_array();
}

void write_integers(Writer& out, const std::vector<int64_t>& items) {
  out.begin_array();
  for (int64_t item : items) {
    out.integer(item);
  }
  out.end_array();
}

void write_text_if_any(Writer& out, std::string_view name, std::string_view text) {
  if (!text.empty()) {
    out.key(name).string(text);
  }
}

void write_remote(Writer& out, const RemoteLink& link) {
  out.begin_object();
  out.key("name").string(link.name).key("topic").string(link.topic);
  write_text_if_any(out, "target_id", link.target_id);
  out.key("from").string(link.from).key("lanes").integer(link.lanes).key("paused").boolean(link.paused);
  write_text_if_any(out, "pause_reason", link.pause_reason);
  write_text_if_any(out, "paused_by", link.paused_by);
  if (link.paused_at_ms != 0) {
    out.key("paused_at_ms").integer(link.paused_at_ms);
  }
  if (!link.skip.empty()) {
    out.key("skip").begin_object();
    for (const auto& [partition, offsets] : link.skip) {
      out.key(std::to_string(partition));
      write_integers(out, offsets);
    }
    out.end_object();
  }
  write_text_if_any(out, "created_by", link.created_by);
  out.end_object();
}

void write_fanout(Writer& out, const Topic& topic, bool shows_standalone) {
  bool is_standalone = topic.role == Role::none || topic.role == Role::standalone;
  if (!is_standalone) {
    out.key("role").string(to_string(topic.role));
  } else if (shows_standalone) {
    out.key("role").string("standalone");
  }
  if (!topic.children.empty()) {
    out.key("children");
    write_strings(out, topic.children);
  }
  write_text_if_any(out, "parent", topic.parent);
  write_text_if_any(out, "attach_epoch", topic.attach_epoch);
  if (topic.fanout_delay_ms != 0) {
    out.key("fanout_delay_ms").integer(topic.fanout_delay_ms);
  }
  if (!topic.attach_offsets.empty()) {
    out.key("attach_offsets");
    write_integers(out, topic.attach_offsets);
  }
  if (topic.remote) {
    out.key("remote");
    write_remote(out, *topic.remote);
  }
}

void write_fields(Writer& out, const Topic& topic, bool shows_standalone) {
  out.key("name").string(topic.name).key("id").string(topic.id);
  out.key("partitions").integer(topic.partitions).key("retention_ms").integer(topic.retention_ms);
  out.key("visibility_timeout_ms").integer(topic.visibility_timeout_ms);
  out.key("max_in_flight_per_partition").integer(topic.max_in_flight_per_partition);
  out.key("max_acked_ahead_per_partition").integer(topic.max_acked_ahead_per_partition);
  out.key("created_at").integer(topic.created_at);
  write_text_if_any(out, "owner", topic.owner);
  write_fanout(out, topic, shows_standalone);
}

void write_row(Writer& out, const PartitionRow& row) {
  out.begin_object();
  out.key("index").integer(row.index).key("segments").integer(0);
  out.key("oldest_offset").integer(0).key("next_offset").integer(0).key("high_watermark").integer(0);
  out.key("size_bytes").integer(0).key("owner_node").string(row.owner);
  out.key("status").string(row.liveness.empty() ? "ok" : "owner_unavailable");
  write_text_if_any(out, "owner_liveness", row.liveness);
  out.end_object();
}

// ---- Reading ---------------------------------------------------------------------------------------------------------------

bool read_text(const Value& object, const std::string& name, std::string& to) {
  const Value* value = object.find(name);
  if (value == nullptr) {
    return true;
  }
  to = value->text;
  return value->is(Value::Kind::string);
}

bool read_integer(const Value& object, const std::string& name, int64_t& to) {
  const Value* value = object.find(name);
  if (value == nullptr) {
    return true;
  }
  to = value->integer;
  return value->is(Value::Kind::integer);
}

bool read_role(const Value& object, Role& to) {
  std::string text;
  if (!read_text(object, "role", text)) {
    return false;
  }
  for (Role role : {Role::none, Role::standalone, Role::parent, Role::child}) {
    if (text == to_string(role)) {
      to = role;
      return true;
    }
  }
  return false;
}

bool read_children(const Value& object, std::vector<std::string>& to) {
  const Value* value = object.find("children");
  if (value == nullptr) {
    return true;
  }
  for (const Value& item : value->array) {
    if (!item.is(Value::Kind::string)) {
      return false;
    }
    to.push_back(item.text);
  }
  return value->is(Value::Kind::array);
}

bool read_offsets(const Value& object, std::vector<int64_t>& to) {
  const Value* value = object.find("attach_offsets");
  if (value == nullptr) {
    return true;
  }
  for (const Value& item : value->array) {
    if (!item.is(Value::Kind::integer)) {
      return false;
    }
    to.push_back(item.integer);
  }
  return value->is(Value::Kind::array);
}

std::optional<Topic> read_topic(const Value& object) {
  Topic topic;
  int64_t partitions = 0;
  bool is_whole = object.is(Value::Kind::object) && object.find("name") != nullptr && read_text(object, "name", topic.name) &&
                  read_text(object, "id", topic.id) && read_integer(object, "partitions", partitions) &&
                  read_integer(object, "retention_ms", topic.retention_ms) &&
                  read_integer(object, "visibility_timeout_ms", topic.visibility_timeout_ms) &&
                  read_integer(object, "max_in_flight_per_partition", topic.max_in_flight_per_partition) &&
                  read_integer(object, "max_acked_ahead_per_partition", topic.max_acked_ahead_per_partition) &&
                  read_integer(object, "created_at", topic.created_at) && read_text(object, "owner", topic.owner) &&
                  read_role(object, topic.role) && read_children(object, topic.children) &&
                  read_text(object, "parent", topic.parent) && read_text(object, "attach_epoch", topic.attach_epoch) &&
                  read_integer(object, "fanout_delay_ms", topic.fanout_delay_ms) &&
                  read_offsets(object, topic.attach_offsets);
  if (!is_whole || partitions < 0 || partitions > INT32_MAX) {
    return std::nullopt;
  }
  topic.partitions = static_cast<int32_t>(partitions);
  return topic;
}

}  // namespace

std::string topic_json(const Topic& topic, bool shows_standalone) {
  Writer out;
  out.begin_object();
  write_fields(out, topic, shows_standalone);
  out.end_object();
  return out.take();
}

std::string topic_detail_json(const Topic& topic, int64_t schema_version, std::string_view schema, const std::vector<PartitionRow>& rows) {
  Writer out;
  out.begin_object();
  write_fields(out, topic, true);
  out.key("schema_version").integer(schema_version);
  if (!schema.empty()) {
    out.key("schema").raw(schema);
  }
  out.key("partition_stats").begin_array();
  for (const PartitionRow& row : rows) {
    write_row(out, row);
  }
  out.end_array();
  if (std::any_of(rows.begin(), rows.end(), [](const PartitionRow& row) { return !row.liveness.empty(); })) {
    out.key("partial").boolean(true);
  }
  out.end_object();
  return out.take();
}

std::string schemas_json(std::string_view topic, const std::vector<std::string>& versions) {
  Writer out;
  out.begin_object().key("topic").string(topic).key("version").integer(static_cast<int64_t>(versions.size()));
  out.key("versions").begin_array();
  for (size_t i = 0; i < versions.size(); ++i) {
    out.begin_object().key("version").integer(static_cast<int64_t>(i + 1)).key("schema").raw(versions[i]).end_object();
  }
  out.end_array().end_object();
  return out.take();
}

std::string children_json(const Topic& parent, const std::vector<Topic>& children) {
  Writer out;
  out.begin_object().key("parent").string(parent.name);
  write_text_if_any(out, "parent_id", parent.id);
  out.key("children").begin_array();
  for (const Topic& child : children) {
    out.begin_object().key("name").string(child.name).key("delay_ms").integer(child.fanout_delay_ms);
    out.key("lag_messages").integer(0).key("lag_complete").boolean(true).end_object();
  }
  out.end_array().end_object();
  return out.take();
}

std::string topic_list_json(const std::vector<const Topic*>& topics, std::string_view next_page_token) {
  Writer out;
  out.begin_object().key("topics").begin_array();
  for (const Topic* topic : topics) {
    out.begin_object();
    write_fields(out, *topic, true);
    out.end_object();
  }
  out.end_array().key("next_page_token").string(next_page_token).end_object();
  return out.take();
}

std::optional<Topic> parse_topic_json(std::string_view text) {
  io::Result<Value> value = json::parse(text);
  return value.ok() ? read_topic(*value) : std::nullopt;
}

std::optional<TopicPage> parse_topic_list_json(std::string_view text) {
  io::Result<Value> value = json::parse(text);
  if (!value.ok() || value->find("topics") == nullptr || value->find("next_page_token") == nullptr) {
    return std::nullopt;
  }
  TopicPage page;
  page.next_page_token = value->find("next_page_token")->text;
  for (const Value& item : value->find("topics")->array) {
    std::optional<Topic> topic = read_topic(item);
    if (!topic) {
      return std::nullopt;
    }
    page.topics.push_back(std::move(*topic));
  }
  return page;
}

}  // namespace engine::topics
