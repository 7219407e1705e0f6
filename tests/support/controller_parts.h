// What a controller stands on, bent at will: a metastore in memory, a gate and raft's servers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/cluster/entry_gate.h"
#include "engine/cluster/servers.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/records_reader.h"
#include "io/sim/machine.h"
#include "io/sim/world.h"
#include "tests/support/members.h"
#include "tests/support/memory_metastore.h"

namespace tests {

class FakeGate final : public engine::cluster::EntryGate {
 public:
  using engine::cluster::EntryGate::judge;
  engine::cluster::GateAnswer judge(uint32_t type, io::Instant) override {
    if (before_judge) before_judge();
    return type <= newest || type <= 22 ? engine::cluster::GateAnswer{} : engine::cluster::GateAnswer{false, holder, "held back"};
  }
  uint32_t newest = 37;
  std::string holder = "n9";
  std::function<void()> before_judge;
};

class FakeServers final : public engine::cluster::Servers {
 public:
  std::vector<engine::cluster::ServerFact> list() const override { return servers; }
  std::string_view self() const override { return id; }
  io::Status remove(std::string_view who, io::Instant) override {
    removed.emplace_back(who);
    if (const auto hook = during_remove) hook();  // a copy: it may take itself away
    if (!remove_status.ok()) return remove_status;
    std::erase_if(servers, [&](const engine::cluster::ServerFact& server) { return server.id == who; });
    return {};
  }
  io::Status hand_over(io::Instant) override {
    ++hand_overs;
    return hand_over_status;
  }
  void have(std::vector<std::string> voters) {
    servers.clear();
    for (std::string& voter : voters) servers.push_back({voter, voter + ":7943", true, true});
  }

  std::string id = "n1";
  std::vector<engine::cluster::ServerFact> servers;
  std::vector<std::string> removed;
  io::Status remove_status;
  std::function<void()> during_remove;
  io::Status hand_over_status;
  int hand_overs = 0;
};

// One simulated process whose store is the whole cluster's.
struct ControllerParts {
  io::sim::World world{5};
  MemoryMetastore store;
  FakeGate gate;
  FakeServers servers;
  io::Env* env = nullptr;
  int runs = 0;

  // Runs `body` in the first fiber of a process, to its end.
  bool run(const std::function<void(io::Env&)>& body) {
    io::sim::MachineSettings settings;
    settings.name = "n1-" + std::to_string(++runs);
    bool ended = false;
    io::sim::Machine& machine = world.add_machine(settings);
    machine.start([&](io::Env& given) {
      env = &given;
      body(given);
      ended = true;
      return 0;
    });
    world.run_for(std::chrono::hours(1));
    return ended;
  }

  void topic(const std::string& name, int32_t partitions = 3, const std::string& parent = {}) {
    engine::metastore::Topic record = make_topic(name, partitions);
    record.parent = parent;
    store.apply(engine::metastore::encode_create_topic(record));
  }
  void member(const engine::metastore::Member& record) {
    store.apply(engine::metastore::encode_command(engine::metastore::RegisterMember{record}));
    if (record.draining) {
      store.apply(engine::metastore::encode_command(engine::metastore::SetMemberDraining{record.id, true}));
    }
  }
  void row(const engine::metastore::Assignment& assignment) {
    store.apply(engine::metastore::encode_command(engine::metastore::AssignPartition{assignment}));
  }
  // Owners by partition, "-" for none, "a>b" for a move: "n1 n2 -".
  std::string owners(const std::string& name, int32_t partitions = 3) {
    std::string text;
    for (int32_t p = 0; p < partitions; ++p) {
      const auto found = engine::metastore::get_assignment(store, name, p);
      const bool is_placed = found.ok() && found->has_value();
      text += (p == 0 ? "" : " ") + (is_placed ? (*found)->owner_id : "-");
      if (is_placed && !(*found)->target_id.empty()) text += ">" + (*found)->target_id;
    }
    return text;
  }
  std::optional<engine::metastore::Member> find_member(const std::string& id) {
    const auto found = engine::metastore::get_member(store, id);
    return found.ok() ? *found : std::nullopt;
  }
};

}  // namespace tests
