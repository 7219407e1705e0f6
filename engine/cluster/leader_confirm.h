// Asks whoever leads whether a topic, an incarnation or a fan-out link is really gone, before anything is destroyed because this
// node's replica says so (narad/lifecycle.md section 8, node-protocol.md section 8).
//
// The order: what the local replica holds is kept without asking. A node that leads takes its state for the cluster's only
// behind a barrier, and reads again after it. A follower asks only while its own replica is caught up, and believes only the
// leader's definite answer: a record (200) or "topic not found" (404), each given behind the leader's own barrier. Whatever else
// happens (no leader, none reachable, another status, an answer that cannot be read, a timeout) is `unknown`, and whoever asked
// keeps what it has. Each ends within kConfirmTimeout.
//
// An answer is about a moment during the call. Of an incarnation that is gone it stays true (its id is never drawn again); of a mere
// name it does not, since the name may be created again at any time: who acts on it must hold off creations meanwhile.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/cluster/node_client.h"
#include "engine/metastore/reader.h"
#include "engine/metastore/replica.h"
#include "io/env.h"
#include "raft/server.h"

namespace engine::cluster {

inline constexpr io::Duration kConfirmTimeout = std::chrono::seconds(5);

struct Confirmed {
  enum class Kind { unknown, present, absent };
  Kind kind = Kind::unknown;
  std::shared_ptr<const metastore::Topic> topic;  // present: the record as the leader holds it
};

// Answers to a claim; only `yes` is a licence.
enum class Verdict { unknown, no, yes };

class LeaderConfirm {
 public:
  LeaderConfirm(io::Env& env, metastore::Replica& replica, metastore::Reader& reader, raft::RaftServer& raft, NodeClientPool& clients)
      : env_(env), replica_(replica), reader_(reader), raft_(raft), clients_(clients) {}

  // The topic's record by the leader's word. All of these wait; throw Cancelled.
  Confirmed topic(std::string_view name);

  // No topic of this name exists.
  Verdict is_absent(std::string_view name);
  // The incarnation `id` of this name is gone: there is no such topic, or one of another id.
  Verdict is_incarnation_gone(std::string_view name, std::string_view id);
  // `child` hangs on `parent` by the link of this epoch.
  Verdict is_epoch_live(std::string_view child, std::string_view parent, std::string_view attach_epoch);
  // `child` does not hang on `parent`: it is gone, no child, or another's.
  Verdict is_link_dissolved(std::string_view child, std::string_view parent);

 private:
  Confirmed read_here(std::string_view name, io::Instant deadline);
  Confirmed behind_barrier(std::string_view name, Confirmed before, io::Instant deadline);
  Confirmed ask_leader(std::string_view name, io::Instant deadline);
  Confirmed unknown(std::string_view why, std::string_view name, const raft::LeaderHint& leader, std::string_view error);
  Confirmed authority(std::string_view name, Confirmed local, io::Instant deadline);
  template <typename Holds>
  Verdict judge_loss(std::string_view name, Holds still_holds);

  io::Env& env_;
  metastore::Replica& replica_;
  metastore::Reader& reader_;
  raft::RaftServer& raft_;
  NodeClientPool& clients_;
};

}  // namespace engine::cluster
