#include "tests/support/scenario_table.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace tests {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool is_id_at(std::string_view text, size_t at) {
  const auto is = [&](size_t i, int (*kind)(int)) { return kind(static_cast<unsigned char>(text[at + i])) != 0; };
  return at + 5 <= text.size() && is(0, std::isupper) && is(1, std::isupper) && text[at + 2] == '-' && is(3, std::isdigit) &&
         is(4, std::isdigit);
}

std::vector<std::string> ids_in(std::string_view text) {
  std::vector<std::string> ids;
  const std::vector<std::string>& known = raft_scenario_ids();
  for (size_t at = 0; at < text.size(); ++at) {
    if (!is_id_at(text, at)) continue;
    std::string id(text.substr(at, 5));
    if (std::find(known.begin(), known.end(), id) != known.end()) ids.push_back(std::move(id));
  }
  return ids;
}

std::string after(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  return at == std::string_view::npos ? std::string() : std::string(text.substr(at + mark.size()));
}

// "# EL-01, another way down: a pre-candidate ..." without the id in front.
std::string story(std::string_view first_line) {
  std::string text(first_line.substr(std::min<size_t>(2, first_line.size())));
  const size_t colon = text.find(": ");
  if (is_id_at(text, 0) && colon != std::string::npos) text.erase(0, colon + 2);
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// "AFailedSyncEndsTheStore" as "A failed sync ends the store".
std::string in_words(std::string_view name) {
  std::string text;
  for (const char c : name) {
    const bool begins_word = std::isupper(static_cast<unsigned char>(c)) != 0 && !text.empty();
    if (begins_word) text += ' ';
    text += begins_word ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : c;
  }
  return text + ".";
}

void add_cause(const std::string& cause, ScenarioRow& row) { row.red_by += (row.red_by.empty() ? "" : ", ") + cause; }

std::vector<ScenarioRow> rows_of_script(std::string_view path, std::string_view text) {
  const std::string name = std::filesystem::path(path).stem().string();
  const std::vector<std::string> ids = ids_in(name.substr(0, 5));
  const std::vector<std::string> lines = lines_of(text);
  if (ids.empty() || lines.empty()) return {};
  ScenarioRow row{ids[0], story(lines[0]), "scenario/" + name + ".raft", ""};
  for (const std::string& line : lines) {
    if (line.starts_with("red with defect ")) add_cause("`" + after(line, "red with defect ") + "`", row);
  }
  return {row};
}

// The comment that stands right above line `at`.
std::string comment_above(const std::vector<std::string>& lines, size_t at) {
  std::string comment;
  while (at > 0 && lines[at - 1].starts_with("// ")) comment = lines[--at].substr(3) + " " + comment;
  return comment;
}

std::vector<ScenarioRow> rows_of_tests(std::string_view path, std::string_view text) {
  std::vector<ScenarioRow> rows;
  const std::vector<std::string> lines = lines_of(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with("TEST")) continue;
    const size_t open = lines[i].find('(');
    const size_t comma = lines[i].find(", ", open);
    const size_t close = lines[i].find(')', comma);
    if (comma == std::string::npos || close == std::string::npos) continue;
    const std::string suite = lines[i].substr(open + 1, comma - open - 1);
    const std::string name = lines[i].substr(comma + 2, close - comma - 2);
    const std::string comment = comment_above(lines, i);
    for (const std::string& id : ids_in(comment)) {
      const std::string shown = path.substr(0, 6) == "tests/" ? std::string(path.substr(6)) : std::string(path);
      rows.push_back(ScenarioRow{id, in_words(name), shown + ": " + suite + "." + name, ""});
    }
  }
  return rows;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

const std::vector<std::string>& raft_scenario_ids() {
  static const std::vector<std::string> kIds = {
      "EL-01", "EL-02", "EL-03", "EL-04", "EL-05", "EL-06", "EL-08", "EL-11", "LR-01", "LR-02", "LR-03", "LR-04", "LR-05",
      "LR-06", "LR-09", "LR-10", "LR-13", "TS-01", "TS-02", "TS-03", "TS-04", "TS-06", "PT-01", "PT-02", "PT-03", "PT-04",
      "PT-06", "PT-07", "PT-08", "PT-09", "PT-10", "PT-11", "PT-16", "MB-01", "MB-02", "MB-03", "MB-04", "MB-05", "MB-06",
      "MB-07", "MB-08", "MB-09", "NW-01", "NW-02", "NW-03", "NW-05", "NW-08", "IO-01", "IO-03", "IO-05", "CL-03", "CK-01",
      "AP-05", "SR-01", "SR-02", "SC-04", "SC-08", "SC-10", "SI-03", "SI-04", "SI-05", "SI-06", "SI-07", "SI-11", "SI-12",
      "SI-14", "SI-17"};
  return kIds;
}

std::vector<ScenarioRow> scenario_rows(std::string_view path, std::string_view text) {
  if (path.ends_with(".raft")) return rows_of_script(path, text);
  return path.ends_with("_test.cpp") ? rows_of_tests(path, text) : std::vector<ScenarioRow>();
}

void add_mutations(const std::vector<Mutation>& mutations, std::vector<ScenarioRow>& rows) {
  for (ScenarioRow& row : rows) {
    for (const Mutation& mutation : mutations) {
      if (std::find(mutation.red.begin(), mutation.red.end(), row.test) == mutation.red.end()) continue;
      add_cause("[" + mutation.name + "](../tests/mutations/" + mutation.name + ".txt)", row);
    }
  }
}

std::vector<ScenarioRow> scenario_rows(const std::string& root) {
  std::vector<ScenarioRow> rows;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root + "/tests")) {
    if (!entry.is_regular_file()) continue;
    const std::string path = std::filesystem::relative(entry.path(), root).generic_string();
    for (ScenarioRow& row : scenario_rows(path, read(entry.path()))) rows.push_back(std::move(row));
  }
  add_mutations(load_mutations(root), rows);
  const auto place = [](const std::string& id) {
    const std::vector<std::string>& ids = raft_scenario_ids();
    return std::find(ids.begin(), ids.end(), id) - ids.begin();
  };
  std::sort(rows.begin(), rows.end(), [&](const ScenarioRow& a, const ScenarioRow& b) {
    return a.id == b.id ? a.test < b.test : place(a.id) < place(b.id);
  });
  return rows;
}

std::string scenario_table(const std::vector<ScenarioRow>& rows) {
  std::string text =
      "# Raft scenarios\n\n"
      "Made from the tests by `RAFT_SCENARIOS_WRITE=1 build/debug/narad_unit --gtest_filter='ScenarioTable.*'`; without the variable the\n"
      "same test fails when this page is not what the tests say. `make test` runs every test named here.\n\n"
      "*Turned red by*: the defects of `narad-chaos defects` with which `make test` runs the scenario again and asks that it fail, and the\n"
      "changes of the code in tests/mutations, each a link, with which `make mutations` runs the test and asks the same. *Result*:\n"
      "`passes, red with it` says that this has been seen of everything named. A dash: nothing is known to turn the test red.\n\n"
      "| id | what | test | turned red by | result |\n|---|---|---|---|---|\n";
  std::set<std::string> tested;
  for (const ScenarioRow& row : rows) {
    tested.insert(row.id);
    text += "| " + row.id + " | " + row.text + " | `" + row.test + "` | " + (row.red_by.empty() ? "—" : row.red_by) + " | " +
            (row.red_by.empty() ? "passes" : "passes, red with it") + " |\n";
  }
  std::string missing;
  for (const std::string& id : raft_scenario_ids()) {
    if (!tested.contains(id)) missing += (missing.empty() ? "" : ", ") + id;
  }
  text += "\nWithout a test of their own: " + (missing.empty() ? "none" : missing) + ".\n";
  return text;
}

}  // namespace tests
