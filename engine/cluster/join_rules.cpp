#include "engine/cluster/join_rules.h"

#include <algorithm>
#include <utility>

#include "engine/config.h"
#include "engine/json_text.h"
#include "engine/metastore/envelope.h"
#include "io/defence.h"
#include "io/probe.h"

namespace engine::cluster {

namespace {

using Outcome = JoinDecision::Outcome;

JoinDecision decide(Outcome outcome, NodeReply reply) { return JoinDecision{outcome, std::move(reply), 0, {}}; }

NodeReply admitted_reply(std::string_view status, std::string_view reason = {}) {
  return json_reply(200, "{\"status\":" + json_quoted(status) + ",\"reason\":" + json_quoted(reason) + "}");
}

JoinDecision defer(Outcome outcome, std::string reason) {
  JoinDecision decision = decide(outcome, deferred_reply(reason));
  decision.reason = std::move(reason);
  return decision;
}

// Why a joiner that applies entry types up to `types` is older than the cluster; nothing when it is not.
std::optional<std::string> why_older(uint32_t types, const JoinFacts& facts) {
  const std::string applies = "it applies Raft entry types up to " + std::to_string(types);
  if (types < facts.member_types_min) {
    SOMETIMES("join: refused, older than every member");
    return "this node runs an older release than every member of the cluster: " + applies + ", every member applies up to " +
           std::to_string(facts.member_types_min) + " or more, and an entry that it does not know may be proposed at any time; run " +
           "a release that applies them";
  }
  if (types < facts.types_used) {
    SOMETIMES("join: refused, older than what the cluster has applied");
    return "this node runs an older release than the cluster has used: " + applies + ", and the cluster has applied entry type " +
           std::to_string(facts.types_used) + "; run a release that applies it";
  }
  return std::nullopt;
}

NodeReply older_release_reply(std::string_view text) {
  return json_reply(409, "{\"error\":" + json_quoted(text) + ",\"code\":\"older_release\"}");
}

// A non-voter that is to stay one for now, and why.
std::optional<std::string> why_not_promoted(const JoinFacts& facts) {
  if (facts.led_for < kPromotionWait) {
    SOMETIMES("join: promotion deferred, the leader is new");
    return "the leader has led for less than 12s, too short to have seen a failed heartbeat to an unreachable node";
  }
  if (are_heartbeats_failing(facts)) {
    SOMETIMES("join: promotion deferred, heartbeats fail");
    return "the leader's raft heartbeats to it are failing";
  }
  if (!facts.members_error.empty()) {
    return "its member record could not be read: " + facts.members_error;
  }
  if (!facts.record.has_value()) {
    SOMETIMES("join: promotion deferred, it has no member record");
    return "it has no member record yet";
  }
  if (!facts.record->is_alive) {
    SOMETIMES("join: promotion deferred, it is marked dead");
    return "its member record is marked dead";
  }
  if (facts.record->is_draining) {
    SOMETIMES("join: promotion deferred, it drains");
    return "it is draining";
  }
  return std::nullopt;
}

JoinDecision admit(const JoinClusterRequest& request, const JoinFacts& facts) {
  if (!facts.server.has_value()) {
    return decide(Outcome::add, admitted_reply("staged"));
  }
  if (facts.server->is_other_store && request.fresh.value_or(false) && !facts.is_self) {
    return decide(Outcome::replace, admitted_reply("staged"));
  }
  const bool is_moved = facts.server->addr != request.cluster_addr;
  if (facts.server->is_voter) {
    return decide(is_moved ? Outcome::move_voter : Outcome::is_voter, admitted_reply("voter"));
  }
  if (is_moved) {
    return defer(Outcome::move_non_voter, "raft address updated; ask again");
  }
  if (std::optional<std::string> reason = why_not_promoted(facts)) {
    return defer(Outcome::deferred, std::move(*reason));
  }
  return decide(Outcome::promote, admitted_reply("promoted"));
}

JoinDecision decide_on_leader(const JoinClusterRequest& request, uint32_t types, const JoinFacts& facts) {
  if (!facts.server.has_value()) {
    if (!facts.members_error.empty()) {
      return decide(Outcome::unavailable, error_reply(503, "membership lookup failed"));
    }
    const std::optional<std::string> older = why_older(types, facts);
    if (older && io::defence(io::Defence::older_joiner_admitted)) {
      return decide(Outcome::older_release, older_release_reply(*older));
    }
  }
  if (facts.is_tombstoned) {
    if (!request.fresh.value_or(false)) {
      SOMETIMES("join: refused, its tombstone stands");
      return decide(Outcome::removed, error_reply(409, "node was decommissioned and removed from the cluster; delete its data "
                                                       "directory (volume) to rejoin as a new node"));
    }
    return decide(Outcome::readmit, error_reply(503, kReadmitFailed));
  }
  return admit(request, facts);
}

// The string value of `key` in a flat JSON object as this protocol's leaders write it; nothing when it is not there. Escapes are not
// undone: neither an address nor a status has any.
std::optional<std::string> string_field(std::string_view body, std::string_view key) {
  const std::string quoted = "\"" + std::string(key) + "\"";
  size_t at = body.find(quoted);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const auto skip_spaces = [&] {
    while (at < body.size() && (body[at] == ' ' || body[at] == '\t')) ++at;
  };
  at += quoted.size();
  skip_spaces();
  if (at >= body.size() || body[at] != ':') {
    return std::nullopt;
  }
  ++at;
  skip_spaces();
  if (at >= body.size() || body[at] != '"') {
    return std::nullopt;
  }
  const size_t end = body.find('"', at + 1);
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  return std::string(body.substr(at + 1, end - at - 1));
}

}  // namespace

NodeReply deferred_reply(std::string_view reason) { return admitted_reply("deferred", reason); }

bool are_heartbeats_failing(const JoinFacts& facts) {
  const std::optional<io::Duration>& failed = facts.heartbeat_failed_ago;
  const std::optional<io::Duration>& answered = facts.heartbeat_answered_ago;
  return failed && *failed < kPromotionWait && !(answered && *answered < *failed);
}

JoinDecision decide_join(const io::Result<JoinClusterRequest>& request, const JoinFacts& facts) {
  if (!request.ok()) {
    return decide(Outcome::malformed, error_reply(400, "invalid join request: " + request.error().message));
  }
  if (request->id.empty() || request->cluster_addr.empty()) {
    return decide(Outcome::incomplete, error_reply(400, "invalid join request: id and cluster_addr are required"));
  }
  if (!facts.is_running) {
    return decide(Outcome::unavailable, error_reply(503, "raft configuration lookup failed"));
  }
  if (!facts.has_configuration) {
    return decide(Outcome::no_configuration, error_reply(412, "no raft configuration on this node"));
  }
  if (!facts.is_leader) {
    return decide(Outcome::not_leader, not_leader_reply(facts.leader_id, facts.leader_addr));
  }
  const uint32_t reported = request->entry_types.value_or(0);
  const uint32_t types = reported == 0 ? metastore::kEveryReleaseEntryType : reported;
  JoinDecision decision = decide_on_leader(*request, types, facts);
  decision.joiner_types = types;
  return decision;
}

bool shows_a_cluster(const NodeReply& reply) { return reply.status == 200 || reply.status == 421 || reply.status == 409; }

JoinAnswer parse_join_answer(std::string_view body) {
  return JoinAnswer{string_field(body, "status").value_or(""), string_field(body, "reason").value_or("")};
}

std::string parse_leader_hint(std::string_view body) {
  std::string address = string_field(body, "leader_addr").value_or("");
  if (address.empty() || address.size() > kHintBytesMax) {
    return {};
  }
  const io::Result<HostPort> parsed = parse_address(address);
  if (!parsed.ok() || parsed->host.empty() || parsed->port == 0) {
    return {};
  }
  return address;
}

}  // namespace engine::cluster
