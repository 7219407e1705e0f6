#include "engine/topics/decimal.h"

#include <algorithm>
#include <charconv>

namespace engine::topics {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Digits without leading zeros, compared as whole numbers.
int compare_digits(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) {
    return one.size() < other.size() ? -1 : 1;
  }
  const int order = one.compare(other);
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

// `from` -= `what`, which is not more.
void subtract(std::string& from, std::string_view what) {
  int borrow = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    const size_t at = from.size() - 1 - i;
    int digit = from[at] - '0' - borrow - (i < what.size() ? what[what.size() - 1 - i] - '0' : 0);
    borrow = digit < 0 ? 1 : 0;
    from[at] = static_cast<char>('0' + digit + 10 * borrow);
  }
  from.erase(0, std::min(from.find_first_not_of('0'), from.size()));
}

}  // namespace

std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal number;
  number.is_negative = text.starts_with('-');
  text.remove_prefix(number.is_negative ? 1 : 0);
  const size_t mark = text.find_first_of("eE");
  std::string_view power = mark == std::string_view::npos ? std::string_view() : text.substr(mark + 1);
  const std::string_view mantissa = text.substr(0, mark);
  if (mark != std::string_view::npos) {
    power.remove_prefix(power.starts_with('+') ? 1 : 0);
    const auto [stop, error] = std::from_chars(power.data(), power.data() + power.size(), number.exponent);
    if (error != std::errc() || stop != power.data() + power.size()) {
      return std::nullopt;
    }
  }
  if (number.exponent > kExponentMax || number.exponent < -kExponentMax || mantissa.empty()) {
    return std::nullopt;
  }
  bool has_point = false;
  for (const char c : mantissa) {
    if (c == '.' && !has_point) {
      has_point = true;
    } else if (is_digit(c)) {
      number.digits += c;
      number.exponent -= has_point ? 1 : 0;
    } else {
      return std::nullopt;
    }
  }
  number.digits.erase(0, std::min(number.digits.find_first_not_of('0'), number.digits.size()));
  while (number.digits.ends_with('0')) {
    number.digits.pop_back();
    ++number.exponent;
  }
  return number.digits.empty() ? Decimal{} : number;
}

std::optional<Decimal> decimal_of(const json::Value& value) {
  switch (value.kind) {
    case json::Value::Kind::integer: return parse_decimal(std::to_string(value.integer));
    case json::Value::Kind::number: return parse_decimal(value.text);
    default: return std::nullopt;
  }
}

std::strong_ordering compare(const Decimal& one, const Decimal& other) {
  const auto sign = [](const Decimal& number) { return number.digits.empty() ? 0 : number.is_negative ? -1 : 1; };
  if (sign(one) != sign(other) || sign(one) == 0) {
    return sign(one) <=> sign(other);
  }
  const auto places = [](const Decimal& number) { return static_cast<int64_t>(number.digits.size()) + number.exponent; };
  std::strong_ordering size = places(one) <=> places(other);
  if (size == std::strong_ordering::equal) {
    size = one.digits.compare(other.digits) <=> 0;  // the first digits stand at one place
  }
  return one.is_negative ? 0 <=> size : size;
}

bool is_multiple(const Decimal& number, const Decimal& divisor) {
  if (number.digits.empty()) {
    return true;
  }
  if (number.exponent < divisor.exponent) {
    return false;  // it has a place that no multiple reaches, as its last digit is not zero
  }
  const auto zeros = static_cast<size_t>(number.exponent - divisor.exponent);
  if (number.digits.size() + zeros > kDivisionDigitsMax || divisor.digits.size() > kDivisionDigitsMax) {
    return false;
  }
  std::string rest;
  for (const char c : number.digits + std::string(zeros, '0')) {
    if (!rest.empty() || c != '0') {
      rest += c;
    }
    while (compare_digits(rest, divisor.digits) >= 0) {
      subtract(rest, divisor.digits);
    }
  }
  return rest.empty();
}

}  // namespace engine::topics
