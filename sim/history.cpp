#include "sim/history.h"

namespace sim {

std::string to_text(const Topic& topic) {
  return topic.name + "{id " + topic.id + ", partitions " + std::to_string(topic.partitions) + ", retention_ms " +
         std::to_string(topic.retention_ms) + ", max_in_flight " + std::to_string(topic.max_in_flight_per_partition) +
         (topic.parent.empty() ? "" : ", child of " + topic.parent) +
         (topic.children.empty() ? "" : ", children " + std::to_string(topic.children.size())) + "}";
}

bool same_record(const Topic& one, const Topic& other) {
  Topic alone = other;
  alone.parent = one.parent;
  alone.fanout_delay_ms = one.fanout_delay_ms;
  alone.children = one.children;
  return one == alone;
}

const char* to_string(CallKind kind) {
  switch (kind) {
    case CallKind::create: return "create";
    case CallKind::patch: return "patch";
    case CallKind::remove: return "delete";
    case CallKind::read: return "read";
    case CallKind::list: return "list";
    case CallKind::attach: return "attach";
    case CallKind::detach: return "detach";
    case CallKind::children: return "children of";
    case CallKind::put_schema: return "put schema of";
    case CallKind::schemas: return "schemas of";
  }
  return "";
}

const char* to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::pending: return "pending";
    case Outcome::ok: return "ok";
    case Outcome::refused: return "refused";
    case Outcome::unknown: return "unknown";
    case Outcome::nothing: return "nothing";
  }
  return "";
}

std::string to_text(const Call& call) {
  std::string text = "call " + std::to_string(call.id) + " (client " + std::to_string(call.client) + " on node " +
                     std::to_string(call.node) + ", " + to_string(call.kind);
  if (!call.name.empty()) {
    text += " " + call.name;
  }
  if (!call.child.empty()) {
    text += " with " + call.child;
  }
  if (!call.parent.empty()) {
    text += " below " + call.parent;
  }
  if (call.status != 0) {
    text += ", answered " + std::to_string(call.status);
  }
  return text + ")";
}

}  // namespace sim
