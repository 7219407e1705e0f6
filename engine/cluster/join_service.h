// The answering side of JoinCluster on a node: gathers the facts, lets join_rules.h decide, and carries the decision out on the leader.
//
//  - Admissions take turns: while one is carried out, the next one waits to be decided, on facts read after it. Each step of the
//    configuration ends within kConfigurationTimeout; a request whose turn does not come in time is a 503, and is asked again.
//  - What the leader reads of its own replica it reads behind a barrier: a tombstone or a record that was acknowledged is seen.
//  - A refusal of an older joiner is an error line, at most one a minute and id; the rest of what happens to joiners is logged as it happens.
//
// Source: narad/node-protocol.md section 5; lifecycle.md section 4.
#pragma once

#include <string>
#include <string_view>

#include "engine/cluster/join_rules.h"
#include "engine/metastore/fsm.h"
#include "engine/metastore/replica.h"
#include "engine/topics/proposer.h"
#include "io/env.h"
#include "raft/log_limit.h"
#include "raft/server.h"

namespace engine::cluster {

inline constexpr io::Duration kConfigurationTimeout = std::chrono::seconds(5);

// How long a request waits for its turn: a joiner gives up on its call in a little more.
inline constexpr io::Duration kAdmissionWait = std::chrono::seconds(5);

class JoinService {
 public:
  // Keeps references. `own_types`: the newest entry type that this node's build applies.
  JoinService(io::Env& env, raft::RaftServer& raft, metastore::Replica& replica, metastore::Fsm& fsm, Proposer& proposer,
              uint32_t own_types)
      : env_(env), raft_(raft), replica_(replica), fsm_(fsm), proposer_(proposer), own_types_(own_types) {}

  // `payload`: op 21. Waits; throws Cancelled.
  NodeReply answer(std::string_view payload);

 private:
  JoinFacts look(const io::Result<JoinClusterRequest>& request);
  void read_records(const std::string& id, JoinFacts& facts);
  void look_at_server(const std::string& id, JoinFacts& facts) const;
  class AdmissionTurn;
  NodeReply decide_and_carry_out(const JoinClusterRequest& request);
  NodeReply carry_out(const JoinClusterRequest& request, const JoinDecision& decision);
  bool readmit(const JoinClusterRequest& request);
  raft::Proposed change(raft::ConfigurationChange::Kind kind, const JoinClusterRequest& request);
  NodeReply change_failed(const JoinClusterRequest& request, const JoinDecision& decision, const raft::Proposed& changed);
  void log_older(const JoinClusterRequest& request, const JoinDecision& decision, const JoinFacts& facts);
  void log_admitted(const JoinClusterRequest& request, JoinDecision::Outcome outcome);

  io::Env& env_;
  raft::RaftServer& raft_;
  metastore::Replica& replica_;
  metastore::Fsm& fsm_;
  Proposer& proposer_;
  const uint32_t own_types_;
  // One admission at a time.
  bool is_admitting_ = false;
  io::Condition admitted_;
  raft::LogLimit older_lines_{std::chrono::minutes(1)};
};

}  // namespace engine::cluster
