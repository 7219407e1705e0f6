// Applying entries: from a command's bytes to changed rows and an answer, with no effect of its own.
//
// A handler sees a Transaction and its payload, nothing else: no clock, no randomness, no node. So every node reaches the same
// rows and gives the same answer, and the same code serves the database, the model tests and replay. Checks stand in the order
// that narad/entry-types.md gives them; nothing is written before the last of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/metastore/answer.h"
#include "engine/metastore/domain_versions.h"
#include "engine/metastore/transaction.h"
#include "raft/types.h"

namespace engine::metastore {

// ---- One command -----------------------------------------------------------------------------------------------------------

// Rows gather what many entries bring: names of children, of owners' neighbours, ranges. One that would come to more than this, key and
// value, is refused as an invalid argument, and nothing of its entry is kept: so every row can be read again by what reads payloads
// (envelope.h), and be written, kept and sent whole. Schemas, which nothing is added to, have their own bounds. A departure from the
// original, which sets none; what it allows by number (108 partitions with 4,000 skipped offsets each) has room.
inline constexpr size_t kRowBytesMax = 4u << 20;

struct CommandResult {
  bool is_unknown = false;  // a newer release meant something by it: stop; nothing else is set but type
  uint32_t type = 0;        // entry type; 0 when undecodable
  Answer answer;
  std::vector<Bump> bumps;  // of an accepted entry
  bool keeps_rows = false;  // an accepted entry; also a refused one whose seal counts (apply_remotes.h)
};

// Runs the handler of the command in `bytes`, as a release would whose newest entry type is `newest_type`. What the handler wrote
// stays in the transaction's current entry.
CommandResult apply_command(Transaction& rows, std::string_view bytes, uint32_t newest_type);

// ---- A run of entries ------------------------------------------------------------------------------------------------------

// How far a state machine is. Stored in the same write as the effects (fsm_meta.h).
struct FsmState {
  raft::Index applied_index = 0;  // of the last command applied or refused
  raft::Term applied_term = 0;
  uint32_t newest_type = 0;  // newest entry type ever applied
  uint64_t digest = 0;       // sum of the hashes of all rows

  friend bool operator==(const FsmState&, const FsmState&) = default;
};

struct Undecodable {
  raft::Index index = 0;
  std::string error;
};

struct UnknownEntry {
  raft::Index index = 0;
  uint32_t type = 0;
};

// What a run of entries comes to, over the rows of a source.
struct Evaluation {
  Evaluation(RowSource& source, FsmState start, RowCache* cache) : rows(source, start.digest, cache), state(start) {}

  WriteSet rows;
  FsmState state;                        // after the run
  std::vector<std::string> answers;      // one an entry, up to the unknown one
  std::vector<std::vector<Bump>> bumps;  // one list an accepted entry
  std::vector<Undecodable> undecodable;
  std::optional<UnknownEntry> unknown;  // the run ends before it
  uint32_t last_type = 0;               // entry type of the last command; 0: none, or undecodable
};

// Evaluates `entries` (any type, in order) from `start` on. Entries that `start` already holds, and entries that carry no
// command, get an empty answer and move nothing. `skips_unknown`: releases before 3.1.0 pass over an entry type that they do not know,
// with an empty answer, and count it as applied. `cache`: as WriteSet's.
Evaluation evaluate(RowSource& source, const FsmState& start, const std::vector<raft::Entry>& entries, uint32_t newest_type,
                    bool skips_unknown = false, RowCache* cache = nullptr);

}  // namespace engine::metastore
