// A server whose log has lost its end, or is an older copy, is not the one that has acknowledged: it says so instead of voting.
// (Where the record of term and vote is no newer than the log, the state machine's index tells; tests/unit/engine/node_test.cpp.)

#include <gtest/gtest.h>

#include "tests/support/server_world.h"

namespace {

using namespace std::chrono_literals;
using tests::ServerWorld;

std::string violations(const ServerWorld& servers) {
  std::string all;
  for (const std::string& each : servers.world.violations()) all += each + "\n";
  return all;
}

// A, B and C: A leads, 30 commands are everywhere, 20 more on A and B alone; in between B has taken over, so that B's record of
// term and vote is newer than its older log.
struct LostLogWorld : ServerWorld {
  explicit LostLogWorld(uint64_t seed) : ServerWorld(seed) {
    start_all();
    const int leader = await_leader();
    NARAD_CHECK(leader >= 0, "a healthy cluster elects a leader");
    a = static_cast<size_t>(leader);
    b = (a + 1) % 3;
    c = (a + 2) % 3;
    write(a, 30);
    NARAD_CHECK(all_applied(written), "a healthy cluster applies what it has committed");
    older = nodes[b]->machine->volume().copy("raft/log");
    for (const size_t i : {a, b}) world.network().cut_both(*nodes[i]->machine, *nodes[c]->machine);
    write(a, 10);
    auto moved = transfer(a, nodes[b]->machine->name());
    NARAD_CHECK(run_until([&] { return moved->done; }, 10s) && moved->answer.ok(), "leadership moves");
    NARAD_CHECK(await_leader() == static_cast<int>(b), "B leads");
    write(b, 10);
    for (const size_t i : {a, b}) nodes[i]->machine->kill();
    world.network().heal_all();
  }

  void write(size_t leader, int count) {
    for (int i = 0; i < count; ++i) {
      written.push_back(std::to_string(written.size() + 1));
      auto call = propose(leader, written.back());
      NARAD_CHECK(run_until([&] { return call->done; }, 10s) && call->answer.ok(), "a command is taken");
    }
  }

  size_t a = 0, b = 0, c = 0;
  std::vector<std::string> written;
  io::sim::FileTree::Image older;  // B's raft/log when there were 30
};

// Scenario PT-08: with the record of term and vote newer than the log.
TEST(ServerLostLog, AServerWhoseLogLostItsEndNeitherVotesNorLeads) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    LostLogWorld servers(seed);
    io::sim::Volume& volume = servers[servers.b].machine->volume();
    volume.restore("raft/log", seed % 3 == 0 ? io::sim::FileTree::Image{} : servers.older);
    const auto before = volume.copy("");
    // However often it is tried.
    for (int life = 0; life < 3; ++life) {
      servers.start(servers.b);
      servers.world.run_for(5s);
      ASSERT_FALSE(servers.is_up(servers.b));
      EXPECT_NE(servers[servers.b].open_error.find("was durable when raft/stable was written"), std::string::npos)
          << servers[servers.b].open_error;
      EXPECT_TRUE(volume.copy("").files == before.files) << "a refused start changed the disk";
    }
    EXPECT_EQ(servers.leader(), -1) << "C and a log that lost its end are no quorum";
    servers.start(servers.a);
    EXPECT_GE(servers.await_leader(), 0);
    EXPECT_TRUE(servers.all_applied(servers.written));
    EXPECT_EQ(violations(servers), "");
  }
}

}  // namespace
