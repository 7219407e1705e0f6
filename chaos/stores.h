// What may happen to the two stores of a node, raft's state and the metastore, while the node is down: one of them is put back to an
// older moment (a backup), or is gone, or another program has written into the metastore.
//
// Within the envelope: raft's state is only put back to a moment whose log the metastore has outrun, and only taken away beside
// a metastore that holds something, so that the node can tell, and must refuse to start. A node that gives its log's lost begin up, or
// finds another node's metastore, refuses likewise. A node that cannot start with what it finds gets
// back what it had, when the fault ends.
#pragma once

#include <deque>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "io/random.h"
#include "io/time.h"
#include "sim/world.h"

namespace chaos {

// images: the metastore and raft's snapshots, so that nothing is left of what the log no longer holds. log: raft's log alone. term: raft's
// record of term and vote alone.
enum class Store { raft, metastore, images, log, term };

class Stores {
 public:
  // `is_damaged`: something of the node's is damaged at the moment and will be put right where it lies; it is left in its place until then.
  Stores(sim::World& world, std::function<bool(int node)> is_damaged) : world_(world), is_damaged_(std::move(is_damaged)) {}

  // A copy is taken now; `age` later the node is killed, and finds that copy in the store's place when it starts after `down`. `span`
  // after that a node that has not started gets back what it had.
  void put_back(int node, Store store, io::Duration age, io::Duration down, io::Duration span);
  // The node is killed and finds the store gone.
  void take_away(int node, Store store, io::Duration down, io::Duration span);
  // The node is killed and finds raft's snapshots gone and its metastore written by another program: where the log no longer reaches
  // back to the first entry, what it then starts with is worth nothing, and give_back() must follow. One that was killed before the
  // program wrote goes on with what it has, and gets its snapshots back if it has taken none since.
  void blind(int node, io::Duration down, io::Duration span);
  // What is away of the node's comes back at once, whatever it has started with.
  void give_back(int node);
  // The node is killed and finds the metastore of `other`, as it is at that moment, in its own one's place.
  void exchange(int node, int other, io::Duration down, io::Duration span);
  // The node is killed, has lost `store` for good (metastore: finds that of `other` in its place), and starts as one that joins, which
  // the cluster brings up anew, once it has been taken out: the caller's part. Only one node in a run, and at a moment when a quorum of the
  // others holds whatever it holds: one copy the cluster can do without. No other fault of this kind strikes it from then on. False when nothing was done.
  // `store`: raft, metastore or images.
  bool lose(int node, Store store, int other, io::Duration down);
  // The node is killed and has lost its whole volume: it starts on an empty one, under the name it had. Likewise once, and only while every
  // other node is up and knows by which store the node counts: none of them takes the empty one for it. False when nothing was done.
  bool wipe(int node, io::Duration down);
  // A node that leaves the cluster for good and comes back as a new one: killed, it starts on an empty volume. Not while something that was
  // taken from it is still to be given back. False when nothing was done.
  bool renew(int node, io::Duration down);
  // Every other node is up and knows by which store `node` counts, so that renew() is safe once the node is out of the configuration.
  bool may_renew(int node) const;
  // The node is killed, another program writes a row into its metastore, and it starts after `down`.
  void write_foreign_row(int node, io::Duration down);
  // No more: what is still away comes back at once.
  void restore();

 private:
  struct Away {
    int node = 0;
    std::vector<std::pair<std::string, io::sim::FileTree::Image>> originals;  // by path
    uint64_t starts = 0;  // of the node, when it was killed
    bool is_blind = false;
    bool is_over = false;
  };

  bool is_known_to_all(int node) const;
  bool do_others_hold(int node) const;
  bool do_others_hold(int node, const raft::Configuration& configuration) const;
  bool may_lose(int node) const;
  void lose_for_good(int node, io::Duration down);
  raft::Index left_by(int node, Store store) const;
  bool may_go(int node, Store store, raft::Index reaches, bool is_for_good = false) const;
  void replace(int node, Store store, const io::sim::FileTree::Image& image, io::Duration down, io::Duration span);
  Away& take(int node, std::vector<std::string> paths, io::Duration down, io::Duration span);
  void end(Away& away);
  void give_back(Away& away);
  void give_snapshots_back(const Away& away);

  sim::World& world_;
  std::function<bool(int)> is_damaged_;
  std::deque<Away> away_;
  std::set<int> touched_;  // nodes whose metastore may not be trusted any more: it would not tell an older raft state from its own
  std::set<int> renewed_;  // nodes that have left and come back
  int joined_ = -1;        // the node that has lost a store for good; -1: none
  bool is_restoring_ = false;
};

}  // namespace chaos
