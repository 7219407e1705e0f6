#include "sim/claims.h"

#include <utility>

namespace sim {

bool Claims::add(std::vector<raft::Index> candidates) {
  candidates_.push_back(std::move(candidates));
  std::set<raft::Index> tried;
  if (assign(candidates_.size() - 1, tried)) {
    return true;
  }
  candidates_.pop_back();
  return false;
}

bool Claims::assign(std::size_t answer, std::set<raft::Index>& tried) {
  for (const raft::Index index : candidates_[answer]) {
    if (!tried.insert(index).second) {
      continue;
    }
    const auto owner = owners_.find(index);
    if (owner == owners_.end() || assign(owner->second, tried)) {
      owners_[index] = answer;
      return true;
    }
  }
  return false;
}

}  // namespace sim
