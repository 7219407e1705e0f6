#include "engine/metastore/apply_members.h"

#include <optional>
#include <string>

#include "engine/metastore/records.h"
#include "io/check.h"
#include "io/defence.h"

namespace engine::metastore {

namespace {

std::optional<Member> load(Transaction& rows, const std::string& id) {
  std::optional<std::string> bytes = rows.get(Bucket::members, id);
  if (!bytes) {
    return std::nullopt;
  }
  std::optional<Member> member = decode_member(*bytes);
  NARAD_CHECK(member.has_value(), "a member row that is no record");
  return member;
}

void store(Transaction& rows, const Member& member) { rows.put(Bucket::members, member.id, encode_member(member)); }

Answer no_member(const std::string& id) { return refuse(Code::not_found, "member " + id); }

bool routes_alike(const Member& one, const Member& other) {
  return one.id == other.id && one.addr == other.addr && one.cluster_addr == other.cluster_addr && one.status == other.status;
}

Answer mark_dead(Transaction& rows, Member member, Effects& effects) {
  if (member.status == MemberStatus::dead) {
    return {};
  }
  member.status = MemberStatus::dead;
  store(rows, member);
  effects.moved(Domain::routing_members);
  return {};
}

}  // namespace

Answer apply_entry(Transaction& rows, const RegisterMember& entry, Effects& effects) {
  if (rows.get(Bucket::removed_members, entry.member.id)) {
    return refuse(Code::member_removed, "member " + entry.member.id);
  }
  const std::optional<Member> stored = load(rows, entry.member.id);
  Member member = entry.member;
  if (stored) {
    member.draining = stored->draining;
  }
  store(rows, member);
  if (!stored || !routes_alike(*stored, member)) {
    effects.moved(Domain::routing_members);
  }
  return {};
}

Answer apply_entry(Transaction& rows, const HeartbeatMember& entry, Effects&) {
  std::optional<Member> member = load(rows, entry.id);
  if (!member) {
    return no_member(entry.id);
  }
  member->last_heartbeat = entry.at;
  store(rows, *member);
  return {};
}

Answer apply_entry(Transaction& rows, const MarkMemberDead& entry, Effects& effects) {
  std::optional<Member> member = load(rows, entry.id);
  return member ? mark_dead(rows, std::move(*member), effects) : no_member(entry.id);
}

Answer apply_entry(Transaction& rows, const SetMemberDraining& entry, Effects&) {
  std::optional<Member> member = load(rows, entry.id);
  if (!member) {
    return no_member(entry.id);
  }
  member->draining = entry.draining;
  store(rows, *member);
  return {};
}

Answer apply_entry(Transaction& rows, const RemoveMember& entry, Effects& effects) {
  if (rows.get(Bucket::members, entry.id)) {
    rows.erase(Bucket::members, entry.id);
    effects.moved(Domain::routing_members);
  }
  rows.put(Bucket::removed_members, entry.id, encode_tombstone({entry.at}));
  return {};
}

Answer apply_entry(Transaction& rows, const ReadmitMember& entry, Effects&) {
  rows.erase(Bucket::removed_members, entry.id);
  return {};
}

Answer apply_entry(Transaction& rows, const MarkMemberDeadIf& entry, Effects& effects) {
  std::optional<Member> member = load(rows, entry.id);
  if (!member) {
    return no_member(entry.id);
  }
  if (member->last_heartbeat > entry.last_heartbeat && io::defence(io::Defence::dead_mark_over_newer_heartbeat)) {
    return refuse(Code::member_heartbeat_newer, "member " + entry.id);
  }
  return mark_dead(rows, std::move(*member), effects);
}

}  // namespace engine::metastore
