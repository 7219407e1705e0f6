// One run of one plan, from an empty world to the end of both phases: a pure function of source, libraries and plan.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chaos/plan.h"
#include "sim/violation.h"

namespace chaos {

struct RunResult {
  uint64_t seed = 0;
  uint64_t hash = 0;
  uint64_t events = 0;
  uint64_t simulated_ms = 0;
  uint64_t calls = 0;
  uint64_t calls_ok = 0;
  uint64_t calls_unknown = 0;
  uint64_t faults = 0;   // decisions carried out
  uint64_t starts = 0;   // of node processes
  uint64_t elections = 0;
  uint64_t entries = 0;  // committed and applied
  uint64_t searches_undecided = 0;  // Wing-Gong searches that ran into their bound
  std::map<std::string, uint64_t> probes;
  std::optional<sim::Violation> violation;
};

struct RunOptions {
  // One readable line an event; null: none.
  std::function<void(std::string_view line)> trace;
  // One JSON object a raft event (docs/raft-trace.md); null: none.
  std::function<void(std::string_view line)> raft_trace;
  // The nodes' log lines, from info on; null: none.
  std::function<void(std::string_view line)> log;
  // Wing-Gong searches over the history; by default on every eighth seed.
  std::optional<bool> search;
};

RunResult run_plan(const Plan& plan, const RunOptions& options = {});

// One line of figures for a person.
std::string summary(const RunResult& result);
std::string hash_text(uint64_t hash);

}  // namespace chaos
