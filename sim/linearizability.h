// Whether a history of calls on one thing could have happened one call at a time, each at some moment between its asking and its
// answer (Wing and Gong's search, with the memory of Lowe's). Calls of unknown outcome may have happened at any later moment or
// never.
//
// The search is exponential in the worst case, so it stops after a stated number of steps: then it says so, and nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/time.h"

namespace sim {

// One call, and what it does to the state, given as text (equal states, equal texts).
struct Step {
  io::Instant asked{};
  io::Instant answered = io::kNever;  // kNever: outcome unknown
  // False when the answer cannot be given in `state`; else `state` becomes what it is afterwards. For an unknown outcome: the
  // effect, if any, in this state (always true).
  std::function<bool(std::string& state)> apply;
};

enum class Linearizable { yes, no, unknown };

const char* to_string(Linearizable verdict);

// `steps_max` bounds the number of tried placements.
Linearizable is_linearizable(const std::vector<Step>& history, const std::string& start, uint64_t steps_max);

}  // namespace sim
