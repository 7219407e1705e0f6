#include "engine/topics/json_source.h"

namespace engine::json {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Walks over a well-formed text; of any other it stops at the end.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  void skip_space() {
    while (is_space(peek())) {
      ++at_;
    }
  }
  void skip(char c) {
    if (peek() == c) {
      ++at_;
    }
  }
  // The string at the place, with its quotes.
  std::string_view string() {
    const size_t begin = at_++;
    while (!at_end() && peek() != '"') {
      at_ += peek() == '\\' ? 2 : 1;
    }
    ++at_;
    return text_.substr(begin, at_ - begin);
  }
  // The value at the place: up to the comma or bracket that ends it.
  std::string_view value() {
    const size_t begin = at_;
    size_t depth = 0;
    while (!at_end()) {
      const char c = peek();
      if (c == '"') {
        string();
        continue;
      }
      const bool closes = c == '}' || c == ']';
      if (depth == 0 && (closes || c == ',')) {
        break;
      }
      depth += c == '{' || c == '[' ? 1 : 0;
      depth -= closes ? 1 : 0;
      ++at_;
    }
    std::string_view found = text_.substr(begin, at_ - begin);
    while (!found.empty() && is_space(found.back())) {
      found.remove_suffix(1);
    }
    return found;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

bool names(std::string_view quoted, std::string_view name) {
  if (quoted.find('\\') == std::string_view::npos) {
    return quoted.size() >= 2 && quoted.substr(1, quoted.size() - 2) == name;
  }
  const io::Result<Value> decoded = parse(quoted);
  return decoded.ok() && decoded->text == name;
}

void write(Writer& out, const Value& value) {
  switch (value.kind) {
    case Value::Kind::null: out.raw("null"); return;
    case Value::Kind::boolean: out.boolean(value.boolean); return;
    case Value::Kind::integer: out.integer(value.integer); return;
    case Value::Kind::number: out.raw(value.text); return;
    case Value::Kind::string: out.string(value.text); return;
    case Value::Kind::array:
      out.begin_array();
      for (const Value& item : value.array) {
        write(out, item);
      }
      out.end_array();
      return;
    case Value::Kind::object:
      out.begin_object();
      for (const auto& [name, item] : value.object) {
        out.key(name);
        write(out, item);
      }
      out.end_object();
      return;
  }
}

}  // namespace

std::string compacted(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool is_quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!is_quoted && is_space(c)) {
      continue;
    }
    out += c;
    if (is_quoted && c == '\\' && i + 1 < text.size()) {
      out += text[++i];
    } else if (c == '"') {
      is_quoted = !is_quoted;
    }
  }
  return out;
}

std::optional<std::string_view> member_text(std::string_view object, std::string_view name) {
  Scanner scanner(object);
  scanner.skip_space();
  scanner.skip('{');
  std::optional<std::string_view> found;
  for (scanner.skip_space(); scanner.peek() == '"'; scanner.skip_space()) {
    const std::string_view key = scanner.string();
    scanner.skip_space();
    scanner.skip(':');
    scanner.skip_space();
    const std::string_view value = scanner.value();
    if (names(key, name)) {
      found = value;
    }
    scanner.skip_space();
    scanner.skip(',');
  }
  return found;
}

std::string to_text(const Value& value) {
  Writer out;
  write(out, value);
  return out.take();
}

}  // namespace engine::json
