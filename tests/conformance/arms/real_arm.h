// Production's io in a temporary directory, on loopback sockets.
#pragma once

#include <memory>
#include <string>

#include "tests/conformance/arms/arm.h"

namespace tests {

std::unique_ptr<Arm> make_real_arm(ArmKind kind, const ArmSettings& settings, std::string& why_not);

}  // namespace tests
