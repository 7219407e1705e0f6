#include "io/crc32c.h"

#include <gtest/gtest.h>

#include <string>

#include "io/random.h"

namespace {

TEST(Crc32c, GivesTheStandardCheckValue) {
  EXPECT_EQ(io::crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(io::crc32c_portable("123456789"), 0xe3069283u);
  EXPECT_EQ(io::crc32c(""), 0u);
  EXPECT_EQ(io::crc32c(std::string(32, '\0')), 0x8a9136aau);
}

TEST(Crc32c, GoesOnFromWhereItStopped) {
  const std::string text = "the quick brown fox jumps over the lazy dog";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(io::crc32c(text.substr(cut), io::crc32c(text.substr(0, cut))), io::crc32c(text));
  }
}

TEST(Crc32c, HasOneValueWithAndWithoutTheInstruction) {
  io::RandomStream random(7);
  for (size_t length = 0; length < 200; ++length) {
    std::string bytes;
    for (size_t i = 0; i < length; ++i) {
      bytes.push_back(static_cast<char>(random.next()));
    }
    const uint32_t before = static_cast<uint32_t>(random.next());
    EXPECT_EQ(io::crc32c(bytes, before), io::crc32c_portable(bytes, before)) << length;
  }
}

TEST(Crc32c, DiffersByItsSalt) {
  EXPECT_NE(io::crc32c("entry", io::crc32c_salt(1, 2)), io::crc32c("entry", io::crc32c_salt(2, 1)));
  EXPECT_NE(io::crc32c("entry", io::crc32c_salt(1, 2)), io::crc32c("entry", io::crc32c_salt(1, 3)));
}

}  // namespace
