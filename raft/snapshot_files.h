// Names of the files of raft/snapshots that are not complete. Known to the snapshot store's parts only.
#pragma once

#include <string_view>

namespace raft::snapshot_files {

inline constexpr const char* kWritingPrefix = "writing-";
inline constexpr std::string_view kReceivingPath = "raft/snapshots/receiving";

}  // namespace raft::snapshot_files
