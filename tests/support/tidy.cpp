#include "tests/support/tidy.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

namespace tests::tidy {
namespace {

constexpr const char* kFolders[] = {"io", "raft", "engine", "sim", "chaos", "tests", "bench"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  while (begin <= text.size()) {
    size_t end = std::min(text.find('\n', begin), text.size());
    lines.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (!lines.empty() && lines.back().empty()) {
    lines.pop_back();
  }
  return lines;
}

// Walks C++ text once and keeps only what the compiler would run: comments become blanks, literals lose their contents.
class Stripper {
 public:
  explicit Stripper(std::string_view text) : text_(text) {}

  std::string strip() {
    while (at_ < text_.size()) {
      if (starts_with("//")) {
        skip_until("\n", 0);
      } else if (starts_with("/*")) {
        skip_until("*/", 2);
      } else if (text_[at_] == '"' && !in_include_line()) {
        literal();
      } else if (text_[at_] == '\'' && (at_ == 0 || !is_word(text_[at_ - 1]))) {  // not the separator of 1'000
        quoted('\'');
      } else {
        out_ += text_[at_++];
      }
    }
    return std::move(out_);
  }

 private:
  bool starts_with(std::string_view what) const { return text_.substr(at_, what.size()) == what; }

  bool in_include_line() const {
    size_t begin = text_.rfind('\n', at_);
    begin = begin == std::string_view::npos ? 0 : begin + 1;
    return text_.substr(begin, 8) == "#include";
  }

  void blank(size_t end) {
    for (; at_ < end; ++at_) {
      out_ += text_[at_] == '\n' ? '\n' : ' ';
    }
  }

  void skip_until(std::string_view mark, size_t extra) {
    size_t end = text_.find(mark, at_ + extra);
    blank(end == std::string_view::npos ? text_.size() : end + extra);
  }

  void literal() {
    bool raw = at_ > 0 && text_[at_ - 1] == 'R' && (at_ < 2 || !is_word(text_[at_ - 2]));
    if (!raw) {
      quoted('"');
      return;
    }
    size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) {
      blank(text_.size());
      return;
    }
    std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    size_t end = text_.find(close, open);
    out_ += '"';
    ++at_;
    blank(end == std::string_view::npos ? text_.size() : end + close.size() - 1);
    if (at_ < text_.size()) {
      out_ += text_[at_++];
    }
  }

  void quoted(char quote) {
    out_ += text_[at_++];
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
      at_ += text_[at_] == '\\' ? 2 : 1;
    }
    if (at_ < text_.size() && text_[at_] == quote) {
      out_ += text_[at_++];
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string out_;
};

// "<thread>" or "\"raft/core.h\"" of an include line, else empty.
std::string included(const std::string& code_line) {
  if (code_line.rfind("#include", 0) != 0) {
    return "";
  }
  size_t begin = code_line.find_first_of("<\"");
  size_t end = code_line.find_first_of(">\"", begin == std::string::npos ? begin : begin + 1);
  return end == std::string::npos ? "" : code_line.substr(begin, end - begin + 1);
}

bool header_matches(const std::string& header, const std::string& pattern) {
  return pattern.back() == '>' || pattern.back() == '"' ? header == pattern : header.rfind(pattern, 0) == 0;
}

bool line_breaks_names(const Rule& rule, const std::string& code_line) {
  if (rule.names.empty() && rule.calls.empty()) {
    return false;
  }
  for (const Name& name : names_in(code_line)) {
    auto matches = [&](const std::string& pattern) { return name_matches(name.text, pattern); };
    if (std::any_of(rule.names.begin(), rule.names.end(), matches)) {
      return true;
    }
    if (name.is_called && !name.is_member && !name.is_declared &&
        std::find(rule.calls.begin(), rule.calls.end(), name.text) != rule.calls.end()) {
      return true;
    }
  }
  return false;
}

}  // namespace

Source parse(std::string path, std::string_view text) {
  Source source;
  source.path = std::move(path);
  source.lines = split_lines(text);
  source.code = split_lines(Stripper(text).strip());
  source.code.resize(source.lines.size());
  return source;
}

std::vector<Source> read_tree(const std::string& root) {
  std::vector<Source> sources;
  for (const char* folder : kFolders) {
    std::filesystem::path base = std::filesystem::path(root) / folder;
    if (!std::filesystem::exists(base)) {
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(base)) {
      std::string extension = entry.path().extension().string();
      if (entry.is_regular_file() && (extension == ".h" || extension == ".cpp")) {
        std::ifstream file(entry.path(), std::ios::binary);
        std::ostringstream text;
        text << file.rdbuf();
        if (!file) {
          throw std::runtime_error("cannot read " + entry.path().string());
        }
        sources.push_back(parse(std::filesystem::relative(entry.path(), root).generic_string(), text.str()));
      }
    }
  }
  std::sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) { return a.path < b.path; });
  for (Source& source : sources) {
    if (source.path.ends_with(".cpp")) {
      std::string header = source.path.substr(0, source.path.size() - 4) + ".h";
      auto found = std::find_if(sources.begin(), sources.end(), [&](const Source& other) { return other.path == header; });
      if (found != sources.end()) {
        source.header_code = found->code;
      }
    }
  }
  return sources;
}

std::vector<Name> names_in(std::string_view line) {
  static const std::set<std::string, std::less<>> kNoType = {"return", "co_return", "co_await", "co_yield", "throw",
                                                             "else",   "case",      "not",      "and",      "or",
                                                             "new",    "delete",    "do",       "goto"};
  std::vector<Name> names;
  size_t at = 0;
  while (at < line.size()) {
    bool global = line.substr(at, 2) == "::" && at + 2 < line.size() && is_word(line[at + 2]);
    if (!is_word(line[at]) && !global) {
      ++at;
      continue;
    }
    size_t begin = at;
    at += global ? 2 : 0;
    while (at < line.size() && is_word(line[at])) {
      ++at;
      if (line.substr(at, 2) == "::" && at + 2 < line.size() && is_word(line[at + 2])) {
        at += 2;
      }
    }
    Name name;
    name.text = line.substr(begin, at - begin);
    if (std::isdigit(static_cast<unsigned char>(name.text[0])) != 0) {
      continue;
    }
    size_t before = line.find_last_not_of(" \t", begin == 0 ? std::string_view::npos : begin - 1);
    if (begin > 0 && before != std::string_view::npos) {
      name.is_member = line[before] == '.' || (line[before] == '>' && before > 0 && line[before - 1] == '-');
      // "Instant time(", "std::vector<int> open(", "Result<int>& stat(" declare; "return time(" and "a && time(" do not.
      if (is_word(line[before])) {
        size_t word_end = before + 1;
        while (before > 0 && is_word(line[before - 1])) {
          --before;
        }
        name.is_declared = !kNoType.contains(line.substr(before, word_end - before));
      } else if (line[before] == '>' && !name.is_member) {
        name.is_declared = before == begin - 1 || line[before - 1] != ' ';
      } else if ((line[before] == '&' || line[before] == '*') && before > 0) {
        name.is_declared = is_word(line[before - 1]) || line[before - 1] == '>';
      }
    }
    size_t after = line.find_first_not_of(" \t", at);
    name.is_called = after != std::string_view::npos && line[after] == '(';
    names.push_back(std::move(name));
  }
  return names;
}

bool name_matches(std::string_view name, std::string_view pattern) {
  if (pattern.substr(0, 2) == "::") {
    return name == pattern;
  }
  bool is_prefix = pattern.back() == '*';
  if (is_prefix) {
    pattern.remove_suffix(1);
  }
  for (size_t at = name.find(pattern); at != std::string_view::npos; at = name.find(pattern, at + 1)) {
    bool begins_part = at == 0 || name[at - 1] == ':';
    size_t end = at + pattern.size();
    bool ends_part = is_prefix || end == name.size() || name[end] == ':';
    if (begins_part && ends_part) {
      return true;
    }
  }
  return false;
}

std::string to_string(const Violation& violation) {
  return violation.path + ":" + std::to_string(violation.line) + ": " + violation.rule + ": " + violation.text;
}

std::vector<Violation> judge(const Rule& rule, const Source& source) {
  if (!rule.covers(source)) {
    return {};
  }
  std::set<size_t> found;
  for (size_t i = 0; i < source.code.size(); ++i) {
    std::string header = included(source.code[i]);
    bool bad_header = !header.empty() && std::any_of(rule.headers.begin(), rule.headers.end(), [&](const auto& pattern) {
      return header_matches(header, pattern);
    });
    if (bad_header || (header.empty() && line_breaks_names(rule, source.code[i]))) {
      found.insert(i + 1);
    }
  }
  if (rule.finds) {
    for (size_t line : rule.finds(source)) {
      found.insert(line);
    }
  }
  std::vector<Violation> violations;
  for (size_t line : found) {
    violations.push_back({source.path, line, rule.name, source.lines[line - 1]});
  }
  return violations;
}

const Exception* excuse(const Violation& violation) {
  for (const Exception& exception : exceptions()) {
    bool same_place = exception.path.back() == '/' ? violation.path.rfind(exception.path, 0) == 0
                                                   : violation.path == exception.path;
    if (same_place && exception.rule == violation.rule &&
        violation.text.find(exception.contains) != std::string::npos) {
      return &exception;
    }
  }
  return nullptr;
}

}  // namespace tests::tidy
