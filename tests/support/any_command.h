// Random metastore commands for rapidcheck: every entry type, from few names and values, so that commands meet.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "engine/metastore/commands.h"
#include "tests/support/topics.h"

namespace engine::metastore {

// For rapidcheck, which shows the sequence that failed.
inline void showValue(const Command& command, std::ostream& out) { out << "type " << type_of(command); }

}  // namespace engine::metastore

namespace tests {

namespace any {

// Some of them alike but for letter case.
inline std::string name() {
  return *rc::gen::weightedElement<std::string>(
      {{3, "a"}, {1, "A"}, {3, "b"}, {1, "ab"}, {1, "aB"}, {3, "c"}, {3, "d"}, {1, "s"}, {1, "topic-7"}});
}
// The two ends of links, so that they meet more often than any two names would.
inline std::string parent() { return *rc::gen::element<std::string>("a", "b"); }
inline std::string child() { return *rc::gen::element<std::string>("c", "d"); }
inline std::string stub() { return *rc::gen::element<std::string>("s", "t"); }
inline std::string id() { return *rc::gen::weightedElement<std::string>({{16, "0000000000000001"}, {1, "0000000000000002"}, {1, ""}}); }
inline std::string user() { return *rc::gen::weightedElement<std::string>({{4, "ann"}, {4, "bob"}, {1, "root"}}); }
inline std::string member() { return *rc::gen::element<std::string>("n1", "n2", "n3"); }
inline std::string remote() { return *rc::gen::weightedElement<std::string>({{4, "east"}, {4, "west"}, {1, "none"}}); }
inline std::string epoch() { return *rc::gen::weightedElement<std::string>({{8, "e1"}, {1, "e2"}, {1, ""}}); }
inline int32_t partition() { return *rc::gen::element<int32_t>(0, 0, 1, 1, 2, 3, 5, -1); }
inline bool one_in(int n) { return *rc::gen::inRange(0, n) == 0; }
inline std::pair<std::string, std::string> ends() { return one_in(5) ? std::pair(name(), name()) : std::pair(parent(), child()); }
inline std::pair<std::string, std::string> remote_ends() { return one_in(5) ? std::pair(name(), name()) : std::pair(parent(), stub()); }

inline int64_t retention() {
  return *rc::gen::weightedElement<int64_t>({{2, 0}, {1, 3'600'000}, {1, 7'200'000}, {2, 86'400'000}, {4, 604'800'000}});
}
inline int64_t delay() {
  return *rc::gen::weightedElement<int64_t>({{10, 0}, {3, 1}, {3, 3'600'000}, {1, 86'400'000}, {1, -1}, {1, 31'536'000'001}});
}
inline std::vector<int64_t> offsets() { return one_in(2) ? std::vector<int64_t>{1, 2, 3} : std::vector<int64_t>(); }
// Two of them are one value.
inline std::string schema() {
  return *rc::gen::element<std::string>("true", R"({"a":1,"b":2})", R"({ "b": 2.0, "a": 10e-1 })", R"({"a":1})", "no json", "");
}

inline engine::metastore::Topic topic(bool has_links) {
  using engine::metastore::Role;
  engine::metastore::Topic topic = make_topic(name());
  topic.id = id();
  topic.partitions = *rc::gen::inRange<int32_t>(3, 7);
  topic.retention_ms = retention();
  topic.owner = one_in(3) ? "" : user();
  if (!has_links || !one_in(8)) {
    return topic;
  }
  if (one_in(2)) {
    topic.role = Role::parent;
    const int count = *rc::gen::inRange(0, 4);
    for (int i = 0; i < count; ++i) {
      topic.children.push_back(name());
    }
    return topic;
  }
  topic.role = Role::child;
  topic.parent = name();
  topic.attach_epoch = epoch();
  topic.fanout_delay_ms = *rc::gen::element<int64_t>(0, 1, 3'600'000);
  topic.attach_offsets = offsets();
  if (one_in(3)) {
    topic.remote = engine::metastore::RemoteLink{};
    topic.remote->name = remote();
    topic.remote->topic = *rc::gen::element<std::string>("orders", "logs");
  }
  return topic;
}

inline engine::metastore::User a_user() {
  engine::metastore::User made{user(), "hash", {}, one_in(2), 1, *rc::gen::inRange<int64_t>(2, 5)};
  if (one_in(2)) {
    made.grants = {{"produce", {"a", "top*"}}, {"admin", {}}};
  }
  return made;
}

inline engine::metastore::AttachChild link() {
  const auto [parent, child] = ends();
  return {parent, child, epoch(), delay(), offsets()};
}
inline engine::metastore::DetachChild unlink() {
  const auto [parent, child] = one_in(3) ? remote_ends() : ends();
  return {parent, child};
}

inline engine::metastore::RemoteLink remote_link() {
  engine::metastore::RemoteLink link;
  link.name = remote();
  link.topic = *rc::gen::weightedElement<std::string>({{4, "orders"}, {4, "logs"}, {1, ""}});
  link.from = *rc::gen::weightedElement<std::string>({{3, ""}, {2, "earliest"}, {1, "never"}});
  link.lanes = *rc::gen::weightedElement<int32_t>({{3, 0}, {3, 4}, {1, 9}});
  link.paused = one_in(2);
  link.created_by = user();
  return link;
}

inline engine::metastore::ChangeRemoteChild remote_child_change() {
  const auto [parent, stub] = remote_ends();
  engine::metastore::ChangeRemoteChild entry{parent, stub, epoch(), {}, {}, {}, {}, "ann", "r"};
  if (one_in(2)) {
    entry.pause = engine::metastore::PauseChange{one_in(2), "why", "ann", 5};
  }
  if (one_in(2)) {
    entry.target_id = id();
  }
  if (one_in(2)) {
    entry.lanes = *rc::gen::weightedElement<int32_t>({{6, 4}, {1, 0}, {1, 9}});
  }
  if (one_in(2)) {
    entry.skip = engine::metastore::SkipOffset{partition(), *rc::gen::inRange<int64_t>(-1, 6)};
  }
  return entry;
}

inline engine::metastore::CreateRemote remote_create() {
  engine::metastore::Remote record;
  record.name = remote();
  record.url = "https://" + record.name;
  record.username = "ann";
  record.credential = "sealed";
  record.fingerprint = *rc::gen::element<std::string>("key1", "key2");
  return {record, *rc::gen::weightedElement<std::string>({{4, "salt"}, {1, "other"}, {2, ""}}), 7, user(), "r"};
}

inline engine::metastore::ChangeRemote remote_change() {
  engine::metastore::ChangeRemote entry;
  entry.name = remote();
  entry.actor = user();
  if (one_in(3)) {
    entry.fields.limits = engine::metastore::RemoteLimits{*rc::gen::inRange(1, 257), 5'000, 1, 1, 1, "zstd"};
  }
  if (one_in(3)) {
    entry.fields.url = "https://" + remote();
  }
  if (one_in(2)) {
    entry.credential = "sealed again";
    entry.fingerprint = *rc::gen::element<std::string>("key1", "key2");
    entry.reseal = one_in(2);
    entry.sealed_against = engine::metastore::SealedAgainst{entry.fields.url.value_or("https://" + entry.name), "ann", ""};
  }
  if (one_in(3)) {
    entry.expect_credential_version = *rc::gen::inRange<uint64_t>(1, 3);
  }
  return entry;
}

// `type`: 1 to 37.
inline engine::metastore::Command command(uint32_t type) {
  using namespace engine::metastore;
  switch (static_cast<EntryType>(type)) {
    case EntryType::create_topic: return CreateTopic{topic(true)};
    case EntryType::update_topic: return UpdateTopic{topic(true)};
    case EntryType::delete_topic: return DeleteTopic{name()};
    case EntryType::put_schema: return PutSchema{name(), *rc::gen::inRange<int64_t>(0, 4), schema()};
    case EntryType::assign_partition: return AssignPartition{{name(), partition(), member(), one_in(2) ? "" : member()}};
    case EntryType::register_member:
      return RegisterMember{{member(), *rc::gen::element<std::string>("h:1", "h:2"), one_in(2) ? "" : "h:3",
                             one_in(4) ? MemberStatus::dead : MemberStatus::alive, *rc::gen::inRange<int64_t>(0, 20), one_in(4), "3.2.0",
                             37}};
    case EntryType::heartbeat_member: return HeartbeatMember{member(), *rc::gen::inRange<int64_t>(0, 20)};
    case EntryType::mark_member_dead: return MarkMemberDead{member()};
    case EntryType::create_user: return CreateUser{a_user()};
    case EntryType::update_user: return UpdateUser{a_user()};
    case EntryType::delete_user: return DeleteUser{user()};
    case EntryType::seed_root_user: {
      SeedRootUser entry{a_user()};
      entry.user.username = one_in(20) ? user() : "root";
      return entry;
    }
    case EntryType::attach_child: return link();
    case EntryType::detach_child: return unlink();
    case EntryType::set_move_target: return SetMoveTarget{parent(), partition(), one_in(3) ? "" : member()};
    case EntryType::complete_move: return CompleteMove{parent(), partition(), member(), member()};
    case EntryType::abort_move: return AbortMove{parent(), partition(), member()};
    case EntryType::set_member_draining: return SetMemberDraining{member(), one_in(2)};
    case EntryType::remove_member: return RemoveMember{member(), *rc::gen::inRange<int64_t>(0, 20)};
    case EntryType::readmit_member: return ReadmitMember{member(), 5};
    case EntryType::set_user_password: return SetUserPassword{user(), "new hash", *rc::gen::inRange<int64_t>(5, 9)};
    case EntryType::set_user_grants: return SetUserGrants{user(), {{"consume", {"*"}}}, *rc::gen::inRange<int64_t>(5, 9)};
    case EntryType::create_topic_linked: {
      CreateTopicLinked entry{topic(one_in(4)), one_in(2) ? schema() : "", {}};
      if (one_in(2)) {
        entry.link = ParentLink{one_in(5) ? name() : parent(), id(), epoch(), delay(), offsets()};
      }
      return entry;
    }
    case EntryType::update_topic_if: return UpdateTopicIf{topic(true), id()};
    case EntryType::delete_topic_if: return DeleteTopicIf{name(), id()};
    case EntryType::put_schema_if: return PutSchemaIf{name(), *rc::gen::inRange<int64_t>(1, 4), schema(), id()};
    case EntryType::attach_child_if: return AttachChildIf{link(), id(), id()};
    case EntryType::detach_child_if: {
      const DetachChild entry = unlink();
      return DetachChildIf{entry.parent, entry.child, id(), id()};
    }
    case EntryType::place_partition: return PlacePartition{name(), partition(), one_in(9) ? "" : member(), id()};
    case EntryType::prune_assignment: return PruneAssignment{name(), partition()};
    case EntryType::mark_member_dead_if: return MarkMemberDeadIf{member(), *rc::gen::inRange<int64_t>(0, 20)};
    case EntryType::delete_user_releasing: return DeleteUserReleasing{user()};
    case EntryType::attach_remote_child: {
      const auto [parent, stub] = remote_ends();
      return AttachRemoteChild{parent, id(), stub, id(), epoch(), delay(), offsets(), remote_link(), 9, user(), "r"};
    }
    case EntryType::change_remote_child: return remote_child_change();
    case EntryType::create_remote: return remote_create();
    case EntryType::change_remote: return remote_change();
    case EntryType::delete_remote: return DeleteRemote{remote(), one_in(4), user(), "r"};
  }
  return DeleteTopic{""};
}

}  // namespace any

// Topics and links come more often than what else there is, so that there is something to refuse and to delete.
inline rc::Gen<engine::metastore::Command> any_command() {
  return rc::gen::exec([] {
    const uint32_t type = *rc::gen::weightedOneOf<uint32_t>({{3, rc::gen::inRange<uint32_t>(1, 38)},
                                                             {1, rc::gen::element<uint32_t>(1, 9, 13, 23, 26, 27, 33, 35)}});
    return any::command(type);
  });
}

}  // namespace tests
