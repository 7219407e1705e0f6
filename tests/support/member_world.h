// Whole nodes in the simulated world that form a cluster and join it: five of them, of which three may begin one; their log lines are
// kept.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/metastore/commands.h"
#include "engine/metastore/fsm.h"
#include "engine/metastore/records_reader.h"
#include "engine/topics/proposer.h"
#include "tests/support/node_world.h"

namespace tests {

// n1, n2 and n3 may bootstrap; n4 and n5 join.
class MemberWorld : public NodeWorld {
 protected:
  explicit MemberWorld(size_t count = 5) : NodeWorld(count) {
    for (Node& node : nodes) node.config.cluster.initial_members = "n1,n2,n3";
    world.set_log_sink(io::LogLevel::debug, [this](io::sim::Incarnation& process, io::LogLevel level, std::string_view line) {
      lines.push_back(process.label() + " " + std::string(io::to_string(level)) + " " + std::string(line));
    });
  }

  size_t count_lines(size_t node, std::string_view text) const {
    return static_cast<size_t>(std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.starts_with("n" + std::to_string(node + 1)) && line.find(text) != std::string::npos;
    }));
  }
  bool is_live(size_t i) const { return nodes[i].view.has_value() && nodes[i].machine->process() != nullptr; }
  bool is_ready(size_t i) { return is_live(i) && ask(i, "GET", "/readyz").status == 200; }
  void start_first() {
    for (size_t i = 0; i < 3; ++i) start(i);
    await_leader();
    ASSERT_TRUE(eventually([&] { return is_ready(0) && is_ready(1) && is_ready(2); }, std::chrono::seconds(30)));
  }
  // Asks now and again, letting time pass.
  bool eventually(const std::function<bool()>& holds, io::Duration patience) {
    const io::Instant end = world.now() + patience;
    while (!holds()) {
      if (world.now() >= end) return false;
      world.run_for(std::chrono::milliseconds(200));
    }
    return true;
  }
  const raft::Configuration& configuration() { return nodes[await_leader()].view->raft.core().configuration(); }
  bool is_voter(size_t i) { return configuration().is_voter(nodes[i].config.cluster.node_id); }
  bool is_server(size_t i) { return configuration().find(nodes[i].config.cluster.node_id) != nullptr; }
  // In a fiber of a node that leads.
  void on_leader(const std::function<void(engine::NodeView&, io::Env&)>& body) {
    Node& node = nodes[await_leader()];
    bool ended = false;
    node.machine->process()->spawn("test", [&] {
      body(*node.view, node.machine->process()->env());
      ended = true;
    });
    ASSERT_TRUE(world.run_while([&] { return !ended; }, world.now() + std::chrono::seconds(60)));
  }
  std::optional<engine::metastore::Member> member(size_t i) {
    std::optional<engine::metastore::Member> found;
    const std::string& id = nodes[i].config.cluster.node_id;
    on_leader([&](engine::NodeView& view, io::Env&) { found = *engine::metastore::get_member(view.fsm, id); });
    return found;
  }
  template <typename Command>
  void commit(const Command& command) {
    on_leader([&](engine::NodeView& view, io::Env& env) {
      const engine::Proposed done = view.proposer.propose(engine::metastore::encode_command(command), env.after(std::chrono::seconds(5)));
      EXPECT_EQ(done.outcome, engine::Proposed::Outcome::applied) << done.reason;
    });
  }
  void remove_from_raft(const std::string& id) {
    on_leader([&](engine::NodeView& view, io::Env& env) {
      const raft::ConfigurationChange change{raft::ConfigurationChange::Kind::remove, id, {}, {}};
      EXPECT_TRUE(view.raft.change_configuration(change, env.after(std::chrono::seconds(5))).ok());
    });
  }
  void kill(size_t i) {
    nodes[i].machine->kill();
    nodes[i].view.reset();
    world.run_for(std::chrono::milliseconds(10));
  }

  std::vector<std::string> lines;
};

}  // namespace tests
