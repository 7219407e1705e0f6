#include "chaos/result_text.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace chaos {
namespace {

struct Field {
  std::string_view key;
  uint64_t RunResult::*value;
};

constexpr Field kFields[] = {
    {"seed", &RunResult::seed},
    {"hash", &RunResult::hash},
    {"events", &RunResult::events},
    {"simulated_ms", &RunResult::simulated_ms},
    {"calls", &RunResult::calls},
    {"calls_ok", &RunResult::calls_ok},
    {"calls_unknown", &RunResult::calls_unknown},
    {"faults", &RunResult::faults},
    {"starts", &RunResult::starts},
    {"elections", &RunResult::elections},
    {"entries", &RunResult::entries},
    {"searches_undecided", &RunResult::searches_undecided},
};

std::string one_line(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional<uint64_t>(value)
                                                                                     : std::nullopt;
}

// "<number> <rest>".
std::optional<std::pair<uint64_t, std::string>> number_and_text(std::string_view text) {
  const size_t space = text.find(' ');
  const auto value = number(text.substr(0, space));
  if (!value || space == std::string_view::npos) {
    return std::nullopt;
  }
  return std::pair(*value, std::string(text.substr(space + 1)));
}

}  // namespace

std::string print_result(const RunResult& result) {
  std::string text;
  for (const Field& field : kFields) {
    text += std::string(field.key) + " " + std::to_string(result.*field.value) + "\n";
  }
  for (const auto& [name, count] : result.probes) {
    text += "probe " + std::to_string(count) + " " + one_line(name) + "\n";
  }
  if (result.violation) {
    text += "rule " + one_line(result.violation->rule) + "\n";
    text += "sentence " + one_line(result.violation->sentence) + "\n";
    text += "at_ns " + std::to_string(io::to_ns(result.violation->at)) + "\n";
    text += "event " + std::to_string(result.violation->event) + "\n";
  }
  return text;
}

std::optional<RunResult> parse_result(std::string_view text) {
  RunResult result;
  size_t known = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      return std::nullopt;
    }
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const size_t space = line.find(' ');
    const std::string_view key = line.substr(0, space);
    const std::string_view value = space == std::string_view::npos ? "" : line.substr(space + 1);
    const Field* field = std::find_if(std::begin(kFields), std::end(kFields), [key](const Field& f) { return f.key == key; });
    if (field != std::end(kFields)) {
      const auto parsed = number(value);
      if (!parsed) {
        return std::nullopt;
      }
      result.*field->value = *parsed;
      ++known;
    } else if (key == "probe") {
      const auto probe = number_and_text(value);
      if (!probe) {
        return std::nullopt;
      }
      result.probes[probe->second] = probe->first;
    } else if (key == "rule") {
      result.violation.emplace().rule = std::string(value);
    } else if (result.violation && key == "sentence") {
      result.violation->sentence = std::string(value);
    } else if (result.violation && (key == "at_ns" || key == "event")) {
      const auto parsed = number(value);
      if (!parsed) {
        return std::nullopt;
      }
      if (key == "event") {
        result.violation->event = *parsed;
      } else {
        result.violation->at = io::Instant(io::Duration(static_cast<int64_t>(*parsed)));
      }
    } else {
      return std::nullopt;
    }
  }
  return known == std::size(kFields) ? std::optional<RunResult>(std::move(result)) : std::nullopt;
}

}  // namespace chaos
