// Which entry each acknowledged delete stands for. A delete carries no mark of its own, so several entries may explain one answer,
// and which one did shows only together with the answers of others: two calls that delete a topic which is made again in between
// may be answered in either order. What can be said for certain is whether some assignment gives each answer an entry of its own.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "raft/types.h"

namespace sim {

class Claims {
 public:
  // One more answer, which any one of `candidates` explains. False, and nothing is changed, when no assignment gives this answer and
  // every earlier one an entry of its own.
  bool add(std::vector<raft::Index> candidates);

 private:
  // Finds a candidate for `answer`, moving earlier answers to other candidates of theirs where that helps (an augmenting path).
  bool assign(std::size_t answer, std::set<raft::Index>& tried);

  std::vector<std::vector<raft::Index>> candidates_;  // by answer
  std::map<raft::Index, std::size_t> owners_;         // the answer that holds an entry
};

}  // namespace sim
