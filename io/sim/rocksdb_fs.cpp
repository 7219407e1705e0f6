#include "io/sim/rocksdb_fs.h"

#include <cstring>

#include "io/sim/world.h"
#include "rocksdb/env.h"

namespace io::sim {

namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// "/fsm.db//x" -> "fsm.db/x": as the volume's other door names it, so that faults and locks by path agree.
std::string volume_path(std::string_view name) {
  std::string path;
  for (char c : name) {
    if (c != '/' || (!path.empty() && path.back() != '/')) {
      path.push_back(c);
    }
  }
  if (!path.empty() && path.back() == '/') {
    path.pop_back();
  }
  return path;
}

IOStatus to_status(const Error& error) {
  switch (error.kind) {
    case ErrorKind::no_space: return IOStatus::NoSpace(error.message);
    case ErrorKind::not_found: return IOStatus::PathNotFound(error.message);
    default: return IOStatus::IOError(error.message);
  }
}

IOStatus to_status(const Status& status) { return status.ok() ? IOStatus::OK() : to_status(status.error()); }

// RocksDB's own file system names the call that failed, and users tell a failed sync by it.
IOStatus to_sync_status(const Status& status) {
  return status.ok() ? IOStatus::OK() : to_status(Error{status.error().kind, "While fsync: " + status.error().message});
}

// A process's use of its volume. Each operation is charged what it would have taken.
class Door {
 public:
  explicit Door(Incarnation& process) : process_(process), volume_(process.machine().volume()) {}

  Volume& pass(DiskOp op, std::string_view path, uint64_t bytes = 0) const {
    process_.machine().world().charge(volume_.latency(op, path, bytes));
    if (volume_.hangs(op, path)) {
      volume_.note_lane_hang();
    }
    return volume_;
  }
  Incarnation& process() const { return process_; }

 private:
  Incarnation& process_;
  Volume& volume_;
};

IOStatus read_at(const Door& door, const Node& node, const std::string& path, uint64_t offset, size_t length,
                 Slice* result, char* scratch) {
  const Result<std::string> bytes =
      door.pass(DiskOp::read, path, length).read(door.process(), node, path, offset, length);
  if (!bytes.ok()) {
    return to_status(bytes.error());
  }
  std::memcpy(scratch, bytes->data(), bytes->size());
  *result = Slice(scratch, bytes->size());
  return IOStatus::OK();
}

class SequentialFile final : public rocksdb::FSSequentialFile {
 public:
  SequentialFile(const Door& door, NodePtr node, std::string path)
      : door_(door), node_(std::move(node)), path_(std::move(path)) {}
  IOStatus Read(size_t n, const IOOptions&, Slice* result, char* scratch, IODebugContext*) override {
    IOStatus status = read_at(door_, *node_, path_, position_, n, result, scratch);
    position_ += status.ok() ? result->size() : 0;
    return status;
  }
  IOStatus Skip(uint64_t n) override {
    position_ += n;
    return IOStatus::OK();
  }

 private:
  Door door_;
  NodePtr node_;
  std::string path_;
  uint64_t position_ = 0;
};

class RandomAccessFile final : public rocksdb::FSRandomAccessFile {
 public:
  RandomAccessFile(const Door& door, NodePtr node, std::string path)
      : door_(door), node_(std::move(node)), path_(std::move(path)) {}
  IOStatus Read(uint64_t offset, size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    return read_at(door_, *node_, path_, offset, n, result, scratch);
  }

 private:
  Door door_;
  NodePtr node_;
  std::string path_;
};

class WritableFile final : public rocksdb::FSWritableFile {
 public:
  WritableFile(const Door& door, NodePtr node, std::string path)
      : door_(door), node_(std::move(node)), path_(std::move(path)) {}

  using FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    return to_status(door_.pass(DiskOp::write, path_, data.size())
                         .write(door_.process(), *node_, path_, node_->content.size(), data.ToStringView()));
  }
  IOStatus Truncate(uint64_t size, const IOOptions&, IODebugContext*) override {
    return to_status(door_.pass(DiskOp::truncate, path_).truncate(door_.process(), *node_, path_, size));
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    return to_sync_status(door_.pass(DiskOp::sync, path_).sync(door_.process(), *node_, path_, node_->next_sequence));
  }
  bool IsSyncThreadSafe() const override { return true; }
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return node_->content.size(); }
  void PrepareWrite(size_t, size_t, const IOOptions&, IODebugContext*) override {}

 private:
  Door door_;
  NodePtr node_;
  std::string path_;
};

class Directory final : public rocksdb::FSDirectory {
 public:
  Directory(const Door& door, std::string path) : door_(door), path_(std::move(path)) {}
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return to_sync_status(door_.pass(DiskOp::sync_directory, path_).sync_directory(door_.process(), path_));
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  Door door_;
  std::string path_;
};

class Lock final : public rocksdb::FileLock {
 public:
  explicit Lock(std::string p) : path(std::move(p)) {}
  std::string path;
};

class SilentLogger final : public rocksdb::Logger {
 public:
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

class FileSystem final : public rocksdb::FileSystem {
 public:
  explicit FileSystem(Incarnation& process) : door_(process), process_(process) {}
  const char* Name() const override { return "SimulatedFileSystem"; }

  IOStatus NewSequentialFile(const std::string& name, const FileOptions&,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext*) override {
    return open<SequentialFile>(name, OpenMode::read, result);
  }
  IOStatus NewRandomAccessFile(const std::string& name, const FileOptions&,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result, IODebugContext*) override {
    return open<RandomAccessFile>(name, OpenMode::read, result);
  }
  IOStatus NewWritableFile(const std::string& name, const FileOptions&,
                           std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext*) override {
    if (is_options_file(name)) {
      return IOStatus::NotSupported("OPTIONS files are not kept");
    }
    const std::string path = volume_path(name);
    const NodePtr there = process_.machine().volume().tree().find_file(path);
    if (there != nullptr && !there->content.empty()) {
      const Status emptied = door_.pass(DiskOp::truncate, path).truncate(process_, *there, path, 0);
      if (!emptied.ok()) {
        return to_status(emptied);
      }
    }
    return open<WritableFile>(name, OpenMode::create, result);
  }
  IOStatus ReopenWritableFile(const std::string& name, const FileOptions&,
                              std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext*) override {
    return open<WritableFile>(name, OpenMode::create, result);
  }
  IOStatus NewDirectory(const std::string& name, const IOOptions&, std::unique_ptr<rocksdb::FSDirectory>* result,
                        IODebugContext*) override {
    const std::string path = volume_path(name);
    const NodePtr node = process_.machine().volume().tree().find(path);
    if (node == nullptr || !node->is_directory) {
      return IOStatus::PathNotFound(path);
    }
    *result = std::make_unique<Directory>(door_, path);
    return IOStatus::OK();
  }

  IOStatus FileExists(const std::string& name, const IOOptions&, IODebugContext*) override {
    const std::string path = volume_path(name);
    const Result<FileInfo> info = door_.pass(DiskOp::list, path).stat(process_, path);
    return info.ok() ? IOStatus::OK() : info.is(ErrorKind::not_found) ? IOStatus::NotFound() : to_status(info.error());
  }
  IOStatus GetChildren(const std::string& name, const IOOptions&, std::vector<std::string>* result,
                       IODebugContext*) override {
    const std::string path = volume_path(name);
    Result<std::vector<std::string>> names = door_.pass(DiskOp::list, path).list(process_, path);
    if (!names.ok()) {
      return names.is(ErrorKind::not_found) ? IOStatus::NotFound(path) : to_status(names.error());
    }
    *result = std::move(*names);
    return IOStatus::OK();
  }
  IOStatus DeleteFile(const std::string& name, const IOOptions&, IODebugContext*) override { return remove(name); }
  IOStatus DeleteDir(const std::string& name, const IOOptions&, IODebugContext*) override { return remove(name); }
  IOStatus CreateDir(const std::string& name, const IOOptions& options, IODebugContext* debug) override {
    return process_.machine().volume().tree().exists(volume_path(name)) ? IOStatus::IOError(name, "already there")
                                                                        : CreateDirIfMissing(name, options, debug);
  }
  IOStatus CreateDirIfMissing(const std::string& name, const IOOptions&, IODebugContext*) override {
    const std::string path = volume_path(name);
    return to_status(door_.pass(DiskOp::make_directory, path).make_directory(process_, path));
  }
  IOStatus GetFileSize(const std::string& name, const IOOptions&, uint64_t* size, IODebugContext*) override {
    const std::string path = volume_path(name);
    const Result<FileInfo> info = door_.pass(DiskOp::list, path).stat(process_, path);
    *size = info.ok() ? info->size : 0;
    return info.ok() ? IOStatus::OK() : to_status(info.error());
  }
  IOStatus GetFileModificationTime(const std::string&, const IOOptions&, uint64_t* seconds, IODebugContext*) override {
    *seconds = 0;
    return IOStatus::OK();
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions&, IODebugContext*) override {
    const std::string to_path = volume_path(to);
    return to_status(door_.pass(DiskOp::rename, to_path).rename(process_, volume_path(from), to_path));
  }
  IOStatus LinkFile(const std::string& from, const std::string& to, const IOOptions&, IODebugContext*) override {
    const std::string to_path = volume_path(to);
    return to_status(door_.pass(DiskOp::create, to_path).link(process_, volume_path(from), to_path));
  }
  IOStatus NumFileLinks(const std::string& name, const IOOptions&, uint64_t* count, IODebugContext*) override {
    const NodePtr node = process_.machine().volume().tree().find_file(volume_path(name));
    *count = node != nullptr ? node->links : 0;
    return node != nullptr ? IOStatus::OK() : IOStatus::PathNotFound(name);
  }
  IOStatus AreFilesSame(const std::string& a, const std::string& b, const IOOptions&, bool* same,
                        IODebugContext*) override {
    FileTree& tree = process_.machine().volume().tree();
    const NodePtr node = tree.find_file(volume_path(a));
    *same = node != nullptr && node == tree.find_file(volume_path(b));
    return IOStatus::OK();
  }
  IOStatus LockFile(const std::string& name, const IOOptions&, rocksdb::FileLock** lock, IODebugContext*) override {
    const std::string path = volume_path(name);
    const Status locked = door_.pass(DiskOp::list, path).lock(process_, path);
    *lock = locked.ok() ? new Lock(path) : nullptr;
    return to_status(locked);
  }
  IOStatus UnlockFile(rocksdb::FileLock* lock, const IOOptions&, IODebugContext*) override {
    const std::unique_ptr<Lock> held(static_cast<Lock*>(lock));
    if (process_.live()) {
      process_.machine().volume().unlock(held->path);
    }
    return IOStatus::OK();
  }
  IOStatus GetTestDirectory(const IOOptions&, std::string* path, IODebugContext*) override {
    *path = "/test";
    return IOStatus::OK();
  }
  IOStatus NewLogger(const std::string&, const IOOptions&, std::shared_ptr<rocksdb::Logger>* logger,
                     IODebugContext*) override {
    *logger = std::make_shared<SilentLogger>();
    return IOStatus::OK();
  }
  IOStatus GetAbsolutePath(const std::string& name, const IOOptions&, std::string* path, IODebugContext*) override {
    *path = name;
    return IOStatus::OK();
  }
  IOStatus IsDirectory(const std::string& name, const IOOptions&, bool* is_directory, IODebugContext*) override {
    const NodePtr node = process_.machine().volume().tree().find(volume_path(name));
    *is_directory = node != nullptr && node->is_directory;
    return node != nullptr ? IOStatus::OK() : IOStatus::PathNotFound(name);
  }

 private:
  static bool is_options_file(std::string_view name) {
    return name.substr(name.rfind('/') + 1).starts_with("OPTIONS-");
  }

  template <typename Handle, typename Base>
  IOStatus open(const std::string& name, OpenMode mode, std::unique_ptr<Base>* result) {
    std::string path = volume_path(name);
    Result<NodePtr> node = door_.pass(DiskOp::list, path).open(process_, path, mode);
    if (!node.ok()) {
      return to_status(node.error());
    }
    (*node)->opaque = true;
    *result = std::make_unique<Handle>(door_, std::move(*node), std::move(path));
    return IOStatus::OK();
  }
  IOStatus remove(const std::string& name) {
    const std::string path = volume_path(name);
    return to_status(door_.pass(DiskOp::remove, path).remove(process_, path));
  }

  Door door_;
  Incarnation& process_;
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> make_rocksdb_file_system(Incarnation& process) {
  return std::make_shared<FileSystem>(process);
}

}  // namespace io::sim
