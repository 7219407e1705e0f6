// Each invariant fires on a planted violation. (That none fires on sound clusters is what every scenario shows.)

#include "raft/invariants.h"

#include <gtest/gtest.h>

#include "tests/unit/raft/core_fixture.h"

namespace raft::test {
namespace {

std::unique_ptr<Core> core_of(const ServerId& id, InitialState initial, std::uint64_t session, StoreId store = {}) {
  if (initial.base_configuration.servers.empty()) initial.base_configuration = settled({"a", "b", "c"});
  return std::make_unique<Core>(Identity{id, store.is_known() ? store : store_of(id), session, ClusterId{6, 6}}, Settings{},
                                std::move(initial), io::RandomStream(1), io::Instant(std::chrono::seconds(1)));
}

std::string fired(const std::optional<Violation>& violation) { return violation ? violation->invariant : "none"; }

TEST(RaftInvariants, SameIndexAndTermMeansSameEntry) {
  Invariants invariants;
  InitialState other = with_log(1, {1});
  other.entries[0].data = payload("another");
  EXPECT_EQ(fired(invariants.observe(*core_of("a", with_log(1, {1}), 1))), "none");
  EXPECT_EQ(fired(invariants.observe(*core_of("b", other, 2))), "log matching");
}

TEST(RaftInvariants, SameIndexAndTermMeansSameTermBefore) {
  Invariants invariants;
  EXPECT_EQ(fired(invariants.observe(*core_of("a", with_log(3, {1, 3}), 1))), "none");
  EXPECT_EQ(fired(invariants.observe(*core_of("b", with_log(3, {2, 3}), 2))), "log matching");
}

TEST(RaftInvariants, AnIndexIsCommittedWithOneTerm) {
  Invariants invariants;
  InitialState one = with_log(2, {1});
  one.applied = 1;
  InitialState two = with_log(2, {2});
  two.applied = 1;
  EXPECT_EQ(fired(invariants.observe(*core_of("a", one, 1))), "none");
  EXPECT_EQ(invariants.committed_index(), 1u);
  EXPECT_EQ(invariants.committed_term(1), 1u);
  EXPECT_EQ(fired(invariants.observe(*core_of("b", two, 2))), "state-machine safety");
}

TEST(RaftInvariants, ARestartFindsTermVoteAndDurableEntries) {
  InitialState before = with_log(5, {1, 1});
  before.hard_state.vote = "b";
  const auto after = [&](InitialState state) {
    Invariants invariants;
    invariants.observe(*core_of("a", before, 1));
    return fired(invariants.observe(*core_of("a", std::move(state), 2)));
  };
  EXPECT_EQ(after(before), "none");
  InitialState older_term = before;
  older_term.hard_state = HardState{4, ""};
  EXPECT_EQ(after(older_term), "restart");
  InitialState no_vote = before;
  no_vote.hard_state.vote.clear();
  EXPECT_EQ(after(no_vote), "restart");
  InitialState shorter = before;
  shorter.entries.pop_back();
  EXPECT_EQ(after(shorter), "restart");
  InitialState other_entry = before;
  other_entry.entries[1].term = 2;
  EXPECT_EQ(after(other_entry), "restart");
}

TEST(RaftInvariants, AWipedVolumeIsHeldToNothing) {
  Invariants invariants;
  InitialState before = with_log(5, {1, 1});
  EXPECT_EQ(fired(invariants.observe(*core_of("a", before, 1))), "none");
  EXPECT_EQ(fired(invariants.observe(*core_of("a", {}, 2, StoreId{50, 50}))), "none");
}

TEST(RaftInvariants, AFollowerCreatesNoEntry) {
  Invariants invariants;
  Hand hand;
  EXPECT_EQ(fired(invariants.observe(*hand.core)), "none");
  hand.step(hand.append("b", 1, 0, 0, {command(1, 1)}, 0));
  EXPECT_EQ(fired(invariants.observe(*hand.core)), "leader creates");
}

TEST(RaftInvariants, ALeaderNeedsAQuorumOfDurableVotes) {
  Invariants invariants;
  const auto b = core_of("b", {}, 9);
  invariants.observe(*b);
  Hand hand;
  invariants.observe(*hand.core);
  hand.lead();
  EXPECT_EQ(fired(invariants.observe(*hand.core)), "election safety");
}

// A frozen server may find the votes, and the message that deposes it, in one backlog.
TEST(RaftInvariants, ALeadershipWonAndLostWithinOneEventCounts) {
  Invariants invariants;
  Hand hand;
  invariants.observe(*hand.core);
  hand.lead();
  const Term won = hand.core->term();
  hand.step(hand.append("b", won + 1, 0, 0, {}, 0));
  ASSERT_EQ(hand.core->role(), Role::follower);
  EXPECT_EQ(fired(invariants.observe(*hand.core)), "none");
  // The term has had its leader.
  Hand other({}, {}, {"a", "b", "c"}, "c");
  invariants.observe(*other.core);
  other.lead();
  ASSERT_EQ(other.core->term_won(), won);
  other.step(other.append("b", won + 1, 0, 0, {}, 0));
  EXPECT_EQ(fired(invariants.observe(*other.core)), "election safety");
}

TEST(RaftInvariants, ACommittedEntryIsDurableOnAQuorum) {
  Invariants invariants;
  InitialState voted;
  voted.hard_state = HardState{1, "a"};
  const auto b = core_of("b", voted, 9);
  invariants.observe(*b);
  Hand hand;
  hand.lead();
  EXPECT_EQ(fired(invariants.observe(*hand.core)), "none");
  hand.step(hand.acknowledge("b", 1));
  EXPECT_EQ(fired(invariants.observe(*hand.core)), "committed durable");
}

TEST(RaftInvariants, TheFirstViolationStands) {
  Invariants invariants;
  InitialState other = with_log(1, {1});
  other.entries[0].data = payload("another");
  invariants.observe(*core_of("a", with_log(1, {1}), 1));
  const auto first = invariants.observe(*core_of("b", other, 2));
  const auto again = invariants.observe(*core_of("c", {}, 3));
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->detail, again->detail);
}

InitialState with_snapshot(Index index, Term term, const Configuration& configuration) {
  InitialState initial;
  initial.hard_state.term = 9;
  initial.base_index = index;
  initial.base_term = term;
  initial.snapshot = SnapshotLabel{index, term, 0, configuration};
  initial.applied = index;
  return initial;
}

TEST(RaftInvariants, ASnapshotHasTheTermThatWasCommitted) {
  Invariants invariants;
  InitialState one = with_log(9, {1, 2});
  one.applied = 2;
  EXPECT_EQ(fired(invariants.observe(*core_of("a", one, 1))), "none");
  EXPECT_EQ(fired(invariants.observe(*core_of("b", with_snapshot(2, 1, settled({"a", "b", "c"})), 2))), "label");
}

TEST(RaftInvariants, ASnapshotNamesTheConfigurationInForceAtItsIndex) {
  InitialState one = with_log(9, {1, 1});
  one.entries[1].type = EntryType::configuration;
  one.entries[1].data = payload(encode(settled({"a", "b", "c", "d"})));
  one.applied = 2;
  const auto after = [&](SnapshotLabel label) {
    Invariants invariants;
    EXPECT_EQ(fired(invariants.observe(*core_of("a", one, 1))), "none");
    InitialState other = with_snapshot(2, 1, label.configuration);
    other.snapshot = std::move(label);
    return fired(invariants.observe(*core_of("b", std::move(other), 2)));
  };
  EXPECT_EQ(after(SnapshotLabel{2, 1, 2, settled({"a", "b", "c", "d"})}), "none");
  EXPECT_EQ(after(SnapshotLabel{2, 1, 0, settled({"a", "b", "c"})}), "label");
}

}  // namespace
}  // namespace raft::test
