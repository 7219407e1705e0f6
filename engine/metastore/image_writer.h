// Takes an image's rows from the database, a slice at a time, on the store lane: rows in key order at one RocksDB snapshot, whatever is
// applied meanwhile. A slice is bounded in bytes and in time, so that applies queued behind it wait for a few milliseconds at
// most; between slices nothing is held but the snapshot and the rows of one unfinished block.
#pragma once

#include <rocksdb/env.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "engine/metastore/image.h"

namespace engine::metastore {

class View;

inline constexpr size_t kSliceBytes = 256u << 10;
inline constexpr uint64_t kSliceMicros = 2000;

// All rows of a view but the database's own, in key order and in slices. On the lane only.
class RowScan {
 public:
  // `clock`: the environment of the view's database; outlives the scan.
  RowScan(std::shared_ptr<const View> view, rocksdb::Env& clock);

  // Hands rows to `take` until the slice's bounds are reached or no row is left. An error of `take` or of the read ends the scan.
  io::Status run(const std::function<io::Status(std::string_view key, std::string_view value)>& take);
  bool is_done() const { return is_done_; }

 private:
  std::shared_ptr<const View> view_;
  rocksdb::Env& clock_;
  std::string last_key_;  // empty before the first slice
  bool is_done_ = false;
};

class ImageWriter {
 public:
  // `state`: what the view's rows come to.
  ImageWriter(std::shared_ptr<const View> view, rocksdb::Env& clock, const FsmState& state);

  struct Piece {
    io::Status status;
    std::string bytes;  // may be empty: rows were read, but no block is full yet
    bool is_last = false;
  };
  // The image's next bytes: at most a slice of rows and one block more.
  Piece next();

 private:
  RowScan scan_;
  ImageEncoder encoder_;
  bool has_head_ = false;
};

}  // namespace engine::metastore
