// What a node answers to JoinCluster, and what the leader does for it: one pure function from the request and what is known to one
// decision. Nothing is read, changed or waited for here; engine/cluster/join_service.h gathers the facts and carries the decision out.
//
// The order of the checks is part of the protocol (narad/node-protocol.md section 5):
//  1 a request that cannot be read, or names no server or no address: 400
//  2 no raft configuration here: 412, and the asker goes on to another node
//  3 not the leader: 421 with the leader, as far as it is known
//  4 a joiner of an older release that is not in the configuration: 409, which also releases that know nothing of this read as "a
//    cluster exists", so that they never bootstrap a rival. Two tests: it applies fewer entry types than every member's record says
//    that the member does, or fewer than the leader's database has applied
//  5 a tombstone: an asker with an old volume is refused (409), one with an empty volume is readmitted first
//  6 admission: see JoinDecision::Outcome
// A server in the configuration is never refused as older: it was admitted, and its votes may be needed.
//
// Why staging: a joiner that became a voter at once and cannot be reached would, with one dead voter of three, end the quorum for good.
// So a new server is a non-voter, and is promoted when it asks again, caught up (lifecycle facts, section 4).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/cluster/cluster_frames.h"
#include "io/result.h"
#include "io/time.h"

namespace engine::cluster {

// A leader that has led for less long may not have seen a heartbeat fail yet; and a heartbeat that failed counts for as long.
inline constexpr io::Duration kPromotionWait = std::chrono::seconds(12);

struct JoinFacts {
  // ---- Of this node ---------------------------------------------------------------------------------------------------------
  bool is_running = true;          // its raft can be asked
  bool has_configuration = false;  // of raft, with at least one server
  bool is_leader = false;
  std::string leader_id;           // as far as it is known; both may be empty
  std::string leader_addr;

  // ---- Looked at only where this node leads ---------------------------------------------------------------------------------
  // The joiner in raft's newest configuration.
  struct Server {
    std::string addr;
    bool is_voter = false;
    bool is_other_store = false;  // who speaks under its name has another volume than the one on record
  };
  std::optional<Server> server;
  bool is_self = false;  // the joiner's id is this node's own

  // The member records and tombstones. Not empty: they could not be read, and why.
  std::string members_error;
  // The least newest entry type over all member records but the joiner's own, where one that reports nothing counts as
  // kEveryReleaseEntryType, and this node, which counts by its own build.
  uint32_t member_types_min = 0;
  uint32_t types_used = 0;  // the newest that this node's database has applied; 0: none
  bool is_tombstoned = false;

  // The joiner's own member record.
  struct Record {
    bool is_alive = false;
    bool is_draining = false;
  };
  std::optional<Record> record;

  io::Duration led_for{0};  // since this node was elected
  // How long ago raft's heartbeats to the joiner last failed, and were last answered; nothing: not yet.
  std::optional<io::Duration> heartbeat_failed_ago;
  std::optional<io::Duration> heartbeat_answered_ago;
};

struct JoinDecision {
  enum class Outcome {
    // Answered as it stands.
    malformed,         // 400
    incomplete,        // 400
    unavailable,       // 503
    no_configuration,  // 412
    not_leader,        // 421
    older_release,     // 409, code older_release
    removed,           // 409: its tombstone stands
    deferred,          // 200: a non-voter that is not to be promoted yet, and why
    is_voter,          // 200: nothing to do
    // `reply` is the answer once this has been done.
    readmit,           // its tombstone is taken away; then the decision is made again
    add,               // it becomes a non-voter: staged
    replace,           // a known server with another, empty volume: taken out and added again as a non-voter: staged
    move_voter,        // its recorded address changes
    move_non_voter,    // the same: deferred
    promote,           // it becomes a voter
  };
  Outcome outcome = Outcome::unavailable;
  NodeReply reply;
  uint32_t joiner_types = 0;  // that the joiner reported; one that reports none counts as kEveryReleaseEntryType
  std::string reason;         // deferred, move_non_voter: as in the reply
};

// `request`: as decoded.
JoinDecision decide_join(const io::Result<JoinClusterRequest>& request, const JoinFacts& facts);

// Whether raft's heartbeats to the joiner count as failing: one failed less than kPromotionWait ago, and none was answered since.
bool are_heartbeats_failing(const JoinFacts& facts);

// What the leader could not do: 503.
inline constexpr std::string_view kAdmissionFailed = "admission failed";
inline constexpr std::string_view kReadmitFailed = "readmit member failed";
// A non-voter that calls itself caught up, where raft's own measure of it does not agree (an addition to the original's reasons).
inline constexpr std::string_view kNotCaughtUpReason = "it has not caught up with the raft log yet";
// 200, "deferred" and why.
NodeReply deferred_reply(std::string_view reason);

// ---- The joiner's side -------------------------------------------------------------------------------------------------------

// The answer shows that a cluster exists to which the asker may belong: 200, 421 and 409. Not: 412, other answers, none.
bool shows_a_cluster(const NodeReply& reply);

// What a 200 says: "staged", "deferred", "promoted", "voter", from 3.0.x "joined"; empty when it cannot be read.
struct JoinAnswer {
  std::string status;
  std::string reason;
};
JoinAnswer parse_join_answer(std::string_view body);

// The leader's address that a 421 names, fit to be dialled: host:port of at most kHintBytesMax bytes, port not 0. Empty otherwise.
inline constexpr size_t kHintBytesMax = 261;
std::string parse_leader_hint(std::string_view body);

}  // namespace engine::cluster
