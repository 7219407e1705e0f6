// The promises of raft/core.h that a single core can keep or break. Stories among several servers: tests/scenario.

#include "raft/core.h"

#include <gtest/gtest.h>

#include "tests/unit/raft/core_fixture.h"

namespace raft::test {
namespace {

// --- what goes in ---

TEST(RaftCore, DropsWhatIsNotForItOrOfAnotherCluster) {
  Hand hand;
  Message wrong = hand.append("b", 4, 0, 0, {}, 0);
  wrong.to = "c";
  hand.step(wrong);
  Message own = hand.append("b", 4, 0, 0, {}, 0);
  own.from = "a";
  hand.step(own);
  EXPECT_EQ(hand.core->term(), 0u);

  InitialState initial = with_log(1, {1});
  initial.applied = 1;  // its cluster is known for certain
  Hand settled_hand(initial);
  Message foreign = settled_hand.append("b", 4, 1, 1, {}, 0);
  foreign.cluster = ClusterId{9, 9};
  settled_hand.step(foreign);
  EXPECT_EQ(settled_hand.core->term(), 1u);
  EXPECT_TRUE(settled_hand.sent.empty());
}

TEST(RaftCore, DropsAppendsWithHolesOrFallingTermsOrBadConfigurations) {
  const std::vector<std::vector<Entry>> bad = {
      {command(2, 1)},                                                   // a hole after previous index 0
      {command(1, 1), command(3, 1)},                                    // a hole inside
      {command(1, 2), command(2, 1)},                                    // terms fall
      {command(1, 3)},                                                   // later than its leader
      {Entry{1, 1, EntryType::configuration, payload("not encoded")}},  //
  };
  for (const auto& entries : bad) {
    Hand hand;
    hand.step(hand.append("b", 2, 0, 0, entries, 1));
    EXPECT_EQ(hand.core->last_index(), 0u);
    EXPECT_EQ(hand.core->commit_index(), 0u);
  }
}

TEST(RaftCore, StartsOnlyFromAConsistentState) {
  const auto start = [](InitialState initial) { Hand hand(std::move(initial)); };
  EXPECT_DEATH(start(with_log(1, {1, 2})), "term");
  InitialState hole = with_log(1, {1, 1});
  hole.entries[1].index = 5;
  EXPECT_DEATH(start(hole), "one after the other");
  InitialState ahead = with_log(1, {1});
  ahead.applied = 2;
  EXPECT_DEATH(start(ahead), "within the log");
}

TEST(RaftCore, TheClockNeverGoesBack) {
  Hand hand;
  hand.core->tick(hand.now);
  EXPECT_DEATH(hand.core->tick(hand.now - io::Duration(1)), "never goes back");
}

// --- elections ---

TEST(RaftCore, ElectionTimeoutsAreDrawnFromTheirRange) {
  io::Instant least = io::kNever;
  io::Instant most{};
  for (std::uint64_t key = 0; key < 200; ++key) {
    InitialState initial;
    initial.base_configuration = settled({"a", "b", "c"});
    const io::Instant now{std::chrono::seconds(1)};
    Core core(Identity{"a", store_of("a"), 1, ClusterId{1, 1}}, Settings{}, std::move(initial), io::RandomStream(key), now);
    const io::Duration wait = core.next_deadline() - now;
    EXPECT_GE(wait, std::chrono::milliseconds(400));
    EXPECT_LE(wait, std::chrono::milliseconds(700));
    least = std::min(least, core.next_deadline());
    most = std::max(most, core.next_deadline());
  }
  EXPECT_GT(most - least, std::chrono::milliseconds(200));
}

TEST(RaftCore, ASingleVoterDoesNotWaitForItself) {
  Hand hand({}, {}, {"a"});
  EXPECT_EQ(hand.core->next_deadline(), hand.now);
  hand.tick();
  hand.persist();
  EXPECT_EQ(hand.core->role(), Role::leader);
  EXPECT_EQ(hand.core->commit_index(), 1u);
}

TEST(RaftCore, NonVotersAndStrangersHaveNoElectionDeadline) {
  Configuration watching = settled({"a", "b"});
  watching.servers[0].voter = false;
  InitialState initial;
  initial.base_configuration = watching;
  EXPECT_EQ(Hand(initial).core->next_deadline(), io::kNever);

  Configuration other_store = settled({"a", "b"});
  other_store.servers[0].store = StoreId{99, 99};
  initial.base_configuration = other_store;
  EXPECT_EQ(Hand(initial).core->next_deadline(), io::kNever);
}

TEST(RaftCore, VoteRequestsLeaveOnlyAfterTheOwnVoteIsDurable) {
  Hand hand;
  hand.tick();
  hand.step(hand.grant("b", MessageType::pre_vote_reply, 0, 1));
  EXPECT_EQ(hand.core->role(), Role::candidate);
  EXPECT_TRUE(hand.sent_to("c", MessageType::vote_request).empty());
  EXPECT_EQ(hand.held.size(), 2u);
  hand.persist();
  EXPECT_EQ(hand.sent_to("c", MessageType::vote_request).size(), 1u);
}

TEST(RaftCore, OwnVoteCountsOnlyOnceItIsDurable) {
  Hand hand;
  hand.tick();
  hand.step(hand.grant("b", MessageType::pre_vote_reply, 0, 1));
  hand.step(hand.grant("b", MessageType::vote_reply, 1, 1));
  EXPECT_EQ(hand.core->role(), Role::candidate);
  hand.persist();
  EXPECT_EQ(hand.core->role(), Role::leader);
}

TEST(RaftCore, VotesThroughAnotherStoreDoNotCount) {
  Hand hand;
  hand.tick();
  Message grant = hand.grant("b", MessageType::pre_vote_reply, 0, 1);
  grant.from_store = StoreId{99, 99};
  hand.step(grant);
  EXPECT_EQ(hand.core->role(), Role::pre_candidate);
  hand.step(hand.grant("c", MessageType::pre_vote_reply, 0, 1));
  EXPECT_EQ(hand.core->role(), Role::candidate);
}

TEST(RaftCore, ARefusedPreVoteTeachesTheNewerTerm) {
  Hand hand;
  hand.tick();
  Message refusal = hand.grant("b", MessageType::pre_vote_reply, 8, 1);
  refusal.granted = false;
  hand.step(refusal);
  EXPECT_EQ(hand.core->term(), 8u);
  EXPECT_EQ(hand.core->role(), Role::follower);
}

TEST(RaftCore, PreVotesMoveNoTerm) {
  Hand hand;
  Message request = hand.from("b", MessageType::pre_vote_request, 20);
  request.campaign_term = 21;
  hand.step(request);
  EXPECT_EQ(hand.core->term(), 0u);
  ASSERT_EQ(hand.sent_to("b", MessageType::pre_vote_reply).size(), 1u);
  EXPECT_TRUE(hand.sent_to("b", MessageType::pre_vote_reply)[0].granted);
}

TEST(RaftCore, AVoteIsAnsweredAgainForTheSameCandidateOnly) {
  Hand hand;
  Message request = hand.from("b", MessageType::vote_request, 3);
  request.campaign_term = 3;
  hand.step(request);
  hand.persist();
  hand.step(request);
  EXPECT_EQ(hand.sent_to("b", MessageType::vote_reply).size(), 2u);
  EXPECT_TRUE(hand.sent_to("b", MessageType::vote_reply)[1].granted);
  Message other = hand.from("c", MessageType::vote_request, 3);
  other.campaign_term = 3;
  hand.step(other);
  ASSERT_EQ(hand.sent_to("c", MessageType::vote_reply).size(), 1u);
  EXPECT_FALSE(hand.sent_to("c", MessageType::vote_reply)[0].granted);
}

TEST(RaftCore, WhoHearsALeaderKeepsItsTermFromCandidates) {
  Hand hand;
  hand.step(hand.append("b", 1, 0, 0, {}, 0));
  hand.persist();
  Message request = hand.from("c", MessageType::vote_request, 9);
  request.campaign_term = 9;
  hand.now += std::chrono::milliseconds(399);
  hand.step(request);
  EXPECT_EQ(hand.core->term(), 1u);
  hand.now += std::chrono::milliseconds(1);
  hand.step(request);
  EXPECT_EQ(hand.core->term(), 9u);
}

TEST(RaftCore, RoleChangesAreReportedWithTheirReason) {
  Hand hand;
  hand.lead();
  ASSERT_EQ(hand.changes.size(), 3u);
  EXPECT_EQ(hand.changes[0].role, Role::pre_candidate);
  EXPECT_EQ(hand.changes[1].role, Role::candidate);
  EXPECT_EQ(hand.changes[2].role, Role::leader);
  EXPECT_EQ(hand.changes[2].leader, "a");
  EXPECT_STREQ(hand.changes[2].reason, "won the election");
}

// --- following ---

TEST(RaftCore, AcknowledgesEntriesOnlyOnceDurableAndHeartbeatsAtOnce) {
  Hand hand;
  hand.step(hand.append("b", 1, 0, 0, {}, 0));
  hand.persist();
  hand.sent.clear();
  hand.step(hand.append("b", 1, 0, 0, {command(1, 1), command(2, 1)}, 0));
  EXPECT_TRUE(hand.sent.empty());
  hand.step(hand.append("b", 1, 2, 1, {}, 0));
  ASSERT_EQ(hand.sent.size(), 1u);
  EXPECT_EQ(hand.sent[0].log_index, 2u);
  EXPECT_EQ(hand.sent[0].match, 0u);
  hand.persist();
  ASSERT_EQ(hand.sent.size(), 2u);
  EXPECT_EQ(hand.sent[1].match, 2u);
}

TEST(RaftCore, ACommitAdvanceAloneIsNotAnsweredAndEveryNewRoundIs) {
  Hand hand;
  Message request = hand.append("b", 1, 0, 0, {command(1, 1)}, 0);
  request.round = 3;
  hand.step(request);
  hand.persist();
  hand.sent.clear();
  Message advance = hand.append("b", 1, 1, 1, {}, 1);
  advance.round = 3;
  hand.step(advance);
  EXPECT_EQ(hand.core->commit_index(), 1u);
  EXPECT_TRUE(hand.sent.empty());
  advance.round = 4;
  hand.step(advance);
  ASSERT_EQ(hand.sent.size(), 1u);
  EXPECT_EQ(hand.sent[0].round, 4u);
  // Entries are answered each time: the answer before may have been lost.
  request.round = 4;
  hand.step(request);
  EXPECT_EQ(hand.sent.size(), 2u);
}

TEST(RaftCore, OneSyncIsAcknowledgedOnceForAllItsAppends) {
  Hand hand;
  hand.step(hand.append("b", 1, 0, 0, {}, 0));
  hand.persist();
  hand.sent.clear();
  for (Index index = 1; index <= 10; ++index) {
    hand.core->step(hand.append("b", 1, index - 1, index == 1 ? 0 : 1, {command(index, 1)}, 0), hand.now);
  }
  hand.persist();
  ASSERT_EQ(hand.sent.size(), 1u);
  EXPECT_EQ(hand.sent[0].match, 10u);
}

TEST(RaftCore, ARefusalNamesAPlaceWhereTheLogsMayMeet) {
  Hand hand(with_log(5, {1, 1, 4, 4, 5}));
  hand.step(hand.append("b", 6, 9, 3, {}, 0));
  hand.persist();
  ASSERT_EQ(hand.sent.size(), 1u);
  EXPECT_TRUE(hand.sent[0].rejected);
  EXPECT_EQ(hand.sent[0].log_index, 9u);
  EXPECT_EQ(hand.sent[0].hint_index, 2u);
  EXPECT_EQ(hand.sent[0].hint_term, 1u);
}

TEST(RaftCore, ReplacingASuffixIsSaidToTheDisk) {
  Hand hand(with_log(2, {1, 2, 2}));
  hand.step(hand.append("b", 3, 1, 1, {command(2, 3)}, 0));
  ASSERT_EQ(hand.writes.size(), 1u);
  EXPECT_TRUE(hand.writes[0].replaces_suffix);
  EXPECT_EQ(hand.writes[0].entries.front().index, 2u);
  EXPECT_EQ(hand.writes[0].append_term, 3u);
  EXPECT_EQ(hand.core->durable_index(), 1u);
  hand.persist();
  hand.step(hand.append("b", 3, 2, 3, {command(3, 3)}, 0));
  ASSERT_EQ(hand.writes.size(), 1u);
  EXPECT_FALSE(hand.writes[0].replaces_suffix);
}

TEST(RaftCore, EntriesAreHandedOutForApplyOnceCommittedAndDurable) {
  Hand hand;
  hand.step(hand.append("b", 1, 0, 0, {command(1, 1), command(2, 1)}, 1));
  EXPECT_EQ(hand.core->commit_index(), 1u);
  EXPECT_TRUE(hand.committed.empty());
  hand.persist();
  ASSERT_EQ(hand.committed.size(), 1u);
  hand.step(hand.append("b", 1, 2, 1, {}, 2));
  EXPECT_EQ(hand.committed.size(), 2u);
  hand.core->applied(2);
  EXPECT_EQ(hand.core->applied_index(), 2u);
  EXPECT_EQ(hand.core->unapplied_bytes(), 0u);
}

TEST(RaftCore, HandsOutForApplyNoMoreThanItsBound) {
  Settings settings;
  settings.applying_bytes_max = 3 * (Entry::kFrameBytes + 1);
  Hand hand({}, settings);
  std::vector<Entry> entries;
  for (Index index = 1; index <= 10; ++index) entries.push_back(command(index, 1));
  hand.step(hand.append("b", 1, 0, 0, entries, 10));
  hand.persist();
  EXPECT_EQ(hand.committed.size(), 3u);
  hand.core->applied(2);
  hand.take();
  EXPECT_EQ(hand.committed.size(), 5u);
  hand.core->applied(5);
  hand.take();
  EXPECT_EQ(hand.committed.size(), 8u);
}

TEST(RaftCore, AFollowersLeaderContactIsItsOwnSendTimeEchoed) {
  Hand hand;
  hand.step(hand.append("b", 1, 0, 0, {}, 0));
  hand.persist();
  EXPECT_FALSE(hand.core->leader_contact().has_value());
  const io::Instant answered = hand.now;
  hand.now += std::chrono::seconds(3);
  Message next = hand.append("b", 1, 0, 0, {}, 0);
  next.echo_ns = hand.sent.back().sent_at_ns;
  next.echo_session = hand.sent.back().session;
  hand.step(next);
  ASSERT_TRUE(hand.core->leader_contact().has_value());
  EXPECT_EQ(*hand.core->leader_contact(), answered);

  // Another life's echo, or one from the future, proves nothing.
  next.echo_ns = io::to_ns(hand.now);
  next.echo_session = 12345;
  hand.step(next);
  EXPECT_EQ(*hand.core->leader_contact(), answered);
  next.echo_session = hand.sent.back().session;
  next.echo_ns = io::to_ns(hand.now) + 1;
  hand.step(next);
  EXPECT_EQ(*hand.core->leader_contact(), answered);

  // A new term begins without contact.
  hand.step(hand.append("c", 2, 0, 0, {}, 0));
  EXPECT_FALSE(hand.core->leader_contact().has_value());
}

// --- leading ---

TEST(RaftCore, ProposalsGetConsecutiveIndexesOfTheLeadersTerm) {
  Hand hand;
  hand.lead();
  const std::vector<Payload> three{payload("p"), payload("q"), nullptr};
  const ProposeResult result = hand.core->propose(three);
  EXPECT_EQ(result.refusal, Refusal::none);
  EXPECT_EQ(result.term, 1u);
  EXPECT_EQ(result.first, 2u);
  EXPECT_EQ(hand.core->last_index(), 4u);
  EXPECT_EQ(hand.core->log().at(3).bytes(), "q");
  EXPECT_EQ(hand.core->log().at(4).bytes(), "");
  EXPECT_EQ(hand.core->propose({}).refusal, Refusal::none);
  EXPECT_EQ(hand.core->last_index(), 4u);
}

TEST(RaftCore, RefusedProposalsSayWhyAndChangeNothing) {
  Settings settings;
  settings.payload_bytes_max = 10;
  settings.unapplied_bytes_max = 200;
  Hand hand({}, settings);
  const std::vector<Payload> one{payload("p")};
  hand.step(hand.append("b", 1, 0, 0, {}, 0));
  const ProposeResult refused = hand.core->propose(one);
  EXPECT_EQ(refused.refusal, Refusal::not_leader);
  EXPECT_EQ(refused.leader, "b");
  hand.persist();
  hand.now += std::chrono::seconds(1);
  hand.lead();
  const std::vector<Payload> with_large{payload("p"), payload("larger than ten")};
  EXPECT_EQ(hand.core->propose(with_large).refusal, Refusal::payload_too_large);
  EXPECT_EQ(hand.core->last_index(), 1u);
  while (hand.core->propose(one).refusal == Refusal::none) ASSERT_LT(hand.core->last_index(), 100u);
  EXPECT_EQ(hand.core->propose(one).refusal, Refusal::too_much_backlog);
  EXPECT_GE(hand.core->unapplied_bytes(), settings.unapplied_bytes_max);
}

TEST(RaftCore, RequestsGoOutWithoutWaitingForAnswersUpToTheWindow) {
  Settings settings;
  settings.flight.messages_max = 3;
  Hand hand({}, settings);
  hand.lead();
  hand.step(hand.acknowledge("b", 1));
  hand.sent.clear();
  for (int i = 0; i < 5; ++i) {
    const std::vector<Payload> one{payload("p")};
    hand.core->propose(one);
    hand.take();
  }
  EXPECT_EQ(hand.sent_to("b", MessageType::append_request).size(), 3u);
  // c has not answered its first probe: it gets nothing more until it does.
  EXPECT_EQ(hand.sent_to("c", MessageType::append_request).size(), 0u);
  hand.step(hand.acknowledge("b", 2));
  EXPECT_EQ(hand.sent_to("b", MessageType::append_request).back().entries.size(), 2u);
}

TEST(RaftCore, AServerInANewSessionIsSentWhatItsOldLifeLost) {
  Settings settings;
  settings.flight.messages_max = 2;
  Hand hand({}, settings);
  hand.lead();
  hand.step(hand.acknowledge("b", 1));
  for (int i = 0; i < 4; ++i) {
    const std::vector<Payload> one{payload("p")};
    hand.core->propose(one);
    hand.take();
  }
  hand.sent.clear();
  Message reborn = hand.acknowledge("b", 1);
  reborn.session = 4242;
  hand.step(reborn);
  ASSERT_EQ(hand.sent_to("b", MessageType::append_request).size(), 1u);
  EXPECT_EQ(hand.sent_to("b", MessageType::append_request)[0].log_index, 1u);
  EXPECT_EQ(hand.sent_to("b", MessageType::append_request)[0].entries.size(), 4u);
}

TEST(RaftCore, CommitsOnTheOthersDisksAndTellsThemAtOnce) {
  Hand hand;
  hand.lead();
  hand.step(hand.acknowledge("b", 1));
  hand.step(hand.acknowledge("c", 1));
  hand.persist();
  hand.core->applied(1);
  const std::vector<Payload> one{payload("p")};
  hand.core->propose(one);
  hand.take();
  hand.step(hand.acknowledge("b", 2));
  EXPECT_EQ(hand.core->commit_index(), 1u);
  hand.sent.clear();
  hand.step(hand.acknowledge("c", 2));
  EXPECT_EQ(hand.core->commit_index(), 2u);
  EXPECT_EQ(hand.core->durable_index(), 1u);
  EXPECT_EQ(hand.committed.size(), 1u);
  ASSERT_EQ(hand.sent_to("b", MessageType::append_request).size(), 1u);
  EXPECT_EQ(hand.sent_to("b", MessageType::append_request)[0].commit, 2u);
  EXPECT_TRUE(hand.sent_to("b", MessageType::append_request)[0].entries.empty());
  hand.persist();
  EXPECT_EQ(hand.committed.size(), 2u);
}

TEST(RaftCore, AnswersThroughAStoreThatWasNotAdmittedCommitNothing) {
  Hand hand;
  hand.lead();
  Message stranger = hand.acknowledge("b", 1);
  stranger.from_store = StoreId{99, 99};
  hand.step(stranger);
  EXPECT_EQ(hand.core->commit_index(), 0u);
  EXPECT_FALSE(hand.core->progress()[0].counts);
  hand.step(hand.acknowledge("c", 1));
  EXPECT_EQ(hand.core->commit_index(), 1u);
}

TEST(RaftCore, AnswersThatNoFollowerCouldGiveAreDroppedWhole) {
  Hand hand;
  hand.lead();
  hand.step(hand.acknowledge("b", 1));
  const std::vector<Payload> one{payload("p")};
  hand.core->propose(one);
  hand.persist();
  ASSERT_EQ(hand.core->commit_index(), 1u);
  ASSERT_EQ(hand.core->last_index(), 2u);
  const auto contact_of = [&](const ServerId& id) {
    for (const ServerProgress& each : hand.core->progress()) {
      if (each.id == id) return each.last_contact;
    }
    return io::Instant{};
  };
  const io::Instant contact = contact_of("b");
  hand.now += std::chrono::milliseconds(10);
  // More durable than proven; proven beyond the end of this log; both.
  const std::vector<std::pair<Index, Index>> implausible = {{1, 2}, {3, 2}, {3, 3}, {100, 100}, {~Index{0}, ~Index{0}}};
  for (const auto& [proven, match] : implausible) {
    SCOPED_TRACE(std::to_string(proven) + "/" + std::to_string(match));
    Message answer = hand.acknowledge("b", match);
    answer.log_index = proven;
    answer.echo_ns = io::to_ns(hand.now);
    hand.step(answer);
    EXPECT_EQ(hand.core->role(), Role::leader);
    EXPECT_EQ(hand.core->commit_index(), 1u) << "it commits nothing";
    EXPECT_EQ(hand.core->progress()[0].match, 1u) << "it is no progress";
    EXPECT_EQ(contact_of("b"), contact) << "it is no sign of life";
  }
  // A refusal may name a place beyond this log's end (the request was an older leader's), but not more durable than proven.
  Message refusal = hand.acknowledge("b", 3);
  refusal.log_index = 2;
  refusal.rejected = true;
  hand.step(refusal);
  EXPECT_EQ(hand.core->progress()[0].match, 1u);
  hand.step(hand.acknowledge("b", 2));
  EXPECT_EQ(hand.core->commit_index(), 2u) << "what is plausible counts as before";
}

TEST(RaftCore, HeartbeatsComeAtTheirInterval) {
  Hand hand;
  hand.lead();
  hand.step(hand.acknowledge("b", 1));
  for (int i = 0; i < 5; ++i) {
    hand.sent.clear();
    const io::Instant before = hand.now;
    hand.tick();
    EXPECT_EQ(hand.now - before, i == 0 ? hand.now - before : io::Duration(std::chrono::milliseconds(50)));
    EXPECT_EQ(hand.sent_to("b", MessageType::append_request).size(), 1u);
    EXPECT_EQ(hand.sent_to("c", MessageType::append_request).size(), 1u);
    hand.step(hand.acknowledge("b", 1));
  }
}

TEST(RaftCore, ALeaderWithoutContactToAQuorumStepsDown) {
  Hand hand;
  hand.lead();
  hand.step(hand.acknowledge("b", 1));
  const io::Instant contact = *hand.core->leader_contact();
  while (hand.core->role() == Role::leader) {
    ASSERT_LT(hand.now - contact, std::chrono::seconds(1));
    hand.tick();
  }
  EXPECT_GT(hand.now - contact, std::chrono::milliseconds(700));
  EXPECT_EQ(hand.core->term(), 1u);
  EXPECT_EQ(hand.core->vote(), "a");
}

TEST(RaftCore, AReadNeedsARoundBegunAfterIt) {
  Hand hand;
  hand.lead();
  hand.step(hand.acknowledge("b", 1));
  const Message older = hand.acknowledge("b", 1);
  EXPECT_EQ(hand.core->read_index(5).refusal, Refusal::none);
  hand.take();
  hand.step(older);
  EXPECT_TRUE(hand.reads.empty());
  hand.step(hand.acknowledge("b", 1));
  ASSERT_EQ(hand.reads.size(), 1u);
  EXPECT_TRUE(hand.reads[0].confirmed);
  EXPECT_EQ(hand.reads[0].context, 5u);
  EXPECT_EQ(hand.reads[0].index, 1u);
}

TEST(RaftCore, ReadsAreBoundedAndFailWithTheLeadership) {
  Settings settings;
  settings.pending_reads_max = 2;
  Hand hand({}, settings);
  EXPECT_EQ(hand.core->read_index(1).refusal, Refusal::not_leader);
  hand.lead();
  EXPECT_EQ(hand.core->read_index(1).refusal, Refusal::none);
  EXPECT_EQ(hand.core->read_index(2).refusal, Refusal::none);
  EXPECT_EQ(hand.core->read_index(3).refusal, Refusal::too_many_reads);
  hand.step(hand.append("c", 7, 0, 0, {}, 0));
  ASSERT_EQ(hand.reads.size(), 2u);
  EXPECT_FALSE(hand.reads[0].confirmed);
  EXPECT_FALSE(hand.reads[1].confirmed);
}

TEST(RaftCore, TheFirstLeaderFixesTheClusterAndTheStoresItHeard) {
  InitialState initial;
  initial.base_configuration = bootstrap_configuration({{"a", "a:1"}, {"b", "b:1"}, {"c", "c:1"}});
  Hand hand(initial);
  EXPECT_FALSE(hand.core->cluster().is_known());
  hand.tick();
  Message pre = hand.grant("b", MessageType::pre_vote_reply, 0, 1);
  pre.cluster = {};
  hand.step(pre);
  hand.persist();
  Message vote = hand.grant("b", MessageType::vote_reply, 1, 1);
  vote.cluster = {};
  hand.step(vote);
  hand.persist();
  ASSERT_EQ(hand.core->role(), Role::leader);
  const Configuration& configuration = hand.core->configuration();
  EXPECT_EQ(configuration.cluster, (ClusterId{6, 6}));
  EXPECT_EQ(configuration.find("a")->store, store_of("a"));
  EXPECT_EQ(configuration.find("b")->store, store_of("b"));
  EXPECT_FALSE(configuration.find("c")->store.is_known());
  EXPECT_FALSE(hand.core->cluster().is_known()) << "not before it has committed";

  // The store of the third is recorded when it is heard, and counts at once.
  Message third = hand.acknowledge("c", 1);
  third.cluster = {};
  hand.step(third);
  EXPECT_EQ(hand.core->commit_index(), 1u);
  EXPECT_EQ(hand.core->configuration().find("c")->store, store_of("c"));
  EXPECT_EQ(hand.core->cluster(), (ClusterId{6, 6}));
}

TEST(RaftCore, ALaterNoticeOfAnOlderLeadersEntriesIsIgnored) {
  Hand hand;
  hand.step(hand.append("b", 1, 0, 0, {command(1, 1), command(2, 1)}, 0));
  hand.step(hand.append("c", 2, 0, 0, {command(1, 2)}, 0));
  ASSERT_EQ(hand.writes.size(), 2u);
  hand.core->hard_state_persisted(*hand.writes[0].hard_state);
  hand.core->persisted(hand.writes[0].append_term, 2);
  EXPECT_EQ(hand.core->durable_index(), 0u);
  hand.core->hard_state_persisted(*hand.writes[1].hard_state);
  hand.core->persisted(hand.writes[1].append_term, 1);
  EXPECT_EQ(hand.core->durable_index(), 1u);
}

// --- snapshots ---

SnapshotOffer offer_of(const ServerId& from, Term term, Index index, Term label_term) {
  return SnapshotOffer{from, "a", term, store_of(from), kCluster, 1000, SnapshotLabel{index, label_term, 0, settled({"a", "b", "c"})}};
}

TEST(RaftCore, ACandidateTakesTheImageOfItsOwnTermsLeader) {
  Hand hand(with_log(4, {1, 4}));
  hand.tick();
  hand.step(hand.grant("b", MessageType::pre_vote_reply, 4, 5));
  hand.persist();
  ASSERT_EQ(hand.core->role(), Role::candidate);
  ASSERT_EQ(hand.core->term(), 5u);
  const OfferAnswer answer = hand.core->offer_snapshot(offer_of("c", 5, 100, 3), hand.now);
  EXPECT_EQ(answer.verdict, OfferAnswer::Verdict::wanted);
  EXPECT_EQ(hand.core->role(), Role::follower);
  EXPECT_EQ(hand.core->leader(), "c");
  EXPECT_EQ(hand.core->vote(), "a");
}

TEST(RaftCore, ImagesOfDeposedLeadersAndOtherClustersAreRefused) {
  Hand hand(with_log(4, {1, 4}));
  EXPECT_EQ(hand.core->offer_snapshot(offer_of("c", 3, 100, 3), hand.now).verdict, OfferAnswer::Verdict::refused);
  Hand other(with_log(4, {1, 4}));
  other.step(other.append("b", 4, 2, 4, {}, 2));  // knows its cluster now
  ASSERT_TRUE(other.core->cluster().is_known());
  SnapshotOffer foreign = offer_of("b", 4, 100, 3);
  foreign.cluster = foreign.label.configuration.cluster = ClusterId{9, 9};
  EXPECT_EQ(other.core->offer_snapshot(foreign, other.now).verdict, OfferAnswer::Verdict::refused);
  SnapshotOffer mixed = offer_of("b", 4, 100, 3);
  mixed.label.configuration.cluster = ClusterId{9, 9};
  EXPECT_EQ(other.core->offer_snapshot(mixed, other.now).verdict, OfferAnswer::Verdict::refused);
}

TEST(RaftCore, AnImageIsInstalledAfterTheAppliesAndTheLogsResetAndNothingIsAppliedMeanwhile) {
  Hand hand(with_log(4, {1, 4}));
  hand.step(hand.append("b", 4, 2, 4, {}, 2));
  ASSERT_EQ(hand.committed.size(), 2u);
  hand.core->offer_snapshot(offer_of("b", 4, 10, 4), hand.now);
  hand.core->snapshot_received(offer_of("b", 4, 10, 4).label);
  EXPECT_EQ(hand.core->commit_index(), 10u);
  Ready ready = hand.core->ready();
  ASSERT_TRUE(ready.log_reset.has_value());
  EXPECT_EQ(ready.log_reset->index, 10u);
  EXPECT_FALSE(ready.install.has_value());
  hand.core->applied(2);
  EXPECT_FALSE(hand.core->ready().install.has_value()) << "the reset is not durable";
  hand.core->log_reset(10);
  ready = hand.core->ready();
  ASSERT_TRUE(ready.install.has_value());
  EXPECT_EQ(ready.install->index, 10u);
  hand.core->step(hand.append("b", 4, 10, 4, {command(11, 4)}, 11), hand.now);
  ready = hand.core->ready();
  ASSERT_EQ(ready.entries.size(), 1u);
  EXPECT_TRUE(ready.committed.empty());
  hand.core->persisted(ready.append_term, 11);
  EXPECT_TRUE(hand.core->ready().committed.empty());
  hand.core->snapshot_installed(10);
  EXPECT_EQ(hand.core->applied_index(), 10u);
  ready = hand.core->ready();
  ASSERT_EQ(ready.committed.size(), 1u);
  EXPECT_EQ(ready.committed[0].index, 11u);
}

TEST(RaftCore, NoticesOfEntriesThatAnImageReplacedCountForNothing) {
  Hand hand(with_log(2, {1}));
  hand.step(hand.append("b", 2, 1, 1, {command(2, 2), command(3, 2)}, 1));  // handed out, not durable
  hand.core->offer_snapshot(offer_of("c", 5, 2, 4), hand.now);
  hand.core->snapshot_received(offer_of("c", 5, 2, 4).label);
  hand.take();
  EXPECT_EQ(hand.core->last_index(), 2u);
  hand.core->persisted(2, 3);
  EXPECT_EQ(hand.core->durable_index(), 2u);
  EXPECT_EQ(hand.core->log().term(2), 4u);
}

TEST(RaftCore, CompactionNeverPassesASnapshotOrWhatIsApplied) {
  Hand hand(with_log(1, {1, 1, 1, 1}));
  hand.step(hand.append("b", 1, 4, 1, {}, 4));
  hand.core->applied(4);
  EXPECT_EQ(hand.core->compact(4), 0u) << "there is no snapshot";
  const std::optional<SnapshotLabel> label = hand.core->label_at(3);
  ASSERT_TRUE(label.has_value());
  EXPECT_EQ(label->term, 1u);
  EXPECT_EQ(label->configuration, settled({"a", "b", "c"}));
  hand.core->snapshot_available(*label);
  EXPECT_EQ(hand.core->compact(4), 3u);
  EXPECT_EQ(hand.core->compact(2), 3u);
  EXPECT_FALSE(hand.core->label_at(2).has_value());
  hand.core->snapshot_available(*label);  // once more
  EXPECT_EQ(hand.core->snapshot().index, 3u);
}

TEST(RaftCore, MemoryHoldsABoundedTailOfWhatIsAppliedAndEverythingAbove) {
  Settings settings;
  settings.tail_bytes_max = 200;
  InitialState initial = with_log(1, std::vector<Term>(100, 1));
  Hand hand(initial, settings);
  EXPECT_EQ(hand.core->log().held_from(), 1u) << "nothing is applied yet";
  hand.step(hand.append("b", 1, 100, 1, {}, 90));
  hand.core->applied(60);
  EXPECT_EQ(hand.core->log().held_from(), 61u);
  hand.core->applied(90);
  EXPECT_EQ(hand.core->log().held_from(), 91u);
  EXPECT_EQ(hand.core->log().term(5), 1u);
  EXPECT_EQ(hand.core->log().base_index(), 0u);
}

TEST(RaftCore, AStartNeedsNotTheEntriesThatAreAppliedInMemory) {
  InitialState initial;
  initial.hard_state.term = 3;
  initial.base_index = 10;
  initial.base_term = 1;
  initial.snapshot = SnapshotLabel{12, 1, 4, settled({"a", "b"})};
  initial.older_last = 20;
  initial.older_terms = {TermRun{11, 1}, TermRun{15, 2}};
  initial.older_configurations = {{14, settled({"a", "b", "c"})}};
  initial.entries = {command(21, 3)};
  initial.applied = 20;
  Hand hand(initial);
  EXPECT_EQ(hand.core->log().held_from(), 21u);
  EXPECT_EQ(hand.core->log().term(14), 1u);
  EXPECT_EQ(hand.core->log().term(15), 2u);
  EXPECT_EQ(hand.core->configuration(), settled({"a", "b", "c"}));
  EXPECT_EQ(hand.core->configurations().at(13), settled({"a", "b"}));
  EXPECT_EQ(hand.core->commit_index(), 20u);
}

TEST(RaftCore, AStartWithASnapshotOfALaterTermGoesOnInThatTermWithoutAVote) {
  InitialState initial;
  initial.hard_state = HardState{3, "b"};
  initial.base_index = 10;
  initial.base_term = 5;
  initial.snapshot = SnapshotLabel{10, 5, 4, settled({"a", "b", "c"})};
  initial.applied = 10;
  Hand hand(initial);
  const Ready ready = hand.core->ready();
  ASSERT_TRUE(ready.hard_state.has_value());
  EXPECT_EQ(*ready.hard_state, (HardState{5, ""}));
}

}  // namespace
}  // namespace raft::test
