#include "engine/topics/json.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/topics/topic_json.h"
#include "tests/support/topics.h"

namespace {

using namespace engine;
using json::Value;

TEST(Json, ReadsEveryKindOfValue) {
  auto value = json::parse(R"( {"n":null,"b":true,"i":-12,"t":"a\u00e4\n","l":[1,[],{}],"o":{"x":1}} )");
  ASSERT_TRUE(value.ok());
  EXPECT_TRUE(value->find("n")->is(Value::Kind::null));
  EXPECT_TRUE(value->find("b")->boolean);
  EXPECT_EQ(value->find("i")->integer, -12);
  EXPECT_EQ(value->find("t")->text, "a\xc3\xa4\n");
  EXPECT_EQ(value->find("l")->array.size(), 3u);
  EXPECT_EQ(value->find("o")->find("x")->integer, 1);
  EXPECT_EQ(value->find("missing"), nullptr);
}

TEST(Json, NumbersAreExactOrKeptAsText) {
  auto kind = [](const char* text) { return json::parse(text)->kind; };
  EXPECT_EQ(json::parse("9223372036854775807")->integer, INT64_MAX);
  EXPECT_EQ(json::parse("-9223372036854775808")->integer, INT64_MIN);
  EXPECT_EQ(kind("9223372036854775808"), Value::Kind::number);
  EXPECT_EQ(kind("123456789012345678901234567890"), Value::Kind::number);
  EXPECT_EQ(kind("1.0"), Value::Kind::number);
  EXPECT_EQ(kind("1e3"), Value::Kind::number);
  EXPECT_EQ(json::parse("0.10")->text, "0.10");
}

TEST(Json, TheLastOfEqualNamesCounts) { EXPECT_EQ(json::parse(R"({"a":1,"a":{"b":2}})")->find("a")->find("b")->integer, 2); }

TEST(Json, RefusesWhatIsNoSingleValue) {
  for (const char* text : {"", " ", "{", "{}x", "{} {}", "[1,]", "{'a':1}", "nul", "01", "+1", "\"\xff\"", "\"\xed\xa0\x80\"",
                           "\"a\nb\"", "\xef\xbb\xbf{}", "{\"a\"}", "[1 2]", "NaN"}) {
    auto value = json::parse(text);
    EXPECT_FALSE(value.ok()) << text;
    if (!value.ok()) {
      EXPECT_EQ(value.error().kind, io::ErrorKind::invalid);
      EXPECT_NE(value.error().message.find("invalid JSON at byte"), std::string::npos) << value.error().message;
    }
  }
}

TEST(Json, DepthIsBounded) {
  EXPECT_TRUE(json::parse(std::string(64, '[') + std::string(64, ']')).ok());
  EXPECT_FALSE(json::parse(std::string(65, '[') + std::string(65, ']')).ok());
  EXPECT_FALSE(json::parse(std::string(1'000'000, '[')).ok());
}

TEST(Json, WritesWhatItReads) {
  json::Writer out;
  out.begin_object().key("a\"\\").string("\n\x01 \xc3\xa4 \x7f").key("l").begin_array().integer(-1).boolean(false).end_array();
  out.key("o").begin_object().end_object().end_object();
  EXPECT_EQ(out.text(), "{\"a\\\"\\\\\":\"\\n\\u0001 \xc3\xa4 \\u007f\",\"l\":[-1,false],\"o\":{}}");
  EXPECT_TRUE(json::parse(out.text()).ok());
}

TEST(Json, WritesValidUtf8WhateverItIsGiven) {
  for (const char* text : {"\xff", "a\xc3", "\xe2\x82", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xc0\x80", "\xf0\x9f\x98\x80"}) {
    json::Writer out;
    out.string(text);
    EXPECT_TRUE(json::parse(out.text()).ok()) << out.text();
  }
}

TEST(TopicJson, ShowsFieldsInOrderAndLeavesEmptyOnesOut) {
  EXPECT_EQ(topics::topic_json(tests::make_topic("a"), false),
            R"({"name":"a","id":"00112233445566aa","partitions":3,"retention_ms":604800000,"visibility_timeout_ms":30000,)"
            R"("max_in_flight_per_partition":1024,"max_acked_ahead_per_partition":1024,"created_at":1700000000})");
  EXPECT_NE(topics::topic_json(tests::make_topic("a"), true).find(R"("created_at":1700000000,"role":"standalone"})"),
            std::string::npos);
}

TEST(TopicJson, ReadsBackWhatItWrites) {
  metastore::Topic topic = tests::make_topic("a");
  topic.owner = "ann";
  topic.role = metastore::Role::child;
  topic.children = {"x", "y"};
  topic.parent = "p";
  topic.attach_epoch = "e";
  topic.fanout_delay_ms = 5;
  topic.attach_offsets = {1, 2};
  EXPECT_EQ(topics::parse_topic_json(topics::topic_json(topic, true)), topic);
  EXPECT_EQ(topics::parse_topic_json(topics::topic_detail_json(topic, 0, "", {})), topic);
  auto page = topics::parse_topic_list_json(topics::topic_list_json({&topic, &topic}, "a"));
  ASSERT_TRUE(page.has_value());
  EXPECT_EQ(page->topics, (std::vector<metastore::Topic>{topic, topic}));
  EXPECT_EQ(page->next_page_token, "a");
  for (const char* text : {"", "[]", "{}", R"({"name":1})", R"({"name":"a","role":"king"})", R"({"name":"a","partitions":-1})"}) {
    EXPECT_FALSE(topics::parse_topic_json(text).has_value()) << text;
  }
}

TEST(TopicJson, TheDetailHasTheRowsAndTheLatestSchema) {
  const std::vector<topics::PartitionRow> rows{{0, "n1", ""}, {1, "n2", "dead"}, {2, "", "unassigned"}};
  auto detail = json::parse(topics::topic_detail_json(tests::make_topic("a"), 2, R"({"type":"object"})", rows));
  ASSERT_TRUE(detail.ok());
  EXPECT_EQ(detail->find("schema_version")->integer, 2);
  EXPECT_EQ(detail->find("schema")->find("type")->text, "object");
  const auto& shown = detail->find("partition_stats")->array;
  ASSERT_EQ(shown.size(), 3u);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(shown[i].find("index")->integer, static_cast<int64_t>(i));
    EXPECT_EQ(shown[i].find("owner_node")->text, rows[i].owner);
    EXPECT_EQ(shown[i].find("status")->text, rows[i].liveness.empty() ? "ok" : "owner_unavailable");
    EXPECT_EQ(shown[i].find("owner_liveness") == nullptr, rows[i].liveness.empty());
  }
  EXPECT_TRUE(detail->find("partial")->boolean);
  auto whole = json::parse(topics::topic_detail_json(tests::make_topic("a"), 0, "", {{0, "n1", ""}}));
  EXPECT_EQ(whole->find("schema_version")->integer, 0);
  EXPECT_EQ(whole->find("schema"), nullptr);
  EXPECT_EQ(whole->find("partial"), nullptr);
}

}  // namespace
