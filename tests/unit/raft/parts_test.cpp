// Types, configuration, quorum, progress and log view: what their headers promise, by example.

#include <gtest/gtest.h>

#include "raft/configuration.h"
#include "raft/log_view.h"
#include "raft/progress.h"
#include "raft/quorum.h"
#include "tests/unit/raft/core_fixture.h"

namespace raft::test {
namespace {

TEST(RaftTypes, IdsReadBackWhatTheyPrint) {
  const StoreId id{0x0123456789abcdef, 0xfedcba9876543210};
  EXPECT_EQ(id.to_string(), "0123456789abcdeffedcba9876543210");
  EXPECT_EQ(StoreId::parse(id.to_string()), id);
  EXPECT_EQ(StoreId::parse("0123456789ABCDEFFEDCBA9876543210"), id);
  EXPECT_FALSE(StoreId::parse("0123").has_value());
  EXPECT_FALSE(StoreId::parse("0123456789abcdeffedcba987654321g").has_value());
  EXPECT_FALSE(StoreId{}.is_known());
}

TEST(RaftTypes, EntriesAreComparedByContent) {
  EXPECT_TRUE(same_entry(command(1, 2, "x"), command(1, 2, "x")));
  EXPECT_FALSE(same_entry(command(1, 2, "x"), command(1, 2, "y")));
  EXPECT_FALSE(same_entry(command(1, 2, "x"), command(1, 3, "x")));
  EXPECT_TRUE(same_entry(Entry{1, 1, EntryType::command, nullptr}, command(1, 1, "")));
}

TEST(RaftConfiguration, AVoterSpeaksThroughItsRecordedStoreOnly) {
  Configuration configuration = settled({"a", "b", "c"});
  EXPECT_TRUE(configuration.admits("b", store_of("b")));
  EXPECT_FALSE(configuration.admits("b", store_of("c")));
  configuration.servers[1].store = {};
  EXPECT_TRUE(configuration.admits("b", store_of("c")));
  configuration.servers[1].voter = false;
  EXPECT_FALSE(configuration.admits("b", store_of("b")));
  EXPECT_FALSE(configuration.admits("z", store_of("b")));
  EXPECT_EQ(configuration.quorum(), 2u);
}

TEST(RaftConfiguration, AnEmptyOneHasAQuorumThatNobodyReaches) { EXPECT_EQ(Configuration{}.quorum(), 1u); }

TEST(RaftConfiguration, ACutBringsTheOneBeforeIntoForceAgain) {
  ConfigurationLog log(0, settled({"a"}));
  log.append(5, settled({"a", "b"}));
  log.append(9, settled({"a", "b", "c"}));
  EXPECT_EQ(log.voter_changes_above(0), 2u);
  EXPECT_EQ(log.voter_changes_above(5), 1u);
  EXPECT_FALSE(log.truncate(10));
  EXPECT_TRUE(log.truncate(9));
  EXPECT_EQ(log.current(), settled({"a", "b"}));
  log.compact(7);
  EXPECT_EQ(log.size(), 1u);
  EXPECT_EQ(log.current_index(), 5u);
  EXPECT_DEATH(log.truncate(5), "base");
}

TEST(RaftQuorum, OfFewAndMany) {
  const auto value = [](std::vector<std::uint64_t> values) { return quorum_value(values); };
  EXPECT_EQ(value({}), 0u);
  EXPECT_EQ(value({7}), 7u);
  EXPECT_EQ(value({7, 3}), 3u);
  EXPECT_EQ(value({1, 9, 5}), 5u);
  EXPECT_EQ(value({1, 9, 5, 7}), 5u);
  EXPECT_EQ(value({0, 0, 4, 4, 4}), 4u);
}

TEST(RaftQuorum, ABallotCountsEachVoterOnceForItsKindAndTerm) {
  Ballot ballot(ElectionKind::vote, 3, settled({"a", "b", "c", "d", "e"}));
  EXPECT_FALSE(ballot.record(ElectionKind::pre_vote, 3, "b", store_of("b"), true));
  EXPECT_FALSE(ballot.record(ElectionKind::vote, 2, "b", store_of("b"), true));
  EXPECT_FALSE(ballot.record(ElectionKind::vote, 3, "z", store_of("z"), true));
  EXPECT_FALSE(ballot.record(ElectionKind::vote, 3, "b", store_of("c"), true));
  EXPECT_TRUE(ballot.record(ElectionKind::vote, 3, "a", store_of("a"), true));
  EXPECT_TRUE(ballot.record(ElectionKind::vote, 3, "b", store_of("b"), true));
  EXPECT_FALSE(ballot.record(ElectionKind::vote, 3, "b", store_of("b"), true));
  EXPECT_EQ(ballot.result(), ElectionResult::pending);
  EXPECT_TRUE(ballot.record(ElectionKind::vote, 3, "c", store_of("c"), false));
  EXPECT_TRUE(ballot.record(ElectionKind::vote, 3, "d", store_of("d"), false));
  EXPECT_EQ(ballot.result(), ElectionResult::pending);
  EXPECT_TRUE(ballot.record(ElectionKind::vote, 3, "e", store_of("e"), false));
  EXPECT_EQ(ballot.result(), ElectionResult::lost);
}

TEST(RaftProgress, ProbesOneAtATimeThenPipelines) {
  const FlightLimits limits{2, 100};
  Progress progress(11);
  EXPECT_TRUE(progress.can_send_entries(limits));
  progress.sent_entries(12, 10);
  EXPECT_FALSE(progress.can_send_entries(limits));
  EXPECT_EQ(progress.next(), 11u) << "a probe does not run ahead";
  EXPECT_TRUE(progress.accepted(12, 12));
  EXPECT_EQ(progress.state(), Progress::State::replicate);
  progress.sent_entries(13, 10);
  progress.sent_entries(14, 10);
  EXPECT_EQ(progress.next(), 15u);
  EXPECT_FALSE(progress.can_send_entries(limits));
  EXPECT_TRUE(progress.accepted(14, 13));
  EXPECT_TRUE(progress.can_send_entries(limits));
}

TEST(RaftProgress, BytesBoundTheWindowToo) {
  const FlightLimits limits{100, 100};
  Progress progress(1);
  progress.accepted(0, 0);
  progress.sent_entries(1, 99);
  EXPECT_TRUE(progress.can_send_entries(limits));
  progress.sent_entries(2, 50);
  EXPECT_FALSE(progress.can_send_entries(limits));
}

TEST(RaftProgress, StrayRefusalsChangeNothing) {
  Progress progress(51);
  EXPECT_TRUE(progress.refused(50, 3));
  EXPECT_EQ(progress.next(), 4u);
  EXPECT_FALSE(progress.refused(50, 0));
  progress.accepted(50, 50);
  EXPECT_FALSE(progress.refused(50, 3));
  EXPECT_FALSE(progress.refused(0, 0));
  EXPECT_EQ(progress.match(), 50u);
  EXPECT_EQ(progress.next(), 51u);
}

TEST(RaftProgress, ANewSessionKeepsWhatIsProvenAndANewStoreNothing) {
  Progress progress(1);
  progress.accepted(5, 5);
  progress.sent_entries(9, 10);
  progress.restart(0);
  EXPECT_EQ(progress.state(), Progress::State::probe);
  EXPECT_EQ(progress.match(), 5u);
  EXPECT_EQ(progress.next(), 6u);
  EXPECT_EQ(progress.in_flight_bytes(), 0u);
  progress.reset(10);
  EXPECT_EQ(progress.match(), 0u);
  EXPECT_EQ(progress.next(), 10u);
}

TEST(RaftProgress, EntriesBehindAnImageAreSparedUntilTheConnectionEnds) {
  raft::Progress progress(11);
  EXPECT_EQ(progress.spared_from(), 0u);
  progress.begin_snapshot(100, 1);
  EXPECT_EQ(progress.spared_from(), 100u);
  progress.end_snapshot(true, 90);
  EXPECT_EQ(progress.spared_from(), 100u) << "it may be installing for long";
  progress.accepted(120, 115);
  EXPECT_EQ(progress.spared_from(), 115u);
  progress.restart(0);
  EXPECT_EQ(progress.spared_from(), 0u);
  progress.begin_snapshot(200, 2);
  progress.end_snapshot(false, 90);
  EXPECT_EQ(progress.spared_from(), 0u) << "it has not arrived";
}

TEST(RaftLogView, ComparesLogsByLastTermThenLastIndex) {
  LogView log(10, 2);
  EXPECT_TRUE(log.is_covered_by(10, 2));
  EXPECT_FALSE(log.is_covered_by(9, 2));
  EXPECT_TRUE(log.is_covered_by(1, 3));
  log.append(command(11, 4));
  EXPECT_FALSE(log.is_covered_by(100, 3));
  EXPECT_FALSE(log.is_covered_by(10, 4));
  EXPECT_TRUE(log.is_covered_by(11, 4));
}

TEST(RaftLogView, RefusesGapsAndFallingTerms) {
  LogView log(10, 2);
  EXPECT_DEATH(log.append(command(12, 2)), "one after the other");
  EXPECT_DEATH(log.append(command(11, 1)), "terms never fall");
  EXPECT_DEATH(log.truncate(10), "base");
  EXPECT_DEATH(log.at(10), "held");
}

TEST(RaftLogView, CountsItsCuts) {
  LogView log;
  for (Index index = 1; index <= 5; ++index) log.append(command(index, 1));
  log.truncate(9);
  EXPECT_EQ(log.truncations(), 0u);
  log.truncate(4);
  EXPECT_EQ(log.truncations(), 1u);
  EXPECT_EQ(log.last_truncated_from(), 4u);
}

}  // namespace
}  // namespace raft::test
