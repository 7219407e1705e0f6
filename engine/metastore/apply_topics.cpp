#include "engine/metastore/apply_topics.h"

#include <algorithm>

#include "engine/metastore/topic_fb.h"
#include "io/check.h"

namespace engine::metastore {

namespace {

std::optional<Topic> load(Transaction& rows, std::string_view name) {
  std::optional<std::string> bytes = rows.get(Bucket::topics, name);
  if (!bytes) {
    return std::nullopt;
  }
  std::optional<Topic> topic = decode_topic(*bytes);
  NARAD_CHECK(topic.has_value(), "a topic row that is no record");
  return topic;
}

void store(Transaction& rows, const Topic& topic) { rows.put(Bucket::topics, topic.name, encode_topic(topic)); }

std::string encode_names(const std::vector<std::string>& names) {
  flatbuffers::FlatBufferBuilder builder(128);
  auto built = builder.CreateVectorOfStrings(names);
  builder.Finish(fb::CreateNameList(builder, built));
  return std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
}

std::vector<std::string> names_like(Transaction& rows, const std::string& folded) {
  std::optional<std::string> bytes = rows.get(Bucket::topic_names, folded);
  return bytes ? decode_names(*bytes) : std::vector<std::string>();
}

// Both are content to find their work done: a payload may link a topic to itself, and rows that cannot be read look absent
// (their batch is then thrown away).
void add_name(Transaction& rows, const std::string& name) {
  std::string folded = fold_name(name);
  std::vector<std::string> names = names_like(rows, folded);
  auto place = std::lower_bound(names.begin(), names.end(), name);
  if (place != names.end() && *place == name) {
    return;
  }
  names.insert(place, name);
  rows.put(Bucket::topic_names, folded, encode_names(names));
}

void drop_name(Transaction& rows, const std::string& name) {
  std::string folded = fold_name(name);
  std::vector<std::string> names = names_like(rows, folded);
  if (std::erase(names, name) == 0) {
    return;
  }
  if (names.empty()) {
    rows.erase(Bucket::topic_names, folded);
  } else {
    rows.put(Bucket::topic_names, folded, encode_names(names));
  }
}

void moved(std::vector<Bump>& bumps, const std::string& name) { bumps.push_back({Domain::topics, name, false}); }

// The record and its name, and the counters that went with them.
void erase_topic(Transaction& rows, const std::string& name, std::vector<Bump>& bumps) {
  rows.erase(Bucket::topics, name);
  drop_name(rows, name);
  bumps.push_back({Domain::topics, name, true});
  bumps.push_back({Domain::assignments, name, true});
  bumps.push_back({Domain::schemas, name, true});
}

void make_standalone(Topic& topic) {
  topic.role = Role::standalone;
  topic.parent.clear();
  topic.attach_epoch.clear();
  topic.fanout_delay_ms = 0;
  topic.attach_offsets.clear();
}

void dissolve_children(Transaction& rows, const Topic& parent, std::vector<Bump>& bumps) {
  for (const std::string& name : parent.children) {
    std::optional<Topic> child = load(rows, name);
    if (!child || child->parent != parent.name) {
      continue;
    }
    if (child->is_remote_stub()) {
      erase_topic(rows, name, bumps);
      continue;
    }
    make_standalone(*child);
    store(rows, *child);
    moved(bumps, name);
  }
}

void leave_parent(Transaction& rows, const Topic& child, std::vector<Bump>& bumps) {
  std::optional<Topic> parent = load(rows, child.parent);
  if (!parent || std::erase(parent->children, child.name) == 0) {
    return;
  }
  if (parent->children.empty()) {
    parent->role = Role::standalone;
  }
  store(rows, *parent);
  moved(bumps, parent->name);
}

bool retention_fits_delay(int64_t retention_ms, int64_t delay_ms) {
  int64_t needed_ms = 0;
  if (delay_ms <= 0 || retention_ms == 0) {
    return true;
  }
  return !__builtin_add_overflow(delay_ms, kDelayRetentionMarginMs, &needed_ms) && retention_ms >= needed_ms;
}

// Rules for a parent's new retention, child by child; a child whose record is missing is skipped.
Answer check_parent_update(Transaction& rows, const Topic& stored, const Topic& updated) {
  bool has_remote_child = false;
  for (const std::string& name : stored.children) {
    std::optional<Topic> child = load(rows, name);
    if (!child) {
      continue;
    }
    if (!retention_fits_delay(updated.retention_ms, child->fanout_delay_ms)) {
      return refuse(Code::fanout_delay_too_long, "child " + name);
    }
    has_remote_child = has_remote_child || child->is_remote_stub();
  }
  bool is_short = updated.retention_ms != 0 && updated.retention_ms < kRemoteRetentionFloorMs;
  bool is_shrinking = stored.retention_ms == 0 || updated.retention_ms < stored.retention_ms;
  if (has_remote_child && is_short && is_shrinking) {
    return refuse(Code::remote_retention_floor, "topic " + stored.name);
  }
  return {};
}

}  // namespace

std::vector<std::string> decode_names(std::string_view bytes) {
  AlignedBytes aligned(bytes);
  const auto* list = verified_root<fb::NameList>(aligned);
  NARAD_CHECK(list != nullptr, "a topic_names row that is no list of names");
  std::vector<std::string> names;
  if (list->names() != nullptr) {
    for (const flatbuffers::String* name : *list->names()) {
      names.push_back(name->str());
    }
  }
  return names;
}

Answer create_topic(Transaction& rows, const Topic& topic, std::vector<Bump>& bumps) {
  if (rows.get(Bucket::topics, topic.name)) {
    return refuse(Code::already_exists, "topic " + topic.name);
  }
  store(rows, topic);
  add_name(rows, topic.name);
  moved(bumps, topic.name);
  return {};
}

Answer update_topic(Transaction& rows, const Topic& topic, std::vector<Bump>& bumps) {
  std::optional<Topic> stored = load(rows, topic.name);
  if (!stored) {
    return refuse(Code::not_found, "topic " + topic.name);
  }
  Topic updated = topic;
  updated.id = stored->id;
  updated.role = stored->role;
  updated.children = stored->children;
  updated.parent = stored->parent;
  updated.attach_epoch = stored->attach_epoch;
  updated.fanout_delay_ms = stored->fanout_delay_ms;
  updated.attach_offsets = stored->attach_offsets;
  updated.remote = stored->remote;
  if (stored->is_remote_stub() && updated != *stored) {
    return refuse(Code::remote_stub_immutable, "topic " + topic.name);
  }
  Answer refused = check_parent_update(rows, *stored, updated);
  if (!refused.ok()) {
    return refused;
  }
  store(rows, updated);
  moved(bumps, topic.name);
  return {};
}

Answer delete_topic(Transaction& rows, std::string_view name, std::vector<Bump>& bumps) {
  std::optional<Topic> stored = load(rows, name);
  if (!stored) {
    return refuse(Code::not_found, "topic " + std::string(name));
  }
  dissolve_children(rows, *stored, bumps);
  if (!stored->parent.empty()) {
    leave_parent(rows, *stored, bumps);
  }
  erase_topic(rows, stored->name, bumps);
  return {};
}

}  // namespace engine::metastore
