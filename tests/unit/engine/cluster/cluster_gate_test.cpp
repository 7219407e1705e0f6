// What engine/cluster/entry_gate.h promises of a node's gate: whose replica and configuration it judges by, and what it logs.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "io/sim/switches.h"
#include "tests/support/gate_world.h"
#include "tests/support/topics.h"

namespace {

using namespace engine::metastore;
using namespace std::chrono_literals;
using engine::cluster::GateAnswer;
using tests::GateWorld;

const std::string kHeld = "metastore: not using a new raft entry type yet; proposing the entries every member applies";
const std::string kUsing = "metastore: every member applies raft entry type ";

struct ClusterGateTest : testing::Test {
  io::sim::Switchboard board;
  io::sim::SwitchboardGuard guard{&board};

  static raft::ConfigurationChange add(const std::string& id) {
    return {raft::ConfigurationChange::Kind::add, id, id + ":7943", {}};
  }
};

TEST_F(ClusterGateTest, TypesOfEveryReleasePassEverywhereAndOthersOnlyAtTheLeader) {
  GateWorld cluster(11);
  const size_t leader = cluster.lead();
  const size_t follower = (leader + 1) % 3;
  ASSERT_TRUE(cluster.report_all());
  ASSERT_TRUE(cluster.all_level());
  EXPECT_TRUE(cluster.judge(leader, 37).may_use);
  EXPECT_TRUE(cluster.judge(follower, 22).may_use);
  const GateAnswer answer = cluster.judge(follower, 23);
  EXPECT_FALSE(answer.may_use);
  EXPECT_EQ(answer.holder, "");
  EXPECT_EQ(answer.reason, "the cluster's members could not be read: this node does not lead");
}

TEST_F(ClusterGateTest, FollowsEveryRecordAndTheNewestConfiguration) {
  GateWorld cluster(12);
  const size_t leader = cluster.lead();
  const size_t f = (leader + 1) % 3;
  const std::string name = cluster[f].machine->name();
  EXPECT_NE(cluster.judge(leader, 23).reason.find("has no member record"), std::string::npos);
  ASSERT_TRUE(cluster.report_all());
  EXPECT_TRUE(cluster.judge(leader, 23).may_use);
  // A report replaces the one before, newer or older.
  cluster.set_release(f, "3.1.0", 32);
  ASSERT_TRUE(cluster.report(f));
  EXPECT_TRUE(cluster.judge(leader, 32).may_use);
  EXPECT_EQ(cluster.judge(leader, 33).reason, "member \"" + name +
                                                  "\" (3.1.0) applies Raft entry types up to 32; Raft entry type 33 waits until it is "
                                                  "upgraded or removed");
  EXPECT_EQ(cluster.judge(leader, 33).holder, name);
  cluster.set_release(f, "3.2.0", 37);
  ASSERT_TRUE(cluster.report(f));
  EXPECT_TRUE(cluster.judge(leader, 33).may_use);
  // A server counts from the moment that its configuration is appended, committed or not.
  for (size_t i = 0; i < 3; ++i) {
    if (i != leader) cluster.world.network().cut_both(*cluster[leader].machine, *cluster[i].machine);
  }
  const auto started = cluster.on(leader, [&] { return cluster[leader].server->start_change(add("n9")).refusal; });
  ASSERT_EQ(started, raft::Refusal::none);
  EXPECT_EQ(cluster.judge(leader, 23).reason,
            "raft server \"n9\" has no member record, so its release is unknown; Raft entry type 23 waits until it registers or is removed");
}

TEST_F(ClusterGateTest, TheHeldTypeIsLoggedOnceAMinuteAndItsFirstUseOnce) {
  GateWorld cluster(13);
  const size_t leader = cluster.lead();
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(cluster.judge(leader, 24).may_use);
    EXPECT_FALSE(cluster.judge(leader, 31).may_use);
  }
  const std::vector<std::string> held = cluster.lines(leader, kHeld);
  ASSERT_EQ(held.size(), 2u) << "one a type";
  EXPECT_NE(held[0].find("entry_type=24"), std::string::npos) << held[0];
  EXPECT_NE(held[0].find("name=compare-and-set topic update"), std::string::npos) << held[0];
  EXPECT_NE(held[0].find("reason=raft server"), std::string::npos) << held[0];
  cluster.world.run_for(61s);
  EXPECT_FALSE(cluster.judge(leader, 24).may_use);
  EXPECT_FALSE(cluster.judge(leader, 24).may_use);
  EXPECT_EQ(cluster.lines(leader, kHeld).size(), 3u);
  ASSERT_TRUE(cluster.report_all());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(cluster.judge(leader, 24).may_use);
  EXPECT_EQ(cluster.lines(leader, kUsing), std::vector<std::string>{kUsing + "24; using compare-and-set topic update"});
}

TEST_F(ClusterGateTest, ANewLeaderWaitsUntilItHasAppliedWhatItsLogHeld) {
  GateWorld cluster(14);
  const size_t leader = cluster.lead();
  const size_t next = (leader + 1) % 3;
  const size_t third = (leader + 2) % 3;
  const std::string name = cluster[third].machine->name();
  ASSERT_TRUE(cluster.report_all());
  ASSERT_TRUE(cluster.all_level());
  // The next leader's replica hangs while another member goes back to an older release.
  cluster.volume(next).set_rates({{.prefix = "fsm.db/", .no_space_ppm = 1'000'000}});
  cluster.set_release(third, "3.1.0", 32);
  ASSERT_TRUE(cluster.report(third));
  ASSERT_TRUE(cluster.make_leader(next));
  EXPECT_EQ(cluster.judge(next, 33, 50ms).reason,
            "the cluster's members could not be read: this leader has not applied yet what its log holds");
  cluster.volume(next).set_rates({});
  const GateAnswer answer = cluster.judge(next, 33, 5s);
  EXPECT_EQ(answer.holder, name) << "and not what it had applied when it was elected: " << answer.reason;
}

// The node's reader, and what a test wants beside it.
struct BentReader final : Reader {
  explicit BentReader(Reader& reader) : real(reader) {}
  io::Result<std::shared_ptr<const Topic>> get_topic(std::string_view name, io::Instant deadline) override {
    return real.get_topic(name, deadline);
  }
  io::Result<std::vector<std::shared_ptr<const Topic>>> list_topics(std::string_view after, size_t limit, io::Instant deadline) override {
    return real.list_topics(after, limit, deadline);
  }
  io::Result<std::vector<std::string>> names_like(std::string_view name, io::Instant deadline) override {
    return real.names_like(name, deadline);
  }
  io::Result<std::optional<std::string>> get_row(Bucket bucket, std::string_view key, io::Instant deadline) override {
    return real.get_row(bucket, key, deadline);
  }
  io::Result<std::vector<Row>> list_rows(Bucket bucket, std::string_view prefix, std::string_view after, size_t limit,
                                         io::Instant deadline) override {
    ++lists;
    if (error) return *error;
    auto rows = real.list_rows(bucket, prefix, after, limit, deadline);
    if (lists == 1) io::sleep_for(waits);
    return rows;
  }

  Reader& real;
  std::optional<io::Error> error;
  io::Duration waits{0};  // the first list, before it returns
  int lists = 0;
};

TEST_F(ClusterGateTest, SaysWhyTheMembersCannotBeRead) {
  GateWorld cluster(15);
  const size_t leader = cluster.lead();
  ASSERT_TRUE(cluster.report_all());
  const auto answer = cluster.on(leader, [&] {
    io::Env& env = cluster[leader].machine->process()->env();
    BentReader reader(*cluster[leader].fsm);
    reader.error = io::fail(io::ErrorKind::io, "the disk says no");
    return engine::cluster::ClusterGate(env, reader, *cluster[leader].server, {cluster[leader].machine->name(), "3.2.0", 37}).judge(23, env.after(1s));
  });
  ASSERT_TRUE(answer.has_value());
  EXPECT_FALSE(answer->may_use);
  EXPECT_EQ(answer->holder, "");
  EXPECT_TRUE(answer->reason.starts_with("the cluster's members could not be read: ")) << answer->reason;
  EXPECT_NE(answer->reason.find("the disk says no"), std::string::npos) << answer->reason;
}

TEST_F(ClusterGateTest, AReadThatEntriesOvertookIsMadeAgain) {
  GateWorld cluster(16);
  const size_t leader = cluster.lead();
  const size_t f = (leader + 1) % 3;
  ASSERT_TRUE(cluster.report_all());
  auto asked = cluster.begin(leader, [&] {
    io::Env& env = cluster[leader].machine->process()->env();
    BentReader reader(*cluster[leader].fsm);
    reader.waits = 2s;
    const GateAnswer answer =
        engine::cluster::ClusterGate(env, reader, *cluster[leader].server, {cluster[leader].machine->name(), "3.2.0", 37}).judge(33, env.after(10s));
    EXPECT_EQ(reader.lists, 2);
    return answer;
  });
  cluster.world.run_for(500ms);
  cluster.set_release(f, "3.1.0", 32);
  ASSERT_TRUE(cluster.report(f));
  ASSERT_TRUE(cluster.run_until([&] { return asked->has_value(); }, 10s));
  EXPECT_EQ((*asked)->holder, cluster[f].machine->name()) << "and not what it had reported when the first read began";
}

// Two requests wait at one gate, the first since an earlier term of the same leader's.
TEST_F(ClusterGateTest, AnAnswerOfATermThatHasPassedIsNone) {
  GateWorld cluster(17);
  const size_t leader = cluster.lead();
  ASSERT_TRUE(cluster.report_all());
  ASSERT_TRUE(cluster.all_level());
  io::Env& env = cluster[leader].machine->process()->env();
  BentReader reader(*cluster[leader].fsm);
  reader.waits = 20s;
  engine::cluster::ClusterGate gate(env, reader, *cluster[leader].server, {cluster[leader].machine->name(), "3.2.0", 37});
  auto first = cluster.begin(leader, [&] { return gate.judge(33, env.after(40s)); });
  cluster.world.run_for(100ms);
  ASSERT_TRUE(cluster.make_leader((leader + 1) % 3));
  ASSERT_TRUE(cluster.make_leader(leader));
  ASSERT_TRUE(cluster.report_all());
  auto second = cluster.begin(leader, [&] { return gate.judge(33, env.after(5s)); });
  ASSERT_TRUE(cluster.run_until([&] { return second->has_value(); }, 10s));
  EXPECT_TRUE((*second)->may_use);
  ASSERT_FALSE(first->has_value());
  ASSERT_TRUE(cluster.run_until([&] { return first->has_value(); }, 40s));
  EXPECT_FALSE((*first)->may_use) << "what it read is of a term in which others led since";
}

}  // namespace
