#include "engine/cluster/rebalance_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "io/probe.h"

namespace engine::cluster {

namespace {

using metastore::Assignment;
using metastore::Member;
using metastore::MemberStatus;
using Place = std::pair<std::string, int32_t>;  // topic, partition

const std::string& holder_of(const Assignment& row) { return row.target_id.empty() ? row.owner_id : row.target_id; }

class Planner {
 public:
  Planner(const std::vector<PlacedPartition>& partitions, const std::vector<Member>& members) {
    for (const Member& member : members) {
      if (member.status == MemberStatus::alive) {
        (member.draining ? draining_ : receivers_).insert(member.id);
      }
    }
    for (const PlacedPartition& placed : partitions) {
      partitions_.emplace(Place(placed.row.topic, placed.row.partition), &placed);
      in_flight_ += placed.row.target_id.empty() ? 0 : 1;
    }
    for (const auto& [place, placed] : partitions_) {
      holders_[place] = holder_of(placed->row);
      if (!placed->parent.empty()) {
        children_[{placed->parent, place.second}].push_back(place);
      }
    }
  }

  std::vector<PlannedMove> plan() {
    if (receivers_.empty() || in_flight_ >= kMovesInFlightMax) {
      return {};
    }
    count();
    std::vector<PlannedMove> moves;
    while (in_flight_ + moves.size() < kMovesInFlightMax) {
      std::optional<PlannedMove> move = next();
      if (!move) {
        break;
      }
      moves.push_back(std::move(*move));
    }
    return moves;
  }

 private:
  bool is_alive(const std::string& id) const { return receivers_.contains(id) || draining_.contains(id); }

  // What each receiver holds and is to hold.
  void count() {
    size_t total = 0;
    for (const std::string& id : receivers_) {
      held_[id] = 0;
    }
    for (const auto& [place, holder] : holders_) {
      if (is_alive(holder)) {
        ++total;
        if (const auto held = held_.find(holder); held != held_.end()) {
          ++held->second;
        }
      }
    }
    // The larger shares go to those that hold most: whoever is over its share already gives away the least.
    std::vector<std::pair<size_t, std::string>> by_load;
    for (const auto& [id, held] : held_) {
      by_load.emplace_back(held, id);
    }
    std::stable_sort(by_load.begin(), by_load.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    const size_t base = total / receivers_.size();
    size_t larger = total % receivers_.size();
    for (const auto& [held, id] : by_load) {
      quota_[id] = base + (larger > 0 ? 1 : 0);
      larger -= larger > 0 ? 1 : 0;
    }
  }

  // How many of the partition's relations (its parent's partition, its children's) lie on `member`.
  size_t relations_on(const Place& place, const std::string& member) const {
    size_t count = 0;
    const PlacedPartition& placed = *partitions_.at(place);
    if (!placed.parent.empty()) {
      const auto parent = holders_.find({placed.parent, place.second});
      count += parent != holders_.end() && parent->second == member ? 1 : 0;
    }
    if (const auto children = children_.find(place); children != children_.end()) {
      for (const Place& child : children->second) {
        count += holders_.at(child) == member ? 1 : 0;
      }
    }
    return count;
  }

  // The best move there is: off a draining member before all else; then whichever parts the most relations and joins the fewest, then the
  // one that comes first by name, to the receiver that lacks most.
  std::optional<PlannedMove> next() {
    std::optional<std::tuple<bool, int64_t, int64_t, Place, std::string>> best;
    for (const auto& [place, placed] : partitions_) {
      const std::string& from = holders_.at(place);
      const bool is_leaving = draining_.contains(from);
      if (!placed->row.target_id.empty() || moved_.contains(place) || !(is_leaving || is_over(from))) {
        continue;
      }
      const auto parted = static_cast<int64_t>(relations_on(place, from));
      for (const std::string& to : receivers_) {
        if (held_.at(to) >= quota_.at(to)) {
          continue;
        }
        const auto joined = static_cast<int64_t>(relations_on(place, to));
        const auto lacking = static_cast<int64_t>(quota_.at(to) - held_.at(to));
        std::tuple candidate(!is_leaving, joined - parted, -lacking, place, to);
        if (!best || candidate < *best) {
          best = std::move(candidate);
        }
      }
    }
    if (!best) {
      return std::nullopt;
    }
    const auto& [stays, affinity, lacking, place, to] = *best;
    PlannedMove move{place.first, place.second, holders_.at(place), to};
    if (stays) {
      --held_.at(move.from);
    }
    ++held_.at(to);
    holders_.at(place) = to;
    moved_.insert(place);
    return move;
  }

  bool is_over(const std::string& id) const {
    const auto held = held_.find(id);
    return held != held_.end() && held->second > quota_.at(id);
  }

  std::set<std::string> receivers_;
  std::set<std::string> draining_;
  std::map<Place, const PlacedPartition*> partitions_;
  std::map<Place, std::string> holders_;  // the destination of those that move
  std::map<Place, std::vector<Place>> children_;
  std::map<std::string, size_t> held_;    // by receiver
  std::map<std::string, size_t> quota_;
  std::set<Place> moved_;                 // by this plan
  size_t in_flight_ = 0;
};

}  // namespace

std::vector<PlannedMove> plan_rebalance(const std::vector<PlacedPartition>& partitions, const std::vector<Member>& members) {
  return Planner(partitions, members).plan();
}

size_t count_colocated(const std::vector<PlacedPartition>& partitions) {
  std::map<Place, std::string> holders;
  for (const PlacedPartition& placed : partitions) {
    holders[{placed.row.topic, placed.row.partition}] = holder_of(placed.row);
  }
  size_t colocated = 0;
  for (const PlacedPartition& placed : partitions) {
    const auto parent = holders.find({placed.parent, placed.row.partition});
    colocated += !placed.parent.empty() && parent != holders.end() && parent->second == holder_of(placed.row) ? 1 : 0;
  }
  return colocated;
}

}  // namespace engine::cluster
