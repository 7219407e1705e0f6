// Transfers and configuration changes through servers with real stores, links and fibers in the simulator.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/support/server_world.h"

namespace {

using namespace std::chrono_literals;
using raft::ConfigurationChange;
using tests::ServerWorld;

std::string violations(const ServerWorld& servers) {
  std::string all;
  for (const std::string& each : servers.world.violations()) all += each + "\n";
  return all;
}

ConfigurationChange step(ConfigurationChange::Kind kind, const ServerWorld& servers, size_t i) {
  return ConfigurationChange{kind, servers.members[i].first, servers.members[i].second, raft::StoreId()};
}

class ServerLeadership : public ::testing::Test {
 protected:
  // The leader of a world that is up.
  static size_t lead(ServerWorld& servers) {
    servers.start_all();
    const int leader = servers.await_leader();
    NARAD_CHECK(leader >= 0, "a healthy cluster elects a leader");
    servers.world.run_for(500ms);
    return static_cast<size_t>(leader);
  }
};

TEST_F(ServerLeadership, ATransferEndsWithTheNamedServerLeading) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    ServerWorld servers(seed);
    const size_t leader = lead(servers);
    const size_t target = (leader + 1) % 3;
    const io::Instant asked = servers.world.now();
    auto call = servers.transfer(leader, servers.members[target].first);
    ASSERT_TRUE(servers.run_until([&] { return call->done; }, 5s));
    ASSERT_TRUE(call->answer.ok()) << call->answer.reason;
    EXPECT_EQ(call->answer.leader.id, servers.members[target].first);
    EXPECT_LT(servers.world.now() - asked, 200ms) << "no election timeout is waited for";
    EXPECT_EQ(servers.leader(), static_cast<int>(target));
    EXPECT_EQ(violations(servers), "");
  }
}

TEST_F(ServerLeadership, WhatIsRefusedIsLoggedWithItsReasonAndCounted) {
  ServerWorld servers(1);
  const size_t leader = lead(servers);
  const size_t follower = (leader + 1) % 3;
  const auto lines = [&](size_t i, std::initializer_list<std::string_view> parts) {
    const auto& all = servers[i].machine->process()->log_lines();
    return std::count_if(all.begin(), all.end(), [&](const io::sim::LogLine& line) {
      return std::all_of(parts.begin(), parts.end(), [&](std::string_view part) { return line.text.find(part) != std::string::npos; });
    });
  };
  const auto& counters = servers[leader].server->counters();
  EXPECT_EQ(counters.elections, 1u);
  // A hand-over to nobody that could lead, and one by a server that does not lead.
  for (const size_t at : {leader, follower}) {
    auto refused = servers.transfer(at, "nobody");
    ASSERT_TRUE(servers.run_until([&] { return refused->done; }, 5s));
    EXPECT_FALSE(refused->answer.ok());
    EXPECT_EQ(servers[at].server->counters().transfers_refused, 1u);
  }
  EXPECT_EQ(lines(leader, {"raft: hand-over refused", "nobody", raft::to_string(raft::Refusal::not_a_voter)}), 1);
  EXPECT_EQ(lines(follower, {"raft: hand-over refused", "nobody", raft::to_string(raft::Refusal::not_leader)}), 1);
  // A change of what is so already.
  auto change = servers.change(leader, step(ConfigurationChange::Kind::promote, servers, follower));
  ASSERT_TRUE(servers.run_until([&] { return change->done; }, 5s));
  EXPECT_FALSE(change->answer.ok());
  EXPECT_EQ(counters.changes_refused, 1u);
  EXPECT_EQ(lines(leader, {"raft: configuration change refused", raft::to_string(raft::Refusal::already_so)}), 1);
  // Proposals while leadership is handed over to a server that does not answer: each is refused, a line a minute says so.
  servers.world.network().cut(*servers[leader].machine, *servers[follower].machine);
  servers.world.network().cut(*servers[follower].machine, *servers[leader].machine);
  auto transfer = servers.transfer(leader, servers.members[follower].first);
  servers.world.run_for(1ms);
  for (int i = 0; i < 3; ++i) {
    auto refused = servers.propose(leader, "late");
    ASSERT_TRUE(servers.run_until([&] { return refused->done; }, 1s));
    EXPECT_EQ(refused->answer.refusal, raft::Refusal::transfer_in_progress);
  }
  EXPECT_EQ(counters.proposals_refused, 3u);
  EXPECT_EQ(lines(leader, {"raft: proposal refused", raft::to_string(raft::Refusal::transfer_in_progress)}), 1);
  // The server that hears no leader asks the one that does.
  servers.run_until([&] { return servers[(leader + 2) % 3].server->counters().votes_refused > 0; }, 10s);
  EXPECT_GE(lines((leader + 2) % 3, {"raft: vote refused", servers.members[follower].first, "a leader is heard"}), 1);
  EXPECT_EQ(violations(servers), "");
}

TEST_F(ServerLeadership, NoCommandIsLostOrDoubledAcrossTransfersUnderLoad) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    ServerWorld servers(seed);
    size_t leader = lead(servers);
    std::vector<std::string> acknowledged;
    for (int round = 0; round < 5; ++round) {
      std::vector<std::pair<std::string, std::shared_ptr<ServerWorld::Call<raft::Proposed>>>> calls;
      for (int i = 0; i < 20; ++i) {
        std::string command = std::to_string(round) + "/" + std::to_string(i);
        calls.emplace_back(command, servers.propose(leader, command));
        if (i == 10) servers.world.run_for(200us);
      }
      auto transfer = servers.transfer(leader, "");
      calls.emplace_back("late" + std::to_string(round), nullptr);
      servers.world.run_for(100us);
      calls.back().second = servers.propose(leader, calls.back().first);
      ASSERT_TRUE(servers.run_until([&] { return transfer->done; }, 5s));
      ASSERT_TRUE(transfer->answer.ok()) << transfer->answer.reason;
      for (auto& [command, call] : calls) {
        ASSERT_TRUE(servers.run_until([&call] { return call->done; }, 6s)) << command;
        if (call->answer.ok()) acknowledged.push_back(command);
      }
      const int next = servers.await_leader();
      ASSERT_GE(next, 0);
      EXPECT_NE(next, static_cast<int>(leader));
      leader = static_cast<size_t>(next);
    }
    EXPECT_GE(acknowledged.size(), 50u) << "what was proposed before a transfer is committed";
    auto barrier = servers.barrier(leader);
    ASSERT_TRUE(servers.run_until([&] { return barrier->done; }, 6s));
    const auto& commands = servers[leader].state_machine->commands;
    for (const std::string& each : acknowledged) {
      EXPECT_EQ(std::count(commands.begin(), commands.end(), each), 1) << each;
    }
    EXPECT_EQ(violations(servers), "");
  }
}

TEST_F(ServerLeadership, ATransferToASilentServerIsRefusedOrGivenUpAndTheLeaderGoesOn) {
  ServerWorld servers(3);
  const size_t leader = lead(servers);
  const size_t target = (leader + 1) % 3;
  servers[target].machine->kill();
  auto call = servers.transfer(leader, servers.members[target].first);
  ASSERT_TRUE(servers.run_until([&] { return call->done; }, 5s));
  EXPECT_EQ(call->answer.outcome, raft::Outcome::refused) << call->answer.reason;
  auto write = servers.propose(leader, "after");
  ASSERT_TRUE(servers.run_until([&] { return write->done; }, 5s));
  EXPECT_TRUE(write->answer.ok()) << write->answer.reason;
  EXPECT_EQ(violations(servers), "");
}

TEST_F(ServerLeadership, OnlyALeaderHandsOverAndItNamesTheOneToAsk) {
  ServerWorld servers(4);
  const size_t leader = lead(servers);
  auto call = servers.transfer((leader + 1) % 3, "");
  ASSERT_TRUE(servers.run_until([&] { return call->done; }, 5s));
  EXPECT_EQ(call->answer.outcome, raft::Outcome::not_leader);
  EXPECT_EQ(call->answer.leader.id, servers.members[leader].first);
}

TEST_F(ServerLeadership, AVoterLeavesAndComesBackByWayOfNonVoter) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    ServerWorld servers(seed);
    const size_t leader = lead(servers);
    const size_t other = (leader + 2) % 3;
    using Kind = ConfigurationChange::Kind;
    for (const Kind kind : {Kind::demote, Kind::remove, Kind::add, Kind::promote}) {
      SCOPED_TRACE(to_string(kind));
      std::shared_ptr<ServerWorld::Call<raft::Proposed>> call;
      // A promotion waits until the server has caught up, and any change until the leader's own record of a volume has committed: it
      // is refused and asked for again.
      for (int tries = 0; tries < 200; ++tries) {
        call = servers.change(leader, step(kind, servers, other));
        ASSERT_TRUE(servers.run_until([&] { return call->done; }, 6s));
        const raft::Refusal refusal = call->answer.refusal;
        if (refusal != raft::Refusal::not_caught_up && refusal != raft::Refusal::change_in_progress) break;
        servers.world.run_for(50ms);
      }
      ASSERT_TRUE(call->answer.ok()) << call->answer.reason;
      auto write = servers.propose(leader, to_string(kind));
      ASSERT_TRUE(servers.run_until([&] { return write->done; }, 5s));
      EXPECT_TRUE(write->answer.ok()) << write->answer.reason;
    }
    EXPECT_TRUE(servers.all_applied({"demote", "remove", "add", "promote"})) << "the returned server has it all";
    EXPECT_EQ(servers[leader].server->status().voters, 3u);
    EXPECT_EQ(violations(servers), "");
  }
}

TEST_F(ServerLeadership, ALeaderThatRemovesItselfHandsOver) {
  ServerWorld servers(9);
  const size_t leader = lead(servers);
  auto call = servers.change(leader, step(ConfigurationChange::Kind::remove, servers, leader));
  ASSERT_TRUE(servers.run_until([&] { return call->done; }, 6s));
  EXPECT_TRUE(call->answer.ok()) << call->answer.reason;
  ASSERT_TRUE(servers.run_until([&] { return servers.leader() >= 0 && servers.leader() != static_cast<int>(leader); }, 3s));
  servers.world.run_for(2s);
  const int next = servers.leader();
  ASSERT_GE(next, 0);
  EXPECT_EQ(servers[static_cast<size_t>(next)].server->status().voters, 2u);
  auto write = servers.propose(static_cast<size_t>(next), "after");
  ASSERT_TRUE(servers.run_until([&] { return write->done; }, 5s));
  EXPECT_TRUE(write->answer.ok());
  EXPECT_EQ(violations(servers), "");
}

TEST_F(ServerLeadership, ALeaderWithoutRoomOnItsDiskHandsOverAndLosesNothing) {
  ServerWorld servers(11);
  const size_t leader = lead(servers);
  auto before = servers.propose(leader, "before");
  ASSERT_TRUE(servers.run_until([&] { return before->done; }, 5s));
  ASSERT_TRUE(before->answer.ok());
  auto& volume = servers[leader].machine->volume();
  volume.set_capacity(volume.used());
  // The prepared segment still has room: fill it.
  std::vector<std::shared_ptr<ServerWorld::Call<raft::Proposed>>> calls;
  const std::string big(8 << 10, 'x');
  ASSERT_TRUE(servers.run_until([&] {
    if (servers.leader() != static_cast<int>(leader)) return true;
    if (calls.size() < 60) calls.push_back(servers.propose(leader, big));
    return false;
  }, 10s)) << "it leads no more within the stall bound";
  const int next = servers.await_leader();
  ASSERT_GE(next, 0);
  EXPECT_NE(next, static_cast<int>(leader));
  auto after = servers.propose(static_cast<size_t>(next), "after");
  ASSERT_TRUE(servers.run_until([&] { return after->done; }, 5s));
  EXPECT_TRUE(after->answer.ok()) << after->answer.reason;
  volume.set_capacity(std::numeric_limits<uint64_t>::max());
  const auto has_all = [&](size_t i) {
    const auto& commands = servers[i].state_machine->commands;
    return std::count(commands.begin(), commands.end(), "after") == 1 && std::count(commands.begin(), commands.end(), "before") == 1;
  };
  EXPECT_TRUE(servers.run_until([&] { return has_all(leader); }, 10s)) << "it goes on when room returns";
  EXPECT_EQ(violations(servers), "");
}

}  // namespace
