// The log book: each of its checks fires on a made-up run that breaks it, and none on a good one.

#include "sim/log_book.h"

#include <gtest/gtest.h>

#include "tests/support/topics.h"

namespace sim {
namespace {

using tests::create_entry;
using tests::delete_entry;

Change create(std::string name) {
  Change change;
  change.topic = model_topic(tests::make_topic(std::move(name)));
  return change;
}

constexpr io::Instant kNow{};

// What a sound node answers to these entries, and its digest behind them.
struct Sound {
  std::vector<std::string> answers;
  uint64_t digest = 0;
};
Sound sound(const std::vector<raft::Entry>& entries) {
  Replica replica(engine::metastore::kNewestEntryType);
  Sound result;
  for (const raft::Entry& entry : entries) result.answers.push_back(replica.apply(entry).answer);
  result.digest = replica.digest_at(replica.last_index());
  return result;
}

const std::vector<raft::Entry> kTwice = {create_entry(1, "a"), create_entry(2, "a")};

TEST(LogBook, AGoodRunPasses) {
  const Sound good = sound(kTwice);
  ASSERT_NE(good.answers[0], good.answers[1]);
  LogBook book;
  for (int node = 0; node < 3; ++node) {
    EXPECT_FALSE(book.applied(node, 1, kTwice[0], good.answers[0], false, create("a"), kNow));
    EXPECT_FALSE(book.applied(node, 1, kTwice[1], good.answers[1], true, create("a"), kNow));
    EXPECT_FALSE(book.digest(node, 2, good.digest, kNow));
  }
  book.restarted(1, 2, 1);
  EXPECT_FALSE(book.applied(1, 2, kTwice[1], good.answers[1], true, create("a"), kNow));
  EXPECT_EQ(book.last_index(), 2u);
  EXPECT_EQ(book.applied_index(1), 2u);
  EXPECT_EQ(book.line(1).change, ChangeKind::create);
  EXPECT_FALSE(book.line(2).change.has_value());
}

TEST(LogBook, AnotherEntryAtAnIndexIsSeen) {
  LogBook book;
  EXPECT_FALSE(book.applied(0, 1, kTwice[0], sound(kTwice).answers[0], false, create("a"), kNow));
  const raft::Entry other = tests::make_entry(1, engine::metastore::encode_create_topic(tests::make_topic("b")), 2);
  const auto wrong = book.applied(1, 1, other, sound({other}).answers[0], false, create("b"), kNow);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->rule, "every node applies the same entry at an index");
}

TEST(LogBook, AnotherAnswerIsSeenAlsoInALaterLifeOfTheSameNode) {
  const Sound good = sound(kTwice);
  LogBook book;
  EXPECT_FALSE(book.applied(0, 1, kTwice[0], good.answers[0], false, create("a"), kNow));
  book.restarted(0, 2, 0);
  const auto wrong = book.applied(0, 2, kTwice[0], good.answers[1], true, create("a"), kNow);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->rule, "an entry has the same answer on every node");
}

// A node that applies what it holds already finds its own traces; nobody else need have applied the entry.
TEST(LogBook, AnAnswerThatTheEntriesDoNotMakeIsSeenAtTheFirstNode) {
  LogBook book;
  const auto wrong = book.applied(0, 1, kTwice[0], sound(kTwice).answers[1], true, create("a"), kNow);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->rule, "an entry has the same answer on every node");
}

TEST(LogBook, AnEntryAppliedTwiceOrSkippedIsSeen) {
  const Sound good = sound(kTwice);
  LogBook book;
  EXPECT_FALSE(book.applied(0, 1, kTwice[0], good.answers[0], false, create("a"), kNow));
  EXPECT_TRUE(book.applied(0, 1, kTwice[0], good.answers[0], false, create("a"), kNow));
  LogBook other;
  const auto hole = other.applied(0, 1, kTwice[1], good.answers[0], false, create("a"), kNow);
  ASSERT_TRUE(hole);
  EXPECT_EQ(hole->rule, "nothing is applied past a hole");
}

TEST(LogBook, ASnapshotWhoseLabelIsNotItsContentsIsSeen) {
  const Sound good = sound(kTwice);
  LogBook book;
  EXPECT_FALSE(book.applied(0, 1, kTwice[0], good.answers[0], false, create("a"), kNow));
  EXPECT_FALSE(book.applied(0, 1, kTwice[1], good.answers[1], true, create("a"), kNow));
  EXPECT_FALSE(book.labelled(0, 2, 2, good.digest, kNow));
  EXPECT_TRUE(book.labelled(0, 2, 2, good.digest + 1, kNow)) << "another state at that index";
  EXPECT_TRUE(book.labelled(0, 1, 2, good.digest, kNow)) << "the content is ahead of the label";
}

TEST(LogBook, AnotherDigestIsSeen) {
  const Sound good = sound(kTwice);
  LogBook book;
  for (size_t i = 0; i < kTwice.size(); ++i) {
    EXPECT_FALSE(book.applied(0, 1, kTwice[i], good.answers[i], i == 1, create("a"), kNow));
  }
  EXPECT_FALSE(book.digest(0, 2, good.digest, kNow));
  const auto wrong = book.digest(2, 2, good.digest + 1, kNow);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->rule, "equal applied index, equal state digest");
}

TEST(LogBook, AnEntryThatNobodyHasToldOfCountsToo) {
  const std::vector<raft::Entry> entries = {create_entry(1, "a"), delete_entry(2, "a"), create_entry(3, "a")};
  const Sound good = sound(entries);
  LogBook book;
  book.applied_unseen(0, entries[0], create("a"), kNow);
  book.applied_unseen(0, entries[1], std::nullopt, kNow);
  book.restarted(0, 1, 2);
  EXPECT_FALSE(book.applied(0, 1, entries[2], good.answers[2], false, std::nullopt, kNow));
  EXPECT_FALSE(book.digest(0, 3, good.digest, kNow));
}

TEST(LogBook, AnAnswerThatTheModelDoesNotGiveIsSeen) {
  LogBook book;
  const auto wrong = book.applied(0, 1, kTwice[0], sound(kTwice).answers[0], true, create("a"), kNow);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->rule, "the state machine answers as the model does");
}

}  // namespace
}  // namespace sim
