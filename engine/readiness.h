// Whether this node should be sent traffic: what /readyz says, and why not (narad/http-api.md section 8, lifecycle.md section 7).
//
// Ready: started, a leader in view, contact with it at most 5 s old (or this node leads), and this replica has once since its
// start caught up with the leader. The last one latches: it asks the leader for its applied index (or, leading, passes a barrier)
// and waits until this replica has applied that far, because a restarted replica's own indexes agree with each other however
// stale they are.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "io/env.h"
#include "raft/server.h"

namespace engine {

inline constexpr io::Duration kContactFreshness = std::chrono::seconds(5);

class Readiness {
 public:
  // Waits until the replica has applied what its leader had; false when that could not be learnt by the deadline.
  using CatchUp = std::function<bool(io::Instant deadline)>;

  Readiness(io::Env& env, raft::RaftServer& raft, CatchUp catch_up)
      : env_(env), raft_(raft), catch_up_(std::move(catch_up)) {}

  void mark_started() { started_ = true; }
  void mark_stopping() { stopping_ = true; }
  bool is_stopping() const { return stopping_; }
  bool has_caught_up() const { return caught_up_; }

  // Sets the latch; returns then. Throws Cancelled.
  void wait_until_caught_up();

  // Why the node is not ready; nullopt when it is.
  std::optional<std::string> why_not_ready() const;

 private:
  bool catch_up_once();

  io::Env& env_;
  raft::RaftServer& raft_;
  CatchUp catch_up_;
  bool started_ = false;
  bool stopping_ = false;
  bool caught_up_ = false;
};

}  // namespace engine
