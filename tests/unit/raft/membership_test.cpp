// Changes of the configuration, transfers of leadership and stalls, on one core in a test's hand.

#include <gtest/gtest.h>

#include "tests/unit/raft/core_fixture.h"

namespace raft::test {
namespace {

using Kind = ConfigurationChange::Kind;

ConfigurationChange change(Kind kind, const ServerId& id, const std::string& address = "") {
  return ConfigurationChange{kind, id, address, {}};
}

// Leads, with an entry of its own term committed and b and c just heard.
void lead_and_commit(Hand& hand) {
  hand.lead();
  hand.step(hand.acknowledge("b", hand.core->last_index()));
  hand.step(hand.acknowledge("c", hand.core->last_index()));
  ASSERT_TRUE(hand.core->has_committed_in_term());
}

void acknowledge_all(Hand& hand) {
  hand.persist();
  hand.step(hand.acknowledge("b", hand.core->last_index()));
  hand.step(hand.acknowledge("c", hand.core->last_index()));
}

void apply_all(Hand& hand) {
  hand.take();
  if (!hand.committed.empty()) hand.core->applied(hand.committed.back().index);
}

TEST(ConfigurationChange, EachStepMovesAtMostOneVoter) {
  Configuration now = settled({"a", "b", "c"});
  EXPECT_EQ(apply(change(Kind::add, "d", "d:1"), now), ChangeVerdict::changed);
  EXPECT_EQ(now.voter_count(), 3u);
  EXPECT_EQ(apply(change(Kind::promote, "d"), now), ChangeVerdict::changed);
  EXPECT_EQ(now.voter_count(), 4u);
  EXPECT_EQ(apply(change(Kind::demote, "a"), now), ChangeVerdict::changed);
  EXPECT_FALSE(now.is_voter("a"));
  EXPECT_EQ(apply(change(Kind::remove, "b"), now), ChangeVerdict::changed);
  EXPECT_EQ(now.find("b"), nullptr);
  EXPECT_EQ(apply(change(Kind::change_address, "c", "c:2"), now), ChangeVerdict::changed);
  EXPECT_EQ(now.find("c")->address, "c:2");
  EXPECT_EQ(now.find("c")->store, store_of("c"));
  EXPECT_EQ(decode_configuration(encode(now)), now);
}

TEST(ConfigurationChange, WhatChangesNothingSaysSoAndWhatIsNonsenseIsRefused) {
  const Configuration before = settled({"a", "b"});
  Configuration now = before;
  EXPECT_EQ(apply(change(Kind::add, "b", "b:1"), now), ChangeVerdict::already_so);
  EXPECT_EQ(apply(change(Kind::promote, "b"), now), ChangeVerdict::already_so);
  EXPECT_EQ(apply(change(Kind::remove, "x"), now), ChangeVerdict::already_so);
  EXPECT_EQ(apply(change(Kind::change_address, "b", "b:1"), now), ChangeVerdict::already_so);
  EXPECT_EQ(apply(change(Kind::promote, "x"), now), ChangeVerdict::not_a_member);
  EXPECT_EQ(apply(change(Kind::add, "", "x:1"), now), ChangeVerdict::invalid);
  EXPECT_EQ(apply(change(Kind::add, "x", ""), now), ChangeVerdict::invalid);
  EXPECT_EQ(apply(change(Kind::change_address, "b", std::string(5000, 'x')), now), ChangeVerdict::invalid);
  ConfigurationChange other_volume = change(Kind::add, "b", "b:1");
  other_volume.store = StoreId{9, 9};
  EXPECT_EQ(apply(other_volume, now), ChangeVerdict::invalid);
  EXPECT_EQ(now, before);
}

TEST(ConfigurationLog, NamesTheChangesOfTheVoters) {
  ConfigurationLog log(0, settled({"a", "b"}));
  Configuration next = settled({"a", "b"});
  ASSERT_EQ(apply(change(Kind::add, "c", "c:1"), next), ChangeVerdict::changed);
  log.append(3, next);
  ASSERT_EQ(apply(change(Kind::promote, "c"), next), ChangeVerdict::changed);
  log.append(5, next);
  ASSERT_EQ(apply(change(Kind::remove, "a"), next), ChangeVerdict::changed);
  log.append(8, next);
  EXPECT_EQ(log.voter_changes_after(0), (std::vector<Index>{5, 8}));
  EXPECT_EQ(log.voter_changes_after(5), (std::vector<Index>{8}));
  EXPECT_TRUE(log.truncate(5));
  EXPECT_EQ(log.current_index(), 3u);
  EXPECT_FALSE(log.current().is_voter("c"));
}

TEST(Progress, IsCaughtUpAfterARoundThatWasShortAndWhileTheNextIsNotLong) {
  Progress progress(11);
  progress.begin_catch_up(10, 0);
  progress.accepted(10, 4);
  progress.follow_catch_up(10, 50, 100);
  EXPECT_FALSE(progress.is_caught_up(50, 100));
  progress.accepted(10, 10);
  progress.follow_catch_up(200, 300, 100);  // took too long
  EXPECT_FALSE(progress.is_caught_up(300, 100));
  progress.accepted(200, 200);
  progress.follow_catch_up(210, 390, 100);
  EXPECT_TRUE(progress.is_caught_up(390, 100));
  EXPECT_TRUE(progress.is_caught_up(490, 100));
  EXPECT_FALSE(progress.is_caught_up(491, 100));
  progress.reset(211);
  EXPECT_FALSE(progress.is_caught_up(390, 100));
}

// It may have lost what it held, and its first answer moves match to almost nothing.
TEST(Progress, ANewSessionBeginsToCatchUpAnew) {
  Progress progress(11);
  progress.begin_catch_up(10, 0);
  progress.accepted(10, 10);
  progress.follow_catch_up(10, 50, 100);
  ASSERT_TRUE(progress.is_caught_up(50, 100));
  progress.begin_session(0);
  EXPECT_FALSE(progress.is_caught_up(60, 100));
  progress.accepted(1, 1);
  progress.follow_catch_up(10, 60, 100);
  EXPECT_FALSE(progress.is_caught_up(60, 100)) << "match is far from what it has to hold";
  progress.accepted(10, 10);
  progress.follow_catch_up(10, 70, 100);
  EXPECT_TRUE(progress.is_caught_up(70, 100));
}

TEST(CoreMembership, NoChangeBeforeAnEntryOfTheTermHasCommitted) {
  Hand hand;
  hand.lead();
  EXPECT_EQ(hand.core->change_configuration(change(Kind::add, "d", "d:1")).refusal, Refusal::not_committed_in_term);
  hand.step(hand.acknowledge("b", hand.core->last_index()));
  const ChangeResult result = hand.core->change_configuration(change(Kind::add, "d", "d:1"));
  EXPECT_EQ(result.refusal, Refusal::none);
  EXPECT_EQ(result.index, hand.core->last_index());
  EXPECT_EQ(result.term, hand.core->term());
}

TEST(CoreMembership, AChangeIsInForceAtOnceAndOneAtATime) {
  Hand hand;
  lead_and_commit(hand);
  ASSERT_EQ(hand.core->change_configuration(change(Kind::add, "d", "d:1")).refusal, Refusal::none);
  EXPECT_NE(hand.core->configuration().find("d"), nullptr);
  EXPECT_NE(hand.core->find_progress("d"), nullptr);
  EXPECT_EQ(hand.core->change_configuration(change(Kind::remove, "d")).refusal, Refusal::change_in_progress);
  // "Already so" is said of committed configurations only.
  EXPECT_EQ(hand.core->change_configuration(change(Kind::add, "d", "d:1")).refusal, Refusal::change_in_progress);
  acknowledge_all(hand);
  EXPECT_EQ(hand.core->change_configuration(change(Kind::add, "d", "d:1")).refusal, Refusal::already_so);
  EXPECT_EQ(hand.core->change_configuration(change(Kind::remove, "d")).refusal, Refusal::none);
  EXPECT_EQ(hand.core->find_progress("d"), nullptr);
}

TEST(CoreMembership, APromotionWaitsUntilTheServerHasCaughtUp) {
  Hand hand;
  lead_and_commit(hand);
  ASSERT_EQ(hand.core->change_configuration(change(Kind::add, "d", "d:1")).refusal, Refusal::none);
  acknowledge_all(hand);
  EXPECT_FALSE(hand.core->is_caught_up("d"));
  EXPECT_EQ(hand.core->change_configuration(change(Kind::promote, "d")).refusal, Refusal::not_caught_up);
  hand.step(hand.acknowledge("d", hand.core->last_index()));
  acknowledge_all(hand);  // d's store is on record now
  EXPECT_TRUE(hand.core->is_caught_up("d"));
  EXPECT_EQ(hand.core->change_configuration(change(Kind::promote, "d")).refusal, Refusal::none);
  EXPECT_TRUE(hand.core->configuration().is_voter("d"));
}

// Scenario MB-09, in another way: a server that joins comes back under its store with a log to be rebuilt.
TEST(CoreMembership, AServerThatComesBackWithLessIsNotPromotedByWhatItHeldBefore) {
  Hand hand;
  lead_and_commit(hand);
  ASSERT_EQ(hand.core->change_configuration(change(Kind::add, "d", "d:1")).refusal, Refusal::none);
  acknowledge_all(hand);
  hand.step(hand.acknowledge("d", hand.core->last_index()));
  acknowledge_all(hand);
  ASSERT_TRUE(hand.core->is_caught_up("d"));
  Message back = hand.acknowledge("d", 1);
  back.session += 1;
  hand.step(back);
  EXPECT_FALSE(hand.core->is_caught_up("d"));
  EXPECT_EQ(hand.core->change_configuration(change(Kind::promote, "d")).refusal, Refusal::not_caught_up);
  back = hand.acknowledge("d", hand.core->last_index());
  back.session += 1;
  hand.step(back);
  EXPECT_EQ(hand.core->change_configuration(change(Kind::promote, "d")).refusal, Refusal::none);
}

TEST(CoreMembership, ALeaderThatRemovesItselfDoesNotCountAndHandsOver) {
  Hand hand;
  lead_and_commit(hand);
  const Index before = hand.core->commit_index();
  ASSERT_EQ(hand.core->change_configuration(change(Kind::remove, "a")).refusal, Refusal::none);
  hand.persist();
  hand.step(hand.acknowledge("b", hand.core->last_index()));
  EXPECT_EQ(hand.core->commit_index(), before);
  hand.step(hand.acknowledge("c", hand.core->last_index()));
  EXPECT_EQ(hand.core->commit_index(), before + 1);
  EXPECT_EQ(hand.core->role(), Role::leader);
  EXPECT_EQ(hand.core->transfer_target(), "b");
  ASSERT_EQ(hand.sent_to("b", MessageType::timeout_now).size(), 1u);
  const Payload command = payload("x");
  EXPECT_EQ(hand.core->propose(std::span(&command, 1)).refusal, Refusal::transfer_in_progress);
  Message vote = hand.from("b", MessageType::vote_request, hand.core->term() + 1);
  vote.campaign_term = vote.term;
  vote.is_transfer = true;
  vote.log_index = hand.core->last_index();
  vote.log_term = hand.core->term();
  hand.step(vote);
  hand.persist();
  EXPECT_EQ(hand.core->role(), Role::follower);
  EXPECT_EQ(hand.core->next_deadline(), io::kNever);
  EXPECT_TRUE(hand.sent_to("b", MessageType::vote_reply).back().granted);
}

TEST(CoreMembership, TheLastVoterStays) {
  Hand hand({}, {}, {"a"});
  hand.tick();
  hand.persist();
  ASSERT_TRUE(hand.core->has_committed_in_term());
  EXPECT_EQ(hand.core->change_configuration(change(Kind::remove, "a")).refusal, Refusal::no_live_majority);
  EXPECT_EQ(hand.core->change_configuration(change(Kind::demote, "a")).refusal, Refusal::no_live_majority);
}

// Found by the simulator (seed 517): of three voters one was being brought up anew, and another was demoted; nobody could be elected to
// bring it up.
TEST(CoreMembership, AVoterThatIsBroughtUpAnewCountsForNoMajorityThatMustRemain) {
  Hand hand;
  hand.lead();
  hand.persist();
  hand.step(hand.acknowledge("b", hand.core->last_index()));
  hand.step(hand.acknowledge("c", 0));
  ASSERT_TRUE(hand.core->has_committed_in_term());
  EXPECT_EQ(hand.core->change_configuration(change(Kind::remove, "b")).refusal, Refusal::no_live_majority);
  EXPECT_EQ(hand.core->change_configuration(change(Kind::demote, "a")).refusal, Refusal::no_live_majority);
  hand.step(hand.acknowledge("c", hand.core->last_index()));
  EXPECT_EQ(hand.core->change_configuration(change(Kind::remove, "b")).refusal, Refusal::none);
}

TEST(CoreTransfer, TheOrderNamesTheLastEntryAndIsRepeatedAtEachHeartbeat) {
  Hand hand;
  lead_and_commit(hand);
  const TransferStart start = hand.core->transfer_leadership("c");
  ASSERT_EQ(start.refusal, Refusal::none);
  hand.take();
  ASSERT_EQ(hand.sent_to("c", MessageType::timeout_now).size(), 1u);
  EXPECT_EQ(hand.sent_to("c", MessageType::timeout_now)[0].log_index, hand.core->last_index());
  hand.tick();
  EXPECT_EQ(hand.sent_to("c", MessageType::timeout_now).size(), 2u);
}

TEST(CoreTransfer, EndsWithinAnElectionTimeoutAndLetsProposalsPass) {
  Hand hand;
  lead_and_commit(hand);
  const Payload command = payload("x");
  ASSERT_EQ(hand.core->propose(std::span(&command, 1)).refusal, Refusal::none);
  ASSERT_EQ(hand.core->transfer_leadership("c").refusal, Refusal::none);
  const io::Instant begun = hand.now;
  hand.persist();
  while (!hand.core->transfer_target().empty()) {
    hand.tick();
    hand.step(hand.acknowledge("b", hand.core->last_index()));
  }
  EXPECT_LE(hand.now - begun, Settings{}.election_timeout_max);
  EXPECT_TRUE(hand.sent_to("c", MessageType::timeout_now).empty());
  EXPECT_EQ(hand.core->role(), Role::leader);
  EXPECT_EQ(hand.core->propose(std::span(&command, 1)).refusal, Refusal::none);
}

TEST(CoreTransfer, TheTargetCampaignsAtOnceUnlessItsLogEndsBefore) {
  InitialState initial = with_log(3, {1, 3});
  initial.base_configuration = settled({"a", "b", "c"});
  Hand hand(initial);
  hand.step(hand.append("b", 3, 2, 3, {}, 0));
  Message order = hand.from("b", MessageType::timeout_now, 3);
  order.log_index = 3;
  order.log_term = 3;
  hand.step(order);
  EXPECT_EQ(hand.core->role(), Role::follower);
  order.log_index = 2;
  hand.step(order);
  EXPECT_EQ(hand.core->role(), Role::candidate);
  EXPECT_EQ(hand.core->term(), 4u);
  EXPECT_TRUE(hand.sent_to("c", MessageType::vote_request).empty());  // its own vote is not durable yet
  hand.persist();
  ASSERT_EQ(hand.sent_to("c", MessageType::vote_request).size(), 1u);
  EXPECT_TRUE(hand.sent_to("c", MessageType::vote_request)[0].is_transfer);
}

TEST(CoreStall, ALeaderWhoseDiskHangsIsGoneByTheBound) {
  Hand hand;
  lead_and_commit(hand);
  apply_all(hand);
  const Payload command = payload("x");
  ASSERT_EQ(hand.core->propose(std::span(&command, 1)).refusal, Refusal::none);
  hand.take();  // the write is handed out and never ends
  const io::Instant begun = hand.core->disk_waits_since();
  ASSERT_NE(begun, io::kNever);
  while (hand.core->role() == Role::leader) {
    hand.tick();
    hand.step(hand.acknowledge("b", hand.core->last_index()));
    hand.step(hand.acknowledge("c", hand.core->last_index()));
  }
  EXPECT_EQ(hand.now - begun, Settings{}.stall_bound);
  EXPECT_FALSE(hand.sent_to("b", MessageType::timeout_now).empty());
  // It does not even ask for votes while that lasts.
  hand.sent.clear();
  for (int i = 0; i < 20; ++i) hand.tick();
  EXPECT_TRUE(hand.sent.empty());
  hand.persist();
  apply_all(hand);
  EXPECT_EQ(hand.core->disk_waits_since(), io::kNever);
  hand.tick();
  EXPECT_EQ(hand.core->role(), Role::pre_candidate);
}

TEST(CoreStall, ASlowDiskIsNoStall) {
  Hand hand;
  lead_and_commit(hand);
  const Payload command = payload("x");
  for (int i = 0; i < 100; ++i) {
    apply_all(hand);
    ASSERT_EQ(hand.core->propose(std::span(&command, 1)).refusal, Refusal::none);
    hand.take();
    for (int beats = 0; beats < 15; ++beats) {
      hand.tick();
      hand.step(hand.acknowledge("b", hand.core->last_index()));
      hand.step(hand.acknowledge("c", hand.core->last_index()));
    }
    hand.persist();
  }
  EXPECT_EQ(hand.core->role(), Role::leader);
}

}  // namespace
}  // namespace raft::test
