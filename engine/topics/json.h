// JSON as the API reads and writes it: strict on the way in, exact in its numbers, ordered on the way out.
//
// Reading: one value and nothing after it; strings must be UTF-8; of a name given twice the last counts; nesting and size are
// bounded. A number keeps its text when it is no 64-bit integer, so nothing is rounded behind anybody's back.
// Writing: fields in the order given, no white space, invalid UTF-8 in a text replaced.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/result.h"

namespace engine::json {

inline constexpr size_t kDepthMax = 64;
inline constexpr size_t kValuesMax = 1u << 20;

struct Value;
using Object = std::map<std::string, Value>;
using Array = std::vector<Value>;

struct Value {
  enum class Kind { null, boolean, integer, number, string, array, object };
  Kind kind = Kind::null;
  bool boolean = false;
  int64_t integer = 0;  // kind integer: a number without fraction and exponent that fits
  std::string text;     // kind string; kind number: as written
  Array array;
  Object object;

  bool is(Kind other) const { return kind == other; }
  // A member of an object; null when this is no object or has no such member.
  const Value* find(const std::string& name) const;
};

// "null", "a string", ... for error texts.
std::string_view name_of(Value::Kind kind);

// Error `invalid`, with a text for the one who sent it ("invalid JSON at byte 17"). `depth_max`: containers within each other.
io::Result<Value> parse(std::string_view text, size_t depth_max = kDepthMax);

// Builds one object or array as text.
class Writer {
 public:
  Writer& begin_object();
  Writer& end_object();
  Writer& begin_array();
  Writer& end_array();
  // Name of the next value, in an object.
  Writer& key(std::string_view name);
  Writer& string(std::string_view text);
  Writer& integer(int64_t value);
  Writer& boolean(bool value);
  // A whole value that is JSON already.
  Writer& raw(std::string_view json);

  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  void separate();

  std::string text_;
  bool needs_comma_ = false;
};

}  // namespace engine::json
