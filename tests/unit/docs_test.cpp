// The operators' pages have an entry for everything that a node refuses, defers or holds back, in the node's own words.

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "engine/cluster/dead_marking.h"
#include "engine/cluster/entry_gate.h"
#include "engine/cluster/join_rules.h"
#include "engine/json_text.h"
#include "raft/restart.h"
#include "tests/support/paths.h"

namespace {

using namespace engine::cluster;
using engine::metastore::Member;

// In one line, so that where a line of the page ends makes no difference.
std::string page(const std::string& name) {
  std::ifstream file(tests::source_dir() + "/docs/operate/" + name, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  std::string line = text.str();
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  return line;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

struct OperatorPages : testing::Test {
  const std::string troubleshooting = page("troubleshooting.md");

  void expect_entry(const std::string& text) {
    EXPECT_NE(troubleshooting.find(text), std::string::npos) << "no entry says: " << text;
  }
};

TEST_F(OperatorPages, HaveAnEntryForEachReasonThatHoldsATypeBack) {
  const GateSelf old{"<id>", "<build>", 32};
  const GateSelf own{"n2", "3.2.0", 37};
  Member member;
  member.id = "<id>";
  member.build = "<build>";
  member.entry_types = 32;
  const auto entry = [](const std::optional<HeldBack>& held) {
    return replaced(replaced(held ? held->reason : "nothing holds it back", "33", "<n>"), "32", "<m>");
  };
  expect_entry(entry(hold_back(33, {"<id>"}, {}, own)));
  expect_entry(entry(hold_back(33, {"<id>"}, {}, old)));
  expect_entry(entry(hold_back(33, {}, {member}, own)));
  member.build.clear();
  const std::string unknown = entry(hold_back(33, {}, {member}, own));
  expect_entry(unknown.substr(0, unknown.find(" applies")));
  expect_entry("the cluster's members could not be read: <err>");
}

TEST_F(OperatorPages, HaveAnEntryForEachAnswerToAJoiner) {
  JoinClusterRequest request;
  request.id = "n9";
  request.cluster_addr = "h:7943";
  request.entry_types = 37;
  JoinFacts settled;
  settled.has_configuration = true;
  settled.is_leader = true;
  settled.member_types_min = 22;
  settled.led_for = kPromotionWait;
  settled.server = JoinFacts::Server{"h:7943", false, false};
  settled.record = JoinFacts::Record{true, false};
  const auto decision = [&](const std::function<void(JoinFacts&)>& change) {
    JoinFacts facts = settled;
    change(facts);
    return decide_join(io::Result<JoinClusterRequest>(request), facts);
  };
  const auto expect_reason = [&](const std::function<void(JoinFacts&)>& change) {
    const JoinDecision made = decision(change);
    ASSERT_NE(made.reason, "");
    expect_entry(replaced(made.reason, "why", "..."));
  };
  expect_reason([](JoinFacts& facts) { facts.led_for = {}; });
  expect_reason([](JoinFacts& facts) { facts.heartbeat_failed_ago = io::Duration(0); });
  expect_reason([](JoinFacts& facts) { facts.members_error = "why"; });
  expect_reason([](JoinFacts& facts) { facts.record.reset(); });
  expect_reason([](JoinFacts& facts) { facts.record->is_alive = false; });
  expect_reason([](JoinFacts& facts) { facts.record->is_draining = true; });
  expect_reason([](JoinFacts& facts) { facts.server->addr = "h:1"; });
  // The others by their statuses and their errors.
  const auto expect_answer = [&](const std::string& text, const std::function<void(JoinFacts&)>& change) {
    const NodeReply reply = decision(change).reply;
    EXPECT_NE(reply.body.find(text), std::string::npos) << reply.body;
    expect_entry(text);
    expect_entry("### " + std::to_string(reply.status) + " ");
  };
  expect_answer("no raft configuration on this node", [](JoinFacts& facts) { facts.has_configuration = false; });
  expect_answer("not the metastore leader", [](JoinFacts& facts) { facts.is_leader = false; });
  expect_answer("older_release", [](JoinFacts& facts) {
    facts.server.reset();
    facts.types_used = 38;
  });
  expect_answer("node was decommissioned and removed from the cluster; delete its data directory (volume) to rejoin as a new node",
                [](JoinFacts& facts) { facts.is_tombstoned = true; });
  expect_answer("raft configuration lookup failed", [](JoinFacts& facts) { facts.is_running = false; });
  expect_answer("membership lookup failed", [](JoinFacts& facts) {
    facts.server.reset();
    facts.members_error = "why";
  });
  expect_entry(std::string(kAdmissionFailed));
  expect_entry(std::string(kReadmitFailed));
  for (const std::string status : {"staged", "deferred", "promoted", "voter"}) expect_entry("\"status\":\"" + status + "\"");
}

// By the words in which each row of raft/restart.h refuses; the numbers are those of the node.
TEST_F(OperatorPages, HaveAnEntryForEachRefusalToStart) {
  for (const char* words :
       {"holds raft entry type <t>, written by a newer Narad release than this build", "but no record of term and vote",
        "holds metadata, but there is no raft state beside it", "belongs to store <x>, not to this data directory",
        "raft state is older than fsm.db", "entries between them are missing", "is damaged, and nothing else reaches that far",
        "damaged at offset <o> (index <i>)", "the data directory is in use by another process", "but no file FORMAT",
        "the data directory has format <n>, written by a newer Narad release than this build",
        "the file FORMAT of the data directory does not name a layout", "in a format that this one does not know",
        "ACTIVE is missing, but fsm.db holds a database", "fsm.db cannot be set aside as fsm.db.stale", "`config: ...`"}) {
    expect_entry(words);
  }
  raft::RestartFacts facts;
  facts.build.path = "fsm.db";
  facts.build.raft_path = "raft";
  facts.state_machine.holds_anything = true;
  facts.state_machine.is_trusted = true;
  facts.state_machine.index = 7;
  const raft::RestartDecision bare = raft::decide_restart(facts);
  ASSERT_EQ(bare.action, raft::RestartDecision::Action::refuse);
  EXPECT_NE(bare.reason.find("holds metadata, but there is no raft state beside it"), std::string::npos) << bare.reason;
  facts.has_term_record = true;
  facts.log_last = 5;
  const raft::RestartDecision older = raft::decide_restart(facts);
  ASSERT_EQ(older.row, raft::RestartRow::ahead);
  std::string text = older.reason.substr(0, older.reason.find(" Restore"));
  text = replaced(replaced(replaced(text, "index 7", "index <a>"), "(index 5)", "(index <l>)"), "(index 0)", "(index <s>)");
  expect_entry(replaced(text, "index 5", "index <n>"));
}

TEST_F(OperatorPages, NameTheBoundaryOfEachReleaseByTheTypesThatItApplies) {
  const std::string upgrade = page("upgrade.md");
  for (const uint32_t newest : {engine::metastore::kEveryReleaseEntryType, engine::metastore::kNewestEntryTypeOf31,
                                engine::metastore::kNewestEntryType}) {
    EXPECT_NE(upgrade.find("| 1 to " + std::to_string(newest) + " |"), std::string::npos) << newest;
  }
}

}  // namespace
