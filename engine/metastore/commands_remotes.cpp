#include "engine/metastore/command_wire.h"

namespace engine::metastore {

namespace {

using wire::Builder;

template <typename Number>
flatbuffers::Optional<Number> to_wire(const std::optional<Number>& number) {
  return number ? flatbuffers::Optional<Number>(*number) : flatbuffers::nullopt;
}

template <typename Number>
std::optional<Number> from_wire(const flatbuffers::Optional<Number>& number) {
  return number.has_value() ? std::optional<Number>(*number) : std::nullopt;
}

flatbuffers::Offset<fb::PauseChange> build_pause(Builder& builder, const PauseChange& pause) {
  auto reason = text_or_none(builder, pause.reason);
  auto by = text_or_none(builder, pause.by);
  return fb::CreatePauseChange(builder, pause.paused, reason, by, pause.at_ms);
}

PauseChange read_pause(const fb::PauseChange& stored, Copies& copies) {
  return {stored.paused(), copies.text(stored.reason()), copies.text(stored.by()), stored.at_ms()};
}

flatbuffers::Offset<fb::SkipOffset> build_skip(Builder& builder, const SkipOffset& skip) {
  return fb::CreateSkipOffset(builder, skip.partition, skip.offset);
}

SkipOffset read_skip(const fb::SkipOffset& stored, Copies&) { return {stored.partition(), stored.offset()}; }

flatbuffers::Offset<fb::RemoteFields> build_fields(Builder& builder, const RemoteFields& fields) {
  auto url = optional_text(builder, fields.url);
  auto username = optional_text(builder, fields.username);
  auto ca_pem = optional_text(builder, fields.ca_pem);
  auto limits = fields.limits ? build_remote_limits(builder, *fields.limits) : 0;
  return fb::CreateRemoteFields(builder, url, username, ca_pem, limits);
}

RemoteFields read_fields(const fb::RemoteFields& stored, Copies& copies) {
  RemoteFields fields;
  fields.url = copies.optional_text(stored.url());
  fields.username = copies.optional_text(stored.username());
  fields.ca_pem = copies.optional_text(stored.ca_pem());
  if (stored.limits() != nullptr) {
    fields.limits = read_remote_limits(stored.limits(), copies);
  }
  return fields;
}

flatbuffers::Offset<fb::SealedAgainst> build_sealed_against(Builder& builder, const SealedAgainst& sealed) {
  auto url = text_or_none(builder, sealed.url);
  auto username = text_or_none(builder, sealed.username);
  auto ca_pem = text_or_none(builder, sealed.ca_pem);
  return fb::CreateSealedAgainst(builder, url, username, ca_pem);
}

SealedAgainst read_sealed_against(const fb::SealedAgainst& stored, Copies& copies) {
  return {copies.text(stored.url()), copies.text(stored.username()), copies.text(stored.ca_pem())};
}

flatbuffers::Offset<fb::AttachRemoteChildEntry> build(Builder& builder, const AttachRemoteChild& command) {
  auto parent = text_or_none(builder, command.parent);
  auto parent_id = text_or_none(builder, command.parent_id);
  auto stub = text_or_none(builder, command.stub);
  auto stub_id = text_or_none(builder, command.stub_id);
  auto epoch = text_or_none(builder, command.epoch);
  auto offsets = integers_or_none(builder, command.offsets);
  auto remote = build_remote_link(builder, command.remote);
  auto actor = text_or_none(builder, command.actor);
  auto request_id = text_or_none(builder, command.request_id);
  return fb::CreateAttachRemoteChildEntry(builder, parent, parent_id, stub, stub_id, epoch, command.delay_ms, offsets,
                                          remote, command.created_at, actor, request_id);
}

AttachRemoteChild read(const fb::AttachRemoteChildEntry& stored, Copies& copies) {
  AttachRemoteChild command;
  command.parent = copies.text(stored.parent());
  command.parent_id = copies.text(stored.parent_id());
  command.stub = copies.text(stored.stub());
  command.stub_id = copies.text(stored.stub_id());
  command.epoch = copies.text(stored.epoch());
  command.delay_ms = stored.delay_ms();
  command.offsets = copies.integers(stored.offsets());
  if (copies.table()) {
    command.remote = read_remote_link(*stored.remote(), copies);
  }
  command.created_at = stored.created_at();
  command.actor = copies.text(stored.actor());
  command.request_id = copies.text(stored.request_id());
  return command;
}

flatbuffers::Offset<fb::ChangeRemoteChildEntry> build(Builder& builder, const ChangeRemoteChild& command) {
  auto parent = text_or_none(builder, command.parent);
  auto stub = text_or_none(builder, command.stub);
  auto epoch = text_or_none(builder, command.epoch);
  auto pause = command.pause ? build_pause(builder, *command.pause) : 0;
  auto target_id = optional_text(builder, command.target_id);
  auto skip = command.skip ? build_skip(builder, *command.skip) : 0;
  auto actor = text_or_none(builder, command.actor);
  auto request_id = text_or_none(builder, command.request_id);
  return fb::CreateChangeRemoteChildEntry(builder, parent, stub, epoch, pause, target_id, to_wire(command.lanes),
                                          skip, actor, request_id);
}

ChangeRemoteChild read(const fb::ChangeRemoteChildEntry& stored, Copies& copies) {
  ChangeRemoteChild command;
  command.parent = copies.text(stored.parent());
  command.stub = copies.text(stored.stub());
  command.epoch = copies.text(stored.epoch());
  if (stored.pause() != nullptr && copies.table()) {
    command.pause = read_pause(*stored.pause(), copies);
  }
  command.target_id = copies.optional_text(stored.target_id());
  command.lanes = from_wire(stored.lanes());
  if (stored.skip() != nullptr && copies.table()) {
    command.skip = read_skip(*stored.skip(), copies);
  }
  command.actor = copies.text(stored.actor());
  command.request_id = copies.text(stored.request_id());
  return command;
}

flatbuffers::Offset<fb::CreateRemoteEntry> build(Builder& builder, const CreateRemote& command) {
  auto record = build_remote(builder, command.record);
  auto salt = bytes_or_none(builder, command.salt);
  auto actor = text_or_none(builder, command.actor);
  auto request_id = text_or_none(builder, command.request_id);
  return fb::CreateCreateRemoteEntry(builder, record, salt, command.sealed_at_ms, actor, request_id);
}

CreateRemote read(const fb::CreateRemoteEntry& stored, Copies& copies) {
  CreateRemote command;
  if (copies.table()) {
    command.record = read_remote(*stored.record(), copies);
  }
  command.salt = copies.bytes(stored.salt());
  command.sealed_at_ms = stored.sealed_at_ms();
  command.actor = copies.text(stored.actor());
  command.request_id = copies.text(stored.request_id());
  return command;
}

flatbuffers::Offset<fb::ChangeRemoteEntry> build(Builder& builder, const ChangeRemote& command) {
  auto name = text_or_none(builder, command.name);
  auto fields = command.fields.is_empty() ? 0 : build_fields(builder, command.fields);
  auto credential = bytes_or_none(builder, command.credential);
  auto fingerprint = text_or_none(builder, command.fingerprint);
  auto sealed_against = command.sealed_against ? build_sealed_against(builder, *command.sealed_against) : 0;
  auto actor = text_or_none(builder, command.actor);
  auto request_id = text_or_none(builder, command.request_id);
  return fb::CreateChangeRemoteEntry(builder, name, fields, credential, fingerprint, sealed_against,
                                     command.read_revision, to_wire(command.expect_credential_version),
                                     command.reseal, command.sealed_at_ms, actor, request_id);
}

ChangeRemote read(const fb::ChangeRemoteEntry& stored, Copies& copies) {
  ChangeRemote command;
  command.name = copies.text(stored.name());
  if (stored.fields() != nullptr && copies.table()) {
    command.fields = read_fields(*stored.fields(), copies);
  }
  command.credential = copies.bytes(stored.credential());
  command.fingerprint = copies.text(stored.fingerprint());
  if (stored.sealed_against() != nullptr && copies.table()) {
    command.sealed_against = read_sealed_against(*stored.sealed_against(), copies);
  }
  command.read_revision = stored.read_revision();
  command.expect_credential_version = from_wire(stored.expect_credential_version());
  command.reseal = stored.reseal();
  command.sealed_at_ms = stored.sealed_at_ms();
  command.actor = copies.text(stored.actor());
  command.request_id = copies.text(stored.request_id());
  return command;
}

flatbuffers::Offset<fb::DeleteRemoteEntry> build(Builder& builder, const DeleteRemote& command) {
  auto name = text_or_none(builder, command.name);
  auto actor = text_or_none(builder, command.actor);
  auto request_id = text_or_none(builder, command.request_id);
  return fb::CreateDeleteRemoteEntry(builder, name, command.force, actor, request_id);
}

DeleteRemote read(const fb::DeleteRemoteEntry& stored, Copies& copies) {
  DeleteRemote command;
  command.name = copies.text(stored.name());
  command.force = stored.force();
  command.actor = copies.text(stored.actor());
  command.request_id = copies.text(stored.request_id());
  return command;
}

}  // namespace

NARAD_METASTORE_COMMAND(AttachRemoteChild)
NARAD_METASTORE_COMMAND(ChangeRemoteChild)
NARAD_METASTORE_COMMAND(CreateRemote)
NARAD_METASTORE_COMMAND(ChangeRemote)
NARAD_METASTORE_COMMAND(DeleteRemote)

}  // namespace engine::metastore
