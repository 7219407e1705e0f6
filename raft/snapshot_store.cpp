#include "raft/snapshot_store.h"

#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/defence.h"
#include "io/probe.h"
#include "raft/snapshot_files.h"

namespace raft {

using namespace snapshot_format;

// ---- Opening -----------------------------------------------------------------------------------------------------------------

io::Result<std::unique_ptr<SnapshotStore>> SnapshotStore::open(io::Disk& disk, io::Clock& clock, const StoreId& store,
                                                               SnapshotSettings settings) {
  NARAD_CHECK(settings.chunk_bytes >= kChunkBytesMin && settings.chunk_bytes <= kChunkBytesMax && settings.sync_step_bytes > 0,
              "the snapshot store's settings are within their bounds");
  std::unique_ptr<SnapshotStore> snapshots(new SnapshotStore(disk, clock, store, settings));
  auto names = disk.list(kDirectory);
  if (names.is(io::ErrorKind::not_found)) return snapshots;
  if (!names.ok()) return names.error();
  for (auto name = names->rbegin(); name != names->rend(); ++name) {
    if (io::Status looked = snapshots->look_at(*name); !looked.ok()) return looked.error();
  }
  return snapshots;
}

// By name, newest first.
io::Status SnapshotStore::look_at(const std::string& file_name) {
  const std::string path = std::string(kDirectory) + "/" + file_name;
  const std::optional<Name> name = parse_name(file_name);
  if (!name) {
    if (file_name.starts_with(snapshot_files::kWritingPrefix)) left_over_.push_back(path);
    return {};
  }
  auto file = disk_.open(path, io::OpenMode::read);
  if (!file.ok()) return file.error();
  auto header = read_head(**file);
  if (header.is(io::ErrorKind::corrupt)) {
    SOMETIMES("raft snapshot: damaged snapshot not listed");
    damaged_.push_back(Damaged{path, name->index, header.error().message});
    return {};
  }
  if (!header.ok()) return header.error();
  if (header->store != store_) {
    SOMETIMES("raft snapshot: snapshot of another volume refused");
    return io::fail(io::ErrorKind::corrupt, path + ": belongs to store " + header->store.to_string() + ", not to this one (" +
                                                store_.to_string() + ")");
  }
  const SnapshotLabel& label = header->info.label;
  if (label.index != name->index || label.term != name->term) {
    damaged_.push_back(Damaged{path, name->index, path + ": its label is not that of its name"});
    return {};
  }
  if (kept_.size() < 2) {
    kept_.push_back(std::move(header->info));
  } else {
    left_over_.push_back(path);  // a crash came before it was removed
  }
  return {};
}

io::Status SnapshotStore::confirm() {
  NARAD_CHECK(!is_confirmed_, "the store is confirmed once");
  for (const char* directory : {"raft", "raft/snapshots"}) {
    if (io::Status made = disk_.make_directory(directory); !made.ok()) return made;
  }
  for (const char* directory : {"", "raft", "raft/snapshots"}) {
    if (io::Status synced = disk_.sync_directory(directory); !synced.ok()) return synced;
  }
  for (const std::string& path : left_over_) {
    SOMETIMES("raft snapshot: leftover removed");
    if (io::Status removed = disk_.remove(path); !removed.ok()) return removed;
  }
  left_over_.clear();
  if (io::Status synced = disk_.sync_directory(kDirectory); !synced.ok()) return synced;
  is_confirmed_ = true;
  return {};
}

io::Result<bool> SnapshotStore::has_traces(io::Disk& disk) {
  auto names = disk.list(kDirectory);
  if (names.is(io::ErrorKind::not_found)) return false;
  if (!names.ok()) return names.error();
  return std::any_of(names->begin(), names->end(), [](const std::string& name) { return parse_name(name).has_value(); });
}

io::Status SnapshotStore::drop_all() {
  NARAD_CHECK(is_confirmed_ && !is_writing_ && !is_receiving_, "snapshots are dropped before any is written");
  std::vector<std::string> paths;
  for (const SnapshotInfo& info : kept_) paths.push_back(path_of(info.label.index, info.label.term));
  for (const Damaged& each : damaged_) paths.push_back(each.path);
  for (const std::string& path : paths) {
    if (io::Status removed = disk_.remove(path); !removed.ok() && !removed.is(io::ErrorKind::not_found)) return removed;
  }
  kept_.clear();
  damaged_.clear();
  return disk_.sync_directory(kDirectory);
}

io::Status SnapshotStore::verify(const SnapshotLabel& label, std::uint64_t bytes_per_second) {
  auto reader = read(label);
  if (!reader.ok()) return reader.error();
  const SnapshotInfo info = (*reader)->info();
  Pace pace(clock_, bytes_per_second);
  io::Status checked = read_all(*(*reader)->file_, info, pace);
  if (checked.is(io::ErrorKind::corrupt)) note_damaged(info, checked.error().message);
  return checked;
}

void SnapshotStore::note_damaged(const SnapshotInfo& info, std::string reason) {
  SOMETIMES("raft snapshot: damage found by reading");
  if (std::erase(kept_, info) == 0) return;
  damaged_.push_back(Damaged{path_of(info.label.index, info.label.term), info.label.index, std::move(reason)});
  std::stable_sort(damaged_.begin(), damaged_.end(), [](const Damaged& a, const Damaged& b) { return a.index > b.index; });
}

// ---- Beginning -----------------------------------------------------------------------------------------------------------------

io::Status SnapshotStore::refuse_if_covered(Index index) const {
  if (kept_.empty() || kept_.front().label.index < index) return {};
  return io::fail(io::ErrorKind::exists, "raft/snapshots: a snapshot at index " + std::to_string(kept_.front().label.index) +
                                             " is kept, one at " + std::to_string(index) + " is not needed");
}

io::Result<std::unique_ptr<SnapshotWriter>> SnapshotStore::write(std::uint64_t bytes_per_second) {
  NARAD_CHECK(is_confirmed_, "the store is confirmed before it changes");
  if (is_writing_) {
    SOMETIMES("raft snapshot: second writer refused");
    return io::fail(io::ErrorKind::busy, "raft/snapshots: a snapshot is being written");
  }
  std::string path = std::string(kDirectory) + "/" + snapshot_files::kWritingPrefix + std::to_string(next_temporary_++);
  std::unique_ptr<SnapshotWriter> writer(new SnapshotWriter(*this, std::move(path), bytes_per_second));
  while (!left_over_.empty()) {  // of a writer that was given up
    const std::string left = left_over_.back();
    if (io::Status removed = disk_.remove(left); !removed.ok() && !removed.is(io::ErrorKind::not_found)) return removed.error();
    std::erase(left_over_, left);
  }
  auto file = disk_.open(writer->path_, io::OpenMode::create_new);
  if (!file.ok()) {
    writer->abandon();
    return file.error();
  }
  writer->file_ = std::move(*file);
  return writer;
}

const SnapshotInfo* SnapshotStore::find(const SnapshotLabel& label) const {
  for (const auto* some : {&kept_, &spared_}) {
    for (const SnapshotInfo& each : *some) {
      if (each.label == label) return &each;
    }
  }
  return nullptr;
}

io::Result<std::unique_ptr<SnapshotReader>> SnapshotStore::read(const SnapshotLabel& label) {
  const SnapshotInfo* found = find(label);
  if (found == nullptr) {
    return io::fail(io::ErrorKind::not_found, "raft/snapshots: no snapshot at index " + std::to_string(label.index) +
                                                  " of term " + std::to_string(label.term) + " is kept");
  }
  const SnapshotInfo info = *found;
  auto file = disk_.open(path_of(label.index, label.term), io::OpenMode::read);
  if (!file.ok()) return file.error();
  return std::unique_ptr<SnapshotReader>(new SnapshotReader(clock_, info, std::move(*file)));
}

io::Result<std::unique_ptr<SnapshotReceiver>> SnapshotStore::receive(const SnapshotInfo& info,
                                                                         std::uint64_t bytes_per_second) {
  NARAD_CHECK(is_confirmed_, "the store is confirmed before it changes");
  if (is_receiving_) {
    SOMETIMES("raft snapshot: second receiver refused");
    return io::fail(io::ErrorKind::busy, "raft/snapshots: a snapshot is being received");
  }
  if (info.chunk_bytes < kChunkBytesMin || info.chunk_bytes > kChunkBytesMax || info.bytes > kImageBytesMax ||
      info.label.index == 0 || encode(info.label.configuration).size() > kConfigurationBytesMax) {
    return io::fail(io::ErrorKind::invalid, "a snapshot was offered whose size or label is out of bounds");
  }
  if (io::Status refused = refuse_if_covered(info.label.index); !refused.ok()) return refused.error();
  std::unique_ptr<SnapshotReceiver> receiver(new SnapshotReceiver(*this, info));
  if (io::Status begun = receiver->begin(bytes_per_second); !begun.ok()) return begun.error();
  return receiver;
}

// ---- Publishing ------------------------------------------------------------------------------------------------------------------

io::Status SnapshotStore::publish(const std::string& temporary, const SnapshotInfo& info) {
  io::MutexLock lock(publishing_);
  if (io::Status refused = refuse_if_covered(info.label.index); !refused.ok()) {
    SOMETIMES("raft snapshot: dropped, one at or above its index is kept");
    discard(temporary);
    return refused;
  }
  const std::string path = path_of(info.label.index, info.label.term);
  if (io::Status renamed = disk_.rename(temporary, path); !renamed.ok()) {
    discard(temporary);
    return renamed;
  }
  std::erase(left_over_, path);
  if (io::Status synced = disk_.sync_directory(kDirectory); !synced.ok()) {
    // The name may be lost with the power: it does not count, and the snapshots that it would have replaced stay.
    SOMETIMES("raft snapshot: taken back, its name is not durable");
    discard(path);
    return synced;
  }
  std::erase_if(damaged_, [&](const Damaged& each) { return each.path == path; });
  kept_.insert(kept_.begin(), info);
  prune();
  return {};
}

void SnapshotStore::discard(const std::string& path) {
  io::Status removed = disk_.remove(path);
  if (!removed.ok() && !removed.is(io::ErrorKind::not_found)) left_over_.push_back(path);
}

// The newer ones are durable. What cannot be removed now is tried again with the next snapshot or start.
void SnapshotStore::prune() {
  for (const Damaged& each : damaged_) left_over_.push_back(each.path);
  damaged_.clear();
  while (kept_.size() > 2) {
    spared_.push_back(std::move(kept_.back()));
    kept_.pop_back();
  }
  drop_spared();
  if (!is_receiving_) discard(std::string(snapshot_files::kReceivingPath));
  remove_left_over();
}

// Those that nobody holds are left over.
void SnapshotStore::drop_spared() {
  std::erase_if(spared_, [this](const SnapshotInfo& info) {
    if (is_held(info.label)) {
      SOMETIMES("raft snapshot: an older one is kept for its transfer");
      return false;
    }
    left_over_.push_back(path_of(info.label.index, info.label.term));
    return true;
  });
}

bool SnapshotStore::is_held(const SnapshotLabel& label) const {
  return std::find(held_.begin(), held_.end(), label) != held_.end();
}

void SnapshotStore::hold(const SnapshotLabel& label) { held_.push_back(label); }

void SnapshotStore::release(const SnapshotLabel& label) {
  const auto at = std::find(held_.begin(), held_.end(), label);
  if (at == held_.end()) return;
  held_.erase(at);
  if (spared_.empty()) return;
  io::MutexLock lock(publishing_);
  drop_spared();
  remove_left_over();
}

void SnapshotStore::give_up_held() {
  held_.clear();
  if (spared_.empty()) return;
  SOMETIMES("raft snapshot: an older one is given up for want of room");
  io::MutexLock lock(publishing_);
  drop_spared();
  remove_left_over();
}

void SnapshotStore::remove_left_over() {
  while (!left_over_.empty()) {
    const std::string path = left_over_.back();
    if (io::Status removed = disk_.remove(path); !removed.ok() && !removed.is(io::ErrorKind::not_found)) return;
    std::erase(left_over_, path);
  }
}

}  // namespace raft
