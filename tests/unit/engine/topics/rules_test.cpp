// Every rule for request bodies, as tables of body and refusal.

#include "engine/topics/rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using namespace engine;
using namespace engine::topics;

struct Refusal {
  std::string body;
  int status;
  std::string text;  // a part of the error
};

template <typename T>
void expect_refusal(const Checked<T>& checked, const Refusal& row) {
  const Reply* reply = std::get_if<Reply>(&checked);
  ASSERT_NE(reply, nullptr) << row.body << " was accepted";
  EXPECT_EQ(reply->status, row.status) << row.body << " -> " << reply->body;
  EXPECT_NE(reply->body.find(row.text), std::string::npos) << row.body << " -> " << reply->body;
  EXPECT_TRUE(reply->body.starts_with("{\"error\":\"") && reply->body.ends_with("\"}\n")) << reply->body;
}

CreateRequest create(const std::string& body, const Limits& limits = {}) {
  Checked<CreateRequest> checked = parse_create(body, limits);
  const Reply* reply = std::get_if<Reply>(&checked);
  EXPECT_EQ(reply, nullptr) << body << " -> " << (reply != nullptr ? reply->body : "");
  return reply == nullptr ? std::get<CreateRequest>(checked) : CreateRequest{};
}

AlterRequest alter(const std::string& body) {
  Checked<AlterRequest> checked = parse_alter(body, {});
  const Reply* reply = std::get_if<Reply>(&checked);
  EXPECT_EQ(reply, nullptr) << body << " -> " << (reply != nullptr ? reply->body : "");
  return reply == nullptr ? std::get<AlterRequest>(checked) : AlterRequest{};
}

TEST(CreateRules, FillsInDefaults) {
  for (const char* body : {R"({"name":"a"})", R"({"name":"a","partitions":0,"visibility_timeout_ms":0,
       "max_in_flight_per_partition":0,"max_acked_ahead_per_partition":0,"fanout_delay_ms":0,"parent":"","owner":"eve"})",
                           R"({"name":"a","partitions":null,"retention_ms":null,"parent":null})"}) {
    CreateRequest request = create(body);
    EXPECT_EQ(request.name, "a");
    EXPECT_EQ(request.partitions, 3);
    EXPECT_EQ(request.retention_ms, 604'800'000);
    EXPECT_EQ(request.visibility_timeout_ms, 30'000);
    EXPECT_EQ(request.max_in_flight, 1024);
    EXPECT_EQ(request.max_acked_ahead, 1024);
  }
}

TEST(CreateRules, TakesWhatIsGivenAndTheConfigurationsDefaults) {
  CreateRequest request = create(R"({"name":"A-z_0.9","partitions":108,"retention_ms":3600000,"visibility_timeout_ms":1,
      "max_in_flight_per_partition":7,"max_acked_ahead_per_partition":9223372036854775807})");
  EXPECT_EQ(request.partitions, 108);
  EXPECT_EQ(request.retention_ms, 3'600'000);
  EXPECT_EQ(request.visibility_timeout_ms, 1);
  EXPECT_EQ(request.max_in_flight, 7);
  EXPECT_EQ(request.max_acked_ahead, INT64_MAX);
  EXPECT_EQ(create(R"({"name":"a","retention_ms":0})").retention_ms, 0) << "0 is for ever, not the default";
  Limits limits{.default_partitions = 4, .max_partitions = 8, .default_retention_ms = 0};
  EXPECT_EQ(create(R"({"name":"a"})", limits).partitions, 4);
  EXPECT_EQ(create(R"({"name":"a"})", limits).retention_ms, 0);
  expect_refusal(parse_create(R"({"name":"a","partitions":9})", limits), {"9 of 8", 400, "partitions must be between 3 and 8"});
}

TEST(CreateRules, NamesOfTheAllowedCharactersAndLength) {
  EXPECT_EQ(create(R"({"name":")" + std::string(200, 'x') + "\"}").name.size(), 200u);
  EXPECT_EQ(create(R"({"name":"..."})").name, "...");
  for (const std::string& name : {std::string(), std::string(201, 'x'), std::string("."), std::string(".."), std::string("a b"),
                                  std::string("a/b"), std::string("a:b"), std::string("\xc3\xa4")}) {
    expect_refusal(parse_create("{\"name\":\"" + name + "\"}", {}), {name, 400, "invalid argument: name must be 1 to 200"});
  }
}

TEST(CreateRules, RefusalsNameFieldAndBound) {
  const std::vector<Refusal> rows = {
      {"", 400, "invalid request body: invalid JSON"},
      {"{", 400, "invalid request body: invalid JSON"},
      {"[]", 400, "must be a JSON object, not an array"},
      {"null", 400, "must be a JSON object, not null"},
      {R"({"name":"a"} {})", 400, "invalid JSON at byte"},
      {R"({"name":"a","colour":1})", 400, "unknown field \\\"colour\\\""},
      {R"({"Name":"a"})", 400, "unknown field \\\"Name\\\""},
      {R"({"name":"a","schema_base_version":1})", 400, "unknown field"},
      {"{}", 400, "invalid argument: name"},
      {R"({"name":null})", 400, "invalid argument: name"},
      {R"({"name":5})", 400, "name must be a string, not a number"},
      {R"({"name":"a","partitions":-1})", 400, "partitions must be between 3 and 108"},
      {R"({"name":"a","partitions":2})", 400, "partitions must be between 3 and 108"},
      {R"({"name":"a","partitions":109})", 400, "partitions must be between 3 and 108"},
      {R"({"name":"a","partitions":4294967299})", 400, "partitions must be between 3 and 108"},
      {R"({"name":"a","partitions":3.0})", 400, "partitions must be an integer of 64 bits, not 3.0"},
      {R"({"name":"a","partitions":1e1})", 400, "partitions must be an integer"},
      {R"({"name":"a","partitions":"3"})", 400, "partitions must be an integer, not a string"},
      {R"({"name":"a","partitions":true})", 400, "partitions must be an integer, not a boolean"},
      {R"({"name":"a","retention_ms":-1})", 400, "retention_ms must be 0 (for ever) or at least 3600000"},
      {R"({"name":"a","retention_ms":3599999})", 400, "retention_ms"},
      {R"({"name":"a","retention_ms":9223372036854775808})", 400, "retention_ms must be an integer of 64 bits"},
      {R"({"name":"a","visibility_timeout_ms":-1})", 400, "visibility_timeout_ms must not be negative"},
      {R"({"name":"a","max_in_flight_per_partition":-1})", 400, "max_in_flight_per_partition must not be negative"},
      {R"({"name":"a","max_acked_ahead_per_partition":-5})", 400, "max_acked_ahead_per_partition must not be negative"},
      {R"({"name":"a","fanout_delay_ms":-1})", 400, "fanout_delay_ms must be between 0 and 31536000000"},
      {R"({"name":"a","parent":"p","fanout_delay_ms":31536000001})", 400, "fanout_delay_ms must be between"},
      {R"({"name":"a","fanout_delay_ms":5})", 400, "fanout_delay_ms needs a parent"},
      {R"({"name":"a","parent":7})", 400, "parent must be a string"},
      {R"({"name":"a","owner":[]})", 400, "owner must be a string, not an array"},
      {R"({"name":"a","schema":null})", 400, "schema must be a JSON object or true"},
      {R"({"name":"a","schema":false})", 400, "schema must be a JSON object or true"},
      {R"({"name":"a","schema":"x"})", 400, "schema must be a JSON object or true"},
      {R"({"name":"a","schema":{"type":"cow"}})", 400, "invalid argument: schema: #: type must be"},
      {R"({"name":"a","parent":"a"})", 400, "a topic cannot be its own parent"},
      {R"({"name":"a","parent":"p","partitions":1})", 400, "partitions"},
  };
  for (const Refusal& row : rows) {
    expect_refusal(parse_create(row.body, {}), row);
  }
}

TEST(AlterRules, TakesAnyOfItsFields) {
  EXPECT_EQ(alter(R"({"retention_ms":0})").retention_ms, 0);
  EXPECT_EQ(alter(R"({"retention_ms":3600000})").retention_ms, 3'600'000);
  EXPECT_EQ(alter(R"({"max_in_flight_per_partition":0})").max_in_flight, 1024) << "0 sets the default";
  EXPECT_EQ(alter(R"({"max_acked_ahead_per_partition":5})").max_acked_ahead, 5);
  AlterRequest request = alter(R"({"partitions":7,"retention_ms":null})");
  EXPECT_EQ(request.partitions, 7);
  EXPECT_FALSE(request.retention_ms || request.max_in_flight || request.max_acked_ahead);
}

TEST(AlterRules, RefusalsNameFieldAndBound) {
  const std::vector<Refusal> rows = {
      {"not json", 400, "invalid JSON"},
      {"{}", 400, "at least one of retention_ms"},
      {R"({"retention_ms":null})", 400, "at least one of"},
      {R"({"name":"b"})", 400, "unknown field \\\"name\\\""},
      {R"({"visibility_timeout_ms":5})", 400, "unknown field"},
      {R"({"retention_ms":-1})", 400, "retention_ms must be 0"},
      {R"({"retention_ms":1})", 400, "retention_ms must be 0"},
      {R"({"retention_ms":"1h"})", 400, "retention_ms must be an integer, not a string"},
      {R"({"max_in_flight_per_partition":-1})", 400, "max_in_flight_per_partition must not be negative"},
      {R"({"max_acked_ahead_per_partition":-1})", 400, "max_acked_ahead_per_partition must not be negative"},
      {R"({"partitions":0})", 400, "partitions must be between 3 and 108"},
      {R"({"partitions":109})", 400, "partitions must be between 3 and 108"},
      {R"({"partitions":9223372036854775807})", 400, "partitions must be between"},
      {R"({"retention_ms":1,"max_in_flight_per_partition":-1,"partitions":1})", 400, "retention_ms"},
      {R"({"max_in_flight_per_partition":-1,"partitions":1})", 400, "max_in_flight_per_partition"},
      {R"({"schema":null})", 400, "schema must be a JSON object or true"},
      {R"({"schema":7})", 400, "schema must be a JSON object or true"},
      {R"({"schema":{"$ref":"http://x"}})", 400, "invalid argument: schema: #: $ref must be a pointer"},
      {R"({"schema_base_version":1})", 400, "schema_base_version needs a schema"},
      {R"({"schema":true,"schema_base_version":-1})", 400, "schema_base_version must not be negative"},
  };
  for (const Refusal& row : rows) {
    expect_refusal(parse_alter(row.body, {}), row);
  }
}

TEST(CreateRules, ASchemaIsKeptAsWrittenWithoutItsWhiteSpace) {
  EXPECT_EQ(create(R"({"name":"a"})").schema, "");
  EXPECT_EQ(create(R"({"schema": { "type" : "object", "minimum": 1.0 , "title":"a \" b"} ,"name":"a"})").schema,
            R"({"type":"object","minimum":1.0,"title":"a \" b"})");
  EXPECT_EQ(create(R"({"schema":{"minimum":1},"name":"a","schema":true})").schema, "true") << "of a name given twice the last counts";
  EXPECT_EQ(alter(R"({"schema":{},"schema_base_version":0})").schema, "{}");
  EXPECT_EQ(alter(R"({"schema":{},"schema_base_version":7})").schema_base_version, 7);
}

TEST(CreateRules, AParentGivesThePartitionsThatAreNotAskedFor) {
  EXPECT_EQ(create(R"({"name":"a","parent":"p"})").partitions, 0);
  EXPECT_EQ(create(R"({"name":"a","parent":"p","partitions":5,"fanout_delay_ms":7})").partitions, 5);
  EXPECT_EQ(create(R"({"name":"a","parent":"p","fanout_delay_ms":7})").fanout_delay_ms, 7);
}

TEST(AttachRules, RefusalsNameFieldAndBound) {
  const auto attach = [](const std::string& body) { return parse_attach("p", body); };
  EXPECT_EQ(std::get<AttachRequest>(attach(R"({"child":"c","delay_ms":31536000000})")).delay_ms, kFanoutDelayMaxMs);
  EXPECT_EQ(std::get<AttachRequest>(attach("{\"child\":\"" + std::string(230, 'c') + "\"}")).child.size(), 230u);
  const std::vector<Refusal> rows = {
      {"", 400, "invalid JSON"},
      {"{}", 400, "child must be given"},
      {R"({"child":"p"})", 400, "a topic cannot be its own child"},
      {R"({"child":7})", 400, "child must be a string"},
      {"{\"child\":\"" + std::string(231, 'c') + "\"}", 400, "child must be at most 230 bytes"},
      {R"({"child":"c","delay_ms":-1})", 400, "delay_ms must be between 0 and 31536000000"},
      {R"({"child":"c","delay_ms":31536000001})", 400, "delay_ms must be between 0 and 31536000000"},
      {R"({"child":"c","delay":1})", 400, "unknown field \\\"delay\\\""},
      {R"({"child":"c","remote":"r"})", 501, "a remote child is not supported by this release"},
  };
  for (const Refusal& row : rows) {
    expect_refusal(attach(row.body), row);
  }
}

TEST(ListRules, LimitsAreClampedAndChecked) {
  auto limit = [](std::optional<std::string> text) { return std::get<ListRequest>(parse_list(text, {})).limit; };
  EXPECT_EQ(limit({}), 100u);
  EXPECT_EQ(limit(""), 100u);
  EXPECT_EQ(limit("1"), 1u);
  EXPECT_EQ(limit("1000"), 1000u);
  EXPECT_EQ(limit("999999"), 1000u);
  for (const char* text : {"0", "-1", "ten", "1.5", "5 ", " 5", "99999999999999999999", "0x10"}) {
    expect_refusal(parse_list(text, {}), {text, 400, "limit must be a positive integer"});
  }
  EXPECT_EQ(std::get<ListRequest>(parse_list({}, "abc")).after, "abc");
}

}  // namespace
