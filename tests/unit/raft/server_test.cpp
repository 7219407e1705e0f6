#include "raft/server.h"

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

TEST(RaftServer, ThreeServersElectALeaderAndApplyTheSameCommands) {
  ServerWorld servers(1);
  servers.start_all();
  const int leader = servers.await_leader();
  ASSERT_GE(leader, 0);
  std::vector<std::string> commands;
  for (int i = 0; i < 20; ++i) {
    commands.push_back("c" + std::to_string(i));
    auto call = servers.propose(static_cast<size_t>(leader), commands.back());
    ASSERT_TRUE(servers.run_until([&] { return call->done; }, 5s));
    ASSERT_TRUE(call->answer.ok()) << call->answer.reason;
    EXPECT_EQ(call->answer.answer, "answer to " + commands.back() + " at " + std::to_string(call->answer.index));
  }
  EXPECT_TRUE(servers.all_applied(commands));
  EXPECT_EQ(violations(servers), "");
}

TEST(RaftServer, ALongReplayIsHandedOverInPiecesOf256Entries) {
  ServerWorld servers(7, 1);
  servers.start_all();
  ASSERT_EQ(servers.await_leader(), 0);
  std::vector<std::shared_ptr<ServerWorld::Call<raft::Proposed>>> calls;
  for (int i = 0; i < 700; ++i) calls.push_back(servers.propose(0, "c" + std::to_string(i)));
  ASSERT_TRUE(servers.run_until([&] { return std::all_of(calls.begin(), calls.end(), [](const auto& call) { return call->done; }); }, 10s));
  const std::vector<std::string> commands = servers[0].state_machine->commands;
  ASSERT_EQ(commands.size(), 700u);
  servers[0].machine->kill();
  servers.start(0);
  ASSERT_TRUE(servers.run_until([&] { return servers.is_up(0) && servers[0].state_machine->commands.size() == 700; }, 10s));
  EXPECT_EQ(servers[0].state_machine->commands, commands);
  EXPECT_EQ(servers[0].state_machine->largest_batch, 256u);
  EXPECT_EQ(violations(servers), "");
}

TEST(RaftServer, OneServerAloneLeadsAndCommits) {
  ServerWorld servers(2, 1);
  servers.start_all();
  ASSERT_EQ(servers.await_leader(), 0);
  auto call = servers.propose(0, "alone");
  ASSERT_TRUE(servers.run_until([&] { return call->done; }, 5s));
  EXPECT_TRUE(call->answer.ok());
  EXPECT_EQ(violations(servers), "");
}

TEST(RaftServer, FollowerNamesTheLeaderToAsk) {
  ServerWorld servers(3);
  servers.start_all();
  const int leader = servers.await_leader();
  ASSERT_GE(leader, 0);
  servers.world.run_for(200ms);
  const size_t follower = (static_cast<size_t>(leader) + 1) % 3;
  auto call = servers.propose(follower, "x");
  ASSERT_TRUE(servers.run_until([&] { return call->done; }, 1s));
  EXPECT_EQ(call->answer.outcome, raft::Outcome::not_leader);
  EXPECT_EQ(call->answer.leader.id, servers[static_cast<size_t>(leader)].machine->name());
  EXPECT_EQ(call->answer.leader.address, servers[static_cast<size_t>(leader)].address);
}

TEST(RaftServer, AcknowledgedCommandsSurviveTheLossOfPowerOfAllServers) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    ServerWorld servers(seed);
    servers.start_all();
    std::vector<std::string> acknowledged;
    for (int round = 0; round < 3; ++round) {
      const int leader = servers.await_leader();
      ASSERT_GE(leader, 0);
      std::vector<std::shared_ptr<ServerWorld::Call<raft::Proposed>>> calls;
      for (int i = 0; i < 30; ++i) {
        calls.push_back(servers.propose(static_cast<size_t>(leader), std::to_string(round) + "/" + std::to_string(i)));
      }
      auto draws = servers.world.stream("test", static_cast<uint64_t>(round));
      servers.world.run_for(draws.between(100us, 4ms));
      for (size_t i = 0; i < 3; ++i) servers[i].machine->power_loss();
      for (int i = 0; i < 30; ++i) {
        const auto& call = calls[static_cast<size_t>(i)];
        if (call->done && call->answer.ok()) acknowledged.push_back(std::to_string(round) + "/" + std::to_string(i));
      }
      servers.world.run_for(10ms);
      for (size_t i = 0; i < 3; ++i) servers.start(i);
    }
    const int leader = servers.await_leader();
    ASSERT_GE(leader, 0);
    auto barrier = servers.barrier(static_cast<size_t>(leader));
    ASSERT_TRUE(servers.run_until([&] { return barrier->done; }, 6s));
    ASSERT_TRUE(barrier->answer.ok()) << barrier->answer.reason;
    const auto& commands = servers[static_cast<size_t>(leader)].state_machine->commands;
    for (const std::string& each : acknowledged) {
      EXPECT_NE(std::find(commands.begin(), commands.end(), each), commands.end()) << each;
    }
    EXPECT_EQ(violations(servers), "");
  }
}

TEST(RaftServer, AnotherServerLeadsSoonAfterTheLeaderIsKilled) {
  ServerWorld servers(5);
  servers.start_all();
  const int first = servers.await_leader();
  ASSERT_GE(first, 0);
  servers[static_cast<size_t>(first)].machine->kill();
  const io::Instant killed = servers.world.now();
  const int second = servers.await_leader(3s);
  ASSERT_GE(second, 0);
  EXPECT_NE(second, first);
  EXPECT_LT(servers.world.now() - killed, 2s);
  servers.start(static_cast<size_t>(first));
  auto call = servers.propose(static_cast<size_t>(second), "after");
  ASSERT_TRUE(servers.run_until([&] { return call->done; }, 5s));
  EXPECT_TRUE(call->answer.ok());
  EXPECT_TRUE(servers.all_applied({"after"}, 3s));
  EXPECT_EQ(violations(servers), "");
}

TEST(RaftServer, BarrierOnTheLeaderCoversEveryAcknowledgedCommand) {
  ServerWorld servers(6);
  servers.start_all();
  const int leader = servers.await_leader();
  ASSERT_GE(leader, 0);
  auto call = servers.propose(static_cast<size_t>(leader), "x");
  ASSERT_TRUE(servers.run_until([&] { return call->done; }, 5s));
  auto barrier = servers.barrier(static_cast<size_t>(leader));
  ASSERT_TRUE(servers.run_until([&] { return barrier->done; }, 5s));
  ASSERT_TRUE(barrier->answer.ok());
  EXPECT_GE(barrier->answer.index, call->answer.index);
}

TEST(RaftServer, BarrierWithoutAQuorumEndsByItsDeadline) {
  ServerWorld servers(7);
  servers.start_all();
  const int leader = servers.await_leader();
  ASSERT_GE(leader, 0);
  for (size_t i = 0; i < 3; ++i) {
    if (static_cast<int>(i) != leader) servers[i].machine->power_loss();
  }
  auto barrier = servers.barrier(static_cast<size_t>(leader), 3s);
  ASSERT_TRUE(servers.run_until([&] { return barrier->done; }, 3s + 100ms));
  EXPECT_FALSE(barrier->answer.ok());
}

// Scenario CL-03.
TEST(RaftServer, ProposalOfADeposedLeaderIsNeverAnsweredByAnotherEntry) {
  ServerWorld servers(8);
  servers.start_all();
  const int old = servers.await_leader();
  ASSERT_GE(old, 0);
  auto& network = servers.world.network();
  for (size_t i = 0; i < 3; ++i) {
    if (static_cast<int>(i) != old) network.cut_both(*servers[static_cast<size_t>(old)].machine, *servers[i].machine);
  }
  auto lost = servers.propose(static_cast<size_t>(old), "lost", 20s);
  ASSERT_TRUE(servers.run_until([&] { return servers.leader() >= 0 && servers.leader() != old; }, 5s));
  const int next = servers.await_leader();
  auto won = servers.propose(static_cast<size_t>(next), "won");
  ASSERT_TRUE(servers.run_until([&] { return won->done; }, 5s));
  ASSERT_TRUE(won->answer.ok());
  network.heal_all();
  ASSERT_TRUE(servers.run_until([&] { return lost->done; }, 20s));
  EXPECT_TRUE(lost->answer.outcome == raft::Outcome::unknown || lost->answer.outcome == raft::Outcome::superseded)
      << raft::to_string(lost->answer.outcome);
  EXPECT_TRUE(servers.all_applied({"won"}));
  EXPECT_EQ(violations(servers), "");
}

TEST(RaftServer, StateMachineThatCannotGoOnStopsItsServerAlone) {
  ServerWorld servers(9, 1);
  servers.start_all();
  ASSERT_EQ(servers.await_leader(), 0);
  auto poison = servers.propose(0, "poison");
  ASSERT_TRUE(servers.run_until([&] { return servers[0].machine->process() == nullptr; }, 5s));
  EXPECT_NE(servers[0].failure.find("poison"), std::string::npos) << servers[0].failure;
  ASSERT_TRUE(poison->done);
  EXPECT_EQ(poison->answer.outcome, raft::Outcome::stopped);
}

TEST(RaftServer, FailedSyncStopsTheServerAndLosesNothingAcknowledged) {
  ServerWorld servers(10);
  servers.start_all();
  const int leader = servers.await_leader();
  ASSERT_GE(leader, 0);
  auto& node = servers[static_cast<size_t>(leader)];
  node.machine->volume().script({io::sim::FaultAction::error, io::sim::DiskOp::sync, "raft/log", 1});
  auto call = servers.propose(static_cast<size_t>(leader), "x", 2s);
  ASSERT_TRUE(servers.run_until([&] { return node.machine->process() == nullptr; }, 5s));
  EXPECT_NE(node.failure, "");
  EXPECT_FALSE(call->done && call->answer.ok());
  const int next = servers.await_leader();
  ASSERT_GE(next, 0);
  servers.start(static_cast<size_t>(leader));
  auto after = servers.propose(static_cast<size_t>(next), "y");
  ASSERT_TRUE(servers.run_until([&] { return after->done; }, 5s));
  ASSERT_TRUE(after->answer.ok());
  ASSERT_TRUE(servers.run_until([&] { return servers.is_up(static_cast<size_t>(leader)) && node.server->applied_index() >= after->answer.index; }, 5s));
  EXPECT_EQ(violations(servers), "");
}

TEST(RaftServer, FullDiskRefusesProposalsAndGoesOnWhenThereIsRoom) {
  ServerWorld servers(11, 1);
  servers.start_all();
  ASSERT_EQ(servers.await_leader(), 0);
  servers.world.run_for(100ms);
  auto& volume = servers[0].machine->volume();
  const uint64_t capacity = volume.capacity();
  volume.set_capacity(volume.used());
  std::vector<std::shared_ptr<ServerWorld::Call<raft::Proposed>>> calls;
  for (int i = 0; i < 40; ++i) {
    calls.push_back(servers.propose(0, std::string(8 << 10, 'x'), 60s));
    servers.world.run_for(20ms);
  }
  EXPECT_TRUE(servers[0].server->status().is_disk_full);
  ASSERT_TRUE(calls.back()->done);
  EXPECT_EQ(calls.back()->answer.outcome, raft::Outcome::refused);
  volume.set_capacity(capacity);
  servers.world.run_for(2s);
  EXPECT_FALSE(servers[0].server->status().is_disk_full);
  for (const auto& call : calls) {
    ASSERT_TRUE(call->done);
    EXPECT_TRUE(call->answer.ok() || call->answer.outcome == raft::Outcome::refused);
  }
}

// Scenario NW-01.
TEST(RaftServer, HalfOpenConnectionIsReplacedOnceTheWayIsFree) {
  ServerWorld servers(12);
  servers.start_all();
  const int leader = servers.await_leader();
  ASSERT_GE(leader, 0);
  const size_t follower = (static_cast<size_t>(leader) + 1) % 3;
  const auto is_connected = [&] {
    const raft::ServerStatus status = servers[static_cast<size_t>(leader)].server->status();
    return std::any_of(status.peers.begin(), status.peers.end(), [&](const raft::PeerStatus& peer) {
      return peer.id == servers.members[follower].first && peer.is_connected;
    });
  };
  ASSERT_TRUE(is_connected());
  // One way only: nothing that the leader sends arrives, and neither end is told.
  servers.world.network().cut(*servers[static_cast<size_t>(leader)].machine, *servers[follower].machine);
  EXPECT_TRUE(servers.run_until([&] { return !is_connected(); }, 5s)) << "what is never acknowledged is given up";
  servers.world.run_for(1h);
  EXPECT_EQ(servers.leader(), leader) << "nobody votes for who does not hear it";
  auto call = servers.propose(static_cast<size_t>(leader), "while cut");
  ASSERT_TRUE(servers.run_until([&] { return call->done; }, 5s));
  EXPECT_TRUE(call->answer.ok());
  servers.world.network().heal_all();
  EXPECT_TRUE(servers.all_applied({"while cut"}, 5s));
  EXPECT_EQ(violations(servers), "");
}

TEST(RaftServer, ServerOfAnotherClusterIsRefusedByName) {
  ServerWorld one(13);
  one.start_all();
  ASSERT_GE(one.await_leader(), 0);
  one.world.run_for(1s);
  // The volume of a server of a second cluster comes under this one's name.
  ServerWorld two(14);
  two.start_all();
  ASSERT_GE(two.await_leader(), 0);
  two.world.run_for(1s);
  two[0].machine->kill();
  const auto foreign = two[0].machine->volume().copy("raft");
  one[0].machine->kill();
  one.world.run_for(10ms);
  one[0].machine->volume().restore("raft", foreign);
  one.start(0);
  one.world.run_for(5s);
  ASSERT_TRUE(one.is_up(0));
  EXPECT_EQ(one[0].server->core().cluster(), two[1].server->core().cluster());
  EXPECT_FALSE(one[0].server->is_leader());
  const int leader = one.await_leader();
  ASSERT_GT(leader, 0);
  for (const auto& peer : one[static_cast<size_t>(leader)].server->status().peers) {
    EXPECT_TRUE(peer.id != "n1" || !peer.is_connected);
  }
}

// Scenario NW-08.
TEST(RaftServer, HostileBytesCloseTheirConnectionAndNothingElse) {
  ServerWorld servers(15);
  servers.start_all();
  const int leader = servers.await_leader();
  ASSERT_GE(leader, 0);
  io::sim::MachineSettings settings;
  settings.name = "stranger";
  auto& stranger = servers.world.add_machine(settings);
  const std::string address = servers[static_cast<size_t>(leader)].address;
  int closed = 0;
  stranger.start([&](io::Env& env) {
    for (std::string bytes : {std::string("NRF1\xff\xff\xff\xf8", 8), std::string("NRF1\0\0\0\x08garbage!", 16),
                              std::string("GET / HTTP/1.1\r\n\r\n"), std::string("NRF1\0\0\0\0", 8), std::string("NR")}) {
      auto stream = env.net.connect(address, env.after(1s));
      if (!stream.ok()) return 1;
      if (!(*stream)->write(bytes, env.after(1s)).ok()) return 1;
      // What can be judged is judged at once; half a magic may yet become a whole one.
      auto answer = (*stream)->read(100, env.after(bytes.size() > 2 ? 500ms : 5s));
      if (!answer.is(io::ErrorKind::timed_out)) ++closed;
    }
    return 0;
  });
  servers.world.run_for(20s);
  EXPECT_EQ(closed, 5);
  auto call = servers.propose(static_cast<size_t>(leader), "still here");
  ASSERT_TRUE(servers.run_until([&] { return call->done; }, 5s));
  EXPECT_TRUE(call->answer.ok());
}

// Scenario TS-06, in small.
TEST(RaftServer, StopAnswersEverybodyWhoWaits) {
  ServerWorld servers(16);
  servers.start_all();
  const int leader = servers.await_leader();
  ASSERT_GE(leader, 0);
  for (size_t i = 0; i < 3; ++i) {
    if (static_cast<int>(i) != leader) servers[i].machine->power_loss();
  }
  auto proposal = servers.propose(static_cast<size_t>(leader), "x", 600s);
  auto barrier = servers.barrier(static_cast<size_t>(leader), 600s);
  servers.world.run_for(10ms);
  servers[static_cast<size_t>(leader)].server->stop();
  ASSERT_TRUE(servers.run_until([&] { return proposal->done && barrier->done; }, 3s));
  EXPECT_EQ(proposal->answer.outcome, raft::Outcome::stopped);
  EXPECT_EQ(barrier->answer.outcome, raft::Outcome::stopped);
}

}  // namespace
