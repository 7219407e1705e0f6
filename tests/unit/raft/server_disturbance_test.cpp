// What goes wrong around a healthy majority and must not disturb it: silent peers, clocks that jump, peers that come late, entries
// larger than a chunk of an image.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/server_world.h"

namespace {

using namespace std::chrono_literals;
using tests::ServerWorld;

std::string violations(const ServerWorld& servers) {
  std::string all;
  for (const std::string& each : servers.world.violations()) all += each + "\n";
  return all;
}

size_t lead(ServerWorld& servers) {
  servers.start_all();
  const int leader = servers.await_leader();
  NARAD_CHECK(leader >= 0, "a healthy cluster elects a leader");
  servers.world.run_for(500ms);
  return static_cast<size_t>(leader);
}

// How long one command took, and that it was taken.
io::Duration write(ServerWorld& servers, size_t leader, const std::string& command) {
  const io::Instant begun = servers.world.now();
  auto call = servers.propose(leader, command);
  NARAD_CHECK(servers.run_until([&] { return call->done; }, 10s), "a proposal ends");
  EXPECT_TRUE(call->answer.ok()) << call->answer.reason;
  return servers.world.now() - begun;
}

// Scenario NW-02.
TEST(ServerDisturbance, ASilentPeerHoldsUpNeitherHeartbeatsNorCommits) {
  const auto median = [](std::vector<io::Duration> all) {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  };
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    ServerWorld servers(seed, 5);
    const size_t leader = lead(servers);
    std::vector<io::Duration> before;
    for (int i = 0; i < 60; ++i) before.push_back(write(servers, leader, "before"));
    const raft::Term term = servers[leader].server->core().term();
    const size_t silent = (leader + 1) % 5;
    for (size_t i = 0; i < 5; ++i) {
      if (i != silent) servers.world.network().cut_both(*servers[i].machine, *servers[silent].machine);
    }
    std::vector<io::Duration> meanwhile;
    for (int i = 0; i < 60; ++i) {
      meanwhile.push_back(write(servers, leader, "meanwhile"));
      servers.world.run_for(150ms);
    }
    EXPECT_EQ(servers[leader].server->core().term(), term) << "nobody campaigned";
    EXPECT_LE(median(meanwhile), 2 * median(before));
    EXPECT_EQ(violations(servers), "");
  }
}

// Scenario NW-05.
TEST(ServerDisturbance, APeerThatComesLateIsConnectedAndBroughtUp) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    ServerWorld servers(seed);
    servers.start(0);
    servers.start(1);
    const int leader = servers.await_leader();
    ASSERT_GE(leader, 0);
    std::vector<std::string> commands;
    for (int i = 0; i < 10; ++i) {
      commands.push_back(std::to_string(i));
      write(servers, static_cast<size_t>(leader), commands.back());
    }
    servers.world.run_for(30s);
    servers.start(2);
    ASSERT_TRUE(servers.run_until([&] { return servers.is_up(2) && servers[2].state_machine->commands == commands; }, 15s));
    EXPECT_EQ(violations(servers), "");
  }
}

// Scenario CK-01.
TEST(ServerDisturbance, AStepOfTheCalendarClockElectsAndDeposesNobody) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    ServerWorld servers(seed);
    const size_t leader = lead(servers);
    const raft::Term term = servers[leader].server->core().term();
    servers[leader].machine->clock().jump_wall(1h);
    servers.world.run_for(3s);
    servers[(leader + 1) % 3].machine->clock().jump_wall(-1h);
    servers.world.run_for(3s);
    write(servers, leader, "after");
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(servers[i].server->core().term(), term);
    EXPECT_EQ(servers.leader(), static_cast<int>(leader));
    EXPECT_EQ(violations(servers), "");
  }
}

// Scenario SI-17.
TEST(ServerDisturbance, ARecordLargerThanManyChunksReachesAServerByImage) {
  ServerWorld servers(3);
  servers.options.snapshots.threshold = 2;
  servers.options.snapshots.interval = 20ms;
  servers.options.snapshots.trailing = 0;
  servers.options.snapshots.store.chunk_bytes = 64 << 10;
  const size_t leader = lead(servers);
  for (size_t i = 0; i < 3; ++i) servers[i].state_machine->image_piece_bytes = 100'000;
  const size_t follower = (leader + 1) % 3;
  servers[follower].machine->kill();
  std::vector<std::string> commands{std::string(4 << 20, 'r')};
  write(servers, leader, commands.back());
  const auto has_cut = [&] { return servers[leader].server->status().log_base > 1; };
  for (int i = 0; i < 200 && !has_cut(); ++i) {
    commands.push_back(std::to_string(i));
    write(servers, leader, commands.back());
    servers.world.run_for(30ms);
  }
  ASSERT_TRUE(has_cut());
  servers.start(follower);
  ASSERT_TRUE(servers.run_until([&] { return servers.is_up(follower) && servers[follower].state_machine->commands == commands; }, 60s));
  EXPECT_EQ(servers[follower].server->counters().snapshots_installed, 1u);
  EXPECT_EQ(violations(servers), "");
}

TEST(ServerDisturbance, AHungDiskGathersNoAnswersWithoutEnd) {
  ServerWorld servers(31, 5);
  const size_t first = lead(servers);
  const size_t hung = (first + 1) % 5;
  // Its disk hangs before it can note a new leader's term: every heartbeat of that leader is answered behind that note.
  servers[hung].machine->volume().stall();
  servers[first].machine->kill();
  ASSERT_TRUE(servers.run_until([&] { return servers.leader() >= 0; }, 10s));
  const auto leader = static_cast<size_t>(servers.leader());
  size_t most = 0;
  for (int i = 0; i < 600; ++i) {
    servers.world.run_for(500ms);
    most = std::max(most, servers[hung].server->messages_behind_disk());
  }
  EXPECT_EQ(most, raft::kMessagesBehindDiskMax) << "as many as there may be, in five minutes of heartbeats";
  write(servers, leader, "meanwhile");
  servers[hung].machine->volume().release();
  EXPECT_TRUE(servers.run_until([&] { return servers[hung].state_machine->commands == servers[leader].state_machine->commands; }, 10s));
  EXPECT_EQ(violations(servers), "");
}

}  // namespace
