// The second load: metadata commands of every type, proposed through a node's own propose call. The routes that make these commands
// come later than the state machine that applies them; what is checked here is the state machine and the road to it.
//
// A type is proposed when the node's gate lets it pass, or, in a world without one, when the node's own release knows it.
//
// A few are no commands at all: those every node counts as applied, and says so.
//
// Nodes propose some of these by themselves too: of those the log may hold more.
//
// Of each answer: the log holds the command at the index that the answer names, with that answer, and this node has applied it. Of
// the whole history: each answered proposal is an entry of its own, and what was certainly not appended is not in the log.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "engine/topics/proposer.h"
#include "io/random.h"
#include "raft/types.h"
#include "sim/command_draws.h"

namespace engine {
struct NodeView;
}

namespace sim {

class World;

class Proposals {
 public:
  // `per_minute` > 0, over all nodes.
  Proposals(World& world, uint64_t per_minute);

  // Proposes until the world's load is over.
  void start();
  // Once nothing is under way any more.
  void check_history() const;
  uint64_t answered() const { return acknowledged_.size(); }

 private:
  struct Fate {
    uint64_t answered = 0;
    uint64_t unknown = 0;
    bool is_of_nodes_too = false;  // the nodes propose such commands by themselves
  };

  void tick();
  void propose(int node);
  uint32_t newest_type(int node, const engine::NodeView& view) const;
  std::string draw(uint32_t newest);
  std::string undecodable(const std::string& command);
  void judge(int node, uint64_t content, const engine::Proposed& proposed);

  World& world_;
  io::Duration pause_;
  io::RandomStream timing_;
  CommandDraws draws_;
  std::map<uint64_t, Fate> fates_;     // by the hash of the command's bytes
  std::set<raft::Index> acknowledged_;
  uint64_t hypothetical_ = 0;
};

}  // namespace sim
