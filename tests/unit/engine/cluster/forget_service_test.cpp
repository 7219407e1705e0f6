#include "engine/cluster/forget_service.h"

#include <gtest/gtest.h>

namespace engine::cluster {
namespace {

using namespace std::chrono_literals;

ForgetFacts forgettable(bool is_voter) {
  ForgetFacts facts;
  facts.is_leader = true;
  facts.server = ForgetFacts::Server{"n9:7943", is_voter};
  facts.led_for = 12s;
  return facts;
}

std::string verdict(const ForgetFacts& facts, const io::Result<ForgetServerRequest>& request = ForgetServerRequest{"n9"}) {
  const std::optional<NodeReply> refusal = why_not_forgotten(request, facts);
  return refusal ? std::to_string(refusal->status) + " " + refusal->body : "forgotten";
}

TEST(ForgetRules, EachRefusalInItsOrder) {
  ForgetFacts facts = forgettable(true);
  facts.led_for = 12s - 1ns;
  EXPECT_EQ(verdict(facts), "409 {\"error\":\"server n9 is not forgotten: it votes, and the leader has led for less than 12s, too short to "
                            "know which voters it can reach\"}\n");
  facts.has_assignment = true;
  EXPECT_EQ(verdict(facts), "409 {\"error\":\"server n9 is not forgotten: partitions are assigned to it\"}\n");
  facts.has_record = true;
  EXPECT_EQ(verdict(facts), "409 {\"error\":\"server n9 is not forgotten: it has a member record; decommission it instead\"}\n");
  facts.read_error = "gone";
  EXPECT_EQ(verdict(facts), "503 {\"error\":\"membership lookup failed\"}\n");
  facts.server.reset();
  EXPECT_EQ(verdict(facts), "404 {\"error\":\"no raft server n9\"}\n");
  facts.is_self = true;
  EXPECT_EQ(verdict(facts), "400 {\"error\":\"the leader cannot forget itself\"}\n");
  facts.is_leader = false;
  facts.leader_id = "n1";
  EXPECT_EQ(verdict(facts), "421 {\"error\":\"not the metastore leader\",\"leader_id\":\"n1\",\"leader_addr\":\"\"}\n");
  EXPECT_EQ(verdict(facts, ForgetServerRequest{""}), "400 {\"error\":\"server id is required\"}\n");
  EXPECT_EQ(verdict(facts, io::fail(io::ErrorKind::invalid, "truncated id")),
            "400 {\"error\":\"invalid forget server request: truncated id\"}\n");
}

TEST(ForgetRules, ATraceIsForgottenANonVoterAlsoByANewLeader) {
  EXPECT_EQ(verdict(forgettable(true)), "forgotten");
  ForgetFacts facts = forgettable(false);
  facts.led_for = 0s;
  EXPECT_EQ(verdict(facts), "forgotten");
}

}  // namespace
}  // namespace engine::cluster
