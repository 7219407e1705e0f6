#include "engine/metastore/active_file.h"

#include <algorithm>

namespace engine::metastore {

namespace {

const std::string kDirectory(kFsmDirectory);
const std::string kActive = kDirectory + "/ACTIVE";
const std::string kActiveNew = kDirectory + "/ACTIVE.new";
constexpr std::string_view kFirst = "000001";

bool is_database_name(std::string_view name) {
  return name.size() == kFirst.size() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

io::Result<std::string> read_active(io::Disk& disk) {
  io::Result<std::unique_ptr<io::File>> file = disk.open(kActive, io::OpenMode::read);
  if (!file.ok()) {
    return file.error();
  }
  io::Result<std::string> text = (*file)->read(0, 64);
  if (!text.ok()) {
    return text.error();
  }
  std::string name = text->substr(0, text->find('\n'));
  if (text->size() != kFirst.size() + 1 || !is_database_name(name)) {
    return io::fail(io::ErrorKind::invalid, kActive + " names no database");
  }
  return kDirectory + "/" + name;
}

io::Status write_active(io::Disk& disk, std::string_view name) {
  io::Result<std::unique_ptr<io::File>> file = disk.open(kActiveNew, io::OpenMode::create);
  if (!file.ok()) {
    return file.error();
  }
  if (io::Status cut = (*file)->truncate(0); !cut.ok()) {
    return cut;
  }
  if (io::Status written = (*file)->write_and_sync(0, std::string(name) + "\n"); !written.ok()) {
    return written;
  }
  file->reset();
  if (io::Status renamed = disk.rename(kActiveNew, kActive); !renamed.ok()) {
    return renamed;
  }
  return disk.sync_directory(kDirectory);
}

// Databases without an ACTIVE file are not ours to judge: somebody has taken the file away.
io::Status check_no_databases(io::Disk& disk) {
  io::Result<std::vector<std::string>> names = disk.list(kDirectory);
  if (!names.ok()) {
    return names.error();
  }
  for (const std::string& name : *names) {
    if (is_database_name(name)) {
      return io::fail(io::ErrorKind::invalid, kActive + " is missing, but " + kDirectory + " holds a database (" + name +
                                                  "); refusing to start");
    }
  }
  return {};
}

}  // namespace

io::Result<std::string> find_or_name_active(io::Disk& disk) {
  if (io::Status made = disk.make_directory(kDirectory); !made.ok()) {
    return made.error();
  }
  io::Result<std::string> active = read_active(disk);
  if (active.ok() || active.error().kind != io::ErrorKind::not_found) {
    return active;
  }
  if (io::Status checked = check_no_databases(disk); !checked.ok()) {
    return checked.error();
  }
  if (io::Status synced = disk.sync_directory(""); !synced.ok()) {
    return synced.error();
  }
  if (io::Status written = write_active(disk, kFirst); !written.ok()) {
    return written.error();
  }
  return kDirectory + "/" + std::string(kFirst);
}

io::Status sync_fsm_directory(io::Disk& disk) { return disk.sync_directory(kDirectory); }

}  // namespace engine::metastore
