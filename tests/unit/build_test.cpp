// What the build promises to the code: every configuration keeps its assertions, and tests find the tree.

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/paths.h"

TEST(Build, KeepsAssertionsInEveryConfiguration) {
#ifdef NDEBUG
  FAIL() << "NDEBUG is defined";
#endif
}

TEST(Build, TestsKnowTheTreeTheyWereBuiltFrom) {
  EXPECT_TRUE(std::filesystem::exists(tests::source_dir() + "/CMakePresets.json"));
  EXPECT_TRUE(std::filesystem::exists(tests::build_dir() + "/CMakeCache.txt"));
}

TEST(Build, FileNamesAreRelativeToTheRoot) { EXPECT_STREQ(__FILE__, "tests/unit/build_test.cpp"); }
