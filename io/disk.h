// Files of one node, rooted at its data directory: every path is relative to it, with '/' between names, never "..".
//
// Buffers belong to the operation: writes take their bytes by value, reads return theirs. An operation whose caller was
// cancelled, or whose deadline passed, may still take effect: its handle refuses further use (`invalid`), and the file cannot
// be opened again before the operation has ended (`busy`). A failed sync is never retried on the same handle and never followed
// by a success: the handle refuses further use. Operations on one handle are issued one at a time.
//
// Durability: bytes are durable after sync of the file; a new, renamed or removed name is durable after sync_directory of its
// directory (the file's own sync does not make its name durable).
//
// Errors: no_space, io, not_found, exists, busy, denied, timed_out, invalid; each message names the path.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/completion.h"
#include "io/result.h"

namespace io {

enum class OpenMode {
  read,        // must exist; writes refused
  read_write,  // must exist
  create,      // made empty when absent, kept when present
  create_new,  // `exists` when present
};

class File {
 public:
  virtual ~File() = default;  // closes; never waits

  // Up to `length` bytes from `offset`; fewer only at the end of the file.
  Result<std::string> read(uint64_t offset, size_t length, Instant deadline = kNever);
  // All of `data` at `offset`, growing the file as needed. After an error any part may have landed.
  Status write(uint64_t offset, std::string data, Instant deadline = kNever);
  // Makes everything written durable (fdatasync).
  Status sync(Instant deadline = kNever);
  // write, then sync, as one operation: a failed write skips the sync.
  Status write_and_sync(uint64_t offset, std::string data, Instant deadline = kNever);
  Status truncate(uint64_t size, Instant deadline = kNever);
  // Fills `length` bytes from `offset` with zeros, written out (not a hole), so that later syncs need no new blocks.
  Status fill_zero(uint64_t offset, uint64_t length, Instant deadline = kNever);
  Result<uint64_t> size(Instant deadline = kNever);

  // True once an operation was given up or a sync failed: every further call fails with `invalid`.
  bool refuses_use() const { return refuses_use_; }
  const std::string& path() const { return path_; }

 protected:
  explicit File(std::string path) : path_(std::move(path)) {}

  virtual Completion<std::string> start_read(uint64_t offset, size_t length) = 0;
  virtual Completion<void> start_write(uint64_t offset, std::string data) = 0;
  virtual Completion<void> start_sync() = 0;
  virtual Completion<void> start_write_and_sync(uint64_t offset, std::string data) = 0;
  virtual Completion<void> start_truncate(uint64_t size) = 0;
  virtual Completion<void> start_fill_zero(uint64_t offset, uint64_t length) = 0;
  virtual Completion<uint64_t> start_size() = 0;

 private:
  template <typename T>
  Result<T> finish(const Completion<T>& operation, Instant deadline);
  Error refused() const;

  std::string path_;
  bool refuses_use_ = false;
};

struct FileInfo {
  uint64_t size = 0;
  bool is_directory = false;
};

// Held by the one process that may use the directory; given up at destruction or when the process ends.
class DirectoryLock {
 public:
  virtual ~DirectoryLock() = default;
};

class Disk {
 public:
  virtual ~Disk() = default;

  virtual Result<std::unique_ptr<File>> open(std::string_view path, OpenMode mode, Instant deadline = kNever) = 0;
  // Makes the directory and its parents; success when it is already there.
  virtual Status make_directory(std::string_view path, Instant deadline = kNever) = 0;
  // Atomic; replaces `to` when it exists.
  virtual Status rename(std::string_view from, std::string_view to, Instant deadline = kNever) = 0;
  // A file or an empty directory.
  virtual Status remove(std::string_view path, Instant deadline = kNever) = 0;
  // Names in the directory, sorted by bytes, without "." and "..". "" is the data directory itself.
  virtual Result<std::vector<std::string>> list(std::string_view path, Instant deadline = kNever) = 0;
  virtual Result<FileInfo> stat(std::string_view path, Instant deadline = kNever) = 0;
  virtual Status sync_directory(std::string_view path, Instant deadline = kNever) = 0;
  // Bytes that this node can still write.
  virtual Result<uint64_t> free_space(Instant deadline = kNever) = 0;
  // Makes (or opens) `path` and locks it for this process; `busy` when another process holds it.
  virtual Result<std::unique_ptr<DirectoryLock>> lock(std::string_view path, Instant deadline = kNever) = 0;
};

}  // namespace io
