// The handlers of the topic entry types. See apply.h for what a handler may do.
#pragma once

#include <string_view>
#include <vector>

#include "engine/metastore/answer.h"
#include "engine/metastore/domain_versions.h"
#include "engine/metastore/topic.h"
#include "engine/metastore/transaction.h"

namespace engine::metastore {

// A delayed child's record must still find what it delays: its parent keeps messages for the delay and this much more.
inline constexpr int64_t kDelayRetentionMarginMs = 3'600'000;
// A parent with a remote child keeps messages at least this long.
inline constexpr int64_t kRemoteRetentionFloorMs = 86'400'000;

// Type 1. Refused when the name exists. Puts the record as given; letter case is the proposer's business.
Answer create_topic(Transaction& rows, const Topic& topic, std::vector<Bump>& bumps);

// Type 2. Refused when there is no such topic, and by the rules for configuration updates: a remote child's stub does not
// change; a parent's retention must still fit each child's delay; with a remote child it does not shrink below a day.
// Overwrites, but the stored identity, role and links stay.
Answer update_topic(Transaction& rows, const Topic& topic, std::vector<Bump>& bumps);

// Type 3. Refused when there is no such topic. Deletes the record and dissolves its links: a parent's local children become
// standalone and its remote stubs go too; a child leaves its parent's list. A partner that is missing is skipped.
Answer delete_topic(Transaction& rows, std::string_view name, std::vector<Bump>& bumps);

// The names in a topic_names row; empty when there is no row.
std::vector<std::string> decode_names(std::string_view bytes);

}  // namespace engine::metastore
