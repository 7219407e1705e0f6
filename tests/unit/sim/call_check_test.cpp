// The check of answers: each rule fires on a made-up history that breaks it, and stays silent on the good one beside it.

#include <gtest/gtest.h>

#include "sim/call_check.h"
#include "tests/support/topics.h"

namespace sim {
namespace {

using std::chrono::seconds;

io::Instant at(int64_t s) { return io::Instant(seconds(s)); }

class CallCheckTest : public ::testing::Test {
 protected:
  // The next entry takes effect at second `when`.
  Index entry(ChangeKind kind, std::string name, std::string id, int64_t retention, int64_t when, int64_t partitions = 3) {
    const Index index = book.last_index() + 1;
    const bool refused = kind == ChangeKind::create ? book.model().now(name) != nullptr : book.model().now(name) == nullptr;
    engine::metastore::Topic record = tests::make_topic(name, static_cast<int32_t>(partitions));
    record.id = id;
    record.retention_ms = retention;
    record.visibility_timeout_ms = record.max_in_flight_per_partition = record.max_acked_ahead_per_partition = record.created_at = 0;
    const raft::Entry e = tests::make_entry(index, kind == ChangeKind::create   ? engine::metastore::encode_create_topic(record)
                                                   : kind == ChangeKind::update ? engine::metastore::encode_update_topic(record)
                                                                                : engine::metastore::encode_delete_topic(name));
    Change change{kind, topic(std::move(name), std::move(id), retention, partitions)};
    EXPECT_FALSE(book.applied(0, 1, e, sound.apply(e).answer, refused, change, at(when)));
    return index;
  }

  static Topic topic(std::string name, std::string id, int64_t retention, int64_t partitions = 3) {
    Topic t;
    t.name = std::move(name);
    t.id = std::move(id);
    t.partitions = partitions;
    t.retention_ms = retention;
    return t;
  }

  static Call call(uint64_t id, CallKind kind, std::string name, int64_t asked, int64_t answered, int status) {
    Call c;
    c.id = id;
    c.kind = kind;
    c.name = std::move(name);
    c.life = 1;
    c.same_life = true;
    c.asked = at(asked);
    c.answered = at(answered);
    c.status = status;
    c.outcome = status < 300 ? Outcome::ok : status < 500 ? Outcome::refused : Outcome::unknown;
    c.applied_after = 1'000;
    return c;
  }

  std::string rule(const Call& c, bool early = false) {
    const auto wrong = check.judge(c, early);
    return wrong ? wrong->rule : "";
  }

  LogBook book;
  Replica sound{engine::metastore::kNewestEntryType};  // answers as a sound node does
  CallCheck check{book};
};

TEST_F(CallCheckTest, AnAcknowledgedCreateMustBeInTheLogWithinTheCall) {
  entry(ChangeKind::create, "a", "x", kTagBase + 1, 5);
  Call good = call(1, CallKind::create, "a", 4, 6, 201);
  good.topic = topic("a", "x", kTagBase + 1);
  EXPECT_EQ(rule(good), "");
  EXPECT_EQ(check.acked(), 1u);
  EXPECT_EQ(rule(good), "a write takes effect once");

  Call lost = call(2, CallKind::create, "b", 4, 6, 201);
  lost.topic = topic("b", "y", kTagBase + 2);
  EXPECT_EQ(rule(lost), "an acknowledged write is in the log");

  entry(ChangeKind::create, "c", "z", kTagBase + 3, 9);
  Call early = call(3, CallKind::create, "c", 4, 6, 201);
  early.topic = topic("c", "z", kTagBase + 3);
  EXPECT_EQ(rule(early), "an acknowledged write is in the log");
}

TEST_F(CallCheckTest, AnAcknowledgedPatchMustShowAVersionFromItsOwnEntryOn) {
  entry(ChangeKind::create, "a", "x", kTagBase + 1, 1);
  entry(ChangeKind::update, "a", "x", kTagBase + 2, 5);
  entry(ChangeKind::update, "a", "x", kTagBase + 2, 5, 6);
  Call good = call(2, CallKind::patch, "a", 4, 6, 200);
  good.partitions = 6;
  good.topic = topic("a", "x", kTagBase + 2, 6);
  EXPECT_EQ(rule(good), "");
  EXPECT_EQ(check.acked(), 3u);
  Call wrong = call(2, CallKind::patch, "a", 4, 6, 200);
  wrong.topic = topic("a", "x", kTagBase + 2, 9);
  EXPECT_EQ(rule(wrong), "an acknowledged write is in the log");
  Call lost = call(3, CallKind::patch, "a", 4, 6, 200);
  lost.topic = topic("a", "x", kTagBase + 3);
  EXPECT_EQ(rule(lost), "an acknowledged write is in the log");
}

TEST_F(CallCheckTest, EachAcknowledgedDeleteNeedsADeletionOfItsOwn) {
  entry(ChangeKind::create, "a", "x", kTagBase + 1, 1);
  entry(ChangeKind::remove, "a", "", 0, 5);
  EXPECT_EQ(rule(call(2, CallKind::remove, "a", 4, 6, 204)), "");
  EXPECT_EQ(rule(call(3, CallKind::remove, "a", 4, 6, 204)), "an acknowledged write is in the log");
}

// Found by a seed: the delete that was asked first took effect first and was answered last, by a node that had not yet applied the
// other's entry.
TEST_F(CallCheckTest, DeletesOfOneNameMayBeAnsweredInAnotherOrderThanTheirEntries) {
  entry(ChangeKind::create, "a", "x", kTagBase + 1, 1);
  entry(ChangeKind::remove, "a", "", 0, 5);
  entry(ChangeKind::create, "a", "y", kTagBase + 2, 6);
  entry(ChangeKind::remove, "a", "", 0, 7);
  EXPECT_EQ(rule(call(4, CallKind::remove, "a", 3, 8, 204)), "");
  EXPECT_EQ(check.acked(), 2u) << "for certain";
  Call slow = call(3, CallKind::remove, "a", 4, 9, 204);
  slow.applied_after = 3;
  EXPECT_EQ(rule(slow), "");
  EXPECT_EQ(rule(call(5, CallKind::remove, "a", 4, 9, 204)), "an acknowledged write is in the log") << "a third";
}

TEST_F(CallCheckTest, ADeleteIsAcknowledgedOnceTheNodeHasAppliedIt) {
  entry(ChangeKind::create, "a", "x", kTagBase + 1, 1);
  entry(ChangeKind::remove, "a", "", 0, 5);
  Call early = call(2, CallKind::remove, "a", 4, 6, 204);
  early.applied_after = 1;
  CallCheck other(book);
  EXPECT_FALSE(other.judge(early, true)) << "it had a reason to answer early";
  EXPECT_EQ(rule(early), "a read after a write sees it");
}

TEST_F(CallCheckTest, APatchKeepsWhatItDoesNotName) {
  entry(ChangeKind::create, "a", "x", kTagBase + 1, 1);
  entry(ChangeKind::update, "a", "x", kTagBase + 2, 2, 6);
  Call grow = call(2, CallKind::patch, "a", 1, 3, 200);
  grow.partitions = 6;
  EXPECT_FALSE(check.judge_effect(grow, 2));
  // The next patch names its retention alone, but was made from the record as it was before the growth.
  entry(ChangeKind::update, "a", "x", kTagBase + 3, 4, 3);
  const auto lost = check.judge_effect(call(3, CallKind::patch, "a", 3, 5, 200), 3);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->rule, "a write does what it asks and no more");
  entry(ChangeKind::create, "A", "y", kTagBase + 4, 6);
  EXPECT_TRUE(check.judge_effect(call(4, CallKind::create, "A", 5, 7, 201), 4)) << "a second spelling";
  entry(ChangeKind::create, "b", "z", kTagBase + 5, 8);
  EXPECT_FALSE(check.judge_effect(call(5, CallKind::create, "b", 7, 9, 201), 5));
}

TEST_F(CallCheckTest, ARefusedWriteMustNotHaveTakenEffect) {
  entry(ChangeKind::create, "a", "x", kTagBase + 1, 5);
  EXPECT_EQ(rule(call(1, CallKind::create, "a", 4, 6, 409)), "a refused write has no effect");
  EXPECT_EQ(rule(call(2, CallKind::create, "a", 4, 6, 409)), "");
  EXPECT_TRUE(check.judge_refused_again(call(1, CallKind::create, "a", 4, 4, 409)));
}

TEST_F(CallCheckTest, ARefusalMustBeTrueWithinTheCall) {
  entry(ChangeKind::create, "a", "x", kTagBase + 1, 1);
  entry(ChangeKind::remove, "a", "", 0, 2);
  Call exists = call(2, CallKind::create, "a", 4, 6, 409);
  exists.acked_before = 1;
  EXPECT_EQ(rule(exists), "") << "the delete had not been acknowledged";
  exists.acked_before = 2;
  EXPECT_EQ(rule(exists), "a refusal is true at some index");
  Call absent = call(3, CallKind::patch, "a", 4, 6, 404);
  absent.acked_before = 2;
  EXPECT_EQ(rule(absent), "");
  entry(ChangeKind::create, "a", "y", kTagBase + 4, 7);
  absent.acked_before = 3;
  EXPECT_EQ(rule(absent), "a refusal is true at some index");
  EXPECT_EQ(rule(call(5, CallKind::remove, "a", 4, 6, 418)), "a refusal is true at some index");
}

TEST_F(CallCheckTest, AReadShowsTheNodeAtAnIndexItHadWithinTheCall) {
  entry(ChangeKind::create, "a", "x", kTagBase + 1, 1);
  entry(ChangeKind::update, "a", "x", kTagBase + 2, 2);
  Call read = call(9, CallKind::read, "a", 4, 6, 200);
  read.applied_before = 1;
  read.applied_after = 2;
  read.topic = topic("a", "x", kTagBase + 1);
  EXPECT_EQ(rule(read), "");
  read.applied_before = 2;
  EXPECT_EQ(rule(read), "a read shows a state that was") << "the past";
  read.same_life = false;
  EXPECT_EQ(rule(read), "") << "a node that ended meanwhile is not known";
}

TEST_F(CallCheckTest, NotFoundRestsOnTheLeadersAppliedIndex) {
  entry(ChangeKind::create, "a", "x", kTagBase + 1, 1);
  Call read = call(9, CallKind::read, "a", 4, 6, 404);
  read.applied_before = 0;
  read.applied_after = 0;
  EXPECT_EQ(rule(read), "404 rests on the leader's applied index") << "nobody led";
  read.least_leader_applied = 0;
  EXPECT_EQ(rule(read), "");
  read.least_leader_applied = 1;
  EXPECT_EQ(rule(read), "404 rests on the leader's applied index") << "the node lagged";
  read.applied_after = 1;
  EXPECT_EQ(rule(read), "404 rests on the leader's applied index") << "it was there at that index";
}

TEST_F(CallCheckTest, AWriteIsAcknowledgedOnceTheNodeHasAppliedIt) {
  entry(ChangeKind::create, "a", "x", kTagBase + 1, 5);
  Call create = call(1, CallKind::create, "a", 4, 6, 201);
  create.topic = topic("a", "x", kTagBase + 1);
  create.applied_after = 0;
  EXPECT_EQ(rule(create), "a read after a write sees it");
  CallCheck other(book);
  EXPECT_FALSE(other.judge(create, true)) << "it had a reason to answer early";
}

TEST_F(CallCheckTest, AListIsOneStateOfTheNode) {
  entry(ChangeKind::create, "a", "x", kTagBase + 1, 1);
  entry(ChangeKind::create, "b", "y", kTagBase + 2, 2);
  Call list = call(9, CallKind::list, "", 4, 6, 200);
  list.limit = 10;
  list.applied_after = 2;
  list.topics = {topic("a", "x", kTagBase + 1)};
  EXPECT_EQ(rule(list), "");
  list.topics = {topic("b", "y", kTagBase + 2)};
  EXPECT_EQ(rule(list), "a read shows a state that was") << "b without a never stood";
  list.topics = {topic("a", "x", kTagBase + 1)};
  list.limit = 1;
  list.applied_before = 2;
  EXPECT_EQ(rule(list), "a read shows a state that was") << "the token is missing";
  list.next_page = "a";
  EXPECT_EQ(rule(list), "");
}

}  // namespace
}  // namespace sim
