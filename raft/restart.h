// The restart decision: what a start does with the log, the snapshots and the state machine that it finds, each of which a crash, a
// backup, a lost disk, another program or another release may have left at a moment of its own.
//
// One home: every start goes through decide_restart(), and nothing else decides. It reads nothing and changes nothing: facts in, one
// outcome out, which names the row of the table that it comes from. The table is read from the top, the first row that matches counts.
//
//    state machine            raft state                      joining server              other server
//  1 newer_release: the newest entry type in it, or in the snapshot, is above this build's: refuse
//  2 no_term_record: entries or a snapshot, but no record of term and vote: refuse (a missing raft/stable: by StableStore::open, before)
//  3 empty: nothing, and no raft state: start (an other server may bootstrap, unless a term is on record)
//  4 no_raft_state: anything, and no raft state               set aside                   refuse
//  5 foreign: another store's or cluster's, or a trusted      reset                       refuse
//    index with a term that raft's state does not give it
//  6 ahead: trusted, past the end                             restore, set aside, reset   refuse
//  7 held: trusted, at or past the snapshot, up to the end, no gap before the log: keep; the snapshot gives raft its index and its
//    configuration only, and replay skips what is held
//  8 behind: any other, and a snapshot that meets the log: restore it, then replay the tail
//  9 replayed: nothing, no snapshot, the log begins at 1: keep; replay
// 10 rebuilt: no index to be trusted, no snapshot, the log begins at 1: set aside, then replay
// 11 replayed_onto: no index to be trusted, no snapshot and none damaged, the log begins later: keep the rows as what lies below the log,
//    and replay onto them
// 12 hole: anything else; before row 3 also a damaged         reset                       refuse
//    snapshot past the end: what it held was acknowledged
//
// No raft state: no entry and no snapshot. The end: the larger of the log's last index and the newest intact snapshot's; damaged
// snapshots are left out first. A snapshot meets the log when the log reaches back to it, or ends below it or parts from it: the log then
// goes (it holds nothing that is committed beside what the snapshot holds), and begins anew behind the snapshot.
//
// A reset keeps term, vote and store id and nothing else. There, and in row 6, a joining server has forgotten entries that it had
// acknowledged: it gives no vote until a leader has brought it up to its commit index (Core: is_rebuilding). Only a joining server
// does that by itself: an other server's copy may be the only one.
//
// What no outcome does: leave a hole between state machine and log, or give up an entry that may be committed without a leader to bring it
// back. A refusal changes nothing on the disk.
//
// A crash in the middle of what an outcome does leaves facts that lead to the same end: see RaftServer::carry_out.
// Source: spec "Restarts"; lifecycle facts section 10; scenarios PT-03, PT-13, PT-16, SC-07, RS.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "raft/state_machine.h"
#include "raft/types.h"

namespace raft {

enum class RestartRow : std::uint8_t {
  newer_release = 1,
  no_term_record,
  empty,
  no_raft_state,
  foreign,
  ahead,
  held,
  behind,
  replayed,
  rebuilt,
  replayed_onto,
  hole,
};

// "newer_release".
const char* to_string(RestartRow row);

struct RestartFacts {
  StateMachineFacts state_machine;
  StateMachineBuild build;

  // A term above 0 is on record.
  bool has_term_record = false;
  StoreId store;      // of the record of term and vote; zero: there is none
  ClusterId cluster;  // as that record knows it
  // The log holds the entries after `log_base` up to `log_last`; base 0: from the first one on. Both 0: it is empty.
  Index log_base = 0;
  Index log_last = 0;

  // The newest intact snapshot.
  struct Snapshot {
    Index index = 0;
    Term term = 0;
    std::uint32_t newest_type = 0;  // in it
  };
  std::optional<Snapshot> snapshot;
  // The index of the newest damaged snapshot; 0: none is damaged. It was complete once, so this server has acknowledged everything
  // up to there.
  Index damaged_snapshot = 0;
  // The log's term at the snapshot's index, and at the state machine's, where the log knows it (from its base to its end).
  std::optional<Term> log_term_at_snapshot;
  std::optional<Term> log_term_at_index;

  // This server never bootstraps a cluster: one that exists has its entries.
  bool is_joining = false;
};

struct RestartDecision {
  enum class Action : std::uint8_t {
    start,      // a new server
    keep,       // replay goes on after the state machine's index
    rebase,     // the state machine's rows count as what lies up to the log's base; replay goes on from there
    restore,    // the snapshot is installed over the state machine, then the log after it is replayed
    set_aside,  // the state machine begins anew, with the log from its first entry, or without any
    reset,      // the same, and log and snapshots are dropped
    refuse,     // do not start, touch nothing; `reason` says why
  };
  RestartRow row = RestartRow::hole;
  Action action = Action::refuse;
  // The log ends below the snapshot or parts from it: it is reset to begin behind the snapshot (keep, restore).
  bool resets_log = false;
  // For people. refuse: what is wrong and what to do, one line. set_aside, reset: why.
  std::string reason;
};

RestartDecision decide_restart(const RestartFacts& facts);

}  // namespace raft
