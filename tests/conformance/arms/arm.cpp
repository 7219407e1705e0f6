#include "tests/conformance/arms/arm.h"

#include "tests/conformance/arms/real_arm.h"
#include "tests/conformance/arms/sim_arm.h"

namespace tests {

std::string_view to_string(ArmKind kind) {
  switch (kind) {
    case ArmKind::uring: return "uring";
    case ArmKind::epoll: return "epoll";
    case ArmKind::sim: return "sim";
  }
  return "unknown";
}

std::unique_ptr<Arm> make_arm(ArmKind kind, const ArmSettings& settings, std::string& why_not) {
  if (kind == ArmKind::sim) {
    return make_sim_arm(settings);
  }
  return make_real_arm(kind, settings, why_not);
}

}  // namespace tests
