// Images and labels for tests of the snapshot store.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "io/crc32c.h"
#include "raft/snapshot_store.h"
#include "tests/support/disk_world.h"

namespace tests {

inline const raft::SnapshotSettings kSmallChunks{.chunk_bytes = 512, .sync_step_bytes = 2048};

inline raft::SnapshotLabel label(raft::Index index, raft::Term term = 3) {
  raft::SnapshotLabel made{index, term, index / 2, raft::bootstrap_configuration({{"a", "a:1"}, {"b", "b:1"}, {"c", "c:1"}})};
  made.configuration.cluster = raft::ClusterId{5, index};
  return made;
}

// Bytes that tell where and of which image they are.
inline std::string image(raft::Index index, std::size_t bytes) {
  std::string made(bytes, '\0');
  std::uint64_t state = index * 0x9e3779b97f4a7c15u + 1;
  for (char& byte : made) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>(state >> 56);
  }
  return made;
}

struct OpenedSnapshots {
  io::Status status;
  std::unique_ptr<raft::SnapshotStore> store;
};

inline OpenedSnapshots open_snapshots(io::Env& env, const raft::SnapshotSettings& settings = kSmallChunks,
                                      bool is_confirmed = true) {
  OpenedSnapshots opened;
  auto store = raft::SnapshotStore::open(env.disk, env.clock, kStore, settings);
  if (!store.ok()) {
    opened.status = store.error();
    return opened;
  }
  opened.store = std::move(*store);
  if (is_confirmed) opened.status = opened.store->confirm();
  return opened;
}

inline io::Status write_snapshot(raft::SnapshotStore& store, raft::Index index, std::size_t bytes, std::size_t piece = 300) {
  auto writer = store.write();
  if (!writer.ok()) return writer.error();
  const std::string whole = image(index, bytes);
  for (std::size_t at = 0; at < whole.size(); at += piece) {
    if (io::Status written = (*writer)->write(whole.substr(at, piece)); !written.ok()) return written;
  }
  auto published = (*writer)->publish(label(index));
  return published.ok() ? io::Status() : io::Status(published.error());
}

inline io::Result<std::string> read_snapshot(raft::SnapshotStore& store, const raft::SnapshotLabel& which) {
  auto reader = store.read(which);
  if (!reader.ok()) return reader.error();
  std::string whole;
  for (;;) {
    auto piece = (*reader)->read(700);
    if (!piece.ok()) return piece.error();
    if (piece->empty()) return whole;
    whole += *piece;
  }
}

// The chunks of a kept snapshot, as a leader sends them.
inline std::vector<raft::SnapshotChunk> chunks_of(const raft::SnapshotInfo& info, const std::string& whole) {
  std::vector<raft::SnapshotChunk> chunks;
  for (std::uint64_t at = 0; at < info.bytes; at += info.chunk_bytes) {
    std::string bytes = whole.substr(at, info.chunk_bytes);
    const std::uint32_t crc = io::crc32c(bytes);
    chunks.push_back({at, std::move(bytes), crc});
  }
  return chunks;
}

inline raft::SnapshotInfo info_of(raft::Index index, const std::string& whole, std::uint32_t chunk_bytes = 512) {
  raft::SnapshotInfo info{label(index), whole.size(), 0, chunk_bytes};
  raft::snapshot_format::Digest digest;
  digest.add(whole);
  info.digest = digest.value();
  return info;
}

}  // namespace tests
