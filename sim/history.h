// What clients asked and what they were told: one Call a request. The world adds what it alone can see (how far the node's
// state machine had come before and after); the checks are in call_check.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/time.h"
#include "raft/types.h"

namespace sim {

using raft::Index;

// A topic as an answer or a log entry shows it: the fields that part 1 of the product can change or show.
struct Topic {
  std::string name;
  std::string id;
  int64_t partitions = 0;
  int64_t retention_ms = 0;
  int64_t visibility_timeout_ms = 0;
  int64_t max_in_flight_per_partition = 0;
  int64_t max_acked_ahead_per_partition = 0;
  int64_t created_at = 0;
  // Fan-out.
  std::string parent = {};                 // of a child
  int64_t fanout_delay_ms = 0;             // of a child
  std::vector<std::string> children = {};  // of a parent, in the order of attaching

  friend bool operator==(const Topic&, const Topic&) = default;
};

std::string to_text(const Topic& topic);
// But for fan-out: what a write of the topic's own record makes of it.
bool same_record(const Topic& one, const Topic& other);

// The schemas of a topic. Clients' schemas are told apart by a bound that is their call's tag: each is {"maxLength":<tag>}.
struct Schemas {
  int64_t versions = 0;
  int64_t bound = 0;  // of the latest; 0: none, or no client's

  friend bool operator==(const Schemas&, const Schemas&) = default;
};

enum class CallKind { create, patch, remove, read, list, attach, detach, children, put_schema, schemas };

const char* to_string(CallKind kind);

// What a call asks to change. Every create and patch carries a retention of its own (kTagBase + the call's id), so that an entry
// of the log tells which call made it.
inline constexpr int64_t kTagBase = 3'600'000;

enum class Outcome {
  pending,  // not answered yet
  ok,       // 2xx
  refused,  // 4xx: definitely not done
  unknown,  // 5xx, no answer, or a broken connection: done or not, now or later
  nothing,  // certainly never reached a node
};

const char* to_string(Outcome outcome);

struct Call {
  uint64_t id = 0;  // from 1, in the order of asking
  uint32_t client = 0;
  int node = 0;
  uint64_t life = 0;  // the node's incarnation when it was asked; 0: none was live
  CallKind kind = CallKind::read;
  std::string name;         // of the topic; list: the page token; attach, detach, children: the parent
  std::string parent;       // create: of the parent; "": none
  std::string child;        // attach, detach
  int64_t delay_ms = 0;     // create with a parent, attach
  bool has_schema = false;  // create: with a schema; put_schema always
  int64_t partitions = 0;   // asked for; 0: not given
  int64_t max_in_flight = 0;
  int64_t limit = 0;        // list

  io::Instant asked{};
  io::Instant answered = io::kNever;
  Outcome outcome = Outcome::pending;
  int status = 0;
  std::string error;              // of the answer or of the connection
  std::optional<Topic> topic;     // create, patch, read
  std::vector<Topic> topics;      // list
  std::string next_page;          // list
  std::optional<Schemas> schemas; // read, schemas
  std::string parent_id;          // children

  // ---- seen by the world alone ----
  Index acked_before = 0;       // the newest index whose write had been acknowledged to anybody when the call was made
  uint64_t early_answers_before = 0;  // times that any node had answered a write before its replica held it
  Index applied_before = 0;     // of the node, when asked
  Index applied_after = 0;      // of the node, when the answer arrived
  bool same_life = false;       // the node did not restart in between
  // For every node that led at some moment of the call: what it had applied when the call began or when it came to lead.
  std::optional<Index> least_leader_applied;

  bool writes_topic() const { return kind == CallKind::create || kind == CallKind::patch; }
  int64_t tag() const { return kTagBase + static_cast<int64_t>(id); }
};

// The call whose tag this is; nothing when it is no tag.
inline std::optional<uint64_t> call_of_tag(int64_t retention_ms) {
  return retention_ms > kTagBase ? std::optional<uint64_t>(static_cast<uint64_t>(retention_ms - kTagBase)) : std::nullopt;
}

// "call 17 (client 2 on node 1, create orders-3)".
std::string to_text(const Call& call);

}  // namespace sim
