// Snapshots through servers with real stores, links and fibers in the simulator: taken, compacted behind, sent, resumed, installed.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "io/sim/switches.h"
#include "raft/snapshot_sender.h"
#include "raft/log_format.h"
#include "tests/support/server_world.h"

namespace {

using namespace std::chrono_literals;
using tests::ServerWorld;

std::string violations(const ServerWorld& servers) {
  std::string all;
  for (const std::string& each : servers.world.violations()) all += each + "\n";
  return all;
}

// A world whose servers take a snapshot every few entries, keep no log behind it, and cut it into little chunks.
struct SnapshotWorld : ServerWorld {
  explicit SnapshotWorld(uint64_t seed, int count = 3) : ServerWorld(seed, count) {
    options.snapshots.threshold = 5;
    options.snapshots.interval = 20ms;
    options.snapshots.trailing = 0;
    options.snapshots.store.chunk_bytes = 512;
    options.core.tail_bytes_max = 1;
    options.log.segment_bytes = 4096;
    options.log.fill_step_bytes = 4096;
    start_all();
    const int found = await_leader();
    NARAD_CHECK(found >= 0, "a healthy cluster elects a leader");
    first_leader = static_cast<size_t>(found);
    follower = (first_leader + 1) % static_cast<size_t>(count);
  }

  // Writes `count` commands of a little more than `filler` bytes one after another through whoever leads.
  void write(int count, size_t filler = 60) {
    for (int i = 0; i < count; ++i) {
      const std::string command = "command " + std::to_string(written.size()) + std::string(filler, '.');
      for (int tries = 0; tries < 100; ++tries) {
        const int now = await_leader();
        NARAD_CHECK(now >= 0, "a majority elects a leader");
        auto call = propose(static_cast<size_t>(now), command);
        NARAD_CHECK(run_until([&] { return call->done; }, 10s), "a proposal ends");
        NARAD_CHECK(call->answer.outcome != raft::Outcome::unknown, "nothing is in doubt in this world");
        if (call->answer.ok()) break;
        world.run_for(50ms);
      }
      written.push_back(command);
    }
  }
  // Runs until all servers but `gone` are up and have applied everything.
  bool all_level(io::Duration limit = 20s) {
    return run_until([&] {
      for (size_t i = 0; i < nodes.size(); ++i) {
        if (i == gone) continue;
        if (!is_up(i) || nodes[i]->state_machine->commands != written) return false;
      }
      return true;
    }, limit);
  }
  // Where each server is, for a failure's text.
  std::string describe() const {
    std::string text;
    for (const auto& node : nodes) {
      text += node->machine->name() + ": ";
      if (node->server == nullptr) {
        text += "down " + node->open_error + node->failure + "\n";
        continue;
      }
      const raft::ServerStatus status = node->server->status();
      text += std::string(to_string(status.role)) + " term " + std::to_string(status.term) + " log " + std::to_string(status.log_base) +
              ".." + std::to_string(status.last) + " durable " + std::to_string(status.durable) + " commit " +
              std::to_string(status.commit) + " applied " + std::to_string(status.applied) + " snapshot " +
              std::to_string(status.snapshot) + " commands " + std::to_string(node->state_machine->commands.size()) + " of " +
              std::to_string(written.size()) + "\n";
      for (const raft::PeerStatus& peer : status.peers) {
        text += "  " + peer.id + " match " + std::to_string(peer.match) + " state " + std::to_string(static_cast<int>(peer.state)) +
                (peer.is_connected ? " connected\n" : " not connected\n");
      }
    }
    return text;
  }
  // Writes until every live server has cut its log behind two snapshots.
  bool all_compacted() {
    for (int rounds = 0; rounds < 50; ++rounds) {
      bool has_all = true;
      for (size_t i = 0; i < nodes.size(); ++i) has_all = has_all && (!is_up(i) || nodes[i]->server->status().log_base > 0);
      if (has_all) return true;
      write(6);
      world.run_for(50ms);
    }
    return false;
  }

  // The follower is `gone`, the log is cut past what it has, and it has come back and finds no room for the image that it was sent.
  auto& follower_without_room() {
    write(3);
    nodes[follower]->machine->kill();
    gone = follower;
    write(60);
    NARAD_CHECK(all_compacted(), "every log is cut");
    start(follower);
    NARAD_CHECK(run_until([&] { return nodes[follower]->state_machine != nullptr; }, 5s), "the follower starts");
    auto& database = *nodes[follower]->state_machine;
    database.has_room = false;
    NARAD_CHECK(run_until([&] { return database.installs_begun > 0; }, 10s), "an image is sent to it");
    return database;
  }

  size_t first_leader = 0;
  size_t follower = 0;
  size_t gone = ~size_t{0};
  std::vector<std::string> written;
};

TEST(ServerSnapshot, EveryServerTakesSnapshotsAndCutsItsLogBehindThem) {
  SnapshotWorld servers(1);
  servers.write(40);
  ASSERT_TRUE(servers.all_compacted());
  for (size_t i = 0; i < 3; ++i) {
    const raft::ServerStatus status = servers[i].server->status();
    EXPECT_GE(status.snapshot, status.log_base) << "the log reaches back to the snapshot";
    EXPECT_GE(servers[i].server->counters().snapshots_taken, 2u);
    EXPECT_GT(status.snapshot_bytes, 0u);
  }
  EXPECT_TRUE(servers.all_level());
  EXPECT_EQ(violations(servers), "");
}

TEST(ServerSnapshot, AFollowerBehindTheLogIsBroughtUpByAnImageAndTheLogAfterIt) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    SnapshotWorld servers(seed);
    servers.write(3);
    servers[servers.follower].machine->kill();
    servers.write(40);
    ASSERT_TRUE(servers.all_compacted());
    servers.start(servers.follower);
    servers.write(5);
    EXPECT_TRUE(servers.all_level());
    EXPECT_EQ(servers[servers.follower].server->counters().snapshots_installed, 1u);
    EXPECT_EQ(violations(servers), "");
  }
}

TEST(ServerSnapshot, AnImageThatStopsTheStateMachineStopsTheServer) {
  SnapshotWorld servers(3);
  servers.write(3);
  servers[servers.follower].machine->kill();
  servers.write(40);
  ASSERT_TRUE(servers.all_compacted());
  servers.start(servers.follower);
  ASSERT_TRUE(servers.run_until([&] { return servers.is_up(servers.follower); }, 5s));
  servers[servers.follower].state_machine->is_stopped_by_images = true;
  ASSERT_TRUE(servers.run_until([&] { return servers[servers.follower].machine->process() == nullptr; }, 20s));
  EXPECT_NE(servers[servers.follower].failure.find("an image of a newer release"), std::string::npos)
      << servers[servers.follower].failure;
  // Nothing of it counts; what can read such images starts from what there was.
  servers.start(servers.follower);
  EXPECT_TRUE(servers.all_level());
  EXPECT_EQ(violations(servers), "");
}

TEST(ServerSnapshot, ARestartGoesOnFromTheNewestSnapshotAndTheLog) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    SnapshotWorld servers(seed);
    for (int round = 0; round < 3; ++round) {
      servers.write(12);
      servers.all_compacted();
      for (size_t i = 0; i < 3; ++i) {
        if (seed % 2 == 0) servers[i].machine->kill();
        else servers[i].machine->power_loss();
      }
      servers.world.run_for(10ms);
      servers.start_all();
    }
    servers.write(1);
    EXPECT_TRUE(servers.all_level()) << servers[0].open_error << servers[1].open_error << servers[2].open_error;
    EXPECT_EQ(violations(servers), "");
  }
}

// Scenario SI-06 and the order of an install: whatever the crash point, the next start leads to the same end.
void crash_at_every_operation(io::sim::FaultAction action) {
  int hits = 0;
  for (uint64_t nth = 1; nth < 200; ++nth) {
    SCOPED_TRACE(nth);
    SnapshotWorld servers(nth);
    servers.write(3);
    servers[servers.follower].machine->kill();
    servers.write(40);
    ASSERT_TRUE(servers.all_compacted());
    io::sim::ScriptedFault fault;
    fault.action = action;
    fault.nth = nth;
    servers[servers.follower].machine->volume().script(fault);
    servers.start(servers.follower);
    const bool is_struck = servers.run_until([&] { return servers[servers.follower].machine->process() == nullptr; }, 1500ms);
    hits += is_struck ? 1 : 0;
    servers[servers.follower].machine->volume().clear_scripted();
    if (is_struck) servers.start(servers.follower);
    servers.write(3);
    ASSERT_TRUE(servers.all_level()) << servers.describe();
    ASSERT_EQ(violations(servers), "");
    if (!is_struck) break;
  }
  EXPECT_GT(hits, 20) << "receiving, publishing, resetting and installing have that many operations";
}

TEST(ServerSnapshot, AKillAtAnyDiskOperationOfAnInstallIsMadeGoodByTheNextStart) {
  crash_at_every_operation(io::sim::FaultAction::kill);
}
TEST(ServerSnapshot, APowerLossAtAnyDiskOperationOfAnInstallIsMadeGoodByTheNextStart) {
  crash_at_every_operation(io::sim::FaultAction::power_loss);
}

// Between the image's publication and the log's reset nothing else on this server holds what it has acknowledged. Damage there must be
// noticed: the server refuses to start until the image is whole again, or nothing is missing.
TEST(ServerSnapshot, AnImageDamagedAtAnyStepOfItsInstallLosesNothingThatWasAcknowledged) {
  int refused = 0;
  for (uint64_t nth = 1; nth < 200; ++nth) {
    SCOPED_TRACE(nth);
    SnapshotWorld servers(nth);
    servers.write(3);
    auto& follower = servers[servers.follower];
    follower.machine->kill();
    servers.write(40);
    ASSERT_TRUE(servers.all_compacted());
    io::sim::Volume& volume = follower.machine->volume();
    io::sim::ScriptedFault fault;
    fault.action = io::sim::FaultAction::kill;
    fault.nth = nth;
    volume.script(fault);
    servers.start(servers.follower);
    const bool is_struck = servers.run_until([&] { return follower.machine->process() == nullptr; }, 1500ms);
    volume.clear_scripted();
    if (!is_struck) break;
    std::string newest;
    for (const std::string& path : volume.tree().files()) {
      if (path.starts_with("raft/snapshots/") && path.ends_with(".snapshot")) newest = std::max(newest, path);
    }
    if (newest.empty()) continue;
    ASSERT_TRUE(volume.flip_bit(newest, 600, 3));
    servers.start(servers.follower);
    servers.run_until([&] { return servers.is_up(servers.follower) || !follower.open_error.empty(); }, 5s);
    if (!follower.open_error.empty()) {
      ++refused;
      EXPECT_NE(follower.open_error.find("damaged"), std::string::npos) << follower.open_error;
      ASSERT_TRUE(volume.flip_bit(newest, 600, 3));
      servers.run_until([&] { return follower.machine->process() == nullptr; }, 5s);
      servers.start(servers.follower);
    }
    servers.write(3);
    ASSERT_TRUE(servers.all_level()) << servers.describe();
    ASSERT_EQ(violations(servers), "");
  }
  EXPECT_GT(refused, 3);
}

// The newest snapshot of the server at `at`.
std::string newest_snapshot(SnapshotWorld& servers, size_t at) {
  std::string newest;
  for (const std::string& path : servers[at].machine->volume().tree().files()) {
    if (path.starts_with("raft/snapshots/") && path.ends_with(".snapshot")) newest = std::max(newest, path);
  }
  return newest;
}

// Nobody writes, so the next snapshot would never be due by itself.
TEST(ServerSnapshot, AServerIsBroughtUpAlthoughTheLeadersSnapshotIsDamaged) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    SnapshotWorld servers(seed);
    servers.write(3);
    servers[servers.follower].machine->kill();
    servers.write(60);
    ASSERT_TRUE(servers.all_compacted());
    servers.world.run_for(1s);
    const auto leader = static_cast<size_t>(servers.ServerWorld::leader());
    const uint64_t taken = servers[leader].server->counters().snapshots_taken;
    ASSERT_TRUE(servers[leader].machine->volume().flip_bit(newest_snapshot(servers, leader), 600, 3));
    servers.start(servers.follower);
    ASSERT_TRUE(servers.all_level(20s)) << servers.describe();
    servers.world.run_for(100ms);
    EXPECT_EQ(servers[servers.follower].server->counters().snapshots_installed, 1u);
    EXPECT_GT(servers[leader].server->counters().snapshots_taken, taken);
    EXPECT_EQ(violations(servers), "");
  }
}

// What it would send has been damaged since it was written.
TEST(ServerSnapshot, ALeaderThatFindsDamageInItsLogGoesAndNamesThePlace) {
  SnapshotWorld servers(5);
  servers.options.snapshots.threshold = 1'000'000;
  for (size_t i = 0; i < 3; ++i) servers[i].machine->kill();
  servers.start_all();
  const auto leader = static_cast<size_t>(servers.await_leader());
  const size_t follower = (leader + 1) % 3;
  servers.write(3);
  ASSERT_TRUE(servers.all_level());
  servers[follower].machine->kill();
  const raft::Index had = servers[leader].server->status().last;
  servers.write(60);
  io::sim::Volume& volume = servers[leader].machine->volume();
  // The first batch of which the follower has nothing.
  std::string path;
  uint64_t place = 0;
  for (uint64_t generation = 1; generation < 100 && place == 0; ++generation) {
    path = raft::log_format::segment_path(generation);
    const std::string bytes = volume.tree().content(path).value_or("");
    for (auto at = raft::log_format::find_batch(bytes, generation, raft::log_format::kSegmentHeaderBytes); at && place == 0;
         at = raft::log_format::find_batch(bytes, generation, *at + raft::log_format::kAlignment)) {
      if (raft::log_format::parse_batch_header(bytes, generation, *at)->first > had + 3) place = *at + raft::log_format::kBatchHeaderBytes;
    }
  }
  ASSERT_GT(place, 0u);
  ASSERT_TRUE(volume.flip_bit(path, place, 1));
  servers.start(follower);
  ASSERT_TRUE(servers.run_until([&] { return servers[leader].machine->process() == nullptr; }, 10s)) << servers.describe();
  EXPECT_NE(servers[leader].failure.find(path + ": damaged at offset "), std::string::npos) << servers[leader].failure;
  servers.gone = leader;
  servers.write(3);
  EXPECT_TRUE(servers.all_level(20s)) << servers.describe();
  EXPECT_EQ(violations(servers), "");
}

// Scenario SI-07, at the server: a transfer that takes long does not hold the log for ever.
TEST(ServerSnapshot, ATransferHoldsTheLogOnlyUpToItsBound) {
  for (const bool is_bounded : {false, true}) {
    SCOPED_TRACE(is_bounded);
    SnapshotWorld servers(9);
    servers.options.snapshots.transfer_log_bytes_max = is_bounded ? 1 : 1u << 30;
    servers.options.snapshots.send_bytes_per_second = 600;
    servers.options.core.flight.messages_max = 2;
    for (size_t i = 0; i < 3; ++i) servers[i].machine->kill();
    servers.start_all();
    ASSERT_GE(servers.await_leader(), 0);
    servers.write(3);
    servers[servers.follower].machine->kill();
    servers.gone = servers.follower;
    servers.write(40);
    ASSERT_TRUE(servers.all_compacted());
    servers.start(servers.follower);
    servers.world.run_for(1s);
    const auto leader = static_cast<size_t>(servers.await_leader());
    ASSERT_NE(leader, servers.follower);
    const raft::Index under_way = servers[leader].server->status().snapshot;
    for (int i = 0; i < 10; ++i) {
      servers.write(6);
      servers.world.run_for(50ms);
    }
    ASSERT_EQ(servers[servers.follower].server->counters().snapshots_installed, 0u) << "the transfer takes longer than this";
    const raft::Index base = servers[leader].server->status().log_base;
    EXPECT_EQ(base > under_way, is_bounded) << base << " " << under_way;
    EXPECT_EQ(violations(servers), "");
  }
}

TEST(ServerSnapshot, ATransferThatBreaksGoesOnWhereItStopped) {
  SnapshotWorld servers(4);
  servers.write(3);
  servers[servers.follower].machine->kill();
  servers.write(60);
  ASSERT_TRUE(servers.all_compacted());
  io::sim::Network& network = servers.world.network();
  network.set_latency({{{1'000'000, 5ms, 6ms}}});
  servers.start(servers.follower);
  // Breaks the way again and again, each time after a few chunks.
  for (int i = 0; i < 6; ++i) {
    servers.world.run_for(130ms);
    for (size_t other = 0; other < 3; ++other) {
      if (other != servers.follower) network.break_connections(*servers[other].machine, *servers[servers.follower].machine);
    }
  }
  EXPECT_TRUE(servers.all_level(20s));
  EXPECT_EQ(servers[servers.follower].server->counters().snapshots_installed, 1u);
  EXPECT_EQ(violations(servers), "");
}

TEST(ServerSnapshot, ABrokenTransferSlowerThanTwoSnapshotsGoesOnWhereItStopped) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    SnapshotWorld servers(seed);
    servers.options.snapshots.send_bytes_per_second = 1000;
    for (size_t i = 0; i < 3; ++i) servers[i].machine->kill();
    servers.start_all();
    ASSERT_GE(servers.await_leader(), 0);
    servers.write(3);
    servers[servers.follower].machine->kill();
    servers.gone = servers.follower;
    servers.write(40);
    ASSERT_TRUE(servers.all_compacted());
    const auto leader = static_cast<size_t>(servers.await_leader());
    ASSERT_NE(leader, servers.follower);
    servers.start(servers.follower);
    const auto line = [&](size_t i, std::string_view text) {
      for (const io::sim::LogLine& each : servers[i].machine->process()->log_lines()) {
        if (each.text.starts_with(text)) return each.text;
      }
      return std::string();
    };
    ASSERT_TRUE(servers.run_until([&] { return !line(leader, "raft: an image is sent").empty(); }, 5s));
    const std::string sent = line(leader, "raft: an image is sent");
    const std::string index = sent.substr(sent.find(" index="), sent.find(" term=") - sent.find(" index="));
    for (int i = 0; i < 4; ++i) {
      servers.write(6);
      servers.world.run_for(50ms);
    }
    ASSERT_EQ(servers[servers.follower].server->counters().snapshots_received, 0u) << "the transfer takes longer than this";
    servers.world.network().break_connections(*servers[leader].machine, *servers[servers.follower].machine);
    servers.gone = ~size_t{0};
    EXPECT_TRUE(servers.all_level(60s)) << servers.describe();
    EXPECT_NE(line(servers.follower, "raft: image received").find(index + " "), std::string::npos)
        << sent << "\n" << line(servers.follower, "raft: image received");
    EXPECT_EQ(servers[servers.follower].server->counters().snapshots_installed, 1u);
    EXPECT_EQ(violations(servers), "");
    // And then it goes.
    servers.write(12);
    servers.world.run_for(1s);
    size_t files = 0;
    for (const std::string& path : servers[leader].machine->volume().tree().files()) {
      if (path.starts_with("raft/snapshots/") && path.ends_with(".snapshot")) ++files;
    }
    EXPECT_EQ(files, 2u);
  }
}

// Scenario SI-03, SI-04.
TEST(ServerSnapshot, ANewLeaderTakesTheTransferOver) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    SnapshotWorld servers(seed, 5);
    servers.write(3);
    servers[servers.follower].machine->kill();
    servers.write(60);
    ASSERT_TRUE(servers.all_compacted());
    servers.world.network().set_latency({{{1'000'000, 5ms, 6ms}}});
    servers.start(servers.follower);
    servers.world.run_for(std::chrono::milliseconds(60 + 20 * seed));
    const int leader = servers.ServerWorld::leader();
    if (leader >= 0 && static_cast<size_t>(leader) != servers.follower) {
      servers.gone = static_cast<size_t>(leader);
      servers[servers.gone].machine->kill();
    }
    servers.write(3);
    EXPECT_TRUE(servers.all_level(30s));
    EXPECT_EQ(violations(servers), "");
  }
}

TEST(ServerSnapshot, AFollowerWithoutRoomTakesTheImageWhenThereIsRoom) {
  SnapshotWorld servers(6);
  servers.write(3);
  servers[servers.follower].machine->kill();
  servers.write(60);
  ASSERT_TRUE(servers.all_compacted());
  auto& volume = servers[servers.follower].machine->volume();
  volume.set_capacity(volume.used() + 2000);
  servers.start(servers.follower);
  servers.world.run_for(3s);
  ASSERT_TRUE(servers.is_up(servers.follower)) << servers[servers.follower].open_error << servers[servers.follower].failure;
  EXPECT_NE(servers[servers.follower].state_machine->commands, servers.written);
  volume.set_capacity(std::numeric_limits<uint64_t>::max());
  servers.write(1);
  EXPECT_TRUE(servers.all_level(20s));
  EXPECT_EQ(violations(servers), "");
}

// Scenario SI-07.
TEST(ServerSnapshot, AServerThatInstallsForLongNeedsNoSecondImage) {
  SnapshotWorld servers(27);
  servers.options.core.installing_bytes_max = 300;  // the rest it does not take until the image is installed
  for (size_t i = 0; i < 3; ++i) servers[i].machine->kill();
  servers.start_all();
  ASSERT_GE(servers.await_leader(), 0);
  auto& database = servers.follower_without_room();
  for (int i = 0; i < 10; ++i) {
    servers.write(6);
    servers.world.run_for(300ms);
  }
  database.has_room = true;
  servers.gone = ~size_t{0};
  EXPECT_TRUE(servers.all_level(30s)) << servers.describe();
  EXPECT_EQ(servers[servers.follower].server->counters().snapshots_received, 1u) << "one image after another would never end";
  EXPECT_EQ(violations(servers), "");
}

// The leader goes on meanwhile and sends newer images: the one that waits stays readable, and no image is taken of a database that is
// about to be replaced.
TEST(ServerSnapshot, AnImageThatWaitsForRoomIsInstalledHoweverManyComeInMeanwhile) {
  SnapshotWorld servers(26);
  auto& database = servers.follower_without_room();
  const int images_before = database.images_written;
  for (int i = 0; i < 6; ++i) {
    // The log is cut while it cannot be reached, so that it is sent another image.
    for (size_t other = 0; other < 3; ++other) {
      if (other != servers.follower) servers.world.network().cut_both(*servers[other].machine, *servers[servers.follower].machine);
    }
    servers.world.run_for(2s);
    servers.write(30);
    servers.world.network().heal_all();
    servers.world.run_for(3s);
  }
  ASSERT_TRUE(servers.is_up(servers.follower)) << servers[servers.follower].failure;
  EXPECT_GT(servers[servers.follower].server->counters().snapshots_received, 2u) << "newer ones have come in";
  EXPECT_EQ(database.images_written, images_before);
  EXPECT_LT(database.installs_begun, 20) << "each try builds the database anew: further and further apart";
  database.has_room = true;
  servers.gone = ~size_t{0};
  servers.write(1);
  EXPECT_TRUE(servers.all_level(30s)) << servers.describe();
  EXPECT_EQ(violations(servers), "");
}

// Scenario SC-07.
TEST(ServerSnapshot, ADamagedNewestSnapshotIsPassedOverForTheOneBefore) {
  SnapshotWorld servers(7);
  servers.write(20, 1000);  // snapshots are further apart than a segment of the log is long
  ASSERT_TRUE(servers.all_compacted());
  servers[servers.follower].machine->kill();
  auto& volume = servers[servers.follower].machine->volume();
  std::string newest;
  for (const std::string& path : volume.tree().files()) {
    if (path.starts_with("raft/snapshots/") && path.ends_with(".snapshot")) newest = std::max(newest, path);
  }
  ASSERT_NE(newest, "");
  volume.flip_bit(newest, 512 + 32 + 5, 3);
  servers.start(servers.follower);
  servers.write(3);
  EXPECT_TRUE(servers.all_level()) << servers.describe();
  EXPECT_EQ(violations(servers), "");
}

// Scenario SC-10: the copy takes 5 s, at every server.
TEST(ServerSnapshot, CommandsAndHeartbeatsGoOnWhileASlowImageIsWritten) {
  SnapshotWorld servers(8);
  servers.write(10);
  servers.world.run_for(1s);
  std::vector<int> images;
  for (size_t i = 0; i < 3; ++i) {
    servers[i].state_machine->image_piece_bytes = 1 << 20;
    servers[i].state_machine->write_time = 5s;
    images.push_back(servers[i].state_machine->images_written);
  }
  const size_t leader = servers.first_leader;
  const raft::Term term = servers[leader].server->core().term();
  servers.write(6);
  servers.world.run_for(100ms);
  const io::Instant begun = servers.world.now();
  while (servers.world.now() - begun < 4s) {
    const io::Instant asked = servers.world.now();
    servers.write(1);
    EXPECT_LT(servers.world.now() - asked, 100ms) << "a command waits for no copy";
    servers.world.run_for(20ms);
  }
  EXPECT_EQ(servers[leader].server->core().term(), term) << "nobody campaigned";
  EXPECT_TRUE(servers.all_level(200ms));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(servers[i].state_machine->images_written, images[i]) << "the copies are under way";
  // Votes are given meanwhile, too.
  auto handed = servers.transfer(leader, "");
  ASSERT_TRUE(servers.run_until([&] { return handed->done; }, 500ms));
  EXPECT_TRUE(handed->answer.ok()) << handed->answer.reason;
  servers.world.run_for(6s);
  for (size_t i = 0; i < 3; ++i) EXPECT_GT(servers[i].state_machine->images_written, images[i]);
  EXPECT_EQ(violations(servers), "");
}

TEST(ServerSnapshot, AFollowerALittleBehindIsServedFromTheLogOnTheDisk) {
  SnapshotWorld servers(9);
  servers.write(3);
  servers.options.snapshots.trailing = 1000;
  for (size_t i = 0; i < 3; ++i) {
    servers[i].machine->kill();
    servers.start(i);
  }
  servers.write(3);
  servers[servers.follower].machine->kill();
  servers.write(40);
  servers.start(servers.follower);
  servers.write(1);
  EXPECT_TRUE(servers.all_level());
  EXPECT_EQ(servers[servers.follower].server->counters().snapshots_installed, 0u);
  EXPECT_EQ(violations(servers), "");
}

// Whether that snapshot stands complete in the directory of server `i`.
bool has_snapshot(SnapshotWorld& servers, size_t i, const raft::SnapshotLabel& label) {
  const std::string path = raft::snapshot_format::path_of(label.index, label.term);
  return servers[i].machine->volume().tree().content(path).has_value();
}

// A follower in an older term is offered an image of a newer one, by a leader that does not wait for its answer to anything else; its
// disk hangs over the record of the newer term.
void image_before_its_term(uint64_t seed, bool is_power_lost) {
  SnapshotWorld servers(seed);
  const size_t follower = servers.follower;
  servers.write(3);
  servers[follower].machine->kill();
  const size_t third = (servers.first_leader + 2) % 3;
  auto transfer = servers.transfer(servers.first_leader, servers.members[third].first);
  ASSERT_TRUE(servers.run_until([&] { return transfer->done; }, 5s));
  ASSERT_TRUE(transfer->answer.ok()) << transfer->answer.reason;
  servers.write(60);
  ASSERT_TRUE(servers.all_compacted());
  const int found = servers.await_leader();
  ASSERT_GE(found, 0);
  const size_t leader = static_cast<size_t>(found);

  servers.start(follower);
  ASSERT_TRUE(servers.run_until([&] { return servers.is_up(follower); }, 5s));
  auto& volume = servers[follower].machine->volume();
  volume.script({io::sim::FaultAction::stall, io::sim::DiskOp::sync, "raft/stable", 1});
  ASSERT_LT(servers[follower].server->core().durable_hard_state().term, servers[leader].server->core().term());
  raft::SnapshotLabel label;
  bool is_sent = false;
  bool is_good = false;
  servers[leader].machine->process()->spawn("sender", [&] {
    io::Env& env = servers[leader].machine->process()->env();
    const raft::Core& core = servers[leader].server->core();
    auto store = raft::SnapshotStore::open(env.disk, env.clock, core.store(), servers.options.snapshots.store);
    NARAD_CHECK(store.ok() && !(*store)->kept().empty(), "the leader keeps snapshots");
    label = (*store)->kept().front().label;
    EXPECT_GT(label.term, servers[follower].server->core().durable_hard_state().term);
    raft::wire::Hello hello;
    hello.from = core.id();
    hello.to = servers.members[follower].first;
    hello.store = core.store();
    hello.cluster = core.cluster();
    hello.session = core.session();
    hello.address = servers[leader].address;
    hello.purpose = raft::wire::Purpose::snapshot;
    raft::SnapshotOffer offer{hello.from, hello.to, core.term(), hello.store, hello.cluster, hello.session, label};
    raft::SnapshotSender sender(env, servers.options.link, 0, **store);
    is_good = sender.send(servers[follower].address, hello, offer, [] { return true; }).ok();
    is_sent = true;
  });
  const char* const kProbe = "raft: an image waits until its term is durable";
  ASSERT_TRUE(servers.run_until([&] { return io::sim::current_switchboard()->probes[kProbe] > 0; }, 10s));
  servers.world.run_for(5s);
  ASSERT_TRUE(servers.is_up(follower));
  EXPECT_FALSE(is_sent) << "the sender is kept waiting, and sees that this server lives";
  EXPECT_FALSE(has_snapshot(servers, follower, label)) << "an image beside no record of its term would look like a lost vote";
  EXPECT_EQ(servers[follower].server->counters().snapshots_received, 0u);
  EXPECT_LE(servers[follower].state_machine->commands.size(), 3u) << "nothing of it is installed";
  if (is_power_lost) {
    servers[follower].machine->power_loss();
    servers.world.run_for(100ms);
    volume.clear_scripted();
    servers.start(follower);
  } else {
    volume.release();
    EXPECT_TRUE(servers.run_until([&] { return is_sent; }, 10s));
    EXPECT_TRUE(is_good);
    EXPECT_TRUE(has_snapshot(servers, follower, label));
  }
  servers.write(3);
  EXPECT_TRUE(servers.all_level()) << servers.describe();
  EXPECT_EQ(servers[follower].server->counters().snapshots_installed, 1u);
  EXPECT_EQ(violations(servers), "");
}

TEST(ServerSnapshot, AnImageIsPublishedOnlyBesideADurableRecordOfItsTerm) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    for (const bool is_power_lost : {false, true}) {
      io::sim::Switchboard board;
      const io::sim::SwitchboardGuard guard(&board);
      image_before_its_term(seed, is_power_lost);
    }
  }
}

TEST(ServerSnapshot, ACompactionThatFindsNoRoomLosesNothingAndIsMadeGoodWithoutFurtherWrites) {
  io::sim::Switchboard board;
  const io::sim::SwitchboardGuard guard(&board);
  const char* const kProbe = "raft: no room to compact the log";
  for (const io::sim::DiskOp op : {io::sim::DiskOp::rename, io::sim::DiskOp::remove}) {
    SCOPED_TRACE(to_string(op));
    SnapshotWorld servers(13);
    servers.options.log.spares_max = op == io::sim::DiskOp::rename ? 2 : 0;
    for (size_t i = 0; i < 3; ++i) servers[i].machine->kill();
    servers.start_all();
    servers.write(6);
    const size_t struck = static_cast<size_t>(servers.await_leader());
    auto& volume = servers[struck].machine->volume();
    const uint64_t before = board.probes[kProbe];
    // Every such operation on the log fails, again and again.
    const auto fill = [&] {
      while (volume.scripted_left() < 4) volume.script({io::sim::FaultAction::no_space, op, "raft/log", 1});
    };
    for (int rounds = 0; rounds < 60 && board.probes[kProbe] == before; ++rounds) {
      fill();
      servers.write(3);
      servers.world.run_for(30ms);
    }
    ASSERT_GT(board.probes[kProbe], before);
    ASSERT_TRUE(servers.is_up(struck)) << servers[struck].failure << " a full disk is no reason to stop";
    const auto segments = [&] {
      size_t count = 0;
      for (const std::string& path : volume.tree().files()) count += path.starts_with("raft/log/") && path.ends_with(".log") ? 1 : 0;
      return count;
    };
    const size_t kept = segments();
    // The disk has room again.
    volume.clear_scripted();
    servers.world.run_for(2s);
    EXPECT_LT(segments(), kept) << "the room is given back although nothing more was written";
    const raft::ServerStatus status = servers[struck].server->status();
    EXPECT_LE(status.log_base, status.snapshot);
    servers.write(3);
    ASSERT_TRUE(servers.all_level()) << servers.describe();
    for (size_t i = 0; i < 3; ++i) servers[i].machine->power_loss();
    servers.world.run_for(10ms);
    servers.start_all();
    servers.write(1);
    EXPECT_TRUE(servers.all_level()) << servers.describe();
    EXPECT_EQ(violations(servers), "");
  }
}

TEST(ServerSnapshot, ACompactionWhoseFlushOutlastsTheLogLeavesTheNewLogAlone) {
  SnapshotWorld servers(14);
  const size_t follower = servers.follower;
  auto& machine = *servers[follower].state_machine;
  machine.is_durable_by_flush = machine.is_flush_held = true;
  for (int rounds = 0; rounds < 50 && machine.flushes_begun == 0; ++rounds) {
    servers.write(3);
    servers.world.run_for(50ms);
  }
  ASSERT_EQ(machine.flushes_begun, 1) << "a compaction has begun";

  // Meanwhile the follower falls behind the leader's log, and takes an image; its disk hangs over the log's reset.
  io::sim::Network& network = servers.world.network();
  const auto others = {(follower + 1) % 3, (follower + 2) % 3};
  for (const size_t i : others) {
    network.cut_both(*servers[i].machine, *servers[follower].machine);
    network.break_connections(*servers[i].machine, *servers[follower].machine);
  }
  servers.world.run_for(50ms);
  const raft::Index last = servers[follower].server->status().last;
  const auto is_behind = [&](size_t i) { return servers[i].server->status().log_base > last; };
  for (int rounds = 0; rounds < 100 && !std::all_of(others.begin(), others.end(), is_behind); ++rounds) {
    servers.write(6);
    servers.world.run_for(50ms);
  }
  ASSERT_TRUE(std::all_of(others.begin(), others.end(), is_behind));
  auto& volume = servers[follower].machine->volume();
  for (int i = 0; i < 8; ++i) volume.script({io::sim::FaultAction::stall, std::nullopt, "raft/log", 1});
  network.heal_all();
  ASSERT_TRUE(servers.run_until([&] { return servers[follower].server->status().log_base > last; }, 10s)) << servers.describe();
  machine.is_flush_held = false;
  servers.world.run_for(1s);
  ASSERT_TRUE(servers.is_up(follower)) << servers[follower].failure;
  volume.clear_scripted();
  volume.release();
  servers.write(3);
  EXPECT_TRUE(servers.all_level()) << servers.describe();
  EXPECT_EQ(servers[follower].server->counters().snapshots_installed, 1u);
  EXPECT_EQ(violations(servers), "");
}

}  // namespace
