#include "raft/restart.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using namespace raft;
using Action = RestartDecision::Action;

RestartFacts facts(Index base, Index last, std::optional<RestartFacts::Snapshot> snapshot, Index applied) {
  RestartFacts made;
  made.has_hard_state = true;
  made.log_base = base;
  made.log_last = last;
  made.snapshot = snapshot;
  made.applied = applied;
  return made;
}

struct Row {
  const char* what;
  RestartFacts facts;
  Action action;
  bool resets_log;
};

using Snapshot = RestartFacts::Snapshot;

TEST(Restart, TheTable) {
  const std::vector<Row> rows = {
      {"nothing at all", facts(0, 0, {}, 0), Action::start, false},
      {"state machine, no raft state", facts(0, 0, {}, 7), Action::refuse, false},
      {"log only, replay from the first", facts(0, 9, {}, 0), Action::keep, false},
      {"log only, part of it held", facts(0, 9, {}, 5), Action::keep, false},
      {"log only, all of it held", facts(0, 9, {}, 9), Action::keep, false},
      {"ahead of the log", facts(0, 9, {}, 10), Action::refuse, false},
      {"snapshot held, log from the first", facts(0, 90, Snapshot{50, 2}, 60), Action::keep, false},
      {"snapshot held exactly", facts(50, 90, Snapshot{50, 2}, 50), Action::keep, false},
      {"log reaches back to an older one", facts(30, 90, Snapshot{50, 2}, 55), Action::keep, false},
      {"behind the snapshot, log meets it", facts(50, 90, Snapshot{50, 2}, 40), Action::restore, false},
      {"behind the snapshot, log would do", facts(0, 90, Snapshot{50, 2}, 40), Action::restore, false},
      {"a wiped state machine", facts(30, 90, Snapshot{50, 2}, 0), Action::restore, false},
      {"published, log not yet reset", facts(0, 20, Snapshot{50, 2}, 20), Action::restore, true},
      {"published, log empty", facts(0, 0, Snapshot{50, 2}, 0), Action::restore, true},
      {"log reset, not yet switched", facts(50, 50, Snapshot{50, 2}, 20), Action::restore, false},
      {"switched", facts(50, 50, Snapshot{50, 2}, 50), Action::keep, false},
      {"switched before the reset lasted", facts(0, 20, Snapshot{50, 2}, 50), Action::keep, true},
      {"ahead of log and snapshot", facts(50, 50, Snapshot{50, 2}, 51), Action::refuse, false},
      {"ahead, snapshot newer than log", facts(0, 20, Snapshot{50, 2}, 51), Action::refuse, false},
      {"hole, no snapshot", facts(30, 90, {}, 10), Action::refuse, false},
      {"hole, old snapshot", facts(30, 90, Snapshot{20, 2}, 10), Action::refuse, false},
      {"hole, state machine past it", facts(30, 90, Snapshot{20, 2}, 40), Action::refuse, false},
  };
  for (const Row& row : rows) {
    const RestartDecision decision = decide_restart(row.facts);
    EXPECT_EQ(decision.action, row.action) << row.what << ": " << decision.reason;
    EXPECT_EQ(decision.resets_log, row.resets_log) << row.what;
    EXPECT_EQ(decision.reason.empty(), row.action != Action::refuse) << row.what;
  }
}

// What this server has acknowledged up to there it has nowhere else.
TEST(Restart, ADamagedSnapshotBeyondEverythingElseIsRefused) {
  for (const auto& snapshot : {std::optional<Snapshot>(), std::optional(Snapshot{50, 2})}) {
    for (const Index applied : {40, 90, 98}) {
      RestartFacts lost = facts(0, 90, snapshot, applied);
      lost.damaged_snapshot = 98;
      const RestartDecision decision = decide_restart(lost);
      EXPECT_EQ(decision.action, Action::refuse);
      EXPECT_NE(decision.reason.find("index 98"), std::string::npos) << decision.reason;
      lost.damaged_snapshot = 90;
      lost.applied = std::min<Index>(applied, 90);
      EXPECT_NE(decide_restart(lost).action, Action::refuse) << "the log holds all of it";
    }
  }
}

TEST(Restart, EntriesOrASnapshotWithoutAVoteRecordAreRefused) {
  RestartFacts log = facts(0, 9, {}, 9);
  log.has_hard_state = false;
  EXPECT_EQ(decide_restart(log).action, Action::refuse);
  RestartFacts snapshot = facts(0, 0, Snapshot{50, 2}, 50);
  snapshot.has_hard_state = false;
  EXPECT_EQ(decide_restart(snapshot).action, Action::refuse);
  RestartFacts nothing = facts(0, 0, {}, 0);
  nothing.has_hard_state = false;
  EXPECT_EQ(decide_restart(nothing).action, Action::start);
}

TEST(Restart, ALogThatPartsFromTheSnapshotIsReset) {
  RestartFacts parted = facts(0, 90, Snapshot{50, 4}, 20);
  parted.log_term_at_snapshot = 3;
  RestartDecision decision = decide_restart(parted);
  EXPECT_EQ(decision.action, Action::restore);
  EXPECT_TRUE(decision.resets_log);
  parted.log_term_at_snapshot = 4;
  decision = decide_restart(parted);
  EXPECT_EQ(decision.action, Action::restore);
  EXPECT_FALSE(decision.resets_log) << "the tail after it is kept";
}

TEST(Restart, AppliedEntriesThatTheSnapshotContradictsAreRefused) {
  RestartFacts parted = facts(0, 90, Snapshot{50, 4}, 60);
  parted.log_term_at_snapshot = 3;
  EXPECT_EQ(decide_restart(parted).action, Action::refuse);
  parted = facts(50, 90, Snapshot{50, 4}, 60);
  parted.log_term_at_snapshot = 3;
  EXPECT_EQ(decide_restart(parted).action, Action::refuse) << "what lies below the base was committed";
}

TEST(Restart, AStateMachineOfAnotherHistoryIsRefused) {
  RestartFacts other = facts(0, 90, {}, 60);
  other.applied_term = 5;
  other.log_term_at_applied = 4;
  EXPECT_EQ(decide_restart(other).action, Action::refuse);
  other.log_term_at_applied = 5;
  EXPECT_EQ(decide_restart(other).action, Action::keep);
  other.log_term_at_applied.reset();
  EXPECT_EQ(decide_restart(other).action, Action::keep) << "what nobody knows is no contradiction";
  RestartFacts snapshot = facts(50, 90, Snapshot{50, 4}, 50);
  snapshot.applied_term = 3;
  EXPECT_EQ(decide_restart(snapshot).action, Action::refuse);
}

// Every combination of small numbers: one decision, and the outcome leaves no hole and drops nothing that was applied.
TEST(Restart, NoOutcomeLeavesAHoleOrDropsWhatWasApplied) {
  size_t starts = 0, keeps = 0, restores = 0, refusals = 0;
  for (Index base = 0; base <= 6; ++base) {
    for (Index last = base; last <= 6; ++last) {
      for (Index index = 0; index <= 7; ++index) {
        for (Term snapshot_term = 1; snapshot_term <= 2; ++snapshot_term) {
          for (Index applied = 0; applied <= 8; ++applied) {
            for (bool has_hard_state : {false, true}) {
              RestartFacts each = facts(base, last, {}, applied);
              each.has_hard_state = has_hard_state;
              if (index > 0) {
                each.snapshot = Snapshot{index, snapshot_term};
                if (index >= base && index <= last && last > 0) each.log_term_at_snapshot = 1;
              }
              const RestartDecision decision = decide_restart(each);
              // What the server then has: a state machine at `held`, a log after `new_base` up to `new_last`.
              const Index new_base = decision.resets_log ? index : base;
              const Index new_last = decision.resets_log ? index : last;
              Index held = applied;
              switch (decision.action) {
                case Action::refuse: ++refusals; continue;
                case Action::start:
                  ++starts;
                  EXPECT_EQ(applied + last + index, 0u);
                  break;
                case Action::restore:
                  ++restores;
                  EXPECT_GT(index, applied) << "nothing that was applied is dropped";
                  held = index;
                  break;
                case Action::keep: ++keeps; break;
              }
              EXPECT_GE(held, new_base) << "no hole before the log";
              EXPECT_LE(held, new_last);
              EXPECT_TRUE(new_base == 0 || (index >= new_base)) << "the configuration at the base is known";
            }
          }
        }
      }
    }
  }
  EXPECT_GT(starts, 0u);
  EXPECT_GT(keeps, 100u);
  EXPECT_GT(restores, 100u);
  EXPECT_GT(refusals, 100u);
}

}  // namespace
