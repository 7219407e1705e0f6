// Each promise of sim/gate_check.h.

#include "sim/gate_check.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/metastore/commands.h"
#include "tests/support/topics.h"

namespace {

using namespace engine::metastore;
using sim::GateCheck;

struct GateCheckTest : testing::Test {
  GateCheck check;
  raft::Index last = 0;
  raft::Configuration newest = raft::bootstrap_configuration({{"n1", "n1:7943"}, {"n2", "n2:7943"}});

  template <typename Command>
  void commit(const Command& command) {
    check.committed(tests::make_entry(++last, encode_command(command)));
  }
  void report(const std::string& id, uint32_t types) {
    Member member;
    member.id = id;
    member.entry_types = types;
    commit(RegisterMember{member});
  }
  // What is said of type 31, appended by n1 of 3.2 whose replica stands at `applied`.
  std::string said(raft::Index applied_from, raft::Index applied_to) {
    return check
        .appended("n1", 37, applied_from, applied_to, newest, tests::make_entry(50, encode_command(MarkMemberDeadIf{"n9", 4})))
        .value_or("");
  }
  std::string said() { return said(last, last); }
};

TEST_F(GateCheckTest, TypesOfEveryReleaseMayBeAppendedAtAnyTime) {
  EXPECT_EQ(check.appended("n1", 22, 0, 0, newest, tests::create_entry(1, "t")), std::nullopt);
}

TEST_F(GateCheckTest, EveryServerMustHaveARecordAndEveryRecordTheType) {
  EXPECT_EQ(said(), "n1 appended entry type 31 at index 50 although n2 had no member record");
  report("n2", 32);
  EXPECT_EQ(said(), "");
  report("n3", 0);
  EXPECT_EQ(said(), "n1 appended entry type 31 at index 50 although n3 had reported types up to 22");
  commit(RemoveMember{"n3", 1});
  report("n3", 0);
  EXPECT_EQ(said(), "") << "a removed member registers no more";
  commit(ReadmitMember{"n3", 1});
  report("n3", 0);
  EXPECT_NE(said(), "");
}

TEST_F(GateCheckTest, TheLeaderCountsByItsOwnBuild) {
  report("n2", 37);
  report("n1", 22);
  EXPECT_EQ(said(), "");
  EXPECT_EQ(check.appended("n1", 30, last, last, newest, tests::make_entry(50, encode_command(MarkMemberDeadIf{"n9", 4}))),
            "n1 appended entry type 31 at index 50 although n1 had reported types up to 30");
}

TEST_F(GateCheckTest, WhatCountsIsWhatTheLeadersReplicaHasApplied) {
  report("n2", 37);
  report("n2", 22);
  EXPECT_EQ(said(1, 1), "");
  EXPECT_EQ(said(1, 2), "") << "it may have been asked before the second";
  EXPECT_NE(said(2, 2), "");
  EXPECT_NE(said(0, 0), "");
}

TEST_F(GateCheckTest, AReplicaThatHasNotAppliedTheLogTheLeaderCameWithIsNoGround) {
  report("n2", 37);
  EXPECT_EQ(said(4, 3), "n1 appended entry type 31 at index 50 while its replica stood at index 3, before 4, the log that it came with");
  EXPECT_EQ(said(4, 4), "");
}

TEST_F(GateCheckTest, RemembersTheNewestThatAMemberReportedOrUsed) {
  report("n2", 37);
  report("n2", 32);
  EXPECT_TRUE(check.has_reported("n2", 37));
  EXPECT_FALSE(check.has_reported("n2", 38));
  EXPECT_EQ(check.types_of("n2"), 32u);
  EXPECT_FALSE(check.has_reported("n1", 1));
  EXPECT_EQ(said(), "");
  EXPECT_TRUE(check.has_reported("n1", 37)) << "it led, and used types that only its own build speaks for";
}

}  // namespace
