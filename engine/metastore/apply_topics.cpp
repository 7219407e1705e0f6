#include "engine/metastore/apply_topics.h"

#include <algorithm>

#include "engine/metastore/apply_fanout.h"
#include "engine/metastore/apply_schemas.h"
#include "engine/metastore/kept_rows.h"

namespace engine::metastore {

namespace {

void dissolve_children(Transaction& rows, const Topic& parent, Effects& effects) {
  for (const std::string& name : parent.children) {
    std::optional<Topic> child = load_topic(rows, name);
    if (!child || child->parent != parent.name || name == parent.name) {
      continue;
    }
    if (child->is_remote_stub()) {
      erase_topic(rows, *child, effects);
      continue;
    }
    const Topic before = *child;
    make_standalone(*child);
    replace_topic(rows, before, *child);
    effects.moved(Domain::topics, name);
  }
}

void leave_parent(Transaction& rows, const Topic& child, Effects& effects) {
  std::optional<Topic> parent = load_topic(rows, child.parent);
  if (!parent || parent->name == child.name) {
    return;
  }
  const Topic before = *parent;
  if (std::erase(parent->children, child.name) == 0) {
    return;
  }
  if (parent->children.empty()) {
    parent->role = Role::standalone;
  }
  replace_topic(rows, before, *parent);
  effects.moved(Domain::topics, parent->name);
}

// Rules for a parent's new retention, child by child; a child whose record is missing is skipped.
Answer check_parent_update(Transaction& rows, const Topic& stored, const Topic& updated) {
  bool has_remote_child = false;
  for (const std::string& name : stored.children) {
    std::optional<Topic> child = load_topic(rows, name);
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

Answer update(Transaction& rows, const Topic& stored, Topic updated, Effects& effects) {
  updated.id = stored.id;
  updated.role = stored.role;
  updated.children = stored.children;
  updated.parent = stored.parent;
  updated.attach_epoch = stored.attach_epoch;
  updated.fanout_delay_ms = stored.fanout_delay_ms;
  updated.attach_offsets = stored.attach_offsets;
  updated.remote = stored.remote;
  if (stored.is_remote_stub() && updated != stored) {
    return refuse(Code::remote_stub_immutable, "topic " + stored.name);
  }
  if (Answer refused = check_parent_update(rows, stored, updated); !refused.ok()) {
    return refused;
  }
  replace_topic(rows, stored, updated);
  effects.moved(Domain::topics, stored.name);
  return {};
}

void remove(Transaction& rows, const Topic& stored, Effects& effects) {
  dissolve_children(rows, stored, effects);
  if (!stored.parent.empty()) {
    leave_parent(rows, stored, effects);
  }
  erase_topic(rows, stored, effects);
}

}  // namespace

bool retention_fits_delay(int64_t retention_ms, int64_t delay_ms) {
  int64_t needed_ms = 0;
  if (delay_ms <= 0 || retention_ms == 0) {
    return true;
  }
  return !__builtin_add_overflow(delay_ms, kDelayRetentionMarginMs, &needed_ms) && retention_ms >= needed_ms;
}

void erase_topic(Transaction& rows, const Topic& topic, Effects& effects) {
  drop_topic(rows, topic);
  effects.retired(Domain::topics, topic.name);
  effects.retired(Domain::assignments, topic.name);
  effects.retired(Domain::schemas, topic.name);
}

void make_standalone(Topic& topic) {
  topic.role = Role::standalone;
  topic.parent.clear();
  topic.attach_epoch.clear();
  topic.fanout_delay_ms = 0;
  topic.attach_offsets.clear();
}

Answer apply_entry(Transaction& rows, const CreateTopic& entry, Effects& effects) {
  if (rows.get(Bucket::topics, entry.topic.name)) {
    return refuse(Code::already_exists, "topic " + entry.topic.name);
  }
  add_topic(rows, entry.topic);
  effects.moved(Domain::topics, entry.topic.name);
  return {};
}

Answer apply_entry(Transaction& rows, const UpdateTopic& entry, Effects& effects) {
  std::optional<Topic> stored = load_topic(rows, entry.topic.name);
  if (!stored) {
    return refuse(Code::not_found, "topic " + entry.topic.name);
  }
  return update(rows, *stored, entry.topic, effects);
}

Answer apply_entry(Transaction& rows, const DeleteTopic& entry, Effects& effects) {
  std::optional<Topic> stored = load_topic(rows, entry.name);
  if (!stored) {
    return refuse(Code::not_found, "topic " + entry.name);
  }
  remove(rows, *stored, effects);
  return {};
}

Answer apply_entry(Transaction& rows, const CreateTopicLinked& entry, Effects& effects) {
  const std::string& name = entry.topic.name;
  if (name.empty()) {
    return refuse(Code::invalid_argument, "a topic without a name");
  }
  if (rows.get(Bucket::topics, name)) {
    return refuse(Code::already_exists, "topic " + name);
  }
  if (std::vector<std::string> alike = names_like(rows, name); !alike.empty()) {
    return refuse(Code::topic_already_exists, alike.front());
  }
  // What is left under the name makes room before the new schema takes it.
  const uint64_t freed = schema_head(rows, name).bytes;
  if (!entry.schema.empty()) {
    if (Answer refused = check_topic_bytes(name, entry.schema.size()); !refused.ok()) {
      return refused;
    }
    if (Answer refused = check_cluster_bytes(rows, entry.schema.size(), freed); !refused.ok()) {
      return refused;
    }
  }
  if (!entry.link) {
    const LinkPlan none;
    create_linked(rows, entry, none, effects);
    return {};
  }
  const ParentLink& link = *entry.link;
  std::optional<Topic> parent = load_topic(rows, link.parent);
  if (!parent) {
    return refuse(Code::not_found, "topic " + link.parent);
  }
  if (parent->id != link.parent_id) {
    return refuse(Code::topic_changed, "topic " + link.parent);
  }
  LinkPlan plan;
  plan.parent = std::move(parent);
  plan.child = entry.topic;
  plan.new_schema = entry.schema;
  plan.is_new = true;
  plan.freed = freed;
  const AttachChild attach{link.parent, name, link.epoch, link.delay_ms, link.offsets};
  if (Answer refused = check_attach(rows, attach, AttachRules::by_value_within_budgets, plan); !refused.ok()) {
    return refused;
  }
  create_linked(rows, entry, plan, effects);
  return {};
}

Answer apply_entry(Transaction& rows, const UpdateTopicIf& entry, Effects& effects) {
  std::optional<Topic> stored = load_topic(rows, entry.topic.name);
  if (!stored) {
    return refuse(Code::not_found, "topic " + entry.topic.name);
  }
  if (stored->id != entry.expected_id || entry.topic.partitions < stored->partitions) {
    return refuse(Code::topic_changed, "topic " + entry.topic.name);
  }
  Topic updated = entry.topic;
  updated.owner = stored->owner;
  updated.created_at = stored->created_at;
  updated.visibility_timeout_ms = stored->visibility_timeout_ms;
  return update(rows, *stored, std::move(updated), effects);
}

Answer apply_entry(Transaction& rows, const DeleteTopicIf& entry, Effects& effects) {
  std::optional<Topic> stored = load_topic(rows, entry.name);
  if (!stored) {
    return refuse(Code::not_found, "topic " + entry.name);
  }
  if (stored->id != entry.expected_id) {
    return refuse(Code::topic_changed, "topic " + entry.name);
  }
  remove(rows, *stored, effects);
  return {};
}

}  // namespace engine::metastore
