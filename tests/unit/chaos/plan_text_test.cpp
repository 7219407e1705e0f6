// The plan file: what it accepts, what it refuses and on which line, and that the committed plan is one.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "chaos/plan_draw.h"
#include "chaos/plan_text.h"
#include "tests/support/paths.h"

namespace chaos {
namespace {

std::string error_of(std::string_view body) {
  const auto plan = parse_plan("narad-chaos plan 1\n" + std::string(body));
  return plan.ok() ? "" : plan.error().message;
}

TEST(PlanText, ReadsSettingsDefectsAndDecisions) {
  const auto plan = parse_plan(
      "# a comment first\nnarad-chaos plan 1\nseed 42\n\nnodes 5   # five\nelection_min 150ms\n"
      "defect vote-not-durable\nd2 at 13s partition shape=half for=4s\nd1 at 12.5s kill node=leader,2 down=1500ms\n"
      "d3 at 20s power_loss on=vote wait=3ms node=voter down=50ms\n");
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->seed, 42u);
  EXPECT_EQ(plan->setup.nodes, 5u);
  EXPECT_EQ(plan->setup.election_min, std::chrono::milliseconds(150));
  EXPECT_TRUE(plan->defects.contains(io::Defence::vote_not_durable));
  ASSERT_EQ(plan->decisions.size(), 3u);
  EXPECT_EQ(plan->decisions[0].id, 1u);
  EXPECT_EQ(plan->decisions[0].node, (std::vector<int>{kLeader, 2}));
  EXPECT_EQ(plan->decisions[0].at, std::chrono::milliseconds(12'500));
  EXPECT_EQ(plan->decisions[2].on, Trigger::vote);
  EXPECT_EQ(plan->decisions[2].wait, std::chrono::milliseconds(3));
}

TEST(PlanText, NamesTheLineOfAnError) {
  EXPECT_EQ(error_of("seed 1\nnods 3\n"), "line 3: no setting is called \"nods\"");
  EXPECT_EQ(error_of("nodes 9\n"), "line 2: nodes must lie between 1 and 5");
  EXPECT_EQ(error_of("nodes 3\nnodes 3\n"), "line 3: nodes is set twice");
  EXPECT_EQ(error_of("safety 10\n"), "line 2: safety: \"10\" is no duration (a number and ns, us, ms, s or m)");
  EXPECT_EQ(error_of("defect none\n"), "line 2: no defect is called \"none\"");
  EXPECT_EQ(error_of("d1 at 1s explode node=1\n"), "line 2: no kind of decision is called \"explode\"");
  EXPECT_EQ(error_of("d1 at 1s kill node=1\n"), "line 2: kill wants down=");
  EXPECT_EQ(error_of("d1 at 1s kill node=x down=1s\n"),
            "line 2: node wants node numbers, leader, follower, any or all, not \"x\"");
  EXPECT_EQ(error_of("d1 at 1s kill node=1 down=1s for=2s\n"), "line 2: kill has no key \"for\"");
  EXPECT_EQ(error_of("d1 at 1s heal\nd1 at 2s heal\n"), "line 3: two decisions are called d1");
  EXPECT_EQ(error_of("x1 at 1s heal\n"), "line 2: a decision's id is d and a number, not \"x1\"");
  EXPECT_EQ(error_of("d1 at 1s cut node=0 peers=1 way=up for=1s\n"), "line 2: way is one of one|both, not \"up\"");
  EXPECT_EQ(error_of("nodes 2\nd1 at 1s kill node=2 down=1s\n"),
            "line 3: d1 names node 2, but there are 2 (numbered from 0)");
  EXPECT_FALSE(parse_plan("").ok());
  EXPECT_EQ(parse_plan("seed 1\n").error().message, "line 1: a plan begins with \"narad-chaos plan 1\"");
}

TEST(PlanText, DurationsAreExact) {
  EXPECT_EQ(parse_duration("1.5s").value(), std::chrono::milliseconds(1'500));
  EXPECT_EQ(parse_duration("0.000000001s").value(), std::chrono::nanoseconds(1));
  EXPECT_EQ(parse_duration("2m").value(), std::chrono::seconds(120));
  EXPECT_EQ(parse_duration("-3ms").value(), std::chrono::milliseconds(-3));
  for (const char* bad : {"", "s", "1", "1.s", "1..2s", "1h", "0.5ns", "1 s", "--1s", "99999999999s"}) {
    EXPECT_FALSE(parse_duration(bad).ok()) << bad;
  }
  EXPECT_EQ(print_duration(std::chrono::milliseconds(1'500)), "1500ms");
  EXPECT_EQ(print_duration(std::chrono::seconds(90)), "90s");
  EXPECT_EQ(print_duration(std::chrono::nanoseconds(7)), "7ns");
}

TEST(PlanText, TheStandardPlanIsAPlanOfThreeNodes) {
  std::ifstream file(tests::source_dir() + "/chaos/plans/standard.plan");
  std::stringstream text;
  text << file.rdbuf();
  const auto plan = parse_plan(text.str());
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->setup.nodes, 3u);
  EXPECT_EQ(plan->setup.ops_per_minute, 600u);
  EXPECT_EQ(plan->setup.loss_ppm, 10'000u);
  EXPECT_EQ(plan->setup.election_min, Plan{}.setup.election_min);
}

TEST(PlanDraw, TheSameSeedDrawsTheSamePlan) {
  EXPECT_EQ(draw_plan(7), draw_plan(7));
  EXPECT_NE(print_plan(draw_plan(7)), print_plan(draw_plan(8)));
}

TEST(PlanDraw, TheMedianPlanIsLongAndHasFaultsEnough) {
  std::vector<size_t> faults;
  std::vector<int64_t> seconds;
  std::vector<uint64_t> calls;
  for (uint64_t seed = 1; seed <= 301; ++seed) {
    const Plan plan = draw_plan(seed);
    faults.push_back(plan.decisions.size());
    seconds.push_back(std::chrono::floor<std::chrono::seconds>(plan.setup.safety).count());
    calls.push_back(plan.setup.ops_per_minute * seconds.back() / 60);
  }
  std::sort(faults.begin(), faults.end());
  std::sort(seconds.begin(), seconds.end());
  std::sort(calls.begin(), calls.end());
  EXPECT_GE(faults[150], 15u);
  EXPECT_GE(seconds[150], 60);
  EXPECT_GE(calls[150], 400u);
}

TEST(PlanDraw, EveryKindIsDrawnSometimes) {
  std::set<Kind> seen;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    for (const Decision& decision : draw_plan(seed).decisions) {
      seen.insert(decision.kind);
    }
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(Kind::drift) + 1);
}

}  // namespace
}  // namespace chaos
