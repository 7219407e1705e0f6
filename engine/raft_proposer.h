// The topic manager's view of raft, on the node's raft server.
#pragma once

#include <string>

#include "engine/metastore/replica.h"
#include "engine/topics/proposer.h"
#include "raft/server.h"

namespace engine {

class RaftProposer final : public Proposer {
 public:
  RaftProposer(raft::RaftServer& raft, metastore::Replica& replica) : raft_(raft), replica_(replica) {}

  bool is_leader() const override { return raft_.is_leader(); }
  raft::Term term() const override { return raft_.core().term(); }
  Proposed propose(std::string command, io::Instant deadline) override;
  io::Status barrier(io::Instant deadline) override;

 private:
  raft::RaftServer& raft_;
  metastore::Replica& replica_;
};

}  // namespace engine
