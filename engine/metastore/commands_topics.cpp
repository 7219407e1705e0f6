#include "engine/metastore/command_wire.h"

namespace engine::metastore {

namespace {

using wire::Builder;

flatbuffers::Offset<fb::ParentLink> build_link(Builder& builder, const ParentLink& link) {
  auto parent = text_or_none(builder, link.parent);
  auto parent_id = text_or_none(builder, link.parent_id);
  auto epoch = text_or_none(builder, link.epoch);
  auto offsets = integers_or_none(builder, link.offsets);
  return fb::CreateParentLink(builder, parent, parent_id, epoch, link.delay_ms, offsets);
}

ParentLink read_link(const fb::ParentLink& stored, Copies& copies) {
  return {copies.text(stored.parent()), copies.text(stored.parent_id()), copies.text(stored.epoch()), stored.delay_ms(),
          copies.integers(stored.offsets())};
}

flatbuffers::Offset<fb::CreateTopicEntry> build(Builder& builder, const CreateTopic& command) {
  auto topic = build_topic(builder, command.topic);
  return fb::CreateCreateTopicEntry(builder, topic);
}

CreateTopic read(const fb::CreateTopicEntry& stored, Copies& copies) {
  CreateTopic command;
  if (copies.table()) {
    command.topic = read_topic(*stored.topic(), copies);
  }
  return command;
}

flatbuffers::Offset<fb::UpdateTopicEntry> build(Builder& builder, const UpdateTopic& command) {
  auto topic = build_topic(builder, command.topic);
  return fb::CreateUpdateTopicEntry(builder, topic);
}

UpdateTopic read(const fb::UpdateTopicEntry& stored, Copies& copies) {
  UpdateTopic command;
  if (copies.table()) {
    command.topic = read_topic(*stored.topic(), copies);
  }
  return command;
}

flatbuffers::Offset<fb::DeleteTopicEntry> build(Builder& builder, const DeleteTopic& command) {
  auto name = text_or_none(builder, command.name);
  return fb::CreateDeleteTopicEntry(builder, name);
}

DeleteTopic read(const fb::DeleteTopicEntry& stored, Copies& copies) {
  DeleteTopic command;
  command.name = copies.text(stored.name());
  return command;
}

flatbuffers::Offset<fb::PutSchemaEntry> build(Builder& builder, const PutSchema& command) {
  auto topic = text_or_none(builder, command.topic);
  auto schema = bytes_or_none(builder, command.schema);
  return fb::CreatePutSchemaEntry(builder, topic, command.version, schema);
}

PutSchema read(const fb::PutSchemaEntry& stored, Copies& copies) {
  PutSchema command;
  command.topic = copies.text(stored.topic());
  command.version = stored.version();
  command.schema = copies.bytes(stored.schema());
  return command;
}

flatbuffers::Offset<fb::AttachChildEntry> build(Builder& builder, const AttachChild& command) {
  auto parent = text_or_none(builder, command.parent);
  auto child = text_or_none(builder, command.child);
  auto epoch = text_or_none(builder, command.epoch);
  auto offsets = integers_or_none(builder, command.offsets);
  return fb::CreateAttachChildEntry(builder, parent, child, epoch, command.delay_ms, offsets);
}

AttachChild read(const fb::AttachChildEntry& stored, Copies& copies) {
  AttachChild command;
  command.parent = copies.text(stored.parent());
  command.child = copies.text(stored.child());
  command.epoch = copies.text(stored.epoch());
  command.delay_ms = stored.delay_ms();
  command.offsets = copies.integers(stored.offsets());
  return command;
}

flatbuffers::Offset<fb::DetachChildEntry> build(Builder& builder, const DetachChild& command) {
  auto parent = text_or_none(builder, command.parent);
  auto child = text_or_none(builder, command.child);
  return fb::CreateDetachChildEntry(builder, parent, child);
}

DetachChild read(const fb::DetachChildEntry& stored, Copies& copies) {
  DetachChild command;
  command.parent = copies.text(stored.parent());
  command.child = copies.text(stored.child());
  return command;
}

flatbuffers::Offset<fb::CreateTopicLinkedEntry> build(Builder& builder, const CreateTopicLinked& command) {
  auto topic = build_topic(builder, command.topic);
  auto schema = bytes_or_none(builder, command.schema);
  auto link = command.link ? build_link(builder, *command.link) : 0;
  return fb::CreateCreateTopicLinkedEntry(builder, topic, schema, link);
}

CreateTopicLinked read(const fb::CreateTopicLinkedEntry& stored, Copies& copies) {
  CreateTopicLinked command;
  if (copies.table()) {
    command.topic = read_topic(*stored.topic(), copies);
  }
  command.schema = copies.bytes(stored.schema());
  if (stored.link() != nullptr && copies.table()) {
    command.link = read_link(*stored.link(), copies);
  }
  return command;
}

flatbuffers::Offset<fb::UpdateTopicIfEntry> build(Builder& builder, const UpdateTopicIf& command) {
  auto topic = build_topic(builder, command.topic);
  auto expected_id = text_or_none(builder, command.expected_id);
  return fb::CreateUpdateTopicIfEntry(builder, topic, expected_id);
}

UpdateTopicIf read(const fb::UpdateTopicIfEntry& stored, Copies& copies) {
  UpdateTopicIf command;
  if (copies.table()) {
    command.topic = read_topic(*stored.topic(), copies);
  }
  command.expected_id = copies.text(stored.expected_id());
  return command;
}

flatbuffers::Offset<fb::DeleteTopicIfEntry> build(Builder& builder, const DeleteTopicIf& command) {
  auto name = text_or_none(builder, command.name);
  auto expected_id = text_or_none(builder, command.expected_id);
  return fb::CreateDeleteTopicIfEntry(builder, name, expected_id);
}

DeleteTopicIf read(const fb::DeleteTopicIfEntry& stored, Copies& copies) {
  DeleteTopicIf command;
  command.name = copies.text(stored.name());
  command.expected_id = copies.text(stored.expected_id());
  return command;
}

flatbuffers::Offset<fb::PutSchemaIfEntry> build(Builder& builder, const PutSchemaIf& command) {
  auto topic = text_or_none(builder, command.topic);
  auto schema = bytes_or_none(builder, command.schema);
  auto expected_id = text_or_none(builder, command.expected_id);
  return fb::CreatePutSchemaIfEntry(builder, topic, command.version, schema, expected_id);
}

PutSchemaIf read(const fb::PutSchemaIfEntry& stored, Copies& copies) {
  PutSchemaIf command;
  command.topic = copies.text(stored.topic());
  command.version = stored.version();
  command.schema = copies.bytes(stored.schema());
  command.expected_id = copies.text(stored.expected_id());
  return command;
}

flatbuffers::Offset<fb::AttachChildIfEntry> build(Builder& builder, const AttachChildIf& command) {
  auto link = build(builder, command.link);
  auto parent_id = text_or_none(builder, command.parent_id);
  auto child_id = text_or_none(builder, command.child_id);
  return fb::CreateAttachChildIfEntry(builder, link, parent_id, child_id);
}

AttachChildIf read(const fb::AttachChildIfEntry& stored, Copies& copies) {
  AttachChildIf command;
  if (copies.table()) {
    command.link = read(*stored.link(), copies);
  }
  command.parent_id = copies.text(stored.parent_id());
  command.child_id = copies.text(stored.child_id());
  return command;
}

flatbuffers::Offset<fb::DetachChildIfEntry> build(Builder& builder, const DetachChildIf& command) {
  auto parent = text_or_none(builder, command.parent);
  auto child = text_or_none(builder, command.child);
  auto parent_id = text_or_none(builder, command.parent_id);
  auto child_id = text_or_none(builder, command.child_id);
  return fb::CreateDetachChildIfEntry(builder, parent, child, parent_id, child_id);
}

DetachChildIf read(const fb::DetachChildIfEntry& stored, Copies& copies) {
  DetachChildIf command;
  command.parent = copies.text(stored.parent());
  command.child = copies.text(stored.child());
  command.parent_id = copies.text(stored.parent_id());
  command.child_id = copies.text(stored.child_id());
  return command;
}

}  // namespace

NARAD_METASTORE_COMMAND(CreateTopic)
NARAD_METASTORE_COMMAND(UpdateTopic)
NARAD_METASTORE_COMMAND(DeleteTopic)
NARAD_METASTORE_COMMAND(PutSchema)
NARAD_METASTORE_COMMAND(AttachChild)
NARAD_METASTORE_COMMAND(DetachChild)
NARAD_METASTORE_COMMAND(CreateTopicLinked)
NARAD_METASTORE_COMMAND(UpdateTopicIf)
NARAD_METASTORE_COMMAND(DeleteTopicIf)
NARAD_METASTORE_COMMAND(PutSchemaIf)
NARAD_METASTORE_COMMAND(AttachChildIf)
NARAD_METASTORE_COMMAND(DetachChildIf)

}  // namespace engine::metastore
