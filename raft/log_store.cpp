#include "raft/log_store.h"

#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/probe.h"
#include "raft/log_format.h"
#include "raft/log_recovery.h"

namespace raft {

namespace {
constexpr std::uint64_t kHeaderBytes = log_format::kSegmentHeaderBytes;
}

// ---- Opening -----------------------------------------------------------------------------------------------------------------

io::Result<bool> LogStore::has_traces(io::Disk& disk) {
  auto names = disk.list(log_format::kDirectory);
  if (names.is(io::ErrorKind::not_found)) return false;
  if (!names.ok()) return names.error();
  for (const std::string& name : *names) {
    const std::optional<std::uint64_t> generation = log_format::generation_of(name);
    if (!generation) continue;
    auto file = disk.open(log_format::segment_path(*generation), io::OpenMode::read);
    if (!file.ok()) return file.error();
    auto block = (*file)->read(0, kHeaderBytes);
    if (!block.ok()) return block.error();
    log_format::SegmentHeader header;
    if (log_format::parse(*block, *generation, header) != log_format::HeaderState::zero) return true;
  }
  return false;
}

io::Result<std::unique_ptr<LogStore>> LogStore::open(io::Disk& disk, const StoreId& store, LogSettings settings,
                                                     Contents& contents) {
  NARAD_CHECK(settings.segment_bytes >= 4096 && settings.fill_step_bytes > 0 && settings.batch_bytes_max > 0,
              "the log's settings are within their bounds");
  std::unique_ptr<LogStore> log(new LogStore(disk, store, settings));
  contents = Contents();
  if (io::Status recovered = LogRecovery(*log).run(contents); !recovered.ok()) return recovered.error();
  return log;
}

io::Status LogStore::confirm() {
  NARAD_CHECK(!is_confirmed_, "the log is confirmed once");
  if (io::Status made = disk_.make_directory(log_format::kDirectory); !made.ok()) return made;
  if (io::Status synced = disk_.sync_directory("raft"); !synced.ok()) return synced;
  if (!last_entries_.empty()) {
    if (io::Status repeated = repeat_last_batch(); !repeated.ok()) return repeated;
  } else {
    NARAD_CHECK(!active_, "a segment in use has a batch");
  }
  for (const std::string& path : left_over_) {
    if (io::Status removed = disk_.remove(path); !removed.ok()) return removed;
  }
  left_over_.clear();
  if (io::Status synced = disk_.sync_directory(log_format::kDirectory); !synced.ok()) return synced;
  is_confirmed_ = true;
  return {};
}

// Writes the newest batch again, at a place whose sync proves something; see the header.
io::Status LogStore::repeat_last_batch() {
  const std::vector<Entry> entries = std::move(last_entries_);
  last_entries_.clear();
  const std::uint64_t sequence = next_batch_ - 1;
  const bool is_header_in_doubt = last_frontier_ == kHeaderBytes;
  if (!is_header_in_doubt && end_ + log_format::batch_bytes(entries) <= active_->filled_bytes) {
    auto file = disk_.open(log_format::segment_path(active_->generation), io::OpenMode::read_write);
    if (!file.ok()) return file.error();
    active_->file = std::move(*file);
    return append_batch(entries, sequence, last_frontier_);
  }
  SOMETIMES("raft log: last batch repeated in a new segment");
  // The segment in use ends in front of that batch; or, when it holds nothing else, falls out of the log altogether.
  const End before = is_header_in_doubt ? before_active_ : End{active_->generation, last_frontier_};
  if (is_header_in_doubt) left_over_.push_back(log_format::segment_path(active_->generation));
  return begin_segment(entries, sequence, before);
}

// ---- Appending -----------------------------------------------------------------------------------------------------------------

// Anything but a full disk ends the store: what the disk then holds is not known, and no later success would tell.
io::Status LogStore::fail_unless_full(io::Status status) {
  if (!status.ok() && !status.is(io::ErrorKind::no_space)) failure_ = status.error();
  return status;
}

io::Status LogStore::append(std::span<const Entry> entries) {
  NARAD_CHECK(is_confirmed_, "the log is confirmed before it grows");
  NARAD_CHECK(!entries.empty() && entries.front().index > base_index_ && entries.front().index <= last_index_ + 1,
              "entries continue the log or cut it");
  std::size_t begin = 0;
  while (begin < entries.size()) {
    if (failure_) return *failure_;
    std::size_t end = begin;
    std::uint64_t bytes = 0;
    while (end < entries.size()) {
      NARAD_CHECK(entries[end].index == entries.front().index + end, "entries are consecutive");
      bytes += log_format::kEntryHeaderBytes + entries[end].bytes().size();
      if (end > begin && bytes > settings_.batch_bytes_max) break;
      ++end;
    }
    if (io::Status written = append_batch(entries.subspan(begin, end - begin), next_batch_, end_); !written.ok()) {
      return written;
    }
    begin = end;
  }
  return {};
}

io::Status LogStore::append_batch(std::span<const Entry> entries, std::uint64_t sequence, std::uint64_t frontier) {
  const std::uint64_t bytes = log_format::batch_bytes(entries);
  if (!active_) return begin_segment(entries, sequence, End{});
  if (end_ + bytes > active_->filled_bytes) return begin_segment(entries, sequence, End{active_->generation, end_});
  std::string out;
  out.reserve(bytes);
  encode_batch(entries, sequence, frontier, active_->generation, end_, out);
  if (io::Status written = write_out(*active_, end_, std::move(out)); !written.ok()) return written;
  note_written(entries, sequence, end_, bytes);
  return {};
}

// Header and first batch are one write: a segment without a batch was never begun.
io::Status LogStore::begin_segment(std::span<const Entry> entries, std::uint64_t sequence, End before) {
  io::MutexLock lock(preparing_);
  const std::uint64_t bytes = log_format::batch_bytes(entries);
  const std::uint64_t needed = kHeaderBytes + bytes;
  if (!ready_) {
    SOMETIMES("raft log: append waits for its segment");
    if (io::Status made = make_segment(std::max(settings_.segment_bytes, needed)); !made.ok()) return made;
  } else if (ready_->filled_bytes < needed) {
    SOMETIMES("raft log: segment grown for one large batch");
    if (io::Status filled = fill_segment(*ready_, needed); !filled.ok()) return filled;
  }
  log_format::SegmentHeader header;
  header.generation = ready_->generation;
  header.base_index = entries.front().index - 1;
  header.base_term = term_before(entries.front().index);
  header.first_batch = sequence;
  header.before_generation = before.generation;
  header.before_end = before.offset;
  header.filled_bytes = ready_->filled_bytes;
  header.store = store_;
  std::string out = log_format::encode(header);
  encode_batch(entries, sequence, kHeaderBytes, ready_->generation, kHeaderBytes, out);
  if (io::Status written = write_out(*ready_, 0, std::move(out)); !written.ok()) return written;
  active_ = std::move(*ready_);
  ready_.reset();
  before_active_ = before;
  note_written(entries, sequence, kHeaderBytes, bytes);
  return {};
}

io::Status LogStore::write_out(Segment& segment, std::uint64_t offset, std::string bytes) {
  io::Status status = fail_unless_full(segment.file->write_and_sync(offset, std::move(bytes)));
  if (status.ok()) ++syncs_;
  return status;
}

void LogStore::encode_batch(std::span<const Entry> entries, std::uint64_t sequence, std::uint64_t frontier,
                            std::uint64_t generation, std::uint64_t offset, std::string& out) const {
  log_format::BatchHeader header;
  header.sequence = sequence;
  header.frontier = frontier;
  header.epoch = epoch_;
  header.stable_record = stable_record_;
  log_format::encode_batch(entries, header, generation, offset, out);
}

void LogStore::note_written(std::span<const Entry> entries, std::uint64_t sequence, std::uint64_t offset,
                            std::uint64_t bytes) {
  NARAD_CHECK(sequence == next_batch_ || sequence + 1 == next_batch_, "a batch is the next one or repeats the last");
  note_place(entries, active_->generation, offset);
  last_index_ = entries.back().index;
  next_batch_ = sequence + 1;
  end_ = offset + bytes;
}

// Remembers where entries are and which terms they have, after a cut at the first of them.
void LogStore::note_place(std::span<const Entry> entries, std::uint64_t generation, std::uint64_t offset) {
  const Index first = entries.front().index;
  while (!places_.empty() && places_.back().first >= first) places_.pop_back();
  while (!terms_.empty() && terms_.back().first >= first) terms_.pop_back();
  places_.push_back(Place{first, generation, offset});
  for (const Entry& entry : entries) {
    if (terms_.empty() || terms_.back().second != entry.term) terms_.emplace_back(entry.index, entry.term);
  }
}

Term LogStore::term_before(Index index) const {
  const auto at = std::find_if(terms_.rbegin(), terms_.rend(), [index](const auto& run) { return run.first < index; });
  return at == terms_.rend() ? base_term_ : at->second;
}

// ---- Segments ------------------------------------------------------------------------------------------------------------------

bool LogStore::wants_segment() const { return !ready_ && !failure_ && (!active_ || end_ >= active_->filled_bytes / 2); }

io::Status LogStore::prepare_segment() {
  io::MutexLock lock(preparing_);
  if (failure_) return *failure_;
  return wants_segment() ? make_segment(settings_.segment_bytes) : io::Status();
}

io::Status LogStore::make_segment(std::uint64_t bytes) {
  // A number is used once, so that nothing of an attempt that failed is ever met again.
  const std::uint64_t generation = ++newest_generation_;
  const std::string path = log_format::segment_path(generation);
  auto file = disk_.open(path, io::OpenMode::create_new);
  if (!file.ok()) return fail_unless_full(file.error());
  Segment segment{generation, 0, std::move(*file)};
  io::Status status = fill_segment(segment, bytes);
  if (status.ok()) status = fail_unless_full(disk_.sync_directory(log_format::kDirectory));
  if (!status.ok()) {
    SOMETIMES("raft log: no segment could be prepared");
    segment.file.reset();
    if (status.is(io::ErrorKind::no_space)) (void)disk_.remove(path);
    return status;
  }
  ready_ = std::move(segment);
  return {};
}

io::Status LogStore::fill_segment(Segment& segment, std::uint64_t bytes) {
  for (std::uint64_t at = segment.filled_bytes; at < bytes;) {
    const std::uint64_t step = std::min(settings_.fill_step_bytes, bytes - at);
    if (io::Status filled = fail_unless_full(segment.file->fill_zero(at, step)); !filled.ok()) return filled;
    at += step;
  }
  if (io::Status synced = fail_unless_full(segment.file->sync()); !synced.ok()) return synced;
  segment.filled_bytes = bytes;
  return {};
}

// ---- Reading -------------------------------------------------------------------------------------------------------------------

io::Result<std::vector<Entry>> LogStore::read(Index first, Index last, std::uint64_t cost_bytes_max) const {
  NARAD_CHECK(first > base_index_ && first <= last && last <= last_index_, "the log holds what is read");
  auto place = std::upper_bound(places_.begin(), places_.end(), first,
                                [](Index index, const Place& each) { return index < each.first; });
  NARAD_CHECK(place != places_.begin(), "every entry has its place");
  --place;
  const std::vector<Place> places(place, places_.end());  // an append may move the list while we wait
  std::vector<Entry> entries;
  std::uint64_t cost = 0;
  std::unique_ptr<io::File> file;
  std::uint64_t generation = 0;
  for (std::size_t i = 0; i < places.size() && places[i].first <= last; ++i) {
    const Place& at = places[i];
    if (!file || generation != at.generation) {
      auto opened = disk_.open(log_format::segment_path(at.generation), io::OpenMode::read);
      if (!opened.ok()) return opened.error();
      file = std::move(*opened);
      generation = at.generation;
    }
    auto batch = log_format::read_batch(*file, at.generation, at.offset);
    if (!batch.ok()) return batch.error();
    const Index end = i + 1 < places.size() ? places[i + 1].first - 1 : last;
    for (Entry& entry : *batch) {
      if (entry.index < first || entry.index > std::min(end, last)) continue;
      cost += entry.cost_bytes();
      if (!entries.empty() && cost > cost_bytes_max) return entries;
      NARAD_CHECK(entry.index == first + entries.size(), "entries are read in order");
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

}  // namespace raft
