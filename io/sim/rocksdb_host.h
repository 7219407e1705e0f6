// RocksDB on a simulated volume: every file operation, clock reading and background job of a database is the
// simulator's.
//
// Calls run to their end at one instant, on the stack of whoever calls (fibers never switch inside); what their file
// operations would have taken is charged to the lane afterwards. Background jobs wait in a queue until pump().
//
// What the database's Options must say for a run to be a pure function of its seed (the engine sets them):
//   max_file_opening_threads = 1, max_subcompactions = 1, max_bgerror_resume_count = 0, stats_dump_period_sec = 0,
//   stats_persist_period_sec = 0, info_log = a logger that drops everything, db_host_id = a fixed text,
//   enable_pipelined_write = false, avoid_flush_during_recovery = false, fail_if_options_file_error = false (OPTIONS
//   files are refused here: they cost more than all else in an open), a write_buffer_size large enough that only
//   explicit flushes happen, and no_slowdown = true in every WriteOptions. Calls that would wait for background work
//   hang: Flush with wait = false and pump() instead; a database is pumped before it is closed.
// RocksDB syncs the directory of a database, never the name of that directory: whoever makes it syncs its parent.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "io/kv_host.h"

namespace io::sim {

class Incarnation;
class RocksdbEnv;

class RocksdbHost final : public KvHost {
 public:
  explicit RocksdbHost(Incarnation& process);
  ~RocksdbHost() override;
  rocksdb::Env* env() override;
  std::string path(std::string_view relative) override { return "/" + std::string(relative); }
  void pump() override;
  // For RocksDB's source of unique ids: the next number of this process, drawn from the world's seed.
  uint64_t next_unique();

 private:
  Incarnation& process_;
  std::unique_ptr<RocksdbEnv> env_;
  uint64_t unique_drawn_ = 0;
};

}  // namespace io::sim
