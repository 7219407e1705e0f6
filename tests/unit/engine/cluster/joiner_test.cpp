#include "engine/cluster/joiner.h"

#include <gtest/gtest.h>

namespace engine::cluster {
namespace {

std::vector<std::string> walked(JoinWalk walk) {
  std::vector<std::string> all;
  while (const std::optional<std::string> address = walk.next()) all.push_back(*address);
  return all;
}

TEST(JoinWalk, GoesFromTheKnownLeaderOverThePeersToLearnedLeaders) {
  EXPECT_EQ(walked(JoinWalk("me:1", "l:1", {"a:1", "b:1"}, {"new:1", "old:1"})),
            (std::vector<std::string>{"l:1", "a:1", "b:1", "new:1", "old:1"}));
}

TEST(JoinWalk, AsksNobodyTwiceAndNeverItself) {
  EXPECT_EQ(walked(JoinWalk("me:1", "", {"a:1", "me:1", "a:1"}, {"a:1", "b:1"})), (std::vector<std::string>{"a:1", "b:1"}));
}

TEST(JoinWalk, AHintIsAskedNextUnlessItWasAskedAlready) {
  JoinWalk walk("me:1", "", {"a:1", "b:1", "c:1"}, {});
  EXPECT_EQ(walk.next(), "a:1");
  EXPECT_TRUE(walk.follow_hint("c:1"));
  EXPECT_FALSE(walk.follow_hint(""));
  EXPECT_FALSE(walk.follow_hint("me:1"));
  EXPECT_EQ(walk.next(), "c:1");
  EXPECT_FALSE(walk.follow_hint("a:1"));
  EXPECT_EQ(walk.next(), "b:1");
  EXPECT_EQ(walk.next(), std::nullopt);
}

TEST(JoinWalk, FollowsFourHintsAnAttempt) {
  JoinWalk walk("me:1", "", {"a:1", "b:1"}, {});
  EXPECT_EQ(walk.next(), "a:1");
  for (size_t i = 0; i < kHintsPerAttempt; ++i) {
    const std::string hint = "h" + std::to_string(i) + ":1";
    EXPECT_TRUE(walk.follow_hint(hint));
    EXPECT_EQ(walk.next(), hint);
  }
  EXPECT_FALSE(walk.follow_hint("one-more:1"));
  EXPECT_EQ(walk.next(), "b:1");
  EXPECT_EQ(walk.next(), std::nullopt);
}

}  // namespace
}  // namespace engine::cluster
