#include "engine/cluster/join_rules.h"

#include <gtest/gtest.h>

#include <functional>

#include "engine/metastore/envelope.h"

namespace engine::cluster {
namespace {

using namespace std::chrono_literals;
using Outcome = JoinDecision::Outcome;

JoinClusterRequest request_of(std::optional<bool> fresh = false, std::optional<uint32_t> types = metastore::kNewestEntryType) {
  return {"n4", "n4:7943", fresh, types};
}

// A leader of long standing that knows nothing of the joiner.
JoinFacts leader_facts() {
  JoinFacts facts;
  facts.has_configuration = true;
  facts.is_leader = true;
  facts.leader_id = "n1";
  facts.leader_addr = "n1:7943";
  facts.member_types_min = metastore::kNewestEntryType;
  facts.types_used = metastore::kEveryReleaseEntryType;
  facts.led_for = 60s;
  facts.heartbeat_answered_ago = 10ms;
  return facts;
}

// The joiner is a non-voter that may be promoted.
JoinFacts promotable_facts() {
  JoinFacts facts = leader_facts();
  facts.server = JoinFacts::Server{"n4:7943", false, false};
  facts.record = JoinFacts::Record{true, false};
  return facts;
}

JoinFacts voter_facts() {
  JoinFacts facts = promotable_facts();
  facts.server->is_voter = true;
  return facts;
}

std::string admitted(std::string_view status, std::string_view reason = "") {
  return "{\"status\":\"" + std::string(status) + "\",\"reason\":\"" + std::string(reason) + "\"}\n";
}

struct Row {
  const char* name;
  std::function<void(JoinClusterRequest&, JoinFacts&)> change;
  Outcome outcome;
  int status;
  std::string body;  // how it begins; a reply of one of our own texts is not pinned to its end
};

void expect_rows(const std::vector<Row>& rows, const std::function<JoinFacts()>& facts_of) {
  for (const Row& row : rows) {
    JoinClusterRequest request = request_of();
    JoinFacts facts = facts_of();
    row.change(request, facts);
    const JoinDecision decision = decide_join(request, facts);
    EXPECT_EQ(decision.outcome, row.outcome) << row.name;
    EXPECT_EQ(decision.reply.status, row.status) << row.name;
    EXPECT_TRUE(decision.reply.body.starts_with(row.body)) << row.name << ": " << decision.reply.body;
    EXPECT_TRUE(decision.reply.body.ends_with("}\n")) << row.name;
  }
}

TEST(JoinRules, WhatCannotBeReadIsRefusedBeforeAnythingElse) {
  const JoinDecision decision =
      decide_join(io::fail(io::ErrorKind::invalid, "trailing node rpc payload data"), JoinFacts{});
  EXPECT_EQ(decision.outcome, Outcome::malformed);
  EXPECT_EQ(decision.reply.status, 400);
  EXPECT_EQ(decision.reply.body, "{\"error\":\"invalid join request: trailing node rpc payload data\"}\n");
}

TEST(JoinRules, EachAnswerOfANodeThatDoesNotLead) {
  expect_rows(
      {
          {"no id", [](auto& request, auto&) { request.id.clear(); }, Outcome::incomplete, 400, "{\"error\":\"invalid join request: "},
          {"no address", [](auto& request, auto&) { request.cluster_addr.clear(); }, Outcome::incomplete, 400,
           "{\"error\":\"invalid join request: "},
          {"raft has ended", [](auto&, auto& facts) { facts.is_running = false; }, Outcome::unavailable, 503,
           "{\"error\":\"raft configuration lookup failed\"}\n"},
          {"no configuration", [](auto&, auto& facts) { facts.has_configuration = false; }, Outcome::no_configuration, 412,
           "{\"error\":\"no raft configuration on this node\"}\n"},
          {"not the leader", [](auto&, auto&) {}, Outcome::not_leader, 421,
           "{\"error\":\"not the metastore leader\",\"leader_id\":\"n1\",\"leader_addr\":\"n1:7943\"}\n"},
          {"no leader known",
           [](auto&, auto& facts) {
             facts.leader_id.clear();
             facts.leader_addr.clear();
           },
           Outcome::not_leader, 421, "{\"error\":\"not the metastore leader\",\"leader_id\":\"\",\"leader_addr\":\"\"}\n"},
      },
      [] {
        JoinFacts facts = leader_facts();
        facts.is_leader = false;
        return facts;
      });
}

TEST(JoinRules, EachAnswerToAServerThatIsNotInTheConfiguration) {
  const std::string older = "{\"error\":\"this node runs an older release than ";
  expect_rows(
      {
          {"new", [](auto&, auto&) {}, Outcome::add, 200, admitted("staged")},
          {"new, with an empty volume", [](auto& request, auto&) { request.fresh = true; }, Outcome::add, 200, admitted("staged")},
          {"older than every member", [](auto& request, auto&) { request.entry_types = metastore::kNewestEntryTypeOf31; },
           Outcome::older_release, 409,
           older + "every member of the cluster: it applies Raft entry types up to 32, every member applies up to 37 or more, "},
          {"reports nothing", [](auto& request, auto&) { request.entry_types.reset(); }, Outcome::older_release, 409,
           older + "every member of the cluster: it applies Raft entry types up to 22, "},
          {"reports zero", [](auto& request, auto&) { request.entry_types = 0; }, Outcome::older_release, 409,
           older + "every member of the cluster: it applies Raft entry types up to 22, "},
          {"as old as the oldest member",
           [](auto& request, auto& facts) {
             request.entry_types.reset();
             facts.member_types_min = metastore::kEveryReleaseEntryType;
           },
           Outcome::add, 200, admitted("staged")},
          {"as old as the oldest member, but an entry of a newer type has been applied",
           [](auto& request, auto& facts) {
             request.entry_types.reset();
             facts.member_types_min = metastore::kEveryReleaseEntryType;
             facts.types_used = 32;
           },
           Outcome::older_release, 409, older + "the cluster has used: it applies Raft entry types up to 22, and the cluster has "
                                                "applied entry type 32; "},
          {"the members cannot be read", [](auto&, auto& facts) { facts.members_error = "io: gone"; }, Outcome::unavailable, 503,
           "{\"error\":\"membership lookup failed\"}\n"},
          {"removed, with its old volume", [](auto&, auto& facts) { facts.is_tombstoned = true; }, Outcome::removed, 409,
           "{\"error\":\"node was decommissioned and removed from the cluster; delete its data directory (volume) to rejoin as a "
           "new node\"}\n"},
          {"removed, of a release that does not say",
           [](auto& request, auto& facts) {
             request.fresh.reset();
             facts.is_tombstoned = true;
           },
           Outcome::removed, 409, "{\"error\":\"node was decommissioned "},
          {"removed, with an empty volume",
           [](auto& request, auto& facts) {
             request.fresh = true;
             facts.is_tombstoned = true;
           },
           Outcome::readmit, 503, "{\"error\":\"readmit member failed\"}\n"},
          {"removed and older: the release is asked first",
           [](auto& request, auto& facts) {
             request.entry_types = 22;
             facts.is_tombstoned = true;
           },
           Outcome::older_release, 409, older},
      },
      leader_facts);
}

TEST(JoinRules, AnOlderReleaseIsToldTheCode) {
  const JoinDecision decision = decide_join(request_of(true, 22), leader_facts());
  EXPECT_TRUE(decision.reply.body.ends_with(",\"code\":\"older_release\"}\n"));
  EXPECT_EQ(decision.joiner_types, 22u);
  EXPECT_TRUE(shows_a_cluster(decision.reply));  // so that it never bootstraps a rival
}

TEST(JoinRules, AServerInTheConfigurationIsNeverRefusedAsOlder) {
  JoinFacts facts = promotable_facts();
  facts.types_used = metastore::kNewestEntryType;
  EXPECT_EQ(decide_join(request_of(false, 22), facts).outcome, Outcome::promote);
  facts.server->is_voter = true;
  EXPECT_EQ(decide_join(request_of(false, std::nullopt), facts).outcome, Outcome::is_voter);
}

TEST(JoinRules, EachAnswerToANonVoter) {
  const auto deferred = [](std::string_view reason) { return admitted("deferred", reason); };
  expect_rows(
      {
          {"all is well", [](auto&, auto&) {}, Outcome::promote, 200, admitted("promoted")},
          {"at another address", [](auto& request, auto&) { request.cluster_addr = "n4:7944"; }, Outcome::move_non_voter, 200,
           deferred("raft address updated; ask again")},
          {"new leader", [](auto&, auto& facts) { facts.led_for = 12s - 1ns; }, Outcome::deferred, 200,
           deferred("the leader has led for less than 12s, too short to have seen a failed heartbeat to an unreachable node")},
          {"no longer new", [](auto&, auto& facts) { facts.led_for = 12s; }, Outcome::promote, 200, admitted("promoted")},
          {"heartbeats fail",
           [](auto&, auto& facts) {
             facts.heartbeat_failed_ago = 1s;
             facts.heartbeat_answered_ago.reset();
           },
           Outcome::deferred, 200, deferred("the leader's raft heartbeats to it are failing")},
          {"no record", [](auto&, auto& facts) { facts.record.reset(); }, Outcome::deferred, 200,
           deferred("it has no member record yet")},
          {"the record cannot be read", [](auto&, auto& facts) { facts.members_error = "io: gone"; }, Outcome::deferred, 200,
           deferred("its member record could not be read: io: gone")},
          {"marked dead", [](auto&, auto& facts) { facts.record->is_alive = false; }, Outcome::deferred, 200,
           deferred("its member record is marked dead")},
          {"draining", [](auto&, auto& facts) { facts.record->is_draining = true; }, Outcome::deferred, 200,
           deferred("it is draining")},
          {"another, empty volume",
           [](auto& request, auto& facts) {
             request.fresh = true;
             facts.server->is_other_store = true;
           },
           Outcome::replace, 200, admitted("staged")},
      },
      promotable_facts);
}

TEST(JoinRules, ReasonsToDeferStandInTheirOrder) {
  JoinFacts facts = promotable_facts();
  facts.record = JoinFacts::Record{false, true};
  facts.members_error = "x";
  facts.heartbeat_failed_ago = 0s;
  facts.heartbeat_answered_ago.reset();
  facts.led_for = 1s;
  const auto reason = [&] { return decide_join(request_of(), facts).reason; };
  EXPECT_TRUE(reason().starts_with("the leader has led for less"));
  facts.led_for = 60s;
  EXPECT_TRUE(reason().starts_with("the leader's raft heartbeats"));
  facts.heartbeat_failed_ago.reset();
  EXPECT_TRUE(reason().starts_with("its member record could not be read"));
  facts.members_error.clear();
  EXPECT_EQ(reason(), "its member record is marked dead");
  facts.record->is_alive = true;
  EXPECT_EQ(reason(), "it is draining");
}

TEST(JoinRules, AHeartbeatThatFailedCountsTwelveSecondsUnlessOneWasAnsweredSince) {
  JoinFacts facts;
  EXPECT_FALSE(are_heartbeats_failing(facts));
  facts.heartbeat_failed_ago = 12s - 1ns;
  EXPECT_TRUE(are_heartbeats_failing(facts));
  facts.heartbeat_answered_ago = 13s;
  EXPECT_TRUE(are_heartbeats_failing(facts));
  facts.heartbeat_answered_ago = 1s;
  EXPECT_FALSE(are_heartbeats_failing(facts));
  facts.heartbeat_answered_ago.reset();
  facts.heartbeat_failed_ago = 12s;
  EXPECT_FALSE(are_heartbeats_failing(facts));
}

TEST(JoinRules, AVotersJoinChangesAtMostItsAddress) {
  expect_rows(
      {
          {"as recorded", [](auto&, auto&) {}, Outcome::is_voter, 200, admitted("voter")},
          {"at another address", [](auto& request, auto&) { request.cluster_addr = "n4:7944"; }, Outcome::move_voter, 200,
           admitted("voter")},
          {"with a new leader, dead and draining",
           [](auto&, auto& facts) {
             facts.led_for = 0s;
             facts.record = JoinFacts::Record{false, true};
           },
           Outcome::is_voter, 200, admitted("voter")},
          {"another volume that is not empty", [](auto&, auto& facts) { facts.server->is_other_store = true; }, Outcome::is_voter, 200,
           admitted("voter")},
          {"an empty volume that is the recorded one", [](auto& request, auto&) { request.fresh = true; }, Outcome::is_voter, 200,
           admitted("voter")},
      },
      voter_facts);
}

// MB-07: under its old id it is a new server, and votes only once it has been added and promoted again.
TEST(JoinRules, AVoterWithAnotherEmptyVolumeIsTakenOutAndStaged) {
  JoinFacts facts = voter_facts();
  facts.server->is_other_store = true;
  const JoinDecision decision = decide_join(request_of(true), facts);
  EXPECT_EQ(decision.outcome, Outcome::replace);
  EXPECT_EQ(decision.reply.body, admitted("staged"));
  facts.is_self = true;
  EXPECT_EQ(decide_join(request_of(true), facts).outcome, Outcome::is_voter);
}

TEST(JoinRules, TheJoinerReadsWhichAnswersShowACluster) {
  for (const int status : {200, 421, 409}) EXPECT_TRUE(shows_a_cluster(NodeReply{static_cast<uint16_t>(status), "", ""})) << status;
  for (const int status : {412, 400, 404, 503}) EXPECT_FALSE(shows_a_cluster(NodeReply{static_cast<uint16_t>(status), "", ""})) << status;
}

TEST(JoinRules, TheJoinerReadsTheAnswer) {
  const JoinAnswer answer = parse_join_answer(R"({"status": "deferred", "reason":"it is draining"})");
  EXPECT_EQ(answer.status, "deferred");
  EXPECT_EQ(answer.reason, "it is draining");
  EXPECT_EQ(parse_join_answer(R"({"status":"joined"})").status, "joined");
  EXPECT_EQ(parse_join_answer("not json").status, "");
}

TEST(JoinRules, AHintIsAnAddressThatCanBeDialled) {
  const auto hint = [](const std::string& address) {
    return parse_leader_hint("{\"error\":\"x\",\"leader_id\":\"n1\",\"leader_addr\":\"" + address + "\"}\n");
  };
  EXPECT_EQ(hint("n1:7943"), "n1:7943");
  EXPECT_EQ(hint("[::1]:1"), "[::1]:1");
  for (const std::string& bad : {std::string(), std::string("n1"), std::string("n1:0"), std::string(":7943"), std::string("n1:70000"),
                                 std::string(254, 'h') + ":7943"}) {
    EXPECT_EQ(hint(bad), "") << bad;
  }
  EXPECT_EQ(hint(std::string(253, 'h') + ":65535"), std::string(253, 'h') + ":65535");
  EXPECT_EQ(parse_leader_hint("{}"), "");
}

}  // namespace
}  // namespace engine::cluster
