// Whether a replica may call itself caught up, in worlds where its own indexes always agree with each other: a silent, a frozen, a
// deposed and a freshly elected leader, answers that waited in a buffer, restarts, slow applies.

#include "engine/metastore/replica.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "engine/cluster/node_frames.h"
#include "engine/cluster/node_service.h"
#include "engine/raft_proposer.h"
#include "engine/topics/manager.h"
#include "io/sim/switches.h"
#include "tests/support/memory_metastore.h"
#include "tests/support/no_admin.h"
#include "tests/support/topic_parts.h"
#include "tests/support/server_world.h"

namespace {

using namespace std::chrono_literals;
using engine::metastore::Currency;
using engine::metastore::Replica;
using tests::ListMachine;
using tests::ServerWorld;

class ReplicaTest : public testing::Test {
 protected:
  static io::Env& env(ServerWorld& servers, size_t i) { return servers[i].machine->process()->env(); }
  static Currency currency(ServerWorld& servers, size_t i) {
    return Replica(env(servers, i), *servers[i].server, *servers[i].state_machine).currency();
  }
  static bool claims(ServerWorld& servers, size_t i) {
    return servers.is_up(i) && currency(servers, i) == Currency::caught_up;
  }
  static bool holds(ServerWorld& servers, size_t i, const std::string& command) {
    const std::vector<std::string>& all = servers[i].state_machine->commands;
    return std::find(all.begin(), all.end(), command) != all.end();
  }
  static size_t lead(ServerWorld& servers) {
    servers.start_all();
    const int leader = servers.await_leader();
    NARAD_CHECK(leader >= 0, "a healthy cluster elects a leader");
    servers.world.run_for(500ms);
    return static_cast<size_t>(leader);
  }
  static void write(ServerWorld& servers, size_t leader, const std::string& command) {
    auto call = servers.propose(leader, command);
    NARAD_CHECK(servers.run_until([&] { return call->done; }, 10s), "a proposal ends");
    ASSERT_TRUE(call->answer.ok()) << call->answer.reason;
  }
  // A cluster of four whose last voter is made a non-voter: it never campaigns, so it goes on believing in its leader. Its number.
  static size_t with_non_voter(ServerWorld& servers, size_t& leader) {
    leader = lead(servers);
    const size_t chosen = (leader + 1) % 4;
    raft::ConfigurationChange change;
    change.kind = raft::ConfigurationChange::Kind::demote;
    change.id = servers.members[chosen].first;
    auto call = servers.change(leader, change);
    NARAD_CHECK(servers.run_until([&] { return call->done; }, 10s) && call->answer.ok(), "a voter is demoted");
    servers.world.run_for(500ms);
    return chosen;
  }
  static void cut_from_all(ServerWorld& servers, size_t i) {
    for (size_t other = 0; other < servers.nodes.size(); ++other) {
      if (other != i) servers.world.network().cut_both(*servers[i].machine, *servers[other].machine);
    }
  }
  // Runs for `span`; what `holds_now` says is looked at after every event and must be true.
  static bool always(ServerWorld& servers, io::Duration span, const std::function<bool()>& holds_now) {
    bool is_true = true;
    servers.world.run_while([&] { return is_true = is_true && holds_now(); }, servers.world.now() + span);
    return is_true;
  }

  io::sim::Switchboard board;
  io::sim::SwitchboardGuard guard{&board};
};

TEST_F(ReplicaTest, EveryServerOfAHealthyClusterIsCaughtUpSoonAndStaysSo) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    ServerWorld servers(seed);
    const size_t leader = lead(servers);
    write(servers, leader, "a");
    servers.world.run_for(500ms);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(currency(servers, i), Currency::caught_up) << i;
    servers.world.run_for(20s);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(currency(servers, i), Currency::caught_up) << i << ", with no write for a while";
  }
}

TEST_F(ReplicaTest, ContactOlderThanFiveSecondsEndsTheClaimAlthoughALeaderIsKnownAndAllIsApplied) {
  ServerWorld servers(1, 4);
  size_t leader = 0;
  const size_t silent = with_non_voter(servers, leader);
  cut_from_all(servers, silent);
  const io::Instant cut_at = servers.world.now();
  write(servers, leader, "unheard");
  servers.world.run_for(cut_at + 4500ms - servers.world.now());
  EXPECT_EQ(currency(servers, silent), Currency::caught_up) << "of what was acknowledged before the contact nothing is missing";
  servers.world.run_for(1s);
  EXPECT_EQ(currency(servers, silent), Currency::old_contact);
  EXPECT_FALSE(servers[silent].server->core().leader().empty());
  EXPECT_EQ(servers[silent].server->core().applied_index(), servers[silent].server->core().commit_index());
  EXPECT_FALSE(holds(servers, silent, "unheard"));

  board.off.insert(io::Defence::contact_freshness_ignored);
  EXPECT_EQ(currency(servers, silent), Currency::caught_up) << "what the defence is for";
  board.off.clear();
  servers.world.network().heal_all();
  EXPECT_TRUE(servers.run_until([&] { return claims(servers, silent); }, 10s));
  EXPECT_TRUE(holds(servers, silent, "unheard"));
}

TEST_F(ReplicaTest, AFrozenLeaderIsNoContact) {
  ServerWorld servers(2, 4);
  size_t leader = 0;
  const size_t alone = with_non_voter(servers, leader);
  // It hears that leader and nobody else.
  for (size_t other = 0; other < 4; ++other) {
    if (other != alone && other != leader) servers.world.network().cut_both(*servers[alone].machine, *servers[other].machine);
  }
  servers[leader].machine->freeze(20s);
  const io::Instant frozen_at = servers.world.now();
  servers.world.run_for(2s);
  const int next = servers.await_leader();
  ASSERT_GE(next, 0);
  ASSERT_NE(next, static_cast<int>(leader));
  write(servers, static_cast<size_t>(next), "of the next leader");
  servers.world.run_for(frozen_at + 5200ms - servers.world.now());
  EXPECT_EQ(currency(servers, alone), Currency::old_contact);
  // Also when the old leader goes on where it stopped, until it has been told.
  EXPECT_TRUE(always(servers, 16s, [&] { return !claims(servers, alone) || holds(servers, alone, "of the next leader"); }));
}

TEST_F(ReplicaTest, AnswersThatWaitedInABufferDoNotLookFresh) {
  ServerWorld servers(3, 4);
  size_t leader = 0;
  const size_t frozen = with_non_voter(servers, leader);
  const uint64_t before = servers[frozen].server->counters().messages_received;
  servers[frozen].machine->freeze(8s);
  servers.world.run_for(6s);
  write(servers, leader, "meanwhile");
  ASSERT_TRUE(servers.run_until([&] { return servers[frozen].server->counters().messages_received > before; }, 10s));
  EXPECT_EQ(currency(servers, frozen), Currency::old_contact) << "the first message that it reads answers one from before";
  EXPECT_TRUE(always(servers, 5s, [&] { return !claims(servers, frozen) || holds(servers, frozen, "meanwhile"); }));
  EXPECT_TRUE(claims(servers, frozen));
}

TEST_F(ReplicaTest, ARestartedFollowerClaimsNothingBeforeItHasHeardWhatIsCommitted) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    ServerWorld servers(seed);
    const size_t leader = lead(servers);
    write(servers, leader, "before");
    const size_t follower = (leader + 1) % 3;
    servers[follower].machine->kill();
    write(servers, leader, "after");
    cut_from_all(servers, follower);
    servers.start(follower);
    ASSERT_TRUE(servers.run_until([&] { return servers.is_up(follower); }, 5s));
    servers.world.run_for(1s);
    EXPECT_EQ(servers[follower].server->core().applied_index(), servers[follower].server->core().commit_index())
        << "its own indexes agree";
    EXPECT_TRUE(always(servers, 10s, [&] { return !claims(servers, follower); }));
    EXPECT_EQ(currency(servers, follower), Currency::no_leader);
    servers.world.network().heal_all();
    ASSERT_TRUE(servers.run_until([&] { return claims(servers, follower); }, 20s));
    EXPECT_TRUE(holds(servers, follower, "after"));
  }
}

// A leader that has just been elected may have restarted itself: what it calls committed need not be all that was acknowledged.
TEST_F(ReplicaTest, AfterARestartOfAllNobodyClaimsWhatItDoesNotHold) {
  uint64_t unheard = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    ServerWorld servers(seed);
    const size_t leader = lead(servers);
    for (int i = 0; i < 5; ++i) write(servers, leader, std::to_string(i));
    for (size_t i = 0; i < 3; ++i) servers[i].machine->kill();
    servers.world.run_for(1s);
    servers.start_all();
    EXPECT_TRUE(always(servers, 5s, [&] {
      for (size_t i = 0; i < 3; ++i) {
        if (!servers.is_up(i)) continue;
        const Currency now = currency(servers, i);
        unheard += now == Currency::unheard ? 1 : 0;
        if (now == Currency::caught_up && !holds(servers, i, "4")) return false;
      }
      return true;
    }));
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(currency(servers, i), Currency::caught_up) << i;
  }
  EXPECT_GT(unheard, 0u) << "there are moments in which a leader is heard that does not know yet";
}

TEST_F(ReplicaTest, ADeposedLeaderThatWasFrozenDoesNotClaimTheOldState) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    ServerWorld servers(seed);
    const size_t leader = lead(servers);
    servers[leader].machine->freeze(10s);
    servers.world.run_for(3s);
    const int next = servers.await_leader();
    ASSERT_GE(next, 0);
    ASSERT_NE(next, static_cast<int>(leader));
    write(servers, static_cast<size_t>(next), "later");
    servers.world.run_for(5500ms);
    EXPECT_TRUE(always(servers, 5s, [&] { return !claims(servers, leader) || holds(servers, leader, "later"); }));
    EXPECT_TRUE(claims(servers, leader));
  }
}

TEST_F(ReplicaTest, ALeaderCutOffFromTheOthersStopsClaiming) {
  ServerWorld servers(5);
  const size_t leader = lead(servers);
  ASSERT_TRUE(claims(servers, leader));
  cut_from_all(servers, leader);
  servers.world.run_for(1s);
  EXPECT_EQ(currency(servers, leader), Currency::no_leader);
  EXPECT_TRUE(always(servers, 10s, [&] { return !claims(servers, leader); }));
}

TEST_F(ReplicaTest, WhatIsKnownToBeCommittedAndNotAppliedEndsTheClaim) {
  ServerWorld servers(6);
  const size_t leader = lead(servers);
  const size_t slow = (leader + 1) % 3;
  servers[slow].state_machine->apply_time = 600ms;
  write(servers, leader, "slow");
  ASSERT_TRUE(servers.run_until([&] { return currency(servers, slow) == Currency::behind; }, 500ms));
  EXPECT_FALSE(holds(servers, slow, "slow"));
  ASSERT_TRUE(servers.run_until([&] { return claims(servers, slow); }, 5s));
  EXPECT_TRUE(holds(servers, slow, "slow"));
}

struct WithoutItsLastEntry : ListMachine {
  using ListMachine::ListMachine;
  raft::Index applied_index() const override { return 0; }
};
struct StoppedMachine : ListMachine {
  using ListMachine::ListMachine;
  bool is_stopped() const override { return has_stopped; }
  bool has_stopped = true;
};

TEST_F(ReplicaTest, TheDatabasesOwnIndexCountsNotWhatItWasGiven) {
  ServerWorld servers(7);
  const size_t leader = lead(servers);
  write(servers, leader, "a");
  WithoutItsLastEntry machine(env(servers, leader));
  EXPECT_EQ(Replica(env(servers, leader), *servers[leader].server, machine).currency(), Currency::behind);
}

TEST_F(ReplicaTest, AStateMachineThatStoppedIsNotCaughtUpAndPassesNoBarrier) {
  ServerWorld servers(8);
  const size_t leader = lead(servers);
  StoppedMachine machine(env(servers, leader));
  Replica replica(env(servers, leader), *servers[leader].server, machine);
  EXPECT_EQ(replica.currency(), Currency::stopped);
  std::optional<io::Status> passed;
  servers[leader].machine->process()->spawn("test", [&] { passed = replica.barrier(io::kNever); });
  ASSERT_TRUE(servers.run_until([&] { return passed.has_value(); }, 6s));
  EXPECT_TRUE(passed->is(io::ErrorKind::busy));
  EXPECT_NE(passed->error().message.find("stopped applying raft entries"), std::string::npos) << passed->error().message;
}

TEST_F(ReplicaTest, AStateMachineThatStopsDuringABarrierFailsIt) {
  ServerWorld servers(12);
  const size_t leader = lead(servers);
  StoppedMachine machine(env(servers, leader));
  machine.has_stopped = false;
  Replica replica(env(servers, leader), *servers[leader].server, machine);
  std::optional<io::Status> passed;
  servers[leader].machine->process()->spawn("test", [&] {
    passed = replica.barrier(io::kNever);
  });
  servers[leader].machine->process()->spawn("stop", [&] { machine.has_stopped = true; });
  ASSERT_TRUE(servers.run_until([&] { return passed.has_value(); }, 6s));
  EXPECT_TRUE(passed->is(io::ErrorKind::busy)) << "although raft's own barrier succeeded";
}

// Raft's own barrier still succeeds there.
TEST_F(ReplicaTest, AStoppedStateMachinePassesNobodysBarrier) {
  ServerWorld servers(13);
  const size_t leader = lead(servers);
  raft::RaftServer& raft = *servers[leader].server;
  StoppedMachine machine(env(servers, leader));
  machine.has_stopped = false;
  Replica replica(env(servers, leader), raft, machine);
  tests::MemoryMetastore store;
  tests::FixedGate gate;
  tests::NotingPlacer placer;
  engine::topics::Manager manager({env(servers, leader), store, store, gate, placer, {}});
  engine::RaftProposer proposer(raft, replica);
  tests::NoAdmin admin;
  engine::cluster::NodeService service(env(servers, leader), manager, raft, replica, admin);
  const std::string ask_index = engine::cluster::encode_applied_index_request();
  struct Answers {
    io::Status barrier;
    int index = 0;
    bool is_at_once = false;
  };
  std::vector<Answers> answers;
  servers[leader].machine->process()->spawn("test", [&] {
    for (const bool is_stopped : {false, true}) {
      machine.has_stopped = is_stopped;
      Answers given{proposer.barrier(env(servers, leader).after(5s)), service.answer(ask_index).status, false};
      given.is_at_once = service.answer_at_once(ask_index).has_value();
      answers.push_back(given);
    }
  });
  ASSERT_TRUE(servers.run_until([&] { return answers.size() == 2; }, 6s));
  EXPECT_TRUE(answers[0].barrier.ok());
  EXPECT_EQ(answers[0].index, 200);
  EXPECT_TRUE(answers[0].is_at_once);
  EXPECT_TRUE(answers[1].barrier.is(io::ErrorKind::busy));
  EXPECT_NE(answers[1].barrier.error().message.find("stopped applying raft entries"), std::string::npos);
  EXPECT_EQ(answers[1].index, 503);
  EXPECT_FALSE(answers[1].is_at_once);
}

// Scenario SR-07.
TEST_F(ReplicaTest, ABarrierBegunJustBeforeItsLeaderIsReplacedEndsWithinItsBound) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    ServerWorld servers(seed);
    const size_t leader = lead(servers);
    Replica replica(env(servers, leader), *servers[leader].server, *servers[leader].state_machine);
    const size_t follower = (leader + 1) % 3;
    cut_from_all(servers, leader);
    std::optional<io::Status> passed;
    std::optional<bool> reached;
    const io::Instant begun = servers.world.now();
    servers[leader].machine->process()->spawn("barrier", [&] { passed = replica.barrier(io::kNever); });
    servers[follower].machine->process()->spawn("wait", [&] {
      raft::RaftServer& server = *servers[follower].server;
      reached = server.wait_applied(server.core().last_index() + 100, env(servers, follower).after(3s));
    });
    ASSERT_TRUE(servers.run_until([&] { return passed.has_value() && reached.has_value(); }, 6s));
    EXPECT_TRUE(passed->is(io::ErrorKind::busy));
    EXPECT_FALSE(*reached);
    EXPECT_LE(servers.world.now() - begun, 5100ms);
    const int next = servers.await_leader();
    ASSERT_GE(next, 0);
    EXPECT_NE(next, static_cast<int>(leader));
  }
}

// Scenario SR-07.
TEST_F(ReplicaTest, ABarrierUnderWayEndsAtOnceWhenItsServerStops) {
  ServerWorld servers(9);
  const size_t leader = lead(servers);
  Replica replica(env(servers, leader), *servers[leader].server, *servers[leader].state_machine);
  cut_from_all(servers, leader);
  std::optional<io::Status> passed;
  servers[leader].machine->process()->spawn("barrier", [&] { passed = replica.barrier(io::kNever); });
  servers.world.run_for(10ms);
  EXPECT_FALSE(passed.has_value());
  servers[leader].machine->process()->spawn("stop", [&] { servers[leader].server->stop(); });
  servers.run_until([&] { return passed.has_value(); }, 100ms);
  ASSERT_TRUE(passed.has_value());
  EXPECT_FALSE(passed->ok());
}

TEST_F(ReplicaTest, OwnershipIsServedFromTheFirstCatchUpOnAndForGood) {
  ServerWorld servers(10);
  servers.start_all();
  const int leader = servers.await_leader();
  ASSERT_GE(leader, 0);
  std::vector<std::unique_ptr<Replica>> replicas;
  std::vector<bool> latched(3, false);
  for (size_t i = 0; i < 3; ++i) {
    replicas.push_back(std::make_unique<Replica>(env(servers, i), *servers[i].server, *servers[i].state_machine));
    EXPECT_TRUE(replicas[i]->may_serve_ownership().is(io::ErrorKind::busy));
    servers[i].machine->process()->spawn("latch", [&, i] {
      replicas[i]->wait_until_caught_up();
      latched[i] = true;
    });
  }
  board.off.insert(io::Defence::assignments_before_caught_up);
  EXPECT_TRUE(replicas[0]->may_serve_ownership().ok()) << "what the defence is for";
  board.off.clear();
  ASSERT_TRUE(servers.run_until([&] { return latched[0] && latched[1] && latched[2]; }, 5s));
  for (size_t i = 0; i < 3; ++i) cut_from_all(servers, i);
  servers.world.run_for(10s);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(replicas[i]->is_caught_up());
    EXPECT_TRUE(replicas[i]->may_serve_ownership().ok());
  }
}

TEST_F(ReplicaTest, ALeaderWithoutAQuorumDoesNotSetTheLatch) {
  ServerWorld servers(11);
  const size_t leader = lead(servers);
  Replica replica(env(servers, leader), *servers[leader].server, *servers[leader].state_machine);
  ASSERT_TRUE(replica.is_caught_up());
  cut_from_all(servers, leader);
  std::optional<bool> caught_up;
  servers[leader].machine->process()->spawn(
      "latch", [&] { caught_up = replica.wait_until_caught_up(env(servers, leader).after(8s)); });
  ASSERT_TRUE(servers.run_until([&] { return caught_up.has_value(); }, 20s));
  EXPECT_FALSE(*caught_up) << "it still led when it was asked, and its barrier came to nothing";
}

}  // namespace
