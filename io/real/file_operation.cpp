#include "io/real/file_operation.h"

#include <cerrno>
#include <unistd.h>

#include <utility>

#include "io/check.h"

namespace io::real {

FileOperation::FileOperation(Kind kind, std::shared_ptr<OpenFile> file, uint64_t offset, std::string buffer, End end)
    : kind_(kind), file_(std::move(file)), offset_(offset), buffer_(std::move(buffer)), end_(std::move(end)) {
  file_->operation_begins();
}

FileOperation::~FileOperation() { NARAD_CHECK(end_ == nullptr, "a file operation ends by its report"); }

const char* FileOperation::name() const {
  switch (kind_) {
    case Kind::read: return "read";
    case Kind::write: return "write";
    case Kind::sync: return "sync";
    case Kind::write_and_sync: return "write_and_sync";
  }
  return "unknown";
}

bool FileOperation::step_moved(int64_t result) {
  if (result == -EINTR || result == -EAGAIN) {
    return true;
  }
  if (result < 0) {
    error_ = static_cast<int>(-result);
    return false;
  }
  if (result == 0 && left() > 0) {
    if (is_read()) {
      buffer_.resize(moved_);  // the end of the file
    } else {
      error_ = EIO;  // a write that moves nothing and names no reason would go on for ever
    }
    return false;
  }
  NARAD_CHECK(static_cast<size_t>(result) <= left(), "the kernel moved more than it was asked to");
  moved_ += static_cast<size_t>(result);
  return left() > 0;
}

void FileOperation::step_synced(int result) {
  if (result < 0) {
    error_ = -result;
  }
}

void FileOperation::run_blocking() {
  const int descriptor = file_->descriptor();
  while (left() > 0) {
    const ssize_t result = is_read() ? ::pread(descriptor, data(), left(), static_cast<off_t>(offset()))
                                     : ::pwrite(descriptor, data(), left(), static_cast<off_t>(offset()));
    if (!step_moved(result < 0 ? -errno : result)) {
      break;
    }
  }
  if (!failed() && syncs()) {
    step_synced(::fdatasync(descriptor) == 0 ? 0 : -errno);
  }
}

void FileOperation::finish() {
  file_->operation_ends();
  End end = std::exchange(end_, nullptr);
  end(error_, std::move(buffer_));
}

}  // namespace io::real
