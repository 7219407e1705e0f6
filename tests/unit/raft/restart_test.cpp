// One test a row of the restart table (raft/restart.h), for a joining server and for another one.
#include "raft/restart.h"

#include <gtest/gtest.h>

#include <string>

#include "io/sim/switches.h"

namespace {

using namespace raft;
using Action = RestartDecision::Action;
using Row = RestartRow;
using Snapshot = RestartFacts::Snapshot;

constexpr StoreId kStore{1, 2};
constexpr StoreId kOtherStore{3, 4};
constexpr ClusterId kCluster{5, 6};
constexpr ClusterId kOtherCluster{7, 8};

// A log that holds what follows `base` up to `last`, and beside it a state machine that holds nothing.
RestartFacts log(Index base, Index last) {
  RestartFacts facts;
  facts.build = {"narad 9", 37, "fsm.db", "raft"};
  facts.has_term_record = true;
  facts.store = kStore;
  facts.cluster = kCluster;
  facts.log_base = base;
  facts.log_last = last;
  return facts;
}

RestartFacts trusted(RestartFacts facts, Index index, Term term = 1) {
  facts.state_machine = {true, true, "", index, term, 3, kStore, kCluster};
  return facts;
}

RestartFacts untrusted(RestartFacts facts, Index index = 40) {
  facts.state_machine = {true, false, "somebody wrote it", index, 1, 3, kStore, kCluster};
  return facts;
}

RestartFacts with_snapshot(RestartFacts facts, Index index, Term term = 1) {
  facts.snapshot = Snapshot{index, term, 3};
  return facts;
}

RestartFacts joining(RestartFacts facts) {
  facts.is_joining = true;
  return facts;
}

void expect(const RestartFacts& facts, Row row, Action action, bool resets_log = false) {
  const RestartDecision decision = decide_restart(facts);
  EXPECT_EQ(decision.row, row) << to_string(decision.row) << ": " << decision.reason;
  EXPECT_EQ(decision.action, action) << to_string(decision.row);
  EXPECT_EQ(decision.resets_log, resets_log);
  const bool has_reason = action == Action::refuse || action == Action::set_aside || action == Action::reset;
  EXPECT_EQ(!decision.reason.empty(), has_reason);
  EXPECT_EQ(decision.reason.find('\n'), std::string::npos) << "one line";
}

void expect_for_both(const RestartFacts& facts, Row row, Action action, bool resets_log = false) {
  expect(facts, row, action, resets_log);
  expect(joining(facts), row, action, resets_log);
}

std::string reason(const RestartFacts& facts) { return decide_restart(facts).reason; }

TEST(RestartTable, Row1ANewerReleasesStateIsRefusedWhateverElseIsThere) {
  for (const RestartFacts& base : {log(0, 0), log(0, 90), untrusted(log(0, 90)), trusted(log(0, 90), 500)}) {
    RestartFacts newer = base;
    newer.state_machine.holds_anything = true;
    newer.state_machine.newest_type = 38;
    expect_for_both(newer, Row::newer_release, Action::refuse);
    newer.has_term_record = false;
    expect_for_both(newer, Row::newer_release, Action::refuse);
    EXPECT_EQ(reason(newer), "fsm: fsm.db holds raft entry type 38, written by a newer Narad release than this build (narad 9, which "
                             "knows entry types up to 37); run that release or newer");
  }
  RestartFacts image = with_snapshot(trusted(log(0, 90), 60), 50);
  image.snapshot->newest_type = 38;
  expect_for_both(image, Row::newer_release, Action::refuse);
  EXPECT_NE(reason(image).find("the raft snapshot at index 50 holds raft entry type 38"), std::string::npos);
}

TEST(RestartTable, Row2EntriesOrASnapshotWithoutATermRecordAreRefused) {
  for (RestartFacts facts : {trusted(log(0, 9), 9), log(0, 9), with_snapshot(log(0, 0), 50), untrusted(log(0, 9))}) {
    facts.has_term_record = false;
    expect_for_both(facts, Row::no_term_record, Action::refuse);
  }
}

TEST(RestartTable, Row3NothingAtAllStarts) {
  RestartFacts nothing = log(0, 0);
  expect_for_both(nothing, Row::empty, Action::start);
  nothing.has_term_record = false;
  expect_for_both(nothing, Row::empty, Action::start);
}

TEST(RestartTable, Row4AStateMachineWithoutRaftStateIsSetAsideByAJoinerAndRefusedElse) {
  for (RestartFacts facts : {trusted(log(0, 0), 7), untrusted(log(0, 0), 0)}) {
    for (bool has_term_record : {false, true}) {
      facts.has_term_record = has_term_record;
      expect(facts, Row::no_raft_state, Action::refuse);
      expect(joining(facts), Row::no_raft_state, Action::set_aside);
    }
  }
  EXPECT_EQ(reason(trusted(log(0, 0), 7)).find("fsm.db holds metadata, but there is no raft state beside it"), 0u);
  EXPECT_EQ(reason(joining(trusted(log(0, 0), 7))),
            "there is no raft state beside it, and the cluster this node joins replaces it with its own log or snapshot");
}

TEST(RestartTable, Row5AnotherStoresOrClustersOrHistorysStateIsResetByAJoinerAndRefusedElse) {
  RestartFacts store = trusted(log(0, 90), 60);
  store.state_machine.store = kOtherStore;
  RestartFacts cluster = untrusted(with_snapshot(log(0, 90), 50));
  cluster.state_machine.cluster = kOtherCluster;
  RestartFacts log_term = trusted(log(0, 90), 60, 5);
  log_term.log_term_at_index = 4;
  const RestartFacts snapshot_term = trusted(with_snapshot(log(50, 90), 50, 4), 50, 3);
  for (const RestartFacts& facts : {store, cluster, log_term, snapshot_term}) {
    expect(facts, Row::foreign, Action::refuse);
    expect(joining(facts), Row::foreign, Action::reset);
  }
  EXPECT_NE(reason(store).find(kOtherStore.to_string()), std::string::npos);
  EXPECT_NE(reason(cluster).find(kOtherCluster.to_string()), std::string::npos);
  // What nobody knows is no contradiction.
  log_term.log_term_at_index.reset();
  expect_for_both(log_term, Row::held, Action::keep);
  cluster.cluster = {};
  expect_for_both(cluster, Row::behind, Action::restore);
  store.state_machine.store = {};
  expect_for_both(store, Row::held, Action::keep);
}

TEST(RestartTable, Row6AStateMachineAheadOfRaftsStateIsRefusedUnlessItJoins) {
  const RestartFacts full = trusted(log(0, 90), 91);
  expect(full, Row::ahead, Action::refuse);
  expect(joining(full), Row::ahead, Action::set_aside);
  EXPECT_NE(reason(full).find("raft state is older than fsm.db: fsm.db has applied raft index 91, past the end of the raft log (index "
                              "90) and the latest raft snapshot (index 0) in raft/; starting would drop every metadata change after "
                              "index 90, so refusing to start"),
            std::string::npos)
      << reason(full);
  const RestartFacts meets = trusted(with_snapshot(log(30, 90), 50), 91);
  expect(meets, Row::ahead, Action::refuse);
  expect(joining(meets), Row::ahead, Action::restore);
  const RestartFacts short_log = trusted(with_snapshot(log(0, 20), 50), 51);
  expect(short_log, Row::ahead, Action::refuse);
  expect(joining(short_log), Row::ahead, Action::restore, true);
  const RestartFacts cut = trusted(log(30, 90), 91);
  expect(cut, Row::ahead, Action::refuse);
  expect(joining(cut), Row::ahead, Action::reset);
}

TEST(RestartTable, Row7AStateMachineWithinTheLogIsKept) {
  expect_for_both(trusted(log(0, 9), 5), Row::held, Action::keep);
  expect_for_both(trusted(log(0, 9), 9), Row::held, Action::keep);
  expect_for_both(trusted(with_snapshot(log(0, 90), 50), 60), Row::held, Action::keep);
  expect_for_both(trusted(with_snapshot(log(50, 90), 50), 50), Row::held, Action::keep);
  expect_for_both(trusted(with_snapshot(log(30, 90), 50), 55), Row::held, Action::keep);
  expect_for_both(trusted(with_snapshot(log(50, 50), 50), 50), Row::held, Action::keep);
  // A snapshot was switched to, and the reset of the log did not last.
  expect_for_both(trusted(with_snapshot(log(0, 20), 50), 50), Row::held, Action::keep, true);
  // The state machine itself reaches the log; nobody needs the snapshots that are gone.
  expect_for_both(trusted(log(30, 90), 40), Row::held, Action::keep);
  expect_for_both(trusted(with_snapshot(log(30, 90), 20), 40), Row::held, Action::keep);
}

TEST(RestartTable, Row8ASnapshotThatMeetsTheLogIsRestoredOverAnythingElse) {
  for (const RestartFacts& held : {log(0, 0), trusted(log(0, 0), 40), untrusted(log(0, 0), 60)}) {
    const auto facts = [&held](Index base, Index last) {
      RestartFacts made = with_snapshot(log(base, last), 50);
      made.state_machine = held.state_machine;
      return made;
    };
    expect_for_both(facts(50, 90), Row::behind, Action::restore);
    expect_for_both(facts(30, 90), Row::behind, Action::restore);
    expect_for_both(facts(0, 90), Row::behind, Action::restore);
    expect_for_both(facts(50, 50), Row::behind, Action::restore);
    expect_for_both(facts(0, 0), Row::behind, Action::restore, true);
    expect_for_both(facts(0, 45), Row::behind, Action::restore, true);
  }
}

// Scenario PT-16 c.
TEST(RestartTable, ALogThatPartsFromTheSnapshotGoes) {
  RestartFacts parted = trusted(with_snapshot(log(0, 90), 50, 4), 20);
  parted.log_term_at_snapshot = 3;
  expect_for_both(parted, Row::behind, Action::restore, true);
  parted.log_term_at_snapshot = 4;
  expect_for_both(parted, Row::behind, Action::restore, false);
  // Then the end is the snapshot's.
  RestartFacts beyond = trusted(with_snapshot(log(0, 90), 50, 4), 60);
  beyond.log_term_at_snapshot = 3;
  expect(beyond, Row::ahead, Action::refuse);
  // What lies at the log's base was committed in the base's term: such a snapshot is another log's.
  RestartFacts other = untrusted(with_snapshot(log(50, 90), 50, 4));
  other.log_term_at_snapshot = 3;
  expect(other, Row::hole, Action::refuse);
  expect(joining(other), Row::hole, Action::reset);
}

TEST(RestartTable, Row9AWholeLogIsReplayedIntoNothing) {
  expect_for_both(log(0, 9), Row::replayed, Action::keep);
  RestartFacts damaged = log(0, 9);
  damaged.damaged_snapshot = 1;
  expect_for_both(damaged, Row::replayed, Action::keep);
}

TEST(RestartTable, Row10AnUntrustedStateMachineIsRebuiltFromAWholeLog) {
  expect_for_both(untrusted(log(0, 90)), Row::rebuilt, Action::set_aside);
  expect_for_both(untrusted(log(0, 90), 0), Row::rebuilt, Action::set_aside);
  expect_for_both(untrusted(log(0, 90), 500), Row::rebuilt, Action::set_aside);
  EXPECT_EQ(reason(untrusted(log(0, 90))).find("fsm.db has no applied index this release can trust (an older release or another program "
                                               "wrote it last), and replaying the raft log onto it would apply entries twice"),
            0u);
}

TEST(RestartTable, Row11ACutLogIsReplayedOntoAnUntrustedStateMachine) {
  expect_for_both(untrusted(log(30, 90)), Row::replayed_onto, Action::rebase);
  expect_for_both(untrusted(log(30, 30), 0), Row::replayed_onto, Action::rebase);
}

// Scenario PT-16.
TEST(RestartTable, Row12AHoleIsResetByAJoinerAndRefusedElse) {
  RestartFacts damaged = untrusted(log(30, 90));
  damaged.damaged_snapshot = 1;
  for (const RestartFacts& facts : {log(30, 90), trusted(log(30, 90), 10), with_snapshot(log(30, 90), 20),
                                    trusted(with_snapshot(log(30, 90), 20), 25), untrusted(with_snapshot(log(30, 90), 20)), damaged}) {
    expect(facts, Row::hole, Action::refuse);
    expect(joining(facts), Row::hole, Action::reset);
  }
  EXPECT_NE(reason(trusted(log(30, 90), 10)).find("the raft log begins after index 30"), std::string::npos);
}

TEST(RestartTable, WithoutItsDefencesItBootstrapsOverDataAndRebuildsFromAnOlderLog) {
  io::sim::Switchboard board;
  board.off.insert(io::Defence::bootstrap_over_data);
  board.off.insert(io::Defence::older_raft_rebuilt_silently);
  io::sim::SwitchboardGuard guard(&board);
  expect(trusted(log(0, 0), 7), Row::no_raft_state, Action::rebase);
  expect(trusted(log(0, 90), 91), Row::ahead, Action::set_aside);
}

// What this server has acknowledged up to there it has nowhere else.
TEST(RestartTable, Row12ADamagedSnapshotBeyondEverythingElseIsAHole) {
  for (const RestartFacts& base : {log(0, 90), trusted(log(0, 90), 90), with_snapshot(trusted(log(0, 90), 90), 50), untrusted(log(0, 90)),
                                   log(0, 0), with_snapshot(log(50, 50), 50)}) {
    RestartFacts lost = base;
    lost.damaged_snapshot = 98;
    expect(lost, Row::hole, Action::refuse);
    expect(joining(lost), Row::hole, Action::reset);
    EXPECT_NE(reason(lost).find("index 98"), std::string::npos) << reason(lost);
    if (lost.log_last < 90) continue;
    lost.damaged_snapshot = 90;
    EXPECT_NE(decide_restart(lost).action, Action::refuse) << "the log holds all of it";
  }
}

}  // namespace
