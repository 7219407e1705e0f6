// What a node answers to the node protocol's requests about moves, members that leave, and itself (operations 25 to 28 and 33): the frames
// of move_frames.h, carried out by admin.h.
#pragma once

#include <string_view>

#include "engine/cluster/admin.h"
#include "engine/cluster/node_frames.h"
#include "io/env.h"

namespace raft {
class RaftServer;
}

namespace engine::cluster {

class MoveService {
 public:
  // Keeps references.
  MoveService(io::Env& env, raft::RaftServer& raft, Admin& admin) : env_(env), raft_(raft), admin_(admin) {}

  // `op` is one of those. 400 for what cannot be read; 421 with the leader for an assignment asked of a follower; else as admin.h says.
  // May wait; throws Cancelled.
  NodeReply answer(Op op, std::string_view payload);

 private:
  NodeReply decommission(std::string_view payload);
  NodeReply complete_move(std::string_view payload);
  NodeReply abort_move(std::string_view payload);
  NodeReply get_assignment(std::string_view payload);
  NodeReply node_status(std::string_view payload);

  io::Env& env_;
  raft::RaftServer& raft_;
  Admin& admin_;
};

}  // namespace engine::cluster
