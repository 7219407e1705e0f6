#include "engine/cluster/node_frames.h"

#include <gtest/gtest.h>

#include "io/random.h"

namespace engine::cluster {
namespace {

std::string frame(FrameType type, uint64_t id, std::string_view payload) {
  std::string out;
  append_frame(out, type, id, payload);
  return out;
}

TEST(NodeFrames, AFrameHasTheBytesOfTheProtocol) {
  const std::string bytes = frame(FrameType::node_request, 0x0102030405060708, "ab");
  const std::string expected("NRS1\x01\x08\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x00\x02"
                             "ab",
                             22);
  EXPECT_EQ(bytes, expected);
}

TEST(NodeFrames, AHeaderComesBackAsItWasWritten) {
  for (FrameType type : {FrameType::error, FrameType::ping, FrameType::pong, FrameType::node_request, FrameType::node_reply,
                         FrameType::auth, FrameType::cancel}) {
    const io::Result<FrameHeader> header = decode_frame_header(frame(type, 77, "abc"));
    ASSERT_TRUE(header.ok());
    EXPECT_EQ(header->type, type);
    EXPECT_EQ(header->request_id, 77u);
    EXPECT_EQ(header->payload_bytes, 3u);
  }
}

TEST(NodeFrames, ReservedBytesAreNotRead) {
  std::string bytes = frame(FrameType::ping, 1, "");
  bytes[6] = '\x7f';
  bytes[7] = '\x01';
  EXPECT_TRUE(decode_frame_header(bytes).ok());
}

TEST(NodeFrames, WrongMagicVersionTypeAndLengthAreRefused) {
  const std::string good = frame(FrameType::ping, 1, "");
  for (const auto& [at, value] : {std::pair<size_t, char>{0, 'X'}, {3, '2'}, {4, 2}, {5, 0}, {5, 1}, {5, 12}}) {
    std::string bad = good;
    bad[at] = value;
    EXPECT_TRUE(decode_frame_header(bad).is(io::ErrorKind::corrupt)) << at;
  }
  std::string hostile = good;
  hostile[16] = '\xff';
  EXPECT_TRUE(decode_frame_header(hostile).is(io::ErrorKind::corrupt));
  std::string largest = good;
  largest[16] = '\x01';  // 16 MiB exactly
  EXPECT_TRUE(decode_frame_header(largest).ok());
  largest[19] = '\x01';
  EXPECT_TRUE(decode_frame_header(largest).is(io::ErrorKind::corrupt));
}

TEST(NodeFrames, RequestFieldsStandInTheirOrder) {
  EXPECT_EQ(encode(CreateTopicRequest{"t", "{}", std::nullopt}), std::string("\x04\x00\x00\x00\x01t\x00\x00\x00\x02{}", 12));
  EXPECT_EQ(encode(GetTopicRequest{"t"}), std::string("\x14\x00\x00\x00\x01t", 6));
  EXPECT_EQ(encode_applied_index_request(), "\x1d");
  EXPECT_EQ(encode(DeleteTopicRequest{"t", std::nullopt, std::nullopt}), std::string("\x06\x00\x00\x00\x01t", 6));
}

TEST(NodeFrames, OptionalTrailingFieldsAreWrittenOnlyWhenSet) {
  const DeleteTopicRequest with_actor{"orders", std::nullopt, "alice"};
  const io::Result<DeleteTopicRequest> read = decode_delete_topic(encode(with_actor));
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read->id.has_value());
  EXPECT_EQ(read->actor, "alice");
  const io::Result<CreateTopicRequest> plain = decode_create_topic(encode(CreateTopicRequest{"a", "b", std::nullopt}));
  ASSERT_TRUE(plain.ok());
  EXPECT_FALSE(plain->actor.has_value());
}

TEST(NodeFrames, RequestsComeBackAsTheyWereSent) {
  io::RandomStream random(7);
  for (int round = 0; round < 200; ++round) {
    const auto text = [&] {
      std::string out(random.below(40), '\0');
      for (char& c : out) {
        c = static_cast<char>(random.below(256));
      }
      return out;
    };
    const AlterTopicRequest sent{text(), text(), round % 2 == 0 ? std::optional<std::string>(text()) : std::nullopt};
    const io::Result<AlterTopicRequest> read = decode_alter_topic(encode(sent));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->topic, sent.topic);
    EXPECT_EQ(read->body, sent.body);
    EXPECT_EQ(read->actor, sent.actor);
  }
}

TEST(NodeFrames, LeftoverBytesAreNamedAsTrailingData) {
  const io::Result<GetTopicRequest> read = decode_get_topic(encode(GetTopicRequest{"t"}) + "x");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message, "trailing node rpc payload data");
  EXPECT_FALSE(decode_applied_index("\x1d!").ok());
  EXPECT_FALSE(decode_create_topic(encode(CreateTopicRequest{"t", "b", "actor"}) + std::string(1, '\0')).ok());
}

TEST(NodeFrames, EveryCutOfARequestIsRefusedOrReadsAsShorterOptionals) {
  const std::string whole = encode(CreateTopicRequest{"topic", "body", std::nullopt});
  for (size_t length = 1; length < whole.size(); ++length) {
    EXPECT_FALSE(decode_create_topic(whole.substr(0, length)).ok()) << length;
  }
}

TEST(NodeFrames, AHostileFieldLengthIsRefused) {
  EXPECT_FALSE(decode_get_topic(std::string("\x14\xff\xff\xff\xff"
                                            "abc",
                                            8))
                   .ok());
}

TEST(NodeFrames, AReplyComesBackAsItWasSentAndCutsAreRefused) {
  const NodeReply sent{409, "application/json", "{\"error\":\"topic already exists\"}\n"};
  const std::string bytes = encode(sent);
  const io::Result<NodeReply> read = decode_reply(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->status, 409);
  EXPECT_EQ(read->content_type, sent.content_type);
  EXPECT_EQ(read->body, sent.body);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_reply(std::string_view(bytes).substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(decode_reply(bytes + "x").ok());
}

TEST(NodeFrames, ErrorTextsAreJsonWhateverTheyHold) {
  const NodeReply reply = error_reply(400, "a \"quote\"\nand \xff");
  EXPECT_EQ(reply.body, "{\"error\":\"a \\\"quote\\\"\\nand \xef\xbf\xbd\"}\n");
  EXPECT_EQ(decode_error_text(encode_error_text("gone")), "gone");
  EXPECT_EQ(decode_error_text("x"), "");
}

}  // namespace
}  // namespace engine::cluster
