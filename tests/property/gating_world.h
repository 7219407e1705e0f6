// A small cluster in which only what upgrade gating depends on happens: members join, report, stop, come back on another release, are
// removed and forgotten, leaders change, and entries of every type are proposed, kept or lost with their leader, and applied later or
// earlier by each node.
//
// The gate's rule (cluster/entry_gate.h), the join rules (cluster/join_rules.h), the dead mark (cluster/dead_marking.h), raft's
// configuration changes and the state machine's handlers over rows in memory are the real ones. Raft itself is not: there is one log, what
// is appended while a majority of voters runs is committed, and a leader that stops right after an append leaves an entry that the next
// one has or has not. A leader reads its replica once it has applied what its log held when it was elected, as the node's gate and join
// service do.
//
// What must hold is watched with every step, against a book of its own (gating_oracle.h); the first thing that does not hold is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "engine/cluster/entry_gate.h"
#include "engine/cluster/join_rules.h"
#include "engine/metastore/apply.h"
#include "engine/metastore/commands.h"
#include "raft/configuration.h"
#include "sim/releases.h"
#include "tests/property/gating_oracle.h"

namespace tests::gating {

// One step: what, to which node, and drawn bits that say how. Steps that cannot be taken do nothing.
struct Step {
  enum class What : uint8_t { join, heartbeat, stop, restart, remove, forget, lead, propose, apply, mark_dead, wipe };
  What what = What::apply;
  uint32_t node = 0;
  uint32_t bits = 0;
};

void showValue(const Step& step, std::ostream& out);

struct Sequence {
  uint32_t voters = 3;   // 1 or 3
  uint32_t release = 0;  // of the first ones: index into sim::releases()
  // Operators keep to the upgrade rules: no node is taken back past the boundary.
  bool is_supported = true;
  std::vector<Step> steps;
};

void showValue(const Sequence& sequence, std::ostream& out);

inline constexpr size_t kNodes = 6;

class World {
 public:
  World(uint32_t voters, uint32_t release, bool keeps_to_rules);

  // Takes a step; false: there was nothing to do.
  bool take(const Step& step);
  // Everybody is brought to the newest release and reports once: then its type is used, and all replicas are equal.
  void finish();

  // The first promise that was broken; empty: none.
  const std::string& violation() const { return violation_; }
  // The first of those that does harm: a type was proposed that somebody had not reported, or met by a release that does not know it.
  const std::string& harm() const { return harm_; }

  // What happened, so that a test can tell that it was worth something.
  struct Seen {
    uint64_t steps = 0;  // that did something
    uint64_t uses = 0;           // entries of types that are not of every release
    uint64_t held_by_dead = 0;
    uint64_t held_by_unrecorded = 0;
    uint64_t held_by_leader = 0;
    uint64_t held_by_member = 0;
    uint64_t joins = 0;
    uint64_t older_joiners = 0;  // refused
    uint64_t rollbacks = 0;
    uint64_t unsupported = 0;    // 1: past the boundary
    uint64_t stops = 0;          // at an entry, an image or a database of a newer release
    uint64_t skips = 0;          // entries that 3.0 passed over
    uint64_t lost = 0;           // entries that their leader's end took away
    uint64_t leaders = 0;
  };
  const Seen& seen() const { return seen_; }

 private:
  struct Entry {
    raft::Entry raft;
    uint32_t type = 0;                                  // of a command
    std::optional<raft::Configuration> configuration;   // of a change
    Said said;
  };
  struct Image {
    engine::metastore::MemoryRows rows;
    engine::metastore::FsmState state;
    size_t applied = 0;
  };
  struct Node {
    std::string id;
    const sim::Release* release = nullptr;
    bool is_running = false;
    bool has_volume = false;    // with a replica in it
    bool was_admitted = false;  // since its volume was new
    bool is_index_trusted = true;
    // Came back on an older release and has not reported it yet.
    bool is_rolled_back = false;
    Image now;
    std::optional<Image> snapshot;
  };

  // ---- Steps
  bool join(Node& node, uint32_t bits);
  bool heartbeat(Node& node, uint32_t bits);
  bool stop(Node& node);
  bool restart(Node& node, uint32_t bits);
  bool remove(Node& node, uint32_t bits);
  bool forget(Node& node);
  bool lead(Node& node, uint32_t bits);
  bool propose(uint32_t bits);
  bool apply_some(Node& node, uint32_t bits);
  bool mark_dead(Node& node);
  bool wipe(Node& node);

  // ---- The cluster
  const raft::Configuration& configuration() const;
  bool is_server(const Node& node) const { return configuration().find(node.id) != nullptr; }
  bool may_vote(const Node& node) const { return node.is_running && node.has_volume && configuration().is_voter(node.id); }
  bool has_quorum() const;
  bool would_have_quorum(const raft::Configuration& next) const;
  Node* leader() { return leader_ ? &nodes_[*leader_] : nullptr; }
  Node* node_of(const std::string& id);
  // A leader that has caught up with its log; elects one where there is none. Null: no majority runs.
  Node* ready_leader(uint32_t bits);
  void settle_tail(bool is_kept);
  void end_leader();
  void append(Entry entry, bool is_lost);
  void append_command(uint32_t type, std::string bytes, Said said = {}, bool is_lost = false);
  bool change(const raft::ConfigurationChange& change, bool is_lost = false);
  void commit_all();
  engine::cluster::JoinFacts facts_for(const Node& joiner, Node& leader) const;
  void admit(Node& node, bool by_image);

  // ---- A node
  void start(Node& node, const sim::Release& release);
  void apply(Node& node, size_t up_to);
  void meet_unknown(Node& node, const std::string& what);
  std::optional<engine::metastore::Member> record(Node& at, const std::string& id) const;

  // ---- What must hold
  bool judge(Node& leader, uint32_t type);
  void look();
  void leave_the_rules() {
    is_unsupported_ = true;
    seen_.unsupported = 1;
  }
  void violate(const std::string& what);
  void harm(const std::string& what);

  std::vector<Node> nodes_;
  raft::Configuration bootstrap_;
  std::vector<Entry> log_;
  size_t committed_ = 0;
  std::optional<size_t> leader_;
  raft::Term term_ = 1;
  uint64_t led_since_ = 0;  // steps
  int64_t clock_s_ = 1'000'000;
  uint64_t now_ = 0;  // steps
  uint64_t number_ = 0;
  const bool keeps_to_rules_;
  bool is_unsupported_ = false;
  Oracle oracle_;
  Seen seen_;
  std::string violation_;
  std::string harm_;
};

}  // namespace tests::gating
