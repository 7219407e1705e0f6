// The data directory as a whole: held by one process at a time, and of a layout that this release knows. What stands in it
// (raft/, fsm.db/) is its owners' business.
#pragma once

#include <memory>
#include <string_view>

#include "io/disk.h"

namespace engine {

// Locks the directory and checks the file FORMAT, which is written, durably, before anything else is. Errors, as texts for the
// operator: `busy` (another process holds it), `invalid` (a layout of another release, or files that are not ours), no_space,
// denied, io. Nothing is changed by a refusal of `busy` or `invalid`.
io::Result<std::unique_ptr<io::DirectoryLock>> claim_data_directory(io::Disk& disk);

}  // namespace engine
