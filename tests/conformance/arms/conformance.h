// The fixture of every conformance test: a test body runs once in each arm.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "tests/conformance/arms/arm.h"

namespace tests {

class Conformance : public testing::TestWithParam<ArmKind> {
 protected:
  // Makes the arm on first use; skips the test where this machine cannot provide it.
  void run(std::function<void(io::Env&)> body, const ArmSettings& settings = {}) {
    if (arm_ == nullptr) {
      std::string why_not;
      arm_ = make_arm(GetParam(), settings, why_not);
      if (arm_ == nullptr) {
        GTEST_SKIP() << "no " << to_string(GetParam()) << " arm here: " << why_not;
      }
    }
    arm_->run(std::move(body));
  }

  Arm& arm() { return *arm_; }

 private:
  std::unique_ptr<Arm> arm_;
};

inline std::string arm_name(const testing::TestParamInfo<ArmKind>& info) { return std::string(to_string(info.param)); }

}  // namespace tests

// For each test file, after its class: NARAD_ALL_ARMS(Files);
#define NARAD_ALL_ARMS(Suite) \
  INSTANTIATE_TEST_SUITE_P(All, Suite, testing::ValuesIn(::tests::kAllArms), ::tests::arm_name)
