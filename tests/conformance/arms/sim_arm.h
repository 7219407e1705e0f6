// The simulator's io: one machine of a simulated world.
#pragma once

#include <memory>

#include "tests/conformance/arms/arm.h"

namespace tests {

std::unique_ptr<Arm> make_sim_arm(const ArmSettings& settings);

}  // namespace tests
