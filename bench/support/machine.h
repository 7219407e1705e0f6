// The machine's own limits, measured in the same run as what is compared with them: absolute times drift.
#pragma once

#include <cstdint>
#include <string>

namespace bench {

struct SyncLimit {
  int64_t p50_ns = 0;
  int64_t p99_ns = 0;
  double syncs_per_s = 0;  // over all writers
};

// `writers` threads, each overwriting one 4 KiB block of its own preallocated file under `directory` and calling fdatasync,
// for `seconds`.
SyncLimit measure_sync(const std::string& directory, int writers, double seconds);

// Median time of a one-byte request and answer over a loopback TCP connection between two threads, nanoseconds.
int64_t measure_round_trip(int rounds);

// A new file of `bytes` under `directory`, written front to back in steps of 1 MiB with a data sync every 8 MiB and at the end: bytes/s
// in millions.
double measure_sequential_write(const std::string& directory, uint64_t bytes);

// `bytes` over one loopback TCP connection between two threads, in steps of 1 MiB: bytes/s in millions.
double measure_loopback(uint64_t bytes);

}  // namespace bench
