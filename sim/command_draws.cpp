#include "sim/command_draws.h"

#include <optional>
#include <utility>

#include "engine/metastore/apply_remotes.h"
#include "engine/metastore/apply_schemas.h"
#include "engine/metastore/kept_rows.h"
#include "io/check.h"

namespace sim {

namespace ms = engine::metastore;
using ms::EntryType;

namespace {

constexpr uint64_t kTopics = 6;
constexpr uint64_t kUsers = 4;
constexpr uint64_t kMembers = 4;
constexpr uint64_t kRemotes = 3;
constexpr int64_t kMinuteMs = 60'000;
constexpr int64_t kTwoDaysMs = 2 * 86'400'000;
constexpr int64_t kTwoYearsMs = 2 * 365 * int64_t{86'400'000};

// The topic that a crowd gathers under.
const std::string kCrowded = "m0";
constexpr size_t kBigSchemaBytes = 600'000;

// Whether a command takes from the crowded topic, or makes of it what no crowd can gather under.
template <typename C>
bool touches_crowded(const C&) { return false; }
bool touches_crowded(const ms::CreateTopic& entry) { return entry.topic.name == kCrowded; }
bool touches_crowded(const ms::UpdateTopic& entry) { return entry.topic.name == kCrowded; }
bool touches_crowded(const ms::DeleteTopic& entry) { return entry.name == kCrowded; }
bool touches_crowded(const ms::PutSchema& entry) { return entry.topic == kCrowded; }
bool touches_crowded(const ms::AttachChild& entry) { return entry.child == kCrowded; }
bool touches_crowded(const ms::DetachChild& entry) { return entry.parent == kCrowded; }
bool touches_crowded(const ms::CreateTopicLinked& entry) { return entry.topic.name == kCrowded; }
bool touches_crowded(const ms::UpdateTopicIf& entry) { return entry.topic.name == kCrowded; }
bool touches_crowded(const ms::DeleteTopicIf& entry) { return entry.name == kCrowded; }
bool touches_crowded(const ms::PutSchemaIf& entry) { return entry.topic == kCrowded; }
bool touches_crowded(const ms::AttachChildIf& entry) { return entry.link.child == kCrowded; }
bool touches_crowded(const ms::DetachChildIf& entry) { return entry.parent == kCrowded; }

}  // namespace

bool is_command_topic(std::string_view name) { return !name.empty() && (name[0] == 'm' || name[0] == 'M'); }

bool is_command_member(std::string_view id) { return id.starts_with('w'); }

// What a draw may know.
struct CommandDraws::Context {
  const ms::MemoryRows& rows;
  int64_t now_seconds;

  std::optional<std::string> find(ms::Bucket bucket, std::string_view key) const {
    const auto found = rows.rows().find(ms::row_key(bucket, key));
    return found == rows.rows().end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<ms::Topic> topic(const std::string& name) const {
    const auto bytes = find(ms::Bucket::topics, name);
    return bytes ? ms::decode_topic(*bytes) : std::nullopt;
  }
  // The incarnation that stands under the name; some other when there is none.
  std::string id_of(const std::string& name) const {
    const auto known = topic(name);
    return known ? known->id : "00000000000000ff";
  }
  std::optional<ms::Member> member(const std::string& id) const {
    const auto bytes = find(ms::Bucket::members, id);
    return bytes ? ms::decode_member(*bytes) : std::nullopt;
  }
  std::optional<ms::Remote> remote(const std::string& name) const {
    const auto bytes = find(ms::Bucket::remotes, name);
    return bytes ? ms::decode_remote(*bytes) : std::nullopt;
  }
  ms::SchemaHead schemas(const std::string& topic) const {
    return ms::decode_schema_head(find(ms::Bucket::schema_heads, topic).value_or("")).value_or(ms::SchemaHead{});
  }
  // The version that would follow the topic's newest schema.
  int64_t next_schema(const std::string& topic) const { return schemas(topic).versions + 1; }
};

ms::Command CommandDraws::draw(const ms::MemoryRows& rows, uint32_t newest_type, int64_t now_seconds) {
  const Context context{rows, now_seconds};
  if (auto crowded = draw_crowded(context, newest_type)) {
    return std::move(*crowded);
  }
  ms::Command command = draw_any(context, newest_type);
  while (thins_out(command)) command = draw_any(context, newest_type);
  return command;
}

// ---- Crowds ----------------------------------------------------------------------------------------------------------------

bool CommandDraws::thins_out(const ms::Command& command) const {
  switch (crowd_) {
    case Crowd::none: return false;
    case Crowd::remotes: return std::holds_alternative<ms::DeleteRemote>(command);
    default: return std::visit([](const auto& entry) { return touches_crowded(entry); }, command);
  }
}

std::optional<ms::Command> CommandDraws::draw_crowded(const Context& context, uint32_t newest_type) {
  const auto is_known = [newest_type](EntryType type) { return newest_type >= static_cast<uint32_t>(type); };
  if (crowd_ == Crowd::none || one_in(4)) return std::nullopt;
  if (crowd_ == Crowd::remotes) {
    if (!is_known(EntryType::create_remote)) return std::nullopt;
    return create_remote(context, "r" + std::to_string(10 + stream_.below(90)));
  }
  if (!context.topic(kCrowded)) {
    ms::Topic parent = topic(context);
    parent.name = kCrowded;
    parent.retention_ms = 0;
    return ms::CreateTopic{parent};
  }
  const std::string other = "m" + std::to_string(10 + stream_.below(160));
  switch (crowd_) {
    case Crowd::remote_children: {
      if (!is_known(EntryType::attach_remote_child)) return std::nullopt;
      const std::string remote = name_of('r', kRemotes);
      if (!context.remote(remote)) return create_remote(context, remote);
      return draw_remote_child(context, kCrowded, other);
    }
    case Crowd::schema_versions:
      if (is_known(EntryType::put_schema_if) && one_in(4)) {
        return ms::PutSchemaIf{kCrowded, context.next_schema(kCrowded), schema(), context.id_of(kCrowded)};
      }
      return ms::PutSchema{kCrowded, context.next_schema(kCrowded), schema()};
    case Crowd::schema_bytes: return draw_big_schema(context, newest_type);
    default: break;
  }
  if (is_known(EntryType::attach_remote_child) && one_in(8)) return draw_remote_child(context, kCrowded, other);
  if (is_known(EntryType::create_topic_linked) && !one_in(3)) return draw_linked(context, other, kCrowded);
  const auto standing = context.topic(other);
  if (!standing) {
    ms::Topic child = topic(context);
    child.name = other;
    return ms::CreateTopic{child};
  }
  ms::AttachChild attach{kCrowded, other, hex_id(), 0, offsets(context, kCrowded)};
  if (is_known(EntryType::attach_child_if) && one_in(2)) {
    return ms::AttachChildIf{attach, context.id_of(kCrowded), standing->id};
  }
  return attach;
}

ms::Command CommandDraws::draw_linked(const Context& context, const std::string& child, const std::string& parent) {
  ms::CreateTopicLinked create{topic(context), "", std::nullopt};
  create.topic.name = child;
  create.link = ms::ParentLink{parent, context.id_of(parent), hex_id(), 0, offsets(context, parent)};
  return create;
}

// The plain command has no budget of bytes: it goes past the limit, and then everything that has one is refused.
ms::Command CommandDraws::draw_big_schema(const Context& context, uint32_t newest_type) {
  const int64_t version = context.next_schema(kCrowded);
  if (context.schemas(kCrowded).bytes <= ms::kTopicSchemaBytesMax) {
    if (!one_in(6)) return ms::CreateUser{user(context)};  // few, and one after another
    return ms::PutSchema{kCrowded, version, R"({"type":"object","description":")" + std::string(kBigSchemaBytes, 'x') + "\"}"};
  }
  if (newest_type < static_cast<uint32_t>(EntryType::attach_child_if)) return ms::DeleteUser{name_of('u', kUsers)};
  const std::string child = "m" + std::to_string(10 + stream_.below(4));
  const auto standing = context.topic(child);
  switch (stream_.below(3)) {
    case 0: return ms::PutSchemaIf{kCrowded, version, schema(), context.id_of(kCrowded)};
    case 1: return draw_linked(context, "m" + std::to_string(20 + stream_.below(4)), kCrowded);
    default: break;
  }
  if (standing) return ms::AttachChildIf{{kCrowded, child, hex_id(), 0, offsets(context, kCrowded)}, context.id_of(kCrowded), standing->id};
  ms::Topic made = topic(context);
  made.name = child;
  return ms::CreateTopic{made};
}

// ---- Commands of every type --------------------------------------------------------------------------------------------------

ms::Command CommandDraws::draw_any(const Context& context, uint32_t newest_type) {
  const auto type = static_cast<EntryType>(stream_.below(newest_type) + 1);
  switch (type) {
    case EntryType::create_topic:
    case EntryType::update_topic:
    case EntryType::delete_topic:
    case EntryType::create_topic_linked:
    case EntryType::update_topic_if:
    case EntryType::delete_topic_if:
    case EntryType::put_schema:
    case EntryType::put_schema_if: return draw_topic(context, type);
    case EntryType::attach_child:
    case EntryType::detach_child:
    case EntryType::attach_child_if:
    case EntryType::detach_child_if: return draw_link(context, type);
    case EntryType::assign_partition:
    case EntryType::set_move_target:
    case EntryType::complete_move:
    case EntryType::abort_move:
    case EntryType::place_partition:
    case EntryType::prune_assignment: return draw_assignment(context, type);
    case EntryType::register_member:
    case EntryType::heartbeat_member:
    case EntryType::mark_member_dead:
    case EntryType::set_member_draining:
    case EntryType::remove_member:
    case EntryType::readmit_member:
    case EntryType::mark_member_dead_if: return draw_member(context, type);
    case EntryType::create_user:
    case EntryType::update_user:
    case EntryType::delete_user:
    case EntryType::seed_root_user:
    case EntryType::set_user_password:
    case EntryType::set_user_grants:
    case EntryType::delete_user_releasing: return draw_user(context, type);
    case EntryType::attach_remote_child:
    case EntryType::change_remote_child:
    case EntryType::create_remote:
    case EntryType::change_remote:
    case EntryType::delete_remote: return draw_remote(context, type);
  }
  NARAD_CHECK(false, "every type is drawn somewhere");
}

std::string CommandDraws::topic_name() {
  std::string name = name_of('m', kTopics);
  if (one_in(16)) name[0] = 'M';  // the same name to people
  return name;
}

std::string CommandDraws::hex_id() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string id;
  for (int i = 0; i < 16; ++i) id += kDigits[stream_.below(16)];
  return id;
}

std::string CommandDraws::schema() {
  // Equal values in other spellings among them.
  static constexpr const char* kSchemas[] = {R"({"type":"object"})", R"({ "type" : "object" })", R"({"type":"object","minProperties":1})",
                                             R"({"minProperties":1.0,"type":"object"})", R"({"type":"string"})"};
  if (schema_bytes_ > 0 && one_in(2)) {
    return R"({"type":"object","description":")" + std::string(schema_bytes_, static_cast<char>('a' + stream_.below(26))) + "\"}";
  }
  return kSchemas[stream_.below(std::size(kSchemas))];
}

ms::Topic CommandDraws::topic(const Context& context) {
  ms::Topic topic;
  topic.name = topic_name();
  topic.id = hex_id();
  topic.partitions = static_cast<int32_t>(1 + stream_.below(4));
  topic.visibility_timeout_ms = 30'000;
  topic.max_in_flight_per_partition = static_cast<int64_t>(1 + stream_.below(100));
  topic.max_acked_ahead_per_partition = 1'024;
  topic.created_at = context.now_seconds;
  if (one_in(3)) topic.retention_ms = one_in(2) ? kMinuteMs : kTwoDaysMs;
  if (one_in(3)) topic.owner = name_of('u', kUsers);
  return topic;
}

// Half of them of a topic that has children, which bounds what it may become; most keep the number of partitions.
ms::Topic CommandDraws::update(const Context& context) {
  ms::Topic updated = topic(context);
  if (one_in(2)) updated.name = parent_name(context);
  const auto stored = context.topic(updated.name);
  if (stored && !one_in(4)) updated.partitions = stored->partitions;
  return updated;
}

// Of a topic that has children, if one of the few looked at has.
std::string CommandDraws::parent_name(const Context& context) {
  std::string name = topic_name();
  for (uint64_t tries = 0; tries < kTopics; ++tries) {
    const auto known = context.topic(name);
    if (known && !known->children.empty()) break;
    name = topic_name();
  }
  return name;
}

// Mostly none; some that fit, and a few below 0 or beyond what any topic may have.
int64_t CommandDraws::delay() {
  if (one_in(30)) return one_in(2) ? -1 : kTwoYearsMs;
  return one_in(3) ? static_cast<int64_t>(stream_.below(60'000)) : 0;
}

std::vector<int64_t> CommandDraws::offsets(const Context& context, const std::string& parent) {
  const auto known = context.topic(parent);
  std::vector<int64_t> result(static_cast<size_t>(known ? known->partitions : 1), static_cast<int64_t>(stream_.below(50)));
  if (one_in(12)) result.push_back(1);
  return result;
}

ms::Command CommandDraws::draw_topic(const Context& context, EntryType type) {
  const std::string name = topic_name();
  const std::string expected = one_in(5) ? hex_id() : context.id_of(name);
  const int64_t version = one_in(6) ? static_cast<int64_t>(stream_.below(5)) : context.next_schema(name);
  switch (type) {
    case EntryType::create_topic: return ms::CreateTopic{topic(context)};
    case EntryType::update_topic: return ms::UpdateTopic{update(context)};
    case EntryType::delete_topic: return ms::DeleteTopic{name};
    case EntryType::create_topic_linked: {
      ms::CreateTopicLinked create{topic(context), one_in(2) ? schema() : "", std::nullopt};
      if (one_in(40)) create.topic.name.clear();
      if (one_in(2)) {
        ms::ParentLink link;
        link.parent = topic_name();
        link.parent_id = context.id_of(link.parent);
        link.epoch = hex_id();
        link.delay_ms = delay();
        link.offsets = offsets(context, link.parent);
        create.link = link;
      }
      return create;
    }
    case EntryType::update_topic_if: {
      ms::UpdateTopicIf changed{update(context), ""};
      changed.expected_id = one_in(5) ? hex_id() : context.id_of(changed.topic.name);
      return changed;
    }
    case EntryType::delete_topic_if: return ms::DeleteTopicIf{name, expected};
    case EntryType::put_schema: return ms::PutSchema{name, version, schema()};
    default: return ms::PutSchemaIf{name, version, schema(), expected};
  }
}

ms::Command CommandDraws::draw_link(const Context& context, EntryType type) {
  ms::AttachChild attach;
  attach.parent = topic_name();
  attach.child = topic_name();
  if (const auto parent = context.topic(attach.parent); parent && !parent->children.empty() && one_in(2)) {
    attach.child = parent->children[stream_.below(parent->children.size())];
  }
  attach.epoch = hex_id();
  attach.delay_ms = delay();
  attach.offsets = offsets(context, attach.parent);
  const std::string parent_id = one_in(6) ? hex_id() : context.id_of(attach.parent);
  const std::string child_id = one_in(6) ? hex_id() : context.id_of(attach.child);
  switch (type) {
    case EntryType::attach_child: return attach;
    case EntryType::detach_child: return ms::DetachChild{attach.parent, attach.child};
    case EntryType::attach_child_if: return ms::AttachChildIf{attach, parent_id, child_id};
    default: return ms::DetachChildIf{attach.parent, attach.child, parent_id, child_id};
  }
}

ms::Command CommandDraws::draw_assignment(const Context& context, EntryType type) {
  const std::string name = topic_name();
  const auto partition = static_cast<int32_t>(stream_.below(4));
  const std::string owner = name_of('w', kMembers);
  const std::string target = name_of('w', kMembers);
  switch (type) {
    case EntryType::assign_partition: return ms::AssignPartition{{name, partition, owner, one_in(3) ? target : ""}};
    case EntryType::set_move_target: return ms::SetMoveTarget{name, partition, one_in(5) ? "" : target};
    case EntryType::complete_move: return ms::CompleteMove{name, partition, owner, target};
    case EntryType::abort_move: return ms::AbortMove{name, partition, target};
    case EntryType::place_partition: return ms::PlacePartition{name, partition, one_in(20) ? "" : owner, one_in(5) ? hex_id() : context.id_of(name)};
    default: return ms::PruneAssignment{name, partition};
  }
}

ms::Command CommandDraws::draw_member(const Context& context, EntryType type) {
  const std::string id = name_of('w', kMembers);
  const auto known = context.member(id);
  const int64_t heard = known ? known->last_heartbeat : 0;
  switch (type) {
    case EntryType::register_member: {
      ms::Member member;
      member.id = id;
      member.addr = id + ":7942";
      member.cluster_addr = id + ":7943";
      member.last_heartbeat = context.now_seconds;
      // Of a release to come, so that mostly the nodes alone hold entry types back.
      const bool is_older = one_in(16);
      member.build = is_older ? "3.1.0" : "next";
      member.entry_types = is_older ? ms::kNewestEntryTypeOf31 : ms::kHypotheticalEntryType;
      return ms::RegisterMember{member};
    }
    case EntryType::heartbeat_member: return ms::HeartbeatMember{id, context.now_seconds - static_cast<int64_t>(stream_.below(3))};
    case EntryType::mark_member_dead: return ms::MarkMemberDead{id};
    case EntryType::set_member_draining: return ms::SetMemberDraining{id, one_in(2)};
    case EntryType::remove_member: return ms::RemoveMember{id, context.now_seconds};
    case EntryType::readmit_member: return ms::ReadmitMember{id, context.now_seconds};
    default: return ms::MarkMemberDeadIf{id, one_in(4) ? heard - 1 : heard};
  }
}

ms::User CommandDraws::user(const Context& context) {
  ms::User user;
  user.username = name_of('u', kUsers);
  user.password_hash = "$2b$10$" + hex_id();
  if (one_in(2)) user.grants.push_back({"produce", {"m*"}});
  user.created_at_ms = user.updated_at_ms = context.now_seconds * 1'000;
  return user;
}

ms::Command CommandDraws::draw_user(const Context& context, EntryType type) {
  const std::string name = one_in(8) ? "root" : name_of('u', kUsers);
  const int64_t at_ms = context.now_seconds * 1'000;
  switch (type) {
    case EntryType::create_user: return ms::CreateUser{user(context)};
    case EntryType::update_user: return ms::UpdateUser{user(context)};
    case EntryType::delete_user: return ms::DeleteUser{name};
    case EntryType::seed_root_user: {
      ms::User root = user(context);
      root.username = "root";
      root.root = true;
      return ms::SeedRootUser{root};
    }
    case EntryType::set_user_password: return ms::SetUserPassword{name, "$2b$10$" + hex_id(), at_ms};
    case EntryType::set_user_grants: return ms::SetUserGrants{name, {{"consume", {topic_name()}}}, at_ms};
    default: return ms::DeleteUserReleasing{name};
  }
}

ms::RemoteLink CommandDraws::link() {
  ms::RemoteLink link;
  link.name = name_of('r', kRemotes);
  link.topic = name_of('t', 2);
  link.target_id = hex_id();
  link.lanes = one_in(30) ? 9 : static_cast<int32_t>(stream_.below(4));
  return link;
}

ms::Command CommandDraws::draw_remote_child(const Context& context, const std::string& parent, const std::string& stub) {
  ms::AttachRemoteChild attach;
  attach.parent = parent;
  attach.parent_id = one_in(6) ? hex_id() : context.id_of(parent);
  attach.stub = stub;
  attach.stub_id = hex_id();
  attach.epoch = one_in(40) ? "" : hex_id();
  attach.delay_ms = delay();
  attach.offsets = offsets(context, parent);
  attach.remote = link();
  if (crowd_ == Crowd::remote_children) attach.remote.topic = name_of('t', 40);
  if (one_in(40)) attach.remote.from = "nowhere";
  attach.created_at = context.now_seconds;
  attach.actor = "root";
  attach.request_id = hex_id();
  return attach;
}

ms::ChangeRemoteChild CommandDraws::change_remote_child(const Context& context) {
  ms::ChangeRemoteChild change;
  change.parent = parent_name(context);
  const auto parent = context.topic(change.parent);
  change.stub = parent && !parent->children.empty() ? parent->children[stream_.below(parent->children.size())] : topic_name();
  const auto stub = context.topic(change.stub);
  change.epoch = stub && !one_in(6) ? stub->attach_epoch : hex_id();
  if (one_in(2)) {
    const std::string reason = one_in(10) ? std::string(ms::kPauseReasonMax + 1, 'x') : one_in(10) ? "by\nhand" : "by hand";
    change.pause = ms::PauseChange{one_in(2), reason, "root", context.now_seconds * 1'000};
  }
  if (one_in(4)) change.target_id = hex_id();
  if (one_in(3)) change.lanes = static_cast<int32_t>(stream_.below(10));
  if (one_in(3)) change.skip = ms::SkipOffset{static_cast<int32_t>(stream_.below(3)), static_cast<int64_t>(stream_.below(9)) - (one_in(12) ? 9 : 0)};
  change.actor = "root";
  change.request_id = hex_id();
  return change;
}

ms::CreateRemote CommandDraws::create_remote(const Context& context, const std::string& name) {
  ms::CreateRemote create;
  create.record.name = name;
  create.record.url = one_in(16) ? "http://" + name : "https://" + name + ".example:7942";
  create.record.username = "narad";
  create.record.credential = "sealed-" + hex_id();
  create.record.fingerprint = "key-1";
  create.salt = one_in(12) ? hex_id() : "0123456789abcdef";
  create.sealed_at_ms = context.now_seconds * 1'000;
  create.actor = "root";
  create.request_id = hex_id();
  return create;
}

ms::ChangeRemote CommandDraws::change_remote(const Context& context, const std::string& name) {
  const auto known = context.remote(name);
  ms::ChangeRemote change;
  change.name = name;
  if (one_in(2)) change.fields.username = name_of('n', 2);
  if (one_in(6)) change.fields.url = one_in(4) ? "nowhere" : "https://" + name_of('h', 2) + ".example";
  if (one_in(6)) change.fields.ca_pem = one_in(2) ? "" : "-----BEGIN CERTIFICATE-----";
  if (one_in(6)) {
    change.fields.limits = ms::RemoteLimits{};
    change.fields.limits->max_in_flight = one_in(4) ? 0 : static_cast<int32_t>(1 + stream_.below(64));
    change.fields.limits->compression = one_in(2) ? "zstd" : "none";
  }
  const bool is_bare = change.fields.is_empty() && one_in(20);
  if (!is_bare && (change.fields.is_empty() || one_in(2))) {
    change.credential = "sealed-" + hex_id();
    change.fingerprint = one_in(4) ? "key-2" : "key-1";
    change.reseal = one_in(4);
    if (known && !one_in(5)) {
      change.sealed_against = ms::SealedAgainst{change.fields.url.value_or(known->url), change.fields.username.value_or(known->username),
                                                change.fields.ca_pem.value_or(known->ca_pem)};
    }
  }
  if (known && one_in(4)) change.expect_credential_version = known->credential_version + (one_in(4) ? 1 : 0);
  change.read_revision = known ? known->revision : 1;
  change.sealed_at_ms = context.now_seconds * 1'000;
  change.actor = "root";
  change.request_id = hex_id();
  return change;
}

ms::Command CommandDraws::draw_remote(const Context& context, EntryType type) {
  const std::string name = name_of('r', kRemotes);
  switch (type) {
    case EntryType::attach_remote_child: return draw_remote_child(context, topic_name(), topic_name());
    case EntryType::change_remote_child: return change_remote_child(context);
    case EntryType::create_remote: return create_remote(context, name);
    case EntryType::change_remote: return change_remote(context, name);
    default: return ms::DeleteRemote{name, one_in(4), "root", hex_id()};
  }
}

}  // namespace sim
