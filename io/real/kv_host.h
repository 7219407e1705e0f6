// io::KvHost in production: RocksDB's own POSIX environment and threads.
#pragma once

#include <string>

#include "io/kv_host.h"

namespace io::real {

class PosixKvHost final : public KvHost {
 public:
  // `root` is the data directory; it exists.
  explicit PosixKvHost(const std::string& root);

  rocksdb::Env* env() override;
  std::string path(std::string_view relative) override;
  void pump() override {}

 private:
  std::string root_;  // absolute, so that a change of the working directory changes nothing
};

}  // namespace io::real
