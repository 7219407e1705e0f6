// The tables of the scenarios, docs/raft-scenarios.md and docs/scenarios.md, made from the tests themselves.
//
// A row comes from
//  - a tests/scenario/<ID>-<name>.raft: its first comment line says what it is about;
//  - a comment above a TEST of the unit tests that names ids ("// Scenario SC-08." or "// Scenarios PT-04 and LR-13.").
// What makes the test fail: the defects of a scenario's "red with defect" lines, and the mutations of tests/mutations that name it.
// Only ids that stand on a page count, and a test that names another one is a mistake (lost_markers); those without a test are listed at
// its end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/mutations.h"

namespace tests {

// What may turn a test red.
struct Cause {
  std::string name;
  bool is_defect = false;  // `make test` itself runs the scenario with it; else a mutation, which scripts/mutations.sh carries out
  std::string seen;        // of a mutation: the date of the last run that turned the test red; empty: none is on record

  friend bool operator==(const Cause&, const Cause&) = default;
};

struct ScenarioRow {
  std::string id;
  std::string text;  // one line
  std::string test;  // file and, in a gtest file, the test
  std::vector<Cause> red_by;  // empty: nothing is known to turn it red
};

// One page: the scenarios of one or more parts of the tree.
struct ScenarioPage {
  struct Part {
    std::string name;
    std::vector<std::string> ids;  // in order; no id stands twice
  };
  std::string file;  // "docs/scenarios.md"
  std::string title;
  std::vector<Part> parts;

  // Of all its parts.
  std::vector<std::string> ids() const;
};

// Raft's, and the one of everything above it. A later part of the tree adds its ids here.
const std::vector<ScenarioPage>& scenario_pages();

// The rows of one file, by its path from the root, without mutations. Rows of ids that stand on no page are left out.
std::vector<ScenarioRow> scenario_rows(std::string_view path, std::string_view text);

// The ids that comments above the tests of a file name and that stand on no page: no row comes of them.
std::vector<std::string> lost_markers(std::string_view text);

// Adds the mutations that name their tests to rows, each with the newest of its runs in `seen`.
void add_mutations(const std::vector<Mutation>& mutations, const std::vector<SeenRed>& seen, std::vector<ScenarioRow>& rows);

// Every row of the tree at `root` that belongs to `page`, by id, then test, with its mutations.
std::vector<ScenarioRow> scenario_rows(const std::string& root, const ScenarioPage& page);

// The last column: "passes", and what of the causes is known to have turned the test red, and when.
std::string result_of(const ScenarioRow& row);

// The whole document.
std::string scenario_table(const ScenarioPage& page, const std::vector<ScenarioRow>& rows);

}  // namespace tests
