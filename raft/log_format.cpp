#include "raft/log_format.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "io/check.h"
#include "io/crc32c.h"
#include "raft/bytes.h"

namespace raft::log_format {

namespace {

constexpr std::string_view kSegmentMagic = "NARADLOG";
constexpr std::string_view kBatchMagic = "NLB1";
constexpr std::uint8_t kReset = 1;
constexpr std::uint8_t kRecycled = 2;
constexpr std::size_t kDigits = 20;
constexpr std::string_view kSuffix = ".log";
constexpr std::string_view kSpareSuffix = ".spare";

std::uint32_t segment_crc(std::string_view block, std::uint64_t generation) {
  std::uint32_t crc = io::crc32c(block.substr(0, 12), io::crc32c_salt(generation, 0));
  crc = io::crc32c(std::string_view("\0\0\0\0", 4), crc);
  return io::crc32c(block.substr(16), crc);
}

std::uint32_t header_crc(std::string_view header, std::uint64_t generation, std::uint64_t offset) {
  return io::crc32c(header.substr(8, kBatchHeaderBytes - 8), io::crc32c_salt(generation, offset));
}

std::optional<BatchHeader> check_batch_header(std::string_view bytes, std::uint64_t generation, std::uint64_t offset) {
  if (!bytes.starts_with(kBatchMagic)) return std::nullopt;
  if (get<std::uint32_t>(bytes, 4) != header_crc(bytes, generation, offset)) return std::nullopt;
  BatchHeader header;
  header.body_bytes = get<std::uint32_t>(bytes, 8);
  header.body_crc = get<std::uint32_t>(bytes, 12);
  header.sequence = get<std::uint64_t>(bytes, 16);
  header.first = get<std::uint64_t>(bytes, 24);
  header.frontier = get<std::uint64_t>(bytes, 32);
  header.epoch = get<std::uint64_t>(bytes, 40);
  header.stable_record = get<std::uint64_t>(bytes, 48);
  header.entries = get<std::uint32_t>(bytes, 56);
  // What follows a batch of another length would stand where no batch may begin.
  const bool is_plausible = std::max({header.sequence, header.first, header.epoch, header.stable_record}) <= kNumberMax &&
                            header.body_bytes % kAlignment == 0;
  return is_plausible ? std::optional(header) : std::nullopt;
}

bool check_batch_body(std::string_view body, std::uint64_t generation, const BatchHeader& header,
                      std::vector<EntryView>& out) {
  out.clear();
  if (io::crc32c(body, io::crc32c_salt(generation, header.first)) != header.body_crc) return false;
  if (header.entries == 0 || header.entries > body.size() / kEntryHeaderBytes) return false;
  for (std::uint32_t i = 0; i < header.entries; ++i) {
    if (body.size() < kEntryHeaderBytes) return false;
    const std::uint32_t length = get<std::uint32_t>(body, 8);
    if (length > body.size() - kEntryHeaderBytes || get<std::uint8_t>(body, 12) > 2) return false;
    out.push_back(EntryView{get<std::uint64_t>(body, 0), static_cast<EntryType>(get<std::uint8_t>(body, 12)),
                            body.substr(kEntryHeaderBytes, length)});
    body.remove_prefix(kEntryHeaderBytes + length);
  }
  return body.size() < kAlignment;
}

std::string path_of(std::uint64_t generation, std::string_view suffix) {
  char name[kDigits + 1];
  std::snprintf(name, sizeof name, "%020llu", static_cast<unsigned long long>(generation));
  return std::string(kDirectory) + "/" + name + std::string(suffix);
}

}  // namespace

std::string segment_path(std::uint64_t generation) { return path_of(generation, kSuffix); }

std::string spare_path(std::uint64_t generation) { return path_of(generation, kSpareSuffix); }

bool is_spare(std::string_view file_name) { return file_name.ends_with(kSpareSuffix); }

std::optional<std::uint64_t> generation_of(std::string_view file_name) {
  if (file_name.size() != kDigits + kSuffix.size() || !file_name.ends_with(kSuffix)) return std::nullopt;
  std::uint64_t generation = 0;
  for (const char c : file_name.substr(0, kDigits)) {
    if (c < '0' || c > '9') return std::nullopt;
    const std::uint64_t digit = static_cast<std::uint64_t>(c - '0');
    if (generation > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) return std::nullopt;
    generation = generation * 10 + digit;
  }
  return generation == 0 ? std::nullopt : std::optional(generation);
}

std::string encode(const SegmentHeader& header, std::uint32_t version) {
  std::string block(kSegmentHeaderBytes, '\0');
  block.replace(0, kSegmentMagic.size(), kSegmentMagic);
  put(block, 8, version);
  put(block, 16, header.generation);
  put(block, 24, header.base_index);
  put(block, 32, header.base_term);
  put(block, 40, header.first_batch);
  put(block, 48, header.before_generation);
  put(block, 56, header.before_end);
  put(block, 64, header.filled_bytes);
  put(block, 72, header.store.high);
  put(block, 80, header.store.low);
  put(block, 88, static_cast<std::uint8_t>((header.is_reset ? kReset : 0) | (header.is_recycled ? kRecycled : 0)));
  put(block, 12, segment_crc(block, header.generation));
  return block;
}

HeaderState parse(std::string_view bytes, std::uint64_t generation, SegmentHeader& header) {
  if (is_all_zero(bytes)) return HeaderState::zero;
  if (bytes.size() < kSegmentHeaderBytes || !bytes.starts_with(kSegmentMagic)) return HeaderState::damaged;
  const std::string_view block = bytes.substr(0, kSegmentHeaderBytes);
  if (get<std::uint32_t>(block, 12) != segment_crc(block, generation)) return HeaderState::damaged;
  if (get<std::uint32_t>(block, 8) != kVersion) return HeaderState::newer_version;
  header.generation = get<std::uint64_t>(block, 16);
  header.base_index = get<std::uint64_t>(block, 24);
  header.base_term = get<std::uint64_t>(block, 32);
  header.first_batch = get<std::uint64_t>(block, 40);
  header.before_generation = get<std::uint64_t>(block, 48);
  header.before_end = get<std::uint64_t>(block, 56);
  header.filled_bytes = get<std::uint64_t>(block, 64);
  header.store = StoreId{get<std::uint64_t>(block, 72), get<std::uint64_t>(block, 80)};
  header.is_reset = (get<std::uint8_t>(block, 88) & kReset) != 0;
  header.is_recycled = (get<std::uint8_t>(block, 88) & kRecycled) != 0;
  const bool is_plausible = std::max({header.base_index, header.base_term, header.first_batch}) <= kNumberMax;
  return header.generation == generation && is_plausible ? HeaderState::valid : HeaderState::damaged;
}

std::uint64_t batch_bytes(std::span<const Entry> entries) {
  std::uint64_t bytes = kBatchHeaderBytes;
  for (const Entry& entry : entries) bytes += kEntryHeaderBytes + entry.bytes().size();
  return round_up(bytes, kAlignment);
}

void encode_batch(std::span<const Entry> entries, BatchHeader header, std::uint64_t generation, std::uint64_t offset,
                  std::string& out) {
  NARAD_CHECK(!entries.empty() && offset % kAlignment == 0, "a batch has entries and an aligned place");
  const std::size_t begin = out.size();
  const std::uint64_t total = batch_bytes(entries);
  NARAD_CHECK(total - kBatchHeaderBytes <= std::numeric_limits<std::uint32_t>::max(), "a batch fits its length field");
  out.resize(begin + total, '\0');
  std::size_t at = begin + kBatchHeaderBytes;
  for (const Entry& entry : entries) {
    const std::string_view payload = entry.bytes();
    put(out, at, entry.term);
    put(out, at + 8, static_cast<std::uint32_t>(payload.size()));
    put(out, at + 12, static_cast<std::uint8_t>(entry.type));
    out.replace(at + kEntryHeaderBytes, payload.size(), payload);
    at += kEntryHeaderBytes + payload.size();
  }
  const std::string_view body = std::string_view(out).substr(begin + kBatchHeaderBytes);
  const Index first = entries.front().index;
  out.replace(begin, kBatchMagic.size(), kBatchMagic);
  put(out, begin + 8, static_cast<std::uint32_t>(body.size()));
  put(out, begin + 12, io::crc32c(body, io::crc32c_salt(generation, first)));
  put(out, begin + 16, header.sequence);
  put(out, begin + 24, first);
  put(out, begin + 32, header.frontier);
  put(out, begin + 40, header.epoch);
  put(out, begin + 48, header.stable_record);
  put(out, begin + 56, static_cast<std::uint32_t>(entries.size()));
  put(out, begin + 4, header_crc(std::string_view(out).substr(begin), generation, offset));
}

std::optional<BatchHeader> parse_batch_header(std::string_view segment, std::uint64_t generation, std::uint64_t offset) {
  if (offset > segment.size() || segment.size() - offset < kBatchHeaderBytes) return std::nullopt;
  return check_batch_header(segment.substr(offset, kBatchHeaderBytes), generation, offset);
}

Entry to_entry(const EntryView& view, Index index) {
  Entry entry{view.term, index, view.type, nullptr};
  if (!view.payload.empty()) entry.data = std::make_shared<const std::string>(view.payload);
  return entry;
}

bool parse_batch_body(std::string_view segment, std::uint64_t generation, std::uint64_t offset, const BatchHeader& header,
                      std::vector<EntryView>& out) {
  const std::uint64_t begin = offset + kBatchHeaderBytes;
  if (header.body_bytes > segment.size() - begin) return false;
  return check_batch_body(segment.substr(begin, header.body_bytes), generation, header, out);
}

std::optional<std::uint64_t> find_batch(std::string_view segment, std::uint64_t generation, std::uint64_t from) {
  for (std::uint64_t offset = round_up(from, kAlignment); offset + kBatchHeaderBytes <= segment.size();
       offset += kAlignment) {
    if (parse_batch_header(segment, generation, offset)) return offset;
  }
  return std::nullopt;
}

// Has the next `bytes` of the file in held_, fewer at its end.
io::Status BatchReader::hold(std::uint64_t bytes) {
  if (offset_ >= held_at_ && offset_ - held_at_ + bytes <= held_.size()) return {};
  auto read = file_.read(offset_, std::max(bytes, stretch_bytes_));
  if (!read.ok()) return read.error();
  held_ = std::move(*read);
  held_at_ = offset_;
  return {};
}

io::Result<BatchReader::Batch> BatchReader::next() {
  const auto ahead = [this] { return std::string_view(held_).substr(offset_ - held_at_); };
  if (io::Status held = hold(kBatchHeaderBytes); !held.ok()) return held.error();
  std::optional<BatchHeader> header;
  if (ahead().size() >= kBatchHeaderBytes) header = check_batch_header(ahead(), generation_, offset_);
  if (header) {
    const std::uint64_t bytes = kBatchHeaderBytes + header->body_bytes;
    if (io::Status held = hold(bytes); !held.ok()) return held.error();
    if (ahead().size() >= bytes &&
        check_batch_body(ahead().substr(kBatchHeaderBytes, header->body_bytes), generation_, *header, entries_)) {
      offset_ += bytes;
      return Batch{header->first, entries_};
    }
  }
  return io::fail(io::ErrorKind::corrupt, file_.path() + ": damaged at offset " + std::to_string(offset_));
}

}  // namespace raft::log_format
