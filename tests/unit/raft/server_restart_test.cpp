// Starts with a hole between log and state machine: refused, or begun anew by a server whose cluster has what it lost.

#include <gtest/gtest.h>

#include <string>

#include "io/sim/volume.h"
#include "tests/support/server_world.h"

namespace {

using namespace std::chrono_literals;
using tests::ServerWorld;

std::string violations(const ServerWorld& servers) {
  std::string all;
  for (const std::string& each : servers.world.violations()) all += each + "\n";
  return all;
}

// Servers that cut their logs behind snapshots; one of them is down, and has lost its snapshots.
struct HoleWorld : ServerWorld {
  explicit HoleWorld(uint64_t seed) : ServerWorld(seed, 3) {
    options.snapshots.threshold = 5;
    options.snapshots.interval = 20ms;
    options.snapshots.trailing = 0;
    options.snapshots.store.chunk_bytes = 512;
    options.log.segment_bytes = 4096;
    options.log.fill_step_bytes = 4096;
    start_all();
    write(30);
    lost = static_cast<size_t>(await_leader() + 1) % 3;
    io::sim::Volume& volume = nodes[lost]->machine->volume();
    const auto begins_at_1 = [&volume] { return volume.copy("raft/log").files.contains("00000000000000000001.log"); };
    for (int rounds = 0; rounds < 50 && begins_at_1(); ++rounds) {
      write(12);
      world.run_for(50ms);
    }
    NARAD_CHECK(all_applied(written), "a healthy cluster is level");
    NARAD_CHECK(!begins_at_1(), "the log was cut on the disk");
    term = nodes[lost]->server->status().term;
    store = nodes[lost]->server->status().store;
    kill(lost);
    volume.restore("raft/snapshots", {});
  }

  void kill(size_t i) {
    nodes[i]->machine->kill();
    world.run_for(1ms);
  }
  void write(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string command = "command " + std::to_string(written.size()) + std::string(60, '.');
      const int now = await_leader();
      NARAD_CHECK(now >= 0, "a majority elects a leader");
      auto call = propose(static_cast<size_t>(now), command);
      NARAD_CHECK(run_until([&] { return call->done; }, 10s) && call->answer.ok(), "a healthy cluster takes commands");
      written.push_back(command);
    }
  }
  bool is_rebuilt() {
    return run_until([&] { return is_up(lost) && !nodes[lost]->server->core().is_rebuilding(); }, 20s);
  }

  size_t lost = 0;
  raft::Term term = 0;
  raft::StoreId store;
  std::vector<std::string> written;
};

// Scenario PT-16 a.
TEST(ServerRestart, AHoleIsRefusedWithNothingTouched) {
  HoleWorld servers(1);
  const uint64_t mutations = servers[servers.lost].machine->volume().mutations();
  servers.start(servers.lost);
  servers.world.run_for(1s);
  EXPECT_FALSE(servers.is_up(servers.lost));
  EXPECT_NE(servers[servers.lost].open_error.find("entries between them are missing; refusing to start"), std::string::npos)
      << servers[servers.lost].open_error;
  EXPECT_EQ(servers[servers.lost].machine->volume().mutations(), mutations);
  EXPECT_EQ(violations(servers), "");
}

TEST(ServerRestart, ASnapshotThatIsDamagedAtItsBeginIsLeftOut) {
  HoleWorld servers(3);
  const size_t up = static_cast<size_t>(servers.await_leader());
  servers.kill(up);
  io::sim::Volume& volume = servers[up].machine->volume();
  const auto files = volume.copy("raft/snapshots").files;
  ASSERT_GE(files.size(), 2u);
  ASSERT_TRUE(volume.flip_bit("raft/snapshots/" + files.rbegin()->first, 512 + 40, 3));
  servers.start(up);
  ASSERT_TRUE(servers.run_until([&] { return servers.is_up(up); }, 5s)) << servers[up].open_error;
  EXPECT_EQ(servers[up].server->decision()->row, raft::RestartRow::behind);
  EXPECT_EQ(violations(servers), "");
}

TEST(ServerRestart, AJoiningServerBeginsAnewAndKeepsTermAndStore) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    HoleWorld servers(seed);
    servers[servers.lost].is_joining = true;
    servers.start(servers.lost);
    ASSERT_TRUE(servers.run_until([&] { return servers.is_up(servers.lost); }, 5s)) << servers[servers.lost].open_error;
    const raft::Core& core = servers[servers.lost].server->core();
    EXPECT_EQ(servers[servers.lost].server->decision()->row, raft::RestartRow::hole);
    EXPECT_TRUE(core.is_rebuilding());
    EXPECT_GE(core.term(), servers.term);
    EXPECT_EQ(core.store(), servers.store);
    EXPECT_TRUE(servers.is_rebuilt());
    servers.write(3);
    EXPECT_TRUE(servers.all_applied(servers.written));
    // And is a server like any other from then on.
    servers.kill(servers.lost);
    servers.start(servers.lost);
    ASSERT_TRUE(servers.run_until([&] { return servers.is_up(servers.lost); }, 5s)) << servers[servers.lost].open_error;
    EXPECT_TRUE(servers.all_applied(servers.written));
    EXPECT_FALSE(servers[servers.lost].server->core().is_rebuilding());
    EXPECT_EQ(violations(servers), "");
  }
}

TEST(ServerRestart, AServerThatBeginsAnewGivesNoVoteUntilALeaderHasBroughtItUp) {
  HoleWorld servers(7);
  const size_t leader = static_cast<size_t>(servers.await_leader());
  servers.kill(leader);
  servers[servers.lost].is_joining = true;
  servers.start(servers.lost);
  EXPECT_EQ(servers.await_leader(10s), -1) << "two of three are up, and one of them may not vote";
  EXPECT_TRUE(servers.is_up(servers.lost)) << servers[servers.lost].open_error;
  // Nor does another life of it.
  servers.kill(servers.lost);
  servers.start(servers.lost);
  EXPECT_EQ(servers.await_leader(10s), -1);
  ASSERT_TRUE(servers.is_up(servers.lost));
  EXPECT_TRUE(servers[servers.lost].server->core().is_rebuilding());
  servers.start(leader);
  ASSERT_GE(servers.await_leader(), 0);
  EXPECT_TRUE(servers.is_rebuilt());
  // Now it counts.
  servers.kill(leader);
  EXPECT_GE(servers.await_leader(), 0);
  servers.write(3);
  EXPECT_EQ(violations(servers), "");
}

TEST(ServerRestart, AResetThatIsEndedAnywhereIsCarriedToItsEnd) {
  for (io::sim::FaultAction action : {io::sim::FaultAction::kill, io::sim::FaultAction::power_loss}) {
    bool is_struck = true;
    for (uint64_t nth = 1; is_struck && nth < 60; ++nth) {
      SCOPED_TRACE(nth);
      HoleWorld servers(nth);
      raft::ServerId id = servers[servers.lost].machine->name();
      servers[servers.lost].is_joining = true;
      io::sim::Volume& volume = servers[servers.lost].machine->volume();
      volume.script({.action = action, .op = std::nullopt, .prefix = "", .nth = nth});
      servers.start(servers.lost);
      servers.run_until([&] { return volume.scripted_left() == 0 || servers.is_up(servers.lost); }, 5s);
      is_struck = volume.scripted_left() == 0;
      volume.clear_scripted();
      servers.world.run_for(1ms);
      if (is_struck) servers.start(servers.lost);
      EXPECT_TRUE(servers.is_rebuilt()) << id << ": " << servers[servers.lost].open_error;
      servers.write(1);
      EXPECT_TRUE(servers.all_applied(servers.written));
      EXPECT_EQ(violations(servers), "");
    }
  }
}

}  // namespace
