// The topic manager's view of raft, on the node's raft server.
#pragma once

#include <string>

#include "engine/topics/proposer.h"
#include "raft/server.h"

namespace engine {

class RaftProposer final : public Proposer {
 public:
  explicit RaftProposer(raft::RaftServer& raft) : raft_(raft) {}

  bool is_leader() const override { return raft_.is_leader(); }
  raft::Term term() const override { return raft_.core().term(); }
  Proposed propose(std::string command, io::Instant deadline) override;
  io::Status barrier(io::Instant deadline) override;

 private:
  raft::RaftServer& raft_;
};

}  // namespace engine
