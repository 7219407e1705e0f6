// What may be proposed: one struct an entry type, named for what it does, and its way to bytes and back.
//
//   proposer.propose(encode_command(PutSchemaIf{.topic = "orders", .version = 2, .schema = text, .expected_id = id}), deadline);
//
// A name that ends in "If" is the form since 3.1 that carries what its write was checked against. What a type checks, refuses and
// changes stands with its handler (apply_*.h). Fields are as in narad/entry-types.md sections 3 to 5; an empty text, list or absent
// optional is "not given". Encoding is a pure function; decode(encode(x)) is x.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/metastore/envelope.h"
#include "engine/metastore/records.h"
#include "engine/metastore/topic.h"

namespace engine::metastore {

// ---- 1 to 22: every release ------------------------------------------------------------------------------------------------

struct CreateTopic {
  static constexpr EntryType kType = EntryType::create_topic;
  Topic topic;  // stored as given
  friend bool operator==(const CreateTopic&, const CreateTopic&) = default;
};

struct UpdateTopic {
  static constexpr EntryType kType = EntryType::update_topic;
  Topic topic;  // identity, role and links stay as stored
  friend bool operator==(const UpdateTopic&, const UpdateTopic&) = default;
};

struct DeleteTopic {
  static constexpr EntryType kType = EntryType::delete_topic;
  std::string name;
  friend bool operator==(const DeleteTopic&, const DeleteTopic&) = default;
};

struct PutSchema {
  static constexpr EntryType kType = EntryType::put_schema;
  std::string topic;
  int64_t version = 0;
  std::string schema;
  friend bool operator==(const PutSchema&, const PutSchema&) = default;
};

struct AssignPartition {
  static constexpr EntryType kType = EntryType::assign_partition;
  Assignment assignment;
  friend bool operator==(const AssignPartition&, const AssignPartition&) = default;
};

struct RegisterMember {
  static constexpr EntryType kType = EntryType::register_member;
  Member member;
  friend bool operator==(const RegisterMember&, const RegisterMember&) = default;
};

struct HeartbeatMember {
  static constexpr EntryType kType = EntryType::heartbeat_member;
  std::string id;
  int64_t at = 0;  // Unix seconds
  friend bool operator==(const HeartbeatMember&, const HeartbeatMember&) = default;
};

struct MarkMemberDead {
  static constexpr EntryType kType = EntryType::mark_member_dead;
  std::string id;
  friend bool operator==(const MarkMemberDead&, const MarkMemberDead&) = default;
};

struct CreateUser {
  static constexpr EntryType kType = EntryType::create_user;
  User user;
  friend bool operator==(const CreateUser&, const CreateUser&) = default;
};

struct UpdateUser {
  static constexpr EntryType kType = EntryType::update_user;
  User user;
  friend bool operator==(const UpdateUser&, const UpdateUser&) = default;
};

struct DeleteUser {
  static constexpr EntryType kType = EntryType::delete_user;
  std::string username;
  friend bool operator==(const DeleteUser&, const DeleteUser&) = default;
};

struct SeedRootUser {
  static constexpr EntryType kType = EntryType::seed_root_user;
  User user;
  friend bool operator==(const SeedRootUser&, const SeedRootUser&) = default;
};

struct AttachChild {
  static constexpr EntryType kType = EntryType::attach_child;
  std::string parent;
  std::string child;
  std::string epoch;
  int64_t delay_ms = 0;
  std::vector<int64_t> offsets;  // one a partition of the parent
  friend bool operator==(const AttachChild&, const AttachChild&) = default;
};

struct DetachChild {
  static constexpr EntryType kType = EntryType::detach_child;
  std::string parent;
  std::string child;
  friend bool operator==(const DetachChild&, const DetachChild&) = default;
};

struct SetMoveTarget {
  static constexpr EntryType kType = EntryType::set_move_target;
  std::string topic;
  int32_t partition = 0;
  std::string target;  // empty: none any more
  friend bool operator==(const SetMoveTarget&, const SetMoveTarget&) = default;
};

struct CompleteMove {
  static constexpr EntryType kType = EntryType::complete_move;
  std::string topic;
  int32_t partition = 0;
  std::string expected_owner;
  std::string target;
  friend bool operator==(const CompleteMove&, const CompleteMove&) = default;
};

struct AbortMove {
  static constexpr EntryType kType = EntryType::abort_move;
  std::string topic;
  int32_t partition = 0;
  std::string expected_target;
  friend bool operator==(const AbortMove&, const AbortMove&) = default;
};

struct SetMemberDraining {
  static constexpr EntryType kType = EntryType::set_member_draining;
  std::string id;
  bool draining = false;
  friend bool operator==(const SetMemberDraining&, const SetMemberDraining&) = default;
};

struct RemoveMember {
  static constexpr EntryType kType = EntryType::remove_member;
  std::string id;
  int64_t at = 0;  // Unix seconds
  friend bool operator==(const RemoveMember&, const RemoveMember&) = default;
};

struct ReadmitMember {
  static constexpr EntryType kType = EntryType::readmit_member;
  std::string id;
  int64_t at = 0;  // Unix seconds; nothing keeps it
  friend bool operator==(const ReadmitMember&, const ReadmitMember&) = default;
};

struct SetUserPassword {
  static constexpr EntryType kType = EntryType::set_user_password;
  std::string username;
  std::string password_hash;
  int64_t at_ms = 0;  // Unix
  friend bool operator==(const SetUserPassword&, const SetUserPassword&) = default;
};

struct SetUserGrants {
  static constexpr EntryType kType = EntryType::set_user_grants;
  std::string username;
  std::vector<Grant> grants;
  int64_t at_ms = 0;  // Unix
  friend bool operator==(const SetUserGrants&, const SetUserGrants&) = default;
};

// ---- 23 to 32: since 3.1 ---------------------------------------------------------------------------------------------------

struct ParentLink {
  std::string parent;
  std::string parent_id;  // incarnation that the create was checked against
  std::string epoch;
  int64_t delay_ms = 0;
  std::vector<int64_t> offsets;
  friend bool operator==(const ParentLink&, const ParentLink&) = default;
};

struct CreateTopicLinked {
  static constexpr EntryType kType = EntryType::create_topic_linked;
  Topic topic;
  std::string schema;  // version 1; empty: none
  std::optional<ParentLink> link;
  friend bool operator==(const CreateTopicLinked&, const CreateTopicLinked&) = default;
};

struct UpdateTopicIf {
  static constexpr EntryType kType = EntryType::update_topic_if;
  Topic topic;
  std::string expected_id;
  friend bool operator==(const UpdateTopicIf&, const UpdateTopicIf&) = default;
};

struct DeleteTopicIf {
  static constexpr EntryType kType = EntryType::delete_topic_if;
  std::string name;
  std::string expected_id;
  friend bool operator==(const DeleteTopicIf&, const DeleteTopicIf&) = default;
};

struct PutSchemaIf {
  static constexpr EntryType kType = EntryType::put_schema_if;
  std::string topic;
  int64_t version = 0;
  std::string schema;
  std::string expected_id;
  friend bool operator==(const PutSchemaIf&, const PutSchemaIf&) = default;
};

struct AttachChildIf {
  static constexpr EntryType kType = EntryType::attach_child_if;
  AttachChild link;
  std::string parent_id;
  std::string child_id;
  friend bool operator==(const AttachChildIf&, const AttachChildIf&) = default;
};

struct DetachChildIf {
  static constexpr EntryType kType = EntryType::detach_child_if;
  std::string parent;
  std::string child;
  std::string parent_id;
  std::string child_id;
  friend bool operator==(const DetachChildIf&, const DetachChildIf&) = default;
};

struct PlacePartition {
  static constexpr EntryType kType = EntryType::place_partition;
  std::string topic;
  int32_t partition = 0;
  std::string owner;
  std::string topic_id;
  friend bool operator==(const PlacePartition&, const PlacePartition&) = default;
};

struct PruneAssignment {
  static constexpr EntryType kType = EntryType::prune_assignment;
  std::string topic;
  int32_t partition = 0;
  friend bool operator==(const PruneAssignment&, const PruneAssignment&) = default;
};

struct MarkMemberDeadIf {
  static constexpr EntryType kType = EntryType::mark_member_dead_if;
  std::string id;
  int64_t last_heartbeat = 0;  // as the leader saw it
  friend bool operator==(const MarkMemberDeadIf&, const MarkMemberDeadIf&) = default;
};

struct DeleteUserReleasing {
  static constexpr EntryType kType = EntryType::delete_user_releasing;
  std::string username;
  friend bool operator==(const DeleteUserReleasing&, const DeleteUserReleasing&) = default;
};

// ---- 33 to 37: since 3.2 ---------------------------------------------------------------------------------------------------

struct AttachRemoteChild {
  static constexpr EntryType kType = EntryType::attach_remote_child;
  std::string parent;
  std::string parent_id;
  std::string stub;
  std::string stub_id;
  std::string epoch;
  int64_t delay_ms = 0;
  std::vector<int64_t> offsets;
  RemoteLink remote;  // lanes 0: 1; from empty: "attach"
  int64_t created_at = 0;  // Unix seconds
  std::string actor;
  std::string request_id;
  friend bool operator==(const AttachRemoteChild&, const AttachRemoteChild&) = default;
};

struct PauseChange {
  bool paused = false;
  std::string reason;  // of a pause
  std::string by;
  int64_t at_ms = 0;
  friend bool operator==(const PauseChange&, const PauseChange&) = default;
};

struct SkipOffset {
  int32_t partition = 0;
  int64_t offset = 0;
  friend bool operator==(const SkipOffset&, const SkipOffset&) = default;
};

struct ChangeRemoteChild {
  static constexpr EntryType kType = EntryType::change_remote_child;
  std::string parent;
  std::string stub;
  std::string epoch;
  std::optional<PauseChange> pause;
  std::optional<std::string> target_id;
  std::optional<int32_t> lanes;
  std::optional<SkipOffset> skip;
  std::string actor;
  std::string request_id;
  friend bool operator==(const ChangeRemoteChild&, const ChangeRemoteChild&) = default;
};

struct CreateRemote {
  static constexpr EntryType kType = EntryType::create_remote;
  Remote record;     // versions, revision and times are the handler's
  std::string salt;  // of the cluster, with its first remote; empty: none
  int64_t sealed_at_ms = 0;  // Unix
  std::string actor;
  std::string request_id;
  friend bool operator==(const CreateRemote&, const CreateRemote&) = default;
};

struct RemoteFields {
  std::optional<std::string> url;
  std::optional<std::string> username;
  std::optional<std::string> ca_pem;
  std::optional<RemoteLimits> limits;

  bool is_empty() const { return !url && !username && !ca_pem && !limits; }
  friend bool operator==(const RemoteFields&, const RemoteFields&) = default;
};

// What a credential was sealed together with: it opens for nothing else.
struct SealedAgainst {
  std::string url;
  std::string username;
  std::string ca_pem;
  friend bool operator==(const SealedAgainst&, const SealedAgainst&) = default;
};

struct ChangeRemote {
  static constexpr EntryType kType = EntryType::change_remote;
  std::string name;
  RemoteFields fields;
  std::string credential;   // sealed bytes; empty: stays
  std::string fingerprint;  // of the key that sealed it
  std::optional<SealedAgainst> sealed_against;
  uint64_t read_revision = 0;  // not tested here
  std::optional<uint64_t> expect_credential_version;
  bool reseal = false;  // the same password under another key
  int64_t sealed_at_ms = 0;  // Unix
  std::string actor;
  std::string request_id;
  friend bool operator==(const ChangeRemote&, const ChangeRemote&) = default;
};

struct DeleteRemote {
  static constexpr EntryType kType = EntryType::delete_remote;
  std::string name;
  bool force = false;
  std::string actor;
  std::string request_id;
  friend bool operator==(const DeleteRemote&, const DeleteRemote&) = default;
};

// Every command, in the order of the types: the alternative at index i is type i + 1.
using Command =
    std::variant<CreateTopic, UpdateTopic, DeleteTopic, PutSchema, AssignPartition, RegisterMember, HeartbeatMember, MarkMemberDead,
                 CreateUser, UpdateUser, DeleteUser, SeedRootUser, AttachChild, DetachChild, SetMoveTarget, CompleteMove, AbortMove,
                 SetMemberDraining, RemoveMember, ReadmitMember, SetUserPassword, SetUserGrants, CreateTopicLinked, UpdateTopicIf,
                 DeleteTopicIf, PutSchemaIf, AttachChildIf, DetachChildIf, PlacePartition, PruneAssignment, MarkMemberDeadIf,
                 DeleteUserReleasing, AttachRemoteChild, ChangeRemoteChild, CreateRemote, ChangeRemote, DeleteRemote>;

// The command's bytes with their envelope, ready to be proposed. Defined for every struct above, and for Command.
template <typename C>
std::string encode_command(const C& command);

// A payload without its envelope; nullopt when it is undecodable. Defined for every struct above.
template <typename C>
std::optional<C> decode_payload(std::string_view payload);
// Of the type `type` (1 to kNewestEntryType).
std::optional<Command> decode_payload(uint32_t type, std::string_view payload);

inline uint32_t type_of(const Command& command) { return static_cast<uint32_t>(command.index()) + 1; }

}  // namespace engine::metastore
