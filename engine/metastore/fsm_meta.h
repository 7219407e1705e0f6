// fsm.db's own row, "fsm_meta/state": how far the database is, and by what a start tells whether it may believe that.
//
// The row stands in the same write batch as the effects of the entries that it counts, so index and effects are there together or not
// at all. It is trusted when nobody but us has changed the database since it was written. Two marks tell:
//
//  - `generation` is RocksDB's sequence number after the batch that wrote the row. Every put, delete, merge or range delete takes at
//    least one number, so any write that came after it (another program's, a tool's, a table ingested over rows that are there) makes the
//    two differ. A crash that loses a tail of RocksDB's log loses both alike.
//  - `manifest` is the number of the MANIFEST of the life that wrote the row. Whoever opens a database for writing begins a MANIFEST of
//    its own, under a number never used before, and CURRENT names it; so an unchanged CURRENT says that nobody else has opened the
//    database. Where it has changed, perhaps by a life of ours that ended before it wrote the row anew, the content itself is
//    asked: every row is read, and the sum of their hashes must be `state.digest`. That notices what leaves the sequence number alone:
//    tables ingested beside the rows that are there, tables dropped or edited away. It costs a scan, and is rare: a life writes
//    the row anew right after it has opened the database.
//
// Both hold across flushes, compactions, reopening, and crashes at any operation.
//
// Limits. Rows exchanged for others whose hashes add up to the same sum pass (chance 2^-64, not proof against intent). A write that puts
// back the same value is noticed: it takes a sequence number. A file overwritten in place without opening the database is found
// by RocksDB's checksums when it is read, not here. A whole directory restored from a backup is in order by itself and stays
// trusted; that it does not go with the log beside it is for raft/restart.h to see. A row that an older release wrote, without marks, is
// not trusted.
//
// Source: spec "Restarts"; design/feasibility.md section 4. The row is local to a node: it is in no image, and may gain fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/metastore/apply.h"
#include "raft/types.h"

namespace engine::metastore {

struct FsmMeta {
  FsmState state;
  uint64_t generation = 0;  // 0: written without marks
  uint64_t manifest = 0;
  // Of the data directory, and of its cluster (zero: not known yet), as raft names them.
  raft::StoreId store;
  raft::ClusterId cluster;

  friend bool operator==(const FsmMeta&, const FsmMeta&) = default;
};

std::string encode_meta(const FsmMeta& meta);
std::optional<FsmMeta> decode_meta(std::string_view bytes);
// "fsm_meta/state".
std::string meta_row_key();

// What is in a database, looked at without changing a byte.
struct FsmHeld {
  bool holds_anything = false;  // a row, or an index
  bool is_trusted = false;      // it has an index, and that is the index of its content
  std::string distrust;         // why not, for people; empty where there is no index to be trusted
  FsmMeta meta;                 // zero where there is none
};

}  // namespace engine::metastore
