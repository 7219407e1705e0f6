// One simulated machine and its disk, for tests of the stores: each step is the life of one process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/check.h"
#include "io/sim/machine.h"
#include "io/sim/volume.h"
#include "io/sim/world.h"
#include "raft/log_store.h"

namespace tests {

class DiskWorld {
 public:
  explicit DiskWorld(uint64_t seed) : world(seed), machine(add(world)) {}

  // Runs `body` as a process until it returns or is killed. True when it returned.
  bool run(const std::function<void(io::Env&)>& body) {
    io::sim::Incarnation& process = machine.start([body](io::Env& env) {
      body(env);
      return 0;
    });
    world.run_while([&] { return process.live(); }, world.now() + std::chrono::seconds(600));
    // A write that a kill left behind lands or not before the next life looks.
    world.run_for(std::chrono::seconds(10));
    return process.ending() == io::sim::Ending::exited;
  }
  io::sim::Volume& volume() { return machine.volume(); }
  std::string bytes(const std::string& path) { return *volume().tree().content(path); }
  io::sim::FileTree::Image image() { return volume().copy(""); }
  void restore(const io::sim::FileTree::Image& image) { volume().restore("", image); }

  io::sim::World world;
  io::sim::Machine& machine;

 private:
  static io::sim::Machine& add(io::sim::World& world) {
    io::sim::MachineSettings settings;
    settings.name = "disk";
    settings.scattered_prefixes = {"raft"};
    settings.unsynced_bit_flip_ppm = 100'000;
    return world.add_machine(settings);
  }
};

inline constexpr raft::StoreId kStore{7, 9};

inline raft::Entry entry(raft::Term term, raft::Index index, std::string text) {
  raft::Entry made{term, index, raft::EntryType::command, nullptr};
  if (text.empty()) {
    made.type = raft::EntryType::noop;
  } else {
    made.data = std::make_shared<const std::string>(std::move(text));
  }
  return made;
}

// "1:a 1:b 2:c": what a log holds, for comparisons.
inline std::string to_text(const std::vector<raft::Entry>& entries) {
  std::string text;
  for (const raft::Entry& each : entries) {
    text += std::to_string(each.term) + ":" + std::string(each.bytes().substr(0, 12)) + "/" +
            std::to_string(each.bytes().size()) + " ";
  }
  return text;
}

}  // namespace tests
