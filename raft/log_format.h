// The bytes of a log segment (the layout is in raft/log_store.h): making and checking headers and batches. Pure, but for
// BatchReader.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/disk.h"
#include "raft/types.h"

namespace raft::log_format {

inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kSegmentHeaderBytes = 512;
inline constexpr std::size_t kBatchHeaderBytes = 64;
inline constexpr std::size_t kEntryHeaderBytes = 16;
inline constexpr std::uint64_t kAlignment = 8;
inline constexpr std::string_view kDirectory = "raft/log";

struct SegmentHeader {
  std::uint64_t generation = 0;
  Index base_index = 0;
  Term base_term = 0;
  std::uint64_t first_batch = 1;
  std::uint64_t before_generation = 0;
  std::uint64_t before_end = 0;
  std::uint64_t filled_bytes = 0;
  StoreId store;
  bool is_reset = false;
  bool is_recycled = false;
};

struct BatchHeader {
  std::uint32_t body_bytes = 0;
  std::uint32_t body_crc = 0;
  std::uint64_t sequence = 0;
  Index first = 0;
  std::uint64_t frontier = 0;
  std::uint64_t epoch = 0;
  std::uint64_t stable_record = 0;
  std::uint32_t entries = 0;
};

// "raft/log/<20 digits>.log", and the generation that a file name stands for; nothing for other names.
std::string segment_path(std::uint64_t generation);
std::optional<std::uint64_t> generation_of(std::string_view file_name);
// "raft/log/<20 digits>.spare": a freed segment that waits for its next use.
std::string spare_path(std::uint64_t generation);
bool is_spare(std::string_view file_name);

std::string encode(const SegmentHeader& header, std::uint32_t version = kVersion);

enum class HeaderState { valid, zero, damaged, newer_version };
// `bytes` are the first of the file, at most kSegmentHeaderBytes; a short or empty block is `damaged`, unless it is all zero.
HeaderState parse(std::string_view bytes, std::uint64_t generation, SegmentHeader& header);

// What the entries take in a batch, its header included.
std::uint64_t batch_bytes(std::span<const Entry> entries);
// Appends one batch. Of `header` the caller fills in all but body_bytes, body_crc, first and entries. `offset` is where the
// batch will stand in its segment.
void encode_batch(std::span<const Entry> entries, BatchHeader header, std::uint64_t generation, std::uint64_t offset,
                  std::string& out);

// The header of a batch at `offset` of `segment` (the whole file), when one stands there that was written for this place.
std::optional<BatchHeader> parse_batch_header(std::string_view segment, std::uint64_t generation, std::uint64_t offset);
// An entry as it stands in a batch; the payload lies in the segment's bytes.
struct EntryView {
  Term term = 0;
  EntryType type = EntryType::noop;
  std::string_view payload;
};
Entry to_entry(const EntryView& view, Index index);
// The entries of that batch, in place of what `out` held; false when its body is not whole.
bool parse_batch_body(std::string_view segment, std::uint64_t generation, std::uint64_t offset, const BatchHeader& header,
                      std::vector<EntryView>& out);
// Where the batch ends.
inline std::uint64_t batch_end(std::uint64_t offset, const BatchHeader& header) {
  return offset + kBatchHeaderBytes + header.body_bytes;
}
// The first place at or behind `from` where parse_batch_header() finds one; nothing when there is none.
std::optional<std::uint64_t> find_batch(std::string_view segment, std::uint64_t generation, std::uint64_t from);

// Reads batches from a segment's file, one behind the other, a stretch of it at a time. Keeps no more than `stretch_bytes` or one
// batch.
class BatchReader {
 public:
  BatchReader(io::File& file, std::uint64_t generation, std::uint64_t offset, std::uint64_t stretch_bytes)
      : file_(file), generation_(generation), offset_(offset), stretch_bytes_(stretch_bytes) {}

  struct Batch {
    Index first = 0;
    std::span<const EntryView> entries;  // until the next call
  };
  // The batch at the reader's place, which then moves behind it. Waits. `corrupt` when it is not whole.
  io::Result<Batch> next();
  // Where the next one begins.
  std::uint64_t offset() const { return offset_; }

 private:
  io::Status hold(std::uint64_t bytes);

  io::File& file_;
  const std::uint64_t generation_;
  std::uint64_t offset_;
  const std::uint64_t stretch_bytes_;
  std::string held_;  // bytes of the file from held_at_ on
  std::uint64_t held_at_ = 0;
  std::vector<EntryView> entries_;
};

}  // namespace raft::log_format
