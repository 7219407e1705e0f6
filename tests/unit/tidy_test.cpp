// Holds the tree to the rules of tests/support/tidy_rules.cpp, and the rules to their own samples: a rule that no planted line
// can break, or an exception that excuses nothing, fails here too.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/paths.h"
#include "tests/support/tidy.h"

namespace tests::tidy {
namespace {

const std::vector<Source>& tree() {
  static const std::vector<Source> kTree = read_tree(source_dir());
  return kTree;
}

struct Finding {
  const Rule* rule;
  Violation violation;
};

// Everything that any rule finds, excused or not.
const std::vector<Finding>& findings() {
  static const std::vector<Finding> kFindings = [] {
    std::vector<Finding> all;
    for (const Source& source : tree()) {
      for (const Rule& rule : rules()) {
        for (Violation& violation : judge(rule, source)) {
          all.push_back({&rule, std::move(violation)});
        }
      }
    }
    return all;
  }();
  return kFindings;
}

TEST(Tidy, TheTreeKeepsEveryRule) {
  for (const Finding& finding : findings()) {
    EXPECT_NE(excuse(finding.violation), nullptr) << to_string(finding.violation) << "\n  (" << finding.rule->why << ")";
  }
}

TEST(Tidy, TheScannerSeesTheTree) {
  auto holds = [](const std::string& path) {
    return std::any_of(tree().begin(), tree().end(), [&](const Source& source) { return source.path == path; });
  };
  for (const char* path : {"io/fiber.h", "io/real/switches.cpp", "io/sim/switches.cpp", "tests/unit/tidy_test.cpp"}) {
    EXPECT_TRUE(holds(path)) << path;
  }
}

TEST(Tidy, EachRuleRefusesEachPlantedLine) {
  for (const Rule& rule : rules()) {
    EXPECT_FALSE(rule.fires_on.empty()) << rule.name;
    for (const Sample& sample : rule.fires_on) {
      EXPECT_FALSE(judge(rule, parse(sample.path, sample.line)).empty()) << rule.name << " at " << sample.path << ": "
                                                                         << sample.line;
    }
  }
}

TEST(Tidy, EachRuleLetsItsGoodLinesPass) {
  for (const Rule& rule : rules()) {
    EXPECT_FALSE(rule.passes_on.empty()) << rule.name;
    for (const Sample& sample : rule.passes_on) {
      for (const Violation& violation : judge(rule, parse(sample.path, sample.line))) {
        ADD_FAILURE() << to_string(violation);
      }
    }
  }
}

TEST(Tidy, IterationOverAnUnorderedMemberOfTheHeaderIsSeen) {
  Source source = parse("raft/core.cpp", "void Core::f() { for (auto& v : votes_) {} }");
  source.header_code = parse("raft/core.h", "std::unordered_map<int, int> votes_;").code;
  const auto& rule = *std::find_if(rules().begin(), rules().end(),
                                   [](const Rule& candidate) { return candidate.name == "unordered-iteration"; });
  EXPECT_EQ(judge(rule, source).size(), 1u);
}

// Every name, call and header of a rule's lists is refused on a line of its own, so that no pattern is misspelt into silence.
TEST(Tidy, EachListedPatternCanFire) {
  for (const Rule& rule : rules()) {
    auto refuses = [&](const std::string& line) {
      return std::any_of(rule.fires_on.begin(), rule.fires_on.end(), [&](const Sample& sample) {
        return !judge(rule, parse(sample.path, line)).empty();
      });
    };
    auto spelled_out = [](std::string pattern) {
      if (pattern.back() == '*') {
        pattern.back() = 'x';
      }
      return pattern;
    };
    for (const std::string& name : rule.names) {
      EXPECT_TRUE(refuses("auto x = " + spelled_out(name) + ";")) << rule.name << ": " << name;
    }
    for (const std::string& call : rule.calls) {
      EXPECT_TRUE(refuses("  x = " + spelled_out(call) + "(1);")) << rule.name << ": " << call;
      EXPECT_TRUE(refuses("  return " + spelled_out(call) + "(1);")) << rule.name << ": " << call;
    }
    for (const std::string& header : rule.headers) {
      EXPECT_TRUE(refuses("#include " + header + (header.back() == '>' ? "" : "x>"))) << rule.name << ": " << header;
    }
  }
}

TEST(Tidy, EveryExceptionExcusesSomethingAndSaysWhy) {
  std::set<const Exception*> used;
  for (const Finding& finding : findings()) {
    used.insert(excuse(finding.violation));
  }
  for (const Exception& exception : exceptions()) {
    EXPECT_TRUE(used.contains(&exception)) << exception.path << " is excused from \"" << exception.rule
                                           << "\" without need";
    EXPECT_FALSE(exception.reason.empty()) << exception.path;
  }
}

TEST(TidyScanner, BlanksCommentsAndLiterals) {
  Source source = parse("raft/x.cpp",
                        "int a; // rand()\n"
                        "/* rand()\n rand() */ int b;\n"
                        "auto s = \"rand() \\\" rand()\"; int c;\n"
                        "auto r = R\"x(rand() \" )\n)x\"; int d;\n"
                        "char q = '\"'; int n = 1'000; int e;\n");
  ASSERT_EQ(source.lines.size(), 7u);
  for (const std::string& line : source.code) {
    EXPECT_EQ(line.find("rand"), std::string::npos) << line;
  }
  EXPECT_EQ(source.code[0].substr(0, 6), "int a;");
  EXPECT_NE(source.code[2].find("int b;"), std::string::npos);
  EXPECT_EQ(source.code[3], "auto s = \"\"; int c;");
  EXPECT_NE(source.code[5].find("int d;"), std::string::npos);
  EXPECT_NE(source.code[6].find("int e;"), std::string::npos);
}

TEST(TidyScanner, TellsCallsFromMembersAndDeclarations) {
  auto only = [](std::string_view line, std::string_view wanted) {
    for (const Name& name : names_in(line)) {
      if (name.text == wanted) {
        return name;
      }
    }
    ADD_FAILURE() << "no " << wanted << " in " << line;
    return Name{};
  };
  EXPECT_TRUE(only("x = time(0);", "time").is_called);
  EXPECT_FALSE(only("x = time(0);", "time").is_declared);
  EXPECT_FALSE(only("return time(0);", "time").is_declared);
  EXPECT_TRUE(only("Instant time(int);", "time").is_declared);
  EXPECT_TRUE(only("std::vector<int> time(int);", "time").is_declared);
  EXPECT_TRUE(only("env.time(0)", "time").is_member);
  EXPECT_TRUE(only("env->time(0)", "time").is_member);
  EXPECT_EQ(only("a = std::chrono::steady_clock::now();", "std::chrono::steady_clock::now").text,
            "std::chrono::steady_clock::now");
  EXPECT_TRUE(only("if (::open(p)) {", "::open").is_called);
}

}  // namespace
}  // namespace tests::tidy
