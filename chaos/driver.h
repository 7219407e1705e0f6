// Carries a plan's decisions out in a world: at their times, or at the moments they wait for, on the nodes they name.
//
// Each decision draws from a stream of its own (seed and id), so that a plan with one decision less does otherwise the same.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "chaos/administrator.h"
#include "chaos/departures.h"
#include "chaos/disk_work.h"
#include "chaos/plan.h"
#include "chaos/stores.h"
#include "io/random.h"
#include "sim/world.h"

namespace chaos {

class Driver {
 public:
  // Both must outlive the driver, the driver every run of the world.
  Driver(sim::World& world, const Plan& plan);

  // Plans everything ahead; before the world runs.
  void schedule();
  // Ends every fault: links whole, disks with room and without errors, clocks and speeds as usual, every node on its way to be a voter.
  void heal();
  // Decisions carried out so far.
  uint64_t struck() const { return struck_; }

 private:
  struct Armed {
    const Decision* decision;
    bool done = false;
  };

  void strike(const Decision& decision, int moment_node);
  void on_moment(sim::Moment moment, int node);
  std::vector<int> resolve(const std::vector<int>& names, io::RandomStream& draws, int moment_node) const;
  io::sim::LatencyTable latency(uint64_t extra_ppm, io::Duration extra_delay, bool with_tail) const;
  void after(io::Duration delay, std::function<void()> fn) { world_.io().after(delay, std::move(fn)); }

  void script_at_work(int node, const Decision& decision);
  void full_from_now(int node, io::Duration span);
  void hang_from_now(int node, io::Duration span);
  void move(int node, io::Duration down);
  void strike_process(const Decision& decision, const std::vector<int>& nodes);
  void strike_network(const Decision& decision, const std::vector<int>& nodes, io::RandomStream& draws, int moment_node);
  void strike_disk(const Decision& decision, const std::vector<int>& nodes, io::RandomStream& draws);
  void lose_for_good(const Decision& decision, int node, int other, int tries);
  void depart(const Decision& decision, int node, int tries);
  void forget(int node, const std::vector<int>& others);
  void strike_clock(const Decision& decision, const std::vector<int>& nodes);
  void roll(const Decision& decision);
  void change_release(int node, const sim::Release& release, io::Duration down);
  void kill_again_and_again(int node, const Decision& decision);
  void shrink_room(int node, const Decision& decision);
  bool is_damaged(int node) const;
  void damage_log(int node, const Decision& decision, io::RandomStream& draws);
  void damage_snapshot(int node, const Decision& decision, io::RandomStream& draws);
  void cut_between(const std::vector<int>& from, const std::vector<int>& to, bool both, io::Duration span);
  void partition(const Decision& decision, io::RandomStream& draws, int moment_node);

  sim::World& world_;
  const Plan& plan_;
  Administrator administrator_{world_};
  Stores stores_{world_, [this](int node) { return is_damaged(node); }};
  Departures departures_{world_, administrator_, stores_};
  std::vector<Armed> armed_;
  std::deque<DiskWork> work_;  // by node
  std::vector<io::Instant> snapshot_damaged_until_;  // by node: one bit at a time, so that each is right again
  std::vector<io::Instant> log_damaged_until_;       // likewise
  std::vector<uint64_t> capacities_;
  uint64_t struck_ = 0;
  bool is_healed_ = false;
};

}  // namespace chaos
