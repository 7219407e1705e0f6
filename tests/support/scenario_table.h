// The table of the raft scenarios, docs/raft-scenarios.md, made from the tests themselves.
//
// A row comes from
//  - a tests/scenario/<ID>-<name>.raft: its first comment line says what it is about;
//  - a comment above a TEST of the unit tests that names ids ("// Scenario SC-08." or "// Scenarios PT-04 and LR-13.").
// What makes the test fail: the defects of a scenario's "red with defect" lines, and the mutations of tests/mutations that name it.
// Only ids that belong to raft count; those without a test are listed at the end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/mutations.h"

namespace tests {

struct ScenarioRow {
  std::string id;
  std::string text;     // one line
  std::string test;     // file and, in a gtest file, the test
  std::string red_by;   // empty: nothing is known to turn it red
};

// The rows of one file, by its path from the root, without mutations. Rows of ids that are not raft's are left out.
std::vector<ScenarioRow> scenario_rows(std::string_view path, std::string_view text);

// Adds the mutations that name their tests to rows.
void add_mutations(const std::vector<Mutation>& mutations, std::vector<ScenarioRow>& rows);

// Every row of the tree at `root`, by id, then test, with its mutations.
std::vector<ScenarioRow> scenario_rows(const std::string& root);

// The ids of raft that have a scenario, in order.
const std::vector<std::string>& raft_scenario_ids();

// The whole document.
std::string scenario_table(const std::vector<ScenarioRow>& rows);

}  // namespace tests
