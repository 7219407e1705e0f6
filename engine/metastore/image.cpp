#include "engine/metastore/image.h"

#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/crc32c.h"
#include "io/probe.h"
#include "raft/bytes.h"

namespace engine::metastore {

namespace {

constexpr std::string_view kMagic = "NARADIMG";
constexpr size_t kFixedHead = kMagic.size() + 4 + 4;
constexpr size_t kFields = 8 + 8 + 4 + 8;
// A later release's head may be longer, within reason.
constexpr uint32_t kFieldsMax = 4096;
constexpr size_t kChecksum = 4;
constexpr size_t kBlockHead = 4 + kChecksum;
constexpr size_t kEnd = 8 + 8 + kChecksum;
constexpr size_t kRowHead = 4 + 4;
constexpr size_t kReadBytes = 64u << 10;

template <typename Number>
void append(std::string& bytes, Number number) {
  bytes.resize(bytes.size() + sizeof number);
  raft::put(bytes, bytes.size() - sizeof number, number);
}

// Appends the checksum of what stands from `begin` on, continued from `checksum`, which becomes it.
void seal(std::string& bytes, size_t begin, uint32_t& checksum) {
  checksum = io::crc32c(std::string_view(bytes).substr(begin), checksum);
  append(bytes, checksum);
}

// Whether `bytes` ends with its checksum, continued from `checksum`, which becomes it.
bool is_sealed(std::string_view bytes, uint32_t& checksum) {
  const std::string_view body = bytes.substr(0, bytes.size() - kChecksum);
  checksum = io::crc32c(body, checksum);
  return raft::get<uint32_t>(bytes, body.size()) == checksum;
}

}  // namespace

bool is_image_row(std::string_view row_key) { return !row_key.starts_with("fsm_meta/"); }

// ---- ImageEncoder ----------------------------------------------------------------------------------------------------------

std::string ImageEncoder::head() {
  std::string bytes(kMagic);
  append<uint32_t>(bytes, kImageFormat);
  append<uint32_t>(bytes, kFields);
  append<uint64_t>(bytes, state_.applied_index);
  append<uint64_t>(bytes, state_.applied_term);
  append<uint32_t>(bytes, state_.newest_type);
  append<uint64_t>(bytes, state_.digest);
  NARAD_CHECK(bytes.size() == kFixedHead + kFields, "the head's fields have the length that it gives");
  seal(bytes, 0, checksum_);
  return bytes;
}

io::Status ImageEncoder::add(std::string_view key, std::string_view value) {
  NARAD_CHECK(is_image_row(key), "the database's own row in an image");
  NARAD_CHECK(rows_ == 0 || key > last_key_, "rows of an image come in key order");
  if (kRowHead + key.size() + value.size() > kImageBlockBytesMax) {
    return io::fail(io::ErrorKind::invalid, "row " + std::string(key) + " is too large for an image (" +
                                                std::to_string(value.size()) + " bytes)");
  }
  append(rows_bytes_, static_cast<uint32_t>(key.size()));
  append(rows_bytes_, static_cast<uint32_t>(value.size()));
  rows_bytes_.append(key).append(value);
  last_key_ = key;
  ++rows_;
  digest_ += row_hash(key, value);
  return {};
}

std::string ImageEncoder::block() {
  NARAD_CHECK(!rows_bytes_.empty() && rows_bytes_.size() <= kImageBlockBytesMax + kImageBlockBytes, "a block without rows");
  std::string bytes;
  bytes.reserve(kBlockHead + rows_bytes_.size() + kChecksum);
  append(bytes, static_cast<uint32_t>(rows_bytes_.size()));
  seal(bytes, 0, checksum_);
  const size_t begin = bytes.size();
  bytes += rows_bytes_;
  seal(bytes, begin, checksum_);
  rows_bytes_.clear();
  if (rows_bytes_.capacity() > 4 * kImageBlockBytes) {
    rows_bytes_.shrink_to_fit();
  }
  return bytes;
}

io::Result<std::string> ImageEncoder::end() {
  NARAD_CHECK(rows_bytes_.empty(), "rows that no block took");
  if (digest_ != state_.digest) {
    return io::fail(io::ErrorKind::corrupt, "the rows of fsm.db do not add up to the digest that it keeps of them");
  }
  std::string bytes;
  append<uint32_t>(bytes, 0);
  seal(bytes, 0, checksum_);
  const size_t begin = bytes.size();
  append(bytes, rows_);
  append(bytes, digest_);
  seal(bytes, begin, checksum_);
  return bytes;
}

// ---- ImageRows -------------------------------------------------------------------------------------------------------------

bool ImageRows::next() {
  if (rest.empty()) {
    return false;
  }
  is_damaged = true;
  if (rest.size() < kRowHead) {
    return false;
  }
  const uint64_t key_bytes = raft::get<uint32_t>(rest, 0);
  const uint64_t value_bytes = raft::get<uint32_t>(rest, 4);
  if (key_bytes == 0 || kRowHead + key_bytes + value_bytes > rest.size()) {
    return false;
  }
  is_damaged = false;
  key = rest.substr(kRowHead, key_bytes);
  value = rest.substr(kRowHead + key_bytes, value_bytes);
  rest.remove_prefix(kRowHead + key_bytes + value_bytes);
  return true;
}

// ---- ImageReader -----------------------------------------------------------------------------------------------------------

io::Error ImageReader::corrupt(std::string_view what) const {
  return io::fail(io::ErrorKind::corrupt, "image at byte " + std::to_string(offset_) + ": " + std::string(what));
}

// Until the buffer holds `bytes`, or the source has no more (then `corrupt`).
io::Status ImageReader::fill(size_t bytes) {
  while (buffer_.size() < bytes) {
    io::Result<std::string> piece = source_.read(std::max(kReadBytes, std::min(bytes - buffer_.size(), size_t{1} << 20)));
    if (!piece.ok()) {
      return piece.error();
    }
    if (piece->empty()) {
      return corrupt("it ends too early");
    }
    buffer_ += *piece;
  }
  return {};
}

std::string ImageReader::take(size_t bytes) {
  std::string taken = buffer_.substr(0, bytes);
  buffer_.erase(0, bytes);
  offset_ += bytes;
  return taken;
}

io::Status ImageReader::read_head(uint32_t newest_type) {
  if (io::Status filled = fill(kFixedHead); !filled.ok()) {
    return filled;
  }
  if (std::string_view(buffer_).substr(0, kMagic.size()) != kMagic) {
    return corrupt("it is none of ours");
  }
  const uint32_t format = raft::get<uint32_t>(buffer_, kMagic.size());
  const uint32_t fields = raft::get<uint32_t>(buffer_, kMagic.size() + 4);
  if (fields < kFields || fields > kFieldsMax) {
    return corrupt("its head cannot be read");
  }
  if (io::Status filled = fill(kFixedHead + fields + kChecksum); !filled.ok()) {
    return filled;
  }
  const std::string head = take(kFixedHead + fields + kChecksum);
  if (!is_sealed(head, checksum_) && is_checked_) {
    return corrupt("its head is damaged");
  }
  if (format > kImageFormat) {
    SOMETIMES("metastore: an image of a newer format is refused");
    return io::fail(io::ErrorKind::invalid, "the raft snapshot has format " + std::to_string(format) +
                                                ", written by a newer Narad release than this build, which reads formats up to " +
                                                std::to_string(kImageFormat));
  }
  state_.applied_index = raft::get<uint64_t>(head, kFixedHead);
  state_.applied_term = raft::get<uint64_t>(head, kFixedHead + 8);
  state_.newest_type = raft::get<uint32_t>(head, kFixedHead + 16);
  state_.digest = raft::get<uint64_t>(head, kFixedHead + 20);
  if (state_.newest_type > newest_type) {
    SOMETIMES("metastore: an image of a newer release is refused");
    return io::fail(io::ErrorKind::invalid,
                    "the raft snapshot holds raft entry type " + std::to_string(state_.newest_type) +
                        ", written by a newer Narad release than this build, which knows entry types up to " +
                        std::to_string(newest_type) + "; run that release or newer");
  }
  return {};
}

io::Status ImageReader::check_rows(std::string_view block) {
  ImageRows rows(block);
  while (rows.next()) {
    if (!is_image_row(rows.key) || (rows_ > 0 && rows.key <= last_key_)) {
      return corrupt("its rows are not in order");
    }
    last_key_ = rows.key;
    digest_ += row_hash(rows.key, rows.value);
    ++rows_;
  }
  return rows.is_damaged ? io::Status(corrupt("a row cannot be read")) : io::Status();
}

io::Status ImageReader::read_end() {
  if (io::Status filled = fill(kEnd); !filled.ok()) {
    return filled;
  }
  const std::string end = take(kEnd);
  if (!is_checked_) {
    return {};
  }
  if (!is_sealed(end, checksum_)) {
    return corrupt("its end is damaged");
  }
  if (raft::get<uint64_t>(end, 0) != rows_ || raft::get<uint64_t>(end, 8) != digest_ || digest_ != state_.digest) {
    return corrupt("its rows do not add up to what it says it holds");
  }
  if (!buffer_.empty()) {
    return corrupt("something follows its end");
  }
  io::Result<std::string> rest = source_.read(1);
  if (!rest.ok()) {
    return rest.error();
  }
  return rest->empty() ? io::Status() : io::Status(corrupt("something follows its end"));
}

io::Result<std::string> ImageReader::next_block() {
  if (io::Status filled = fill(kBlockHead); !filled.ok()) {
    return filled.error();
  }
  const std::string head = take(kBlockHead);
  const size_t bytes = raft::get<uint32_t>(head, 0);
  if ((!is_sealed(head, checksum_) && is_checked_) || bytes > kImageBlockBytesMax + kImageBlockBytes) {
    return corrupt("a block's head is damaged");
  }
  if (bytes == 0) {
    io::Status ended = read_end();
    return ended.ok() ? io::Result<std::string>(std::string()) : io::Result<std::string>(ended.error());
  }
  if (io::Status filled = fill(bytes + kChecksum); !filled.ok()) {
    return filled.error();
  }
  std::string block = take(bytes + kChecksum);
  if (!is_sealed(block, checksum_) && is_checked_) {
    return corrupt("a block is damaged");
  }
  block.resize(bytes);
  if (is_checked_) {
    if (io::Status checked = check_rows(block); !checked.ok()) {
      return checked.error();
    }
  }
  return block;
}

}  // namespace engine::metastore
