// docs/raft-scenarios.md is what the tests say, and what it says of them is read right.

#include "tests/support/scenario_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/support/paths.h"

namespace tests {
namespace {

TEST(ScenarioTable, TheCommittedPageIsCurrent) {
  const std::string path = source_dir() + "/docs/raft-scenarios.md";
  const std::string table = scenario_table(scenario_rows(source_dir()));
  if (std::getenv("RAFT_SCENARIOS_WRITE") != nullptr) {
    std::ofstream(path) << table;
    return;
  }
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), table) << "make it anew: RAFT_SCENARIOS_WRITE=1 build/debug/narad_unit --gtest_filter='ScenarioTable.*'";
}

TEST(ScenarioTable, EveryScenarioFileOfAKnownIdIsInIt) {
  std::set<std::string> shown;
  for (const ScenarioRow& row : scenario_rows(source_dir())) shown.insert(row.test);
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/tests/scenario")) {
    const std::string name = entry.path().filename().string();
    for (const std::string& id : raft_scenario_ids()) {
      if (name.starts_with(id)) {
        EXPECT_TRUE(shown.contains("scenario/" + name)) << name;
      }
    }
  }
}

TEST(ScenarioTable, ReadsAScenarioFile) {
  const auto rows = scenario_rows("tests/scenario/EL-02-late.raft", "# EL-02: a late grant\nred with defect late-prevote-counts\n");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].id, "EL-02");
  EXPECT_EQ(rows[0].text, "A late grant");
  EXPECT_EQ(rows[0].test, "scenario/EL-02-late.raft");
  EXPECT_EQ(rows[0].red_by, "`late-prevote-counts`");
  EXPECT_TRUE(rows[0].is_run_red);
  const auto by_hand = scenario_rows("tests/scenario/EL-03-twice.raft", "# EL-03: twice\n# turned red by: counting answers, not voters\n");
  ASSERT_EQ(by_hand.size(), 1u);
  EXPECT_EQ(by_hand[0].red_by, "counting answers, not voters");
  EXPECT_FALSE(by_hand[0].is_run_red);
  EXPECT_TRUE(scenario_rows("tests/scenario/basic.raft", "# basic: three servers\n").empty());
}

TEST(ScenarioTable, ReadsMarkersAboveTests) {
  const auto rows = scenario_rows("tests/unit/raft/a_test.cpp",
                                  "// Scenarios PT-04 and LR-13; turned red by: keeping the tail.\n"
                                  "TEST(LogStore, CutsTheTail) {\n}\n\n// SI-99 is unknown.\nTEST(LogStore, Other) {\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].id, "PT-04");
  EXPECT_EQ(rows[1].id, "LR-13");
  EXPECT_EQ(rows[0].text, "Cuts the tail.");
  EXPECT_EQ(rows[0].test, "unit/raft/a_test.cpp: LogStore.CutsTheTail");
  EXPECT_EQ(rows[0].red_by, "keeping the tail");
}

}  // namespace
}  // namespace tests
