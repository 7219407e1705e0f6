// An operator decommissions a node, and once the cluster has let it go brings it back on an empty volume, under the name it had.
//
// Asked over HTTP of any node, again and again until the log shows it: refusals, lost leaders and lost answers are the rule here. One node
// at a time, and nobody else's hand is on the configuration meanwhile (Administrator::reserve). A node that is not out in time is taken back
// (the decommission is cancelled). One that is out may first be started with what it has, as if nothing had been: the cluster's tombstone
// keeps it away.
#pragma once

#include "chaos/administrator.h"
#include "chaos/stores.h"
#include "io/time.h"
#include "sim/world.h"

namespace chaos {

class Departures {
 public:
  // All must outlive this, and this every run of the world.
  Departures(sim::World& world, Administrator& administrator, Stores& stores)
      : world_(world), administrator_(administrator), stores_(stores) {}

  // `node` is to leave, and is taken back after `patience`. Once out it is down for `down`; with `tries_old` it is started with its old volume
  // first. False, and nothing done, while another change is under way, and unless every other node is up and knows by which store
  // the node counts: none takes the empty volume for what it was.
  bool begin(int node, io::Duration patience, io::Duration down, bool tries_old);
  // Nobody leaves any more: who is on the way out is taken back, who is out comes back at once.
  void restore();

 private:
  enum class Step { none, asking, leaving, staying, out, trying_old, returning };

  void tick();
  void keep_going();
  void step();
  void ask(const char* method);
  void come_back();
  void end();
  bool is_voter(int node) const;

  sim::World& world_;
  Administrator& administrator_;
  Stores& stores_;
  int node_ = -1;  // on its way; -1: nobody
  Step step_ = Step::none;
  io::Instant until_{};  // of the step
  io::Duration down_{0};
  bool tries_old_ = false;
  bool is_asking_ = false;  // a request is under way
  bool is_restoring_ = false;
  bool is_ticking_ = false;
  int next_asked_ = 0;
};

}  // namespace chaos
