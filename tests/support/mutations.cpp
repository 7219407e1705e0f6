#include "tests/support/mutations.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "io/check.h"

namespace tests {
namespace {

std::optional<std::string> read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// How often `lines` stand in `text`, from the beginning of a line on; `at` is the last place.
size_t count_lines(const std::string& text, const std::string& lines, size_t& at) {
  size_t count = 0;
  for (size_t found = text.find(lines); found != std::string::npos; found = text.find(lines, found + 1)) {
    if (found != 0 && text[found - 1] != '\n') continue;
    ++count;
    at = found;
  }
  return count;
}

// "scenario/NAME.raft", or "unit/FILE: SUITE.TEST".
bool test_exists(const std::string& test, const std::string& root) {
  const size_t colon = test.find(": ");
  if (colon == std::string::npos) return test.starts_with("scenario/") && read(root + "/tests/" + test).has_value();
  const std::optional<std::string> text = read(root + "/tests/" + test.substr(0, colon));
  const std::string name = test.substr(colon + 2);
  const size_t dot = name.find('.');
  return text && dot != std::string::npos && text->find("(" + name.substr(0, dot) + ", " + name.substr(dot + 1) + ")") != std::string::npos;
}

}  // namespace

std::optional<Mutation> parse_mutation(std::string_view name, std::string_view text) {
  enum class Part { what, between, before, after, red };
  Mutation mutation;
  mutation.name = name;
  Part part = Part::what;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("file: ")) {
      mutation.edits.push_back({line.substr(6), "", ""});
      part = Part::between;
    } else if (line == "--- old" || line == "--- new") {
      if (mutation.edits.empty()) return std::nullopt;
      part = line == "--- old" ? Part::before : Part::after;
    } else if (line == "--- red") {
      part = Part::red;
    } else if (part == Part::what) {
      if (!line.empty()) mutation.what += (mutation.what.empty() ? "" : " ") + line;
    } else if (part == Part::before) {
      mutation.edits.back().before += line + "\n";
    } else if (part == Part::after) {
      mutation.edits.back().after += line + "\n";
    } else if (part == Part::red) {
      mutation.red.push_back(line);
    }
  }
  const auto changes_nothing = [](const Mutation::Edit& edit) { return edit.before.empty() || edit.before == edit.after; };
  const bool is_whole = !mutation.what.empty() && !mutation.edits.empty() && !mutation.red.empty() &&
                        std::none_of(mutation.edits.begin(), mutation.edits.end(), changes_nothing);
  return is_whole ? std::optional(std::move(mutation)) : std::nullopt;
}

std::vector<Mutation> load_mutations(const std::string& root) {
  std::vector<Mutation> mutations;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/tests/mutations")) {
    if (entry.path().extension() != ".txt") continue;
    std::optional<Mutation> mutation = parse_mutation(entry.path().stem().string(), read(entry.path().string()).value());
    NARAD_CHECK(mutation.has_value(), "a file of tests/mutations is a mutation: " + entry.path().string());
    mutations.push_back(std::move(*mutation));
  }
  std::sort(mutations.begin(), mutations.end(), [](const Mutation& a, const Mutation& b) { return a.name < b.name; });
  return mutations;
}

std::vector<SeenRed> parse_seen(std::string_view text) {
  std::vector<SeenRed> seen;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields;
    std::istringstream parts(line);
    for (std::string field; std::getline(parts, field, '\t');) fields.push_back(field);
    if (fields.size() == 4) seen.push_back(SeenRed{fields[0], fields[1], fields[2], fields[3]});
  }
  return seen;
}

std::vector<SeenRed> load_seen(const std::string& root) {
  return parse_seen(read(root + "/tests/mutations/results.tsv").value_or(""));
}

std::string why_not(const Mutation& mutation, const std::string& root) {
  std::map<std::string, std::string> files;
  for (const Mutation::Edit& edit : mutation.edits) {
    if (!files.contains(edit.file)) {
      const std::optional<std::string> text = read(root + "/" + edit.file);
      if (!text || !edit.file.ends_with(".cpp")) return edit.file + " is no source of the tree";
      files[edit.file] = *text;
    }
    std::string& text = files[edit.file];
    size_t at = 0;
    const size_t count = count_lines(text, edit.before, at);
    if (count != 1) return "its old text stands in " + edit.file + " " + std::to_string(count) + " times";
    text.replace(at, edit.before.size(), edit.after);
  }
  for (const std::string& test : mutation.red) {
    if (!test_exists(test, root)) return "there is no test " + test;
  }
  return "";
}

}  // namespace tests
