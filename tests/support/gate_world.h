// Servers with a metastore (metastore_world.h) and an entry-type gate each, of releases that a test chooses: what upgrades need of a
// cluster without its node protocol.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/cluster/entry_gate.h"
#include "engine/metastore/envelope.h"
#include "engine/metastore/records.h"
#include "engine/metastore/records_reader.h"
#include "tests/support/metastore_world.h"

namespace tests {

class GateWorld : public MetastoreWorld {
 public:
  using MetastoreWorld::MetastoreWorld;

  // Of the lives that begin from now on.
  void set_release(std::size_t i, const std::string& name, std::uint32_t newest_type, bool skips_unknown = false) {
    engine::metastore::FsmSettings& settings = nodes[i]->settings;
    settings.build = name;
    settings.newest_type = newest_type;
    settings.skips_unknown = skips_unknown;
    settings.writes_meta = !skips_unknown;
  }
  // A heartbeat of server i, as the leader proposes it: with what its release reports, 3.0 nothing.
  bool report(std::size_t i) {
    const engine::metastore::FsmSettings& settings = nodes[i]->settings;
    engine::metastore::Member member;
    member.id = nodes[i]->machine->name();
    member.addr = member.id + ":7942";
    member.cluster_addr = nodes[i]->address;
    member.last_heartbeat = ++stamp_;
    if (settings.newest_type > engine::metastore::kEveryReleaseEntryType) {
      member.build = settings.build;
      member.entry_types = settings.newest_type;
    }
    return writes(engine::metastore::RegisterMember{member});
  }
  bool report_all() {
    bool all = true;
    for (std::size_t i = 0; i < nodes.size(); ++i) all = report(i) && all;
    return all;
  }
  std::int64_t last_stamp() const { return stamp_; }

  // What the gate of server i says, now.
  engine::cluster::GateAnswer judge(std::size_t i, std::uint32_t type, io::Duration within = std::chrono::seconds(5)) {
    Node& node = *nodes[i];
    return on(i, [this, i, &node, type, within] { return gate(i).judge(type, node.machine->process()->env().after(within)); })
        .value_or(engine::cluster::GateAnswer{false, "", "the server ended"});
  }
  // Of its present life.
  engine::cluster::ClusterGate& gate(std::size_t i) {
    Node& node = *nodes[i];
    Gate& kept = gates_[i];
    if (kept.server != node.server) {
      kept.server = node.server;
      kept.gate = std::make_unique<engine::cluster::ClusterGate>(
          node.machine->process()->env(), *node.fsm, *node.server,
          engine::cluster::GateSelf{node.machine->name(), node.settings.build, node.settings.newest_type});
    }
    return *kept.gate;
  }
  // The log lines of its present life that begin like that, with their fields.
  std::vector<std::string> lines(std::size_t i, const std::string& begin) {
    std::vector<std::string> found;
    for (const io::sim::LogLine& line : nodes[i]->machine->process()->log_lines()) {
      if (line.text.starts_with(begin)) found.push_back(line.text);
    }
    return found;
  }

 private:
  struct Gate {
    const raft::RaftServer* server = nullptr;
    std::unique_ptr<engine::cluster::ClusterGate> gate;
  };
  std::map<std::size_t, Gate> gates_;
  std::int64_t stamp_ = 1'000'000;
};

}  // namespace tests
