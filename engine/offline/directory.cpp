#include "engine/offline/directory.h"

#include "engine/data_dir.h"

namespace engine::offline {

namespace {

bool is_there(io::Disk& disk, std::string_view name) { return disk.stat(name).ok(); }

}  // namespace

io::Result<Directory> open_directory(io::Env& env) {
  Directory opened;
  io::Result<std::optional<uint32_t>> format = read_format(env.disk);
  if (!format.ok()) {
    return format.error();
  }
  if (!*format) {
    return is_there(env.disk, "raft") || is_there(env.disk, "fsm.db")
               ? io::fail(io::ErrorKind::invalid, "the data directory has no file FORMAT, so its layout is unknown")
               : io::fail(io::ErrorKind::invalid, "this is no data directory of narad: it holds no file FORMAT");
  }
  opened.format = **format;
  if (is_there(env.disk, kLockFile)) {
    io::Result<std::unique_ptr<io::DirectoryLock>> lock = env.disk.lock(kLockFile);
    if (lock.is(io::ErrorKind::busy)) {
      return io::fail(io::ErrorKind::busy, "the data directory is in use by a running node; stop it first, or look at a copy");
    }
    if (!lock.ok()) {
      return lock.error();
    }
    opened.lock = std::move(*lock);
  }
  return opened;
}

}  // namespace engine::offline
