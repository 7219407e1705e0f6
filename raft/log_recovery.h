// Reading the log back at start: which segments make up the log, which batches count, where it ends, and what is damage.
// Changes nothing on the disk. Holds one segment at a time, and no entry but configurations and the tail. The rules are in
// raft/log_store.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "raft/log_format.h"
#include "raft/log_store.h"

namespace raft {

class LogRecovery {
 public:
  explicit LogRecovery(LogStore& store) : store_(store) {}

  // Fills in the store and `contents`. Waits.
  io::Status run(LogStore::Contents& contents);

 private:
  struct Found {
    log_format::HeaderState state = log_format::HeaderState::zero;
    log_format::SegmentHeader header;
    std::uint64_t file_bytes = 0;
  };
  struct Batch {
    std::uint64_t offset = 0;
    log_format::BatchHeader header;
  };

  io::Status look_at_headers();
  io::Status find_chain();
  io::Result<bool> is_begun(std::uint64_t generation);
  io::Status check_unused(std::uint64_t generation);
  io::Status read_segment(std::uint64_t generation, std::optional<std::uint64_t> required_end);
  // The next batch that counts, from `from` on; nothing at the end. `corrupt` when there is proof of damage at `from`.
  io::Result<std::optional<Batch>> next_batch(std::string_view bytes, std::uint64_t generation, std::uint64_t from);
  io::Status take(const Batch& batch, std::uint64_t generation);
  io::Result<std::string> read_file(std::uint64_t generation, std::uint64_t bytes);
  // Reads the segments of the chain, from its first on.
  io::Status replay();
  io::Status read_last_batch();
  io::Status read_tail(LogStore::Contents& contents);
  io::Error damaged(std::uint64_t generation, std::uint64_t offset, std::string_view what) const;

  LogStore& store_;
  std::map<std::uint64_t, Found> found_;  // by generation
  std::vector<std::uint64_t> chain_;      // oldest first

  // while replaying
  std::vector<log_format::EntryView> scratch_;  // of the batch that next_batch() found
  std::vector<Entry> configurations_;
  std::uint64_t next_sequence_ = 1;
  std::uint64_t last_frontier_ = 0;   // of the newest batch that counts, in its segment
  std::uint64_t last_generation_ = 0;
  std::uint64_t last_offset_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint64_t epoch_max_ = 0;
  std::uint64_t end_ = 0;
  bool has_batch_ = false;
  bool is_cut_below_base_ = false;  // a batch begins at or below the chain's base
  bool has_torn_tail_ = false;
};

}  // namespace raft
