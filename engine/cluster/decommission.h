// Takes members that drain out of the cluster, on the leader: the effects around decommission_rules.h.
//
// Steps of one member, each found again from the state alone, so that a new leader goes on where the last one ended: drained by the
// planner of moves; owns nothing and receives nothing; says itself that it holds nothing undelivered; hands leadership over where it leads
// (the new leader goes on); leaves raft's configuration; its record is replaced by a tombstone (type 19). Between the last look at what
// it owns and the tombstone the assignment lock is held, so nothing is placed on it behind the look's back, and nobody takes the
// decommission back: requests wait for the same lock.
//
// What keeps a member is told once when it changes (error where an operator is needed), and kept for the API and the metrics.
// Fiber only. Source: narad/lifecycle.md section 12.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cluster/assigner.h"
#include "engine/cluster/decommission_rules.h"
#include "engine/cluster/picture.h"
#include "engine/cluster/servers.h"
#include "engine/topics/reply.h"

namespace engine::cluster {

inline constexpr io::Duration kHandOverTimeout = std::chrono::seconds(2);

// What the guards look at. `id` need not be a member.
DecommissionFacts decommission_facts(std::string_view id, const Picture& picture, const std::vector<ServerFact>& servers);

class Decommission {
 public:
  struct Parts {
    io::Env& env;
    metastore::Reader& reader;
    Proposer& proposer;
    Assigner& assigner;  // whose lock it is
    Servers& servers;
    // What a member holds undelivered, by its own word.
    std::function<NodeBacklog(const metastore::Member& member, io::Instant deadline)> ask_backlog;
  };
  explicit Decommission(Parts parts) : parts_(std::move(parts)) {}

  // Marks the member as draining (`cancel`: not draining any more). 204, also when it is so already; 404; 409 with the reasons; 503.
  Reply request(std::string_view id, bool cancel, io::Instant deadline);

  // The controller's pass, in term `term`; a barrier was passed just before. Brings each draining member one step on.
  void pass(const Picture& picture, raft::Term term, io::Instant deadline);
  void stop_leading() { blocked_.clear(); }

  // What keeps each draining member, as the last pass saw it.
  const std::map<std::string, Blocked>& blocked() const { return blocked_; }

 private:
  std::optional<Blocked> step(const metastore::Member& member, const Picture& picture, raft::Term term, io::Instant deadline);
  std::optional<Blocked> hand_over(io::Instant deadline);
  std::optional<Blocked> remove(const metastore::Member& member, raft::Term term, io::Instant deadline);
  void note(const std::string& id, const std::optional<Blocked>& blocked);

  Parts parts_;
  std::map<std::string, Blocked> blocked_;
};

// {"error":"decommission of <id> refused: ...","reasons":[{"code":...,"message":...}]}
Reply refusal_reply(std::string_view id, const std::vector<Blocked>& reasons);

}  // namespace engine::cluster
