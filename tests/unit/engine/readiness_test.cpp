// What /readyz says, word for word (narad/log-lines.md, "Readiness reasons"), in the moments that it is said in.

#include "engine/readiness.h"

#include <gtest/gtest.h>

#include "tests/support/server_world.h"

namespace engine {
namespace {

using namespace std::chrono_literals;
using metastore::Currency;
using metastore::Replica;
using tests::ServerWorld;

constexpr const char* kPrefix = "metastore: node is not ready: ";

struct Watched {
  Watched(ServerWorld& servers, size_t i)
      : replica(servers[i].machine->process()->env(), *servers[i].server, *servers[i].state_machine),
        readiness(*servers[i].server, replica) {
    readiness.mark_started();
  }
  Replica replica;
  Readiness readiness;
};

TEST(Readiness, EachReasonIsSaidInItsOwnWords) {
  ServerWorld servers(1);
  servers.start_all();
  ASSERT_TRUE(servers.run_until([&] { return servers.is_up(0) && servers.is_up(1) && servers.is_up(2); }, 1s));
  Watched node(servers, 0);
  EXPECT_EQ(Readiness(*servers[0].server, node.replica).why_not_ready(), "not ready") << "the start is not finished";
  EXPECT_EQ(node.readiness.why_not_ready(), std::string(kPrefix) + "no raft leader known");
  const int leader = servers.await_leader();
  ASSERT_GE(leader, 0);
  servers.world.run_for(1s);
  EXPECT_EQ(node.readiness.why_not_ready(), std::string(kPrefix) + "replica has not caught up with the leader since start");
  bool has_latched = false;
  servers[0].machine->process()->spawn("latch", [&] {
    node.replica.wait_until_caught_up();
    has_latched = true;
  });
  ASSERT_TRUE(servers.run_until([&] { return has_latched; }, 2s));
  EXPECT_EQ(node.readiness.why_not_ready(), std::nullopt);
  for (size_t other = 1; other < 3; ++other) servers.world.network().cut_both(*servers[0].machine, *servers[other].machine);
  servers.world.run_for(2s);
  EXPECT_EQ(node.readiness.why_not_ready(), std::string(kPrefix) + "no raft leader known") << "a ready node that lost its leader";
  servers.world.network().heal_all();
  ASSERT_TRUE(servers.run_until([&] { return node.readiness.why_not_ready() == std::nullopt; }, 10s));
  node.readiness.mark_stopping();
  EXPECT_EQ(node.readiness.why_not_ready(), "not ready");
}

TEST(Readiness, AFollowerWithoutContactSaysSoAndOneWithOldContactHowOld) {
  ServerWorld servers(2, 4);
  servers.start_all();
  const int leader = servers.await_leader();
  ASSERT_GE(leader, 0);
  servers.world.run_for(500ms);
  const size_t silent = (static_cast<size_t>(leader) + 1) % 4;
  raft::ConfigurationChange change;
  change.kind = raft::ConfigurationChange::Kind::demote;
  change.id = servers.members[silent].first;
  auto call = servers.change(static_cast<size_t>(leader), change);
  ASSERT_TRUE(servers.run_until([&] { return call->done; }, 5s));
  servers.world.run_for(1s);
  // A restarted follower hears its leader before the leader has heard it.
  servers[silent].machine->kill();
  servers.world.run_for(100ms);
  servers.start(silent);
  ASSERT_TRUE(servers.run_until([&] { return servers.is_up(silent) && !servers[silent].server->core().leader().empty(); }, 5s));
  Watched node(servers, silent);
  EXPECT_EQ(node.readiness.why_not_ready(), std::string(kPrefix) + "no contact with the raft leader yet");
  ASSERT_TRUE(servers.run_until([&] { return node.replica.is_caught_up(); }, 5s));
  for (size_t other = 0; other < 4; ++other) {
    if (other != silent) servers.world.network().cut_both(*servers[silent].machine, *servers[other].machine);
  }
  ASSERT_TRUE(servers.run_until([&] { return node.replica.currency() == Currency::old_contact; }, 6s));
  const std::string at_once = node.readiness.why_not_ready().value_or("");
  EXPECT_TRUE(at_once.starts_with(std::string(kPrefix) + "last raft leader contact 5s") && at_once.ends_with(" ago")) << at_once;
  servers.world.run_for(1250ms);
  const std::string later = node.readiness.why_not_ready().value_or("");
  EXPECT_TRUE(later.starts_with(std::string(kPrefix) + "last raft leader contact 6s2") && later.ends_with("ms ago")) << later;
}

}  // namespace
}  // namespace engine
