// What holds for every plan: printing and reading it back changes nothing, and mangled text is refused or read, never crashes.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "chaos/plan_draw.h"
#include "chaos/plan_text.h"

namespace chaos {
namespace {

TEST(PlanProperty, EveryDrawnPlanReadsBackAsItself) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    Plan plan = draw_plan(seed);
    plan.salt = seed % 3;
    for (int i = 0; i < io::kDefenceCount; ++i) {
      if ((seed >> i) % 4 == 0) {
        plan.defects.insert(static_cast<io::Defence>(i));
      }
    }
    const std::string text = print_plan(plan);
    const auto again = parse_plan(text);
    RC_ASSERT(again.ok());
    RC_ASSERT(print_plan(*again) == text);
    // Fields that a kind does not have are not printed; what remains is equal.
    RC_ASSERT(again->setup == plan.setup);
    RC_ASSERT(again->defects == plan.defects);
    RC_ASSERT(again->decisions.size() == plan.decisions.size());
  }));
}

TEST(PlanProperty, EveryDurationReadsBackAsItself) {
  EXPECT_TRUE(rc::check([](uint32_t high, uint32_t low) {
    const io::Duration duration((static_cast<int64_t>(high) << 24) ^ low);
    RC_ASSERT(parse_duration(print_duration(duration)).value() == duration);
  }));
}

TEST(PlanProperty, EveryDecisionKeepsItsTimeToTheNanosecond) {
  EXPECT_TRUE(rc::check([](uint32_t high, uint32_t low) {
    Plan plan;
    Decision decision;
    decision.id = 1;
    decision.at = io::Duration((static_cast<int64_t>(high % 20'000) << 24) ^ low);
    decision.kind = Kind::heal;
    plan.decisions.push_back(decision);
    const auto again = parse_plan(print_plan(plan));
    RC_ASSERT(again.ok());
    RC_ASSERT(*again == plan);
  }));
}

TEST(PlanProperty, MangledTextNeverEndsTheProcess) {
  EXPECT_TRUE(rc::check([](uint64_t seed, uint16_t at, char byte) {
    std::string text = print_plan(draw_plan(seed % 50));
    text[at % text.size()] = byte;
    const auto plan = parse_plan(text);
    const bool is_judged = plan.ok() || plan.error().message.starts_with("line ");
    RC_ASSERT(is_judged);
  }));
}

}  // namespace
}  // namespace chaos
