#include "engine/metastore/envelope.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/metastore/apply.h"
#include "tests/support/topics.h"

namespace {

using namespace engine::metastore;

Topic full_topic() {
  Topic topic = tests::make_topic("orders", 12);
  topic.owner = "ann";
  topic.role = Role::parent;
  topic.children = {"x", "", "y"};
  topic.parent = "above";
  topic.attach_epoch = "e1";
  topic.fanout_delay_ms = -5;
  topic.attach_offsets = {0, -1, INT64_MAX};
  topic.remote = RemoteLink{"far", "there", "id", "earliest", 8, true, "why", "who", 123, {{0, {1, 2}}, {7, {}}}, "me"};
  return topic;
}

CommandResult run(std::string_view bytes) {
  MemoryRows rows;
  WriteSet set(rows, 0);
  return apply_command(set, bytes, kNewestEntryType);
}

TEST(Envelope, CommandsCarryTheirTypeAndPayload) {
  Topic topic = full_topic();
  auto create = read_envelope(encode_create_topic(topic));
  ASSERT_TRUE(create.has_value());
  EXPECT_EQ(create->version, 1);
  EXPECT_EQ(create->type, 1u);
  std::string command = encode_create_topic(topic);
  EXPECT_EQ(decode_create_topic(read_envelope(command)->payload), topic);
  command = encode_update_topic(topic);
  EXPECT_EQ(read_envelope(command)->type, 2u);
  EXPECT_EQ(decode_update_topic(read_envelope(command)->payload), topic);
  command = encode_delete_topic("orders");
  EXPECT_EQ(read_envelope(command)->type, 3u);
  EXPECT_EQ(decode_delete_topic(read_envelope(command)->payload), "orders");
}

TEST(Envelope, RecordsKeepEveryFieldAndEqualRecordsHaveEqualBytes) {
  EXPECT_EQ(decode_topic(encode_topic(full_topic())), full_topic());
  EXPECT_EQ(decode_topic(encode_topic(Topic{})), Topic{});
  EXPECT_EQ(encode_topic(*decode_topic(encode_topic(full_topic()))), encode_topic(full_topic()));
}

TEST(Envelope, WhereTheBytesLieDoesNotMatter) {
  std::string command = encode_create_topic(full_topic());
  for (size_t shift = 0; shift < 8; ++shift) {
    std::string moved = std::string(shift, 'x') + command;
    auto envelope = read_envelope(std::string_view(moved).substr(shift));
    EXPECT_EQ(decode_create_topic(envelope->payload), full_topic());
  }
}

TEST(Envelope, BytesWithoutAHeaderAreUndecodable) {
  std::string good = encode_delete_topic("a");
  std::string version_zero = good;
  version_zero[3] = 0;
  for (const std::string& bytes : {std::string(), std::string("NC"), good.substr(0, 7), "XX" + good.substr(2), version_zero}) {
    CommandResult result = run(bytes);
    EXPECT_FALSE(result.is_unknown);
    EXPECT_EQ(result.answer.code, Code::undecodable);
    EXPECT_EQ(result.type, 0u);
  }
}

TEST(Envelope, ANewerVersionOrTypeIsUnknownNotUndecodable) {
  std::string good = encode_delete_topic("a");
  std::string newer_version = good;
  newer_version[3] = 2;
  EXPECT_TRUE(run(newer_version).is_unknown);
  for (uint32_t type : {0u, 38u, 39u, 255u, 256u, 257u, 1u << 24 | 1u}) {
    std::string other = good;
    for (int i = 0; i < 4; ++i) {
      other[4 + i] = static_cast<char>(type >> (24 - 8 * i));
    }
    EXPECT_TRUE(run(other).is_unknown) << type;
    EXPECT_EQ(run(other).type, type);
  }
}

TEST(Envelope, ADamagedPayloadIsUndecodableOrAnotherRecordButNeverAFault) {
  std::string good = encode_create_topic(full_topic());
  for (size_t length = kEnvelopeHeaderBytes; length < good.size(); ++length) {
    EXPECT_FALSE(run(good.substr(0, length)).is_unknown);
  }
  for (size_t at = kEnvelopeHeaderBytes; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = good;
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit);
      EXPECT_FALSE(run(damaged).is_unknown);
    }
  }
}

TEST(Envelope, AnEmptyPayloadIsUndecodable) {
  EXPECT_EQ(run(encode_create_topic(full_topic()).substr(0, kEnvelopeHeaderBytes)).answer.code, Code::undecodable);
}

TEST(Envelope, ARoleThatDoesNotExistIsUndecodable) {
  Topic topic = tests::make_topic("a");
  topic.role = static_cast<Role>(9);
  EXPECT_EQ(run(encode_create_topic(topic)).answer.code, Code::undecodable);
}

TEST(Answer, KeepsCodeAndDetail) {
  Answer answer = refuse(Code::already_exists, "topic a");
  EXPECT_EQ(decode_answer(encode_answer(answer)), answer);
  EXPECT_EQ(answer.text(), "already exists: topic a");
  EXPECT_EQ(decode_answer(encode_answer({})), Answer{});
  EXPECT_FALSE(decode_answer("").has_value());
  EXPECT_FALSE(decode_answer("\xff").has_value());
}

TEST(FoldName, FoldsAsciiLettersOnly) { EXPECT_EQ(fold_name("aZ-9._\xc3\x84"), "az-9._\xc3\x84"); }

}  // namespace
