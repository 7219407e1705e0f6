// A node's heartbeats: it tells the leader every kHeartbeatInterval that it lives, where it is reached, and which release it is; until
// the first success of its life every kFirstHeartbeatInterval, since nothing is placed on a node that has not registered. On the leader
// it is a call within the node, elsewhere RegisterMember; the leader's registry (registry.h) does the same with both.
//
// Nothing of a failure is given up on: the next heartbeat goes to whoever leads then. A node that was removed says so once, at error
// level, and goes on asking: it may be readmitted.
// Source: narad/node-protocol.md section 6; lifecycle.md section 5.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/cluster/cluster_frames.h"
#include "engine/cluster/node_client.h"
#include "io/env.h"
#include "raft/server.h"

namespace engine::cluster {

inline constexpr io::Duration kFirstHeartbeatInterval = std::chrono::milliseconds(250);
inline constexpr io::Duration kHeartbeatInterval = std::chrono::seconds(5);
inline constexpr io::Duration kHeartbeatTimeout = std::chrono::seconds(5);
// A warning: this many failures in a row, over this long; then again after kHeartbeatWarningPause.
inline constexpr uint64_t kHeartbeatFailuresBeforeWarning = 3;
inline constexpr io::Duration kHeartbeatFailingBeforeWarning = std::chrono::seconds(10);
inline constexpr io::Duration kHeartbeatWarningPause = std::chrono::minutes(1);

class Heartbeater {
 public:
  // Registers this member with this node, which leads.
  using RegisterHere = std::function<NodeReply(const RegisterMemberRequest& request)>;

  // Keeps references. `self`: what every heartbeat says; status and last_heartbeat are filled in. `fields`: what its release sends.
  Heartbeater(io::Env& env, raft::RaftServer& raft, NodeClientPool& clients, RegisterHere register_here, RegisterMemberRequest self,
              FrameFields fields);

  // For the node's life. Throws Cancelled.
  void run();

  // Failures in a row; 0 after a success.
  uint64_t failures() const { return failures_; }
  // Unix seconds by this node's calendar clock; 0: none yet.
  int64_t last_success_at() const { return last_success_at_; }

 private:
  // Sends one; nullopt when it was taken, else why not.
  std::optional<std::string> beat();
  void note_success();
  void note_failure(const std::string& why);

  io::Env& env_;
  raft::RaftServer& raft_;
  NodeClientPool& clients_;
  RegisterHere register_here_;
  RegisterMemberRequest self_;
  const FrameFields fields_;
  uint64_t failures_ = 0;
  io::Instant failing_since_{};
  io::WallTime failing_since_wall_{};
  std::optional<io::Instant> warned_at_;
  bool has_succeeded_ = false;
  bool was_refused_ = false;  // 410, and has said so
  int64_t last_success_at_ = 0;
};

}  // namespace engine::cluster
