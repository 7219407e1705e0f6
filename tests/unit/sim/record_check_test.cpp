// Each promise of sim/record_check.h, with the defence that keeps it switched off and on.

#include "sim/record_check.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "io/sim/switches.h"
#include "tests/support/apply_table.h"

namespace {

using namespace engine::metastore;

struct RecordCheck : testing::Test {
  tests::AppliedRows applied;
  io::sim::Switchboard board;
  io::sim::SwitchboardGuard guard{&board};

  void does(const Command& command) { ASSERT_EQ(applied.answer_of(command), Answer{}); }
  // What both looks say of a command.
  std::string said(const Command& command) {
    const raft::Entry entry = tests::make_entry(applied.state.applied_index + 1, encode_command(command));
    const MemoryRows before = applied.rows;
    const Answer answer = applied.answer_of(command);
    if (const auto wrong = sim::judge_before(before, entry, answer)) return *wrong;
    return sim::judge_after(applied.rows, entry, answer).value_or("");
  }
  static Member member(int64_t heartbeat) {
    Member made;
    made.id = "n1";
    made.last_heartbeat = heartbeat;
    return made;
  }
};

TEST_F(RecordCheck, ADeadMarkIsNotTakenOverANewerHeartbeat) {
  does(RegisterMember{member(100)});
  EXPECT_EQ(said(MarkMemberDeadIf{"n1", 99}), "") << "it is refused";
  EXPECT_EQ(said(MarkMemberDeadIf{"n1", 100}), "");
  board.off.insert(io::Defence::dead_mark_over_newer_heartbeat);
  EXPECT_EQ(said(MarkMemberDeadIf{"n1", 99}), "member n1 is marked dead for its heartbeat of 99, and has one of 100 on record");
}

TEST_F(RecordCheck, ADeletedUserOwnsNothing) {
  for (const bool is_kept : {true, false}) {
    if (!is_kept) board.off.insert(io::Defence::user_delete_keeps_owner);
    User user;
    user.username = "ann";
    does(CreateUser{user});
    Topic topic = tests::make_topic(is_kept ? "a" : "b");
    topic.owner = "ann";
    does(CreateTopic{topic});
    EXPECT_EQ(said(DeleteUserReleasing{"ann"}), is_kept ? "" : "user ann is deleted, and topic b still names it as owner");
  }
}

TEST_F(RecordCheck, ATopicLeavesNothingUnderItsName) {
  const auto make = [&](const std::string& name) {
    does(CreateTopic{tests::make_topic(name)});
    does(CreateTopic{tests::make_topic(name + "x")});
    does(AssignPartition{{name, 1, "n1", ""}});
    does(AssignPartition{{name + "x", 1, "n1", ""}});
    does(PutSchema{name, 1, "true"});
  };
  make("a");
  EXPECT_EQ(said(DeleteTopic{"a"}), "") << "the other topic's rows are its own";
  make("b");
  board.off.insert(io::Defence::rows_survive_topic);
  EXPECT_EQ(said(DeleteTopicIf{"b", tests::make_topic("b").id}), "topic b is gone, and assignments/b:1 is still there");
  EXPECT_EQ(said(CreateTopicLinked{tests::make_topic("b"), "", {}}), "topic b is new, and assignments/b:1 is there already");
  does(CreateTopic{tests::make_topic("c")});
  does(PutSchema{"c", 1, "true"});
  EXPECT_EQ(said(DeleteTopic{"c"}), "topic c is gone, and schemas/c:1 is still there");
}

}  // namespace
