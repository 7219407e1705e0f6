// Wing and Gong's search: finds orders that exist, refuses histories that have none, stops at its bound.

#include <gtest/gtest.h>

#include "sim/linearizability.h"

namespace sim {
namespace {

io::Instant at(int64_t s) { return s < 0 ? io::kNever : io::Instant(std::chrono::seconds(s)); }

// A register: write sets it, read must find it.
Step write(int64_t asked, int64_t answered, std::string value) {
  return {at(asked), at(answered), [value](std::string& state) {
            state = value;
            return true;
          }};
}
Step read(int64_t asked, int64_t answered, std::string value) {
  return {at(asked), at(answered), [value](std::string& state) { return state == value; }};
}

TEST(Linearizability, OverlappingCallsMayGoEitherWay) {
  EXPECT_EQ(is_linearizable({write(1, 5, "a"), write(2, 6, "b"), read(7, 8, "a")}, "", 1'000), Linearizable::yes);
  EXPECT_EQ(is_linearizable({write(1, 5, "a"), write(2, 6, "b"), read(7, 8, "b")}, "", 1'000), Linearizable::yes);
}

TEST(Linearizability, RealTimeIsRespected) {
  EXPECT_EQ(is_linearizable({write(1, 2, "a"), write(3, 4, "b"), read(5, 6, "a")}, "", 1'000), Linearizable::no);
  EXPECT_EQ(is_linearizable({write(1, 9, "a"), read(2, 3, "a"), read(4, 5, "")}, "", 1'000), Linearizable::no);
}

TEST(Linearizability, AnUnknownWriteMayHaveHappenedLaterOrNever) {
  EXPECT_EQ(is_linearizable({write(1, -1, "a"), read(2, 3, ""), read(4, 5, "a")}, "", 1'000), Linearizable::yes);
  EXPECT_EQ(is_linearizable({write(1, -1, "a"), read(2, 3, ""), read(4, 5, "")}, "", 1'000), Linearizable::yes);
  EXPECT_EQ(is_linearizable({write(3, -1, "a"), read(1, 2, "a")}, "", 1'000), Linearizable::no);
}

TEST(Linearizability, StopsAtItsBoundAndSaysSo) {
  std::vector<Step> history;
  for (int i = 0; i < 12; ++i) {
    history.push_back(write(1, 5, std::to_string(i)));
  }
  history.push_back(read(6, 7, "none of them"));
  EXPECT_EQ(is_linearizable(history, "", 50), Linearizable::unknown);
}

TEST(Linearizability, ALongSequentialHistoryIsQuick) {
  std::vector<Step> history;
  for (int i = 0; i < 500; ++i) {
    history.push_back(write(4 * i, 4 * i + 1, std::to_string(i)));
    history.push_back(read(4 * i + 2, 4 * i + 3, std::to_string(i)));
  }
  EXPECT_EQ(is_linearizable(history, "", 2'000), Linearizable::yes);
}

}  // namespace
}  // namespace sim
