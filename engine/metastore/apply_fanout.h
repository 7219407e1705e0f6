// The handlers of fan-out links inside the cluster: entry types 13, 14, 27 and 28, and the rules of attaching that type 23 shares.
// Source: narad/entry-types.md section 6.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/metastore/answer.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/effects.h"
#include "engine/metastore/transaction.h"

namespace engine::metastore {

inline constexpr size_t kChildrenMax = 108;
inline constexpr int64_t kAttachDelayMaxMs = 31'536'000'000;  // a year

// Type 13. Refused by the rules of attaching, in check_attach's order; schemas are compared byte by byte and no budget applies.
Answer apply_entry(Transaction& rows, const AttachChild& entry, Effects& effects);

// Type 14. Refused when either is missing, or not linked to the other. The child becomes standalone; a remote stub goes, with its
// rows. A parent without children becomes standalone.
Answer apply_entry(Transaction& rows, const DetachChild& entry, Effects& effects);

// Type 27. As 13 for the two incarnations expected; schemas are compared as JSON values, and what is adopted counts.
Answer apply_entry(Transaction& rows, const AttachChildIf& entry, Effects& effects);

// Type 28. As 14 for the two incarnations expected.
Answer apply_entry(Transaction& rows, const DetachChildIf& entry, Effects& effects);

enum class AttachRules { by_bytes, by_value_within_budgets };

// A link that is being judged, and what comes of it.
struct LinkPlan {
  std::optional<Topic> parent;  // as stored; nullopt: none
  std::optional<Topic> child;
  // A child that is being created (type 23) has the one schema of its entry, or none, and frees what is left under its name.
  bool is_new = false;
  std::string new_schema;
  uint64_t freed = 0;  // bytes of schemas

  bool adopts = false;  // set by check_attach: the child takes over the parent's schemas
};

// Refused, in this order: a topic and itself; a parent or child that is missing; a parent that is a child; a child that is a
// parent; a child of this parent already; a child of another; a parent with kChildrenMax children; a delay below 0 or over a year;
// a parent's retention that cannot hold the delay; and the schemas: a child without any adopts the parent's, else both have the
// same versions.
Answer check_attach(Transaction& rows, const AttachChild& link, AttachRules rules, LinkPlan& plan);

// Carries out type 23 once everything is checked; a plan without a parent is a topic without a link.
void create_linked(Transaction& rows, const CreateTopicLinked& entry, const LinkPlan& plan, Effects& effects);

}  // namespace engine::metastore
