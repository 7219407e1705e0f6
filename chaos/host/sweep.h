// Sweeps and hunts: many seeds on several processes, and what they found.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "chaos/host/plan_store.h"
#include "io/defence.h"

namespace chaos {

// What the program's exit code says.
enum class Verdict { none = 0, violation = 1, usage = 2, harness_fault = 3, below_floor = 4 };

struct SweepOptions {
  uint64_t first = 1;
  uint64_t last = 1;
  int jobs = 1;
  std::optional<std::chrono::seconds> budget;  // real time; no seed is begun after it
  bool fail_fast = false;
  bool with_floors = false;  // judge how many seeds reached each probe (chaos/floors.h); not with defects
  std::set<io::Defence> defects;
  std::string out = kPlanDirectory;  // directory of failing plans
  uint64_t fresh_every = 50;      // each so-many-th seed runs again in a fresh process and must have the same hash; 0: none
  std::string program = "narad-chaos";  // as it was called, for replay lines
};

Verdict sweep(const SweepOptions& options);

struct HuntOptions {
  io::Defence defect;
  uint64_t first = 1;
  uint64_t last = 500;
  int jobs = 1;
  std::string program = "narad-chaos";  // as it was called, for the replay line
};

// Prints how many seeds and CPU seconds it took to catch the defect, by a seed that passes with the defence on. `none` when
// it was caught.
Verdict hunt(const HuntOptions& options);

}  // namespace chaos
