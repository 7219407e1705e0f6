// The restart decision: what a start does with the log, the snapshots and the state machine that it finds, each of which a crash, a
// backup or a lost disk may have left at a moment of its own.
//
// Pure: facts in, one decision out; decide_restart() reads nothing and changes nothing. Whoever calls it has read everything (and
// opened nothing for writing), and then does what the decision says, in this order: the log's reset, the state machine's install. Both
// may be ended by a crash; the next start finds facts that lead to the same end.
//
// These are the rows that take the state machine at its word. That its index may be untrusted (another program wrote the database), and
// what a joining node may set aside, are another part's rows.
// Source: spec "Restarts"; scenarios PT-03, PT-13, PT-16, SC-07.
#pragma once

#include <optional>
#include <string>

#include "raft/types.h"

namespace raft {

struct RestartFacts {
  // A record of term and vote exists.
  bool has_hard_state = false;
  // The log holds the entries after `log_base` up to `log_last`; base 0: from the first one on. Both 0: it is empty.
  Index log_base = 0;
  Index log_last = 0;

  // The newest complete snapshot, damaged ones left out.
  struct Snapshot {
    Index index = 0;
    Term term = 0;
  };
  std::optional<Snapshot> snapshot;
  // The index of the newest damaged snapshot; 0: none is damaged. It was complete once, so this server has acknowledged everything
  // up to there.
  Index damaged_snapshot = 0;
  // The log's term at the snapshot's index, where the log knows it (from its base to its end).
  std::optional<Term> log_term_at_snapshot;

  // The state machine's last entry; 0: it holds nothing.
  Index applied = 0;
  Term applied_term = 0;  // 0: it does not know
  // The log's term at that index, where the log knows it.
  std::optional<Term> log_term_at_applied;
};

struct RestartDecision {
  enum class Action {
    start,    // nothing is anywhere: a new server (which may bootstrap, unless a term is on record)
    keep,     // the state machine stays as it is; replay goes on after `applied`. The snapshot gives index and configuration only
    restore,  // the snapshot is installed over the state machine, then the log after it is replayed
    refuse,   // do not start, touch nothing; `reason` says why
  };
  Action action = Action::refuse;
  // The log ends below the snapshot or parts from it: it is reset to begin after the snapshot (keep, restore).
  bool resets_log = false;
  std::string reason;  // for people; of refuse
};

RestartDecision decide_restart(const RestartFacts& facts);

}  // namespace raft
