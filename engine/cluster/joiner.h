// A node's own side of joining: before it has a configuration, while it is a non-voter, and when it has lost sight of every leader.
//
// The probe, before a start that could bootstrap: an initial member whose volume is empty first asks its peers whether a cluster
// exists, since its volume may have been wiped. 200, 421 and 409 say that one does, and the node joins it. A round in which every peer
// answers 412 says that all of them are in the same position, and ends the probe; otherwise there are kProbeRounds rounds. While it
// probes, a node answers 412 itself.
//
// The joiner, for the node's life, asks for admission every kJoinInterval
//  - when the node joins a cluster (join-only, or by the probe), until its raft sees a leader;
//  - when its raft has seen no leader for kLeaderlessBeforeJoin: its address may have changed, or it has been removed;
//  - when the configuration has it at another address than its own: until that is put right;
//  - when the configuration knows it with another volume (it was wiped): until it has been staged anew;
//  - as a non-voter that is caught up: until it is promoted.
// A walk goes from the leader that is known, over the configured peers, to leaders it has been told of before. A 421 names where to ask
// next (at most kHintsPerAttempt of them an attempt); 412 and silence mean: the next one; every other answer ends the walk. A server that
// was removed is refused with each of them and stays out; it says so once.
//
// "Fresh" is what the node claims of its volume: that it is empty. It stands from a start with nothing in the log until the first
// admission; and while the configuration names another volume. A leader takes a removed member back only with it.
// Source: narad/lifecycle.md sections 2 and 3; node-protocol.md sections 5 and 7.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cluster/cluster_frames.h"
#include "engine/cluster/node_client.h"
#include "engine/config.h"
#include "engine/metastore/replica.h"
#include "io/env.h"
#include "raft/server.h"

namespace engine::cluster {

inline constexpr int kProbeRounds = 3;
inline constexpr io::Duration kProbePause = std::chrono::seconds(1);  // from one round to the next
inline constexpr io::Duration kProbeTimeout = std::chrono::seconds(2);  // of one peer in one round
inline constexpr io::Duration kJoinInterval = std::chrono::seconds(2);
inline constexpr io::Duration kJoinCallTimeout = std::chrono::seconds(5);
inline constexpr io::Duration kLeaderlessBeforeJoin = std::chrono::seconds(15);
inline constexpr size_t kHintsPerAttempt = 4;
inline constexpr size_t kLearnedMax = 8;

struct JoinerSettings {
  std::string id;
  std::string cluster_addr;        // as the others dial it
  std::vector<std::string> peers;  // cluster addresses of the others; empty: a single node, which never joins
  uint32_t entry_types = 0;        // the newest that this node's build applies
  FrameFields fields;              // what its release sends
  bool is_joining = false;         // it does not bootstrap
};

// Asks the peers whether a cluster exists. Waits, kProbeRounds rounds at most; throws Cancelled. `clients` runs.
bool probe_for_cluster(io::Env& env, NodeClientPool& clients, const JoinerSettings& settings);

// Whom to ask, and in which order. Pure; an address is asked once an attempt.
class JoinWalk {
 public:
  // `own`: never asked.
  JoinWalk(std::string own, std::string leader, const std::vector<std::string>& peers, const std::deque<std::string>& learned);

  // The next address; nothing when all have been asked.
  std::optional<std::string> next();
  // A 421 named this leader (empty: none): it is asked next. False when it is not: it was asked already, or too many hints were given.
  bool follow_hint(const std::string& address);

 private:
  std::string own_;
  std::deque<std::string> ahead_;
  std::vector<std::string> asked_;
  size_t hints_ = 0;
};

class Joiner {
 public:
  // Keeps references to all but `settings`. `raft` is open.
  Joiner(io::Env& env, raft::RaftServer& raft, const metastore::Replica& replica, NodeClientPool& clients, JoinerSettings settings);

  // For the node's life; returns at once on a single node. Throws Cancelled.
  void run();

 private:
  enum class Duty { none, join, promotion };
  Duty duty() const;
  bool is_fresh() const;
  JoinClusterRequest request() const;
  void note_leader();
  void attempt();
  void ask_for_promotion();
  void note_admitted(const std::string& via, const NodeReply& reply);
  void note_refused(const std::string& via, const NodeReply& reply);
  void note_deferred(const NodeReply& reply);
  void learn(const std::string& address);

  io::Env& env_;
  raft::RaftServer& raft_;
  const metastore::Replica& replica_;
  NodeClientPool& clients_;
  const JoinerSettings settings_;
  const bool was_empty_;           // at the start
  bool was_admitted_ = false;      // since then
  bool has_seen_leader_ = false;   // since the start
  bool is_loop_running_ = false;
  bool is_staged_ = false;
  io::Instant leader_seen_at_;     // last
  uint64_t attempts_ = 0;          // of the loop under way
  std::deque<std::string> learned_;  // newest first
  std::string last_refusal_;       // status and code of the last refusal that was logged
  std::string last_outcome_;       // of the last admission that was logged
  std::string last_deferral_;
};

}  // namespace engine::cluster
