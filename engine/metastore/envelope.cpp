#include "engine/metastore/envelope.h"

#include "engine/metastore/command_wire.h"

namespace engine::metastore {

namespace {

constexpr char kMagic[2] = {'N', 'C'};

uint32_t read_big_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (char c : bytes) {
    value = value << 8 | static_cast<unsigned char>(c);
  }
  return value;
}

}  // namespace

std::optional<Envelope> read_envelope(std::string_view bytes) {
  if (bytes.size() < kEnvelopeHeaderBytes || bytes[0] != kMagic[0] || bytes[1] != kMagic[1]) {
    return std::nullopt;
  }
  Envelope envelope;
  envelope.version = static_cast<uint16_t>(read_big_endian(bytes.substr(2, 2)));
  envelope.type = read_big_endian(bytes.substr(4, 4));
  envelope.payload = bytes.substr(kEnvelopeHeaderBytes);
  return envelope.version == 0 ? std::nullopt : std::optional<Envelope>(envelope);
}

std::string wire::with_header(EntryType type, const Builder& builder) {
  auto number = static_cast<uint32_t>(type);
  std::string bytes(kMagic, sizeof(kMagic));
  bytes.reserve(kEnvelopeHeaderBytes + builder.GetSize());
  bytes.push_back(static_cast<char>(kEnvelopeVersion >> 8));
  bytes.push_back(static_cast<char>(kEnvelopeVersion & 0xff));
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(number >> shift & 0xff));
  }
  return bytes.append(finished(builder));
}

std::string_view name_of(EntryType type) {
  switch (type) {
    case EntryType::create_topic: return "create topic";
    case EntryType::update_topic: return "update topic";
    case EntryType::delete_topic: return "delete topic";
    case EntryType::put_schema: return "put schema";
    case EntryType::assign_partition: return "assign partition";
    case EntryType::register_member: return "register member";
    case EntryType::heartbeat_member: return "member heartbeat";
    case EntryType::mark_member_dead: return "dead mark";
    case EntryType::create_user: return "create user";
    case EntryType::update_user: return "update user";
    case EntryType::delete_user: return "delete user";
    case EntryType::seed_root_user: return "seed root user";
    case EntryType::attach_child: return "fan-out attach";
    case EntryType::detach_child: return "fan-out detach";
    case EntryType::set_move_target: return "set move target";
    case EntryType::complete_move: return "complete move";
    case EntryType::abort_move: return "abort move";
    case EntryType::set_member_draining: return "set member draining";
    case EntryType::remove_member: return "remove member";
    case EntryType::readmit_member: return "readmit member";
    case EntryType::set_user_password: return "set user password";
    case EntryType::set_user_grants: return "set user grants";
    case EntryType::create_topic_linked: return "create topic with schema and link";
    case EntryType::update_topic_if: return "compare-and-set topic update";
    case EntryType::delete_topic_if: return "compare-and-set topic delete";
    case EntryType::put_schema_if: return "compare-and-set schema version";
    case EntryType::attach_child_if: return "compare-and-set fan-out attach";
    case EntryType::detach_child_if: return "compare-and-set fan-out detach";
    case EntryType::place_partition: return "insert-only partition placement";
    case EntryType::prune_assignment: return "orphan assignment prune";
    case EntryType::mark_member_dead_if: return "dead mark from an observed heartbeat";
    case EntryType::delete_user_releasing: return "user delete that releases its topics";
    case EntryType::attach_remote_child: return "remote child attach";
    case EntryType::change_remote_child: return "remote child state change";
    case EntryType::create_remote: return "remote create";
    case EntryType::change_remote: return "remote change";
    case EntryType::delete_remote: return "remote delete";
  }
  return "unknown";
}

std::string encode_create_topic(const Topic& topic) { return encode_command(CreateTopic{topic}); }

std::string encode_update_topic(const Topic& topic) { return encode_command(UpdateTopic{topic}); }

std::string encode_delete_topic(std::string_view name) { return encode_command(DeleteTopic{std::string(name)}); }

std::optional<Topic> decode_create_topic(std::string_view payload) {
  std::optional<CreateTopic> command = decode_payload<CreateTopic>(payload);
  return command ? std::optional<Topic>(std::move(command->topic)) : std::nullopt;
}

std::optional<Topic> decode_update_topic(std::string_view payload) {
  std::optional<UpdateTopic> command = decode_payload<UpdateTopic>(payload);
  return command ? std::optional<Topic>(std::move(command->topic)) : std::nullopt;
}

std::optional<std::string> decode_delete_topic(std::string_view payload) {
  std::optional<DeleteTopic> command = decode_payload<DeleteTopic>(payload);
  return command ? std::optional<std::string>(std::move(command->name)) : std::nullopt;
}

}  // namespace engine::metastore
