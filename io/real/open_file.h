// A file that is open: its descriptor, kept until the handle and the last operation on it are gone, and whether an
// operation is under way that nobody waits for any more. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>

#include "io/check.h"
#include "io/disk.h"
#include "io/real/descriptor.h"

namespace io::real {

class OpenFile {
 public:
  // `at_close` is called when nobody uses the file any more.
  OpenFile(Descriptor descriptor, std::string path, std::function<void(OpenFile&)> at_close)
      : descriptor_(std::move(descriptor)), path_(std::move(path)), at_close_(std::move(at_close)) {}
  ~OpenFile() { at_close_(*this); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int descriptor() const { return descriptor_.get(); }
  // Under which name it stands now: it follows renames made by this process; "" once removed.
  const std::string& path() const { return path_; }
  void renamed(std::string path) { path_ = std::move(path); }

  void handle_made(const File& handle) { handle_ = &handle; }
  void handle_gone() { handle_ = nullptr; }
  void operation_begins() { ++operations_; }
  void operation_ends() {
    NARAD_CHECK(operations_ > 0, "an operation ends that did not begin");
    --operations_;
  }
  // An operation is under way whose caller has given it up: it may still take effect.
  bool has_abandoned_operation() const {
    return operations_ > 0 && (handle_ == nullptr || handle_->refuses_use());
  }

 private:
  Descriptor descriptor_;
  std::string path_;
  std::function<void(OpenFile&)> at_close_;
  const File* handle_ = nullptr;
  uint64_t operations_ = 0;
};

}  // namespace io::real
