// What entries carry besides records: JSON compared as values, printable text, and bytes that share what they must not.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/metastore/commands.h"
#include "engine/metastore/entries_generated.h"
#include "engine/metastore/json_value.h"
#include "engine/metastore/printable.h"
#include "engine/metastore/records.h"
#include "engine/metastore/records_reader.h"
#include "io/fiber.h"
#include "tests/support/memory_metastore.h"

namespace {

using namespace engine::metastore;

// ---- JSON ------------------------------------------------------------------------------------------------------------------

TEST(JsonValue, SpellingDoesNotMatter) {
  const std::vector<std::pair<std::string, std::string>> same = {
      {"1", "1.0"},
      {"1", "10e-1"},
      {"100", "1E+2"},
      {"-0.0", "0"},
      {"0", "0e999999999999999999999"},
      {"0.5", "50e-2"},
      {"12345678901234567890123", "1.2345678901234567890123e22"},
      {"1e1000000000000000000000", "10e999999999999999999999"},
      {"0.1e-999999999999999999999", "1e-1000000000000000000000"},
      {"1e000000000000000000000001", "10"},
      {R"("A")", R"("\u0041")"},
      {R"("/")", R"("\/")"},
      {R"("\u000a")", R"("\n")"},
      {"\"\xf0\x9f\x98\x80\"", R"("\ud83d\ude00")"},
      {R"("\"\\")", R"("\u0022\u005c")"},
      {R"({"a":1,"b":2})", "{ \"b\" :\t2 ,\r\n \"a\" : 1 }"},
      {R"({"a":1,"a":2})", R"({"a":2})"},
      {R"({"a":{"y":1,"x":[1,2]}})", R"({"a":{"x":[1.0,2],"y":1}})"},
      {R"({"\u0061":1,"a":2})", R"({"a":2})"},
      {"[1,[2]]", " [ 1.0 , [ 2 ] ] "},
      {"{}", "{ }"},
      {"no json", "no json"},
  };
  for (const auto& [one, other] : same) {
    EXPECT_TRUE(is_same_json(one, other)) << one << " and " << other;
    EXPECT_TRUE(is_same_json(other, one));
  }
}

TEST(JsonValue, NoDigitIsLostAndNoValueIsTakenForAnother) {
  const std::vector<std::pair<std::string, std::string>> different = {
      {"0.1", "0.10000000000000000001"},
      {"9007199254740993", "9007199254740992"},
      {"1e1000000000000000000000", "1e1000000000000000000001"},
      {"1e10", "1e11"},
      {"1e-1", "1e1"},
      {"1", "-1"},
      {"1", R"("1")"},
      {"null", "false"},
      {"[1,2]", "[2,1]"},
      {"[]", "{}"},
      {"[[]]", "[]"},
      {R"({"a":1})", R"({"a":1,"b":null})"},
      {R"({"a":1,"b":2})", R"({"a":2,"b":1})"},
      {R"("a")", R"("A")"},
      {R"("\ud800")", R"("\ud801")"},
      {R"("a,b")", R"("a","b")"},
      {R"(["a","b"])", R"(["a\",\"b"])"},
      {"no json", "no  json"},
  };
  for (const auto& [one, other] : different) {
    EXPECT_FALSE(is_same_json(one, other)) << one << " and " << other;
  }
}

TEST(JsonValue, RefusesWhatIsNoJson) {
  for (const std::string text :
       {"", " ", "01", "1.", ".5", "+1", "1e", "1e+", "-", "[1,]", "[1", "[,1]", "{\"a\"}", "{a:1}", "{\"a\":1,}", "{\"a\":1", "\"\x01\"",
        "\"\xff\"", "tru", "nulll", "1 2", "\"", "\"\\x\"", "\"\\u12\"", "\"\\ud83d\\u12\"", "nan", "'a'", "\"\\", "[1]]"}) {
    EXPECT_EQ(canonical_json(text), std::nullopt) << text;
  }
  EXPECT_EQ(canonical_json(std::string("1\0", 2)), std::nullopt);
}

TEST(JsonValue, NestingIsBounded) {
  const std::string open(kJsonDepthMax, '[');
  const std::string close(kJsonDepthMax, ']');
  EXPECT_TRUE(canonical_json(open + close).has_value());
  EXPECT_FALSE(canonical_json("[" + open + close + "]").has_value());
  EXPECT_FALSE(canonical_json(std::string(1'000'000, '[')).has_value());
}

// ---- Text ------------------------------------------------------------------------------------------------------------------

TEST(Printable, IsWellFormedUtf8WithoutControls) {
  for (const std::string text : {"", "abc ~", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    EXPECT_TRUE(is_printable(text)) << text;
  }
  for (const std::string text : {"\n", "a\x7f", "\x1b[0m", "\xc2\x85", "\xc3", "\xff", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_FALSE(is_printable(text));
  }
  EXPECT_FALSE(is_printable(std::string(1, '\0')));
}

// ---- Bytes that share what they point to -----------------------------------------------------------------------------------

std::string finished_bytes(const flatbuffers::FlatBufferBuilder& builder) {
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

// A topic whose children all are one text, written once.
std::string topic_with_shared_children(size_t count, size_t text_bytes) {
  flatbuffers::FlatBufferBuilder builder;
  const auto text = builder.CreateString(std::string(text_bytes, 'x'));
  const auto children = builder.CreateVector(std::vector<flatbuffers::Offset<flatbuffers::String>>(count, text));
  fb::TopicBuilder topic(builder);
  topic.add_children(children);
  builder.Finish(topic.Finish());
  return finished_bytes(builder);
}

TEST(SharedBytes, ATextThatStandsForManyIsRefused) {
  EXPECT_TRUE(decode_topic(topic_with_shared_children(1, 1000)).has_value());
  EXPECT_FALSE(decode_topic(topic_with_shared_children(2, 1000)).has_value());
  EXPECT_FALSE(decode_topic(topic_with_shared_children(1'000'000, 1'000'000)).has_value());
}

TEST(SharedBytes, ATableThatStandsForManyIsRefused) {
  flatbuffers::FlatBufferBuilder builder;
  const auto action = builder.CreateString("produce");
  const auto grant = fb::CreateGrant(builder, action);
  const auto grants = builder.CreateVector(std::vector<flatbuffers::Offset<fb::Grant>>(50'000, grant));
  fb::UserBuilder user(builder);
  user.add_grants(grants);
  builder.Finish(user.Finish());
  EXPECT_FALSE(decode_user(finished_bytes(builder)).has_value());
}

TEST(SharedBytes, OneTextInTwoFieldsIsRefused) {
  flatbuffers::FlatBufferBuilder builder;
  const auto text = builder.CreateString(std::string(1000, 'x'));
  builder.Finish(fb::CreateAssignment(builder, text, 1, text, text));
  EXPECT_FALSE(decode_assignment(finished_bytes(builder)).has_value());
}

TEST(SharedBytes, RecordsWithManyDistinctTextsAreTaken) {
  User user{"ann", "hash", {}, false, 1, 2};
  for (int i = 0; i < 1000; ++i) {
    user.grants.push_back({"", {"", "a" + std::to_string(i), ""}});
  }
  EXPECT_EQ(decode_user(encode_user(user)), user);
  Topic topic;
  topic.children.assign(1000, "");
  topic.attach_offsets.assign(1000, -1);
  EXPECT_EQ(decode_topic(encode_topic(topic)), topic);
}

TEST(SharedBytes, AMemberStatusThatDoesNotExistIsRefused) {
  Member member;
  member.status = static_cast<MemberStatus>(2);
  EXPECT_FALSE(decode_member(encode_member(member)).has_value());
}

// ---- Typed reads -----------------------------------------------------------------------------------------------------------

TEST(RecordsReader, FindsAndListsEveryRecord) {
  tests::MemoryMetastore store;
  Remote remote;
  remote.name = "far";
  remote.url = "https://far";
  remote.username = "ann";
  remote.credential = "sealed";
  remote.fingerprint = "key1";
  const std::vector<Command> commands = {
      CreateTopic{tests::make_topic("t")},
      PutSchema{"t", 1, "one"},
      CreateUser{{"ann", "hash", {}, false, 1, 2}},
      RegisterMember{{"n1", "a", "b", MemberStatus::alive, 5, false, "3.2.0", 37}},
      RemoveMember{"n0", 9},
      CreateRemote{remote, "salt", 7, "ann", "r"},
  };
  for (const Command& command : commands) {
    ASSERT_EQ(decode_answer(store.apply(encode_command(command))), Answer{});
  }
  for (int32_t partition : {10, 2, 0}) {
    store.apply(encode_command(AssignPartition{{"t", partition, "n1", ""}}));
  }
  store.apply(encode_command(AssignPartition{{"t:1", 5, "n1", ""}}));
  for (int64_t version = 2; version <= 11; ++version) {
    store.apply(encode_command(PutSchema{"t", version, std::to_string(version)}));
  }

  EXPECT_EQ((*get_assignment(store, "t", 10))->owner_id, "n1");
  EXPECT_EQ(*get_assignment(store, "t", 1), std::nullopt);
  const auto assignments = list_assignments(store, "t");
  ASSERT_EQ(assignments->size(), 3u);
  EXPECT_EQ((*assignments)[1].partition, 2);
  EXPECT_EQ((*assignments)[2].partition, 10);
  EXPECT_EQ(list_all_assignments(store, "", 3)->size(), 3u);
  EXPECT_EQ(list_all_assignments(store, (*list_all_assignments(store, "", 3))[2].key, 3)->size(), 1u);
  EXPECT_EQ((*get_member(store, "n1"))->build, "3.2.0");
  EXPECT_EQ(list_members(store)->size(), 1u);
  EXPECT_EQ((*get_tombstone(store, "n0"))->removed_at, 9);
  EXPECT_EQ(*list_removed_members(store), std::vector<std::string>{"n0"});
  EXPECT_EQ((*get_user(store, "ann"))->password_hash, "hash");
  EXPECT_EQ(list_users(store)->size(), 1u);
  EXPECT_EQ((*get_remote(store, "far"))->revision, 1u);
  EXPECT_EQ(*get_remote(store, "_salt"), std::nullopt);
  EXPECT_EQ(list_remotes(store)->size(), 1u);
  EXPECT_EQ(*get_salt(store), "salt");
  EXPECT_EQ(*get_seals(store, "key1"), 1u);
  EXPECT_EQ(*get_seals(store, "key2"), 0u);
  EXPECT_EQ(get_schema_head(store, "t")->versions, 11);
  EXPECT_EQ(*get_schema(store, "t", 10), "10");
  EXPECT_EQ(*get_schema(store, "t", 12), std::nullopt);
  const auto schemas = list_schemas(store, "t");
  ASSERT_EQ(schemas->size(), 11u);
  EXPECT_EQ((*schemas)[9], "10");
  EXPECT_EQ(*get_cluster_schema_bytes(store), 3u + 8u + 4u);

  store.read_error = io::fail(io::ErrorKind::busy, "closed");
  EXPECT_EQ(get_user(store, "ann").error().kind, io::ErrorKind::busy);
  EXPECT_EQ(list_users(store).error().kind, io::ErrorKind::busy);
}

}  // namespace
