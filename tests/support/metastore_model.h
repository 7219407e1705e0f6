// The metastore in the plainest words: maps, loops over all of them, and the rules as narad/entry-types.md writes them. It knows
// nothing of rows, batches or kept lists; what the handlers answer, store and bump is held against it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/metastore/answer.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/domain_versions.h"
#include "engine/metastore/json_value.h"
#include "engine/metastore/kept_rows.h"
#include "engine/metastore/transaction.h"

namespace tests {

class MetastoreModel {
 public:
  using Code = engine::metastore::Code;
  // Domain, name, is it retired.
  using Moves = std::set<std::tuple<engine::metastore::Domain, std::string, bool>>;

  struct Outcome {
    Code code = Code::ok;
    Moves moves;  // of an accepted entry
  };

  Outcome apply(const engine::metastore::Command& command) {
    moves_.clear();
    Outcome outcome;
    outcome.code = std::visit([this](const auto& entry) { return on(entry); }, command);
    if (outcome.code == Code::ok) {
      outcome.moves = moves_;
    }
    return outcome;
  }

  // The rows of all records; kept rows are left out.
  std::map<std::string, std::string> records() const {
    using namespace engine::metastore;
    std::map<std::string, std::string> rows;
    for (const auto& [name, topic] : topics_) {
      rows["topics/" + name] = encode_topic(topic);
    }
    for (const auto& [name, versions] : schemas_) {
      for (size_t i = 0; i < versions.size(); ++i) {
        rows["schemas/" + name + ":" + std::to_string(i + 1)] = versions[i];
      }
    }
    for (const auto& [key, row] : assignments_) {
      rows["assignments/" + key.first + ":" + std::to_string(key.second)] = encode_assignment(row);
    }
    for (const auto& [id, member] : members_) {
      rows["members/" + id] = encode_member(member);
    }
    for (const auto& [name, user] : users_) {
      rows["users/" + name] = encode_user(user);
    }
    for (const auto& [id, at] : removed_) {
      rows["removed_members/" + id] = encode_tombstone({at});
    }
    for (const auto& [name, remote] : remotes_) {
      rows["remotes/" + name] = encode_remote(remote);
    }
    if (!salt_.empty()) {
      rows["remotes/_salt"] = salt_;
    }
    return rows;
  }

  const std::map<std::string, uint64_t>& seals() const { return seals_; }
  const std::map<std::string, engine::metastore::Topic>& topics() const { return topics_; }
  const std::map<std::string, engine::metastore::User>& users() const { return users_; }
  const std::map<std::string, engine::metastore::Member>& members() const { return members_; }
  const std::map<std::string, engine::metastore::Remote>& remotes() const { return remotes_; }
  const std::map<std::string, std::vector<std::string>>& schemas() const { return schemas_; }

 private:
  using Topic = engine::metastore::Topic;
  using Role = engine::metastore::Role;
  using Domain = engine::metastore::Domain;
  static constexpr int64_t kHourMs = 3'600'000;
  static constexpr int64_t kYearMs = 31'536'000'000;
  static constexpr uint64_t kMiB = 1 << 20;

  void moved(Domain domain, const std::string& name = {}) { moves_.emplace(domain, name, false); }
  void retired(const std::string& name) {
    for (Domain domain : {Domain::topics, Domain::assignments, Domain::schemas}) {
      moves_.emplace(domain, name, true);
    }
  }

  template <typename Map>
  static auto* find(Map& map, const typename Map::key_type& key) {
    auto found = map.find(key);
    return found == map.end() ? nullptr : &found->second;
  }

  // ---- Topics --------------------------------------------------------------------------------------------------------------

  static bool holds(int64_t retention_ms, int64_t delay_ms) {
    return delay_ms <= 0 || retention_ms == 0 || retention_ms - kHourMs >= delay_ms;
  }

  void wipe(const std::string& name) {
    topics_.erase(name);
    schemas_.erase(name);
    std::erase_if(assignments_, [&](const auto& row) { return row.first.first == name; });
    retired(name);
  }

  static void free_child(Topic& child) {
    child.role = Role::standalone;
    child.parent = "";
    child.attach_epoch = "";
    child.fanout_delay_ms = 0;
    child.attach_offsets = {};
  }

  Code update(const Topic& given, bool is_checked) {
    Topic& stored = topics_.at(given.name);
    Topic next = given;
    next.id = stored.id;
    next.role = stored.role;
    next.children = stored.children;
    next.parent = stored.parent;
    next.attach_epoch = stored.attach_epoch;
    next.fanout_delay_ms = stored.fanout_delay_ms;
    next.attach_offsets = stored.attach_offsets;
    next.remote = stored.remote;
    if (is_checked) {
      next.owner = stored.owner;
      next.created_at = stored.created_at;
      next.visibility_timeout_ms = stored.visibility_timeout_ms;
    }
    if (stored.remote && !(next == stored)) {
      return Code::remote_stub_immutable;
    }
    bool has_remote = false;
    for (const std::string& name : stored.children) {
      const Topic* child = find(topics_, name);
      if (child != nullptr && !holds(next.retention_ms, child->fanout_delay_ms)) {
        return Code::fanout_delay_too_long;
      }
      has_remote = has_remote || (child != nullptr && child->remote);
    }
    const bool is_low = next.retention_ms != 0 && next.retention_ms < 24 * kHourMs;
    const bool grows = stored.retention_ms != 0 && next.retention_ms >= stored.retention_ms;
    if (has_remote && is_low && !grows) {
      return Code::remote_retention_floor;
    }
    stored = next;
    moved(Domain::topics, given.name);
    return Code::ok;
  }

  void remove(const std::string& name) {
    const Topic gone = topics_.at(name);
    for (const std::string& child_name : gone.children) {
      Topic* child = child_name == name ? nullptr : find(topics_, child_name);
      if (child == nullptr || child->parent != name) {
        continue;
      }
      if (child->remote) {
        wipe(child_name);
      } else {
        free_child(*child);
        moved(Domain::topics, child_name);
      }
    }
    Topic* parent = gone.parent == name ? nullptr : find(topics_, gone.parent);
    if (!gone.parent.empty() && parent != nullptr && std::erase(parent->children, name) > 0) {
      parent->role = parent->children.empty() ? Role::standalone : parent->role;
      moved(Domain::topics, gone.parent);
    }
    wipe(name);
  }

  Code on(const engine::metastore::CreateTopic& entry) {
    if (!topics_.emplace(entry.topic.name, entry.topic).second) {
      return Code::already_exists;
    }
    moved(Domain::topics, entry.topic.name);
    return Code::ok;
  }
  Code on(const engine::metastore::UpdateTopic& entry) {
    return topics_.contains(entry.topic.name) ? update(entry.topic, false) : Code::not_found;
  }
  Code on(const engine::metastore::DeleteTopic& entry) {
    if (!topics_.contains(entry.name)) {
      return Code::not_found;
    }
    remove(entry.name);
    return Code::ok;
  }
  Code on(const engine::metastore::UpdateTopicIf& entry) {
    const Topic* stored = find(topics_, entry.topic.name);
    if (stored == nullptr) {
      return Code::not_found;
    }
    if (stored->id != entry.expected_id || entry.topic.partitions < stored->partitions) {
      return Code::topic_changed;
    }
    return update(entry.topic, true);
  }
  Code on(const engine::metastore::DeleteTopicIf& entry) {
    const Topic* stored = find(topics_, entry.name);
    if (stored == nullptr) {
      return Code::not_found;
    }
    if (stored->id != entry.expected_id) {
      return Code::topic_changed;
    }
    remove(entry.name);
    return Code::ok;
  }

  // ---- Schemas -------------------------------------------------------------------------------------------------------------

  static uint64_t bytes_of(const std::vector<std::string>& versions) {
    uint64_t bytes = 0;
    for (const std::string& text : versions) {
      bytes += text.size();
    }
    return bytes;
  }
  std::vector<std::string> versions_of(const std::string& name) const {
    auto found = schemas_.find(name);
    return found == schemas_.end() ? std::vector<std::string>() : found->second;
  }
  uint64_t cluster_bytes() const {
    uint64_t bytes = 0;
    for (const auto& [name, versions] : schemas_) {
      bytes += bytes_of(versions);
    }
    return bytes;
  }

  Code put(const std::string& name, int64_t version, const std::string& text, bool has_budgets) {
    const Topic& topic = topics_.at(name);
    if (topic.role == Role::child) {
      return Code::fanout_schema_managed;
    }
    std::vector<std::string> holders{name};
    for (const std::string& child : topic.children) {
      const Topic* record = find(topics_, child);
      if ((record == nullptr || !record->remote) && std::count(holders.begin(), holders.end(), child) == 0) {
        holders.push_back(child);
      }
    }
    for (const std::string& holder : holders) {
      const auto latest = static_cast<int64_t>(versions_of(holder).size());
      if (version <= latest) {
        return Code::already_exists;
      }
      if (version > latest + 1) {
        return Code::invalid_argument;
      }
      if (version > 1000) {
        return Code::schema_history_full;
      }
    }
    for (const std::string& holder : holders) {
      if (has_budgets && bytes_of(versions_of(holder)) + text.size() > 4 * kMiB) {
        return Code::schema_history_full;
      }
    }
    if (has_budgets && cluster_bytes() + holders.size() * text.size() > 256 * kMiB) {
      return Code::schema_history_full;
    }
    for (const std::string& holder : holders) {
      schemas_[holder].push_back(text);
      moved(Domain::schemas, holder);
    }
    return Code::ok;
  }

  Code on(const engine::metastore::PutSchema& entry) {
    return topics_.contains(entry.topic) ? put(entry.topic, entry.version, entry.schema, false) : Code::not_found;
  }
  Code on(const engine::metastore::PutSchemaIf& entry) {
    const Topic* topic = find(topics_, entry.topic);
    if (topic == nullptr) {
      return Code::not_found;
    }
    return topic->id == entry.expected_id ? put(entry.topic, entry.version, entry.schema, true) : Code::topic_changed;
  }

  // ---- Fan-out -------------------------------------------------------------------------------------------------------------

  // `child`: its record and schemas, in place or about to be.
  Code check_attach(const engine::metastore::AttachChild& link, const Topic* child, const std::vector<std::string>& childs,
                    bool by_value, uint64_t freed) const {
    auto found = topics_.find(link.parent);
    if (link.parent == link.child) {
      return Code::fanout_role_conflict;
    }
    if (found == topics_.end() || child == nullptr) {
      return Code::not_found;
    }
    const Topic& parent = found->second;
    if (parent.role == Role::child || child->role == Role::parent) {
      return Code::fanout_role_conflict;
    }
    if (child->role == Role::child) {
      return child->parent == link.parent ? Code::already_exists : Code::fanout_role_conflict;
    }
    if (parent.children.size() >= 108) {
      return Code::fanout_child_limit;
    }
    if (link.delay_ms < 0) {
      return Code::fanout_role_conflict;
    }
    if (link.delay_ms > kYearMs || !holds(parent.retention_ms, link.delay_ms)) {
      return Code::fanout_delay_too_long;
    }
    const std::vector<std::string> parents = versions_of(link.parent);
    if (childs.empty()) {
      const uint64_t bytes = bytes_of(parents);
      const bool fits = bytes <= 4 * kMiB && cluster_bytes() - freed + bytes <= 256 * kMiB;
      return parents.empty() || !by_value || fits ? Code::ok : Code::schema_history_full;
    }
    if (parents.size() != childs.size()) {
      return Code::fanout_schema_mismatch;
    }
    for (size_t i = 0; i < childs.size(); ++i) {
      const bool is_same = by_value ? engine::metastore::is_same_json(parents[i], childs[i]) : parents[i] == childs[i];
      if (!is_same) {
        return Code::fanout_schema_mismatch;
      }
    }
    return Code::ok;
  }

  void link_up(const engine::metastore::AttachChild& link) {
    Topic& parent = topics_.at(link.parent);
    parent.role = Role::parent;
    parent.children.push_back(link.child);
    Topic& child = topics_.at(link.child);
    child.role = Role::child;
    child.parent = link.parent;
    child.attach_epoch = link.epoch;
    child.fanout_delay_ms = link.delay_ms;
    child.attach_offsets = link.offsets;
    moved(Domain::topics, link.parent);
    moved(Domain::topics, link.child);
    const std::vector<std::string> parents = versions_of(link.parent);
    if (versions_of(link.child).empty() && !parents.empty()) {
      schemas_[link.child] = parents;
      moved(Domain::schemas, link.child);
    }
  }

  Code attach(const engine::metastore::AttachChild& link, bool by_value) {
    const Code code = check_attach(link, find(topics_, link.child), versions_of(link.child), by_value, 0);
    if (code == Code::ok) {
      link_up(link);
    }
    return code;
  }

  Code detach(const std::string& parent_name, const std::string& child_name) {
    Topic& parent = topics_.at(parent_name);
    Topic& child = topics_.at(child_name);
    if (child.role != Role::child || child.parent != parent_name || parent_name == child_name) {
      return Code::not_found;
    }
    std::erase(parent.children, child_name);
    parent.role = parent.children.empty() ? Role::standalone : parent.role;
    moved(Domain::topics, parent_name);
    if (child.remote) {
      wipe(child_name);
    } else {
      free_child(child);
      moved(Domain::topics, child_name);
    }
    return Code::ok;
  }

  Code check_ids(const std::string& parent, const std::string& parent_id, const std::string& child, const std::string& child_id) {
    for (const auto& [name, id] : {std::pair(parent, parent_id), std::pair(child, child_id)}) {
      const Topic* topic = find(topics_, name);
      if (topic == nullptr) {
        return Code::not_found;
      }
      if (topic->id != id) {
        return Code::topic_changed;
      }
    }
    return Code::ok;
  }

  Code on(const engine::metastore::AttachChild& entry) { return attach(entry, false); }
  Code on(const engine::metastore::AttachChildIf& entry) {
    const Code code = check_ids(entry.link.parent, entry.parent_id, entry.link.child, entry.child_id);
    return code == Code::ok ? attach(entry.link, true) : code;
  }
  Code on(const engine::metastore::DetachChild& entry) {
    return topics_.contains(entry.parent) && topics_.contains(entry.child) ? detach(entry.parent, entry.child) : Code::not_found;
  }
  Code on(const engine::metastore::DetachChildIf& entry) {
    const Code code = check_ids(entry.parent, entry.parent_id, entry.child, entry.child_id);
    return code == Code::ok ? detach(entry.parent, entry.child) : code;
  }

  Code on(const engine::metastore::CreateTopicLinked& entry) {
    const std::string& name = entry.topic.name;
    if (name.empty()) {
      return Code::invalid_argument;
    }
    if (topics_.contains(name)) {
      return Code::already_exists;
    }
    for (const auto& [other, topic] : topics_) {
      if (engine::metastore::fold_name(other) == engine::metastore::fold_name(name)) {
        return Code::topic_already_exists;
      }
    }
    const uint64_t freed = bytes_of(versions_of(name));
    const uint64_t size = entry.schema.size();
    if (size > 4 * kMiB || (size > 0 && cluster_bytes() - freed + size > 256 * kMiB)) {
      return Code::schema_history_full;
    }
    const std::vector<std::string> mine = size > 0 ? std::vector<std::string>{entry.schema} : std::vector<std::string>();
    engine::metastore::AttachChild link;
    if (entry.link) {
      const Topic* parent = find(topics_, entry.link->parent);
      if (parent == nullptr) {
        return Code::not_found;
      }
      if (parent->id != entry.link->parent_id) {
        return Code::topic_changed;
      }
      link = {entry.link->parent, name, entry.link->epoch, entry.link->delay_ms, entry.link->offsets};
      if (Code code = check_attach(link, &entry.topic, mine, true, freed); code != Code::ok) {
        return code;
      }
    }
    if (std::erase_if(assignments_, [&](const auto& row) { return row.first.first == name; }) > 0) {
      moved(Domain::assignments, name);
    }
    if (schemas_.erase(name) > 0 || size > 0) {
      moved(Domain::schemas, name);
    }
    topics_.emplace(name, entry.topic);
    moved(Domain::topics, name);
    if (size > 0) {
      schemas_[name] = mine;
    }
    if (entry.link) {
      link_up(link);
    }
    return Code::ok;
  }

  // ---- Assignments ---------------------------------------------------------------------------------------------------------

  engine::metastore::Assignment* row_of(const std::string& topic, int32_t partition) {
    return find(assignments_, {topic, partition});
  }

  Code on(const engine::metastore::AssignPartition& entry) {
    assignments_[{entry.assignment.topic, entry.assignment.partition}] = entry.assignment;
    moved(Domain::assignments, entry.assignment.topic);
    return Code::ok;
  }
  Code on(const engine::metastore::SetMoveTarget& entry) {
    engine::metastore::Assignment* row = row_of(entry.topic, entry.partition);
    if (row == nullptr) {
      return Code::not_found;
    }
    if (row->target_id != entry.target) {
      row->target_id = entry.target;
      moved(Domain::assignments, entry.topic);
    }
    return Code::ok;
  }
  Code on(const engine::metastore::CompleteMove& entry) {
    engine::metastore::Assignment* row = row_of(entry.topic, entry.partition);
    if (row == nullptr) {
      return Code::not_found;
    }
    if (row->owner_id == entry.target && row->target_id.empty()) {
      return Code::ok;
    }
    if (row->owner_id != entry.expected_owner || row->target_id != entry.target) {
      return Code::invalid_argument;
    }
    row->owner_id = entry.target;
    row->target_id = "";
    moved(Domain::assignments, entry.topic);
    return Code::ok;
  }
  Code on(const engine::metastore::AbortMove& entry) {
    engine::metastore::Assignment* row = row_of(entry.topic, entry.partition);
    if (row == nullptr) {
      return Code::not_found;
    }
    if (!row->target_id.empty() && row->target_id == entry.expected_target) {
      row->target_id = "";
      moved(Domain::assignments, entry.topic);
    }
    return Code::ok;
  }
  Code on(const engine::metastore::PlacePartition& entry) {
    const Topic* topic = find(topics_, entry.topic);
    if (topic == nullptr) {
      return Code::not_found;
    }
    if (topic->id != entry.topic_id) {
      return Code::topic_changed;
    }
    if (entry.partition < 0 || entry.partition >= topic->partitions || entry.owner.empty() || removed_.contains(entry.owner)) {
      return Code::invalid_argument;
    }
    if (row_of(entry.topic, entry.partition) != nullptr) {
      return Code::partition_assigned;
    }
    assignments_[{entry.topic, entry.partition}] = {entry.topic, entry.partition, entry.owner, ""};
    moved(Domain::assignments, entry.topic);
    return Code::ok;
  }
  Code on(const engine::metastore::PruneAssignment& entry) {
    if (row_of(entry.topic, entry.partition) == nullptr) {
      return Code::not_found;
    }
    const Topic* topic = find(topics_, entry.topic);
    if (topic != nullptr && entry.partition >= 0 && entry.partition < topic->partitions) {
      return Code::assignment_live;
    }
    assignments_.erase({entry.topic, entry.partition});
    moves_.emplace(Domain::assignments, entry.topic, topic == nullptr);
    return Code::ok;
  }

  // ---- Members -------------------------------------------------------------------------------------------------------------

  Code mark_dead(const std::string& id) {
    engine::metastore::Member& member = members_.at(id);
    if (member.status != engine::metastore::MemberStatus::dead) {
      member.status = engine::metastore::MemberStatus::dead;
      moved(Domain::routing_members);
    }
    return Code::ok;
  }

  Code on(const engine::metastore::RegisterMember& entry) {
    if (removed_.contains(entry.member.id)) {
      return Code::member_removed;
    }
    const engine::metastore::Member* stored = find(members_, entry.member.id);
    engine::metastore::Member next = entry.member;
    next.draining = stored == nullptr ? next.draining : stored->draining;
    if (stored == nullptr || stored->addr != next.addr || stored->cluster_addr != next.cluster_addr || stored->status != next.status) {
      moved(Domain::routing_members);
    }
    members_[next.id] = next;
    return Code::ok;
  }
  Code on(const engine::metastore::HeartbeatMember& entry) {
    if (!members_.contains(entry.id)) {
      return Code::not_found;
    }
    members_[entry.id].last_heartbeat = entry.at;
    return Code::ok;
  }
  Code on(const engine::metastore::MarkMemberDead& entry) {
    return members_.contains(entry.id) ? mark_dead(entry.id) : Code::not_found;
  }
  Code on(const engine::metastore::MarkMemberDeadIf& entry) {
    if (!members_.contains(entry.id)) {
      return Code::not_found;
    }
    return members_[entry.id].last_heartbeat > entry.last_heartbeat ? Code::member_heartbeat_newer : mark_dead(entry.id);
  }
  Code on(const engine::metastore::SetMemberDraining& entry) {
    if (!members_.contains(entry.id)) {
      return Code::not_found;
    }
    members_[entry.id].draining = entry.draining;
    return Code::ok;
  }
  Code on(const engine::metastore::RemoveMember& entry) {
    if (members_.erase(entry.id) > 0) {
      moved(Domain::routing_members);
    }
    removed_[entry.id] = entry.at;
    return Code::ok;
  }
  Code on(const engine::metastore::ReadmitMember& entry) {
    removed_.erase(entry.id);
    return Code::ok;
  }

  // ---- Users ---------------------------------------------------------------------------------------------------------------

  Code create_user(engine::metastore::User user, bool is_root) {
    user.root = is_root;
    if (!users_.emplace(user.username, user).second) {
      return Code::already_exists;
    }
    moved(Domain::users);
    return Code::ok;
  }
  Code delete_user(const std::string& name) {
    const engine::metastore::User* user = find(users_, name);
    if (user == nullptr) {
      return Code::not_found;
    }
    if (user->root) {
      return Code::root_protected;
    }
    users_.erase(name);
    moved(Domain::users);
    return Code::ok;
  }

  Code on(const engine::metastore::CreateUser& entry) { return create_user(entry.user, false); }
  Code on(const engine::metastore::SeedRootUser& entry) { return create_user(entry.user, true); }
  Code on(const engine::metastore::UpdateUser& entry) {
    engine::metastore::User* stored = find(users_, entry.user.username);
    if (stored == nullptr) {
      return Code::not_found;
    }
    engine::metastore::User next = entry.user;
    next.root = stored->root;
    next.grants = stored->root ? stored->grants : next.grants;
    *stored = next;
    moved(Domain::users);
    return Code::ok;
  }
  Code on(const engine::metastore::DeleteUser& entry) { return delete_user(entry.username); }
  Code on(const engine::metastore::SetUserPassword& entry) {
    engine::metastore::User* user = find(users_, entry.username);
    if (user == nullptr) {
      return Code::not_found;
    }
    user->password_hash = entry.password_hash;
    user->updated_at_ms = entry.at_ms;
    moved(Domain::users);
    return Code::ok;
  }
  Code on(const engine::metastore::SetUserGrants& entry) {
    engine::metastore::User* user = find(users_, entry.username);
    if (user == nullptr) {
      return Code::not_found;
    }
    if (user->root) {
      return Code::root_protected;
    }
    user->grants = entry.grants;
    user->updated_at_ms = entry.at_ms;
    moved(Domain::users);
    return Code::ok;
  }
  Code on(const engine::metastore::DeleteUserReleasing& entry) {
    const Code code = delete_user(entry.username);
    if (code != Code::ok || entry.username.empty()) {
      return code;
    }
    for (auto& [name, topic] : topics_) {
      if (topic.owner == entry.username) {
        topic.owner = "";
        moved(Domain::topics, name);
      }
    }
    return Code::ok;
  }

  // ---- Remotes: well-formed ones; what is malformed is the tables' business ------------------------------------------------

  Code on(const engine::metastore::AttachRemoteChild& entry) {
    const engine::metastore::RemoteLink& link = entry.remote;
    if (entry.parent.empty() || entry.stub.empty() || link.name.empty() || link.topic.empty()) {
      return Code::invalid_argument;
    }
    if (entry.parent == entry.stub) {
      return Code::fanout_role_conflict;
    }
    if (entry.epoch.empty() || entry.delay_ms < 0) {
      return Code::invalid_argument;
    }
    if (entry.delay_ms > kYearMs) {
      return Code::fanout_delay_too_long;
    }
    const std::set<std::string> starts{"", "attach", "unconsumed", "earliest"};
    if (link.lanes < 0 || link.lanes > 8 || !starts.contains(link.from)) {
      return Code::invalid_argument;
    }
    Topic* parent = find(topics_, entry.parent);
    if (parent == nullptr) {
      return Code::not_found;
    }
    if (parent->id != entry.parent_id) {
      return Code::topic_changed;
    }
    if (parent->role == Role::child) {
      return Code::fanout_role_conflict;
    }
    if (!remotes_.contains(link.name)) {
      return Code::remote_child_conflict;
    }
    if (topics_.contains(entry.stub)) {
      return Code::already_exists;
    }
    if (parent->children.size() >= 108) {
      return Code::fanout_child_limit;
    }
    const auto remote_children = std::count_if(parent->children.begin(), parent->children.end(), [&](const std::string& name) {
      const Topic* child = find(topics_, name);
      return child != nullptr && child->remote;
    });
    if (remote_children >= 16) {
      return Code::remote_child_limit;
    }
    if (parent->retention_ms != 0 && parent->retention_ms < 24 * kHourMs) {
      return Code::remote_retention_floor;
    }
    if (!holds(parent->retention_ms, entry.delay_ms)) {
      return Code::fanout_delay_too_long;
    }
    for (const auto& [name, topic] : topics_) {
      if (topic.remote && topic.remote->name == link.name && topic.remote->topic == link.topic) {
        return Code::remote_target_linked;
      }
    }
    Topic stub;
    stub.name = entry.stub;
    stub.id = entry.stub_id;
    stub.created_at = entry.created_at;
    stub.role = Role::child;
    stub.parent = entry.parent;
    stub.attach_epoch = entry.epoch;
    stub.fanout_delay_ms = entry.delay_ms;
    stub.attach_offsets = entry.offsets;
    engine::metastore::RemoteLink made;
    made.name = link.name;
    made.topic = link.topic;
    made.target_id = link.target_id;
    made.from = link.from.empty() ? "attach" : link.from;
    made.lanes = link.lanes == 0 ? 1 : link.lanes;
    made.created_by = link.created_by;
    stub.remote = made;
    parent->role = Role::parent;
    parent->children.push_back(entry.stub);
    topics_.emplace(entry.stub, stub);
    moved(Domain::topics, entry.parent);
    moved(Domain::topics, entry.stub);
    return Code::ok;
  }
  Code on(const engine::metastore::ChangeRemoteChild& entry) {
    Topic* stub = find(topics_, entry.stub);
    if (stub == nullptr || !stub->remote || stub->parent != entry.parent) {
      return Code::not_found;
    }
    if (stub->attach_epoch != entry.epoch) {
      return Code::remote_child_stale;
    }
    if ((entry.lanes && (*entry.lanes < 1 || *entry.lanes > 8)) || (entry.skip && (entry.skip->offset < 0 || entry.skip->partition < 0))) {
      return Code::invalid_argument;
    }
    engine::metastore::RemoteLink& link = *stub->remote;
    if (entry.pause) {
      const bool paused = entry.pause->paused;
      link.paused = paused;
      link.pause_reason = paused ? entry.pause->reason : "";
      link.paused_by = paused ? entry.pause->by : "";
      link.paused_at_ms = paused ? entry.pause->at_ms : 0;
    }
    link.target_id = entry.target_id.value_or(link.target_id);
    link.lanes = entry.lanes.value_or(link.lanes);
    if (entry.skip) {
      std::set<int64_t> offsets(link.skip[entry.skip->partition].begin(), link.skip[entry.skip->partition].end());
      offsets.insert(entry.skip->offset);
      link.skip[entry.skip->partition].assign(offsets.begin(), offsets.end());
    }
    moved(Domain::topics, entry.stub);
    return Code::ok;
  }
  Code on(const engine::metastore::CreateRemote& entry) {
    const std::string& name = entry.record.name;
    if (name.empty() || name[0] == '_' || entry.record.credential.empty()) {
      return Code::invalid_argument;
    }
    ++seals_[entry.record.fingerprint];
    if (salt_.empty() ? entry.salt.empty() : !entry.salt.empty() && entry.salt != salt_) {
      return Code::remote_salt_race;
    }
    if (remotes_.contains(name)) {
      return Code::remote_exists;
    }
    if (remotes_.size() >= 64) {
      return Code::remote_limit;
    }
    salt_ = salt_.empty() ? entry.salt : salt_;
    engine::metastore::Remote remote = entry.record;
    remote.credential_version = 1;
    remote.revision = 1;
    remote.created_by = entry.actor;
    remote.updated_by = entry.actor;
    remote.created_at_ms = entry.sealed_at_ms;
    remote.updated_at_ms = entry.sealed_at_ms;
    remotes_[name] = remote;
    moved(Domain::remotes);
    return Code::ok;
  }
  Code on(const engine::metastore::ChangeRemote& entry) {
    const bool has_credential = !entry.credential.empty();
    if (has_credential && !entry.sealed_against) {
      return Code::invalid_argument;
    }
    seals_[entry.fingerprint] += has_credential ? 1 : 0;
    engine::metastore::Remote* stored = find(remotes_, entry.name);
    if (stored == nullptr) {
      return Code::not_found;
    }
    const engine::metastore::RemoteFields& fields = entry.fields;
    if (!has_credential && !fields.url && !fields.username && !fields.ca_pem && !fields.limits) {
      return Code::invalid_argument;
    }
    engine::metastore::Remote next = *stored;
    next.url = fields.url.value_or(next.url);
    next.username = fields.username.value_or(next.username);
    next.ca_pem = fields.ca_pem.value_or(next.ca_pem);
    next.limits = fields.limits.value_or(next.limits);
    const bool is_elsewhere = next.url != stored->url || next.username != stored->username || next.ca_pem != stored->ca_pem;
    if (is_elsewhere && !has_credential) {
      return Code::remote_changed;
    }
    if (entry.expect_credential_version && *entry.expect_credential_version != stored->credential_version) {
      return Code::remote_changed;
    }
    if (has_credential) {
      const engine::metastore::SealedAgainst& sealed = *entry.sealed_against;
      if (sealed.url != next.url || sealed.username != next.username || sealed.ca_pem != next.ca_pem) {
        return Code::remote_changed;
      }
      next.credential = entry.credential;
      next.fingerprint = entry.fingerprint;
      next.credential_version += entry.reseal ? 0 : 1;
    }
    ++next.revision;
    next.updated_by = entry.actor;
    next.updated_at_ms = entry.sealed_at_ms;
    *stored = next;
    moved(Domain::remotes);
    return Code::ok;
  }
  Code on(const engine::metastore::DeleteRemote& entry) {
    if (!remotes_.contains(entry.name)) {
      return Code::not_found;
    }
    const bool is_used = std::any_of(topics_.begin(), topics_.end(), [&](const auto& topic) {
      return topic.second.remote && topic.second.remote->name == entry.name;
    });
    if (is_used && !entry.force) {
      return Code::remote_in_use;
    }
    remotes_.erase(entry.name);
    moved(Domain::remotes);
    return Code::ok;
  }

  std::map<std::string, Topic> topics_;
  std::map<std::string, std::vector<std::string>> schemas_;
  std::map<std::pair<std::string, int32_t>, engine::metastore::Assignment> assignments_;
  std::map<std::string, engine::metastore::Member> members_;
  std::map<std::string, int64_t> removed_;
  std::map<std::string, engine::metastore::User> users_;
  std::map<std::string, engine::metastore::Remote> remotes_;
  std::string salt_;
  std::map<std::string, uint64_t> seals_;
  Moves moves_;
};

}  // namespace tests
