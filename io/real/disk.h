// io::Disk on a directory of this machine. Metadata operations run on file threads; reads, writes and syncs where the
// loop runs them. See io/disk.h for what is promised.
#pragma once

#include <memory>
#include <string>

#include "io/disk.h"
#include "io/real/loop.h"

namespace io::real {

// The directory `root` is made with its parents when absent; it must be writable. Blocks, so before the loop runs.
// `loop` outlives the disk, the disk its files. Errors name `root`: `invalid` (not a directory), `denied`, `no_space`,
// `io`.
Result<std::unique_ptr<Disk>> open_data_directory(Loop& loop, const std::string& root);

}  // namespace io::real
