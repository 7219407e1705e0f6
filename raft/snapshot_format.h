// The bytes of a snapshot file: making and checking header, chunks and trailer. Pure, but for the
// read_ functions.
//
// Form, little endian:
//  header, 512 bytes at 0; of a snapshot made here it is written last, since only the whole image tells its label
//      0  8  magic "NARADSNP"
//      8  4  format version (1)
//     12  4  CRC-32C of the 512 bytes with this field zero
//     16  4  bytes of a chunk
//     20  4  zero
//     24  8  label: index of the last entry that the image contains
//     32  8  label: its term
//     40  8  label: index of the configuration in force there (0: bootstrap)
//     48 16  store id (high, low word): a snapshot of another volume is refused
//     64  8  bytes of the image
//     72  8  digest of the image
//     80  4  bytes of the encoded configuration (raft/configuration.h), which carries the cluster id
//     84  4  CRC-32C of it
//  chunks, each of them full but for the last; chunk n begins at 512 + n * (32 + bytes of a chunk)
//      0  4  magic "NSC1"
//      4  4  CRC-32C of bytes 8 to 32, salted with the chunk's number
//      8  8  number of the chunk, from 0
//     16  4  bytes of the payload
//     20  4  CRC-32C of the payload; it also travels with it
//     24  8  zero
//     32     payload
//  trailer, at the end of the file: 96 bytes and the configuration
//      0 88  as the header, but with magic "NARADSNE", and the CRC-32C at 12 is that of the whole trailer
//     88  8  zero
//     96     the encoded configuration
//
// The digest depends on the content alone, not on how it was cut into chunks. It finds accidents, not forgeries.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/disk.h"
#include "raft/pace.h"
#include "raft/snapshot_label.h"
#include "raft/types.h"

namespace raft {

// What a snapshot is, to its owner and to those it is sent to.
struct SnapshotInfo {
  SnapshotLabel label;
  std::uint64_t bytes = 0;        // of the image
  std::uint64_t digest = 0;       // of the image
  std::uint32_t chunk_bytes = 0;  // every chunk but the last has this many

  friend bool operator==(const SnapshotInfo&, const SnapshotInfo&) = default;
};

// A piece of an image on its way.
struct SnapshotChunk {
  std::uint64_t offset = 0;  // in the image
  std::string bytes;
  std::uint32_t crc = 0;     // CRC-32C of `bytes`
};

namespace snapshot_format {

inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kChunkBytesMin = 512;
inline constexpr std::uint32_t kChunkBytesMax = 1u << 20;
inline constexpr std::size_t kHeaderBytes = 512;
inline constexpr std::size_t kChunkHeaderBytes = 32;
inline constexpr std::size_t kTrailerBytes = 96;
inline constexpr std::size_t kConfigurationBytesMax = 4u << 20;
inline constexpr std::uint64_t kImageBytesMax = std::uint64_t{1} << 50;
inline constexpr std::string_view kDirectory = "raft/snapshots";

// The running digest of an image.
class Digest {
 public:
  void add(std::string_view bytes);
  std::uint64_t value() const;

 private:
  void mix(std::uint64_t word);
  std::uint64_t state_ = 0x9e3779b97f4a7c15u;
  std::uint64_t tail_ = 0;  // bytes that do not make a word yet
  std::uint64_t bytes_ = 0;
};

// "raft/snapshots/<index>-<term>.snapshot", and back from the name alone.
std::string path_of(Index index, Term term);
struct Name {
  Index index = 0;
  Term term = 0;
};
std::optional<Name> parse_name(std::string_view file_name);

std::string encode_header(const SnapshotInfo& info, const StoreId& store, std::uint32_t version = kVersion);
enum class BlockState { valid, damaged, newer_version };
// What a header says. The configuration itself stands in the trailer alone.
struct Header {
  SnapshotInfo info;
  StoreId store;
  std::uint32_t configuration_bytes = 0;
  std::uint32_t configuration_crc = 0;

  friend bool operator==(const Header&, const Header&) = default;
};
// `bytes`: the first kHeaderBytes of the file.
BlockState parse_header(std::string_view bytes, Header& header);

std::string encode_chunk(std::uint64_t number, std::string_view payload);
// The payload of a chunk; nothing when it is not the one that was written for this place.
std::optional<std::string_view> parse_chunk(std::string_view bytes, std::uint64_t number, std::uint64_t payload_bytes);

std::string encode_trailer(const SnapshotInfo& info, const StoreId& store);
// Fills in the configuration of header.info; false when the trailer is damaged, another snapshot's, or says something else.
bool parse_trailer(std::string_view bytes, Header& header);

inline std::uint64_t chunk_count(const SnapshotInfo& info) {
  return (info.bytes + info.chunk_bytes - 1) / info.chunk_bytes;
}
// Where chunk `number` begins in the file.
inline std::uint64_t chunk_at(const SnapshotInfo& info, std::uint64_t number) {
  return kHeaderBytes + number * (kChunkHeaderBytes + info.chunk_bytes);
}
// Where the trailer of a complete image begins.
inline std::uint64_t trailer_at(const SnapshotInfo& info) {
  return kHeaderBytes + chunk_count(info) * kChunkHeaderBytes + info.bytes;
}
// Bytes of the payload of chunk `number` of a complete image.
std::uint64_t chunk_payload_bytes(const SnapshotInfo& info, std::uint64_t number);

// Header and trailer of a complete file, checked against each other and the file's size. Waits. `corrupt` when damaged,
// `invalid` when of a newer format.
io::Result<Header> read_head(io::File& file);
// Chunk `number`, checked. Waits. `corrupt` names file, offset and chunk.
io::Result<SnapshotChunk> read_chunk(io::File& file, const SnapshotInfo& info, std::uint64_t number);
// Every chunk and the digest. Waits.
io::Status read_all(io::File& file, const SnapshotInfo& info, Pace& pace);

}  // namespace snapshot_format

}  // namespace raft
