// What the log may say about assignments, judged entry by entry as it is applied first, and what must be true of them once the faults have
// ended.
//
// The state before an entry is that of the log's entries up to there (log_book.h); the rules are written here anew:
//  - an entry that gives a partition its first owner (type 29) is accepted only where there was none, of the incarnation that stands, and
//    within its range; the older one (type 5) from a node never puts an owner in another's place;
//  - a move completes only for the owner and destination that the row has;
//  - a partition of a dead owner is given no destination;
//  - what is pruned belongs to no partition.
// Topics of the load's own commands (command_draws.h) may be assigned and moved by it at will: for those only what the state machine
// itself promises is held.
#pragma once

#include <optional>
#include <string>

#include "engine/metastore/answer.h"
#include "engine/metastore/transaction.h"
#include "raft/core.h"
#include "raft/types.h"

namespace sim {

// What is wrong with this entry having been answered so; nothing when it is as it should be. `before`: the rows before it.
std::optional<std::string> judge_assignment(const engine::metastore::MemoryRows& before, const raft::Entry& entry,
                                            const engine::metastore::Answer& answer);

// What the controller still owes; nothing when it has done all it can. `rows`: as they are now.
// A member is alive and takes partitions, and a partition has no owner.
std::optional<std::string> unplaced_partition(const engine::metastore::MemoryRows& rows);
// A row belongs to no partition although every server and member applies the entry that prunes it. `configuration`: the newest.
std::optional<std::string> orphan_row(const engine::metastore::MemoryRows& rows, const raft::Configuration& configuration);

}  // namespace sim
