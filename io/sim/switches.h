// The switchboard of the world that runs on this thread: which defences are switched off, and which probes were
// reached. The simulator's counterpart of production's constant answers (io/defence.h, io/probe.h).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "io/defence.h"

namespace io::sim {

struct Switchboard {
  std::set<Defence> off;                   // defects switched on for this run
  bool deaf = false;                       // a killed incarnation is being unwound: its probes count for nothing
  std::map<std::string, uint64_t> probes;  // name -> how often reached
};

// Installs `board` for this thread until the returned guard dies; nullptr means every defence on and probes not
// counted.
class SwitchboardGuard {
 public:
  explicit SwitchboardGuard(Switchboard* board);
  ~SwitchboardGuard();
  SwitchboardGuard(const SwitchboardGuard&) = delete;
  SwitchboardGuard& operator=(const SwitchboardGuard&) = delete;

 private:
  Switchboard* before_;
};

Switchboard* current_switchboard();

}  // namespace io::sim
