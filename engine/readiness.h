// Whether this node should be sent traffic: what /readyz says, and why not (narad/http-api.md section 8, lifecycle.md section 7).
//
// Ready: started, not stopping, a leader in view, contact with it at most 5 s old (or this node leads), and this replica has once
// since its start caught up with the leader (the latch of metastore/replica.h). A ready node turns unready when it loses the leader.
#pragma once

#include <optional>
#include <string>

#include "engine/metastore/replica.h"
#include "raft/server.h"

namespace engine {

class Readiness {
 public:
  Readiness(raft::RaftServer& raft, const metastore::Replica& replica) : raft_(raft), replica_(replica) {}

  void mark_started() { started_ = true; }
  // A graceful stop has begun: not alive any more to /healthz, while what is under way still ends here.
  void mark_leaving() { leaving_ = true; }
  bool is_leaving() const { return leaving_; }
  void mark_stopping() { leaving_ = stopping_ = true; }

  // Why the node is not ready; nullopt when it is.
  std::optional<std::string> why_not_ready() const;

 private:
  raft::RaftServer& raft_;
  const metastore::Replica& replica_;
  bool started_ = false;
  bool leaving_ = false;
  bool stopping_ = false;
};

}  // namespace engine
