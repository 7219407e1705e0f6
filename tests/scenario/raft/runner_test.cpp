// Each tests/scenario/*.raft is a test: Raft/Scenario.Holds/NAME runs it, and Raft/Defect.TurnsRed/NAME_with_DEFECT runs it
// again for each of its "red with defect" lines and asks that it fail. Raft/Trouble.BreaksNothing/NAME runs it with single messages
// lost, repeated, late, or their receiver, their sender or every server restarted in front of them, and with a server restarted before
// and behind single writes to its disk: each one in turn, of a long story 32 that are spread over it (NARAD_TROUBLE_PLACES for another
// number; `make soak` leaves none out). It asks for the invariants, and for rest afterwards.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <ostream>

#include "tests/support/paths.h"
#include "tests/support/raft_script.h"

namespace tests {
namespace {

struct Case {
  RaftScript script;
  std::string defect;

  friend void PrintTo(const Case& which, std::ostream* out) { *out << which.script.name << ".raft " << which.defect; }
};

std::vector<RaftScript> scripts() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/tests/scenario")) {
    if (entry.path().extension() == ".raft") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<RaftScript> all;
  for (const std::string& path : paths) all.push_back(load_raft_script(path));
  return all;
}

std::vector<Case> plain_cases() {
  std::vector<Case> cases;
  for (RaftScript& script : scripts()) cases.push_back(Case{std::move(script), ""});
  return cases;
}

std::vector<Case> defect_cases() {
  std::vector<Case> cases;
  for (const RaftScript& script : scripts()) {
    for (const std::string& defect : script.defects) cases.push_back(Case{script, defect});
  }
  return cases;
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.script.name + (info.param.defect.empty() ? "" : "_with_" + info.param.defect);
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

class Scenario : public testing::TestWithParam<Case> {};
class Defect : public testing::TestWithParam<Case> {};

TEST_P(Scenario, Holds) {
  const std::optional<ScriptFailure> failure = run_raft_script(GetParam().script);
  if (failure) FAIL() << "tests/scenario/" << GetParam().script.name << ".raft:" << failure->line << ": " << failure->text;
}

TEST_P(Defect, TurnsRed) {
  const std::optional<ScriptFailure> failure = run_raft_script(GetParam().script, GetParam().defect);
  ASSERT_TRUE(failure.has_value()) << "the scenario passes with " << GetParam().defect;
  EXPECT_NE(failure->kind, ScriptFailure::Kind::script) << failure->line << ": " << failure->text;
}

// For each kind of trouble.
uint64_t trouble_places() {
  const char* given = std::getenv("NARAD_TROUBLE_PLACES");
  return given == nullptr ? 32 : std::strtoull(given, nullptr, 10);
}

class Trouble : public testing::TestWithParam<Case> {};

TEST_P(Trouble, BreaksNothing) {
  const std::optional<ScriptFailure> failure = run_raft_script_in_trouble(GetParam().script, trouble_places());
  if (failure) FAIL() << "tests/scenario/" << GetParam().script.name << ".raft:" << failure->line << ": " << failure->text;
}

INSTANTIATE_TEST_SUITE_P(Raft, Trouble, testing::ValuesIn(plain_cases()), test_name);
INSTANTIATE_TEST_SUITE_P(Raft, Scenario, testing::ValuesIn(plain_cases()), test_name);
INSTANTIATE_TEST_SUITE_P(Raft, Defect, testing::ValuesIn(defect_cases()), test_name);

TEST(RaftScenarios, ThereAreAtLeastNinety) { EXPECT_GE(scripts().size(), 90u); }

}  // namespace
}  // namespace tests
