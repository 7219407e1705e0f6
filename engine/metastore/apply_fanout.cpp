#include "engine/metastore/apply_fanout.h"

#include <algorithm>

#include "engine/metastore/apply_schemas.h"
#include "engine/metastore/apply_topics.h"
#include "engine/metastore/json_value.h"
#include "engine/metastore/kept_rows.h"
#include "io/defence.h"

namespace engine::metastore {

namespace {

Answer check_roles(const AttachChild& link, const LinkPlan& plan) {
  if (link.parent == link.child) {
    return refuse(Code::fanout_role_conflict, "topic " + link.parent + " cannot be its own child");
  }
  if (!plan.parent) {
    return refuse(Code::not_found, "topic " + link.parent);
  }
  if (!plan.child) {
    return refuse(Code::not_found, "topic " + link.child);
  }
  if (plan.parent->role == Role::child) {
    return refuse(Code::fanout_role_conflict, "topic " + link.parent + " is a child");
  }
  if (plan.child->role == Role::parent) {
    return refuse(Code::fanout_role_conflict, "topic " + link.child + " is a parent");
  }
  if (plan.child->role == Role::child && plan.child->parent == link.parent) {
    return refuse(Code::already_exists, "topic " + link.child + " is a child of " + link.parent);
  }
  if (plan.child->role == Role::child) {
    return refuse(Code::fanout_role_conflict, "topic " + link.child + " is a child of " + plan.child->parent);
  }
  return {};
}

Answer check_bounds(const AttachChild& link, const Topic& parent) {
  if (parent.children.size() >= kChildrenMax) {
    return refuse(Code::fanout_child_limit, "topic " + parent.name);
  }
  if (link.delay_ms < 0) {
    return refuse(Code::fanout_role_conflict, "a delay below 0");
  }
  if (link.delay_ms > kAttachDelayMaxMs) {
    return refuse(Code::fanout_delay_too_long, "more than a year");
  }
  if (!retention_fits_delay(parent.retention_ms, link.delay_ms)) {
    return refuse(Code::fanout_delay_too_long, "topic " + parent.name);
  }
  return {};
}

Answer check_schemas(Transaction& rows, const AttachChild& link, AttachRules rules, LinkPlan& plan) {
  const SchemaHead parents = schema_head(rows, link.parent);
  const int64_t childs = plan.is_new ? (plan.new_schema.empty() ? 0 : 1) : schema_head(rows, link.child).versions;
  plan.adopts = childs == 0 && parents.versions > 0;
  if (plan.adopts) {
    if (rules == AttachRules::by_bytes) {
      return {};
    }
    Answer refused = check_topic_bytes(link.child, parents.bytes);
    return refused.ok() ? check_cluster_bytes(rows, parents.bytes, plan.freed) : refused;
  }
  if (childs != parents.versions) {
    return refuse(Code::fanout_schema_mismatch, "topic " + link.parent + " has " + std::to_string(parents.versions) +
                                                    " versions, topic " + link.child + " has " + std::to_string(childs));
  }
  for (int64_t version = 1; version <= childs; ++version) {
    const std::string parents_text = schema_at(rows, link.parent, version);
    const std::string childs_text = plan.is_new ? plan.new_schema : schema_at(rows, link.child, version);
    const bool is_same = parents_text == childs_text ||
                         (rules == AttachRules::by_value_within_budgets && is_same_json(parents_text, childs_text));
    if (!is_same) {
      return refuse(Code::fanout_schema_mismatch, "version " + std::to_string(version) + " of topic " + link.child);
    }
  }
  return {};
}

Topic linked_child(Topic child, const AttachChild& link) {
  child.role = Role::child;
  child.parent = link.parent;
  child.attach_epoch = link.epoch;
  child.fanout_delay_ms = link.delay_ms;
  child.attach_offsets = link.offsets;
  return child;
}

void add_to_parent(Transaction& rows, const Topic& parent, const std::string& child, Effects& effects) {
  Topic linked = parent;
  linked.role = Role::parent;
  linked.children.push_back(child);
  replace_topic(rows, parent, linked);
  effects.moved(Domain::topics, parent.name);
}

void adopt_schemas(Transaction& rows, const std::string& parent, const std::string& child) {
  const int64_t versions = schema_head(rows, parent).versions;
  for (int64_t version = 1; version <= versions; ++version) {
    add_schema(rows, child, version, schema_at(rows, parent, version));
  }
}

Answer attach(Transaction& rows, const AttachChild& link, AttachRules rules, LinkPlan& plan, Effects& effects) {
  if (Answer refused = check_attach(rows, link, rules, plan); !refused.ok()) {
    return refused;
  }
  add_to_parent(rows, *plan.parent, link.child, effects);
  replace_topic(rows, *plan.child, linked_child(*plan.child, link));
  effects.moved(Domain::topics, link.child);
  if (plan.adopts) {
    adopt_schemas(rows, link.parent, link.child);
    effects.moved(Domain::schemas, link.child);
  }
  return {};
}

Answer detach(Transaction& rows, const std::string& parent_name, const std::string& child_name, const Topic& parent,
              const Topic& child, Effects& effects) {
  if (child.role != Role::child || child.parent != parent_name || parent_name == child_name) {
    return refuse(Code::not_found, "topic " + child_name + " is no child of " + parent_name);
  }
  Topic left = parent;
  std::erase(left.children, child_name);
  if (left.children.empty()) {
    left.role = Role::standalone;
  }
  replace_topic(rows, parent, left);
  effects.moved(Domain::topics, parent_name);
  if (child.is_remote_stub()) {
    erase_topic(rows, child, effects);
    return {};
  }
  Topic freed = child;
  make_standalone(freed);
  replace_topic(rows, child, freed);
  effects.moved(Domain::topics, child_name);
  return {};
}

// Both incarnations, parent first.
Answer check_ids(const std::string& parent_name, const std::optional<Topic>& parent, const std::string& parent_id,
                 const std::string& child_name, const std::optional<Topic>& child, const std::string& child_id) {
  if (!parent) {
    return refuse(Code::not_found, "topic " + parent_name);
  }
  if (parent->id != parent_id) {
    return refuse(Code::topic_changed, "topic " + parent_name);
  }
  if (!child) {
    return refuse(Code::not_found, "topic " + child_name);
  }
  if (child->id != child_id) {
    return refuse(Code::topic_changed, "topic " + child_name);
  }
  return {};
}

}  // namespace

Answer check_attach(Transaction& rows, const AttachChild& link, AttachRules rules, LinkPlan& plan) {
  if (Answer refused = check_roles(link, plan); !refused.ok()) {
    return refused;
  }
  if (Answer refused = check_bounds(link, *plan.parent); !refused.ok()) {
    return refused;
  }
  return check_schemas(rows, link, rules, plan);
}

void create_linked(Transaction& rows, const CreateTopicLinked& entry, const LinkPlan& plan, Effects& effects) {
  const std::string& name = entry.topic.name;
  const bool clears_name = io::defence(io::Defence::rows_survive_topic);
  const bool dropped_assignments = clears_name && drop_assignments(rows, name);
  const bool dropped_schemas = clears_name && drop_schemas(rows, name);
  Topic record = entry.topic;
  if (plan.parent) {
    const ParentLink& link = *entry.link;
    add_to_parent(rows, *plan.parent, name, effects);
    record = linked_child(std::move(record), {link.parent, name, link.epoch, link.delay_ms, link.offsets});
  }
  add_topic(rows, record);
  effects.moved(Domain::topics, name);
  if (!entry.schema.empty()) {
    add_schema(rows, name, 1, entry.schema);
  } else if (plan.adopts) {
    adopt_schemas(rows, plan.parent->name, name);
  }
  if (dropped_assignments) {
    effects.moved(Domain::assignments, name);
  }
  if (dropped_schemas || plan.adopts || !entry.schema.empty()) {
    effects.moved(Domain::schemas, name);
  }
}

Answer apply_entry(Transaction& rows, const AttachChild& entry, Effects& effects) {
  LinkPlan plan;
  plan.parent = load_topic(rows, entry.parent);
  plan.child = load_topic(rows, entry.child);
  return attach(rows, entry, AttachRules::by_bytes, plan, effects);
}

Answer apply_entry(Transaction& rows, const DetachChild& entry, Effects& effects) {
  const std::optional<Topic> parent = load_topic(rows, entry.parent);
  const std::optional<Topic> child = load_topic(rows, entry.child);
  if (!parent || !child) {
    return refuse(Code::not_found, "topic " + (parent ? entry.child : entry.parent));
  }
  return detach(rows, entry.parent, entry.child, *parent, *child, effects);
}

Answer apply_entry(Transaction& rows, const AttachChildIf& entry, Effects& effects) {
  LinkPlan plan;
  plan.parent = load_topic(rows, entry.link.parent);
  plan.child = load_topic(rows, entry.link.child);
  if (Answer refused = check_ids(entry.link.parent, plan.parent, entry.parent_id, entry.link.child, plan.child, entry.child_id);
      !refused.ok()) {
    return refused;
  }
  return attach(rows, entry.link, AttachRules::by_value_within_budgets, plan, effects);
}

Answer apply_entry(Transaction& rows, const DetachChildIf& entry, Effects& effects) {
  const std::optional<Topic> parent = load_topic(rows, entry.parent);
  const std::optional<Topic> child = load_topic(rows, entry.child);
  if (Answer refused = check_ids(entry.parent, parent, entry.parent_id, entry.child, child, entry.child_id); !refused.ok()) {
    return refused;
  }
  return detach(rows, entry.parent, entry.child, *parent, *child, effects);
}

}  // namespace engine::metastore
