// The parts of bench/metastore. Each reports its own figures.
#pragma once

#include <cstdint>
#include <string>

namespace bench {

struct MetastoreOptions {
  std::string directory = ".";
  uint64_t entries = 200'000;  // of the prepared log
  // Of the large metastore.
  uint64_t topics = 100'000;
  uint64_t assignments_per_topic = 10;
  std::string program = "build/release/narad";
  int restarts = 3;
};

// Entries/s of a prepared log of mixed entries, in batches of several sizes: by the clock, and by the processor time of the
// whole process.
void measure_apply(const MetastoreOptions& options);

// The other parts share one data directory: that of a node which has created the topics and placed the partitions, entry by entry
// through raft, and which took snapshots meanwhile. Throws std::runtime_error when that does not work.
void fill_large(const MetastoreOptions& options, const std::string& data_dir);

// The node's program over it, writing, killed with kill -9 and started again: how long until /readyz answers 200, and how many
// of the entries that its database held were applied again.
void measure_restart(const MetastoreOptions& options, const std::string& data_dir);

// Images of its database: the phases of support/image_phases.h.
void measure_images(const MetastoreOptions& options, const std::string& data_dir);

// What opening costs when the row that says how far the database is has been lost and every row has to be read.
void measure_lost_index(const MetastoreOptions& options, const std::string& data_dir);

// ---- What the parts share --------------------------------------------------------------------------------------------------

std::string large_topic_name(uint64_t number);

}  // namespace bench
