#include "engine/metastore/apply_schemas.h"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/metastore/kept_rows.h"

namespace engine::metastore {

namespace {

// The names that get the version: the topic, then its children but for remote stubs, each once.
std::vector<std::string> holders(Transaction& rows, const Topic& topic) {
  std::vector<std::string> names{topic.name};
  for (const std::string& name : topic.children) {
    const std::optional<Topic> child = load_topic(rows, name);
    const bool is_stub = child && child->is_remote_stub();
    if (!is_stub && std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
  return names;
}

Answer check_version(Transaction& rows, const std::string& topic, int64_t version) {
  const int64_t latest = schema_head(rows, topic).versions;
  if (version <= latest) {
    return refuse(Code::already_exists, "schema version " + std::to_string(version) + " of topic " + topic);
  }
  if (version > latest + 1) {
    return refuse(Code::invalid_argument, "schema version " + std::to_string(version) + " of topic " + topic +
                                              " does not follow version " + std::to_string(latest));
  }
  if (version > kSchemaVersionsMax) {
    return refuse(Code::schema_history_full, "topic " + topic + " has " + std::to_string(latest) + " versions");
  }
  return {};
}

// Each copy counts to its own topic, and all of them to the cluster.
Answer check_bytes(Transaction& rows, const std::vector<std::string>& names, uint64_t added) {
  for (const std::string& name : names) {
    if (Answer refused = check_topic_bytes(name, schema_head(rows, name).bytes + added); !refused.ok()) {
      return refused;
    }
  }
  return check_cluster_bytes(rows, names.size() * added, 0);
}

Answer put(Transaction& rows, const Topic& topic, int64_t version, const std::string& schema, bool has_budgets, Effects& effects) {
  if (topic.role == Role::child) {
    return refuse(Code::fanout_schema_managed, "topic " + topic.name);
  }
  const std::vector<std::string> names = holders(rows, topic);
  for (const std::string& name : names) {
    if (Answer refused = check_version(rows, name, version); !refused.ok()) {
      return refused;
    }
  }
  if (has_budgets) {
    if (Answer refused = check_bytes(rows, names, schema.size()); !refused.ok()) {
      return refused;
    }
  }
  for (const std::string& name : names) {
    add_schema(rows, name, version, schema);
    effects.moved(Domain::schemas, name);
  }
  return {};
}

}  // namespace

Answer check_topic_bytes(std::string_view topic, uint64_t bytes) {
  return bytes <= kTopicSchemaBytesMax ? Answer()
                                       : refuse(Code::schema_history_full, "the schemas of topic " + std::string(topic) +
                                                                               " would take " + std::to_string(bytes) + " bytes");
}

Answer check_cluster_bytes(Transaction& rows, uint64_t added, uint64_t freed) {
  const uint64_t held = cluster_schema_bytes(rows);
  const uint64_t bytes = held - std::min(held, freed) + added;
  return bytes <= kClusterSchemaBytesMax
             ? Answer()
             : refuse(Code::schema_history_full, "the schemas of the cluster would take " + std::to_string(bytes) + " bytes");
}

Answer apply_entry(Transaction& rows, const PutSchema& entry, Effects& effects) {
  const std::optional<Topic> topic = load_topic(rows, entry.topic);
  if (!topic) {
    return refuse(Code::not_found, "topic " + entry.topic);
  }
  return put(rows, *topic, entry.version, entry.schema, false, effects);
}

Answer apply_entry(Transaction& rows, const PutSchemaIf& entry, Effects& effects) {
  const std::optional<Topic> topic = load_topic(rows, entry.topic);
  if (!topic) {
    return refuse(Code::not_found, "topic " + entry.topic);
  }
  if (topic->id != entry.expected_id) {
    return refuse(Code::topic_changed, "topic " + entry.topic);
  }
  return put(rows, *topic, entry.version, entry.schema, true, effects);
}

}  // namespace engine::metastore
