// The parts of bench/metastore. Each reports its own figures.
#pragma once

#include <cstdint>
#include <string>

namespace bench {

struct MetastoreOptions {
  std::string directory = ".";
  uint64_t entries = 200'000;  // of the prepared log
};

// Entries/s of a prepared log of mixed entries, in batches of several sizes: by the clock, and by the processor time of the
// whole process.
void measure_apply(const MetastoreOptions& options);

}  // namespace bench
