// The check that a server's queues stay within their bounds: that it passes over a long life with a dead follower, and that it can
// fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "sim/bounds.h"
#include "tests/support/server_world.h"

namespace {

using namespace std::chrono_literals;
using tests::ServerWorld;

// Every core and its links after every event, from now on.
void watch(ServerWorld& servers) {
  servers.on_core_changed = [&servers](ServerWorld::Node& node, const raft::Core& core) {
    auto wrong = sim::beyond_bounds(core, core.settings());
    if (!wrong && node.server != nullptr) wrong = sim::beyond_bounds(*node.server, node.server->link_settings(), core.settings());
    if (wrong) servers.world.report_violation(std::string(sim::kBoundsRule) + ": " + *wrong);
  };
}

// Of all files of the leader's log, by their own size.
uint64_t log_bytes(ServerWorld& servers, size_t leader) {
  io::sim::Incarnation* process = servers[leader].machine->process();
  uint64_t bytes = 0;
  bool is_done = false;
  process->spawn("sizes", [&] {
    io::Disk& disk = process->env().disk;
    auto names = disk.list("raft/log");
    NARAD_CHECK(names.ok(), "the log is listed");
    for (const std::string& name : *names) {
      auto file = disk.open("raft/log/" + name, io::OpenMode::read);
      if (!file.ok()) continue;  // it went meanwhile
      auto size = (*file)->size();
      bytes += size.ok() ? *size : 0;
    }
    is_done = true;
  });
  NARAD_CHECK(servers.run_until([&] { return is_done; }, 10s), "the log's files are looked at");
  return bytes;
}

// Two writes a second for an hour, 512 bytes each.
struct LongLife : ServerWorld {
  static constexpr int kWrites = 7200;
  static constexpr size_t kPayloadBytes = 512;

  explicit LongLife(uint64_t seed) : ServerWorld(seed) {
    options.core.heartbeat_interval = 200ms;
    options.core.election_timeout_min = 600ms;
    options.core.election_timeout_max = 900ms;
    options.core.tail_bytes_max = 32 << 10;
    options.core.flight.bytes_max = 32 << 10;
    options.core.append_bytes_max = 8 << 10;
    options.core.payload_bytes_max = 8 << 10;
    options.core.unapplied_bytes_max = 64 << 10;
    options.core.applying_bytes_max = 16 << 10;
    options.link.queue_bytes_max = 64 << 10;
    options.log.tail_bytes_max = 32 << 10;
    options.snapshots.threshold = 500;
    options.snapshots.interval = 30s;
    options.snapshots.trailing = 100;
    options.snapshots.store.chunk_bytes = 64 << 10;
    watch(*this);
    start_all();
    const int found = await_leader();
    NARAD_CHECK(found >= 0, "a healthy cluster elects a leader");
    leads = static_cast<size_t>(found);
    for (auto& node : nodes) node->state_machine->image_piece_bytes = 64 << 10;
  }

  void write(int count) {
    for (int i = 0; i < count; ++i) {
      (void)propose(leads, std::string(kPayloadBytes, static_cast<char>('a' + i % 26)));
      world.run_for(500ms);
    }
  }
  const raft::Core& core() { return nodes[leads]->server->core(); }

  size_t leads = 0;
};

// The log reaches back to the older of two snapshots and what is kept below it; each is taken when at most the threshold and the
// writes of two intervals have gathered.
constexpr raft::Index kEntriesMax = 2 * (500 + 2 * 60) + 100;

TEST(Bounds, AnHourOfWritesBesideADeadFollowerStaysWithinThem) {
  LongLife servers(11);
  const size_t dead = (servers.leads + 1) % 3;
  servers.write(10);
  servers[dead].machine->kill();
  for (int part = 0; part < 6; ++part) {
    servers.write(LongLife::kWrites / 6);
    ASSERT_TRUE(servers.world.violations().empty()) << servers.world.violations().front();
    ASSERT_TRUE(servers[servers.leads].server->is_leader());
    if (part > 0) {
      EXPECT_LE(servers.core().last_index() - servers.core().log().base_index(), kEntriesMax);
      EXPECT_LE(log_bytes(servers, servers.leads), kEntriesMax * (LongLife::kPayloadBytes + 64) + 8 * servers.options.log.segment_bytes);
    }
  }
  EXPECT_GT(servers.core().log().base_index(), raft::Index{LongLife::kWrites / 2});
  // What was kept for the follower was not needed: an image takes it to the end.
  servers.start(dead);
  ASSERT_TRUE(servers.run_until([&] {
    return servers.is_up(dead) && servers[dead].server->applied_index() == servers.core().last_index();
  }, 60s));
  EXPECT_EQ(servers[dead].state_machine->images_installed, 1);
  EXPECT_EQ(servers[dead].state_machine->commands, servers[servers.leads].state_machine->commands);
  EXPECT_TRUE(servers.world.violations().empty());
}

// What the leader holds for the protocol: its log's entries in memory, and what waits for its connections. Entries in flight are the
// log's own or, read from the disk, the link's.
uint64_t held_bytes(const ServerWorld::Node& node) {
  uint64_t bytes = node.server->core().log().cost_bytes();
  node.server->visit_links([&bytes](const raft::PeerLink& link) { bytes += link.queued_bytes(); });
  return bytes;
}

// Ten writes of 4 KiB a second, with the settings that production has.
TEST(Bounds, AnHourBesideADeadFollowerHolds64MiBAtMostWithTheSettingsOfProduction) {
  constexpr int kWritesASecond = 10;
  ServerWorld servers(13);
  servers.options.core = {};
  servers.options.link = {};
  servers.options.log = {};
  servers.options.snapshots = {};
  uint64_t most = 0;
  watch(servers);
  servers.on_core_changed = [&most, check = servers.on_core_changed](ServerWorld::Node& node, const raft::Core& core) {
    check(node, core);
    if (node.server != nullptr && core.role() == raft::Role::leader) most = std::max(most, held_bytes(node));
  };
  servers.start_all();
  const int found = servers.await_leader();
  ASSERT_GE(found, 0);
  const auto leader = static_cast<size_t>(found);
  const size_t dead = (leader + 1) % 3;
  servers[dead].machine->kill();
  for (int second = 0; second < 3600; ++second) {
    for (int i = 0; i < kWritesASecond; ++i) (void)servers.propose(leader, std::string(4096, static_cast<char>('a' + i)));
    servers.world.run_for(1s);
  }
  const raft::Core& core = servers[leader].server->core();
  EXPECT_TRUE(servers[leader].server->is_leader());
  EXPECT_GE(core.applied_index(), raft::Index{3600 * kWritesASecond});
  EXPECT_GT(core.log().base_index(), raft::Index{1'000}) << "the log was cut past what the dead one has";
  EXPECT_LE(most, uint64_t{64} << 20);
  EXPECT_GE(most, core.settings().tail_bytes_max / 2) << "the entries that are kept for followers were counted";
  servers.start(dead);
  ASSERT_TRUE(servers.run_until([&] { return servers.is_up(dead) && servers[dead].server->applied_index() == core.last_index(); }, 120s));
  EXPECT_EQ(servers[dead].state_machine->images_installed, 1);
  EXPECT_LE(most, uint64_t{64} << 20);
  EXPECT_TRUE(servers.world.violations().empty());
}

// The same moments, judged by tighter settings than the servers have.
TEST(Bounds, EachBoundCanFail) {
  LongLife servers(12);
  std::string found;
  bool has_seen_flight = false;
  bool has_seen_backlog = false;
  bool has_seen_link = false;
  const raft::Settings mine = servers.options.core;
  servers.on_core_changed = [&](ServerWorld::Node& node, const raft::Core& core) {
    EXPECT_FALSE(sim::beyond_bounds(core, mine)) << *sim::beyond_bounds(core, mine);
    raft::Settings tight = mine;
    tight.flight.messages_max = 0;
    if (auto wrong = sim::beyond_bounds(core, tight)) has_seen_flight |= wrong->find("messages in flight") != std::string::npos;
    tight = mine;
    tight.unapplied_bytes_max = tight.applying_bytes_max = tight.append_bytes_max = tight.payload_bytes_max = 0;
    if (auto wrong = sim::beyond_bounds(core, tight)) has_seen_backlog |= wrong->find("entries to apply") != std::string::npos;
    if (node.server != nullptr) {
      raft::LinkSettings link = node.server->link_settings();
      link.queue_bytes_max = 0;
      if (auto wrong = sim::beyond_bounds(*node.server, link, tight)) has_seen_link |= wrong->find("wait for the connection") != std::string::npos;
    }
  };
  // Many at once: each is far above what the tight settings leave.
  for (int i = 0; i < 40; ++i) (void)servers.propose(servers.leads, std::string(4000, 'x'));
  servers.world.run_for(5s);
  EXPECT_TRUE(has_seen_flight);
  EXPECT_TRUE(has_seen_backlog);
  EXPECT_TRUE(has_seen_link);

  raft::Settings tight = mine;
  tight.tail_bytes_max = 4000;
  const auto wrong = sim::beyond_bounds(servers.core(), tight);
  ASSERT_TRUE(wrong.has_value());
  EXPECT_NE(wrong->find("bytes of applied entries"), std::string::npos) << *wrong;
  EXPECT_TRUE(servers.world.violations().empty());
}

}  // namespace
