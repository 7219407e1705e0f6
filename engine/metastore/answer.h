// What the state machine answers to an entry: applied, or why it was refused. Typed, small, and the same bytes on every node.
//
// A refusal is no failure: the entry is counted as applied and has changed nothing (but a credential's seal is counted, apply_remotes.h).
// Texts and codes are those of
// narad/entry-types.md section 7 and its tables; the codes travel in answers and never change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace engine::metastore {

enum class Code : uint8_t {
  ok = 0,
  undecodable = 1,  // the entry's bytes are no command; every node's log holds them alike
  not_found = 2,
  already_exists = 3,
  topic_already_exists = 4,  // another name that differs in letter case only
  invalid_argument = 5,
  topic_changed = 6,
  fanout_role_conflict = 7,
  fanout_child_limit = 8,
  fanout_schema_mismatch = 9,
  fanout_schema_managed = 10,
  fanout_delay_too_long = 11,
  schema_history_full = 12,
  partition_assigned = 13,
  assignment_live = 14,
  member_heartbeat_newer = 15,
  member_removed = 16,
  root_protected = 17,
  remote_stub_immutable = 18,
  remote_retention_floor = 19,
  remote_child_conflict = 20,
  remote_child_limit = 21,
  remote_target_linked = 22,
  remote_child_stale = 23,
  remote_salt_race = 24,
  remote_key_exhausted = 25,
  remote_exists = 26,
  remote_limit = 27,
  remote_changed = 28,
  remote_in_use = 29,
};

inline constexpr Code kNewestCode = Code::remote_in_use;

// The fixed text of a code ("already exists"); empty for ok.
std::string_view text_of(Code code);

struct Answer {
  Code code = Code::ok;
  std::string detail;  // what the refusal is about; may be empty

  bool ok() const { return code == Code::ok; }
  // "already exists: topic orders"
  std::string text() const;

  friend bool operator==(const Answer&, const Answer&) = default;
};

inline Answer refuse(Code code, std::string detail = {}) { return Answer{code, std::move(detail)}; }

// One byte of code, then the detail.
std::string encode_answer(const Answer& answer);
// nullopt for bytes that are no answer; the empty text among them (what an entry gets that was applied before).
std::optional<Answer> decode_answer(std::string_view bytes);

}  // namespace engine::metastore
