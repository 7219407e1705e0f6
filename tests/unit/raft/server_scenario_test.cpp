// Scenarios step by step, on servers with real stores, links and fibers in the simulator: cuts that fail, entries that were cut and a
// restart, a log that ends before the snapshot, a stop in the middle of everything, reads and losses of power.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/server_world.h"

namespace {

using namespace std::chrono_literals;
using raft::Index;
using raft::Term;
using tests::ServerWorld;

std::string violations(const ServerWorld& servers) {
  std::string all;
  for (const std::string& each : servers.world.violations()) all += each + "\n";
  return all;
}

struct ScenarioWorld : ServerWorld {
  using ServerWorld::ServerWorld;

  size_t lead() {
    start_all();
    const int found = await_leader();
    NARAD_CHECK(found >= 0, "a healthy cluster elects a leader");
    return static_cast<size_t>(found);
  }
  void write(size_t leader, const std::string& command) {
    auto call = propose(leader, command);
    NARAD_CHECK(run_until([&] { return call->done; }, 10s), "a proposal ends");
    NARAD_CHECK(call->answer.ok(), "a leader with a quorum takes commands");
    written.push_back(command);
  }
  // Cuts every way between a server of `some` and one that is not.
  void part(const std::vector<size_t>& some) {
    const auto is_in = [&](size_t i) { return std::find(some.begin(), some.end(), i) != some.end(); };
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (size_t j = 0; j < nodes.size(); ++j) {
        if (is_in(i) && !is_in(j)) world.network().cut_both(*nodes[i]->machine, *nodes[j]->machine);
      }
    }
  }
  // Runs until another server than those of `old` leads and has committed in its term.
  size_t await_other_leader(const std::vector<size_t>& old) {
    const auto is_other = [&] {
      const int now = leader();
      return now >= 0 && std::find(old.begin(), old.end(), static_cast<size_t>(now)) == old.end() &&
             nodes[static_cast<size_t>(now)]->server->core().has_committed_in_term();
    };
    NARAD_CHECK(run_until(is_other, 10s), "the majority elects a leader");
    return static_cast<size_t>(leader());
  }
  const raft::Core& core(size_t i) const { return nodes[i]->server->core(); }
  // Lines of the present life of server `i` that hold `text`.
  size_t lines(size_t i, std::string_view text) const {
    if (nodes[i]->machine->process() == nullptr) return 0;
    const auto& all = nodes[i]->machine->process()->log_lines();
    return static_cast<size_t>(std::count_if(all.begin(), all.end(), [&](const io::sim::LogLine& line) {
      return line.text.find(text) != std::string::npos;
    }));
  }

  std::vector<std::string> written;
};

// Scenario PT-06: the write that replaces a suffix fails, at each of its disk operations, within a segment and over the end of one.
TEST(ServerScenario, AFailedCutStopsTheServerWithOneLineAndTheNextLifeFindsTheOldLogOrTheNew) {
  for (const bool rolls : {false, true}) {
    bool is_struck = true;
    uint64_t nth = 1;
    for (; is_struck && nth < 40; ++nth) {
      SCOPED_TRACE("operation " + std::to_string(nth) + (rolls ? ", rolls" : ""));
      ScenarioWorld servers(nth);
      if (rolls) servers.options.log.segment_bytes = servers.options.log.fill_step_bytes = 4096;
      const size_t old = servers.lead();
      servers.write(old, "kept");
      servers.world.run_for(200ms);
      const Index kept = servers.core(old).last_index();
      servers.part({old});
      for (int i = 0; i < 3; ++i) servers.propose(old, "lost " + std::to_string(i) + std::string(300, '.'), 60s);
      servers.world.run_for(100ms);
      ASSERT_EQ(servers.core(old).durable_index(), kept + 3);
      const Term old_term = servers.core(old).log().last_term();
      const size_t leader = servers.await_other_leader({old});
      for (int i = 0; i < 6; ++i) servers.write(leader, "new " + std::to_string(i) + std::string(rolls ? 900 : 30, '.'));
      servers.world.run_for(1s);

      auto& volume = servers[old].machine->volume();
      volume.script({io::sim::FaultAction::error, std::nullopt, "raft/log", nth});
      servers.world.network().heal_all();
      size_t lines = 0;
      servers.run_until([&] {
        lines = std::max(lines, servers.lines(old, "raft: this server stops"));
        return servers[old].machine->process() == nullptr || (volume.scripted_left() > 0 && servers[old].state_machine->commands == servers.written);
      }, 10s);
      is_struck = volume.scripted_left() == 0;
      volume.clear_scripted();
      if (!is_struck) continue;
      ASSERT_EQ(servers[old].machine->process(), nullptr) << "nothing is appended after it";
      EXPECT_NE(servers[old].failure, "");
      EXPECT_EQ(lines, 1u);

      servers.part({old});
      servers.start(old);
      ASSERT_TRUE(servers.run_until([&] { return servers.is_up(old); }, 5s)) << servers[old].open_error;
      const raft::Core& core = servers.core(old);
      ASSERT_GT(core.last_index(), kept);
      const bool is_old = core.log().term(kept + 1) == old_term;
      EXPECT_TRUE(!is_old || core.last_index() == kept + 3) << core.last_index();
      for (Index i = kept + 1; i <= core.last_index(); ++i) EXPECT_EQ(core.log().term(i) == old_term, is_old) << i;
      servers.world.network().heal_all();
      EXPECT_TRUE(servers.all_applied(servers.written));
      EXPECT_EQ(violations(servers), "");
    }
    EXPECT_GT(nth, 2u) << "some operation was struck";
  }
}

// Scenario PT-04, all its steps: overwritten entries, a snapshot at the last of them, a restart, and a candidate that has the old ones.
TEST(ServerScenario, OverwrittenEntriesDoNotComeBackBehindASnapshotAndTheirHolderGetsNoVote) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    ScenarioWorld servers(seed, 5);
    servers.options.snapshots.threshold = 2;
    servers.options.snapshots.interval = 20ms;
    servers.options.snapshots.trailing = seed % 3;
    const size_t old = servers.lead();
    const size_t follower = (old + 1) % 5;
    servers.write(old, "1");
    servers.write(old, "2");
    ASSERT_TRUE(servers.all_applied(servers.written));
    // Three entries of the first term reach one follower only.
    servers.part({old, follower});
    for (int i = 0; i < 3; ++i) servers.propose(old, "lost " + std::to_string(i), 60s);
    servers.world.run_for(100ms);
    const Index lost_last = servers.core(follower).last_index();
    ASSERT_EQ(lost_last, servers.core(old).last_index());
    // The next leader overwrites them there with fewer of its own.
    const size_t leader = servers.await_other_leader({old, follower});
    servers.world.network().heal_all();
    servers.part({old});
    servers.write(leader, "x");
    ASSERT_TRUE(servers.run_until([&] {
      const raft::ServerStatus status = servers[follower].server->status();
      return servers[follower].state_machine->commands == servers.written && status.snapshot == status.last;
    }, 5s));
    const Index last = servers.core(follower).last_index();
    const Term term = servers.core(follower).log().last_term();
    ASSERT_LT(last, lost_last);
    if (seed % 2 == 0) servers[follower].machine->kill();
    else servers[follower].machine->power_loss();
    servers.world.run_for(10ms);
    servers.part({follower});
    servers.start(follower);
    ASSERT_TRUE(servers.run_until([&] { return servers.is_up(follower); }, 5s)) << servers[follower].open_error;
    EXPECT_EQ(servers.core(follower).last_index(), last) << "the log ends where it ended";
    EXPECT_EQ(servers.core(follower).log().last_term(), term);
    EXPECT_EQ(servers.core(follower).applied_index(), last);
    // The old leader has the longer log, of the older term.
    servers.world.network().heal_both(*servers[old].machine, *servers[follower].machine);
    ASSERT_TRUE(servers.run_until([&] { return servers.lines(follower, "reason=the candidate's log is behind") > 0; }, 20s));
    servers.world.run_for(3s);
    EXPECT_FALSE(servers[old].server->is_leader());
    servers.world.network().heal_all();
    EXPECT_TRUE(servers.all_applied(servers.written));
    EXPECT_EQ(violations(servers), "");
  }
}

// Scenario PT-16 c: an image was put in place and the process ended before the log began anew behind it.
TEST(ServerScenario, ALogThatEndsBeforeTheSnapshotIsDroppedAndGoesOnBehindIt) {
  int met = 0;
  for (uint64_t nth = 1; nth <= 12; ++nth) {
    SCOPED_TRACE(nth);
    ScenarioWorld servers(nth);
    servers.options.snapshots.threshold = 5;
    servers.options.snapshots.interval = 20ms;
    servers.options.snapshots.trailing = 0;
    servers.options.core.tail_bytes_max = 1;
    servers.options.log.segment_bytes = servers.options.log.fill_step_bytes = 4096;
    const size_t leader = servers.lead();
    const size_t follower = (leader + 1) % 3;
    servers.write(leader, "before");
    ASSERT_TRUE(servers.all_applied(servers.written));
    const Index last = servers.core(follower).last_index();
    servers[follower].machine->kill();
    for (int i = 0; i < 200 && servers.core(leader).log().base_index() <= last; ++i) {
      servers.write(leader, std::to_string(i) + std::string(60, '.'));
      servers.world.run_for(10ms);
    }
    ASSERT_GT(servers.core(leader).log().base_index(), last);
    auto& volume = servers[follower].machine->volume();
    volume.script({io::sim::FaultAction::kill, std::nullopt, "raft/snapshots", nth});
    servers.start(follower);
    servers.run_until([&] { return volume.scripted_left() == 0 && servers[follower].machine->process() == nullptr; }, 5s);
    volume.clear_scripted();
    if (servers[follower].machine->process() != nullptr) break;  // nothing more was written there
    servers.world.run_for(1ms);
    servers.part({follower});
    servers.start(follower);
    ASSERT_TRUE(servers.run_until([&] { return servers.is_up(follower); }, 5s)) << servers[follower].open_error;
    const raft::Core& core = servers.core(follower);
    const std::optional<raft::RestartDecision>& decision = servers[follower].server->decision();
    if (decision->resets_log) {
      ++met;
      EXPECT_EQ(decision->row, raft::RestartRow::behind);
      EXPECT_GT(core.snapshot().index, last);
      EXPECT_EQ(core.log().base_index(), core.snapshot().index) << "nothing of the log before it is left";
      EXPECT_EQ(core.last_index(), core.snapshot().index);
      EXPECT_EQ(core.applied_index(), core.snapshot().index);
    }
    servers.world.network().heal_all();
    EXPECT_TRUE(servers.all_applied(servers.written));
    EXPECT_EQ(violations(servers), "");
  }
  EXPECT_GT(met, 0);
}

// Scenario TS-06: proposals in plenty, an image that takes half a minute, a peer that hangs and one that is gone.
TEST(ServerScenario, AStopInTheMiddleOfEverythingEndsWithinItsGrace) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    ScenarioWorld servers(seed);
    servers.options.snapshots.threshold = 1;
    servers.options.snapshots.interval = 20ms;
    const size_t leader = servers.lead();
    servers.world.run_for(500ms);
    servers[leader].state_machine->write_time = 30s;
    const int images = servers[leader].state_machine->images_written;
    servers.write(leader, "imaged");
    servers.write(leader, "imaged too");
    servers.world.run_for(200ms);
    servers.world.network().cut_both(*servers[leader].machine, *servers[(leader + 1) % 3].machine);
    servers[(leader + 2) % 3].machine->power_loss();
    std::vector<std::shared_ptr<ServerWorld::Call<raft::Proposed>>> calls;
    for (int i = 0; i < 1000; ++i) calls.push_back(servers.propose(leader, std::to_string(i), 600s));
    auto barrier = servers.barrier(leader, 600s);
    servers.world.run_for(20ms);
    ASSERT_EQ(servers[leader].state_machine->images_written, images) << "the image is under way";
    const io::Instant asked = servers.world.now();
    servers[leader].server->stop();
    const auto answered = [&] { return std::count_if(calls.begin(), calls.end(), [](const auto& call) { return call->done; }); };
    ASSERT_TRUE(servers.run_until([&] { return barrier->done && answered() == 1000; }, 100ms))
        << "who waits is told at once: " << answered() << " of 1000, barrier " << barrier->done << " " << servers[leader].failure;
    for (const auto& call : calls) EXPECT_EQ(call->answer.outcome, raft::Outcome::stopped);
    EXPECT_EQ(barrier->answer.outcome, raft::Outcome::stopped);
    ASSERT_TRUE(servers.run_until([&] { return servers[leader].machine->process() == nullptr; }, 60s));
    EXPECT_LE(servers.world.now() - asked, 2s + 300ms);
    EXPECT_EQ(servers[leader].failure, "");
    EXPECT_EQ(violations(servers), "");
  }
}

// Scenario SR-01, right after a restart of all: the new leader's state machine is empty, and its commit index unknown.
TEST(ServerScenario, AReadRightAfterAFullRestartSeesWhatWasAcknowledged) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    ScenarioWorld servers(seed);
    const size_t before = servers.lead();
    for (int i = 0; i < 20; ++i) servers.write(before, std::to_string(i));
    for (size_t i = 0; i < 3; ++i) servers[i].machine->power_loss();
    servers.world.run_for(10ms);
    servers.start_all();
    ASSERT_TRUE(servers.run_until([&] { return servers.leader() >= 0; }, 10s));
    const auto leader = static_cast<size_t>(servers.leader());
    ASSERT_FALSE(servers.core(leader).has_committed_in_term());
    ASSERT_TRUE(servers[leader].state_machine->commands.empty());
    auto barrier = servers.barrier(leader);
    ASSERT_TRUE(servers.run_until([&] { return barrier->done; }, 6s));
    ASSERT_TRUE(barrier->answer.ok()) << barrier->answer.reason;
    EXPECT_EQ(servers[leader].state_machine->commands, servers.written);
    EXPECT_EQ(violations(servers), "");
  }
}

// Scenario SR-02: a leader that was paused for ten election timeouts is asked for a read before it has processed anything else.
TEST(ServerScenario, APausedLeaderConfirmsNoReadOnceAnotherHasWritten) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    ScenarioWorld servers(seed);
    const size_t old = servers.lead();
    servers.write(old, "before");
    servers.world.run_for(200ms);
    servers[old].machine->freeze(7s);
    auto barrier = servers.barrier(old, 20s);  // runs first thing when it goes on
    const size_t leader = servers.await_other_leader({old});
    servers.write(leader, "after");
    ASSERT_TRUE(servers.run_until([&] { return barrier->done; }, 30s));
    EXPECT_FALSE(barrier->answer.ok() && servers[old].state_machine->commands != servers.written);
    EXPECT_TRUE(servers.all_applied(servers.written));
    EXPECT_EQ(violations(servers), "");
  }
}

// Scenario PT-10, its variant: one server loses power while another is paused.
TEST(ServerScenario, NothingAcknowledgedIsLostWhenOneLosesPowerWhileAnotherIsPaused) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    ScenarioWorld servers(seed);
    const size_t leader = servers.lead();
    const size_t paused = (leader + 1) % 3;
    const size_t dark = seed % 2 == 0 ? leader : (leader + 2) % 3;
    servers[paused].machine->freeze(10s);
    std::vector<std::shared_ptr<ServerWorld::Call<raft::Proposed>>> calls;
    std::vector<std::string> acknowledged;
    for (int i = 0; i < 1000; ++i) calls.push_back(servers.propose(leader, std::to_string(i)));
    auto draws = servers.world.stream("test", seed);
    servers.world.run_for(draws.between(200us, 20ms));
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls[i]->done && calls[i]->answer.ok()) acknowledged.push_back(std::to_string(i));
    }
    servers[dark].machine->power_loss();
    servers.world.run_for(10ms);
    servers.start(dark);
    servers.world.run_for(11s);
    ASSERT_GE(servers.await_leader(), 0);
    const auto now = static_cast<size_t>(servers.leader());
    auto barrier = servers.barrier(now);
    ASSERT_TRUE(servers.run_until([&] { return barrier->done; }, 6s));
    ASSERT_TRUE(barrier->answer.ok()) << barrier->answer.reason;
    const std::vector<std::string> commands = servers[now].state_machine->commands;
    for (const std::string& each : acknowledged) EXPECT_NE(std::find(commands.begin(), commands.end(), each), commands.end()) << each;
    EXPECT_TRUE(servers.all_applied(commands)) << "every server has every one";
    EXPECT_EQ(violations(servers), "");
  }
}

// Scenario MB-09, its variant: of three voters one is down, and the server that joins needs an image that takes ten minutes.
TEST(ServerScenario, AServerThatNeedsATenMinuteImageJoinsWithoutHoldingUpAWrite) {
  ScenarioWorld servers(5, 4);
  servers.members.pop_back();
  servers.options.snapshots.threshold = 5;
  servers.options.snapshots.interval = 20ms;
  servers.options.snapshots.trailing = 0;
  servers.options.snapshots.store.chunk_bytes = 512;
  servers.options.snapshots.send_bytes_per_second = 50;
  servers.options.log.segment_bytes = servers.options.log.fill_step_bytes = 4096;
  servers[3].is_joining = true;
  for (size_t i = 0; i < 3; ++i) servers.start(i);
  const int found = servers.await_leader();
  ASSERT_GE(found, 0);
  const auto leader = static_cast<size_t>(found);
  const size_t down = (leader + 1) % 3;
  servers.write(leader, std::string(30'000, 'r'));
  for (int i = 0; i < 30; ++i) {
    servers.write(leader, std::to_string(i) + std::string(60, '.'));
    servers.world.run_for(20ms);
  }
  ASSERT_GT(servers.core(leader).log().base_index(), 1u);
  servers[down].machine->kill();
  const auto change = [&](raft::ConfigurationChange::Kind kind) {
    raft::ConfigurationChange step;
    step.kind = kind;
    step.id = "n4";
    if (kind == raft::ConfigurationChange::Kind::add) step.address = servers[3].address;
    auto call = servers.change(leader, step);
    NARAD_CHECK(servers.run_until([&] { return call->done; }, 10s), "a change ends");
    return call->answer;
  };
  ASSERT_TRUE(change(raft::ConfigurationChange::Kind::add).ok());
  servers.start(3);
  const io::Instant begun = servers.world.now();
  const Term term = servers.core(leader).term();
  const auto promoted = [&] { return servers.core(leader).configuration().is_voter("n4"); };
  io::Duration installed_after{0};
  while (!promoted() && servers.world.now() - begun < 30min) {
    const io::Instant asked = servers.world.now();
    servers.write(leader, "meanwhile " + std::to_string(servers.written.size()));
    EXPECT_LT(servers.world.now() - asked, 200ms) << "writes never stop";
    EXPECT_EQ(servers.core(leader).configuration().voter_count(), 3u);
    const raft::Proposed step = change(raft::ConfigurationChange::Kind::promote);
    const bool holds = servers.is_up(3) && servers[3].server->counters().snapshots_installed > 0;
    if (holds && installed_after == io::Duration::zero()) installed_after = servers.world.now() - begun;
    EXPECT_TRUE(holds || step.refusal == raft::Refusal::not_caught_up) << step.reason;
    if (!step.ok()) servers.world.run_for(20s);
  }
  EXPECT_TRUE(promoted());
  EXPECT_GE(installed_after, 9min);
  EXPECT_EQ(servers.core(leader).term(), term);
  servers.start(down);
  EXPECT_TRUE(servers.all_applied(servers.written, 60s));
  EXPECT_EQ(violations(servers), "");
}

}  // namespace
