// What this node answers to the node protocol: each operation of this release, by the same manager that serves its own HTTP API.
//
// Only the leader carries out writes (the manager refuses otherwise, 503) and only the leader vouches for a topic: GetTopic is
// answered behind a barrier, 421 on a follower and 503 when the barrier fails, so that "not found" is never a stale replica's.
// AppliedIndex is answered by a leader that has applied everything committed before its term.
#pragma once

#include <optional>
#include <string_view>

#include "engine/cluster/frame_fields.h"
#include "engine/cluster/move_service.h"
#include "engine/cluster/node_frames.h"
#include "engine/metastore/replica.h"
#include "engine/topics/manager.h"
#include "io/env.h"
#include "raft/server.h"

namespace engine::cluster {

class ForgetService;
class JoinService;
class Registry;

// Who answers the operations about the cluster, and which fields and operations this node's release knows.
// Without one of them its operation is unsupported.
struct ClusterServices {
  JoinService* join = nullptr;
  Registry* registry = nullptr;
  ForgetService* forget = nullptr;
  FrameFields known = {};
};

class NodeService {
 public:
  NodeService(io::Env& env, topics::Manager& manager, raft::RaftServer& raft, metastore::Replica& replica, Admin& admin,
              ClusterServices cluster = {})
      : env_(env), manager_(manager), raft_(raft), replica_(replica), moves_(env, raft, admin), cluster_(cluster) {}

  // `payload` begins with its opcode. May wait.
  NodeReply answer(std::string_view payload);
  // AppliedIndex on a leader whose state is known to be current; nullopt for everything else.
  std::optional<NodeReply> answer_at_once(std::string_view payload);

 private:
  NodeReply create_topic(std::string_view payload);
  NodeReply alter_topic(std::string_view payload);
  NodeReply delete_topic(std::string_view payload);
  NodeReply attach_child(std::string_view payload);
  NodeReply detach_child(std::string_view payload);
  NodeReply get_topic(std::string_view payload);
  NodeReply applied_index(std::string_view payload);

  io::Env& env_;
  topics::Manager& manager_;
  raft::RaftServer& raft_;
  metastore::Replica& replica_;
  MoveService moves_;
  ClusterServices cluster_;
  raft::Term trusted_term_ = 0;  // in which a barrier has succeeded
};

}  // namespace engine::cluster
