// The parts of bench/raft. Each prints its figures; all throw std::runtime_error when something cannot be measured.
#pragma once

#include <cstdint>
#include <string>

namespace bench {

struct RaftOptions {
  std::string program = "build/release/narad";
  std::string directory = "/var/tmp";
  std::string io = "auto";
  double seconds = 2;              // of each measurement of the core and of the log store
  int trials = 100;                // elections and transfers
  std::uint64_t log_bytes = 1u << 30;  // of the log that is opened warm
  std::uint64_t snapshot_megabytes = 1024;  // of the metastore whose image is sent
  int snapshot_interval_s = 15;        // between two looks whether a snapshot is due
};

// The core alone: entries through propose, ready, acknowledgement and apply on one thread, all servers' cores together.
void measure_core(const RaftOptions& options);
// The log store on the production backend, beside the raw device; then the opening of a warm log.
void measure_log(const RaftOptions& options);
void measure_warm_open(const RaftOptions& options);
// Three processes: kill -9 and SIGTERM of the leader under writes.
void measure_failover(const RaftOptions& options);
// Three processes, one of them away until the log no longer reaches it: the image that it is sent.
void measure_snapshot(const RaftOptions& options);

}  // namespace bench
