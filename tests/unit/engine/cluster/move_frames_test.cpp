#include "engine/cluster/move_frames.h"

#include <gtest/gtest.h>

#include <string>

namespace engine::cluster {
namespace {

using namespace std::string_literals;

TEST(MoveFrames, HaveTheBytesOfTheProtocol) {
  EXPECT_EQ(encode(DecommissionRequest{"n2", false}), "\x19\0\0\0\2n2\0"s);
  EXPECT_EQ(encode(DecommissionRequest{"n2", true}), "\x19\0\0\0\2n2\1"s);
  EXPECT_EQ(encode(CompleteMoveRequest{"orders", 258, "n1", "n3"}), "\x1a\0\0\0\6orders\0\0\1\2\0\0\0\2n1\0\0\0\2n3"s);
  EXPECT_EQ(encode(AbortMoveRequest{"orders", -1, "n3"}), "\x1b\0\0\0\6orders\xff\xff\xff\xff\0\0\0\2n3"s);
  EXPECT_EQ(encode(GetAssignmentRequest{"t", 7}), "\x1c\0\0\0\1t\0\0\0\7"s);
  EXPECT_EQ(encode_node_status_request(), "\x21"s);
}

TEST(MoveFrames, ReadWhatTheyWrite) {
  const auto decommission = decode_decommission(encode(DecommissionRequest{"n2", true}));
  ASSERT_TRUE(decommission.ok());
  EXPECT_EQ(decommission->id, "n2");
  EXPECT_TRUE(decommission->cancel);
  const auto complete = decode_complete_move(encode(CompleteMoveRequest{"orders", 2, "n1", "n3"}));
  ASSERT_TRUE(complete.ok());
  EXPECT_EQ(complete->topic, "orders");
  EXPECT_EQ(complete->partition, 2);
  EXPECT_EQ(complete->expected_owner, "n1");
  EXPECT_EQ(complete->target, "n3");
  const auto abort = decode_abort_move(encode(AbortMoveRequest{"orders", -1, ""}));
  ASSERT_TRUE(abort.ok());
  EXPECT_EQ(abort->partition, -1);
  EXPECT_EQ(abort->expected_target, "");
  const auto get = decode_get_assignment(encode(GetAssignmentRequest{"t", 7}));
  ASSERT_TRUE(get.ok());
  EXPECT_EQ(get->partition, 7);
  EXPECT_TRUE(decode_node_status(encode_node_status_request()).ok());
}

TEST(MoveFrames, RefuseAPayloadThatDoesNotEndWhereItsFieldsDo) {
  const std::string whole = encode(CompleteMoveRequest{"orders", 2, "n1", "n3"});
  for (size_t length = 1; length < whole.size(); ++length) {
    const auto cut = decode_complete_move(std::string_view(whole).substr(0, length));
    ASSERT_FALSE(cut.ok()) << length;
    EXPECT_TRUE(cut.error().message.starts_with("truncated ")) << cut.error().message;
  }
  EXPECT_EQ(decode_complete_move(whole + "x").error().message, "trailing node rpc payload data");
  EXPECT_EQ(decode_decommission(encode(DecommissionRequest{"n2", true}) + "\1").error().message, "trailing node rpc payload data");
  EXPECT_EQ(decode_decommission("\x19\0\0\0\2n2\2"s).error().message, "malformed cancel");
  EXPECT_EQ(decode_node_status("\x21x").error().message, "trailing node rpc payload data");
}

TEST(MoveFrames, AreNamedInMetrics) {
  EXPECT_EQ(op_name(25), "decommission_member");
  EXPECT_EQ(op_name(26), "complete_move");
  EXPECT_EQ(op_name(27), "abort_move");
  EXPECT_EQ(op_name(28), "get_assignment");
  EXPECT_EQ(op_name(33), "node_status");
}

}  // namespace
}  // namespace engine::cluster
