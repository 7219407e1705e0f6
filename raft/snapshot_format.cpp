#include "raft/snapshot_format.h"

#include <cstdio>
#include <limits>
#include <utility>

#include "io/check.h"
#include "io/crc32c.h"
#include "raft/bytes.h"

namespace raft::snapshot_format {

namespace {

constexpr std::string_view kHeaderMagic = "NARADSNP";
constexpr std::string_view kTrailerMagic = "NARADSNE";
constexpr std::string_view kChunkMagic = "NSC1";
constexpr std::string_view kSuffix = ".snapshot";
constexpr std::size_t kDigits = 20;

std::uint32_t crc_without_field(std::string_view block) {
  std::uint32_t crc = io::crc32c(block.substr(0, 12));
  crc = io::crc32c(std::string_view("\0\0\0\0", 4), crc);
  return io::crc32c(block.substr(16), crc);
}

// What header and trailer have in common: bytes 0 to 88, but for the checksum.
void fill(std::string& block, std::string_view magic, const SnapshotInfo& info, const StoreId& store, std::string_view configuration,
          std::uint32_t version) {
  block.replace(0, magic.size(), magic);
  put(block, 8, version);
  put(block, 16, info.chunk_bytes);
  put(block, 24, info.label.index);
  put(block, 32, info.label.term);
  put(block, 40, info.label.configuration_index);
  put(block, 48, store.high);
  put(block, 56, store.low);
  put(block, 64, info.bytes);
  put(block, 72, info.digest);
  put(block, 80, static_cast<std::uint32_t>(configuration.size()));
  put(block, 84, io::crc32c(configuration));
}

Header read_fields(std::string_view block) {
  Header header;
  header.info.chunk_bytes = get<std::uint32_t>(block, 16);
  header.info.label.index = get<std::uint64_t>(block, 24);
  header.info.label.term = get<std::uint64_t>(block, 32);
  header.info.label.configuration_index = get<std::uint64_t>(block, 40);
  header.store = StoreId{get<std::uint64_t>(block, 48), get<std::uint64_t>(block, 56)};
  header.info.bytes = get<std::uint64_t>(block, 64);
  header.info.digest = get<std::uint64_t>(block, 72);
  header.configuration_bytes = get<std::uint32_t>(block, 80);
  header.configuration_crc = get<std::uint32_t>(block, 84);
  return header;
}

bool is_within_bounds(const Header& header) {
  return header.info.chunk_bytes >= kChunkBytesMin && header.info.chunk_bytes <= kChunkBytesMax &&
         header.configuration_bytes <= kConfigurationBytesMax && header.info.bytes <= kImageBytesMax;
}

std::optional<std::uint64_t> parse_digits(std::string_view text) {
  std::uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    const std::uint64_t digit = static_cast<std::uint64_t>(c - '0');
    if (number > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) return std::nullopt;
    number = number * 10 + digit;
  }
  return number;
}

io::Error damaged(const io::File& file, std::uint64_t offset, const std::string& what) {
  return io::fail(io::ErrorKind::corrupt, file.path() + ": damaged at offset " + std::to_string(offset) + ": " + what);
}

}  // namespace

void Digest::mix(std::uint64_t word) {
  state_ = (state_ ^ word) * 0xff51afd7ed558ccdu;
  state_ ^= state_ >> 32;
}

void Digest::add(std::string_view bytes) {
  while (!bytes.empty() && bytes_ % 8 != 0) {
    tail_ |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[0])) << (bytes_ % 8 * 8);
    bytes.remove_prefix(1);
    if (++bytes_ % 8 == 0) mix(std::exchange(tail_, 0));
  }
  for (; bytes.size() >= 8; bytes.remove_prefix(8), bytes_ += 8) mix(get<std::uint64_t>(bytes, 0));
  for (const char c : bytes) tail_ |= static_cast<std::uint64_t>(static_cast<unsigned char>(c)) << (bytes_++ % 8 * 8);
}

std::uint64_t Digest::value() const {
  Digest end = *this;
  end.mix(tail_);
  end.mix(bytes_);
  return end.state_;
}

std::string path_of(Index index, Term term) {
  char name[2 * kDigits + 2];
  std::snprintf(name, sizeof name, "%020llu-%020llu", static_cast<unsigned long long>(index),
                static_cast<unsigned long long>(term));
  return std::string(kDirectory) + "/" + name + std::string(kSuffix);
}

std::optional<Name> parse_name(std::string_view file_name) {
  if (file_name.size() != 2 * kDigits + 1 + kSuffix.size() || !file_name.ends_with(kSuffix)) return std::nullopt;
  if (file_name[kDigits] != '-') return std::nullopt;
  const auto index = parse_digits(file_name.substr(0, kDigits));
  const auto term = parse_digits(file_name.substr(kDigits + 1, kDigits));
  if (!index || !term) return std::nullopt;
  return Name{*index, *term};
}

std::string encode_header(const SnapshotInfo& info, const StoreId& store, std::uint32_t version) {
  std::string block(kHeaderBytes, '\0');
  fill(block, kHeaderMagic, info, store, encode(info.label.configuration), version);
  put(block, 12, crc_without_field(block));
  return block;
}

BlockState parse_header(std::string_view bytes, Header& header) {
  if (bytes.size() < kHeaderBytes || !bytes.starts_with(kHeaderMagic)) return BlockState::damaged;
  const std::string_view block = bytes.substr(0, kHeaderBytes);
  if (get<std::uint32_t>(block, 12) != crc_without_field(block)) return BlockState::damaged;
  if (get<std::uint32_t>(block, 8) != kVersion) return BlockState::newer_version;
  header = read_fields(block);
  return is_within_bounds(header) ? BlockState::valid : BlockState::damaged;
}

std::string encode_chunk(std::uint64_t number, std::string_view payload) {
  std::string out(kChunkHeaderBytes, '\0');
  out.reserve(kChunkHeaderBytes + payload.size());
  out.replace(0, kChunkMagic.size(), kChunkMagic);
  put(out, 8, number);
  put(out, 16, static_cast<std::uint32_t>(payload.size()));
  put(out, 20, io::crc32c(payload));
  put(out, 4, io::crc32c(std::string_view(out).substr(8, kChunkHeaderBytes - 8), io::crc32c_salt(number, 0)));
  out.append(payload);
  return out;
}

std::optional<std::string_view> parse_chunk(std::string_view bytes, std::uint64_t number, std::uint64_t payload_bytes) {
  if (bytes.size() < kChunkHeaderBytes + payload_bytes || !bytes.starts_with(kChunkMagic)) return std::nullopt;
  const std::string_view head = bytes.substr(0, kChunkHeaderBytes);
  if (get<std::uint32_t>(head, 4) != io::crc32c(head.substr(8), io::crc32c_salt(number, 0))) return std::nullopt;
  if (get<std::uint64_t>(head, 8) != number || get<std::uint32_t>(head, 16) != payload_bytes) return std::nullopt;
  const std::string_view payload = bytes.substr(kChunkHeaderBytes, payload_bytes);
  if (get<std::uint32_t>(head, 20) != io::crc32c(payload)) return std::nullopt;
  return payload;
}

std::string encode_trailer(const SnapshotInfo& info, const StoreId& store) {
  const std::string configuration = encode(info.label.configuration);
  std::string block(kTrailerBytes, '\0');
  fill(block, kTrailerMagic, info, store, configuration, kVersion);
  block += configuration;
  put(block, 12, crc_without_field(block));
  return block;
}

bool parse_trailer(std::string_view bytes, Header& header) {
  if (bytes.size() != kTrailerBytes + header.configuration_bytes || !bytes.starts_with(kTrailerMagic)) return false;
  if (get<std::uint32_t>(bytes, 12) != crc_without_field(bytes) || get<std::uint32_t>(bytes, 8) != kVersion) return false;
  if (read_fields(bytes) != header) return false;
  const std::string_view encoded = bytes.substr(kTrailerBytes);
  if (io::crc32c(encoded) != header.configuration_crc) return false;
  auto configuration = decode_configuration(encoded);
  if (!configuration) return false;
  header.info.label.configuration = std::move(*configuration);
  return true;
}

std::uint64_t chunk_payload_bytes(const SnapshotInfo& info, std::uint64_t number) {
  const std::uint64_t count = chunk_count(info);
  NARAD_CHECK(number < count, "the image has this chunk");
  return number + 1 < count ? info.chunk_bytes : info.bytes - number * info.chunk_bytes;
}

io::Result<Header> read_head(io::File& file) {
  auto bytes = file.read(0, kHeaderBytes);
  if (!bytes.ok()) return bytes.error();
  Header header;
  switch (parse_header(*bytes, header)) {
    case BlockState::damaged: return damaged(file, 0, "the header");
    case BlockState::newer_version:
      return io::fail(io::ErrorKind::invalid,
                      file.path() + ": written by a newer release, in a format that this one does not know");
    case BlockState::valid: break;
  }
  auto size = file.size();
  if (!size.ok()) return size.error();
  const std::uint64_t at = trailer_at(header.info);
  if (*size != at + kTrailerBytes + header.configuration_bytes) {
    return damaged(file, *size, "the file has another size than its header says");
  }
  auto trailer = file.read(at, kTrailerBytes + header.configuration_bytes);
  if (!trailer.ok()) return trailer.error();
  if (!parse_trailer(*trailer, header)) return damaged(file, at, "the trailer");
  return header;
}

io::Result<SnapshotChunk> read_chunk(io::File& file, const SnapshotInfo& info, std::uint64_t number) {
  const std::uint64_t payload_bytes = chunk_payload_bytes(info, number);
  auto bytes = file.read(chunk_at(info, number), kChunkHeaderBytes + payload_bytes);
  if (!bytes.ok()) return bytes.error();
  if (!parse_chunk(*bytes, number, payload_bytes)) {
    return damaged(file, chunk_at(info, number), "chunk " + std::to_string(number));
  }
  SnapshotChunk chunk{number * info.chunk_bytes, std::move(*bytes), 0};
  chunk.crc = get<std::uint32_t>(chunk.bytes, 20);
  chunk.bytes.erase(0, kChunkHeaderBytes);
  return chunk;
}

io::Status read_all(io::File& file, const SnapshotInfo& info, Pace& pace) {
  Digest digest;
  for (std::uint64_t number = 0; number < chunk_count(info); ++number) {
    pace.pass(chunk_payload_bytes(info, number));
    auto chunk = read_chunk(file, info, number);
    if (!chunk.ok()) return chunk.error();
    digest.add(chunk->bytes);
  }
  if (digest.value() != info.digest) return damaged(file, kHeaderBytes, "the digest of the image differs");
  return {};
}

}  // namespace raft::snapshot_format
