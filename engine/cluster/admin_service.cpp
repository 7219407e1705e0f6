#include "engine/cluster/admin_service.h"

#include <algorithm>
#include <map>
#include <optional>

#include "engine/metastore/records_reader.h"
#include "io/probe.h"

namespace engine::cluster {

using metastore::Assignment;
using metastore::Member;
using metastore::MemberStatus;

namespace {

constexpr std::string_view kAbortNote =
    "the partition stays where it is; the planner may choose the same move again, unless what made it necessary has changed";

Reply json_reply_of(std::string body) { return Reply{200, std::move(body) + "\n"}; }

std::string status_of(const Picture& picture, std::string_view id) {
  const Member* member = picture.member(id);
  if (member == nullptr) {
    return "not_a_member";
  }
  if (member->status == MemberStatus::dead) {
    return "dead";
  }
  return member->draining ? "draining" : "alive";
}

MoveRow move_row(const Assignment& row, const Picture& picture) {
  MoveRow move;
  move.topic = row.topic;
  move.partition = row.partition;
  move.from = row.owner_id;
  move.to = row.target_id;
  move.from_status = status_of(picture, row.owner_id);
  move.to_status = status_of(picture, row.target_id);
  move.blocked = to_string(block_of(row, picture));
  return move;
}

bool is_voter(const std::vector<ServerFact>& servers, std::string_view id) {
  return std::any_of(servers.begin(), servers.end(), [&](const ServerFact& server) { return server.id == id && server.is_voter; });
}

// What the destination itself says of the move.
void add_worker(MoveRow& move, const AskedStatus& asked) {
  if (asked.kind != NodeBacklog::Kind::told) {
    move.worker_error = asked.error;
    return;
  }
  for (const NodeStatusFacts::Move& worker : asked.facts.moves) {
    if (worker.topic == move.topic && worker.partition == move.partition) {
      move.worker = node_move_json(worker);
    }
  }
}

}  // namespace

Reply AdminService::members(bool detail, io::Instant deadline) {
  const io::Result<Picture> picture = read_picture(parts_.reader, deadline);
  if (!picture.ok()) {
    return unavailable_reply(picture.error().to_text());
  }
  std::map<std::string, AskedStatus> statuses;
  if (detail) {
    statuses = parts_.statuses.ask_all(picture->members, deadline);
  }
  const std::vector<ServerFact> servers = parts_.servers.list();
  const std::string leader = parts_.leader();
  const int64_t now = io::to_unix_seconds(parts_.env.clock.wall());
  std::vector<MemberRow> rows;
  for (const Member& member : picture->members) {
    const DecommissionFacts facts = decommission_facts(member.id, *picture, servers);
    MemberRow row;
    row.id = member.id;
    row.addr = member.addr;
    row.status = metastore::to_string(member.status);
    row.is_draining = member.draining;
    row.owned_partitions = facts.owned_partitions;
    row.outbound_moves = facts.outbound_moves;
    row.is_voter = is_voter(servers, member.id);
    row.is_leader = member.id == leader;
    row.heartbeat_age_seconds = std::max<int64_t>(0, now - member.last_heartbeat);
    if (const auto blocked = parts_.decommission.blocked().find(member.id); blocked != parts_.decommission.blocked().end()) {
      row.decommission_blocked.push_back(blocked->second);
    }
    if (detail) {
      AskedStatus& asked = statuses.at(member.id);
      row.node_status = asked.kind == NodeBacklog::Kind::told ? std::move(asked.json) : std::string();
      row.status_error = std::move(asked.error);
    }
    rows.push_back(std::move(row));
  }
  return json_reply_of(members_json(rows));
}

Reply AdminService::moves(bool detail, io::Instant deadline) {
  const io::Result<Picture> picture = read_picture(parts_.reader, deadline);
  if (!picture.ok()) {
    return unavailable_reply(picture.error().to_text());
  }
  std::vector<MoveRow> rows;
  std::vector<Member> destinations;
  for (const Assignment& row : picture->rows) {
    if (row.target_id.empty() || !picture->is_live(row)) {
      continue;
    }
    rows.push_back(move_row(row, *picture));
    const Member* target = picture->member(row.target_id);
    const bool is_new = std::none_of(destinations.begin(), destinations.end(),
                                     [&](const Member& member) { return member.id == row.target_id; });
    if (target != nullptr && is_new) {
      destinations.push_back(*target);
    }
  }
  std::sort(rows.begin(), rows.end(), [](const MoveRow& one, const MoveRow& other) {
    return std::tie(one.topic, one.partition) < std::tie(other.topic, other.partition);
  });
  if (detail) {
    const std::map<std::string, AskedStatus> statuses = parts_.statuses.ask_all(destinations, deadline);
    for (MoveRow& row : rows) {
      if (const auto asked = statuses.find(row.to); asked != statuses.end()) {
        add_worker(row, asked->second);
      }
    }
  }
  return json_reply_of(moves_json(rows));
}

Reply AdminService::decommission_dry_run(std::string_view id, io::Instant deadline) {
  const io::Result<Picture> picture = read_picture(parts_.reader, deadline);
  if (!picture.ok()) {
    return unavailable_reply(picture.error().to_text());
  }
  if (picture->member(id) == nullptr) {
    return engine::error_reply(404, "member not found");
  }
  const std::vector<ServerFact> servers = parts_.servers.list();
  const DecommissionFacts facts = decommission_facts(id, *picture, servers);
  DryRun result;
  result.member = std::string(id);
  result.reasons = refuse_decommission(facts);
  result.is_voter = is_voter(servers, id);
  result.owned_partitions = facts.owned_partitions;
  result.inbound_moves = facts.inbound_moves;
  return json_reply_of(dry_run_json(result));
}

Reply AdminService::decommission_here(std::string_view id, bool cancel, io::Instant deadline) {
  return parts_.decommission.request(id, cancel, deadline);
}

Reply AdminService::abort_move_here(std::string_view topic, int32_t partition, std::string_view target, io::Instant deadline) {
  Assignment before;
  Reply reply = parts_.moves.abort(topic, partition, target, deadline, &before);
  if (!reply.ok()) {
    return reply;
  }
  SOMETIMES("admin: a move is aborted");
  MoveRow move;
  if (const io::Result<Picture> picture = read_picture(parts_.reader, deadline); picture.ok()) {
    move = move_row(before, *picture);
  } else {
    move.topic = before.topic;
    move.partition = before.partition;
    move.from = before.owner_id;
    move.to = before.target_id;
  }
  return Reply{202, aborted_json(move, kAbortNote) + "\n"};
}

Reply AdminService::complete_move_here(std::string_view topic, int32_t partition, std::string_view expected_owner,
                                       std::string_view target, io::Instant deadline) {
  return parts_.moves.complete(topic, partition, expected_owner, target, deadline);
}

Reply AdminService::assignment_here(std::string_view topic, int32_t partition, io::Instant deadline) {
  if (io::Status reached = parts_.proposer.barrier(std::min(deadline, parts_.env.after(kControllerBarrierTimeout))); !reached.ok()) {
    return unavailable_reply(reached.error().message);
  }
  const io::Result<std::optional<Assignment>> row = metastore::get_assignment(parts_.reader, topic, partition, deadline);
  if (!row.ok()) {
    return unavailable_reply(row.error().to_text());
  }
  if (!row->has_value()) {
    return engine::error_reply(404, "no such assignment");
  }
  return json_reply_of(assignment_json((*row)->topic, (*row)->partition, (*row)->owner_id, (*row)->target_id));
}

Reply AdminService::node_status() { return json_reply_of(node_status_json(parts_.own_status())); }

}  // namespace engine::cluster
