#include "engine/data_dir.h"

#include <string>
#include <vector>

namespace engine {

namespace {

constexpr std::string_view kLockFile = "LOCK";
constexpr std::string_view kFormatFile = "FORMAT";
constexpr std::string_view kFormatDraft = "FORMAT.new";
constexpr std::string_view kFormatText = "narad data directory, layout 1\n";

io::Error explain(const io::Error& error, const std::string& what) { return io::fail(error.kind, what + ": " + error.message); }

io::Status write_format(io::Disk& disk) {
  io::Result<std::unique_ptr<io::File>> file = disk.open(kFormatDraft, io::OpenMode::create);
  if (!file.ok()) {
    return file.error();
  }
  io::Status status = (*file)->truncate(0);
  if (status.ok()) {
    status = (*file)->write_and_sync(0, std::string(kFormatText));
  }
  if (status.ok()) {
    status = disk.rename(kFormatDraft, kFormatFile);
  }
  return status.ok() ? disk.sync_directory("") : status;
}

// A directory without FORMAT is new only when nothing but our own first steps stands in it.
io::Status check_is_new(io::Disk& disk) {
  const io::Result<std::vector<std::string>> names = disk.list("");
  if (!names.ok()) {
    return names.error();
  }
  for (const std::string& name : *names) {
    if (name == "raft" || name == "fsm.db") {
      return io::fail(io::ErrorKind::invalid,
                      "the data directory holds " + name + " but no file FORMAT, so its layout is unknown; refusing to start");
    }
  }
  return {};
}

io::Status check_format(io::Disk& disk) {
  io::Result<std::unique_ptr<io::File>> file = disk.open(kFormatFile, io::OpenMode::read);
  if (file.is(io::ErrorKind::not_found)) {
    io::Status is_new = check_is_new(disk);
    return is_new.ok() ? write_format(disk) : is_new;
  }
  if (!file.ok()) {
    return file.error();
  }
  const io::Result<std::string> text = (*file)->read(0, 256);
  if (!text.ok()) {
    return text.error();
  }
  if (*text != kFormatText) {
    return io::fail(io::ErrorKind::invalid, "the file FORMAT names a layout that this release does not know; refusing to start");
  }
  return {};
}

}  // namespace

io::Result<std::unique_ptr<io::DirectoryLock>> claim_data_directory(io::Disk& disk) {
  io::Result<std::unique_ptr<io::DirectoryLock>> lock = disk.lock(kLockFile);
  if (lock.is(io::ErrorKind::busy)) {
    return io::fail(io::ErrorKind::busy, "the data directory is in use by another process");
  }
  if (!lock.ok()) {
    return explain(lock.error(), "cannot lock the data directory");
  }
  io::Status format = check_format(disk);
  if (!format.ok()) {
    return format.error().kind == io::ErrorKind::invalid ? format.error()
                                                          : explain(format.error(), "cannot prepare the data directory");
  }
  return lock;
}

}  // namespace engine
