#include "engine/metastore/active_file.h"

#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/probe.h"

namespace engine::metastore {

namespace {

const std::string kDirectory(kFsmDirectory);
const std::string kActive = kDirectory + "/ACTIVE";
const std::string kActiveNew = kDirectory + "/ACTIVE.new";
const std::string kActiveStale = kDirectory + "/ACTIVE.stale";
constexpr std::string_view kFirst = "000001";

bool is_database_name(std::string_view name) {
  return name.size() == kFirst.size() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The directory of the database that the file at `path` names.
io::Result<std::string> read_name(io::Disk& disk, const std::string& path) {
  io::Result<std::unique_ptr<io::File>> file = disk.open(path, io::OpenMode::read);
  if (!file.ok()) {
    return file.error();
  }
  io::Result<std::string> text = (*file)->read(0, 64);
  if (!text.ok()) {
    return text.error();
  }
  std::string name = text->substr(0, text->find('\n'));
  if (text->size() != kFirst.size() + 1 || !is_database_name(name)) {
    return io::fail(io::ErrorKind::invalid, path + " names no database");
  }
  return kDirectory + "/" + name;
}

io::Result<std::string> read_active(io::Disk& disk) { return read_name(disk, kActive); }

// That of a database that was set aside within fsm.db; nullopt: there is none.
io::Result<std::optional<std::string>> read_stale(io::Disk& disk) {
  io::Result<std::string> stale = read_name(disk, kActiveStale);
  if (stale.ok()) {
    return std::optional<std::string>(std::move(*stale));
  }
  return stale.is(io::ErrorKind::not_found) ? io::Result<std::optional<std::string>>(std::optional<std::string>())
                                            : io::Result<std::optional<std::string>>(stale.error());
}

io::Status write_new(io::Disk& disk, std::string_view name) {
  io::Result<std::unique_ptr<io::File>> file = disk.open(kActiveNew, io::OpenMode::create);
  if (!file.ok()) {
    return file.error();
  }
  if (io::Status cut = (*file)->truncate(0); !cut.ok()) {
    return cut;
  }
  return (*file)->write_and_sync(0, std::string(name) + "\n");
}

// Databases without an ACTIVE file are not ours to judge: somebody has taken the file away.
io::Status check_no_databases(io::Disk& disk) {
  io::Result<std::vector<std::string>> names = disk.list(kDirectory);
  if (!names.ok()) {
    return names.is(io::ErrorKind::not_found) ? io::Status() : io::Status(names.error());
  }
  for (const std::string& name : *names) {
    if (is_database_name(name)) {
      return io::fail(io::ErrorKind::invalid, kActive + " is missing, but " + kDirectory + " holds a database (" + name +
                                                  "); refusing to start");
    }
  }
  return {};
}

std::string_view name_of_database(std::string_view directory) {
  NARAD_CHECK(directory.size() == kDirectory.size() + 1 + kFirst.size(), "a database's directory lies in fsm.db");
  return directory.substr(kDirectory.size() + 1);
}

}  // namespace

io::Result<std::optional<std::string>> find_active(io::Disk& disk) {
  io::Result<std::string> active = read_active(disk);
  if (active.ok()) {
    return std::optional<std::string>(std::move(*active));
  }
  if (!active.is(io::ErrorKind::not_found)) {
    return active.error();
  }
  io::Result<std::optional<std::string>> stale = read_stale(disk);
  if (!stale.ok()) {
    return stale.error();
  }
  if (io::Status checked = *stale ? io::Status() : check_no_databases(disk); !checked.ok()) {
    return checked.error();
  }
  return std::optional<std::string>();
}

io::Result<std::string> find_or_name_active(io::Disk& disk) {
  io::Result<std::optional<std::string>> active = find_active(disk);
  if (!active.ok()) {
    return active.error();
  }
  if (*active) {
    return **active;
  }
  io::Status status = disk.make_directory(kDirectory);
  if (status.ok()) {
    status = disk.sync_directory("");
  }
  io::Result<std::optional<std::string>> stale = read_stale(disk);
  if (status.ok() && !stale.ok()) {
    status = stale.error();
  }
  std::string first;
  if (status.ok()) {
    first = *stale ? next_database(**stale) : kDirectory + "/" + std::string(kFirst);
    status = switch_active(disk, first).status;
  }
  return status.ok() ? io::Result<std::string>(std::move(first)) : io::Result<std::string>(status.error());
}

bool may_be_missing(io::Disk& disk, std::string_view directory) {
  if (name_of_database(directory) == kFirst) {
    return true;
  }
  const io::Result<std::optional<std::string>> stale = read_stale(disk);
  return stale.ok() && *stale && next_database(**stale) == directory;
}

std::string next_database(std::string_view active) {
  std::string name(name_of_database(active));
  size_t at = name.size();
  while (at > 0 && name[at - 1] == '9') {
    name[--at] = '0';
  }
  NARAD_CHECK(at > 0, "the last name for a database is used up");
  ++name[at - 1];
  return kDirectory + "/" + name;
}

Switched switch_active(io::Disk& disk, std::string_view directory) {
  Switched switched;
  switched.status = write_new(disk, name_of_database(directory));
  if (!switched.status.ok()) {
    return switched;
  }
  switched.status = disk.rename(kActiveNew, kActive);
  if (!switched.status.ok()) {
    // A rename that was reported as failed may have happened all the same.
    io::Result<std::string> active = read_active(disk);
    switched.is_unknown = active.ok() ? *active == directory : !active.is(io::ErrorKind::not_found);
    return switched;
  }
  switched.status = disk.sync_directory(kDirectory);
  switched.is_unknown = !switched.status.ok();
  return switched;
}

io::Status sync_fsm_directory(io::Disk& disk) { return disk.sync_directory(kDirectory); }

namespace {

// A directory and what is in it; success when there is none. Two levels of directories are all there is.
io::Status remove_tree(io::Disk& disk, const std::string& path, int levels) {
  io::Result<std::vector<std::string>> names = disk.list(path);
  if (!names.ok()) {
    return names.is(io::ErrorKind::not_found) ? io::Status() : io::Status(names.error());
  }
  for (const std::string& name : *names) {
    const std::string child = path + "/" + name;
    io::Result<io::FileInfo> info = disk.stat(child);
    io::Status removed = info.ok() ? io::Status() : io::Status(info.error());
    if (info.ok()) {
      removed = info->is_directory && levels > 0 ? remove_tree(disk, child, levels - 1) : disk.remove(child);
    }
    if (!removed.ok()) {
      return removed;
    }
  }
  return disk.remove(path);
}

// One step: from then on no database is live, and the one that was is kept for people.
io::Result<std::optional<std::string>> set_aside_within(io::Disk& disk) {
  io::Result<std::string> active = read_active(disk);
  if (active.is(io::ErrorKind::not_found)) {
    return std::optional<std::string>();
  }
  io::Status status = active.ok() ? disk.rename(kActive, kActiveStale) : io::Status(active.error());
  if (status.ok()) {
    status = disk.sync_directory(kDirectory);
  }
  if (!status.ok()) {
    return status.error();
  }
  return std::optional<std::string>(std::move(*active));
}

}  // namespace

io::Result<std::optional<std::string>> set_fsm_directory_aside(io::Disk& disk) {
  io::Result<io::FileInfo> there = disk.stat(kDirectory);
  if (there.is(io::ErrorKind::not_found)) {
    return std::optional<std::string>();
  }
  if (!there.ok()) {
    return there.error();
  }
  std::string stale(kStaleDirectory);
  io::Status status = remove_tree(disk, stale, 1);
  if (status.ok()) {
    status = disk.rename(kDirectory, stale);
  }
  if (status.is(io::ErrorKind::busy)) {
    SOMETIMES("metastore: a database is set aside within its volume");
    return set_aside_within(disk);
  }
  if (status.ok()) {
    status = disk.sync_directory("");
  }
  if (!status.ok()) {
    return status.error();
  }
  return std::optional<std::string>(std::move(stale));
}

io::Result<Leftovers> find_leftovers(io::Disk& disk, std::string_view active) {
  io::Result<std::vector<std::string>> names = disk.list(kDirectory);
  if (!names.ok()) {
    return names.error();
  }
  io::Result<std::optional<std::string>> stale = read_stale(disk);
  if (!stale.ok()) {
    return stale.error();
  }
  Leftovers found;
  for (const std::string& name : *names) {
    const bool is_kept = name == name_of_database(active) || (*stale && name == name_of_database(**stale));
    if (is_database_name(name) && !is_kept) {
      found.databases.push_back(kDirectory + "/" + name);
    } else if (kDirectory + "/" + name == kActiveNew) {
      found.file = kActiveNew;
    }
  }
  return found;
}

}  // namespace engine::metastore
