// Numbers of JSON texts, exact: a value's digits and its power of ten. No floating point, so a bound of 0.1 is 0.1.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/topics/json.h"

namespace engine::topics {

// Numbers with a larger power of ten are none to us.
inline constexpr int64_t kExponentMax = 1000;

// digits * 10^exponent, negative or not; the digits neither begin nor end with a zero, and zero has none.
struct Decimal {
  bool is_negative = false;
  std::string digits;
  int64_t exponent = 0;

  friend bool operator==(const Decimal&, const Decimal&) = default;
};

// nullopt: no JSON number, or an exponent beyond kExponentMax either way.
std::optional<Decimal> parse_decimal(std::string_view text);
std::optional<Decimal> decimal_of(const json::Value& value);

std::strong_ordering compare(const Decimal& one, const Decimal& other);

// Whether `number` is a whole multiple of `divisor`, which is not zero. False too when it would take more than kDivisionDigitsMax
// digits to tell.
inline constexpr size_t kDivisionDigitsMax = 400;
bool is_multiple(const Decimal& number, const Decimal& divisor);

}  // namespace engine::topics
