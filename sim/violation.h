// What a check of the simulator found wrong.
#pragma once

#include <cstdint>
#include <string>

#include "io/time.h"

namespace sim {

struct Violation {
  std::string rule;      // which check, a fixed text: "acknowledged write survives"
  std::string sentence;  // what happened, for a person: who, which index, which call
  io::Instant at{};      // virtual time
  uint64_t event = 0;    // the world's event number

  // Equal for runs that fail the same way: the rule, without what differs from run to run.
  const std::string& signature() const { return rule; }
};

}  // namespace sim
