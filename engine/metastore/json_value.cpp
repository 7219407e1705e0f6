#include "engine/metastore/json_value.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/metastore/printable.h"

namespace engine::metastore {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// digits + delta, for digits a decimal number without leading zeros that is larger than any |delta| here.
std::string add_to_magnitude(std::string digits, int64_t delta) {
  for (size_t at = digits.size(); at > 0 && delta != 0; --at) {
    int64_t sum = (digits[at - 1] - '0') + delta % 10;
    delta /= 10;
    if (sum < 0) {
      sum += 10;
      --delta;
    } else if (sum > 9) {
      sum -= 10;
      ++delta;
    }
    digits[at - 1] = static_cast<char>('0' + sum);
  }
  if (delta > 0) {
    digits.insert(0, std::to_string(delta));
  }
  const size_t first = digits.find_first_not_of('0');
  return first == std::string::npos ? "0" : digits.substr(first);
}

// The exponent written as `digits` (without leading zeros), plus `delta`.
std::string add_to_exponent(bool is_negative, std::string digits, int64_t delta) {
  constexpr size_t kSureDigits = 18;
  if (digits.size() <= kSureDigits) {
    const int64_t value = digits.empty() ? 0 : std::stoll(digits);
    return std::to_string((is_negative ? -value : value) + delta);
  }
  return (is_negative ? "-" : "") + add_to_magnitude(std::move(digits), is_negative ? -delta : delta);
}

// Reads one text and writes its canonical form. Every function leaves at_ behind what it has read, and false means: no JSON.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<std::string> read() {
    skip_space();
    if (!value(0)) {
      return std::nullopt;
    }
    skip_space();
    return at_ == text_.size() ? std::optional<std::string>(std::move(out_)) : std::nullopt;
  }

 private:
  // One member of an object: its key and its whole text, within out_.
  struct Member {
    size_t begin = 0;
    size_t key_end = 0;
    size_t end = 0;
  };

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) {
      return false;
    }
    ++at_;
    return true;
  }
  void skip_space() {
    while (at_ < text_.size() && (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r')) {
      ++at_;
    }
  }
  bool word(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) {
      return false;
    }
    at_ += expected.size();
    out_ += expected;
    return true;
  }

  bool value(int depth) {
    switch (peek()) {
      case '{': return depth < kJsonDepthMax && object(depth + 1);
      case '[': return depth < kJsonDepthMax && array(depth + 1);
      case '"': return string();
      case 't': return word("true");
      case 'f': return word("false");
      case 'n': return word("null");
      default: return number();
    }
  }

  bool array(int depth) {
    ++at_;
    out_ += '[';
    skip_space();
    if (take(']')) {
      out_ += ']';
      return true;
    }
    while (true) {
      skip_space();
      if (!value(depth)) {
        return false;
      }
      skip_space();
      if (take(']')) {
        out_ += ']';
        return true;
      }
      if (!take(',')) {
        return false;
      }
      out_ += ',';
    }
  }

  bool object(int depth) {
    ++at_;
    out_ += '{';
    const size_t begin = out_.size();
    std::vector<Member> members;
    skip_space();
    if (!take('}')) {
      do {
        if (!member(depth, members)) {
          return false;
        }
        skip_space();
      } while (take(','));
      if (!take('}')) {
        return false;
      }
    }
    order(begin, members);
    out_ += '}';
    return true;
  }

  bool member(int depth, std::vector<Member>& members) {
    Member member;
    skip_space();
    member.begin = out_.size();
    if (peek() != '"' || !string()) {
      return false;
    }
    member.key_end = out_.size();
    skip_space();
    if (!take(':')) {
      return false;
    }
    out_ += ':';
    skip_space();
    if (!value(depth)) {
      return false;
    }
    member.end = out_.size();
    members.push_back(member);
    return true;
  }

  // Puts the members behind `begin` in the order of their keys, the last of each key only.
  void order(size_t begin, std::vector<Member>& members) {
    auto key = [&](const Member& member) {
      return std::string_view(out_).substr(member.begin, member.key_end - member.begin);
    };
    std::stable_sort(members.begin(), members.end(), [&](const Member& a, const Member& b) { return key(a) < key(b); });
    std::string ordered;
    ordered.reserve(out_.size() - begin + members.size());
    for (size_t i = 0; i < members.size(); ++i) {
      if (i + 1 < members.size() && key(members[i]) == key(members[i + 1])) {
        continue;
      }
      if (!ordered.empty()) {
        ordered += ',';
      }
      ordered.append(out_, members[i].begin, members[i].end - members[i].begin);
    }
    out_.resize(begin);
    out_ += ordered;
  }

  bool hex4(uint32_t& code) {
    code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = peek();
      const bool is_letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      if (!is_digit(c) && !is_letter) {
        return false;
      }
      code = code << 4 | static_cast<uint32_t>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return true;
  }

  // A lone half of a pair keeps its own three bytes, which no well-formed text has.
  void put_character(uint32_t code) {
    if (code < 0x80) {
      put_plain(static_cast<char>(code));
    } else if (code < 0x800) {
      out_ += static_cast<char>(0xc0 | code >> 6);
      out_ += static_cast<char>(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
      out_ += static_cast<char>(0xe0 | code >> 12);
      out_ += static_cast<char>(0x80 | (code >> 6 & 0x3f));
      out_ += static_cast<char>(0x80 | (code & 0x3f));
    } else {
      out_ += static_cast<char>(0xf0 | code >> 18);
      out_ += static_cast<char>(0x80 | (code >> 12 & 0x3f));
      out_ += static_cast<char>(0x80 | (code >> 6 & 0x3f));
      out_ += static_cast<char>(0x80 | (code & 0x3f));
    }
  }
  // Only what would end the string or the escape is escaped again.
  void put_plain(char c) {
    if (c == '"' || c == '\\') {
      out_ += '\\';
    }
    out_ += c;
  }

  bool escape() {
    const char c = peek();
    ++at_;
    switch (c) {
      case '"':
      case '\\':
      case '/': put_plain(c); return true;
      case 'b': out_ += '\b'; return true;
      case 'f': out_ += '\f'; return true;
      case 'n': out_ += '\n'; return true;
      case 'r': out_ += '\r'; return true;
      case 't': out_ += '\t'; return true;
      case 'u': break;
      default: return false;
    }
    uint32_t code = 0;
    if (!hex4(code)) {
      return false;
    }
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      const size_t before = at_;
      at_ += 2;
      uint32_t low = 0;
      if (!hex4(low)) {
        return false;
      }
      if (low >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      } else {
        at_ = before;
      }
    }
    put_character(code);
    return true;
  }

  bool string() {
    ++at_;
    out_ += '"';
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        out_ += '"';
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20) {
        return false;
      }
      if (c == '\\') {
        ++at_;
        if (!escape()) {
          return false;
        }
        continue;
      }
      const size_t length = utf8_length(text_.substr(at_));
      if (length == 0) {
        return false;
      }
      out_.append(text_, at_, length);
      at_ += length;
    }
    return false;
  }

  std::string_view digits() {
    const size_t begin = at_;
    while (is_digit(peek())) {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  // As <digits>e<exponent>, where the digits neither begin nor end with 0; or 0.
  bool number() {
    const bool is_negative = take('-');
    const std::string_view whole = digits();
    if (whole.empty() || (whole.size() > 1 && whole.front() == '0')) {
      return false;
    }
    std::string_view fraction;
    if (take('.')) {
      fraction = digits();
      if (fraction.empty()) {
        return false;
      }
    }
    bool is_exponent_negative = false;
    std::string_view exponent;
    if (take('e') || take('E')) {
      is_exponent_negative = take('-');
      if (!is_exponent_negative) {
        (void)take('+');
      }
      exponent = digits();
      if (exponent.empty()) {
        return false;
      }
      exponent.remove_prefix(std::min(exponent.find_first_not_of('0'), exponent.size()));
    }
    std::string all(whole);
    all += fraction;
    const size_t first = all.find_first_not_of('0');
    if (first == std::string::npos) {
      out_ += '0';
      return true;
    }
    const size_t last = all.find_last_not_of('0');
    const auto dropped = static_cast<int64_t>(all.size() - 1 - last);
    out_ += is_negative ? "-" : "";
    out_.append(all, first, last - first + 1);
    out_ += 'e';
    out_ += add_to_exponent(is_exponent_negative, std::string(exponent), dropped - static_cast<int64_t>(fraction.size()));
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::optional<std::string> canonical_json(std::string_view text) { return Reader(text).read(); }

bool is_same_json(std::string_view one, std::string_view other) {
  if (one == other) {
    return true;
  }
  const std::optional<std::string> first = canonical_json(one);
  return first && first == canonical_json(other);
}

}  // namespace engine::metastore
