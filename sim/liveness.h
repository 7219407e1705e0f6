// The second phase of a run: after every fault has ended the cluster must recover by itself, within stated bounds, and without
// anybody writing first.
//
// In this order: one leader; every node a voter again (an operator is bringing back who was taken out); every node ready (GET /readyz is 200) and as far as the others; every call under way answered; then
// a write through every node succeeds, every node shows the same topics as the model, every partition has an owner while a member can
// take it, rows that belong to no partition are gone, and each database's rows add up to its digest.
#pragma once

#include "io/time.h"
#include "sim/world.h"

namespace sim {

struct LivenessBounds {
  io::Duration leader{0};    // from the heal to one leader
  io::Duration ready{0};     // then to readiness of every node
  io::Duration write{0};     // then for one write
  io::Duration promotion = std::chrono::seconds(12);  // from one leader until every node is a voter
  // Of the controller: a tick and its pass; six ticks and theirs.
  io::Duration placed = std::chrono::seconds(15);
  io::Duration pruned = std::chrono::seconds(75);
};

// Runs the world until the duties are done or one is late; faults must have ended. Violations are recorded in the world.
void check_liveness(World& world, const LivenessBounds& bounds);

// What holds of the whole history: no refused write took effect later. On request a Wing-Gong search over each name, bounded by
// `steps_max` a name; returns how many names were too hard to decide.
uint64_t check_history(World& world, bool search, uint64_t steps_max);

}  // namespace sim
