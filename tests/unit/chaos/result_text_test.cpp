// A result survives the pipe.

#include "chaos/result_text.h"

#include <gtest/gtest.h>

namespace chaos {
namespace {

TEST(ResultText, ReadsBackWhatItPrinted) {
  RunResult result;
  result.seed = 7;
  result.hash = ~uint64_t{0};
  result.calls = 210;
  result.faults = 9;
  result.probes["raft: a log was cut"] = 3;
  result.violation = sim::Violation{"raft: one vote", "n1 voted\ntwice", io::Instant(std::chrono::milliseconds(1'500)), 42};
  const auto again = parse_result(print_result(result));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->seed, 7u);
  EXPECT_EQ(again->hash, ~uint64_t{0});
  EXPECT_EQ(again->calls, 210u);
  EXPECT_EQ(again->probes, result.probes);
  ASSERT_TRUE(again->violation);
  EXPECT_EQ(again->violation->rule, "raft: one vote");
  EXPECT_EQ(again->violation->sentence, "n1 voted twice");
  EXPECT_EQ(again->violation->at, result.violation->at);
  EXPECT_EQ(again->violation->event, 42u);
}

TEST(ResultText, RefusesWhatItDidNotPrint) {
  EXPECT_FALSE(parse_result(""));
  EXPECT_FALSE(parse_result("seed x\n"));
  EXPECT_FALSE(parse_result("seed 1\n"));
  EXPECT_FALSE(parse_result(print_result(RunResult{}) + "what 1\n"));
  std::string cut = print_result(RunResult{});
  cut.pop_back();
  EXPECT_FALSE(parse_result(cut));
}

}  // namespace
}  // namespace chaos
