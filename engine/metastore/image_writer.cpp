#include "engine/metastore/image_writer.h"

#include <utility>

#include "engine/metastore/database.h"
#include "io/check.h"

namespace engine::metastore {

// ---- RowScan ---------------------------------------------------------------------------------------------------------------

RowScan::RowScan(std::shared_ptr<const View> view, rocksdb::Env& clock) : view_(std::move(view)), clock_(clock) {}

// The iterator lives for one slice: a longer life would keep memtables and tables that have been replaced meanwhile.
io::Status RowScan::run(const std::function<io::Status(std::string_view key, std::string_view value)>& take) {
  NARAD_CHECK(!is_done_, "a scan goes on after its end");
  const uint64_t ends_at = clock_.NowMicros() + kSliceMicros;
  size_t bytes = 0;
  std::unique_ptr<rocksdb::Iterator> rows = view_->iterate();
  if (last_key_.empty()) {
    rows->SeekToFirst();
  } else {
    rows->Seek(last_key_ + '\0');
  }
  for (; rows->Valid() && bytes < kSliceBytes && clock_.NowMicros() < ends_at; rows->Next()) {
    const std::string_view key = rows->key().ToStringView();
    const std::string_view value = rows->value().ToStringView();
    bytes += key.size() + value.size();
    last_key_ = key;
    if (!is_image_row(key)) {
      continue;
    }
    if (io::Status taken = take(key, value); !taken.ok()) {
      is_done_ = true;
      return taken;
    }
  }
  if (!rows->status().ok()) {
    is_done_ = true;
    return database_error(rows->status(), "scan of all rows");
  }
  is_done_ = !rows->Valid();
  return {};
}

// ---- ImageWriter -----------------------------------------------------------------------------------------------------------

ImageWriter::ImageWriter(std::shared_ptr<const View> view, rocksdb::Env& clock, const FsmState& state)
    : scan_(std::move(view), clock), encoder_(state) {}

ImageWriter::Piece ImageWriter::next() {
  Piece piece;
  if (!has_head_) {
    has_head_ = true;
    piece.bytes = encoder_.head();
  }
  piece.status = scan_.run([&](std::string_view key, std::string_view value) {
    io::Status added = encoder_.add(key, value);
    if (encoder_.block_bytes() >= kImageBlockBytes) {
      piece.bytes += encoder_.block();
    }
    return added;
  });
  if (!piece.status.ok() || !scan_.is_done()) {
    return piece;
  }
  if (encoder_.block_bytes() > 0) {
    piece.bytes += encoder_.block();
  }
  io::Result<std::string> end = encoder_.end();
  if (!end.ok()) {
    piece.status = end.error();
    return piece;
  }
  piece.bytes += *end;
  piece.is_last = true;
  return piece;
}

}  // namespace engine::metastore
