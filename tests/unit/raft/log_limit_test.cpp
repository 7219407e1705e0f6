// Lines of a condition that lasts: one an interval and key, and how many were left out.

#include "raft/log_limit.h"

#include <gtest/gtest.h>

namespace raft {
namespace {

using namespace std::chrono_literals;

TEST(LogLimit, OneLineAnIntervalAndKeyTellsHowManyWereLeftOut) {
  LogLimit limit(1min);
  const io::Instant begin{};
  EXPECT_EQ(limit.admit("a", begin), 0u);
  EXPECT_EQ(limit.admit("a", begin + 1s), std::nullopt);
  EXPECT_EQ(limit.admit("b", begin + 2s), 0u) << "one key does not silence another";
  EXPECT_EQ(limit.admit("a", begin + 59s), std::nullopt);
  EXPECT_EQ(limit.admit("a", begin + 60s), 2u);
  EXPECT_EQ(limit.admit("b", begin + 62s), 0u);
  EXPECT_EQ(limit.admit("a", begin + 3min), 0u) << "what was told is not told again";
}

TEST(LogLimit, EverNewKeysCostNoMemoryAndTheOldestIsForgottenFirst) {
  LogLimit limit(1min);
  const io::Instant begin{};
  for (size_t i = 0; i < LogLimit::kKeysMax; ++i) {
    EXPECT_EQ(limit.admit("k" + std::to_string(i), begin + std::chrono::milliseconds(i)), 0u);
  }
  EXPECT_EQ(limit.admit("one more", begin + 1s), 0u);
  EXPECT_EQ(limit.admit("k1", begin + 1s), std::nullopt) << "still known";
  EXPECT_EQ(limit.admit("k0", begin + 1s), 0u) << "forgotten, so it speaks again";
}

}  // namespace
}  // namespace raft
