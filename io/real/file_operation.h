// One read, write or sync of a file on its way: it owns its buffer and keeps the file open until it has ended, whatever
// becomes of the fiber that asked. Both pollers run the same object: io_uring step by step, a file thread by blocking
// calls.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "io/real/open_file.h"

namespace io::real {

class FileOperation {
 public:
  enum class Kind { read, write, sync, write_and_sync };
  // Called on the loop at the end. `error` is an errno, 0 for success; `buffer` has what was read.
  using End = std::function<void(int error, std::string buffer)>;

  FileOperation(Kind kind, std::shared_ptr<OpenFile> file, uint64_t offset, std::string buffer, End end);
  ~FileOperation();
  FileOperation(const FileOperation&) = delete;
  FileOperation& operator=(const FileOperation&) = delete;

  const char* name() const;
  const OpenFile& file() const { return *file_; }
  bool is_read() const { return kind_ == Kind::read; }
  bool syncs() const { return kind_ == Kind::sync || kind_ == Kind::write_and_sync; }

  // What is left to be moved. A step moves some of it: `moved` bytes, or fails.
  char* data() { return buffer_.data() + moved_; }
  uint64_t offset() const { return offset_ + moved_; }
  size_t left() const { return buffer_.size() - moved_; }
  // Note the outcome of a step: bytes moved (0 at a read's end of file) or a negative errno. True when bytes are left
  // to move.
  bool step_moved(int64_t result);
  void step_synced(int result);
  bool failed() const { return error_ != 0; }

  // All steps by blocking calls, on a file thread.
  void run_blocking();
  // Reports the outcome; once, on the loop.
  void finish();

 private:
  Kind kind_;
  std::shared_ptr<OpenFile> file_;
  uint64_t offset_;
  std::string buffer_;
  size_t moved_ = 0;
  int error_ = 0;
  End end_;
};

}  // namespace io::real
