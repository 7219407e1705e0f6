#include "io/disk.h"

namespace io {

Error File::refused() const {
  return fail(ErrorKind::invalid, path_ + ": an earlier operation was given up or its sync failed; the handle is closed for use");
}

// Gives the handle up when the operation outlives the wait for it, whichever way the wait ends.
template <typename T>
Result<T> File::finish(const Completion<T>& operation, Instant deadline) {
  struct GiveUpUnlessEnded {
    File& file;
    const Completion<T>& operation;
    ~GiveUpUnlessEnded() {
      if (!operation.is_complete()) {
        file.refuses_use_ = true;
      }
    }
  } guard{*this, operation};
  return operation.await(deadline);
}

Result<std::string> File::read(uint64_t offset, size_t length, Instant deadline) {
  return refuses_use_ ? Result<std::string>(refused()) : finish(start_read(offset, length), deadline);
}

Status File::write(uint64_t offset, std::string data, Instant deadline) {
  return refuses_use_ ? Status(refused()) : finish(start_write(offset, std::move(data)), deadline);
}

Status File::sync(Instant deadline) {
  if (refuses_use_) {
    return refused();
  }
  Status status = finish(start_sync(), deadline);
  refuses_use_ = refuses_use_ || !status.ok();
  return status;
}

// Which of the two steps failed cannot be told from here, so any failure but a full disk closes the handle for use; no_space
// comes from the write alone.
Status File::write_and_sync(uint64_t offset, std::string data, Instant deadline) {
  if (refuses_use_) {
    return refused();
  }
  Status status = finish(start_write_and_sync(offset, std::move(data)), deadline);
  refuses_use_ = refuses_use_ || (!status.ok() && !status.is(ErrorKind::no_space));
  return status;
}

Status File::truncate(uint64_t size, Instant deadline) {
  return refuses_use_ ? Status(refused()) : finish(start_truncate(size), deadline);
}

Status File::fill_zero(uint64_t offset, uint64_t length, Instant deadline) {
  return refuses_use_ ? Status(refused()) : finish(start_fill_zero(offset, length), deadline);
}

Result<uint64_t> File::size(Instant deadline) {
  return refuses_use_ ? Result<uint64_t>(refused()) : finish(start_size(), deadline);
}

}  // namespace io
