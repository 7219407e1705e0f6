// Forgetting a raft server that left no trace but its place in the configuration: a joiner that crashed or was replaced before it ever
// registered, and holds every newer entry type back since its release is unknown (narad/lifecycle.md section 12, node-protocol.md op 34).
//
// Only on the leader, and only a server with no member record and no partition: a member is decommissioned instead. A voter goes only
// where the voters that remain are enough without it, which a leader knows once it has led for kPromotionWait, and raft judges again
// by whom it hears (Refusal::no_live_majority).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/cluster/cluster_frames.h"
#include "engine/metastore/reader.h"
#include "engine/metastore/replica.h"
#include "io/env.h"
#include "raft/server.h"

namespace engine::cluster {

struct ForgetFacts {
  bool is_leader = false;
  std::string leader_id;
  std::string leader_addr;
  // Looked at only where this node leads.
  bool is_self = false;
  struct Server {
    std::string addr;
    bool is_voter = false;
  };
  std::optional<Server> server;  // in raft's newest configuration
  std::string read_error;        // not empty: member records or assignments could not be read, and why
  bool has_record = false;
  bool has_assignment = false;   // owns a partition or is the target of a move
  io::Duration led_for{0};
};

// Why the server is not forgotten; nothing: it may be. `request`: as decoded.
std::optional<NodeReply> why_not_forgotten(const io::Result<ForgetServerRequest>& request, const ForgetFacts& facts);

class ForgetService {
 public:
  // Keeps references.
  ForgetService(io::Env& env, raft::RaftServer& raft, metastore::Replica& replica, metastore::Reader& reader)
      : env_(env), raft_(raft), replica_(replica), reader_(reader) {}

  // 200 {"id":...,"voter":...}; 400 without an id, and for the leader itself; 404 for a server that is not in the configuration; 409 for
  // what is no trace, and while the quorum is not safe; 421 on a node that does not lead; 503. `payload`: op 34. Within 10 s. Waits;
  // throws Cancelled.
  NodeReply answer(std::string_view payload);

 private:
  ForgetFacts look(const std::string& id);
  io::Result<bool> has_assignment(std::string_view id, io::Instant deadline);

  io::Env& env_;
  raft::RaftServer& raft_;
  metastore::Replica& replica_;
  metastore::Reader& reader_;
};

}  // namespace engine::cluster
