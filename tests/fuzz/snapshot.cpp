// The reader of snapshots: the listing at start, the check of a whole snapshot and the stream that a state machine installs from,
// over arbitrary bytes on the simulated disk.
//
// Input: 1 byte flags (bit 0: put checksums, digest and trailer right, so that what they protect is reached), then the file. It
// stands under the name that its label gives it.

#include <algorithm>

#include "io/crc32c.h"
#include "raft/bytes.h"
#include "raft/snapshot_store.h"
#include "tests/fuzz/support/fuzz.h"
#include "tests/support/snapshots.h"

namespace fuzz {

namespace {

using tests::DiskWorld;
namespace format = raft::snapshot_format;

// Of the world around the reader, and of what the bytes on its disk cost.
constexpr std::uint64_t kWorldBytes = 4u << 20;

// The checksum at offset 12 of a header or trailer, over the block with that field zero.
void put_block_crc(std::string& bytes, std::size_t at, std::size_t length) {
  raft::put(bytes, at + 12, std::uint32_t{0});
  raft::put(bytes, at + 12, io::crc32c(std::string_view(bytes).substr(at, length)));
}

void repair(std::string& bytes) {
  if (bytes.size() < format::kHeaderBytes + format::kTrailerBytes) return;
  raft::SnapshotInfo info;
  info.chunk_bytes = std::max(raft::get<std::uint32_t>(bytes, 16), format::kChunkBytesMin);
  info.bytes = raft::get<std::uint64_t>(bytes, 64);
  if (info.chunk_bytes > format::kChunkBytesMax || info.bytes > bytes.size()) return;
  const std::uint64_t trailer = format::trailer_at(info);
  if (trailer + format::kTrailerBytes > bytes.size()) return;
  format::Digest digest;
  for (std::uint64_t n = 0; n < format::chunk_count(info); ++n) {
    const std::uint64_t at = format::chunk_at(info, n);
    const std::string payload = bytes.substr(at + format::kChunkHeaderBytes, format::chunk_payload_bytes(info, n));
    const std::string chunk = format::encode_chunk(n, payload);
    bytes.replace(at, chunk.size(), chunk);
    digest.add(payload);
  }
  const std::string_view configuration = std::string_view(bytes).substr(trailer + format::kTrailerBytes);
  bytes.replace(0, 8, "NARADSNP");
  raft::put(bytes, 8, format::kVersion);
  raft::put(bytes, 16, info.chunk_bytes);
  raft::put(bytes, 48, tests::kStore.high);
  raft::put(bytes, 56, tests::kStore.low);
  raft::put(bytes, 72, digest.value());
  raft::put(bytes, 80, static_cast<std::uint32_t>(configuration.size()));
  raft::put(bytes, 84, io::crc32c(configuration));
  bytes.replace(trailer, 88, bytes, 0, 88);
  bytes.replace(trailer, 8, "NARADSNE");
  put_block_crc(bytes, 0, format::kHeaderBytes);
  put_block_crc(bytes, trailer, bytes.size() - trailer);
}

// A damaged place is named by file and offset; what concerns the whole file by the file.
void check_refusal(const io::Error& error) {
  NARAD_CHECK(error.kind == io::ErrorKind::corrupt || error.kind == io::ErrorKind::invalid, "bytes on the disk are no other error");
  NARAD_CHECK(error.message.find("raft/snapshots/") != std::string::npos, "a refusal names the file");
  const bool is_whole_file = error.kind == io::ErrorKind::invalid || error.message.find("belongs to store") != std::string::npos ||
                             error.message.find("its label is not that of its name") != std::string::npos;
  NARAD_CHECK(is_whole_file || error.message.find("damaged at offset ") != std::string::npos, "damage names its place");
}

void check_kept(raft::SnapshotStore& store, const raft::SnapshotInfo& info) {
  const auto whole = tests::read_snapshot(store, info.label);
  const io::Status verified = store.verify(info.label);
  NARAD_CHECK(whole.ok() == verified.ok(), "reading a snapshot finds what checking it finds");
  if (!verified.ok()) {
    check_refusal(whole.error());
    check_refusal(verified.error());
    NARAD_CHECK(store.kept().empty(), "what was found damaged is no longer kept");
    return;
  }
  NARAD_CHECK(whole->size() == info.bytes, "an image has the length that it says");
  const raft::SnapshotInfo again = [&] {
    format::Header header;
    NARAD_CHECK(format::parse_header(format::encode_header(info, tests::kStore), header) == format::BlockState::valid &&
                    format::parse_trailer(format::encode_trailer(info, tests::kStore), header),
                "what was read can be written");
    return header.info;
  }();
  NARAD_CHECK(again == info, "decode(encode(x)) is x");
}

void put_file(io::Env& env, const std::string& path, const std::string& bytes) {
  NARAD_CHECK(env.disk.make_directory("raft/snapshots").ok(), "the folder is made");
  auto file = env.disk.open(path, io::OpenMode::create);
  NARAD_CHECK(file.ok() && (bytes.empty() || (*file)->write(0, bytes).ok()) && (*file)->sync().ok(), "the file is there");
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{512}, std::size_t{1300}}) {
    DiskWorld disk(1);
    disk.run([&](io::Env& env) {
      auto opened = tests::open_snapshots(env);
      NARAD_CHECK(opened.status.ok() && tests::write_snapshot(*opened.store, 800, bytes).ok(), "the seed is written");
    });
    const std::string file = disk.bytes(format::path_of(800, 3));
    all.push_back(std::string(1, '\0') + file);
    all.push_back(std::string(1, '\1') + file);
  }
  return all;
}

void run_one(std::string_view input) {
  Input in(input);
  const std::uint8_t flags = in.byte();
  std::string bytes(in.rest());
  if ((flags & 1) != 0) repair(bytes);
  const bool has_label = bytes.size() >= 40;
  const std::string path = has_label ? format::path_of(raft::get<std::uint64_t>(bytes, 24), raft::get<std::uint64_t>(bytes, 32))
                                     : format::path_of(1, 1);
  const AllocationBound bound(kWorldBytes + 64 * bytes.size());
  DiskWorld disk(1);
  disk.run([&](io::Env& env) {
    put_file(env, path, bytes);
    auto opened = tests::open_snapshots(env, tests::kSmallChunks, false);
    if (!opened.status.ok()) return check_refusal(opened.status.error());
    raft::SnapshotStore& store = *opened.store;
    NARAD_CHECK(store.kept().size() + store.damaged().size() == 1, "a file under a snapshot's name is kept or damaged");
    for (const auto& damaged : store.damaged()) check_refusal(io::fail(io::ErrorKind::corrupt, damaged.reason));
    NARAD_CHECK(disk.bytes(path) == bytes, "open() changes nothing on the disk");
    NARAD_CHECK(store.confirm().ok(), "a store that opened can be confirmed");
    if (store.kept().empty()) return;
    const raft::SnapshotInfo info = store.kept()[0];
    check_kept(store, info);
  });
}

}  // namespace fuzz
