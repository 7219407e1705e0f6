// The records beside the topic (topic.h): assignments, members, users, tombstones and remotes, and how they are stored.
//
// Plain values. The stored form is a FlatBuffer (records.fbs); equal records have equal bytes on every node, because the state
// digest is taken over them. Decoding gives nullopt for bytes that are no well-formed record, and never needs more memory than a
// fixed multiple of them. Source: narad/entry-types.md section 2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace engine::metastore {

// Who holds a partition, and where it is being moved.
struct Assignment {
  std::string topic;
  int32_t partition = 0;
  std::string owner_id;   // of the member
  std::string target_id;  // empty: no move

  friend bool operator==(const Assignment&, const Assignment&) = default;
};

// Stored: values never change.
enum class MemberStatus : uint8_t { alive = 0, dead = 1 };

// "alive", "dead".
std::string_view to_string(MemberStatus status);

struct Member {
  std::string id;
  std::string addr;          // HTTP
  std::string cluster_addr;  // node protocol; empty: unknown
  MemberStatus status = MemberStatus::alive;
  int64_t last_heartbeat = 0;  // Unix seconds, the leader's clock
  bool draining = false;
  std::string build;         // empty: never reported
  uint32_t entry_types = 0;  // newest type it applies; 0: never reported

  friend bool operator==(const Member&, const Member&) = default;
};

struct Grant {
  std::string action;                 // "produce", "consume", "create", "admin"
  std::vector<std::string> patterns;  // exact names, or "prefix*"

  friend bool operator==(const Grant&, const Grant&) = default;
};

struct User {
  std::string username;
  std::string password_hash;  // bcrypt
  std::vector<Grant> grants;
  bool root = false;
  int64_t created_at_ms = 0;  // Unix
  int64_t updated_at_ms = 0;

  friend bool operator==(const User&, const User&) = default;
};

// Left by a member that was removed; it may not register again until it is readmitted.
struct Tombstone {
  int64_t removed_at = 0;  // Unix seconds

  friend bool operator==(const Tombstone&, const Tombstone&) = default;
};

struct RemoteLimits {
  int32_t max_in_flight = 16;
  int64_t request_timeout_ms = 30'000;
  int64_t idle_conn_timeout_ms = 30'000;
  int64_t conn_max_age_ms = 300'000;
  int64_t check_interval_ms = 60'000;
  std::string compression = "none";  // or "zstd"

  friend bool operator==(const RemoteLimits&, const RemoteLimits&) = default;
};

// Another cluster that remote children send to. The credential is sealed outside: opaque here.
struct Remote {
  std::string name;
  std::string url;
  std::string username;
  std::string ca_pem;  // empty: the system's
  RemoteLimits limits;
  std::string credential;   // sealed bytes
  std::string fingerprint;  // of the key that sealed it
  uint64_t credential_version = 0;
  uint64_t revision = 0;
  std::string created_by;
  int64_t created_at_ms = 0;  // Unix
  std::string updated_by;
  int64_t updated_at_ms = 0;

  friend bool operator==(const Remote&, const Remote&) = default;
};

std::string encode_assignment(const Assignment& assignment);
std::optional<Assignment> decode_assignment(std::string_view bytes);
std::string encode_member(const Member& member);
std::optional<Member> decode_member(std::string_view bytes);
std::string encode_user(const User& user);
std::optional<User> decode_user(std::string_view bytes);
std::string encode_tombstone(const Tombstone& tombstone);
std::optional<Tombstone> decode_tombstone(std::string_view bytes);
std::string encode_remote(const Remote& remote);
std::optional<Remote> decode_remote(std::string_view bytes);

}  // namespace engine::metastore
