// A node of the production code inside a process that is forked for it, so that its memory and threads end with it.
#pragma once

#include <functional>
#include <string>

#include "engine/config.h"
#include "engine/node.h"
#include "io/env.h"

namespace bench {

// A single node on ports of its own.
engine::Config node_config(const std::string& data_dir);

// Runs `work` in a process of its own, over the production backend on `data_dir`, and waits for it. Throws std::runtime_error unless
// it returns 0.
void run_apart(const std::string& data_dir, const std::function<int(io::Env& env)>& work);

// Runs a node on `env` until `work` is done with it.
int with_node(io::Env& env, const engine::Config& config, const std::function<void(const engine::NodeView& node)>& work);

}  // namespace bench
