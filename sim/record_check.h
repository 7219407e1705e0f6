// What entries of members, users and topics must not leave behind, told from the entries and the rows around them, not from the handlers
// that made the rows:
//  - A dead mark that carries the heartbeat it saw is not taken over a newer one.
//  - A user who is deleted with its ownership leaves no topic that names it as owner: the next user of the name would inherit it.
//  - A topic that is gone has left no assignment and no schema under its name, and a topic made with its link begins without an
//    assignment: the next topic of the name would own what it never had.
#pragma once

#include <optional>
#include <string>

#include "engine/metastore/answer.h"
#include "engine/metastore/transaction.h"
#include "raft/types.h"

namespace sim {

// `rows`: before the entry was applied, and after; `answer`: the state machine's. What is wrong; nothing otherwise.
std::optional<std::string> judge_before(const engine::metastore::MemoryRows& rows, const raft::Entry& entry,
                                        const engine::metastore::Answer& answer);
std::optional<std::string> judge_after(const engine::metastore::MemoryRows& rows, const raft::Entry& entry,
                                       const engine::metastore::Answer& answer);

}  // namespace sim
