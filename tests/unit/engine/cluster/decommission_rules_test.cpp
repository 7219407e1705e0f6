#include "engine/cluster/decommission_rules.h"

#include <gtest/gtest.h>

#include "tests/support/members.h"

namespace engine::cluster {
namespace {

using tests::make_dead;
using tests::make_draining;
using tests::make_member;
using Reason = DecommissionReason;

// n1 to n<count>, all of them voters and well; n1 is to leave.
DecommissionFacts facts_of(size_t count) {
  DecommissionFacts facts;
  facts.id = "n1";
  facts.is_alive = true;
  for (size_t i = 1; i <= count; ++i) {
    facts.voters.push_back({"n" + std::to_string(i), true});
    facts.members.push_back(make_member("n" + std::to_string(i)));
  }
  return facts;
}

std::vector<std::string> codes(const std::vector<Blocked>& reasons) {
  std::vector<std::string> codes;
  for (const Blocked& reason : reasons) {
    EXPECT_FALSE(reason.message.empty());
    codes.emplace_back(code_of(reason.reason));
  }
  return codes;
}
using Codes = std::vector<std::string>;

TEST(DecommissionRules, ReasonCodesNeverChange) {
  EXPECT_EQ(code_of(Reason::below_min_voters), "below_min_voters");
  EXPECT_EQ(code_of(Reason::no_healthy_majority), "no_healthy_majority");
  EXPECT_EQ(code_of(Reason::no_receivers), "no_receivers");
  EXPECT_EQ(code_of(Reason::owner_dead), "owner_dead");
  EXPECT_EQ(code_of(Reason::node_status_unavailable), "node_status_unavailable");
  EXPECT_EQ(code_of(Reason::dispatch_backlog), "dispatch_backlog");
  EXPECT_EQ(code_of(Reason::move_target), "move_target");
  EXPECT_EQ(code_of(Reason::move_budget_full), "move_budget_full");
  EXPECT_EQ(code_of(Reason::leader_transfer), "leader_transfer");
}

TEST(DecommissionRules, SomeReasonsClearByThemselvesAndOthersNeedAnOperator) {
  for (const Reason reason : {Reason::dispatch_backlog, Reason::move_target, Reason::move_budget_full, Reason::leader_transfer}) {
    EXPECT_TRUE(clears_by_itself(reason)) << code_of(reason);
  }
  for (const Reason reason : {Reason::below_min_voters, Reason::no_healthy_majority, Reason::owner_dead, Reason::no_receivers,
                              Reason::node_status_unavailable}) {
    EXPECT_FALSE(clears_by_itself(reason)) << code_of(reason);
  }
}

TEST(DecommissionRules, AMemberOfFourMayLeave) { EXPECT_EQ(codes(refuse_decommission(facts_of(4))), Codes()); }

// Scenario MB-08: dead servers are removed one after the other until what is left cannot go on.
TEST(DecommissionRules, RemovalsStopBeforeThreeVotersAndBeforeTheHealthyMajority) {
  EXPECT_EQ(codes(refuse_decommission(facts_of(3))), Codes{"below_min_voters"});
  // Five voters, two of them stopped: removing those two would leave a majority of the healthy, and the floor.
  DecommissionFacts facts = facts_of(5);
  facts.is_alive = false;
  facts.members[0] = make_dead("n1");
  facts.members[1] = make_dead("n2");
  facts.voters[0].is_healthy = facts.voters[1].is_healthy = false;
  EXPECT_EQ(codes(refuse_decommission(facts)), Codes());
  EXPECT_EQ(blocked_removal(facts), std::nullopt);
  // The first has gone, the second may not follow once another has failed: two healthy of the three that would be left, then one.
  facts.voters.erase(facts.voters.begin());
  facts.members.erase(facts.members.begin());
  facts.id = "n2";
  EXPECT_EQ(codes(refuse_decommission(facts)), Codes());
  facts.voters[1].is_healthy = facts.voters[2].is_healthy = false;
  EXPECT_EQ(codes(refuse_decommission(facts)), Codes{"no_healthy_majority"});
  EXPECT_EQ(blocked_removal(facts)->reason, Reason::no_healthy_majority);
  // Three voters, one of them down, asked to remove two in a row: neither.
  facts = facts_of(3);
  facts.voters[2].is_healthy = false;
  EXPECT_EQ(codes(refuse_decommission(facts)), (Codes{"below_min_voters", "no_healthy_majority"}));
  EXPECT_EQ(blocked_removal(facts)->reason, Reason::below_min_voters);
}

TEST(DecommissionRules, VotersThatDrainAlreadyCountAsGone) {
  DecommissionFacts facts = facts_of(4);
  facts.members[1] = make_draining("n2");
  EXPECT_EQ(codes(refuse_decommission(facts)), Codes{"below_min_voters"});
  EXPECT_EQ(blocked_removal(facts), std::nullopt) << "at the removal itself the configuration counts as it is";
}

TEST(DecommissionRules, ANonVoterHasNoVotersGuard) {
  DecommissionFacts facts = facts_of(3);
  facts.id = "n9";
  facts.members.push_back(make_member("n9"));
  facts.voters[0].is_healthy = facts.voters[1].is_healthy = false;
  EXPECT_EQ(codes(refuse_decommission(facts)), Codes());
  EXPECT_EQ(blocked_removal(facts), std::nullopt);
}

TEST(DecommissionRules, PartitionsNeedSomebodyToReceiveThem) {
  DecommissionFacts facts = facts_of(4);
  for (size_t i = 1; i < 4; ++i) {
    facts.members[i] = make_dead(facts.members[i].id);
  }
  EXPECT_EQ(codes(refuse_decommission(facts)), Codes()) << "it owns nothing";
  facts.owned_partitions = 2;
  EXPECT_EQ(codes(refuse_decommission(facts)), Codes{"no_receivers"});
  EXPECT_EQ(blocked_draining(facts)->reason, Reason::no_receivers);
}

TEST(DecommissionRules, ADeadMembersPartitionsKeepIt) {
  DecommissionFacts facts = facts_of(5);
  facts.is_alive = false;
  EXPECT_EQ(codes(refuse_decommission(facts)), Codes());
  facts.owned_partitions = 1;
  EXPECT_EQ(codes(refuse_decommission(facts)), Codes{"owner_dead"});
  EXPECT_EQ(blocked_draining(facts)->reason, Reason::owner_dead);
}

TEST(DecommissionRules, ADrainingMemberWaitsForMovesAndForTheBudget) {
  DecommissionFacts facts = facts_of(4);
  facts.owned_partitions = 3;
  EXPECT_EQ(blocked_draining(facts), std::nullopt) << "its turn comes with the next plan";
  facts.outbound_moves = facts.moves_in_flight = 2;
  EXPECT_EQ(blocked_draining(facts), std::nullopt);
  facts.outbound_moves = 0;
  facts.moves_in_flight = 8;
  EXPECT_EQ(blocked_draining(facts)->reason, Reason::move_budget_full);
  facts.owned_partitions = 0;
  facts.inbound_moves = 1;
  EXPECT_EQ(blocked_draining(facts)->reason, Reason::move_target);
}

TEST(DecommissionRules, WhatTheMemberHoldsUndeliveredKeepsIt) {
  using Kind = NodeBacklog::Kind;
  EXPECT_EQ(blocked_backlog("n1", {Kind::told, 0, 0, ""}), std::nullopt);
  EXPECT_EQ(blocked_backlog("n1", {Kind::told, 1, 0, ""})->reason, Reason::dispatch_backlog);
  EXPECT_EQ(blocked_backlog("n1", {Kind::told, 0, 7, ""})->reason, Reason::dispatch_backlog);
  EXPECT_EQ(blocked_backlog("n1", {Kind::unavailable, 0, 0, "no answer"})->reason, Reason::node_status_unavailable);
  EXPECT_EQ(blocked_backlog("n1", {Kind::unsupported, 0, 0, ""}), std::nullopt) << "an older release is not held against it";
}

}  // namespace
}  // namespace engine::cluster
