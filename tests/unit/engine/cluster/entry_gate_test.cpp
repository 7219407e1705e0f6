// Each promise of engine/cluster/entry_gate.h that needs no cluster: the rule, its reasons, its order. What a node's gate adds is held by
// tests/unit/engine/cluster/cluster_gate_test.cpp.

#include "engine/cluster/entry_gate.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using namespace engine::cluster;
using engine::metastore::Member;
using engine::metastore::MemberStatus;

Member member(std::string id, std::string build, uint32_t types) {
  return {std::move(id), "h:7942", "h:7943", MemberStatus::alive, 1000, false, std::move(build), types};
}

const GateSelf kSelf{"n2", "3.2.0", 37};
const std::vector<std::string> kServers{"n3", "n1", "n2"};

std::string reason(uint32_t type, const std::vector<Member>& members, const GateSelf& self = kSelf,
                   const std::vector<std::string>& servers = kServers) {
  const std::optional<HeldBack> held = hold_back(type, servers, members, self);
  return held ? held->id + ": " + held->reason : "";
}

TEST(EntryGate, TypesOfEveryReleaseAlwaysPass) {
  EXPECT_EQ(reason(1, {}), "");
  EXPECT_EQ(reason(22, {member("n1", "", 0)}, {"n2", "0.9", 4}), "");
}

TEST(EntryGate, ATypePassesOnceEverybodyReportsIt) {
  EXPECT_EQ(reason(37, {member("n1", "3.2.0", 37), member("n2", "3.2.0", 37), member("n3", "next", 38)}), "");
}

TEST(EntryGate, AServerWithoutARecordHoldsBackAndIsNamed) {
  EXPECT_EQ(reason(23, {member("n1", "3.2.0", 37), member("n2", "3.2.0", 37)}),
            "n3: raft server \"n3\" has no member record, so its release is unknown; Raft entry type 23 waits until it registers or is removed");
}

TEST(EntryGate, TheLeaderCountsByItsOwnBuildWhateverIsOnRecord) {
  const std::vector<Member> others{member("n1", "3.2.0", 37), member("n3", "3.2.0", 37)};
  EXPECT_EQ(reason(37, others), "") << "it needs no record";
  std::vector<Member> stale = others;
  stale.push_back(member("n2", "3.0.1", 22));
  EXPECT_EQ(reason(37, stale), "");
  stale.back() = member("n2", "3.2.0", 37);
  EXPECT_EQ(reason(33, stale, {"n2", "3.1.0", 32}),
            "n2: this node \"n2\" (3.1.0) applies Raft entry types up to 32, not entry type 33");
  EXPECT_EQ(reason(33, others, {"n9", "3.1.0", 32}, {"n1", "n3"}),
            "n9: this node \"n9\" (3.1.0) applies Raft entry types up to 32, not entry type 33")
      << "also when it has left the configuration";
}

TEST(EntryGate, AMemberHoldsBackByItsReportAliveDeadOrDraining) {
  const std::string expected =
      "n1: member \"n1\" (3.1.0) applies Raft entry types up to 32; Raft entry type 33 waits until it is upgraded or removed";
  std::vector<Member> members{member("n1", "3.1.0", 32), member("n3", "3.2.0", 37)};
  EXPECT_EQ(reason(33, members), expected);
  EXPECT_EQ(reason(32, members), "");
  members[0].status = MemberStatus::dead;
  EXPECT_EQ(reason(33, members), expected);
  members[0].last_heartbeat = 1;
  EXPECT_EQ(reason(33, members), expected) << "its last report counts for as long as it is on record";
  members[0].status = MemberStatus::alive;
  members[0].draining = true;
  EXPECT_EQ(reason(33, members), expected);
}

TEST(EntryGate, AMemberThatIsNoServerHoldsBackToo) {
  EXPECT_EQ(reason(23, {member("n1", "3.2.0", 37), member("n3", "3.2.0", 37), member("n4", "3.0.1", 22)}),
            "n4: member \"n4\" (3.0.1) applies Raft entry types up to 22; Raft entry type 23 waits until it is upgraded or removed");
}

TEST(EntryGate, AMemberThatReportedNothingCountsAsOneOf30AndPrintsAsUnknown) {
  EXPECT_EQ(reason(23, {member("n1", "", 0), member("n3", "3.2.0", 37)}),
            "n1: member \"n1\" (unknown build) applies Raft entry types up to 22; Raft entry type 23 waits until it is upgraded or removed");
}

TEST(EntryGate, TheFirstInTheOrderOfIdsIsNamed) {
  const std::vector<Member> members{member("n3", "3.0.1", 22), member("n10", "3.1.0", 32)};
  const std::vector<std::string> servers{"n3", "n2", "n10", "n1"};
  EXPECT_TRUE(reason(33, members, kSelf, servers).starts_with("n1: raft server \"n1\" has no member record"));
  EXPECT_TRUE(reason(33, members, {"n0", "3.1.0", 32}, servers).starts_with("n0: this node \"n0\""));
  EXPECT_TRUE(reason(33, members, kSelf, {"n2", "n3"}).starts_with("n10: member \"n10\" (3.1.0)"));
  EXPECT_TRUE(reason(32, members, kSelf, {"n2", "n3"}).starts_with("n3: member \"n3\" (3.0.1)"));
}

}  // namespace
