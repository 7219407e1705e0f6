#include "raft/log_format.h"

#include <cstdio>
#include <limits>

#include "io/check.h"
#include "io/crc32c.h"
#include "raft/bytes.h"

namespace raft::log_format {

namespace {

constexpr std::string_view kSegmentMagic = "NARADLOG";
constexpr std::string_view kBatchMagic = "NLB1";
constexpr std::size_t kDigits = 20;
constexpr std::string_view kSuffix = ".log";

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
  return header;
}

bool check_batch_body(std::string_view body, std::uint64_t generation, const BatchHeader& header, std::vector<Entry>& out) {
  if (io::crc32c(body, io::crc32c_salt(generation, header.first)) != header.body_crc) return false;
  if (header.entries == 0 || header.entries > body.size() / kEntryHeaderBytes) return false;
  const std::size_t before = out.size();
  for (std::uint32_t i = 0; i < header.entries; ++i) {
    const bool has_header = body.size() >= kEntryHeaderBytes;
    const std::uint32_t length = has_header ? get<std::uint32_t>(body, 8) : 0;
    if (!has_header || length > body.size() - kEntryHeaderBytes || get<std::uint8_t>(body, 12) > 2) {
      out.resize(before);
      return false;
    }
    Entry entry;
    entry.term = get<std::uint64_t>(body, 0);
    entry.index = header.first + i;
    entry.type = static_cast<EntryType>(get<std::uint8_t>(body, 12));
    if (length > 0) entry.data = std::make_shared<const std::string>(body.substr(kEntryHeaderBytes, length));
    out.push_back(std::move(entry));
    body.remove_prefix(kEntryHeaderBytes + length);
  }
  if (body.size() >= kAlignment) {
    out.resize(before);
    return false;
  }
  return true;
}

}  // namespace

std::string segment_path(std::uint64_t generation) {
  char name[kDigits + 1];
  std::snprintf(name, sizeof name, "%020llu", static_cast<unsigned long long>(generation));
  return std::string(kDirectory) + "/" + name + std::string(kSuffix);
}

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
  return header.generation == generation ? HeaderState::valid : HeaderState::damaged;
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

bool parse_batch_body(std::string_view segment, std::uint64_t generation, std::uint64_t offset, const BatchHeader& header,
                      std::vector<Entry>& out) {
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

io::Result<std::vector<Entry>> read_batch(io::File& file, std::uint64_t generation, std::uint64_t offset) {
  auto head = file.read(offset, kBatchHeaderBytes);
  if (!head.ok()) return head.error();
  const bool is_whole = head->size() == kBatchHeaderBytes;
  const std::optional<BatchHeader> header = is_whole ? check_batch_header(*head, generation, offset) : std::nullopt;
  std::vector<Entry> entries;
  if (header) {
    auto body = file.read(offset + kBatchHeaderBytes, header->body_bytes);
    if (!body.ok()) return body.error();
    if (body->size() == header->body_bytes && check_batch_body(*body, generation, *header, entries)) return entries;
  }
  return io::fail(io::ErrorKind::corrupt, file.path() + ": damaged at offset " + std::to_string(offset));
}

}  // namespace raft::log_format
