// What an operator asks of the cluster over HTTP, through any node: its answer goes to whoever asked, once.
#pragma once

#include <functional>
#include <string>

#include "sim/world.h"

namespace chaos {

struct OperatorAnswer {
  int status = 0;  // 0: none came
  std::string body;
};

// Asks `node` from the clients' machine, within kOperatorCallBound. The world must outlive the call.
inline constexpr io::Duration kOperatorCallBound = std::chrono::seconds(5);
void ask_as_operator(sim::World& world, int node, std::string method, std::string target, std::function<void(const OperatorAnswer&)> done);

// Aborts the moves of partitions that `node` shows and whose destination is not alive: an operator's way out of a move that goes nowhere.
void abort_stuck_moves(sim::World& world, int node);

}  // namespace chaos
