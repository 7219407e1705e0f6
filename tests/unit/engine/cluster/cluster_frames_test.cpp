#include "engine/cluster/cluster_frames.h"

#include <gtest/gtest.h>

namespace engine::cluster {
namespace {

using namespace std::string_literals;

const std::string kHeartbeat =
    "\x09\x00\x00\x00\x02n1\x00\x00\x00\x07n1:7942\x00\x00\x00\x07n1:7943\x00\x00\x00\x05"
    "alive\x00\x00\x00\x00\x00\x00\x01\x02"s;
const std::string kRelease = "\x00\x00\x00\x05"
                             "3.2.0\x00\x00\x00\x25"s;
const std::string kJoin = "\x15\x00\x00\x00\x02n1\x00\x00\x00\x07n1:7943"s;

TEST(ClusterFrames, RegisterMemberHasTheBytesOfTheProtocol) {
  RegisterMemberRequest request{"n1", "n1:7942", "n1:7943", "alive", 0x102, std::nullopt};
  EXPECT_EQ(encode(request), kHeartbeat);
  request.release = {"3.2.0", 37};
  EXPECT_EQ(encode(request), kHeartbeat + kRelease);
  request.last_heartbeat = -1;
  request.release.reset();
  EXPECT_EQ(encode(request).substr(encode(request).size() - 8), std::string(8, '\xff'));
}

TEST(ClusterFrames, JoinClusterHasTheBytesOfTheProtocol) {
  JoinClusterRequest request{"n1", "n1:7943", std::nullopt, std::nullopt};
  EXPECT_EQ(encode(request), kJoin);
  request.fresh = true;
  EXPECT_EQ(encode(request), kJoin + "\x01"s);
  request.fresh = false;
  request.entry_types = 37;
  EXPECT_EQ(encode(request), kJoin + "\x00\x00\x00\x00\x25"s);
  request.fresh.reset();  // a field before one that is written is written with it
  EXPECT_EQ(encode(request), kJoin + "\x00\x00\x00\x00\x25"s);
}

TEST(ClusterFrames, ForgetServerHasTheBytesOfTheProtocol) { EXPECT_EQ(encode(ForgetServerRequest{"n1"}), "\x22\x00\x00\x00\x02n1"s); }

TEST(ClusterFrames, RequestsComeBackAsTheyWereSent) {
  RegisterMemberRequest heartbeat{"n1", "n1:7942", "n1:7943", "alive", -5, std::nullopt};
  EXPECT_EQ(*decode_register_member(encode(heartbeat)), heartbeat);
  heartbeat.release = {"", 0};
  EXPECT_EQ(*decode_register_member(encode(heartbeat)), heartbeat);
  for (const std::optional<bool> fresh : {std::optional<bool>(), std::optional<bool>(false), std::optional<bool>(true)}) {
    JoinClusterRequest join{"n1", "n1:7943", fresh, std::nullopt};
    EXPECT_EQ(*decode_join_cluster(encode(join)), join);
    if (fresh) {
      join.entry_types = 32;
      EXPECT_EQ(*decode_join_cluster(encode(join)), join);
    }
  }
  EXPECT_EQ(decode_forget_server(encode(ForgetServerRequest{"n9"}))->id, "n9");
}

TEST(ClusterFrames, EveryCutWithinAFieldIsRefused) {
  const auto is_whole = [](const std::string& whole, size_t size, auto decode) { return decode(whole.substr(0, size)).ok(); };
  const std::string heartbeat = kHeartbeat + kRelease;
  for (size_t size = 1; size < heartbeat.size(); ++size) {
    EXPECT_EQ(is_whole(heartbeat, size, decode_register_member), size == kHeartbeat.size()) << size;
  }
  const std::string join = kJoin + "\x01\x00\x00\x00\x25"s;
  for (size_t size = 1; size < join.size(); ++size) {
    EXPECT_EQ(is_whole(join, size, decode_join_cluster), size == kJoin.size() || size == kJoin.size() + 1) << size;
  }
}

TEST(ClusterFrames, WhatStandsBehindTheLastFieldIsRefusedAsTrailingData) {
  const auto text = [](const auto& decoded) { return decoded.ok() ? "" : decoded.error().message; };
  EXPECT_EQ(text(decode_register_member(kHeartbeat + kRelease + "x")), "trailing node rpc payload data");
  EXPECT_EQ(text(decode_join_cluster(kJoin + "\x01\x00\x00\x00\x25x"s)), "trailing node rpc payload data");
  EXPECT_EQ(text(decode_forget_server(encode(ForgetServerRequest{"n1"}) + "x")), "trailing node rpc payload data");
  EXPECT_EQ(text(decode_join_cluster(kJoin + "\x02"s)), "malformed fresh");
}

TEST(ClusterFrames, TheOlderFrameHasNoneOfTheOptionalFields) {
  EXPECT_EQ(encode(older_frame(RegisterMemberRequest{"n1", "n1:7942", "n1:7943", "alive", 0x102, {{"3.2.0", 37}}})), kHeartbeat);
  EXPECT_EQ(encode(older_frame(JoinClusterRequest{"n1", "n1:7943", true, 37})), kJoin);
}

TEST(ClusterFrames, AnOlderPeerIsKnownByItsRefusal) {
  EXPECT_TRUE(is_refused_as_trailing(error_reply(400, "invalid join request: trailing node rpc payload data")));
  EXPECT_FALSE(is_refused_as_trailing(error_reply(400, "invalid join request: truncated id")));
  EXPECT_FALSE(is_refused_as_trailing(error_reply(503, "trailing")));
}

TEST(ClusterFrames, AReleaseRefusesTheFieldsThatItDoesNotKnow) {
  const FrameFields none{false, false, false, false, 32};
  const FrameFields no_types{true, true, false, true, 255};
  EXPECT_TRUE(check_known_fields(kHeartbeat, none).ok());
  EXPECT_FALSE(check_known_fields(kHeartbeat + kRelease, none).ok());
  EXPECT_TRUE(check_known_fields(kHeartbeat + kRelease, no_types).ok());
  EXPECT_TRUE(check_known_fields(kJoin, none).ok());
  EXPECT_FALSE(check_known_fields(kJoin + "\x01"s, none).ok());
  EXPECT_TRUE(check_known_fields(kJoin + "\x01"s, no_types).ok());
  EXPECT_FALSE(check_known_fields(kJoin + "\x01\x00\x00\x00\x25"s, no_types).ok());
  EXPECT_TRUE(check_known_fields(encode(GetTopicRequest{"t"}), none).ok());
  EXPECT_FALSE(check_known_fields(encode(CreateTopicRequest{"t", "{}", "alice"}), none).ok());
  EXPECT_FALSE(check_known_fields(encode(AlterTopicRequest{"t", "{}", "alice"}), none).ok());
  EXPECT_FALSE(check_known_fields(encode(DeleteTopicRequest{"t", std::nullopt, "alice"}), none).ok());
  EXPECT_TRUE(check_known_fields(encode(DeleteTopicRequest{"t", "0123456789abcdef", std::nullopt}), none).ok());
}

}  // namespace
}  // namespace engine::cluster
