#include "engine/metastore/command_wire.h"

namespace engine::metastore {

namespace {

using wire::Builder;


flatbuffers::Offset<fb::AssignPartitionEntry> build(Builder& builder, const AssignPartition& command) {
  auto assignment = build_assignment(builder, command.assignment);
  return fb::CreateAssignPartitionEntry(builder, assignment);
}

AssignPartition read(const fb::AssignPartitionEntry& stored, Copies& copies) {
  AssignPartition command;
  if (copies.table()) {
    command.assignment = read_assignment(*stored.assignment(), copies);
  }
  return command;
}

flatbuffers::Offset<fb::SetMoveTargetEntry> build(Builder& builder, const SetMoveTarget& command) {
  auto topic = text_or_none(builder, command.topic);
  auto target = text_or_none(builder, command.target);
  return fb::CreateSetMoveTargetEntry(builder, topic, command.partition, target);
}

SetMoveTarget read(const fb::SetMoveTargetEntry& stored, Copies& copies) {
  SetMoveTarget command;
  command.topic = copies.text(stored.topic());
  command.partition = stored.partition();
  command.target = copies.text(stored.target());
  return command;
}

flatbuffers::Offset<fb::CompleteMoveEntry> build(Builder& builder, const CompleteMove& command) {
  auto topic = text_or_none(builder, command.topic);
  auto expected_owner = text_or_none(builder, command.expected_owner);
  auto target = text_or_none(builder, command.target);
  return fb::CreateCompleteMoveEntry(builder, topic, command.partition, expected_owner, target);
}

CompleteMove read(const fb::CompleteMoveEntry& stored, Copies& copies) {
  CompleteMove command;
  command.topic = copies.text(stored.topic());
  command.partition = stored.partition();
  command.expected_owner = copies.text(stored.expected_owner());
  command.target = copies.text(stored.target());
  return command;
}

flatbuffers::Offset<fb::AbortMoveEntry> build(Builder& builder, const AbortMove& command) {
  auto topic = text_or_none(builder, command.topic);
  auto expected_target = text_or_none(builder, command.expected_target);
  return fb::CreateAbortMoveEntry(builder, topic, command.partition, expected_target);
}

AbortMove read(const fb::AbortMoveEntry& stored, Copies& copies) {
  AbortMove command;
  command.topic = copies.text(stored.topic());
  command.partition = stored.partition();
  command.expected_target = copies.text(stored.expected_target());
  return command;
}

flatbuffers::Offset<fb::PlacePartitionEntry> build(Builder& builder, const PlacePartition& command) {
  auto topic = text_or_none(builder, command.topic);
  auto owner = text_or_none(builder, command.owner);
  auto topic_id = text_or_none(builder, command.topic_id);
  return fb::CreatePlacePartitionEntry(builder, topic, command.partition, owner, topic_id);
}

PlacePartition read(const fb::PlacePartitionEntry& stored, Copies& copies) {
  PlacePartition command;
  command.topic = copies.text(stored.topic());
  command.partition = stored.partition();
  command.owner = copies.text(stored.owner());
  command.topic_id = copies.text(stored.topic_id());
  return command;
}

flatbuffers::Offset<fb::PruneAssignmentEntry> build(Builder& builder, const PruneAssignment& command) {
  auto topic = text_or_none(builder, command.topic);
  return fb::CreatePruneAssignmentEntry(builder, topic, command.partition);
}

PruneAssignment read(const fb::PruneAssignmentEntry& stored, Copies& copies) {
  PruneAssignment command;
  command.topic = copies.text(stored.topic());
  command.partition = stored.partition();
  return command;
}

flatbuffers::Offset<fb::RegisterMemberEntry> build(Builder& builder, const RegisterMember& command) {
  auto member = build_member(builder, command.member);
  return fb::CreateRegisterMemberEntry(builder, member);
}

RegisterMember read(const fb::RegisterMemberEntry& stored, Copies& copies) {
  RegisterMember command;
  if (copies.table()) {
    command.member = read_member(*stored.member(), copies);
  }
  return command;
}

flatbuffers::Offset<fb::HeartbeatMemberEntry> build(Builder& builder, const HeartbeatMember& command) {
  auto id = text_or_none(builder, command.id);
  return fb::CreateHeartbeatMemberEntry(builder, id, command.at);
}

HeartbeatMember read(const fb::HeartbeatMemberEntry& stored, Copies& copies) {
  HeartbeatMember command;
  command.id = copies.text(stored.id());
  command.at = stored.at();
  return command;
}

flatbuffers::Offset<fb::MarkMemberDeadEntry> build(Builder& builder, const MarkMemberDead& command) {
  auto id = text_or_none(builder, command.id);
  return fb::CreateMarkMemberDeadEntry(builder, id);
}

MarkMemberDead read(const fb::MarkMemberDeadEntry& stored, Copies& copies) {
  MarkMemberDead command;
  command.id = copies.text(stored.id());
  return command;
}

flatbuffers::Offset<fb::MarkMemberDeadIfEntry> build(Builder& builder, const MarkMemberDeadIf& command) {
  auto id = text_or_none(builder, command.id);
  return fb::CreateMarkMemberDeadIfEntry(builder, id, command.last_heartbeat);
}

MarkMemberDeadIf read(const fb::MarkMemberDeadIfEntry& stored, Copies& copies) {
  MarkMemberDeadIf command;
  command.id = copies.text(stored.id());
  command.last_heartbeat = stored.last_heartbeat();
  return command;
}

flatbuffers::Offset<fb::SetMemberDrainingEntry> build(Builder& builder, const SetMemberDraining& command) {
  auto id = text_or_none(builder, command.id);
  return fb::CreateSetMemberDrainingEntry(builder, id, command.draining);
}

SetMemberDraining read(const fb::SetMemberDrainingEntry& stored, Copies& copies) {
  SetMemberDraining command;
  command.id = copies.text(stored.id());
  command.draining = stored.draining();
  return command;
}

flatbuffers::Offset<fb::RemoveMemberEntry> build(Builder& builder, const RemoveMember& command) {
  auto id = text_or_none(builder, command.id);
  return fb::CreateRemoveMemberEntry(builder, id, command.at);
}

RemoveMember read(const fb::RemoveMemberEntry& stored, Copies& copies) {
  RemoveMember command;
  command.id = copies.text(stored.id());
  command.at = stored.at();
  return command;
}

flatbuffers::Offset<fb::ReadmitMemberEntry> build(Builder& builder, const ReadmitMember& command) {
  auto id = text_or_none(builder, command.id);
  return fb::CreateReadmitMemberEntry(builder, id, command.at);
}

ReadmitMember read(const fb::ReadmitMemberEntry& stored, Copies& copies) {
  ReadmitMember command;
  command.id = copies.text(stored.id());
  command.at = stored.at();
  return command;
}

flatbuffers::Offset<fb::CreateUserEntry> build(Builder& builder, const CreateUser& command) {
  auto user = build_user(builder, command.user);
  return fb::CreateCreateUserEntry(builder, user);
}

CreateUser read(const fb::CreateUserEntry& stored, Copies& copies) {
  CreateUser command;
  if (copies.table()) {
    command.user = read_user(*stored.user(), copies);
  }
  return command;
}

flatbuffers::Offset<fb::UpdateUserEntry> build(Builder& builder, const UpdateUser& command) {
  auto user = build_user(builder, command.user);
  return fb::CreateUpdateUserEntry(builder, user);
}

UpdateUser read(const fb::UpdateUserEntry& stored, Copies& copies) {
  UpdateUser command;
  if (copies.table()) {
    command.user = read_user(*stored.user(), copies);
  }
  return command;
}

flatbuffers::Offset<fb::DeleteUserEntry> build(Builder& builder, const DeleteUser& command) {
  auto username = text_or_none(builder, command.username);
  return fb::CreateDeleteUserEntry(builder, username);
}

DeleteUser read(const fb::DeleteUserEntry& stored, Copies& copies) {
  DeleteUser command;
  command.username = copies.text(stored.username());
  return command;
}

flatbuffers::Offset<fb::SeedRootUserEntry> build(Builder& builder, const SeedRootUser& command) {
  auto user = build_user(builder, command.user);
  return fb::CreateSeedRootUserEntry(builder, user);
}

SeedRootUser read(const fb::SeedRootUserEntry& stored, Copies& copies) {
  SeedRootUser command;
  if (copies.table()) {
    command.user = read_user(*stored.user(), copies);
  }
  return command;
}

flatbuffers::Offset<fb::SetUserPasswordEntry> build(Builder& builder, const SetUserPassword& command) {
  auto username = text_or_none(builder, command.username);
  auto password_hash = bytes_or_none(builder, command.password_hash);
  return fb::CreateSetUserPasswordEntry(builder, username, password_hash, command.at_ms);
}

SetUserPassword read(const fb::SetUserPasswordEntry& stored, Copies& copies) {
  SetUserPassword command;
  command.username = copies.text(stored.username());
  command.password_hash = copies.bytes(stored.password_hash());
  command.at_ms = stored.at_ms();
  return command;
}

flatbuffers::Offset<fb::SetUserGrantsEntry> build(Builder& builder, const SetUserGrants& command) {
  auto username = text_or_none(builder, command.username);
  auto grants = build_grants(builder, command.grants);
  return fb::CreateSetUserGrantsEntry(builder, username, grants, command.at_ms);
}

SetUserGrants read(const fb::SetUserGrantsEntry& stored, Copies& copies) {
  SetUserGrants command;
  command.username = copies.text(stored.username());
  command.grants = read_grants(stored.grants(), copies);
  command.at_ms = stored.at_ms();
  return command;
}

flatbuffers::Offset<fb::DeleteUserReleasingEntry> build(Builder& builder, const DeleteUserReleasing& command) {
  auto username = text_or_none(builder, command.username);
  return fb::CreateDeleteUserReleasingEntry(builder, username);
}

DeleteUserReleasing read(const fb::DeleteUserReleasingEntry& stored, Copies& copies) {
  DeleteUserReleasing command;
  command.username = copies.text(stored.username());
  return command;
}

}  // namespace

NARAD_METASTORE_COMMAND(AssignPartition)
NARAD_METASTORE_COMMAND(SetMoveTarget)
NARAD_METASTORE_COMMAND(CompleteMove)
NARAD_METASTORE_COMMAND(AbortMove)
NARAD_METASTORE_COMMAND(PlacePartition)
NARAD_METASTORE_COMMAND(PruneAssignment)
NARAD_METASTORE_COMMAND(RegisterMember)
NARAD_METASTORE_COMMAND(HeartbeatMember)
NARAD_METASTORE_COMMAND(MarkMemberDead)
NARAD_METASTORE_COMMAND(MarkMemberDeadIf)
NARAD_METASTORE_COMMAND(SetMemberDraining)
NARAD_METASTORE_COMMAND(RemoveMember)
NARAD_METASTORE_COMMAND(ReadmitMember)
NARAD_METASTORE_COMMAND(CreateUser)
NARAD_METASTORE_COMMAND(UpdateUser)
NARAD_METASTORE_COMMAND(DeleteUser)
NARAD_METASTORE_COMMAND(SeedRootUser)
NARAD_METASTORE_COMMAND(SetUserPassword)
NARAD_METASTORE_COMMAND(SetUserGrants)
NARAD_METASTORE_COMMAND(DeleteUserReleasing)

}  // namespace engine::metastore
