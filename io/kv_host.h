// What a RocksDB database of this node runs on. In production RocksDB's own POSIX environment; in the simulator one whose
// every file operation, clock reading and background job is the simulator's.
//
// Use, always from the store lane (reads of what is cached excepted): open the database with env() under path(name); after
// every call that may have queued background work, pump(). Calls that wait for background work inside RocksDB hang where the
// jobs are pumped: see feasibility.md section 1 for what to call instead (Flush with wait=false, then pump).
#pragma once

#include <string>
#include <string_view>

namespace rocksdb {
class Env;
}

namespace io {

class KvHost {
 public:
  virtual ~KvHost() = default;
  virtual rocksdb::Env* env() = 0;
  // The name RocksDB is to be given for `relative`, a path under the data directory.
  virtual std::string path(std::string_view relative) = 0;
  // Runs the background jobs that RocksDB has queued, here and now. Production: nothing, RocksDB has threads of its own.
  virtual void pump() = 0;
};

}  // namespace io
