// What an operator does to the cluster while faults strike: hands leadership over, takes servers out of the configuration and back in,
// tells it of a new address.
// (Decommissioning, which goes through the API, is chaos/departures.)
//
// Each step is asked of whoever leads, again and again until the leader's committed configuration shows it: refusals, lost leaders and
// lost answers are the rule here, not the exception. At most one server is on its way out or in at a time.
#pragma once

#include <optional>

#include "io/time.h"
#include "raft/configuration.h"
#include "sim/world.h"

namespace chaos {

class Administrator {
 public:
  // The world must outlive the administrator, the administrator every run of the world.
  explicit Administrator(sim::World& world) : world_(world) {}

  // Asks `node` to hand leadership to `to`, or to whom it likes (-1). Nothing comes of it when it does not lead.
  void transfer(int node, int to);
  // Demotes `node`, removes it, and after `out` adds and promotes it again. Ignored while another one is on its way.
  void take_out(int node, io::Duration out);
  // `node` is about to move to another address of the world's: the configuration is to say so. False while another one is on its way, where
  // the others are too few to decide that without it, and unless all are up and know of everything before: two servers of which neither
  // knows where the other is would never hear of it.
  bool move(int node);
  bool is_busy() const { return moved_ >= 0 || reserved_ >= 0; }
  // Somebody else sees to `node`'s place in the configuration, and nobody's is changed meanwhile, until release(). Not while busy.
  void reserve(int node) { reserved_ = node; }
  void release() { reserved_ = -1; }
  // Every node is to be a voter from now on: whoever is out comes back at once.
  void restore();

 private:
  void keep_going();
  void tick();
  // The next step towards what is wanted of `node`; nothing when the configuration shows it.
  std::optional<raft::ConfigurationChange> next_step(int node, const raft::Configuration& configuration) const;
  bool leads_newest_term(int leader) const;
  bool is_back(const raft::Configuration& configuration) const;
  // Every node is up, and their configurations are one and name their addresses.
  bool do_all_agree() const;
  void ask(int leader, const raft::ConfigurationChange& change);

  sim::World& world_;
  int moved_ = -1;             // the node on its way out or in; -1: none
  int reserved_ = -1;          // left to somebody else; -1: none
  io::Instant comes_back_{};   // from then on it is to be a voter
  bool is_moving_ = false;     // it is there that `moved_` is reached which is to change
  bool is_restoring_ = false;  // every node is to be a voter
  bool is_ticking_ = false;
};

}  // namespace chaos
