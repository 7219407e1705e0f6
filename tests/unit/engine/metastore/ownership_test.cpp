// Owners are told from the first catch-up on, and not before.

#include "engine/metastore/ownership.h"

#include <gtest/gtest.h>

#include "engine/metastore/kept_rows.h"
#include "io/sim/switches.h"
#include "tests/support/memory_metastore.h"
#include "tests/support/server_world.h"

namespace engine::metastore {
namespace {

using namespace std::chrono_literals;

TEST(Ownership, IsNotToldBeforeTheReplicaHasCaughtUp) {
  io::sim::Switchboard board;
  const io::sim::SwitchboardGuard guard(&board);
  const Assignment placed{"t", 1, "n1", ""};
  tests::MemoryMetastore rows;
  WriteSet written(rows.rows, 0);
  add_placed(written, "t", 1);
  written.put(Bucket::assignments, assignment_key("t", 1), encode_assignment(placed));
  written.keep_entry();
  rows.rows.take(written);

  tests::ServerWorld servers(1);
  servers.start_all();
  const int leader = servers.await_leader();
  ASSERT_GE(leader, 0);
  tests::ServerWorld::Node& node = servers[static_cast<size_t>(leader)];
  Replica replica(node.machine->process()->env(), *node.server, *node.state_machine);
  Ownership ownership(replica, rows);
  EXPECT_TRUE(ownership.of_partition("t", 1).is(io::ErrorKind::busy));
  EXPECT_TRUE(ownership.of_topic("t").is(io::ErrorKind::busy));
  EXPECT_EQ(rows.reads, 0);
  board.off.insert(io::Defence::assignments_before_caught_up);
  EXPECT_EQ(*ownership.of_partition("t", 1), placed) << "what the defence is for";
  board.off.clear();
  bool has_latched = false;
  node.machine->process()->spawn("latch", [&] {
    replica.wait_until_caught_up();
    has_latched = true;
  });
  ASSERT_TRUE(servers.run_until([&] { return has_latched; }, 5s));
  EXPECT_EQ(*ownership.of_partition("t", 1), placed);
  EXPECT_EQ(*ownership.of_partition("t", 2), std::nullopt);
  EXPECT_EQ(*ownership.of_topic("t"), std::vector<Assignment>({placed}));
}

}  // namespace
}  // namespace engine::metastore
