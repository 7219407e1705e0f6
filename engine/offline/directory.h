// The data directory of a node that does not run, opened to be looked at. Not a byte of it changes, nor any time of a file or
// directory: nothing is made, cleaned up, recovered or compacted.
//
// A directory that a running node holds is refused: what it holds moves meanwhile, and RocksDB's files come and go. While a tool
// looks it holds the node's lock, so a node that is started meanwhile refuses, as beside another node. (A directory without the
// file LOCK, a copy for instance, is looked at without one.)
#pragma once

#include <cstdint>
#include <memory>

#include "io/env.h"
#include "io/result.h"

namespace engine::offline {

struct Directory {
  std::unique_ptr<io::DirectoryLock> lock;  // null: there is no LOCK to hold
  uint32_t format = 0;
};

// Fiber only. Errors, as one line for the operator: `busy` (a node holds it), `invalid` (no data directory of Narad's, or of a newer
// format), denied, io.
io::Result<Directory> open_directory(io::Env& env);

}  // namespace engine::offline
