// Reads the project's sources and judges them by rules that the compiler does not know: which folder may include which, and
// that nothing but the production backend touches the machine. tests/unit/tidy_test.cpp runs it over the tree; the rules are
// data, in tidy_rules.cpp.
//
// It is a text check. It sees names, not meanings: a rule errs on the side of firing, and tidy_rules.cpp lists, with a reason,
// the few places where it is wrong or where the rule cannot hold.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tests::tidy {

// One source file, as the rules see it.
struct Source {
  std::string path;                // relative to the root: "raft/core.cpp"
  std::vector<std::string> lines;  // as written
  std::vector<std::string> code;   // the same lines, with comments blanked and what stands inside quotes removed
  std::vector<std::string> header_code;  // of a .cpp: code of the .h beside it, whose members it may use
};

// A source made from text, as if it stood at `path`.
Source parse(std::string path, std::string_view text);

// Every .h and .cpp below the project's source folders, sorted by path.
std::vector<Source> read_tree(const std::string& root);

// A name as it stands in code, with everything that qualifies it: "::open", "std::chrono::steady_clock".
struct Name {
  std::string text;
  bool is_member = false;    // reached by . or ->
  bool is_called = false;    // followed by an opening parenthesis
  bool is_declared = false;  // a type or a declarator stands right before it: this line declares the name
};

std::vector<Name> names_in(std::string_view code_line);

// Patterns are one part of a name ("steady_clock"), consecutive parts ("std::thread", also of std::thread::id), a whole name that
// is globally qualified ("::open"), or the beginning of a part ("pthread_*").
bool name_matches(std::string_view name, std::string_view pattern);

struct Violation {
  std::string path;
  size_t line = 0;  // counted from 1
  std::string rule;
  std::string text;  // the line as written
};

std::string to_string(const Violation& violation);

// A line planted at a path, for the self-test.
struct Sample {
  std::string path;
  std::string line;
};

struct Rule {
  std::string name;
  // What a violation would break, in one sentence.
  std::string why;
  // Which files it judges.
  std::function<bool(const Source&)> covers;
  // Includes it refuses: "<thread>" exactly, "<sys/" as a beginning.
  std::vector<std::string> headers = {};
  // Names it refuses wherever they stand.
  std::vector<std::string> names = {};
  // Names, whole, that it refuses when they are called and not as a member of an object.
  std::vector<std::string> calls = {};
  // Lines (counted from 1) found by a rule that needs more than lists.
  std::function<std::vector<size_t>(const Source&)> finds = {};
  // Planted by the test: each of the first must be refused, each of the second must pass.
  std::vector<Sample> fires_on = {};
  std::vector<Sample> passes_on = {};
};

// A place where a rule does not hold, and why that is right.
struct Exception {
  std::string path;  // a file, or a folder ending in '/'
  std::string rule;
  std::string contains;  // only lines that contain this; empty: any line
  std::string reason;
};

const std::vector<Rule>& rules();
const std::vector<Exception>& exceptions();

// Violations of one rule, before exceptions.
std::vector<Violation> judge(const Rule& rule, const Source& source);

// The exception that excuses the violation; nullptr when none does.
const Exception* excuse(const Violation& violation);

}  // namespace tests::tidy
