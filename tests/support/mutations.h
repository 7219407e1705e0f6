// The mutations of tests/mutations: changes of the code that the tests named with them must notice. scripts/mutations.sh carries them
// out one by one; here they are only read, so that one which does not fit the tree any more fails `make test`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tests {

struct Mutation {
  struct Edit {
    std::string file;    // from the root
    std::string before;  // whole lines that stand there once
    std::string after;   // whole lines, or nothing
  };
  std::string name;  // of its file, without the ending
  std::string what;  // the mistake, in a sentence
  std::vector<Edit> edits;
  std::vector<std::string> red;  // tests, named as in docs/scenarios.md
};

// Nothing when the text is not one: no sentence, no edit, an edit that changes nothing, no test.
std::optional<Mutation> parse_mutation(std::string_view name, std::string_view text);

// Every one of the tree at `root`, by name. One that does not parse ends the program.
std::vector<Mutation> load_mutations(const std::string& root);

// One line of tests/mutations/results.tsv: scripts/mutations.sh has seen the mutation turn the test red.
struct SeenRed {
  std::string date;  // "2026-12-01"
  std::string commit;
  std::string mutation;
  std::string test;

  friend bool operator==(const SeenRed&, const SeenRed&) = default;
};

// Lines that are none of these four fields, a tab between each two, are left out.
std::vector<SeenRed> parse_seen(std::string_view text);
// Of the tree at `root`; none where there is no such file.
std::vector<SeenRed> load_seen(const std::string& root);

// Why it cannot be carried out on the tree at `root`: a text that does not stand in its file exactly once, a test that does not
// exist. Empty: it can.
std::string why_not(const Mutation& mutation, const std::string& root);

}  // namespace tests
