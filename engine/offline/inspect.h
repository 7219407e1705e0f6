// `narad metastore inspect`: what fsm.db, the raft log and the snapshots of a stopped node hold, and what a start would make of them:
// by the very code that decides it (raft/restart.h), for a node that joins a running cluster and for any other.
//
// Lines of "name: value"; docs/metastore-tools.md explains each. Damage is no error here: it is shown, together with what could be
// read, and the start that it forbids is told as refused.
#pragma once

#include <functional>
#include <string_view>

#include "io/env.h"
#include "io/result.h"

namespace engine::offline {

// Calls `line` with each line, without its line end. Errors: those of open_directory(). Fiber only.
io::Status inspect(io::Env& env, const std::function<void(std::string_view)>& line);

}  // namespace engine::offline
