#include "engine/topics/json.h"

#include <nlohmann/json.hpp>

namespace engine::json {

namespace {

using Parser = nlohmann::json;

// Takes the parser's events and builds the value; refuses what is too deep or too much.
class Builder final : public nlohmann::json_sax<Parser> {
 public:
  explicit Builder(size_t depth_max) : depth_max_(depth_max) {}
  bool null() override { return place(Value{}); }
  bool boolean(bool value) override {
    Value made;
    made.kind = Value::Kind::boolean;
    made.boolean = value;
    return place(std::move(made));
  }
  bool number_integer(number_integer_t value) override { return place_integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return value <= static_cast<number_unsigned_t>(INT64_MAX) ? place_integer(static_cast<int64_t>(value))
                                                              : place_number(std::to_string(value));
  }
  bool number_float(number_float_t, const string_t& text) override { return place_number(text); }
  bool string(string_t& text) override {
    Value made;
    made.kind = Value::Kind::string;
    made.text = std::move(text);
    return place(std::move(made));
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Value::Kind::object); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(Value::Kind::array); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    names_.back() = std::move(name);
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    error_ = "invalid JSON at byte " + std::to_string(position);
    return false;
  }

  Value take() { return std::move(root_); }
  const std::string& error() const { return error_; }

 private:
  bool place_integer(int64_t value) {
    Value made;
    made.kind = Value::Kind::integer;
    made.integer = value;
    return place(std::move(made));
  }
  bool place_number(std::string text) {
    Value made;
    made.kind = Value::Kind::number;
    made.text = std::move(text);
    return place(std::move(made));
  }

  bool place(Value value) {
    if (++count_ > kValuesMax) {
      error_ = "JSON holds too many values";
      return false;
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Value& parent = open_.back();
    if (parent.kind == Value::Kind::array) {
      parent.array.push_back(std::move(value));
    } else {
      parent.object.insert_or_assign(names_.back(), std::move(value));
    }
    return true;
  }
  bool open(Value::Kind kind) {
    if (open_.size() >= depth_max_) {
      error_ = "JSON is nested too deeply";
      return false;
    }
    Value made;
    made.kind = kind;
    open_.push_back(std::move(made));
    names_.emplace_back();
    return true;
  }
  bool close() {
    Value done = std::move(open_.back());
    open_.pop_back();
    names_.pop_back();
    return place(std::move(done));
  }

  const size_t depth_max_;
  Value root_;
  std::vector<Value> open_;         // containers being read, outermost first
  std::vector<std::string> names_;  // of the member being read in each
  size_t count_ = 0;
  std::string error_;
};

// Length of the UTF-8 sequence at the front of `text`, 0 when it is none (RFC 3629).
size_t utf8_length(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  unsigned first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xc2 && first <= 0xdf) {
    return follows(1) ? 2 : 0;
  }
  if (first >= 0xe0 && first <= 0xef) {
    bool is_shortest = first != 0xe0 || byte(1) >= 0xa0;
    bool is_surrogate = first == 0xed && byte(1) >= 0xa0;
    return is_shortest && !is_surrogate && follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    bool in_range = (first != 0xf0 || byte(1) >= 0x90) && (first != 0xf4 || byte(1) <= 0x8f);
    return in_range && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

void append_escaped(std::string& out, std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  while (!text.empty()) {
    char c = text.front();
    size_t length = utf8_length(text);
    if (length != 1) {
      out += length == 0 ? "\xef\xbf\xbd" : text.substr(0, length);
      text.remove_prefix(length == 0 ? 1 : length);
      continue;
    }
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += "\\u00";
      out += kDigits[static_cast<unsigned char>(c) >> 4];
      out += kDigits[static_cast<unsigned char>(c) & 15];
    } else {
      out += c;
    }
    text.remove_prefix(1);
  }
}

}  // namespace

const Value* Value::find(const std::string& name) const {
  auto found = object.find(name);
  return kind != Kind::object || found == object.end() ? nullptr : &found->second;
}

std::string_view name_of(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::null: return "null";
    case Value::Kind::boolean: return "a boolean";
    case Value::Kind::integer:
    case Value::Kind::number: return "a number";
    case Value::Kind::string: return "a string";
    case Value::Kind::array: return "an array";
    case Value::Kind::object: return "an object";
  }
  return "a value";
}

io::Result<Value> parse(std::string_view text, size_t depth_max) {
  Builder builder(depth_max);
  if (text.starts_with("\xef\xbb\xbf")) {
    return io::fail(io::ErrorKind::invalid, "invalid JSON at byte 1");
  }
  if (!Parser::sax_parse(text.begin(), text.end(), &builder)) {
    return io::fail(io::ErrorKind::invalid, builder.error().empty() ? "invalid JSON" : builder.error());
  }
  return builder.take();
}

// ---- Writer ----------------------------------------------------------------------------------------------------------------

void Writer::separate() {
  if (needs_comma_) {
    text_ += ',';
  }
  needs_comma_ = true;
}

Writer& Writer::begin_object() {
  separate();
  text_ += '{';
  needs_comma_ = false;
  return *this;
}

Writer& Writer::end_object() {
  text_ += '}';
  needs_comma_ = true;
  return *this;
}

Writer& Writer::begin_array() {
  separate();
  text_ += '[';
  needs_comma_ = false;
  return *this;
}

Writer& Writer::end_array() {
  text_ += ']';
  needs_comma_ = true;
  return *this;
}

Writer& Writer::key(std::string_view name) {
  string(name);
  text_ += ':';
  needs_comma_ = false;
  return *this;
}

Writer& Writer::string(std::string_view text) {
  separate();
  text_ += '"';
  append_escaped(text_, text);
  text_ += '"';
  return *this;
}

Writer& Writer::integer(int64_t value) {
  separate();
  text_ += std::to_string(value);
  return *this;
}

Writer& Writer::boolean(bool value) {
  separate();
  text_ += value ? "true" : "false";
  return *this;
}

Writer& Writer::raw(std::string_view json) {
  separate();
  text_ += json;
  needs_comma_ = true;
  return *this;
}

}  // namespace engine::json
