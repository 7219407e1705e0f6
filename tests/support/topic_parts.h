// What a topic manager stands on beside its metastore, bent at a test's will.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/cluster/entry_gate.h"
#include "engine/topics/placer.h"

namespace tests {

// Lets types up to `newest` pass.
struct FixedGate final : engine::cluster::EntryGate {
  using engine::cluster::EntryGate::judge;
  engine::cluster::GateAnswer judge(uint32_t type, io::Instant) override {
    asked.push_back(type);
    if (type <= newest) {
      return {};
    }
    return {false, "n2", "member \"n2\" (3.0.1) applies Raft entry types up to " + std::to_string(newest)};
  }

  uint32_t newest = engine::metastore::kNewestEntryType;
  std::vector<uint32_t> asked;
};

// Notes what is to be placed.
struct NotingPlacer final : engine::topics::Placer {
  std::optional<engine::Reply> ready_to_place(io::Instant) override {
    ++asked;
    if (while_waiting) {
      std::exchange(while_waiting, nullptr)();
    }
    return refusal;
  }
  void place(std::string_view topic, engine::topics::PlacementCause cause, io::Instant) override { placed.emplace_back(topic, cause); }

  int asked = 0;
  std::optional<engine::Reply> refusal;
  std::function<void()> while_waiting;  // once
  std::vector<std::pair<std::string, engine::topics::PlacementCause>> placed;
};

}  // namespace tests
