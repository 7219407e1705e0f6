// Whole nodes of which the cluster knows that they are members, and that they apply the newest entries.
#pragma once

#include <string>

#include "engine/metastore/commands.h"
#include "engine/topics/proposer.h"
#include "tests/support/node_world.h"

namespace tests {

class RegisteredWorld : public NodeWorld {
 protected:
  explicit RegisteredWorld(size_t count = 3) : NodeWorld(count) {}

  // Starts all nodes and waits until one leads; the members are on record then.
  size_t lead() {
    start_all();
    await_leader();
    world.run_for(std::chrono::seconds(1));
    const size_t leader = await_leader();
    register_members(leader);
    return leader;
  }

  void register_members(size_t leader) {
    size_t registered = 0;
    nodes[leader].machine->process()->spawn("test", [&, leader] {
      for (const Node& node : nodes) {
        engine::metastore::Member member;
        member.id = node.config.cluster.node_id;
        member.addr = node.config.http.addr;
        member.cluster_addr = node.config.cluster.addr;
        member.last_heartbeat = io::to_unix_seconds(nodes[leader].machine->process()->env().clock.wall());
        member.build = "3.2.0";
        member.entry_types = engine::metastore::kNewestEntryType;
        const engine::Proposed proposed = nodes[leader].view->proposer.propose(
            engine::metastore::encode_command(engine::metastore::RegisterMember{member}), world.now() + std::chrono::seconds(5));
        registered += proposed.outcome == engine::Proposed::Outcome::applied ? 1 : 0;
      }
    });
    EXPECT_TRUE(world.run_while([&] { return registered < nodes.size(); }, world.now() + std::chrono::seconds(10)));
  }
};

}  // namespace tests
