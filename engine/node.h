// One node's life, from boot to stop. narad's main and the simulator call the same function.
#pragma once

#include <functional>
#include <string>

#include "engine/config.h"
#include "io/env.h"
#include "io/fiber.h"

namespace raft {
class Observer;
class RaftServer;
}  // namespace raft

namespace engine {

class Proposer;

namespace metastore {
class Fsm;
class Replica;
}

namespace cluster {
class EntryGate;
class LeaderConfirm;
}

// A running node as its watchers see it. Valid from Hooks::started to Hooks::stopping.
struct NodeView {
  metastore::Fsm& fsm;
  raft::RaftServer& raft;
  metastore::Replica& replica;
  cluster::LeaderConfirm& confirm;
  Proposer& proposer;  // waits for what it proposes
  cluster::EntryGate& gate;  // which entry types it may propose
  // Of everything that serves: what a watcher spawns in it may use the view until it is cancelled.
  io::Scope& scope;
  std::string http_address;     // as bound
  std::string cluster_address;  // as bound
};

// What a world or a test may watch; all empty in production. Called on the node's loop; must not wait.
struct Hooks {
  raft::Observer* raft_observer = nullptr;
  // Both listeners are open; the node may not be ready yet.
  std::function<void(const NodeView&)> started;
  // Before anything of the view goes away.
  std::function<void()> stopping;
};

// Boots the node on `env` (its data directory is env.disk), serves until `stop` is set or the node cannot go on, and returns the
// process's exit code: 0 after an orderly stop, 1 when it did not start or stopped by itself. Why goes to `*reason` (when that
// is not null) as one line for the operator; what stops a running node is also logged at error level, a refusal to start is not.
// `config` is valid (validate()). Log lines: narad/log-lines.md, "Boot, shutdown".
// Called from the node's first fiber. Throws Cancelled.
int run_node(io::Env& env, const Config& config, const Hooks& hooks, io::Event& stop, std::string* reason = nullptr);

}  // namespace engine
