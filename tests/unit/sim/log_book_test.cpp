// The log book: each of its checks fires on a made-up run that breaks it, and none on a good one.

#include <gtest/gtest.h>

#include "sim/log_book.h"

namespace sim {
namespace {

raft::Entry entry(Index index, raft::Term term, std::string bytes) {
  return {term, index, raft::EntryType::command, std::make_shared<const std::string>(std::move(bytes))};
}

Change create(std::string name) {
  Change change;
  change.topic.name = std::move(name);
  change.topic.id = "id-" + change.topic.name;
  return change;
}

constexpr io::Instant kNow{};

TEST(LogBook, AGoodRunPasses) {
  LogBook book;
  for (int node = 0; node < 3; ++node) {
    EXPECT_FALSE(book.applied(node, 1, entry(1, 1, "a"), "ok", false, create("a"), kNow));
    EXPECT_FALSE(book.applied(node, 1, entry(2, 1, "b"), "exists", true, create("a"), kNow));
    EXPECT_FALSE(book.digest(node, 2, 77, kNow));
  }
  book.restarted(1, 2, 1);
  EXPECT_FALSE(book.applied(1, 2, entry(2, 1, "b"), "exists", true, create("a"), kNow));
  EXPECT_EQ(book.last_index(), 2u);
  EXPECT_EQ(book.applied_index(1), 2u);
  EXPECT_EQ(book.line(1).change, ChangeKind::create);
  EXPECT_FALSE(book.line(2).change.has_value());
}

TEST(LogBook, AnotherEntryAtAnIndexIsSeen) {
  LogBook book;
  EXPECT_FALSE(book.applied(0, 1, entry(1, 1, "a"), "ok", false, create("a"), kNow));
  const auto wrong = book.applied(1, 1, entry(1, 2, "b"), "ok", false, create("b"), kNow);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->rule, "every node applies the same entry at an index");
}

TEST(LogBook, AnotherAnswerIsSeenAlsoInALaterLifeOfTheSameNode) {
  LogBook book;
  EXPECT_FALSE(book.applied(0, 1, entry(1, 1, "a"), "ok", false, create("a"), kNow));
  book.restarted(0, 2, 0);
  const auto wrong = book.applied(0, 2, entry(1, 1, "a"), "exists", true, create("a"), kNow);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->rule, "an entry has the same answer on every node");
}

TEST(LogBook, AnEntryAppliedTwiceOrSkippedIsSeen) {
  LogBook book;
  EXPECT_FALSE(book.applied(0, 1, entry(1, 1, "a"), "ok", false, create("a"), kNow));
  EXPECT_TRUE(book.applied(0, 1, entry(1, 1, "a"), "ok", false, create("a"), kNow));
  LogBook other;
  const auto hole = other.applied(0, 1, entry(2, 1, "a"), "ok", false, create("a"), kNow);
  ASSERT_TRUE(hole);
  EXPECT_EQ(hole->rule, "nothing is applied past a hole");
}

TEST(LogBook, AnotherDigestIsSeen) {
  LogBook book;
  EXPECT_FALSE(book.digest(0, 5, 1, kNow));
  EXPECT_FALSE(book.digest(1, 6, 2, kNow));
  const auto wrong = book.digest(2, 5, 3, kNow);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->rule, "equal applied index, equal state digest");
}

TEST(LogBook, AnAnswerThatTheModelDoesNotGiveIsSeen) {
  LogBook book;
  const auto wrong = book.applied(0, 1, entry(1, 1, "a"), "exists", true, create("a"), kNow);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->rule, "the state machine answers as the model does");
}

}  // namespace
}  // namespace sim
