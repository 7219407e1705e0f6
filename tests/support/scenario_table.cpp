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

bool is_on_a_page(const std::string& id) {
  for (const ScenarioPage& page : scenario_pages()) {
    for (const ScenarioPage::Part& part : page.parts) {
      if (std::find(part.ids.begin(), part.ids.end(), id) != part.ids.end()) return true;
    }
  }
  return false;
}

std::vector<std::string> all_ids_in(std::string_view text) {
  std::vector<std::string> ids;
  for (size_t at = 0; at < text.size(); ++at) {
    if (is_id_at(text, at)) ids.emplace_back(text.substr(at, 5));
  }
  return ids;
}

std::vector<std::string> ids_in(std::string_view text) {
  std::vector<std::string> ids = all_ids_in(text);
  std::erase_if(ids, [](const std::string& id) { return !is_on_a_page(id); });
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

std::string to_text(const Cause& cause) {
  return cause.is_defect ? "`" + cause.name + "`" : "[" + cause.name + "](../tests/mutations/" + cause.name + ".txt)";
}

std::vector<ScenarioRow> rows_of_script(std::string_view path, std::string_view text) {
  const std::string name = std::filesystem::path(path).stem().string();
  const std::vector<std::string> ids = ids_in(name.substr(0, 5));
  const std::vector<std::string> lines = lines_of(text);
  if (ids.empty() || lines.empty()) return {};
  ScenarioRow row{ids[0], story(lines[0]), "scenario/" + name + ".raft", {}};
  for (const std::string& line : lines) {
    if (line.starts_with("red with defect ")) row.red_by.push_back({after(line, "red with defect "), true, ""});
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
      rows.push_back(ScenarioRow{id, in_words(name), shown + ": " + suite + "." + name, {}});
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

std::vector<std::string> ScenarioPage::ids() const {
  std::vector<std::string> all;
  for (const Part& part : parts) all.insert(all.end(), part.ids.begin(), part.ids.end());
  return all;
}

const std::vector<ScenarioPage>& scenario_pages() {
  static const std::vector<ScenarioPage> kPages = {
      {"docs/raft-scenarios.md",
       "Raft scenarios",
       {{"Consensus, its log and its snapshots",
         {"EL-01", "EL-02", "EL-03", "EL-04", "EL-05", "EL-06", "EL-08", "EL-11", "LR-01", "LR-02", "LR-03", "LR-04", "LR-05",
          "LR-06", "LR-09", "LR-10", "LR-13", "TS-01", "TS-02", "TS-03", "TS-04", "TS-06", "PT-01", "PT-02", "PT-03", "PT-04",
          "PT-06", "PT-07", "PT-08", "PT-09", "PT-10", "PT-11", "PT-16", "MB-01", "MB-02", "MB-03", "MB-04", "MB-05", "MB-06",
          "MB-07", "MB-08", "MB-09", "NW-01", "NW-02", "NW-03", "NW-05", "NW-08", "IO-01", "IO-03", "IO-05", "CL-03", "CK-01",
          "AP-05", "SR-01", "SR-02", "SC-04", "SC-08", "SC-10", "SI-03", "SI-04", "SI-05", "SI-06", "SI-07", "SI-11", "SI-12",
          "SI-14", "SI-17"}}}},
      {"docs/scenarios.md",
       "Scenarios",
       {{"Metastore: applying, snapshots, installs and restarts",
         {"AP-01", "AP-02", "AP-03", "AP-04", "AP-09", "IO-06", "IO-08", "PT-12", "PT-13", "RS-01", "RS-02", "RS-03", "RS-04",
          "RS-06", "RS-07", "SC-01", "SC-02", "SC-03", "SC-07", "SC-09", "SI-01", "SI-02", "SI-09", "SR-07", "SX-01", "SX-03",
          "SX-05"}},
        {"Requests: forwarding, lost answers, creates", {"CL-01", "CL-02", "CL-04", "CL-06", "NW-07", "PL-03"}},
        {"Upgrades: which entry types may be used, and older peers", {"UG-01", "UG-02", "UG-05", "UG-06", "UG-07", "UG-09"}},
        {"The cluster: beginning, joining, heartbeats, removal", {"CK-03", "HB-01", "HB-02", "MB-13", "MB-15", "RS-05"}},
        {"The controller: a leader's begin, placement, moves", {"HB-04", "PL-01", "PL-05", "PL-06", "PL-08"}}}},
  };
  return kPages;
}

std::vector<ScenarioRow> scenario_rows(std::string_view path, std::string_view text) {
  if (path.ends_with(".raft")) return rows_of_script(path, text);
  return path.ends_with("_test.cpp") ? rows_of_tests(path, text) : std::vector<ScenarioRow>();
}

std::vector<std::string> lost_markers(std::string_view text) {
  std::vector<std::string> lost;
  const std::vector<std::string> lines = lines_of(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with("TEST")) continue;
    for (std::string& id : all_ids_in(comment_above(lines, i))) {
      if (!is_on_a_page(id)) lost.push_back(std::move(id));
    }
  }
  return lost;
}

void add_mutations(const std::vector<Mutation>& mutations, const std::vector<SeenRed>& seen, std::vector<ScenarioRow>& rows) {
  for (ScenarioRow& row : rows) {
    for (const Mutation& mutation : mutations) {
      if (std::find(mutation.red.begin(), mutation.red.end(), row.test) == mutation.red.end()) continue;
      Cause cause{mutation.name, false, ""};
      for (const SeenRed& run : seen) {
        if (run.mutation == mutation.name && run.test == row.test) cause.seen = std::max(cause.seen, run.date);
      }
      row.red_by.push_back(std::move(cause));
    }
  }
}

std::vector<ScenarioRow> scenario_rows(const std::string& root, const ScenarioPage& page) {
  const std::vector<std::string> ids = page.ids();
  const auto place = [&ids](const std::string& id) { return std::find(ids.begin(), ids.end(), id) - ids.begin(); };
  std::vector<ScenarioRow> rows;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root + "/tests")) {
    if (!entry.is_regular_file()) continue;
    const std::string path = std::filesystem::relative(entry.path(), root).generic_string();
    for (ScenarioRow& row : scenario_rows(path, read(entry.path()))) {
      if (std::find(ids.begin(), ids.end(), row.id) != ids.end()) rows.push_back(std::move(row));
    }
  }
  add_mutations(load_mutations(root), load_seen(root), rows);
  std::sort(rows.begin(), rows.end(), [&](const ScenarioRow& a, const ScenarioRow& b) {
    return a.id == b.id ? a.test < b.test : place(a.id) < place(b.id);
  });
  return rows;
}

std::string result_of(const ScenarioRow& row) {
  size_t defects = 0;
  size_t unseen = 0;
  std::string oldest;
  for (const Cause& cause : row.red_by) {
    defects += cause.is_defect ? 1 : 0;
    unseen += !cause.is_defect && cause.seen.empty() ? 1 : 0;
    if (!cause.seen.empty() && (oldest.empty() || cause.seen < oldest)) oldest = cause.seen;
  }
  std::string text = "passes";
  if (defects > 0) text += "; red with its defect";
  if (!oldest.empty()) text += "; red, seen " + oldest;
  if (unseen > 0) text += "; " + std::to_string(unseen) + " not run";
  return text;
}

std::string scenario_table(const ScenarioPage& page, const std::vector<ScenarioRow>& rows) {
  std::string text =
      "# " + page.title +
      "\n\n"
      "Made from the tests by `SCENARIOS_WRITE=1 build/debug/narad_unit --gtest_filter='ScenarioTable.*'`; without the variable the same\n"
      "test fails when this page is not what the tests say. `make test` runs every test named here.\n\n"
      "*Turned red by*: the defects of `narad-chaos defects`, with which `make test` runs the scenario again and asks that it fail; and\n"
      "the changes of the code in tests/mutations, each a link, with which `make mutations` runs the test and asks the same. That writes\n"
      "down what it has seen (tests/mutations/results.tsv). *Result*: `red, seen` is the day of that, of the mutation whose run is the\n"
      "longest ago; `not run` counts those of which no run is on record.\n";
  std::set<std::string> tested;
  for (const ScenarioRow& row : rows) tested.insert(row.id);
  for (const ScenarioPage::Part& part : page.parts) {
    text += "\n## " + part.name + "\n\n| id | what | test | turned red by | result |\n|---|---|---|---|---|\n";
    std::string missing;
    for (const std::string& id : part.ids) {
      if (!tested.contains(id)) missing += (missing.empty() ? "" : ", ") + id;
    }
    for (const ScenarioRow& row : rows) {
      if (std::find(part.ids.begin(), part.ids.end(), row.id) == part.ids.end()) continue;
      std::string causes;
      for (const Cause& cause : row.red_by) causes += (causes.empty() ? "" : ", ") + to_text(cause);
      text += "| " + row.id + " | " + row.text + " | `" + row.test + "` | " + (causes.empty() ? "—" : causes) + " | " + result_of(row) +
              " |\n";
    }
    text += "\nWithout a test of their own: " + (missing.empty() ? "none" : missing) + ".\n";
  }
  return text;
}

}  // namespace tests
