// Messages that no server of a sound cluster sends: what one core does with them.

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/raft/core_fixture.h"

namespace raft::test {
namespace {

// The reasons of the messages refused so far, one a line; takes what is ready.
std::string refused(Hand& hand) {
  std::string all;
  while (hand.core->has_ready()) {
    const Ready ready = hand.core->ready();
    for (const MessageRefusal& refusal : ready.message_refusals) {
      all += refusal.from + ", term " + std::to_string(refusal.term) + ": " + refusal.reason + "\n";
    }
  }
  return all;
}

SnapshotOffer offer_of(const Hand& hand, const ServerId& from, Term term, Index index, Term index_term) {
  SnapshotOffer offer;
  offer.from = from;
  offer.to = hand.core->id();
  offer.term = term;
  offer.from_store = store_of(from);
  offer.cluster = kCluster;
  offer.session = 9;
  offer.label = SnapshotLabel{index, index_term, 0, settled({"a", "b", "c"})};
  return offer;
}

// Scenario NW-08: a stranger's well-formed request, or that of a second leader of the term (a voter wiped before the first commit may
// have voted for both).
TEST(CoreHostile, ALeaderDropsTheRequestOfASecondLeaderOfItsTermAndLeadsOn) {
  for (const ClusterId& cluster : {kCluster, ClusterId{}}) {
    Hand hand;
    hand.lead();
    const Term term = hand.core->term();
    const Index last = hand.core->last_index();
    Message request = hand.append("x", term, 0, 0, {command(1, term), command(2, term)}, 2);
    request.cluster = cluster;
    hand.core->step(std::move(request), hand.now);
    EXPECT_EQ(refused(hand), "x, term " + std::to_string(term) + ": this server leads that term\n");
    EXPECT_EQ(hand.core->role(), Role::leader);
    EXPECT_EQ(hand.core->last_index(), last);
    EXPECT_EQ(hand.core->commit_index(), 0u);
    const OfferAnswer answer = hand.core->offer_snapshot(offer_of(hand, "x", term, 7, term), hand.now);
    EXPECT_EQ(answer.verdict, OfferAnswer::Verdict::refused);
    EXPECT_STREQ(answer.reason, "this server leads that term");
    EXPECT_NE(refused(hand), "");
    hand.step(hand.acknowledge("b", last));
    EXPECT_EQ(hand.core->commit_index(), last);
  }
}

// Scenario NW-08.
TEST(CoreHostile, AFollowerDropsTheRequestOfASecondLeaderAndFollowsTheFirst) {
  Hand hand;
  hand.step(hand.append("b", 1, 0, 0, {command(1, 1)}, 0));
  hand.persist();
  const io::Instant deadline = hand.core->next_deadline();
  hand.now += std::chrono::milliseconds(100);
  hand.core->step(hand.append("c", 1, 0, 0, {command(1, 1, "other")}, 1), hand.now);
  EXPECT_EQ(refused(hand), "c, term 1: another server leads that term\n");
  EXPECT_EQ(hand.core->offer_snapshot(offer_of(hand, "c", 1, 7, 1), hand.now).verdict, OfferAnswer::Verdict::refused);
  EXPECT_NE(refused(hand), "");
  EXPECT_EQ(hand.core->leader(), "b");
  EXPECT_EQ(hand.core->commit_index(), 0u);
  EXPECT_EQ(hand.core->next_deadline(), deadline) << "it puts off no election";
  hand.step(hand.append("b", 1, 1, 1, {command(2, 1)}, 1));
  EXPECT_EQ(hand.core->last_index(), 2u);
  EXPECT_EQ(hand.core->commit_index(), 1u);
}

// Scenario NW-08.
TEST(CoreHostile, AnAppendAgainstWhatIsCommittedIsDroppedAndItsSenderNotFollowed) {
  InitialState initial = with_log(3, {1, 2, 2, 3});
  initial.applied = 3;
  Hand hand(initial);
  ASSERT_EQ(hand.core->commit_index(), 3u);
  const io::Instant deadline = hand.core->next_deadline();
  hand.now += std::chrono::milliseconds(1);
  // From an index that matches; from the begin; and with the entry at fault behind ones that match.
  for (Message request : {hand.append("b", 3, 1, 1, {command(2, 3)}, 0), hand.append("b", 3, 0, 0, {command(1, 3)}, 0),
                          hand.append("b", 3, 0, 0, {command(1, 1), command(2, 2), command(3, 3), command(4, 3)}, 4)}) {
    hand.core->step(std::move(request), hand.now);
    EXPECT_EQ(refused(hand), "b, term 3: it contradicts an entry that is committed here\n");
    EXPECT_EQ(hand.core->last_index(), 4u);
    EXPECT_EQ(hand.core->log().term(2), 2u);
    EXPECT_EQ(hand.core->next_deadline(), deadline);
    EXPECT_EQ(hand.core->leader(), "");
  }
  // Above the commit index a leader may cut.
  hand.step(hand.append("b", 4, 3, 2, {command(4, 4)}, 3));
  EXPECT_EQ(hand.core->log().term(4), 4u);
}

TEST(CoreHostile, AnAppendAgainstTheLogsBaseIsDropped) {
  InitialState initial;
  initial.hard_state.term = 5;
  initial.base_index = 4;
  initial.base_term = 3;
  initial.applied = 4;
  initial.snapshot = SnapshotLabel{4, 3, 0, settled({"a", "b", "c"})};
  Hand hand(initial);
  // Entry 5 would be of an older term than the base.
  hand.core->step(hand.append("b", 5, 2, 1, {command(3, 1), command(4, 1), command(5, 1)}, 5), hand.now);
  EXPECT_NE(refused(hand), "");
  EXPECT_EQ(hand.core->last_index(), 4u);
}

// Scenario NW-08.
TEST(CoreHostile, NoMessageRaisesTheTermOutOfReach) {
  for (const MessageType type : {MessageType::vote_request, MessageType::vote_reply, MessageType::pre_vote_reply,
                                 MessageType::append_request, MessageType::append_reply, MessageType::timeout_now}) {
    SCOPED_TRACE(static_cast<int>(type));
    Hand hand(with_log(3, {1}));
    for (const Term term : {kNumberMax, Term{3} + kTermLeapMax + 1}) {
      Message message = hand.from("b", type, term);
      message.campaign_term = term;
      message.is_transfer = true;
      message.log_index = message.log_term = 100;
      hand.core->step(std::move(message), hand.now);
      EXPECT_EQ(refused(hand), "b, term " + std::to_string(term) + ": its term is too far above this server's\n");
      EXPECT_EQ(hand.core->term(), 3u);
    }
    EXPECT_EQ(hand.core->offer_snapshot(offer_of(hand, "b", kNumberMax, 7, 3), hand.now).verdict, OfferAnswer::Verdict::refused);
    EXPECT_EQ(hand.core->term(), 3u);
  }
  // As far as it may.
  Hand hand(with_log(3, {1}));
  Message vote = hand.from("b", MessageType::vote_request, 3 + kTermLeapMax);
  vote.campaign_term = vote.term;
  vote.is_transfer = true;
  vote.log_index = vote.log_term = 100;
  hand.step(vote);
  EXPECT_EQ(hand.core->term(), 3 + kTermLeapMax);
}

// Its cluster may have been pushed far up; there is nothing here to compare with.
TEST(CoreHostile, AServerThatJoinsTakesTheTermOfItsCluster) {
  const auto joining = [] {
    InitialState initial;
    return std::make_unique<Core>(Identity{"d", store_of("d"), 77, ClusterId{6, 6}}, Settings{}, std::move(initial), io::RandomStream(1),
                                  io::Instant(std::chrono::seconds(1)));
  };
  for (const Term term : {Term{40} << 32, kTermOfJoinerMax, kTermOfJoinerMax + 1}) {
    auto core = joining();
    Message request;
    request.type = MessageType::append_request;
    request.from = "b";
    request.to = "d";
    request.term = term;
    request.from_store = store_of("b");
    request.session = 5;
    core->step(std::move(request), io::Instant(std::chrono::seconds(2)));
    EXPECT_EQ(core->term(), term <= kTermOfJoinerMax ? term : 0u);
  }
}

// An image that a leader's own log does not lead to, begun while it followed, cannot be of a sound cluster.
TEST(CoreHostile, ALeaderIgnoresAnImageThatItsLogDoesNotLeadTo) {
  Hand hand;
  hand.step(hand.append("b", 1, 0, 0, {command(1, 1)}, 0));
  hand.persist();
  const SnapshotLabel label = offer_of(hand, "b", 1, 9, 1).label;
  ASSERT_EQ(hand.core->offer_snapshot(offer_of(hand, "b", 1, 9, 1), hand.now).verdict, OfferAnswer::Verdict::wanted);
  hand.lead();
  ASSERT_EQ(hand.core->role(), Role::leader);
  const Index last = hand.core->last_index();
  hand.core->snapshot_received(label);
  EXPECT_EQ(hand.core->role(), Role::leader);
  EXPECT_EQ(hand.core->last_index(), last);
  EXPECT_EQ(hand.core->snapshot().index, 0u);
}

}  // namespace
}  // namespace raft::test
