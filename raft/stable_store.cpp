#include "raft/stable_store.h"

#include <algorithm>
#include <array>
#include <utility>

#include "io/check.h"
#include "io/crc32c.h"
#include "io/defence.h"
#include "io/probe.h"
#include "raft/bytes.h"
#include "raft/log_store.h"
#include "raft/snapshot_store.h"

namespace raft {

namespace {

constexpr const char* kPath = "raft/stable";
constexpr const char* kNewPath = "raft/stable.new";
constexpr const char* kBootstrapPath = "raft/bootstrap";
constexpr const char* kBootstrapNewPath = "raft/bootstrap.new";
constexpr std::string_view kMagic = "NARADSTB";
constexpr std::string_view kBootstrapMagic = "NARADBST";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kBlockBytes = 4096;
constexpr std::size_t kVoteAt = 74;
constexpr unsigned kBootstrapped = 1;
constexpr unsigned kRebuilding = 2;
constexpr std::size_t kBootstrapHeaderBytes = 16;
constexpr std::size_t kBootstrapBytesMax = 1u << 20;

std::uint32_t block_crc(std::string_view block) {
  std::uint32_t crc = io::crc32c(block.substr(0, 12));
  crc = io::crc32c(std::string_view("\0\0\0\0", 4), crc);
  return io::crc32c(block.substr(16), crc);
}

std::string encode(const StableRecord& record) {
  NARAD_CHECK(record.hard_state.vote.size() <= StableStore::kVoteBytesMax, "a server id fits the record");
  std::string block(kBlockBytes, '\0');
  block.replace(0, kMagic.size(), kMagic);
  put(block, 8, kVersion);
  put(block, 16, record.sequence);
  put(block, 24, record.hard_state.term);
  put(block, 32, record.store.high);
  put(block, 40, record.store.low);
  put(block, 48, record.cluster.high);
  put(block, 56, record.cluster.low);
  put(block, 64, record.log_batch);
  put(block, 72, static_cast<std::uint8_t>((record.is_bootstrapped ? kBootstrapped : 0) |
                                           (record.hard_state.is_rebuilding ? kRebuilding : 0)));
  put(block, 73, static_cast<std::uint8_t>(record.hard_state.vote.size()));
  block.replace(kVoteAt, record.hard_state.vote.size(), record.hard_state.vote);
  put(block, 12, block_crc(block));
  return block;
}

// Nothing when the copy is damaged; a newer version sets `is_newer`.
std::optional<StableRecord> decode(std::string_view block, bool& is_newer) {
  if (!block.starts_with(kMagic) || get<std::uint32_t>(block, 12) != block_crc(block)) return std::nullopt;
  if (get<std::uint32_t>(block, 8) != kVersion) {
    is_newer = true;
    return std::nullopt;
  }
  StableRecord record;
  record.sequence = get<std::uint64_t>(block, 16);
  record.hard_state.term = get<std::uint64_t>(block, 24);
  record.store = StoreId{get<std::uint64_t>(block, 32), get<std::uint64_t>(block, 40)};
  record.cluster = ClusterId{get<std::uint64_t>(block, 48), get<std::uint64_t>(block, 56)};
  record.log_batch = get<std::uint64_t>(block, 64);
  record.is_bootstrapped = (get<std::uint8_t>(block, 72) & kBootstrapped) != 0;
  record.hard_state.is_rebuilding = (get<std::uint8_t>(block, 72) & kRebuilding) != 0;
  record.hard_state.vote = block.substr(kVoteAt, get<std::uint8_t>(block, 73));
  const bool is_sound = record.store.is_known() && std::max({record.sequence, record.hard_state.term, record.log_batch}) <= kNumberMax;
  return is_sound ? std::optional(record) : std::nullopt;
}

std::uint64_t place_of(std::uint64_t sequence) { return sequence % 2 * 2 * kBlockBytes; }

io::Error corrupt(std::string_view path, std::string_view what) {
  return io::fail(io::ErrorKind::corrupt, std::string(path) + ": " + std::string(what));
}

io::Result<bool> exists(io::Disk& disk, std::string_view path) {
  auto info = disk.stat(path);
  if (info.is(io::ErrorKind::not_found)) return false;
  if (!info.ok()) return info.error();
  return true;
}

// Writes a whole file so that it is there completely or not at all.
io::Status publish(io::Disk& disk, const char* path, const char* temporary, std::string bytes) {
  auto file = disk.open(temporary, io::OpenMode::create);
  if (!file.ok()) return file.error();
  if (io::Status cut = (*file)->truncate(0); !cut.ok()) return cut;
  if (io::Status written = (*file)->write_and_sync(0, std::move(bytes)); !written.ok()) return written;
  file->reset();
  if (io::Status renamed = disk.rename(temporary, path); !renamed.ok()) return renamed;
  return disk.sync_directory("raft");
}

}  // namespace

io::Result<std::unique_ptr<StableStore>> StableStore::open(io::Disk& disk, const StoreId& new_store) {
  NARAD_CHECK(new_store.is_known(), "a store id was drawn");
  std::unique_ptr<StableStore> store(new StableStore(disk));
  auto has_record = exists(disk, kPath);
  if (!has_record.ok()) return has_record.error();
  if (*has_record) {
    if (io::Status loaded = store->load(); !loaded.ok()) return loaded.error();
    return store;
  }
  auto has_bootstrap = exists(disk, kBootstrapPath);
  if (!has_bootstrap.ok()) return has_bootstrap.error();
  auto has_log = LogStore::has_traces(disk);
  if (!has_log.ok()) return has_log.error();
  auto has_snapshot = SnapshotStore::has_traces(disk);
  if (!has_snapshot.ok()) return has_snapshot.error();
  if (*has_bootstrap || *has_log || *has_snapshot) {
    SOMETIMES("raft stable: missing record beside other raft state refused");
    const std::string found = *has_log        ? "raft/log holds entries"
                              : *has_snapshot ? "raft/snapshots holds a snapshot"
                                              : "raft/bootstrap exists";
    return corrupt(kPath, "missing, though " + found +
                              ": the votes of this server are lost; refusing to start. Restore raft/ whole, or move the whole data "
                              "directory away and let this node join its cluster as a new one");
  }
  store->is_new_ = true;
  store->record_.store = new_store;
  return store;
}

io::Status StableStore::load() {
  auto file = disk_.open(kPath, io::OpenMode::read_write);
  if (!file.ok()) return file.error();
  auto bytes = (*file)->read(0, 4 * kBlockBytes + 1);
  if (!bytes.ok()) return bytes.error();
  if (bytes->size() != 4 * kBlockBytes) return corrupt(kPath, "has " + std::to_string(bytes->size()) + " bytes, not 16384");
  bool is_newer = false;
  std::optional<StableRecord> newest;
  for (std::uint64_t copy = 0; copy < 4; ++copy) {
    const auto record = decode(std::string_view(*bytes).substr(copy * kBlockBytes, kBlockBytes), is_newer);
    if (!record || place_of(record->sequence) != copy / 2 * 2 * kBlockBytes) {
      SOMETIMES("raft stable: damaged or torn copy passed over");
      continue;
    }
    if (newest && newest->store != record->store) return corrupt(kPath, "its copies name different stores");
    if (!newest || record->sequence > newest->sequence) newest = record;
  }
  if (is_newer) {
    return io::fail(io::ErrorKind::invalid,
                    std::string(kPath) + ": written by a newer release, in a format that this one does not know");
  }
  if (!newest) return corrupt(kPath, "damaged at offset 0: no copy of the term and vote is whole");
  file_ = std::move(*file);
  record_ = std::move(*newest);
  return record_.is_bootstrapped ? load_bootstrap() : io::Status();
}

io::Status StableStore::load_bootstrap() {
  auto file = disk_.open(kBootstrapPath, io::OpenMode::read);
  if (file.is(io::ErrorKind::not_found)) return corrupt(kBootstrapPath, "missing, though raft/stable names it");
  if (!file.ok()) return file.error();
  auto bytes = (*file)->read(0, kBootstrapBytesMax);
  if (!bytes.ok()) return bytes.error();
  if (bytes->size() < kBootstrapHeaderBytes || !bytes->starts_with(kBootstrapMagic)) {
    return corrupt(kBootstrapPath, "damaged at offset 0");
  }
  const std::string_view rest = std::string_view(*bytes).substr(kBootstrapHeaderBytes);
  if (get<std::uint32_t>(*bytes, 12) != io::crc32c(rest)) return corrupt(kBootstrapPath, "damaged: its checksum differs");
  if (get<std::uint32_t>(*bytes, 8) != kVersion) {
    return io::fail(io::ErrorKind::invalid, std::string(kBootstrapPath) + ": written by a newer release");
  }
  auto configuration = decode_configuration(rest);
  if (!configuration) return corrupt(kBootstrapPath, "holds no configuration");
  bootstrap_ = std::move(*configuration);
  return {};
}

io::Status StableStore::confirm(const std::optional<Configuration>& bootstrap) {
  NARAD_CHECK(!is_confirmed_, "the store is confirmed once");
  if (io::Status made = is_new_ ? make() : rewrite(); !made.ok()) return made;
  is_confirmed_ = true;
  if (record_.is_bootstrapped || !bootstrap) return {};
  if (io::Status written = write_bootstrap(*bootstrap); !written.ok()) return written;
  record_.is_bootstrapped = true;
  bootstrap_ = *bootstrap;
  return write_record();
}

io::Status StableStore::make() {
  if (io::Status made = disk_.make_directory("raft"); !made.ok()) return made;
  if (io::Status synced = disk_.sync_directory(""); !synced.ok()) return synced;
  std::string bytes;
  for (record_.sequence = 0; record_.sequence < 2; ++record_.sequence) {
    const std::string block = encode(record_);
    bytes += block + block;
  }
  record_.sequence = 1;
  if (io::Status published = publish(disk_, kPath, kNewPath, std::move(bytes)); !published.ok()) return published;
  auto file = disk_.open(kPath, io::OpenMode::read_write);
  if (!file.ok()) return file.error();
  file_ = std::move(*file);
  return {};
}

// The copies of the newest record, one after the other; see the header.
io::Status StableStore::rewrite() {
  for (const char* directory : {"", "raft"}) {
    if (io::Status synced = disk_.sync_directory(directory); !synced.ok()) return synced;
  }
  record_.sequence += 2;
  const std::string block = encode(record_);
  const std::uint64_t place = place_of(record_.sequence);
  for (const std::uint64_t offset : {place, place + kBlockBytes}) {
    if (io::Status written = file_->write_and_sync(offset, block); !written.ok()) return written;
  }
  return {};
}

io::Status StableStore::write_bootstrap(const Configuration& bootstrap) {
  const std::string rest = encode(bootstrap);
  std::string bytes(kBootstrapHeaderBytes, '\0');
  bytes.replace(0, kBootstrapMagic.size(), kBootstrapMagic);
  put(bytes, 8, kVersion);
  put(bytes, 12, io::crc32c(rest));
  return publish(disk_, kBootstrapPath, kBootstrapNewPath, bytes + rest);
}

io::Status StableStore::write_record() {
  if (failure_) return *failure_;
  ++record_.sequence;
  const std::string block = encode(record_);
  io::Status written = file_->write_and_sync(place_of(record_.sequence), block + block);
  if (!written.ok()) failure_ = written.error();
  return written;
}

io::Status StableStore::begin_rebuilding() {
  NARAD_CHECK(is_confirmed_, "the store is confirmed before it changes");
  record_.hard_state.is_rebuilding = true;
  return write_record();
}

io::Status StableStore::save(const HardState& hard_state, const ClusterId& cluster, std::uint64_t log_batch) {
  NARAD_CHECK(is_confirmed_, "the store is confirmed before it changes");
  NARAD_CHECK(hard_state.term > record_.hard_state.term ||
                  (hard_state.term == record_.hard_state.term &&
                   (record_.hard_state.vote.empty() || hard_state.vote == record_.hard_state.vote ||
                    !io::defence(io::Defence::same_term_stepdown_clears_vote))),
              "the term never goes back, and a vote stands for its term");
  record_.hard_state = hard_state;
  if (cluster.is_known()) record_.cluster = cluster;
  record_.log_batch = std::max(record_.log_batch, log_batch);
  return write_record();
}

}  // namespace raft
