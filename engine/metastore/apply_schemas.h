// The handlers of schema versions: entry types 4 and 26. Versions are dense: 1, 2, ... A parent's local children hold copies.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/metastore/answer.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/effects.h"
#include "engine/metastore/transaction.h"

namespace engine::metastore {

inline constexpr int64_t kSchemaVersionsMax = 1000;             // of a topic
inline constexpr uint64_t kTopicSchemaBytesMax = 4u << 20;      // of a topic, all versions
inline constexpr uint64_t kClusterSchemaBytesMax = 256u << 20;  // each child's copy counted

// Type 4. Refused, in this order: a topic that is missing, that is a child, a version that exists, one that leaves a gap, more than
// kSchemaVersionsMax; then the same of the versions of each local child. No budget of bytes. Puts the version and each local
// child's copy; remote stubs are left out, and a child whose record is missing is written all the same.
Answer apply_entry(Transaction& rows, const PutSchema& entry, Effects& effects);

// Type 26. As 4 for the incarnation expected, and within the budgets of bytes, each child's copy counted to the child.
Answer apply_entry(Transaction& rows, const PutSchemaIf& entry, Effects& effects);

// The budgets: what a topic's versions would come to, and what all of them would with `added` bytes more and `freed` fewer.
Answer check_topic_bytes(std::string_view topic, uint64_t bytes);
Answer check_cluster_bytes(Transaction& rows, uint64_t added, uint64_t freed);

}  // namespace engine::metastore
