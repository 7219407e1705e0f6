#include "engine/metastore/answer.h"

namespace engine::metastore {

std::string_view text_of(Code code) {
  switch (code) {
    case Code::ok: return "";
    case Code::undecodable: return "entry cannot be decoded";
    case Code::not_found: return "not found";
    case Code::already_exists: return "already exists";
    case Code::topic_already_exists: return "topic already exists";
    case Code::invalid_argument: return "invalid argument";
    case Code::topic_changed: return "topic changed since it was read";
    case Code::fanout_role_conflict: return "fan-out role conflict";
    case Code::fanout_child_limit: return "parent has reached the maximum number of children";
    case Code::fanout_schema_mismatch: return "child schema incompatible with parent";
    case Code::fanout_schema_managed: return "schema is parent-managed while attached to a fan-out parent";
    case Code::fanout_delay_too_long: return "delay exceeds what the parent's retention can buffer";
    case Code::schema_history_full: return "schema history is full";
    case Code::partition_assigned: return "metastore: partition already has an owner on record";
    case Code::assignment_live: return "metastore: assignment row belongs to a live partition";
    case Code::member_heartbeat_newer: return "member has a newer heartbeat on record";
    case Code::member_removed: return "member was removed from the cluster";
    case Code::root_protected: return "metastore: root account is protected";
    case Code::remote_stub_immutable: return "remote child's record cannot be changed";
    case Code::remote_retention_floor: return "retention below what remote children need";
    case Code::remote_child_conflict: return "remote child conflict";
    case Code::remote_child_limit: return "parent has reached the maximum number of remote children";
    case Code::remote_target_linked: return "another remote child already sends to this topic through this remote";
    case Code::remote_child_stale: return "remote child changed since it was read";
    case Code::remote_salt_race: return "another write has fixed the cluster's salt";
    case Code::remote_key_exhausted: return "key has sealed as many credentials as it may";
    case Code::remote_exists: return "remote already exists";
    case Code::remote_limit: return "cluster has reached the maximum number of remotes";
    case Code::remote_changed: return "remote changed since it was read";
    case Code::remote_in_use: return "remote is in use";
  }
  return "refused";
}

std::string Answer::text() const {
  std::string text(text_of(code));
  if (!detail.empty()) {
    text += text.empty() ? detail : ": " + detail;
  }
  return text;
}

std::string encode_answer(const Answer& answer) {
  std::string bytes(1, static_cast<char>(answer.code));
  return bytes += answer.detail;
}

std::optional<Answer> decode_answer(std::string_view bytes) {
  if (bytes.empty() || static_cast<unsigned char>(bytes[0]) > static_cast<unsigned char>(kNewestCode)) {
    return std::nullopt;
  }
  return Answer{static_cast<Code>(bytes[0]), std::string(bytes.substr(1))};
}

}  // namespace engine::metastore
