// The directory of databases: fsm.db/ACTIVE names the live one, a directory beside it ("000001"). The file is replaced in one
// step (written beside, synced, renamed, directory synced), so a crash leaves the old name or the new one.
#pragma once

#include <string>

#include "io/disk.h"
#include "io/result.h"

namespace engine::metastore {

inline constexpr std::string_view kFsmDirectory = "fsm.db";

// The directory of the live database, "fsm.db/000001"; where there is none yet, makes fsm.db and names the first one (its
// database is then made by whoever opens it). Errors: `invalid` when ACTIVE is missing beside databases, or unreadable; those of
// the disk.
io::Result<std::string> find_or_name_active(io::Disk& disk);

// Durable names for what was made in fsm.db.
io::Status sync_fsm_directory(io::Disk& disk);

}  // namespace engine::metastore
