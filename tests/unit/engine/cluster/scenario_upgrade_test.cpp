// Scenarios of upgrades: who holds an entry type back, what an older build does with what it does not know, and what a change of leaders
// leaves of it; each step by step, on servers with the production stores.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/cluster/dead_marking.h"
#include "io/sim/switches.h"
#include "tests/support/gate_world.h"
#include "tests/support/topics.h"

namespace {

using namespace engine::metastore;
using namespace std::chrono_literals;
using engine::cluster::GateAnswer;
using tests::GateWorld;
using tests::make_topic;

class UpgradeScenario : public testing::Test {
 protected:
  static bool is_in(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
  // The files of its database, with their bytes.
  static std::map<std::string, std::string> database(GateWorld& cluster, size_t i) { return cluster.volume(i).copy("fsm.db").files; }
  // One entry of a type that the state machine refuses: it counts as applied all the same.
  static bool writes_type_30(GateWorld& cluster) { return cluster.write(PruneAssignment{"none", 0}).has_value(); }
  // How far its database is, while it is down.
  static FsmState held(GateWorld& cluster, size_t i) {
    FsmState state;
    cluster[i].machine->start([&state](io::Env& env) {
      const auto found = Fsm::look(env);
      EXPECT_TRUE(found.ok());
      if (found.ok()) state = found->meta.state;
      return 0;
    });
    EXPECT_TRUE(cluster.await_end(i, 10s));
    return state;
  }

  io::sim::Switchboard board;
  io::sim::SwitchboardGuard guard{&board};
};

// Scenario UG-01.
TEST_F(UpgradeScenario, TheLastReportOfAMemberThatIsDeadForAnHourHoldsTheTypeBackUntilItIsUpgraded) {
  GateWorld cluster(201);
  cluster.set_release(2, "3.0.1", 22, true);
  cluster.lead();
  ASSERT_TRUE(cluster.make_leader(0));
  ASSERT_TRUE(cluster.report_all());
  // 1. A and B are of the new release, C is of the old one and dead for an hour.
  cluster.kill(2);
  ASSERT_TRUE(cluster.writes(MarkMemberDead{"n3"}));
  cluster.world.run_for(1h);
  ASSERT_TRUE(cluster.report(0));
  ASSERT_TRUE(cluster.report(1));
  // 2. The leader asks.
  const GateAnswer asked = cluster.judge(0, 24);
  EXPECT_FALSE(asked.may_use);
  EXPECT_EQ(asked.reason,
            "member \"n3\" (unknown build) applies Raft entry types up to 22; Raft entry type 24 waits until it is upgraded or removed");
  EXPECT_EQ(cluster.judge(0, 22).reason, "");
  // 3. C returns, on the old release and then on the new one.
  cluster.start(2);
  ASSERT_TRUE(cluster.all_level());
  ASSERT_TRUE(cluster.report(2));
  EXPECT_FALSE(cluster.judge(0, 24).may_use);
  cluster.kill(2);
  cluster.set_release(2, "3.2.0", 37);
  cluster.start(2);
  ASSERT_TRUE(cluster.await_up(2));
  EXPECT_FALSE(cluster.judge(0, 24).may_use) << "its last report stands until the next one";
  ASSERT_TRUE(cluster.report(2));
  EXPECT_TRUE(cluster.judge(0, 24).may_use);
  ASSERT_TRUE(cluster.writes(CreateTopicLinked{.topic = make_topic("new"), .schema = "", .link = {}}));
  ASSERT_TRUE(cluster.all_level());
  EXPECT_TRUE(cluster.all_agree());
}

// Scenario UG-01.
TEST_F(UpgradeScenario, AReleaseThatMeetsATypeAllTheSameStopsThereAndNeverPassesOverIt) {
  GateWorld cluster(202);
  cluster.set_release(2, "3.1.0", 32);
  cluster.lead();
  ASSERT_TRUE(cluster.make_leader(0));
  ASSERT_TRUE(cluster.report_all());
  cluster.kill(2);
  const raft::Index before = cluster[2].digests.rbegin()->first;
  ASSERT_FALSE(cluster.judge(0, 37).may_use);
  // As if nobody had asked.
  ASSERT_TRUE(cluster.write(DeleteRemote{.name = "east", .force = false, .actor = "", .request_id = ""}).has_value());
  ASSERT_TRUE(cluster.writes(CreateTopic{make_topic("behind")}));
  for (int life = 0; life < 2; ++life) {
    cluster.start(2);
    ASSERT_TRUE(cluster.await_end(2, 30s));
    EXPECT_EQ(cluster[2].exit_code, 1);
    EXPECT_TRUE(is_in(cluster[2].failure, "has entry type 37, which this build (3.1.0) does not know (it applies entry types 1 to 32)"))
        << cluster[2].failure;
    const raft::Index held_now = held(cluster, 2).applied_index;
    EXPECT_GE(held_now, before);
    EXPECT_FALSE(cluster[2].answers.contains(held_now + 1)) << "it counts nothing behind";
  }
  cluster.set_release(2, "3.2.0", 37);
  cluster.start(2);
  ASSERT_TRUE(cluster.all_level());
  EXPECT_TRUE(cluster.has_topic(2, "behind"));
  EXPECT_TRUE(cluster.all_agree());
}

// Scenario UG-02.
TEST_F(UpgradeScenario, AnOlderBuildRefusesADatabaseOfANewerOneAndLeavesItByteForByte) {
  GateWorld cluster(203);
  const size_t leader = cluster.lead();
  const size_t f = (leader + 1) % 3;
  ASSERT_TRUE(cluster.writes(CreateTopic{make_topic("t")}));
  // 1. A store with type 30 applied; the old build starts.
  ASSERT_TRUE(writes_type_30(cluster));
  ASSERT_TRUE(cluster.all_level());
  cluster.kill(f);
  cluster.world.run_for(10s);
  const auto before = database(cluster, f);
  const auto raft_before = cluster.volume(f).copy("raft").files;
  cluster.set_release(f, "3.0.9", 29);
  for (int start = 0; start < 2; ++start) {
    cluster.start(f);
    ASSERT_TRUE(cluster.await_end(f, 10s));
    EXPECT_EQ(cluster[f].exit_code, 1);
    EXPECT_EQ(cluster[f].row, raft::RestartRow::newer_release);
    EXPECT_TRUE(is_in(cluster[f].failure, "holds raft entry type 30, written by a newer Narad release than this build (3.0.9, which knows "
                                          "entry types up to 29); run that release or newer"))
        << cluster[f].failure;
    EXPECT_EQ(database(cluster, f), before);
    EXPECT_EQ(cluster.volume(f).copy("raft").files, raft_before);
  }
  cluster.set_release(f, "3.2.0", 37);
  cluster.start(f);
  ASSERT_TRUE(cluster.all_level());
  EXPECT_TRUE(cluster.all_agree());
}

// Scenario UG-02.
TEST_F(UpgradeScenario, AnOlderBuildThatIsSentAnImageOfANewerOneStopsWithItsDatabaseAsItWas) {
  GateWorld cluster(204);
  cluster.options.snapshots.threshold = 5;
  const size_t leader = cluster.lead();
  const size_t f = (leader + 1) % 3;
  ASSERT_TRUE(cluster.writes(CreateTopic{make_topic("t")}));
  ASSERT_TRUE(cluster.all_level());
  cluster.kill(f);
  const FsmState before = held(cluster, f);
  // 2. The leader of the new release has only an image for it.
  ASSERT_TRUE(writes_type_30(cluster));
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(cluster.writes(CreateTopic{make_topic("t" + std::to_string(i))}));
    cluster.world.run_for(30ms);
  }
  const int leads = cluster.await_leader();
  ASSERT_GE(leads, 0);
  ASSERT_GT(cluster[static_cast<size_t>(leads)].server->status().log_base, before.applied_index);
  cluster.set_release(f, "3.0.9", 29);
  cluster.start(f);
  ASSERT_TRUE(cluster.await_end(f, 30s));
  EXPECT_EQ(cluster[f].exit_code, 1);
  EXPECT_TRUE(is_in(cluster[f].failure, "the raft snapshot holds raft entry type 30, written by a newer Narad release")) << cluster[f].failure;
  EXPECT_EQ(held(cluster, f), before);
  cluster.set_release(f, "3.2.0", 37);
  cluster.start(f);
  ASSERT_TRUE(cluster.all_level());
  EXPECT_TRUE(cluster.all_agree());
}

// Scenario UG-07.
TEST_F(UpgradeScenario, EveryLeaderDerivesTheGateAnewAndLogsItsOwnFirstUse) {
  const std::string kUsing = "metastore: every member applies raft entry type ";
  GateWorld cluster(207);
  cluster.lead();
  ASSERT_TRUE(cluster.make_leader(0));
  ASSERT_TRUE(cluster.report_all());
  ASSERT_TRUE(cluster.all_level());
  // 1. All are new; the leader dies between deciding and the first use.
  EXPECT_TRUE(cluster.judge(0, 31).may_use);
  EXPECT_EQ(cluster.lines(0, kUsing).size(), 1u);
  cluster.kill(0);
  // 2. The new leader uses it by what its own replica says, and so does every other one after it.
  const int next = cluster.await_leader();
  ASSERT_GT(next, 0);
  const size_t second = static_cast<size_t>(next);
  const size_t third = 3 - second;
  for (const size_t leader : {second, third, second}) {
    ASSERT_TRUE(cluster.make_leader(leader));
    const GateAnswer answer = cluster.judge(leader, 31);
    EXPECT_TRUE(answer.may_use) << answer.reason;
    EXPECT_TRUE(cluster.judge(leader, 31).may_use);
    EXPECT_EQ(cluster.lines(leader, kUsing), std::vector<std::string>{kUsing + "31; using dead mark from an observed heartbeat"});
  }
  EXPECT_TRUE(cluster.writes(MarkMemberDeadIf{"n1", cluster.last_stamp()}));
  cluster.start(0);
  ASSERT_TRUE(cluster.all_level());
  EXPECT_TRUE(cluster.all_agree());
}

}  // namespace
