// The data directory as a whole: held by one process at a time, and of a layout that this release knows. What stands in it
// (raft/, fsm.db/) is its owners' business.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "io/disk.h"

namespace engine {

// Which files a data directory holds and how they are read: the number in its file FORMAT. A release that changes that takes the
// next number, and refuses what is above its own.
inline constexpr uint32_t kDataFormat = 1;
inline constexpr std::string_view kLockFile = "LOCK";

// The number in FORMAT; nullopt where there is no such file. Changes nothing. Errors: `invalid`, as a text for the operator, when
// the number is above kDataFormat or the file says something else; those of the disk.
io::Result<std::optional<uint32_t>> read_format(io::Disk& disk);

// Locks the directory and checks the file FORMAT, which is written, durably, before anything else is. Errors, as texts for the
// operator: `busy` (another process holds it), `invalid` (a layout of another release, or files that are not ours), no_space,
// denied, io. Nothing is changed by a refusal of `busy` or `invalid`.
io::Result<std::unique_ptr<io::DirectoryLock>> claim_data_directory(io::Disk& disk);

}  // namespace engine
