// The contract of the HTTP API: every row of topics, links, cluster and health (narad/http-api.md sections 3, 4, 6 and 8), each status
// that it names, asked at the leader and at a follower of a cluster of three whole nodes.
//
// What is named but cannot be asked for here stands in the table too, with the reason: what a later part builds answers 501, rights
// come with users, and some refusals need a race or another release that a unit test arranges.

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/topics/json.h"
#include "tests/support/registered_world.h"

namespace {

using namespace engine;
using namespace std::chrono_literals;

// ---- What the documents promise --------------------------------------------------------------------------------------------

struct Endpoint {
  const char* name;
  std::set<int> statuses;
};

const std::vector<Endpoint> kEndpoints = {
    {"POST /v1/topics", {201, 400, 401, 403, 404, 409, 413, 415, 503}},
    {"GET /v1/topics", {200, 400, 401, 500, 503}},
    {"GET /v1/topics/{t}", {200, 400, 401, 403, 404, 503}},
    {"PATCH /v1/topics/{t}", {200, 400, 401, 403, 404, 409, 413, 415, 503}},
    {"DELETE /v1/topics/{t}", {204, 400, 401, 403, 404, 409, 503}},
    {"GET /v1/topics/{t}/schema", {200, 401, 403, 404, 503}},
    {"POST /v1/topics/{p}/children", {200, 400, 401, 403, 404, 409, 415, 501, 503}},
    {"GET /v1/topics/{p}/children", {200, 400, 401, 403, 404, 503}},
    {"DELETE /v1/topics/{p}/children/{c}", {204, 400, 401, 403, 404, 409, 503}},
    {"POST /v1/topics/{p}/children/{c}/pause", {501}},
    {"POST /v1/topics/{p}/children/{c}/resume", {501}},
    {"POST /v1/topics/{p}/children/{c}/skip", {501}},
    {"GET /v1/cluster/members", {200, 400, 401, 403}},
    {"GET /v1/cluster/moves", {200, 400, 401, 403}},
    {"POST /v1/cluster/members/{id}/decommission", {200, 204, 400, 401, 403, 404, 409, 415, 503}},
    {"DELETE /v1/cluster/members/{id}/decommission", {204, 400, 401, 403, 404, 503}},
    {"POST /v1/cluster/moves/{t}/{p}/abort", {202, 400, 401, 403, 404, 409, 415, 503}},
    {"POST /v1/cluster/members/{id}/forget", {200, 400, 401, 403, 404, 409, 415, 501, 503}},
    {"POST /v1/cluster/reencrypt-remotes", {501}},
    {"GET /healthz", {200, 503}},
    {"GET /readyz", {200, 503}},
    {"GET /metrics", {200, 401, 404}},
};

// ---- What is asked -----------------------------------------------------------------------------------------------------------

enum class When {
  whole,   // three nodes, a leader
  alone,   // the one that is asked has lost the two others
  absent,  // not here: `text` says why
};

struct Row {
  const char* endpoint;
  int status;
  When when;
  std::string target;  // "@" becomes a name of the asked node's own
  std::string body;
  std::string text;    // a part of the answer
  bool has_header = true;
};

const std::string kUsers = "users and their rights come with security";

std::vector<Row> topic_rows() {
  const std::string long_body = "{\"name\":\"@\",\"owner\":\"" + std::string((1 << 20) + 1, 'x') + "\"}";
  return {
      {"POST /v1/topics", 201, When::whole, "/v1/topics", R"({"name":"@"})", "\"name\":\"@\""},
      {"POST /v1/topics", 201, When::whole, "/v1/topics", R"({"name":"@p","partitions":4,"schema":{"type":"object"}})", "\"partitions\":4"},
      {"POST /v1/topics", 201, When::whole, "/v1/topics", R"({"name":"@c","parent":"@p","fanout_delay_ms":5})", "\"parent\":\"@p\""},
      {"POST /v1/topics", 201, When::whole, "/v1/topics", R"({"name":"@lone"})", "\"partitions\":3"},
      {"POST /v1/topics", 400, When::whole, "/v1/topics", R"({"name":"a b"})", "invalid argument: name must be"},
      {"POST /v1/topics", 400, When::whole, "/v1/topics", R"({"name":"@x","schema":{"type":"cow"}})", "invalid argument: schema: "},
      {"POST /v1/topics", 400, When::whole, "/v1/topics", R"({"name":"@x","colour":1})", "unknown field"},
      {"POST /v1/topics", 404, When::whole, "/v1/topics", R"({"name":"@x","parent":"nowhere"})", "topic not found"},
      {"POST /v1/topics", 409, When::whole, "/v1/topics", R"({"name":"@"})", "topic already exists: @"},
      {"POST /v1/topics", 409, When::whole, "/v1/topics", R"({"name":"@P"})", "names must differ in more than letter case"},
      {"POST /v1/topics", 409, When::whole, "/v1/topics", R"({"name":"@x","parent":"@c"})", "fan-out role conflict"},
      {"POST /v1/topics", 409, When::whole, "/v1/topics", R"({"name":"@x","parent":"@p","schema":true})", "child schema incompatible"},
      {"POST /v1/topics", 409, When::whole, "/v1/topics", R"({"name":"@x","parent":"@p","fanout_delay_ms":31536000000})",
       "delay exceeds what the parent's retention can buffer"},
      {"POST /v1/topics", 413, When::whole, "/v1/topics", long_body, "too large"},
      {"POST /v1/topics", 415, When::whole, "/v1/topics", R"({"name":"@x"})", "Content-Type", false},
      {"POST /v1/topics", 503, When::alone, "/v1/topics", R"({"name":"@x"})", ""},
      {"POST /v1/topics", 401, When::absent, "", "", kUsers},
      {"POST /v1/topics", 403, When::absent, "", "", kUsers + "; CreateTest.AnActorNeedsAGrantAndOwnsWhatItCreates"},

      {"GET /v1/topics", 200, When::whole, "/v1/topics?limit=1000", "", "\"next_page_token\":\"\""},
      {"GET /v1/topics", 200, When::whole, "/v1/topics?limit=1&page_token=@", "", "\"next_page_token\":\"@"},
      {"GET /v1/topics", 400, When::whole, "/v1/topics?limit=0", "", "limit must be a positive integer"},
      {"GET /v1/topics", 503, When::absent, "", "", "ANodeThatNeverHeardALeaderHasNoList"},
      {"GET /v1/topics", 401, When::absent, "", "", kUsers},
      {"GET /v1/topics", 500, When::absent, "", "", "a replica that cannot be read answers 503"},

      {"GET /v1/topics/{t}", 200, When::whole, "/v1/topics/@p", "", "\"schema_version\":1"},
      {"GET /v1/topics/{t}", 200, When::whole, "/v1/topics/@p?partition=3", "", "\"partition_stats\":[{\"index\":3,"},
      {"GET /v1/topics/{t}", 400, When::whole, "/v1/topics/@p?partition=4", "", "partition must be an integer from 0 to 3"},
      {"GET /v1/topics/{t}", 404, When::whole, "/v1/topics/nowhere", "", "topic not found"},
      {"GET /v1/topics/{t}", 503, When::alone, "/v1/topics/nowhere", "", "control plane temporarily unavailable"},
      {"GET /v1/topics/{t}", 401, When::absent, "", "", kUsers},
      {"GET /v1/topics/{t}", 403, When::absent, "", "", kUsers},

      {"PATCH /v1/topics/{t}", 200, When::whole, "/v1/topics/@", R"({"retention_ms":0})", "\"retention_ms\":0"},
      {"PATCH /v1/topics/{t}", 200, When::whole, "/v1/topics/@", R"({"max_in_flight_per_partition":7,"partitions":5})", "\"partitions\":5"},
      {"PATCH /v1/topics/{t}", 200, When::whole, "/v1/topics/@", R"({"schema":{"minimum":1},"schema_base_version":0})", "\"name\":\"@\""},
      {"PATCH /v1/topics/{t}", 200, When::whole, "/v1/topics/@", R"({"schema":{"minimum":1.0}})", "\"name\":\"@\""},
      {"PATCH /v1/topics/{t}", 400, When::whole, "/v1/topics/@", "{}", "at least one of retention_ms"},
      {"PATCH /v1/topics/{t}", 400, When::whole, "/v1/topics/@", R"({"schema":null})", "schema must be a JSON object or true"},
      {"PATCH /v1/topics/{t}", 400, When::whole, "/v1/topics/@", R"({"partitions":5})", "partitions must be more than the topic has (5)"},
      {"PATCH /v1/topics/{t}", 400, When::whole, "/v1/topics/@", R"({"schema":{"minimum":2}})", "it accepts less than version 1"},
      {"PATCH /v1/topics/{t}", 404, When::whole, "/v1/topics/nowhere", R"({"retention_ms":0})", "topic not found"},
      {"PATCH /v1/topics/{t}", 409, When::whole, "/v1/topics/@", R"({"schema":{},"schema_base_version":7})", "schema version conflict"},
      {"PATCH /v1/topics/{t}", 409, When::whole, "/v1/topics/@c", R"({"schema":{}})", "schema is parent-managed"},
      {"PATCH /v1/topics/{t}", 409, When::whole, "/v1/topics/@p", R"({"retention_ms":3600000})", "delay exceeds"},
      {"PATCH /v1/topics/{t}", 413, When::whole, "/v1/topics/@", long_body, "too large"},
      {"PATCH /v1/topics/{t}", 415, When::whole, "/v1/topics/@", R"({"retention_ms":0})", "Content-Type", false},
      {"PATCH /v1/topics/{t}", 503, When::alone, "/v1/topics/@", R"({"retention_ms":0})", ""},
      {"PATCH /v1/topics/{t}", 401, When::absent, "", "", kUsers},
      {"PATCH /v1/topics/{t}", 403, When::absent, "", "", kUsers + "; CreateTest.AnActorNeedsAGrantAndOwnsWhatItCreates"},

      {"GET /v1/topics/{t}/schema", 200, When::whole, "/v1/topics/@c/schema", "",
       R"({"topic":"@c","version":1,"versions":[{"version":1,"schema":{"type":"object"}}]})"},
      {"GET /v1/topics/{t}/schema", 200, When::whole, "/v1/topics/@lone/schema", "", R"({"topic":"@lone","version":0,"versions":[]})"},
      {"GET /v1/topics/{t}/schema", 404, When::whole, "/v1/topics/nowhere/schema", "", "topic not found"},
      {"GET /v1/topics/{t}/schema", 503, When::alone, "/v1/topics/nowhere/schema", "", "control plane temporarily unavailable"},
      {"GET /v1/topics/{t}/schema", 401, When::absent, "", "", kUsers},
      {"GET /v1/topics/{t}/schema", 403, When::absent, "", "", kUsers},
  };
}

std::vector<Row> link_rows() {
  return {
      {"POST /v1/topics/{p}/children", 200, When::whole, "/v1/topics/@p/children", R"({"child":"@lone","delay_ms":7})", "\"@lone\"]"},
      {"POST /v1/topics/{p}/children", 400, When::whole, "/v1/topics/@p/children", "{}", "child must be given"},
      {"POST /v1/topics/{p}/children", 400, When::whole, "/v1/topics/@p/children", R"({"child":"@p"})", "its own child"},
      {"POST /v1/topics/{p}/children", 400, When::whole, "/v1/topics/@p/children", R"({"child":"x","delay_ms":-1})", "delay_ms must be"},
      {"POST /v1/topics/{p}/children", 404, When::whole, "/v1/topics/@p/children", R"({"child":"nowhere"})", "topic not found"},
      {"POST /v1/topics/{p}/children", 404, When::whole, "/v1/topics/nowhere/children", R"({"child":"@"})", "topic not found"},
      {"POST /v1/topics/{p}/children", 409, When::whole, "/v1/topics/@p/children", R"({"child":"@lone"})", "already exists"},
      {"POST /v1/topics/{p}/children", 409, When::whole, "/v1/topics/@/children", R"({"child":"@lone"})", "fan-out role conflict"},
      {"POST /v1/topics/{p}/children", 409, When::whole, "/v1/topics/@p/children", R"({"child":"@"})", "child schema incompatible"},
      {"POST /v1/topics/{p}/children", 415, When::whole, "/v1/topics/@p/children", R"({"child":"@"})", "Content-Type", false},
      {"POST /v1/topics/{p}/children", 501, When::whole, "/v1/topics/@p/children", R"({"remote":"r","remote_topic":"t"})",
       "a remote child is not supported by this release"},
      {"POST /v1/topics/{p}/children", 503, When::alone, "/v1/topics/@p/children", R"({"child":"@"})", ""},
      {"POST /v1/topics/{p}/children", 401, When::absent, "", "", kUsers},
      {"POST /v1/topics/{p}/children", 403, When::absent, "", "", kUsers + "; CreateTest.AnActorNeedsAGrantAndOwnsWhatItCreates"},

      {"GET /v1/topics/{p}/children", 200, When::whole, "/v1/topics/@p/children", "",
       R"("children":[{"name":"@c","delay_ms":5,"lag_messages":0,"lag_complete":true},{"name":"@lone","delay_ms":7,)"},
      {"GET /v1/topics/{p}/children", 200, When::whole, "/v1/topics/@/children?partitions=true", "", "\"children\":[]"},
      {"GET /v1/topics/{p}/children", 400, When::whole, "/v1/topics/@p/children?partitions=maybe", "", "partitions must be true or false"},
      {"GET /v1/topics/{p}/children", 404, When::whole, "/v1/topics/nowhere/children", "", "topic not found"},
      {"GET /v1/topics/{p}/children", 503, When::alone, "/v1/topics/nowhere/children", "", "control plane temporarily unavailable"},
      {"GET /v1/topics/{p}/children", 401, When::absent, "", "", kUsers},
      {"GET /v1/topics/{p}/children", 403, When::absent, "", "", kUsers},

      {"DELETE /v1/topics/{p}/children/{c}", 204, When::whole, "/v1/topics/@p/children/@lone", "", ""},
      {"DELETE /v1/topics/{p}/children/{c}", 404, When::whole, "/v1/topics/@p/children/@lone", "", "topic not found"},
      {"DELETE /v1/topics/{p}/children/{c}", 404, When::whole, "/v1/topics/nowhere/children/@c", "", "topic not found"},
      {"DELETE /v1/topics/{p}/children/{c}", 400, When::whole, "/v1/topics/@p/children/@c?force=maybe", "", "force must be true or false"},
      {"DELETE /v1/topics/{p}/children/{c}", 503, When::alone, "/v1/topics/@p/children/@c", "", ""},
      {"DELETE /v1/topics/{p}/children/{c}", 409, When::absent, "", "", "LinkIncarnationsTest.EndsThatChangedMeanwhileAreReadAgainOnce"},
      {"DELETE /v1/topics/{p}/children/{c}", 401, When::absent, "", "", kUsers},
      {"DELETE /v1/topics/{p}/children/{c}", 403, When::absent, "", "", kUsers + "; CreateTest.AnActorNeedsAGrantAndOwnsWhatItCreates"},

      {"POST /v1/topics/{p}/children/{c}/pause", 501, When::whole, "/v1/topics/@p/children/@c/pause", "{}", "does not serve remote children"},
      {"POST /v1/topics/{p}/children/{c}/resume", 501, When::whole, "/v1/topics/@p/children/@c/resume", "{}", "does not serve remote children"},
      {"POST /v1/topics/{p}/children/{c}/skip", 501, When::whole, "/v1/topics/@p/children/@c/skip", "{}", "does not serve remote children"},

      {"DELETE /v1/topics/{t}", 400, When::whole, "/v1/topics/@p?force=maybe", "", "force must be true or false"},
      {"DELETE /v1/topics/{t}", 204, When::whole, "/v1/topics/@lone", "", ""},
      {"DELETE /v1/topics/{t}", 404, When::whole, "/v1/topics/@lone", "", "topic not found"},
      {"DELETE /v1/topics/{t}", 503, When::alone, "/v1/topics/@", "", ""},
      {"DELETE /v1/topics/{t}", 409, When::absent, "", "", "ManagerTest.DeleteMayNameTheIncarnation, NodeTest.RequestsOfTheNodeProtocolAreJudgedAsWritten"},
      {"DELETE /v1/topics/{t}", 401, When::absent, "", "", kUsers},
      {"DELETE /v1/topics/{t}", 403, When::absent, "", "", kUsers + "; CreateTest.AnActorNeedsAGrantAndOwnsWhatItCreates"},
  };
}

const char* const kDecommission = "POST /v1/cluster/members/{id}/decommission";
const char* const kCancel = "DELETE /v1/cluster/members/{id}/decommission";
const char* const kAbort = "POST /v1/cluster/moves/{t}/{p}/abort";
const char* const kForget = "POST /v1/cluster/members/{id}/forget";

std::vector<Row> cluster_rows() {
  std::vector<Row> rows = {
      {"GET /v1/cluster/members", 200, When::whole, "/v1/cluster/members", "", R"({"members":[{"id":"n1","addr":"n1:7942","status":"alive",)"},
      {"GET /v1/cluster/members", 200, When::whole, "/v1/cluster/members?detail=true", "", "\"node_status\":{\"node\":\"n1\""},
      {"GET /v1/cluster/members", 200, When::alone, "/v1/cluster/members", "", R"({"members":[{"id":"n1",)"},
      {"GET /v1/cluster/members", 400, When::whole, "/v1/cluster/members?detail=maybe", "", "detail must be true or false"},
      {"GET /v1/cluster/moves", 200, When::whole, "/v1/cluster/moves", "", R"({"moves":[]})"},
      {"GET /v1/cluster/moves", 200, When::whole, "/v1/cluster/moves?detail=1", "", R"({"moves":[]})"},
      {"GET /v1/cluster/moves", 400, When::whole, "/v1/cluster/moves?detail=maybe", "", "detail must be true or false"},

      {kDecommission, 200, When::whole, "/v1/cluster/members/n2/decommission?dry_run=true", "", "\"would_decommission\":false"},
      {kDecommission, 400, When::whole, "/v1/cluster/members/n2/decommission?dry_run=maybe", "", "dry_run must be true or false"},
      {kDecommission, 404, When::whole, "/v1/cluster/members/n9/decommission", "", ""},
      {kDecommission, 404, When::whole, "/v1/cluster/members/n9/decommission?dry_run=true", "", ""},
      {kDecommission, 409, When::whole, "/v1/cluster/members/n2/decommission", "", "below_min_voters"},
      {kDecommission, 415, When::whole, "/v1/cluster/members/n2/decommission", "", "Content-Type", false},
      {kDecommission, 503, When::alone, "/v1/cluster/members/n2/decommission", "", ""},
      {kDecommission, 204, When::absent, "", "", "three voters cannot spare one"},
      {kCancel, 204, When::whole, "/v1/cluster/members/n2/decommission", "", ""},
      {kCancel, 400, When::whole, "/v1/cluster/members/n2/decommission?dry_run=true", "", "dry_run is for a decommission"},
      {kCancel, 404, When::whole, "/v1/cluster/members/n9/decommission", "", ""},
      {kCancel, 503, When::alone, "/v1/cluster/members/n2/decommission", "", ""},

      {kAbort, 400, When::whole, "/v1/cluster/moves/@p/x/abort", "", "partition must be an integer from 0 on"},
      {kAbort, 404, When::whole, "/v1/cluster/moves/nowhere/0/abort", "", ""},
      {kAbort, 409, When::whole, "/v1/cluster/moves/@p/0/abort", "", ""},
      {kAbort, 415, When::whole, "/v1/cluster/moves/@p/0/abort", "", "Content-Type", false},
      {kAbort, 503, When::alone, "/v1/cluster/moves/@p/0/abort", "", ""},
      {kAbort, 202, When::absent, "", "", "nothing moves in a cluster of three that stays as it is"},

      {kForget, 400, When::whole, "/v1/cluster/members/{leader}/forget", "", ""},
      {kForget, 404, When::whole, "/v1/cluster/members/n9/forget", "", ""},
      {kForget, 409, When::whole, "/v1/cluster/members/{follower}/forget", "", ""},
      {kForget, 415, When::whole, "/v1/cluster/members/n9/forget", "", "Content-Type", false},
      {kForget, 503, When::alone, "/v1/cluster/members/n9/forget", "", ""},
      {kForget, 501, When::absent, "", "", "a leader of an older release"},
      {kForget, 200, When::absent, "", "", "a server without a member record is made by hand"},
  };
  for (const char* endpoint : {"GET /v1/cluster/members", "GET /v1/cluster/moves", kDecommission, kCancel, kAbort, kForget}) {
    rows.push_back({endpoint, 401, When::absent, "", "", kUsers});
    rows.push_back({endpoint, 403, When::absent, "", "", kUsers});
  }
  return rows;
}

std::vector<Row> operation_rows() {
  return {
      {"GET /healthz", 200, When::whole, "/healthz", "", R"({"status":"ok"})"},
      {"GET /healthz", 200, When::alone, "/healthz", "", R"({"status":"ok"})"},
      {"GET /healthz", 503, When::absent, "", "", "ReadinessTest: once a stop has begun"},
      {"GET /readyz", 200, When::whole, "/readyz", "", R"({"status":"ready"})"},
      {"GET /readyz", 503, When::alone, "/readyz", "", "metastore: node is not ready: "},
      {"GET /metrics", 200, When::whole, "/metrics", "", "narad_"},
      {"GET /metrics", 401, When::absent, "", "", kUsers},
      {"GET /metrics", 404, When::absent, "", "", "http.metrics_addr comes with security"},
      {"POST /v1/cluster/reencrypt-remotes", 501, When::whole, "/v1/cluster/reencrypt-remotes", "{}", "does not serve remotes"},
  };
}

struct ContractTest : tests::RegisteredWorld {
  // "@" in a text becomes the node's own name, so that both ask for the same in topics of their own.
  std::string named(std::string text, const std::string& name) const {
    const std::pair<std::string, std::string> kNames[] = {{"@", name}, {"{leader}", leader_id}, {"{follower}", follower_id}};
    for (const auto& [mark, value] : kNames) {
      for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size())) {
        text.replace(at, mark.size(), value);
      }
    }
    return text;
  }
  std::string leader_id;
  std::string follower_id;

  api::HttpResponse ask_row(size_t node, const Row& row, const std::string& name) {
    const std::string endpoint = row.endpoint;
    api::HttpRequest request{endpoint.substr(0, endpoint.find(' ')), named(row.target, name), {}, named(row.body, name)};
    if (row.has_header) {
      request.headers.push_back({"Content-Type", "application/json"});
    }
    api::HttpResponse answer;
    answer.status = 0;
    as_client([&](io::Env& env) {
      api::HttpClient client(env.net, nodes[node].config.http.addr);
      if (const auto response = client.request(request, env.after(60s)); response.ok()) {
        answer = *response;
      }
    });
    return answer;
  }

  void expect_row(size_t node, const Row& row, const std::string& name) {
    const api::HttpResponse answer = ask_row(node, row, name);
    EXPECT_EQ(answer.status, row.status) << row.endpoint << " " << named(row.target, name) << " at " << name << ": " << answer.body;
    EXPECT_NE(answer.body.find(named(row.text, name)), std::string::npos) << row.endpoint << " " << row.target << ": " << answer.body;
    if (row.status >= 400 && answer.content_type == "application/json") {
      const auto parsed = json::parse(answer.body);
      EXPECT_TRUE(parsed.ok() && parsed->find("error") != nullptr) << answer.body;
    }
  }
};

std::vector<Row> all_rows() {
  std::vector<Row> rows = topic_rows();
  for (const auto& more : {link_rows(), cluster_rows(), operation_rows()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

TEST(Contract, EveryStatusOfEveryEndpointHasARow) {
  std::set<std::pair<std::string, int>> have;
  for (const Row& row : all_rows()) {
    have.emplace(row.endpoint, row.status);
    EXPECT_FALSE(row.when == When::absent && row.text.empty()) << row.endpoint << ": why not?";
  }
  std::set<std::pair<std::string, int>> named;
  for (const Endpoint& endpoint : kEndpoints) {
    for (const int status : endpoint.statuses) {
      named.emplace(endpoint.name, status);
    }
  }
  EXPECT_EQ(have, named);
}

TEST_F(ContractTest, LeaderAndFollowerAnswerAlike) {
  const size_t leader = lead();
  world.run_for(3s);
  leader_id = nodes[leader].config.cluster.node_id;
  follower_id = nodes[(leader + 1) % 3].config.cluster.node_id;
  for (const auto& [node, name] : {std::pair(leader, "led"), std::pair((leader + 1) % 3, "followed")}) {
    for (const Row& row : all_rows()) {
      if (row.when == When::whole) {
        expect_row(node, row, name);
      }
    }
  }
}

TEST_F(ContractTest, ANodeThatLostTheOthersSaysSo) {
  const size_t leader = lead();
  world.run_for(3s);
  const size_t follower = (leader + 1) % 3;
  for (const char* name : {"@", "@p", "@c"}) {
    EXPECT_EQ(ask(leader, "POST", "/v1/topics", named(R"({"name":")" + std::string(name) + "\"}", "a")).status, 201);
  }
  for (size_t i = 0; i < 3; ++i) {
    if (i != follower) {
      nodes[i].machine->power_loss();
      nodes[i].view.reset();
    }
  }
  world.run_for(8s);
  for (const Row& row : all_rows()) {
    if (row.when == When::alone) {
      expect_row(follower, row, "a");
    }
  }
}

TEST_F(ContractTest, ANodeThatNeverHeardALeaderHasNoList) {
  start(0);
  world.run_for(5s);
  for (const char* target : {"/v1/topics", "/v1/topics/a", "/v1/topics/a/schema", "/v1/topics/a/children"}) {
    const api::HttpResponse answer = ask(0, "GET", target);
    EXPECT_EQ(answer.status, 503) << target;
    EXPECT_NE(answer.body.find("control plane temporarily unavailable"), std::string::npos) << answer.body;
  }
  EXPECT_EQ(ask(0, "GET", "/v1/topics?limit=x").status, 400) << "what is wrong in any case needs no leader";
}

}  // namespace
