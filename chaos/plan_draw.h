// Plans drawn from a seed, swarm style: each run takes a random subset of the faults at random rates, with a random cluster size,
// timing and load, so that rare combinations come up and no fault drowns the others.
//
// A drawn plan stays within the envelope (simulation.md): no fault of it destroys what a quorum relies on, so every check
// applies. Its median run is well above 60 simulated seconds, 200 client calls and 5 faults.
#pragma once

#include <cstdint>

#include "chaos/plan.h"

namespace chaos {

Plan draw_plan(uint64_t seed);

}  // namespace chaos
