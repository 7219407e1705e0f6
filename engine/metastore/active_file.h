// The directory of databases: fsm.db/ACTIVE names the live one, a directory beside it ("000001"). The file is replaced in one
// step (written beside, synced, renamed, directory synced), so a crash leaves the old name or the new one. Whatever else is there
// is left over from an install that did not come to its end, or was replaced by one that did: but for a database that fsm.db/ACTIVE.stale
// names, which was set aside there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/disk.h"
#include "io/result.h"

namespace engine::metastore {

inline constexpr std::string_view kFsmDirectory = "fsm.db";
// Where a database goes that a start does not go on with, whole, for the operator to look at and to delete.
inline constexpr std::string_view kStaleDirectory = "fsm.db.stale";

// The directory of the live database, "fsm.db/000001", by reading alone; nullopt where nothing has been made yet. Errors:
// `invalid` when ACTIVE is missing beside databases, or unreadable; those of the disk.
io::Result<std::optional<std::string>> find_active(io::Disk& disk);

// The same; where there is none yet, makes fsm.db and names the first one (its database is then made by whoever opens it).
io::Result<std::string> find_or_name_active(io::Disk& disk);

// True for the first database, also the first after one that was set aside within fsm.db: it is named before it is made.
bool may_be_missing(io::Disk& disk, std::string_view directory);

// The directory for the database that is to replace `active`.
std::string next_database(std::string_view active);

// Makes `directory` the live one. Everything in it is durable already.
struct Switched {
  io::Status status;
  // The switch may or may not survive: only the next start can tell.
  bool is_unknown = false;
};
Switched switch_active(io::Disk& disk, std::string_view directory);

// Durable names for what was made in fsm.db.
io::Status sync_fsm_directory(io::Disk& disk);

// Renames fsm.db, whole, to fsm.db.stale, durably, after what was there under that name has been removed. Where fsm.db is a volume of its
// own, which cannot be renamed, ACTIVE becomes ACTIVE.stale instead: the database stays where it is until the next one is set aside, or
// until the open after somebody has removed that file. Where what was set aside lies now; nullopt when there is none. Nobody has any of it
// open.
io::Result<std::optional<std::string>> set_fsm_directory_aside(io::Disk& disk);

// Directories of databases beside `active` and the one set aside, and a file ACTIVE.new that was never renamed: nothing of theirs is needed.
struct Leftovers {
  std::vector<std::string> databases;
  std::optional<std::string> file;
};
io::Result<Leftovers> find_leftovers(io::Disk& disk, std::string_view active);

}  // namespace engine::metastore
