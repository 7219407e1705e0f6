// The handlers of the topic entry types: 1 to 3, 23 to 25. See apply.h for what a handler may do.
#pragma once

#include <string_view>

#include "engine/metastore/answer.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/effects.h"
#include "engine/metastore/transaction.h"

namespace engine::metastore {

// A delayed child's record must still find what it delays: its parent keeps messages for the delay and this much more.
inline constexpr int64_t kDelayRetentionMarginMs = 3'600'000;
// A parent with a remote child keeps messages at least this long.
inline constexpr int64_t kRemoteRetentionFloorMs = 86'400'000;

// Type 1. Refused when the name exists. Puts the record as given; letter case is the proposer's business.
Answer apply_entry(Transaction& rows, const CreateTopic& entry, Effects& effects);

// Type 2. Refused when there is no such topic, and by the rules for configuration updates: a remote child's stub does not
// change; a parent's retention must still fit each child's delay; with a remote child it does not shrink below a day.
// Overwrites, but the stored identity, role and links stay.
Answer apply_entry(Transaction& rows, const UpdateTopic& entry, Effects& effects);

// Type 3. Refused when there is no such topic. Deletes the record with its schemas and assignments and dissolves its links: a
// parent's local children become standalone and its remote stubs go too; a child leaves its parent's list. A partner that is
// missing is skipped.
Answer apply_entry(Transaction& rows, const DeleteTopic& entry, Effects& effects);

// Type 23. The record, its first schema and its link to a parent, all or nothing. Refused, in this order: an empty name; a name
// that exists; one that differs from another in letter case only; a schema over the budgets; a parent that is missing or not the
// incarnation expected; and by the rules of attaching (apply_fanout.h), by value and within the budgets. Drops what an earlier
// topic has left under the name.
Answer apply_entry(Transaction& rows, const CreateTopicLinked& entry, Effects& effects);

// Type 24. As 2, for the incarnation expected only; never fewer partitions; owner, creation time and visibility timeout stay.
Answer apply_entry(Transaction& rows, const UpdateTopicIf& entry, Effects& effects);

// Type 25. As 3, for the incarnation expected only.
Answer apply_entry(Transaction& rows, const DeleteTopicIf& entry, Effects& effects);

// True when messages kept for `retention_ms` (0: for ever) still hold what a child delays by `delay_ms`.
bool retention_fits_delay(int64_t retention_ms, int64_t delay_ms);

// A record, its rows and the versions that go with it: what the handlers of links share.
void erase_topic(Transaction& rows, const Topic& topic, Effects& effects);
// Without role and link; what is its own stays.
void make_standalone(Topic& topic);

}  // namespace engine::metastore
