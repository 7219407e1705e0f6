#include "engine/cluster/forget_service.h"

#include "engine/cluster/join_rules.h"
#include "engine/json_text.h"
#include "engine/metastore/records_reader.h"
#include "io/probe.h"

namespace engine::cluster {

namespace {

constexpr io::Duration kLookTimeout = std::chrono::seconds(5);
constexpr io::Duration kChangeTimeout = std::chrono::seconds(5);

NodeReply refused(std::string_view id, std::string_view why) {
  return error_reply(409, "server " + std::string(id) + " is not forgotten: " + std::string(why));
}

}  // namespace

std::optional<NodeReply> why_not_forgotten(const io::Result<ForgetServerRequest>& request, const ForgetFacts& facts) {
  if (!request.ok()) {
    return error_reply(400, "invalid forget server request: " + request.error().message);
  }
  const std::string& id = request->id;
  if (id.empty()) {
    return error_reply(400, "server id is required");
  }
  if (!facts.is_leader) {
    return not_leader_reply(facts.leader_id, facts.leader_addr);
  }
  if (facts.is_self) {
    return error_reply(400, "the leader cannot forget itself");
  }
  if (!facts.server.has_value()) {
    return error_reply(404, "no raft server " + id);
  }
  if (!facts.read_error.empty()) {
    return error_reply(503, "membership lookup failed");
  }
  if (facts.has_record) {
    SOMETIMES("forget: refused, it has a member record");
    return refused(id, "it has a member record; decommission it instead");
  }
  if (facts.has_assignment) {
    return refused(id, "partitions are assigned to it");
  }
  if (facts.server->is_voter && facts.led_for < kPromotionWait) {
    SOMETIMES("forget: a voter is kept, the leader is new");
    return refused(id, "it votes, and the leader has led for less than 12s, too short to know which voters it can reach");
  }
  return std::nullopt;
}

NodeReply ForgetService::answer(std::string_view payload) {
  const io::Result<ForgetServerRequest> request = decode_forget_server(payload);
  const ForgetFacts facts = request.ok() ? look(request->id) : ForgetFacts{};
  if (std::optional<NodeReply> refusal = why_not_forgotten(request, facts)) {
    return *refusal;
  }
  const std::string& id = request->id;
  const raft::Proposed changed =
      raft_.change_configuration({raft::ConfigurationChange::Kind::remove, id, {}, {}}, env_.after(kChangeTimeout));
  if (changed.refusal == raft::Refusal::no_live_majority) {
    SOMETIMES("forget: a voter is kept, the others may lack a quorum");
    return refused(id, "the voters that can be reached may be too few without it");
  }
  if (!changed.ok() && changed.refusal != raft::Refusal::already_so) {
    return error_reply(503, "forget server failed: " + changed.reason);
  }
  env_.log.warn("forgot a raft server with no member record",
                {{"component", "audit"}, {"id", id}, {"address", facts.server->addr}, {"voter", facts.server->is_voter}});
  return json_reply(200, "{\"id\":" + json_quoted(id) + ",\"voter\":" + (facts.server->is_voter ? "true" : "false") + "}");
}

ForgetFacts ForgetService::look(const std::string& id) {
  ForgetFacts facts;
  const io::Instant deadline = env_.after(kLookTimeout);
  facts.is_leader = raft_.is_leader();
  if (facts.is_leader && !replica_.barrier(deadline).ok()) {
    facts.read_error = "no barrier";  // of a deposed leader, which may not know it yet: it is asked again below
    facts.is_leader = raft_.is_leader();
  }
  if (!facts.is_leader) {
    const raft::LeaderHint leader = raft_.leader();
    facts.leader_id = leader.id;
    facts.leader_addr = leader.address;
    return facts;
  }
  const io::Result<std::optional<metastore::Member>> member = metastore::get_member(reader_, id, deadline);
  const io::Result<bool> assigned = has_assignment(id, deadline);
  if (!member.ok() || !assigned.ok()) {
    facts.read_error = member.ok() ? assigned.error().to_text() : member.error().to_text();
  } else {
    facts.has_record = member->has_value();
    facts.has_assignment = *assigned;
  }
  // Last, so that nothing waits between this and the change.
  facts.is_leader = raft_.is_leader();
  if (!facts.is_leader) {
    return facts;
  }
  facts.is_self = id == raft_.core().id();
  if (const raft::Server* server = raft_.core().configuration().find(id)) {
    facts.server = ForgetFacts::Server{server->address, server->voter};
  }
  facts.led_for = raft_.led_for();
  return facts;
}

io::Result<bool> ForgetService::has_assignment(std::string_view id, io::Instant deadline) {
  std::string after;
  while (true) {
    const auto rows = metastore::list_all_assignments(reader_, after, metastore::kListMax, deadline);
    if (!rows.ok()) {
      return rows.error();
    }
    for (const metastore::AssignmentRow& row : *rows) {
      if (row.assignment.owner_id == id || row.assignment.target_id == id) {
        return true;
      }
    }
    if (rows->size() < metastore::kListMax) {
      return false;
    }
    after = rows->back().key;
  }
}

}  // namespace engine::cluster
