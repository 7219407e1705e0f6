// docs/raft-scenarios.md and docs/scenarios.md are what the tests say, and what they say of them is read right.

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

TEST(ScenarioTable, TheCommittedPagesAreCurrent) {
  for (const ScenarioPage& page : scenario_pages()) {
    SCOPED_TRACE(page.file);
    const std::string path = source_dir() + "/" + page.file;
    const std::string table = scenario_table(page, scenario_rows(source_dir(), page));
    if (std::getenv("SCENARIOS_WRITE") != nullptr) {
      std::ofstream(path) << table;
      continue;
    }
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    EXPECT_EQ(text.str(), table) << "make it anew: SCENARIOS_WRITE=1 build/debug/narad_unit --gtest_filter='ScenarioTable.*'";
  }
}

TEST(ScenarioTable, EveryScenarioFileOfAKnownIdIsInIt) {
  for (const ScenarioPage& page : scenario_pages()) {
    std::set<std::string> shown;
    for (const ScenarioRow& row : scenario_rows(source_dir(), page)) shown.insert(row.test);
    for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/tests/scenario")) {
      const std::string name = entry.path().filename().string();
      for (const std::string& id : page.ids()) {
        if (name.starts_with(id)) {
          EXPECT_TRUE(shown.contains("scenario/" + name)) << name;
        }
      }
    }
  }
}

TEST(ScenarioTable, NoIdStandsTwice) {
  std::set<std::string> known;
  for (const ScenarioPage& page : scenario_pages()) {
    for (const std::string& id : page.ids()) EXPECT_TRUE(known.insert(id).second) << id;
  }
}

TEST(ScenarioTable, EveryIdThatATestNamesStandsOnAPage) {
  EXPECT_EQ(lost_markers("// Scenarios SI-99 and PT-04.\nTEST(A, B) {\n}\n// Not SI-98.\n"), (std::vector<std::string>{"SI-99"}));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_dir() + "/tests")) {
    if (!entry.path().string().ends_with("_test.cpp")) continue;
    std::ifstream file(entry.path());
    std::ostringstream text;
    text << file.rdbuf();
    for (const std::string& id : lost_markers(text.str())) ADD_FAILURE() << entry.path() << " names " << id;
  }
}

TEST(ScenarioTable, EveryScenarioHasATestAndEveryTestSomethingThatTurnsItRed) {
  for (const ScenarioPage& page : scenario_pages()) {
    std::set<std::string> tested;
    for (const ScenarioRow& row : scenario_rows(source_dir(), page)) {
      tested.insert(row.id);
      EXPECT_FALSE(row.red_by.empty()) << row.id << ": nothing turns " << row.test << " red";
    }
    for (const std::string& id : page.ids()) EXPECT_TRUE(tested.contains(id)) << id;
  }
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
  EXPECT_EQ(rows[0].red_by, (std::vector<Cause>{{"late-prevote-counts", true, ""}}));
  EXPECT_EQ(result_of(rows[0]), "passes; red with its defect");
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
  EXPECT_TRUE(rows[0].red_by.empty());
  EXPECT_EQ(result_of(rows[0]), "passes");
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

TEST(Mutations, StandInTheRowsOfTheirTestsWithWhatWasSeen) {
  std::vector<ScenarioRow> rows{{"LR-13", "a", "scenario/LR-13-a.raft", {{"defect", true, ""}}}, {"LR-13", "b", "scenario/LR-13-b.raft", {}}};
  const Mutation mutation = *parse_mutation("keeps-the-tail", kMutation);
  std::vector<ScenarioRow> unseen = rows;
  add_mutations({mutation}, {}, unseen);
  EXPECT_EQ(unseen[0].red_by, (std::vector<Cause>{{"defect", true, ""}, {"keeps-the-tail", false, ""}}));
  EXPECT_EQ(result_of(unseen[0]), "passes; red with its defect; 1 not run");
  EXPECT_TRUE(unseen[1].red_by.empty());

  const auto seen = parse_seen("2026-01-02\tabc\tkeeps-the-tail\tscenario/LR-13-a.raft\n"
                               "2026-01-03\tabd\tkeeps-the-tail\tscenario/LR-13-a.raft\nno such line\n"
                               "2026-01-04\tabd\tanother\tscenario/LR-13-a.raft\n");
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0], (SeenRed{"2026-01-02", "abc", "keeps-the-tail", "scenario/LR-13-a.raft"}));
  add_mutations({mutation}, seen, rows);
  EXPECT_EQ(rows[0].red_by[1].seen, "2026-01-03");
  EXPECT_EQ(result_of(rows[0]), "passes; red with its defect; red, seen 2026-01-03");
}

// What is on record was seen of a mutation and a test that are there.
TEST(Mutations, WhatWasSeenNamesMutationsAndTestsOfTheTree) {
  std::set<std::string> known;
  for (const Mutation& mutation : load_mutations(source_dir())) {
    for (const std::string& test : mutation.red) known.insert(mutation.name + "\t" + test);
  }
  for (const SeenRed& run : load_seen(source_dir())) {
    EXPECT_TRUE(known.contains(run.mutation + "\t" + run.test)) << run.mutation << " does not name " << run.test;
  }
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
