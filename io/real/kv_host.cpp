#include "io/real/kv_host.h"

#include <rocksdb/env.h>

#include <filesystem>

namespace io::real {

PosixKvHost::PosixKvHost(const std::string& root) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(root, error);
  root_ = error ? root : absolute.lexically_normal().string();
  while (root_.size() > 1 && root_.back() == '/') {
    root_.pop_back();
  }
}

rocksdb::Env* PosixKvHost::env() { return rocksdb::Env::Default(); }

std::string PosixKvHost::path(std::string_view relative) {
  return relative.empty() ? root_ : root_ + "/" + std::string(relative);
}

}  // namespace io::real
