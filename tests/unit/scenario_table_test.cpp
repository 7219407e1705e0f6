// docs/raft-scenarios.md is what the tests say, and what it says of them is read right.

#include "tests/support/scenario_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/support/paths.h"
#include "tests/support/raft_script.h"

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

TEST(ScenarioTable, EveryScenarioHasATestAndEveryTestSomethingThatTurnsItRed) {
  std::set<std::string> tested;
  for (const ScenarioRow& row : scenario_rows(source_dir())) {
    tested.insert(row.id);
    EXPECT_NE(row.red_by, "") << row.id << ": nothing turns " << row.test << " red";
  }
  for (const std::string& id : raft_scenario_ids()) EXPECT_TRUE(tested.contains(id)) << id;
}

// Those of ids that the table does not have, too.
TEST(ScenarioTable, EveryScenarioFileHasSomethingThatTurnsItRed) {
  std::set<std::string> caught;
  for (const Mutation& mutation : load_mutations(source_dir())) caught.insert(mutation.red.begin(), mutation.red.end());
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/tests/scenario")) {
    if (entry.path().extension() != ".raft") continue;
    const std::string name = entry.path().filename().string();
    const bool is_caught = caught.contains("scenario/" + name) || !load_raft_script(entry.path().string()).defects.empty();
    EXPECT_TRUE(is_caught) << "nothing turns " << name << " red";
  }
}

TEST(ScenarioTable, EveryMutationFitsTheTree) {
  const std::vector<Mutation> mutations = load_mutations(source_dir());
  EXPECT_GE(mutations.size(), 25u);
  for (const Mutation& mutation : mutations) EXPECT_EQ(why_not(mutation, source_dir()), "") << mutation.name;
}

TEST(ScenarioTable, ReadsAScenarioFile) {
  const auto rows = scenario_rows("tests/scenario/EL-02-late.raft", "# EL-02: a late grant\nred with defect late-prevote-counts\n");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].id, "EL-02");
  EXPECT_EQ(rows[0].text, "A late grant");
  EXPECT_EQ(rows[0].test, "scenario/EL-02-late.raft");
  EXPECT_EQ(rows[0].red_by, "`late-prevote-counts`");
  EXPECT_TRUE(scenario_rows("tests/scenario/basic.raft", "# basic: three servers\n").empty());
}

TEST(ScenarioTable, ReadsMarkersAboveTests) {
  const auto rows = scenario_rows("tests/unit/raft/a_test.cpp",
                                  "// Scenarios PT-04 and LR-13.\n"
                                  "TEST(LogStore, CutsTheTail) {\n}\n\n// SI-99 is unknown.\nTEST(LogStore, Other) {\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].id, "PT-04");
  EXPECT_EQ(rows[1].id, "LR-13");
  EXPECT_EQ(rows[0].text, "Cuts the tail.");
  EXPECT_EQ(rows[0].test, "unit/raft/a_test.cpp: LogStore.CutsTheTail");
  EXPECT_EQ(rows[0].red_by, "");
}

constexpr const char* kMutation =
    "The tail is\nkept.\n\nfile: raft/a.cpp\n--- old\n  cut();\n--- new\nfile: raft/b.cpp\n--- old\nb\n\n--- new\nc\n--- red\n"
    "scenario/LR-13-a.raft\nunit/raft/a_test.cpp: A.B\n";

TEST(Mutations, AreReadAsWritten) {
  const std::optional<Mutation> mutation = parse_mutation("keeps-the-tail", kMutation);
  ASSERT_TRUE(mutation.has_value());
  EXPECT_EQ(mutation->name, "keeps-the-tail");
  EXPECT_EQ(mutation->what, "The tail is kept.");
  ASSERT_EQ(mutation->edits.size(), 2u);
  EXPECT_EQ(mutation->edits[0].file, "raft/a.cpp");
  EXPECT_EQ(mutation->edits[0].before, "  cut();\n");
  EXPECT_EQ(mutation->edits[0].after, "");
  EXPECT_EQ(mutation->edits[1].before, "b\n\n");
  EXPECT_EQ(mutation->edits[1].after, "c\n");
  EXPECT_EQ(mutation->red, (std::vector<std::string>{"scenario/LR-13-a.raft", "unit/raft/a_test.cpp: A.B"}));
  EXPECT_FALSE(parse_mutation("a", "").has_value());
  EXPECT_FALSE(parse_mutation("a", "What\n--- old\na\n--- red\nx\n").has_value()) << "names no file";
  EXPECT_FALSE(parse_mutation("a", "What\nfile: a.cpp\n--- old\na\n--- new\na\n--- red\nx\n").has_value()) << "changes nothing";
  EXPECT_FALSE(parse_mutation("a", "What\nfile: a.cpp\n--- old\na\n--- new\nb\n").has_value()) << "names no test";
}

TEST(Mutations, StandInTheRowsOfTheirTests) {
  std::vector<ScenarioRow> rows{{"LR-13", "a", "scenario/LR-13-a.raft", "`defect`"}, {"LR-13", "b", "scenario/LR-13-b.raft", ""}};
  add_mutations({*parse_mutation("keeps-the-tail", kMutation)}, rows);
  EXPECT_EQ(rows[0].red_by, "`defect`, [keeps-the-tail](../tests/mutations/keeps-the-tail.txt)");
  EXPECT_EQ(rows[1].red_by, "");
}

TEST(Mutations, SayWhyTheyDoNotFit) {
  Mutation mutation{"a", "What.", {{"raft/quorum.cpp", "namespace raft {\n", ""}}, {"scenario/basic-election.raft"}};
  EXPECT_EQ(why_not(mutation, source_dir()), "");
  mutation.edits[0].before = "spaces raft {\n";
  EXPECT_EQ(why_not(mutation, source_dir()), "its old text stands in raft/quorum.cpp 0 times");
  mutation.edits[0].before = "\n";
  EXPECT_NE(why_not(mutation, source_dir()), "") << "it stands there often";
  mutation.edits[0] = {"raft/quorum.h", "#pragma once\n", ""};
  EXPECT_EQ(why_not(mutation, source_dir()), "raft/quorum.h is no source of the tree");
  mutation.edits.clear();
  mutation.red = {"unit/raft/parts_test.cpp: RaftQuorum.OfNobody"};
  EXPECT_EQ(why_not(mutation, source_dir()), "there is no test unit/raft/parts_test.cpp: RaftQuorum.OfNobody");
}

}  // namespace
}  // namespace tests
