#include "engine/metastore/records.h"

#include "engine/metastore/records_fb.h"
#include "io/check.h"

namespace engine::metastore {

using Builder = flatbuffers::FlatBufferBuilder;

namespace {

template <typename Value, typename Build>
std::string encoded(const Value& value, Build build, size_t first_bytes) {
  Builder builder(first_bytes);
  builder.Finish(build(builder, value));
  return std::string(finished(builder));
}

}  // namespace

std::string_view to_string(MemberStatus status) {
  switch (status) {
    case MemberStatus::alive: return "alive";
    case MemberStatus::dead: return "dead";
  }
  NARAD_CHECK(false, "a member status without a name");
  return "";
}

// ---- Assignments -----------------------------------------------------------------------------------------------------------

flatbuffers::Offset<fb::Assignment> build_assignment(Builder& builder, const Assignment& assignment) {
  auto topic = text_or_none(builder, assignment.topic);
  auto owner = text_or_none(builder, assignment.owner_id);
  auto target = text_or_none(builder, assignment.target_id);
  return fb::CreateAssignment(builder, topic, assignment.partition, owner, target);
}

Assignment read_assignment(const fb::Assignment& stored, Copies& copies) {
  return {copies.text(stored.topic()), stored.partition(), copies.text(stored.owner_id()), copies.text(stored.target_id())};
}

std::string encode_assignment(const Assignment& assignment) { return encoded(assignment, build_assignment, 128); }

std::optional<Assignment> decode_assignment(std::string_view bytes) { return read_root<fb::Assignment>(bytes, read_assignment); }

// ---- Members ---------------------------------------------------------------------------------------------------------------

flatbuffers::Offset<fb::Member> build_member(Builder& builder, const Member& member) {
  auto id = text_or_none(builder, member.id);
  auto addr = text_or_none(builder, member.addr);
  auto cluster_addr = text_or_none(builder, member.cluster_addr);
  auto build = text_or_none(builder, member.build);
  return fb::CreateMember(builder, id, addr, cluster_addr, static_cast<uint8_t>(member.status), member.last_heartbeat,
                          member.draining, build, member.entry_types);
}

Member read_member(const fb::Member& stored, Copies& copies) {
  if (stored.status() > static_cast<uint8_t>(MemberStatus::dead)) {
    copies.fail();
    return {};
  }
  Member member;
  member.id = copies.text(stored.id());
  member.addr = copies.text(stored.addr());
  member.cluster_addr = copies.text(stored.cluster_addr());
  member.status = static_cast<MemberStatus>(stored.status());
  member.last_heartbeat = stored.last_heartbeat();
  member.draining = stored.draining();
  member.build = copies.text(stored.build());
  member.entry_types = stored.entry_types();
  return member;
}

std::string encode_member(const Member& member) { return encoded(member, build_member, 256); }

std::optional<Member> decode_member(std::string_view bytes) { return read_root<fb::Member>(bytes, read_member); }

std::string encode_tombstone(const Tombstone& tombstone) {
  Builder builder(64);
  builder.Finish(fb::CreateTombstone(builder, tombstone.removed_at));
  return std::string(finished(builder));
}

std::optional<Tombstone> decode_tombstone(std::string_view bytes) {
  return read_root<fb::Tombstone>(bytes, [](const fb::Tombstone& stored, Copies&) { return Tombstone{stored.removed_at()}; });
}

// ---- Users -----------------------------------------------------------------------------------------------------------------

flatbuffers::Offset<StoredGrants> build_grants(Builder& builder, const std::vector<Grant>& grants) {
  if (grants.empty()) {
    return 0;
  }
  std::vector<flatbuffers::Offset<fb::Grant>> built;
  for (const Grant& grant : grants) {
    auto action = text_or_none(builder, grant.action);
    auto patterns = texts_or_none(builder, grant.patterns);
    built.push_back(fb::CreateGrant(builder, action, patterns));
  }
  return builder.CreateVector(built);
}

std::vector<Grant> read_grants(const StoredGrants* stored, Copies& copies) {
  std::vector<Grant> grants;
  if (!copies.list(stored)) {
    return grants;
  }
  for (const fb::Grant* grant : *stored) {
    if (!copies.table()) {
      break;
    }
    grants.push_back({copies.text(grant->action()), copies.texts(grant->patterns())});
  }
  return grants;
}

flatbuffers::Offset<fb::User> build_user(Builder& builder, const User& user) {
  auto grants = build_grants(builder, user.grants);
  auto username = text_or_none(builder, user.username);
  auto hash = bytes_or_none(builder, user.password_hash);
  return fb::CreateUser(builder, username, hash, grants, user.root, user.created_at_ms, user.updated_at_ms);
}

User read_user(const fb::User& stored, Copies& copies) {
  User user;
  user.username = copies.text(stored.username());
  user.password_hash = copies.bytes(stored.password_hash());
  user.grants = read_grants(stored.grants(), copies);
  user.root = stored.root();
  user.created_at_ms = stored.created_at_ms();
  user.updated_at_ms = stored.updated_at_ms();
  return user;
}

std::string encode_user(const User& user) { return encoded(user, build_user, 256); }

std::optional<User> decode_user(std::string_view bytes) { return read_root<fb::User>(bytes, read_user); }

// ---- Remotes ---------------------------------------------------------------------------------------------------------------

flatbuffers::Offset<fb::RemoteLimits> build_remote_limits(Builder& builder, const RemoteLimits& limits) {
  auto compression = text_or_none(builder, limits.compression);
  return fb::CreateRemoteLimits(builder, limits.max_in_flight, limits.request_timeout_ms, limits.idle_conn_timeout_ms,
                                limits.conn_max_age_ms, limits.check_interval_ms, compression);
}

RemoteLimits read_remote_limits(const fb::RemoteLimits* stored, Copies& copies) {
  RemoteLimits limits{0, 0, 0, 0, 0, ""};
  if (stored == nullptr || !copies.table()) {
    return limits;
  }
  limits.max_in_flight = stored->max_in_flight();
  limits.request_timeout_ms = stored->request_timeout_ms();
  limits.idle_conn_timeout_ms = stored->idle_conn_timeout_ms();
  limits.conn_max_age_ms = stored->conn_max_age_ms();
  limits.check_interval_ms = stored->check_interval_ms();
  limits.compression = copies.text(stored->compression());
  return limits;
}

flatbuffers::Offset<fb::Remote> build_remote(Builder& builder, const Remote& remote) {
  auto limits = build_remote_limits(builder, remote.limits);
  auto name = text_or_none(builder, remote.name);
  auto url = text_or_none(builder, remote.url);
  auto username = text_or_none(builder, remote.username);
  auto ca_pem = text_or_none(builder, remote.ca_pem);
  auto credential = bytes_or_none(builder, remote.credential);
  auto fingerprint = text_or_none(builder, remote.fingerprint);
  auto created_by = text_or_none(builder, remote.created_by);
  auto updated_by = text_or_none(builder, remote.updated_by);
  return fb::CreateRemote(builder, name, url, username, ca_pem, limits, credential, fingerprint, remote.credential_version,
                          remote.revision, created_by, remote.created_at_ms, updated_by, remote.updated_at_ms);
}

Remote read_remote(const fb::Remote& stored, Copies& copies) {
  Remote remote;
  remote.name = copies.text(stored.name());
  remote.url = copies.text(stored.url());
  remote.username = copies.text(stored.username());
  remote.ca_pem = copies.text(stored.ca_pem());
  remote.limits = read_remote_limits(stored.limits(), copies);
  remote.credential = copies.bytes(stored.credential());
  remote.fingerprint = copies.text(stored.fingerprint());
  remote.credential_version = stored.credential_version();
  remote.revision = stored.revision();
  remote.created_by = copies.text(stored.created_by());
  remote.created_at_ms = stored.created_at_ms();
  remote.updated_by = copies.text(stored.updated_by());
  remote.updated_at_ms = stored.updated_at_ms();
  return remote;
}

std::string encode_remote(const Remote& remote) { return encoded(remote, build_remote, 512); }

std::optional<Remote> decode_remote(std::string_view bytes) { return read_root<fb::Remote>(bytes, read_remote); }

}  // namespace engine::metastore
