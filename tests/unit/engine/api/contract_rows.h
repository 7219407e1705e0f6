// The table of the HTTP API's contract: what is asked of topics, links, cluster and health, and what must come back
// (narad/http-api.md sections 2, 3, 4, 6 and 8). contract_test.cpp asks.
//
// What is named but cannot be asked for here stands in the table too, with the reason: rights come with users, and some refusals need a
// race that another test arranges.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace contract {

// The circumstances of a question.
enum class When {
  whole,     // three nodes, a leader; at the leader and at a follower
  alone,     // the one that is asked has lost the two others
  unheard,   // the one that is asked has never heard of a leader
  moving,    // five nodes, one of them away, and a partition of the asked name on its way to it; a server that nobody knows is staged
  older,     // the leader runs an earlier release, the one that is asked does not
  stopping,  // a stop has begun
  absent,    // not here: `text` says why
};

struct Row {
  const char* endpoint;
  int status;
  When when;
  // "@" becomes a name of the asked node's own; {leader}, {follower}, {away} and {leaver} ids of nodes.
  std::string target;
  std::string body;
  // A part of the answer: "#" stands for a whole number, "*" for anything. Of an answer without a body it says nothing.
  std::string text;
  bool has_header = true;
};

inline const std::string kUsers = "users and their rights come with security";
inline const std::string kRace = "a race, arranged by ";
inline const std::string kUnavailable = "control plane temporarily unavailable";
inline const std::string kNoLeader = "no raft leader known";  // in plain text: of a request that the leader carries out
inline std::vector<Row> topic_rows() {
  const std::string long_body = "{\"name\":\"@\",\"owner\":\"" + std::string((1 << 20) + 1, 'x') + "\"}";
  return {
      {"POST /v1/topics", 201, When::whole, "/v1/topics", R"({"name":"@"})",
       R"({"name":"@","id":"*","partitions":3,"retention_ms":604800000,"visibility_timeout_ms":30000,"max_in_flight_per_partition":1024,)"
       R"("max_acked_ahead_per_partition":1024,"created_at":#})"},
      {"POST /v1/topics", 201, When::whole, "/v1/topics", R"({"name":"@p","partitions":4,"schema":{"type":"object"}})", "\"partitions\":4"},
      {"POST /v1/topics", 201, When::whole, "/v1/topics", R"({"name":"@c","parent":"@p","fanout_delay_ms":5})",
       R"({"name":"@c","id":"*","partitions":4,*"role":"child","parent":"@p","attach_epoch":"*",)"
       R"("fanout_delay_ms":5,"attach_offsets":[0,0,0,0]})"},
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
      {"POST /v1/topics", 503, When::alone, "/v1/topics", R"({"name":"@x"})", kNoLeader},

      {"GET /v1/topics", 200, When::whole, "/v1/topics?limit=1000", "", R"({"topics":[*{"name":"@",*],"next_page_token":""})"},
      {"GET /v1/topics", 200, When::whole, "/v1/topics?limit=1&page_token=@", "",
       R"({"topics":[{"name":"@c",*}],"next_page_token":"@c"})"},
      {"GET /v1/topics", 400, When::whole, "/v1/topics?limit=0", "", "limit must be a positive integer"},
      {"GET /v1/topics", 400, When::unheard, "/v1/topics?limit=x", "", "limit must be a positive integer"},
      {"GET /v1/topics", 503, When::unheard, "/v1/topics", "", kUnavailable},
      {"GET /v1/topics", 500, When::absent, "", "", "a replica that cannot be read answers 503"},

      {"GET /v1/topics/{t}", 200, When::whole, "/v1/topics/@p", "",
       R"("role":"parent","children":["@c"],"schema_version":1,"schema":{"type":"object"},"partition_stats":[{"index":0,"segments":0,)"
       R"("oldest_offset":0,"next_offset":0,"high_watermark":0,"size_bytes":0,"owner_node":"*","status":"ok"},{"index":1,*},{"index":2,*},)"
       R"({"index":3,*}]})"},
      {"GET /v1/topics/{t}", 200, When::whole, "/v1/topics/@p?partition=3", "", "\"partition_stats\":[{\"index\":3,"},
      {"GET /v1/topics/{t}", 400, When::whole, "/v1/topics/@p?partition=4", "", "partition must be an integer from 0 to 3"},
      {"GET /v1/topics/{t}", 404, When::whole, "/v1/topics/nowhere", "", "topic not found"},
      {"GET /v1/topics/{t}", 503, When::alone, "/v1/topics/nowhere", "", kUnavailable},
      {"GET /v1/topics/{t}", 503, When::unheard, "/v1/topics/a", "", kUnavailable},

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
      {"PATCH /v1/topics/{t}", 503, When::alone, "/v1/topics/@", R"({"retention_ms":0})", kNoLeader},

      {"GET /v1/topics/{t}/schema", 200, When::whole, "/v1/topics/@c/schema", "",
       R"({"topic":"@c","version":1,"versions":[{"version":1,"schema":{"type":"object"}}]})"},
      {"GET /v1/topics/{t}/schema", 200, When::whole, "/v1/topics/@lone/schema", "", R"({"topic":"@lone","version":0,"versions":[]})"},
      {"GET /v1/topics/{t}/schema", 404, When::whole, "/v1/topics/nowhere/schema", "", "topic not found"},
      {"GET /v1/topics/{t}/schema", 503, When::alone, "/v1/topics/nowhere/schema", "", kUnavailable},
      {"GET /v1/topics/{t}/schema", 503, When::unheard, "/v1/topics/a/schema", "", kUnavailable},
  };
}

inline std::vector<Row> link_rows() {
  return {
      {"POST /v1/topics/{p}/children", 200, When::whole, "/v1/topics/@p/children", R"({"child":"@lone","delay_ms":7})",
       R"({"name":"@p",*"role":"parent","children":["@c","@lone"]})"},
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
      {"POST /v1/topics/{p}/children", 503, When::alone, "/v1/topics/@p/children", R"({"child":"@"})", kNoLeader},

      {"GET /v1/topics/{p}/children", 200, When::whole, "/v1/topics/@p/children", "",
       R"({"parent":"@p","parent_id":"*","children":[{"name":"@c","delay_ms":5,"lag_messages":0,"lag_complete":true},)"
       R"({"name":"@lone","delay_ms":7,*}]})"},
      {"GET /v1/topics/{p}/children", 200, When::whole, "/v1/topics/@/children?partitions=true", "", "\"children\":[]"},
      {"GET /v1/topics/{p}/children", 400, When::whole, "/v1/topics/@p/children?partitions=maybe", "", "partitions must be true or false"},
      {"GET /v1/topics/{p}/children", 404, When::whole, "/v1/topics/nowhere/children", "", "topic not found"},
      {"GET /v1/topics/{p}/children", 503, When::alone, "/v1/topics/nowhere/children", "", kUnavailable},
      {"GET /v1/topics/{p}/children", 503, When::unheard, "/v1/topics/a/children", "", kUnavailable},

      {"DELETE /v1/topics/{p}/children/{c}", 204, When::whole, "/v1/topics/@p/children/@lone", "", ""},
      {"DELETE /v1/topics/{p}/children/{c}", 404, When::whole, "/v1/topics/@p/children/@lone", "", "topic not found"},
      {"DELETE /v1/topics/{p}/children/{c}", 404, When::whole, "/v1/topics/nowhere/children/@c", "", "topic not found"},
      {"DELETE /v1/topics/{p}/children/{c}", 400, When::whole, "/v1/topics/@p/children/@c?force=maybe", "", "force must be true or false"},
      {"DELETE /v1/topics/{p}/children/{c}", 503, When::alone, "/v1/topics/@p/children/@c", "", kNoLeader},
      {"DELETE /v1/topics/{p}/children/{c}", 409, When::absent, "", "",
       kRace + "LinkIncarnationsTest.EndsThatChangedMeanwhileAreReadAgainOnce"},

      {"POST /v1/topics/{p}/children/{c}/pause", 501, When::whole, "/v1/topics/@p/children/@c/pause", "{}",
       "this release does not serve remote children"},
      {"POST /v1/topics/{p}/children/{c}/resume", 501, When::whole, "/v1/topics/@p/children/@c/resume", "{}",
       "this release does not serve remote children"},
      {"POST /v1/topics/{p}/children/{c}/skip", 501, When::whole, "/v1/topics/@p/children/@c/skip", "{}",
       "this release does not serve remote children"},

      {"DELETE /v1/topics/{t}", 400, When::whole, "/v1/topics/@p?force=maybe", "", "force must be true or false"},
      {"DELETE /v1/topics/{t}", 204, When::whole, "/v1/topics/@lone", "", ""},
      {"DELETE /v1/topics/{t}", 404, When::whole, "/v1/topics/@lone", "", "topic not found"},
      {"DELETE /v1/topics/{t}", 503, When::alone, "/v1/topics/@", "", kNoLeader},
      {"DELETE /v1/topics/{t}", 409, When::absent, "", "",
       kRace + "ManagerTest.DeleteMayNameTheIncarnation, NodeTest.RequestsOfTheNodeProtocolAreJudgedAsWritten"},
  };
}

inline const char* const kMembers = "GET /v1/cluster/members";
inline const char* const kMoves = "GET /v1/cluster/moves";
inline const char* const kDecommission = "POST /v1/cluster/members/{id}/decommission";
inline const char* const kCancel = "DELETE /v1/cluster/members/{id}/decommission";
inline const char* const kAbort = "POST /v1/cluster/moves/{t}/{p}/abort";
inline const char* const kForget = "POST /v1/cluster/members/{id}/forget";

// `draining`: "true" or "false".
inline std::string leaver_row(const std::string& draining) {
  return R"({"id":"{leaver}","addr":"{leaver}:7942","status":"alive","draining":)" + draining +
         R"(,"owned_partitions":#,"outbound_moves":#,"voter":true,"leader":false,"heartbeat_age_seconds":#)";
}

inline std::vector<Row> member_rows() {
  return {
      {kMembers, 200, When::whole, "/v1/cluster/members", "",
       R"({"members":[{"id":"n1","addr":"n1:7942","status":"alive","draining":false,"owned_partitions":#,"outbound_moves":#,"voter":true,)"
       R"("leader":*,"heartbeat_age_seconds":#},{"id":"n2",*},{"id":"n3",*}]})"},
      {kMembers, 200, When::whole, "/v1/cluster/members?detail=true", "",
       R"("node_status":{"node":"n1","draining":false,"produce_in_flight":0,"dispatch_backlog":0,)"
       R"("quarantine":{"copies":0,"bytes":0,"list":[]},"moves":[]})"},
      {kMembers, 200, When::alone, "/v1/cluster/members", "", R"({"members":[{"id":"n1",)"},
      {kMembers, 200, When::moving, "/v1/cluster/members?detail=true", "", R"({"id":"{away}","addr":"{away}:7942",*,"status_error":"*"})"},
      {kMembers, 400, When::whole, "/v1/cluster/members?detail=maybe", "", "detail must be true or false"},

      {kDecommission, 200, When::whole, "/v1/cluster/members/n2/decommission?dry_run=true", "",
       R"({"member":"n2","would_decommission":false,"reasons":[{"code":"below_min_voters","message":"*"}],"voter":true,)"
       R"("owned_partitions":#,"inbound_moves":0})"},
      {kDecommission, 200, When::moving, "/v1/cluster/members/{leaver}/decommission?dry_run=true", "",
       R"({"member":"{leaver}","would_decommission":true,"reasons":[],"voter":true,"owned_partitions":#,"inbound_moves":0})"},
      {kDecommission, 204, When::moving, "/v1/cluster/members/{leaver}/decommission", "", ""},
      {kMembers, 200, When::moving, "/v1/cluster/members", "", leaver_row("true")},
      {kDecommission, 204, When::moving, "/v1/cluster/members/{leaver}/decommission", "", ""},
      {kDecommission, 400, When::whole, "/v1/cluster/members/n2/decommission?dry_run=maybe", "", "dry_run must be true or false"},
      {kDecommission, 404, When::whole, "/v1/cluster/members/n9/decommission", "", "member not found"},
      {kDecommission, 404, When::whole, "/v1/cluster/members/n9/decommission?dry_run=true", "", "member not found"},
      {kDecommission, 409, When::whole, "/v1/cluster/members/n2/decommission", "",
       R"({"error":"decommission of n2 refused: *","reasons":[{"code":"below_min_voters","message":"*"}]})"},
      {kDecommission, 415, When::whole, "/v1/cluster/members/n2/decommission", "", "Content-Type", false},
      {kDecommission, 503, When::alone, "/v1/cluster/members/n2/decommission", "", kNoLeader},

      {kCancel, 204, When::whole, "/v1/cluster/members/n2/decommission", "", ""},
      {kCancel, 204, When::moving, "/v1/cluster/members/{leaver}/decommission", "", ""},
      {kMembers, 200, When::moving, "/v1/cluster/members", "", leaver_row("false")},
      {kCancel, 400, When::whole, "/v1/cluster/members/n2/decommission?dry_run=true", "", "dry_run is for a decommission"},
      {kCancel, 404, When::whole, "/v1/cluster/members/n9/decommission", "", "member not found"},
      {kCancel, 503, When::alone, "/v1/cluster/members/n2/decommission", "", kNoLeader},

      {kForget, 200, When::moving, "/v1/cluster/members/@/forget", "", R"({"id":"@","voter":false})"},
      {kForget, 404, When::moving, "/v1/cluster/members/@/forget", "", "no raft server @"},
      {kForget, 400, When::whole, "/v1/cluster/members/{leader}/forget", "", "the leader cannot forget itself"},
      {kForget, 404, When::whole, "/v1/cluster/members/n9/forget", "", "no raft server n9"},
      {kForget, 409, When::whole, "/v1/cluster/members/{follower}/forget", "",
       "server {follower} is not forgotten: it has a member record; decommission it instead"},
      {kForget, 415, When::whole, "/v1/cluster/members/n9/forget", "", "Content-Type", false},
      {kForget, 501, When::older, "/v1/cluster/members/n9/forget", "", "the leader runs a release that cannot forget a server"},
      {kForget, 503, When::alone, "/v1/cluster/members/n9/forget", "", kNoLeader},
  };
}

inline std::vector<Row> move_rows() {
  const std::string move = R"({"topic":"@","partition":0,"from":"*","to":"{away}","from_status":"alive","to_status":"alive")";
  return {
      {kMoves, 200, When::whole, "/v1/cluster/moves", "", R"({"moves":[]})"},
      {kMoves, 200, When::whole, "/v1/cluster/moves?detail=1", "", R"({"moves":[]})"},
      {kMoves, 200, When::moving, "/v1/cluster/moves", "", move + "}"},
      {kMoves, 200, When::moving, "/v1/cluster/moves?detail=1", "", move + R"(,"worker_error":"*"})"},
      {kMoves, 400, When::whole, "/v1/cluster/moves?detail=maybe", "", "detail must be true or false"},

      {kAbort, 409, When::moving, "/v1/cluster/moves/@/0/abort?target=n9", "", "the partition is being moved to {away}, not to n9"},
      {kAbort, 202, When::moving, "/v1/cluster/moves/@/0/abort", "", R"({"move":)" + move + R"(},"note":"*"})"},
      {kAbort, 409, When::moving, "/v1/cluster/moves/@/0/abort", "", "the partition is not being moved"},
      {kAbort, 400, When::whole, "/v1/cluster/moves/@p/x/abort", "", "partition must be an integer from 0 on"},
      {kAbort, 404, When::whole, "/v1/cluster/moves/nowhere/0/abort", "", "no such assignment"},
      {kAbort, 409, When::whole, "/v1/cluster/moves/@p/0/abort", "", "the partition is not being moved"},
      {kAbort, 415, When::whole, "/v1/cluster/moves/@p/0/abort", "", "Content-Type", false},
      {kAbort, 503, When::alone, "/v1/cluster/moves/@p/0/abort", "", kNoLeader},
  };
}

inline std::vector<Row> operation_rows() {
  return {
      {"GET /healthz", 200, When::whole, "/healthz", "", R"({"status":"ok"})"},
      {"GET /healthz", 200, When::alone, "/healthz", "", R"({"status":"ok"})"},
      {"GET /healthz", 200, When::unheard, "/healthz", "", R"({"status":"ok"})"},
      {"GET /healthz", 503, When::stopping, "/healthz", "", R"({"error":"*"})"},
      {"GET /readyz", 200, When::whole, "/readyz", "", R"({"status":"ready"})"},
      {"GET /readyz", 503, When::alone, "/readyz", "", R"({"error":"metastore: node is not ready: *"})"},
      {"GET /readyz", 503, When::unheard, "/readyz", "", R"({"error":"not ready"})"},
      {"GET /metrics", 200, When::whole, "/metrics", "", "\nnarad_"},
      {"GET /metrics", 401, When::absent, "", "", kUsers},
      {"GET /metrics", 404, When::absent, "", "", "http.metrics_addr comes with security"},
      {"POST /v1/cluster/reencrypt-remotes", 501, When::whole, "/v1/cluster/reencrypt-remotes", "{}",
       "this release does not serve remotes"},
  };
}

// What http-api.md names of every endpoint that asks who is there; of a list anybody may have a part.
inline std::vector<Row> user_rows(const std::vector<Row>& rows) {
  std::set<std::string> endpoints;
  for (const Row& row : rows) {
    const bool is_served = row.status < 300;
    const bool is_for_all = std::string(row.endpoint).find(" /v1/") == std::string::npos;
    if (is_served && !is_for_all) endpoints.insert(row.endpoint);
  }
  std::vector<Row> more;
  for (const Row& row : rows) {
    if (endpoints.erase(row.endpoint) == 0) continue;
    more.push_back({row.endpoint, 401, When::absent, "", "", kUsers});
    if (row.endpoint != std::string("GET /v1/topics")) {
      more.push_back({row.endpoint, 403, When::absent, "", "", kUsers + "; CreateTest.AnActorNeedsAGrantAndOwnsWhatItCreates"});
    }
  }
  return more;
}

// In the order in which they are asked.
inline std::vector<Row> all_rows() {
  std::vector<Row> rows = topic_rows();
  for (const auto& more : {link_rows(), member_rows(), move_rows(), operation_rows()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  const std::vector<Row> users = user_rows(rows);
  rows.insert(rows.end(), users.begin(), users.end());
  return rows;
}

}  // namespace contract
