// The list of floors holds every probe of the tree, and nothing else.

#include "chaos/floors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "chaos/disk_work.h"
#include "engine/metastore/envelope.h"
#include "sim/answers.h"
#include "tests/support/paths.h"
#include "tests/support/tidy.h"

namespace {

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// The names in the sources: a literal, perhaps in pieces.
std::set<std::string> probes_in_the_tree() {
  static const std::regex kProbe("SOMETIMES\\(((?:\\s*\"[^\"]*\")+)\\s*\\)");
  static const std::regex kPiece("\"([^\"]*)\"");
  std::set<std::string> names;
  for (const tests::tidy::Source& source : tests::tidy::read_tree(tests::source_dir())) {
    if (source.path.starts_with("tests/") || source.path == "io/probe.h") continue;
    const std::string text = join(source.lines);
    for (std::sregex_iterator found(text.begin(), text.end(), kProbe), end; found != end; ++found) {
      const std::string pieces = (*found)[1];
      std::string name;
      for (std::sregex_iterator piece(pieces.begin(), pieces.end(), kPiece); piece != end; ++piece) name += (*piece)[1];
      names.insert(name);
    }
  }
  return names;
}

// Those whose names are put together: faults by the work that they struck in, answers by entry type and code.
std::set<std::string> composed_probes() {
  const std::vector<std::string> struck = chaos::struck_probes();
  return {struck.begin(), struck.end()};
}

std::set<std::string> possible_answers() {
  namespace ms = engine::metastore;
  std::set<std::string> names{sim::answer_probe(0, ms::Code::undecodable)};
  for (uint32_t type = 1; type <= ms::kNewestEntryType; ++type) {
    for (uint8_t code = 0; code <= static_cast<uint8_t>(ms::kNewestCode); ++code) {
      names.insert(sim::answer_probe(type, static_cast<ms::Code>(code)));
    }
  }
  return names;
}

std::set<std::string> possible_calls() {
  std::set<std::string> names;
  for (int kind = 0; kind <= static_cast<int>(sim::CallKind::schemas); ++kind) {
    for (const int status : {200, 201, 204, 400, 404, 409, 503}) {
      names.insert(sim::call_probe(static_cast<sim::CallKind>(kind), status));
    }
  }
  return names;
}

TEST(Floors, NameEveryProbeOfTheTreeOnceInOrder) {
  std::set<std::string> listed;
  std::string before;
  for (const chaos::Floor& floor : chaos::floors()) {
    const std::string name(floor.probe);
    EXPECT_LT(before, name);
    before = name;
    listed.insert(name);
  }
  std::set<std::string> there = probes_in_the_tree();
  there.merge(composed_probes());
  EXPECT_GT(there.size(), 100u);
  for (const std::string& name : there) EXPECT_TRUE(listed.contains(name)) << "chaos/floors.cpp lacks: " << name;
  std::set<std::string> answers = possible_answers();  // not every code is an answer to every type
  answers.merge(possible_calls());
  for (const std::string& name : listed) {
    EXPECT_TRUE(there.contains(name) || answers.contains(name)) << "chaos/floors.cpp has, the tree not: " << name;
  }
}

TEST(Floors, AskForEveryTypesEntryToBeDone) {
  std::set<std::string> listed;
  for (const chaos::Floor& floor : chaos::floors()) listed.insert(std::string(floor.probe));
  for (uint32_t type = 1; type <= engine::metastore::kNewestEntryType; ++type) {
    EXPECT_TRUE(listed.contains(sim::answer_probe(type, engine::metastore::Code::ok))) << type;
  }
}

TEST(Floors, APlaceThatNoRunIsAskedToReachNamesTestsThatAreThere) {
  std::string tests;
  for (const tests::tidy::Source& source : tests::tidy::read_tree(tests::source_dir())) {
    if (source.path.starts_with("tests/")) tests += join(source.lines);
  }
  for (const chaos::Floor& floor : chaos::floors()) {
    ASSERT_EQ(floor.seeds == 0, !floor.elsewhere.empty()) << floor.probe;
    const std::string name(floor.elsewhere);
    if (floor.seeds > 0) continue;
    if (name.ends_with(".raft")) {
      EXPECT_TRUE(std::filesystem::exists(tests::source_dir() + "/tests/scenario/" + name)) << name;
      continue;
    }
    const size_t dot = name.find('.');
    ASSERT_NE(dot, std::string::npos) << name;
    EXPECT_TRUE(std::regex_search(tests, std::regex("TEST(_[FP])?\\(" + name.substr(0, dot) + ", " + name.substr(dot + 1) + "\\)")))
        << name << " (" << floor.probe << ")";
  }
}

TEST(Floors, AProbeThatTooFewSeedsReachedIsNamed) {
  std::map<std::string, uint64_t> seeds;
  for (const chaos::Floor& floor : chaos::floors()) seeds[std::string(floor.probe)] = floor.seeds;
  EXPECT_TRUE(chaos::below_floor(seeds).empty());
  const auto floors = chaos::floors();
  const auto asked = std::find_if(floors.begin(), floors.end(), [](const auto& floor) { return floor.seeds > 0; });
  --seeds[std::string(asked->probe)];
  ASSERT_EQ(chaos::below_floor(seeds).size(), 1u);
  EXPECT_EQ(chaos::below_floor(seeds).front().probe, asked->probe);
  seeds.erase(std::string(asked->probe));
  EXPECT_EQ(chaos::below_floor(seeds).size(), 1u);
}

}  // namespace
