#include "engine/cluster/decommission.h"

#include <algorithm>

#include "engine/cluster/admin_json.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/records_reader.h"
#include "io/probe.h"

namespace engine::cluster {

using metastore::Assignment;
using metastore::Member;
using metastore::MemberStatus;

DecommissionFacts decommission_facts(std::string_view id, const Picture& picture, const std::vector<ServerFact>& servers) {
  DecommissionFacts facts;
  facts.id = std::string(id);
  facts.members = picture.members;
  const auto is_alive = [&](std::string_view who) {
    const Member* member = picture.member(who);
    return member != nullptr && member->status == MemberStatus::alive;
  };
  facts.is_alive = is_alive(id);
  for (const ServerFact& server : servers) {
    if (server.is_voter) {
      facts.voters.push_back({server.id, is_alive(server.id) && server.is_in_contact});
    }
  }
  for (const Assignment& row : picture.rows) {
    if (!picture.is_live(row)) {
      continue;
    }
    const bool is_moving = !row.target_id.empty();
    facts.moves_in_flight += is_moving ? 1 : 0;
    facts.inbound_moves += is_moving && row.target_id == id ? 1 : 0;
    facts.owned_partitions += row.owner_id == id ? 1 : 0;
    facts.outbound_moves += row.owner_id == id && is_moving ? 1 : 0;
  }
  return facts;
}

Reply refusal_reply(std::string_view id, const std::vector<Blocked>& reasons) {
  return Reply{409, refusal_json(id, reasons) + "\n"};
}

// ---- The operator's word -----------------------------------------------------------------------------------------------------

Reply Decommission::request(std::string_view id, bool cancel, io::Instant deadline) {
  // A removal, once begun, is not taken back half way; and of two requests the second is judged by what the first has come to.
  const AssignmentLock::Hold hold(parts_.assigner.lock(), AssignmentLock::Scope::any_topic, deadline);
  if (!hold.is_held()) {
    return unavailable_reply("partitions are being assigned");
  }
  const raft::Term term = parts_.proposer.term();
  if (io::Status reached = parts_.proposer.barrier(std::min(deadline, parts_.env.after(kControllerBarrierTimeout))); !reached.ok()) {
    return unavailable_reply(reached.error().message);
  }
  const io::Result<Picture> picture = read_picture(parts_.reader, deadline);
  if (!picture.ok()) {
    return unavailable_reply(picture.error().to_text());
  }
  const Member* member = picture->member(id);
  if (member == nullptr) {
    return engine::error_reply(404, "member not found");
  }
  if (member->draining != cancel) {
    return Reply{204, ""};
  }
  if (!cancel) {
    const std::vector<Blocked> reasons = refuse_decommission(decommission_facts(id, *picture, parts_.servers.list()));
    if (!reasons.empty()) {
      SOMETIMES("decommission: refused up front");
      return refusal_reply(id, reasons);
    }
  }
  const Written written = write_in_term(parts_.proposer, term,
                                        metastore::encode_command(metastore::SetMemberDraining{std::string(id), !cancel}),
                                        std::min(deadline, parts_.env.after(kControllerWriteTimeout)));
  switch (written.kind) {
    case Written::Kind::done:
      if (cancel) {
        SOMETIMES("decommission: cancelled");
      }
      return Reply{204, ""};
    case Written::Kind::refused: return engine::error_reply(404, "member not found");
    case Written::Kind::unknown: return outcome_unknown_reply();
    case Written::Kind::not_written: break;
  }
  return unavailable_reply(written.reason);
}

// ---- The controller's pass ---------------------------------------------------------------------------------------------------

void Decommission::pass(const Picture& picture, raft::Term term, io::Instant deadline) {
  std::erase_if(blocked_, [&](const auto& entry) {
    const Member* member = picture.member(entry.first);
    return member == nullptr || !member->draining;
  });
  for (const Member& member : picture.members) {
    if (member.draining && leads_in(parts_.proposer, term)) {
      note(member.id, step(member, picture, term, deadline));
    }
  }
}

std::optional<Blocked> Decommission::step(const Member& member, const Picture& picture, raft::Term term, io::Instant deadline) {
  const DecommissionFacts facts = decommission_facts(member.id, picture, parts_.servers.list());
  if (std::optional<Blocked> blocked = blocked_draining(facts)) {
    return blocked;
  }
  if (facts.owned_partitions > 0) {
    return std::nullopt;
  }
  // Out of raft already: the leader before this one did not get as far as the tombstone.
  if (parts_.servers.has(member.id)) {
    if (std::optional<Blocked> blocked = blocked_backlog(member.id, parts_.ask_backlog(member, deadline))) {
      return blocked;
    }
    if (std::optional<Blocked> blocked = blocked_removal(facts)) {
      return blocked;
    }
    if (member.id == parts_.servers.self()) {
      return hand_over(deadline);
    }
  } else {
    SOMETIMES("decommission: a member that is out of raft still has its record");
  }
  return remove(member, term, deadline);
}

std::optional<Blocked> Decommission::hand_over(io::Instant deadline) {
  SOMETIMES("decommission: the draining member leads and hands over");
  const io::Status handed = parts_.servers.hand_over(std::min(deadline, parts_.env.after(kHandOverTimeout)));
  if (handed.ok()) {
    return std::nullopt;
  }
  return Blocked{DecommissionReason::leader_transfer, "it leads, and leadership could not be handed over: " + handed.error().message};
}

std::optional<Blocked> Decommission::remove(const Member& member, raft::Term term, io::Instant deadline) {
  const AssignmentLock::Hold hold(parts_.assigner.lock(), AssignmentLock::Scope::any_topic, deadline);
  const io::Instant bound = std::min(deadline, parts_.env.after(kControllerBarrierTimeout));
  if (!hold.is_held() || !parts_.proposer.barrier(bound).ok() || !leads_in(parts_.proposer, term)) {
    return std::nullopt;
  }
  const io::Result<Picture> picture = read_picture(parts_.reader, bound);
  if (!picture.ok()) {
    return std::nullopt;
  }
  const Member* record = picture->member(member.id);
  const DecommissionFacts facts = decommission_facts(member.id, *picture, parts_.servers.list());
  if (record == nullptr || !record->draining || facts.owned_partitions > 0 || facts.inbound_moves > 0) {
    SOMETIMES("decommission: a removal is dropped, its ground has changed");
    return std::nullopt;
  }
  if (std::optional<Blocked> blocked = blocked_removal(facts)) {
    return blocked;
  }
  if (io::Status removed = parts_.servers.remove(member.id, parts_.env.after(kControllerWriteTimeout)); !removed.ok()) {
    parts_.env.log.warn("controller: a drained member could not be taken out of raft yet",
                        {{"node", member.id}, {"err", removed.error().message}});
    return std::nullopt;
  }
  const metastore::RemoveMember tombstone{member.id, io::to_unix_seconds(parts_.env.clock.wall())};
  const Written written = write_in_term(parts_.proposer, term, metastore::encode_command(tombstone),
                                        parts_.env.after(kControllerWriteTimeout));
  if (written.is_done()) {
    SOMETIMES("decommission: a drained member is removed");
    parts_.env.log.info("controller: member decommissioned and removed", {{"node", member.id}});
  }
  return std::nullopt;
}

void Decommission::note(const std::string& id, const std::optional<Blocked>& blocked) {
  const auto known = blocked_.find(id);
  if (!blocked) {
    if (known != blocked_.end()) {
      parts_.env.log.info("controller: decommission no longer blocked", {{"node", id}, {"reason", code_of(known->second.reason)}});
      blocked_.erase(known);
    }
    return;
  }
  const bool is_new = known == blocked_.end() || known->second.reason != blocked->reason;
  blocked_[id] = *blocked;
  if (!is_new) {
    return;
  }
  const std::vector<io::LogField> fields{{"node", id}, {"reason", code_of(blocked->reason)}, {"detail", blocked->message}};
  if (clears_by_itself(blocked->reason)) {
    parts_.env.log.warn("controller: decommission waiting", fields);
  } else {
    parts_.env.log.error("controller: decommission blocked", fields);
  }
}

}  // namespace engine::cluster
