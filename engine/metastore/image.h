// The image of the metastore at one index, as bytes: what a snapshot holds and what one node installs from another.
//
// A logical image: rows in key order, whatever the database that held them looked like, so releases install each other's.
// All numbers are little endian. Each checksum (CRC-32C) goes on from the one before it, so that a part that is lost, doubled or
// out of place does not pass.
//
//   head    "NARADIMG"  u32 format  u32 bytes of fields  fields  u32 checksum
//           fields: u64 applied index  u64 applied term  u32 newest entry type  u64 digest; a later release may add to them
//   block   u32 bytes of rows (> 0)  u32 checksum  rows  u32 checksum
//           row: u32 bytes of key  u32 bytes of value  key  value; a block holds whole rows
//   end     u32 zero  u32 checksum  u64 rows  u64 digest  u32 checksum; nothing follows
//
// The digest is the sum of the row hashes, as kept in the database's own state row (which is no row of the image: its fields are the
// head's). What a reader has accepted is: complete, undamaged, rows of distinct rising keys, sum and count as said.
//
// Left to others: where the bytes are kept (raft/snapshot_store), taking the rows from a database (image_writer.h) and building one from
// them (image_installer.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/metastore/apply.h"
#include "io/result.h"
#include "raft/state_machine.h"

namespace engine::metastore {

inline constexpr uint32_t kImageFormat = 1;
// A block is closed once it holds this much; one row that is larger has a block of its own.
inline constexpr size_t kImageBlockBytes = 64u << 10;
// No row, and so no block, is larger: an entry's payload is bounded far below it.
inline constexpr size_t kImageBlockBytesMax = 32u << 20;

// True for rows that belong into an image: all but the database's own.
bool is_image_row(std::string_view row_key);

// Makes the bytes, front to back.
class ImageEncoder {
 public:
  explicit ImageEncoder(const FsmState& state) : state_(state) {}

  // First.
  std::string head();
  // The next row; its key is above the one before. `invalid` when it is too large for an image.
  io::Status add(std::string_view key, std::string_view value);
  // Bytes of rows that wait to become a block.
  size_t block_bytes() const { return rows_bytes_.size(); }
  // The rows added since the last block, at least one.
  std::string block();
  // Last. `corrupt` when the rows do not add up to the state's digest: the database does not hold what it says it holds.
  io::Result<std::string> end();

 private:
  const FsmState state_;
  std::string rows_bytes_;
  std::string last_key_;
  uint64_t rows_ = 0;
  uint64_t digest_ = 0;
  uint32_t checksum_ = 0;  // of the parts so far
};

// Reads an image from a source and judges it part by part. Waits where the source waits.
//
// Errors: `corrupt` with what is wrong and where, `invalid` for what only a newer release reads, those of the source. After an error
// nothing more is read.
class ImageReader {
 public:
  // `is_checked` false (a defect: see io/defence.h): takes whatever can be taken apart, and believes it.
  explicit ImageReader(raft::ImageSource& source, bool is_checked = true) : source_(source), is_checked_(is_checked) {}

  // First. An image whose newest entry type is above `newest_type` is `invalid`.
  io::Status read_head(uint32_t newest_type);
  const FsmState& state() const { return state_; }
  // For an image that has none, of a release that keeps none: its label's.
  void take_index(raft::Index label) { state_.applied_index = label; }

  // The next block's rows, to be taken apart by for_each_row; empty at the end, once the whole image is good.
  io::Result<std::string> next_block();

  // Of the blocks so far.
  uint64_t rows() const { return rows_; }

 private:
  io::Status fill(size_t bytes);
  io::Error corrupt(std::string_view what) const;
  std::string take(size_t bytes);
  io::Status check_rows(std::string_view rows);
  io::Status read_end();

  raft::ImageSource& source_;
  const bool is_checked_;
  FsmState state_;
  std::string buffer_;    // read and not yet taken
  uint64_t offset_ = 0;   // of the buffer's first byte in the image
  uint32_t checksum_ = 0;
  std::string last_key_;
  uint64_t rows_ = 0;
  uint64_t digest_ = 0;
};

// One row of a block's rows, taken off its front; false at the end, or when what is left is no row (`is_damaged` says which).
struct ImageRows {
  explicit ImageRows(std::string_view block) : rest(block) {}
  bool next();
  std::string_view key;
  std::string_view value;
  std::string_view rest;
  bool is_damaged = false;
};

}  // namespace engine::metastore
