// One server process of the snapshot benchmark: the production metastore under a raft server, with a load of its own, told what to
// do through memory that it shares with the program that started it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/raft/parts.h"

namespace bench {

// Shared between the two processes. Orders go one way, what is seen of the server the other.
struct SharedMember {
  // Orders; a member looks at them every few milliseconds.
  std::atomic<bool> should_run = false;        // a raft server over the metastore, which stays open when it stops
  std::atomic<bool> is_cut_off = false;        // from every other server, both ways
  std::atomic<bool> should_write = false;      // new small topics, while this server leads
  std::atomic<bool> should_read = false;       // topics drawn from all that the fill made
  std::atomic<bool> should_exit = false;
  std::atomic<std::uint64_t> fill_rows = 0;    // topics of row_bytes, while this server leads; back to 0 when they are there
  std::atomic<std::uint64_t> row_bytes = 0;
  std::atomic<std::uint64_t> rows_filled = 0;  // that reads may draw from
  std::atomic<std::uint64_t> send_bytes_per_second = 0;
  std::atomic<bool> should_forget_gap = false;

  // What is seen.
  std::atomic<bool> is_running = false;
  std::atomic<bool> is_leader = false;
  std::atomic<std::uint64_t> applied = 0;
  std::atomic<std::uint64_t> last = 0;
  std::atomic<std::uint64_t> log_base = 0;
  std::atomic<std::uint64_t> snapshot_bytes = 0;
  std::atomic<std::uint64_t> snapshots_sent = 0;       // of this life of the raft server
  std::atomic<std::uint64_t> snapshots_installed = 0;  // likewise
  std::atomic<std::uint64_t> written = 0;              // acknowledged small topics
  std::atomic<std::uint64_t> reads = 0;
  std::atomic<std::int64_t> longest_gap_ns = 0;        // between two applies
  std::atomic<std::uint64_t> rocksdb_bytes_max = 0;    // RocksDB's own count of the live database; since should_forget_gap
};

// A process forked from this one. Killed at destruction.
class Member {
 public:
  Member(const RaftOptions& options, std::string id, std::string directory,
         std::vector<std::pair<std::string, std::string>> all);  // ids and addresses of every server
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  void start();
  void kill();

  SharedMember& shared() { return *shared_; }
  const std::string& directory() const { return directory_; }

  // Resident bytes now, and the most since the last reset.
  std::uint64_t resident() const;
  std::uint64_t peak() const;
  void reset_peak();

 private:
  std::uint64_t status(const char* field) const;

  const RaftOptions& options_;
  const std::string id_;
  const std::string directory_;
  const std::vector<std::pair<std::string, std::string>> all_;
  SharedMember* shared_;
  pid_t pid_ = -1;
};

}  // namespace bench
