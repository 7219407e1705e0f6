#include "engine/topics/decimal.h"

#include <gtest/gtest.h>

namespace {

using namespace engine::topics;

Decimal number(const std::string& text) {
  const auto parsed = parse_decimal(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return parsed.value_or(Decimal{});
}

TEST(Decimal, EqualNumbersAreOneHoweverTheyAreSpelled) {
  EXPECT_EQ(number("1"), number("1.0"));
  EXPECT_EQ(number("10e-1"), number("1"));
  EXPECT_EQ(number("1E+2"), number("100"));
  EXPECT_EQ(number("0"), number("-0.00e5"));
  EXPECT_NE(number("0.1"), number("0.10000000000000000001"));
  for (const char* text : {"", "-", "1.2.3", "x", "1e", "1e1001", "1e-1001", "1e99999999999999999999"}) {
    EXPECT_FALSE(parse_decimal(text).has_value()) << text;
  }
}

TEST(Decimal, OrderIsExact) {
  const char* kRising[] = {"-1e1000", "-20", "-19.99", "-2", "-0.5", "-1e-1000", "0", "1e-1000", "0.09", "0.1", "0.11", "1", "9", "10", "10.5", "1e3", "1e1000"};
  for (size_t i = 0; i < std::size(kRising); ++i) {
    for (size_t j = 0; j < std::size(kRising); ++j) {
      EXPECT_EQ(compare(number(kRising[i]), number(kRising[j])), i <=> j) << kRising[i] << " " << kRising[j];
    }
  }
}

TEST(Decimal, MultiplesAreExact) {
  EXPECT_TRUE(is_multiple(number("0.3"), number("0.1")));
  EXPECT_TRUE(is_multiple(number("-12"), number("4")));
  EXPECT_TRUE(is_multiple(number("0"), number("7")));
  EXPECT_TRUE(is_multiple(number("1e300"), number("8")));
  EXPECT_FALSE(is_multiple(number("5"), number("10")));
  EXPECT_FALSE(is_multiple(number("1"), number("0.3")));
  EXPECT_FALSE(is_multiple(number("1e300"), number("7")));
  EXPECT_FALSE(is_multiple(number("1e900"), number("1e-900"))) << "too many digits to tell";
}

}  // namespace
