// The log store's segments: making and reusing them, forgetting a prefix, beginning anew, reading entries back.
#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/probe.h"
#include "raft/log_format.h"
#include "raft/log_store.h"

namespace raft {

namespace {
// Read from the disk at a time: what is asked for, within these.
constexpr std::uint64_t kReadBytesMin = 16u << 10;
constexpr std::uint64_t kReadBytesMax = 1u << 20;
constexpr std::uint64_t kCostPerPlaceMin = 4096;
}  // namespace

io::Result<std::unique_ptr<io::File>> LogStore::open_segment(std::uint64_t generation, io::OpenMode mode) const {
  return disk_.open(log_format::segment_path(generation), mode);
}

// ---- Making ----------------------------------------------------------------------------------------------------------------------

bool LogStore::wants_segment() const { return !ready_ && !failure_ && (!active_ || end_ >= active_->filled_bytes / 2); }

io::Status LogStore::prepare_segment() {
  io::MutexLock lock(preparing_);
  if (failure_) return *failure_;
  return wants_segment() ? make_segment(settings_.segment_bytes) : io::Status();
}

// Has a segment ready that holds `bytes`. With preparing_ held.
io::Status LogStore::ensure_ready(std::uint64_t bytes) {
  if (!ready_) {
    SOMETIMES("raft log: append waits for its segment");
    return make_segment(std::max(settings_.segment_bytes, bytes));
  }
  if (ready_->filled_bytes >= bytes) return {};
  SOMETIMES("raft log: segment grown for one large batch");
  return fill_segment(*ready_, bytes);
}

io::Status LogStore::make_segment(std::uint64_t bytes) {
  if (bytes == settings_.segment_bytes && !spares_.empty()) {
    if (io::Status used = use_spare(); !used.ok() || ready_) return used;
  }
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

// Makes the oldest spare the ready segment; success without one when it cannot be used.
io::Status LogStore::use_spare() {
  const std::string spare = log_format::spare_path(spares_.front());
  const std::uint64_t generation = ++newest_generation_;
  const std::string path = log_format::segment_path(generation);
  io::Status renamed = fail_unless_full(disk_.rename(spare, path));
  if (!renamed.ok()) return renamed;
  spares_.pop_front();
  auto file = open_segment(generation, io::OpenMode::read_write);
  if (file.is(io::ErrorKind::busy)) {  // a read that was given up has not ended yet
    return fail_unless_full(disk_.remove(path));
  }
  if (!file.ok()) return fail_unless_full(file.error());
  if (io::Status synced = fail_unless_full(disk_.sync_directory(log_format::kDirectory)); !synced.ok()) {
    if (synced.is(io::ErrorKind::no_space)) (void)disk_.remove(path);
    return synced;
  }
  SOMETIMES("raft log: segment recycled");
  ready_ = Segment{generation, settings_.segment_bytes, std::move(*file), true};
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

// ---- Forgetting ------------------------------------------------------------------------------------------------------------------

io::Status LogStore::compact(Index up_to) {
  NARAD_CHECK(is_confirmed_, "the log is confirmed before it changes");
  NARAD_CHECK(up_to <= last_index_, "what is forgotten was in the log");
  std::size_t gone = 0;
  for (std::size_t i = 1; i < chain_.size(); ++i) {
    if (!chain_[i].is_cut_below && chain_[i].base_index <= up_to) gone = i;
  }
  if (gone > 0) {
    // First here, then on the disk: nobody begins to read what is about to go.
    std::move(chain_.begin(), chain_.begin() + static_cast<std::ptrdiff_t>(gone), std::back_inserter(unused_));
    chain_.erase(chain_.begin(), chain_.begin() + static_cast<std::ptrdiff_t>(gone));
    base_index_ = chain_.front().base_index;
    base_term_ = chain_.front().base_term;
    while (!places_.empty() && places_.front().generation < chain_.front().generation) places_.pop_front();
    while (terms_.size() > 1 && terms_[1].first <= base_index_ + 1) terms_.pop_front();
    terms_.front().first = std::max(terms_.front().first, base_index_ + 1);
    NARAD_CHECK(!places_.empty() && places_.front().first == base_index_ + 1, "the log begins with its first segment");
  }
  return remove_unused();
}

// Oldest first, each made durable before the next.
io::Status LogStore::remove_unused() {
  io::MutexLock lock(removing_);
  while (!unused_.empty()) {
    if (failure_) return *failure_;
    const Link link = unused_.front();
    if (!being_read_.empty() && *being_read_.begin() <= link.generation) {
      SOMETIMES("raft log: segment kept while it is read");
      return {};
    }
    const std::string path = log_format::segment_path(link.generation);
    const bool is_kept = link.filled_bytes == settings_.segment_bytes && spares_.size() < settings_.spares_max;
    io::Status gone = fail_unless_full(is_kept ? disk_.rename(path, log_format::spare_path(link.generation))
                                               : disk_.remove(path));
    if (!gone.ok()) return gone;
    unused_.pop_front();
    if (is_kept) spares_.push_back(link.generation);
    if (io::Status synced = fail_unless_full(disk_.sync_directory(log_format::kDirectory)); !synced.ok()) return synced;
  }
  return {};
}

io::Status LogStore::reset(Index index, Term term) {
  NARAD_CHECK(is_confirmed_, "the log is confirmed before it changes");
  NARAD_CHECK(index > 0 && index >= base_index_, "a log never goes on below where it began");
  return begin_anew(index, term);
}

io::Status LogStore::forget() {
  NARAD_CHECK(is_confirmed_, "the log is confirmed before it changes");
  return begin_anew(0, 0);
}

io::Status LogStore::begin_anew(Index index, Term term) {
  if (failure_) return *failure_;
  if (io::Status begun = begin_empty(index, term); !begun.ok()) return begun;
  SOMETIMES("raft log: reset behind a snapshot");
  std::move(chain_.begin(), chain_.end() - 1, std::back_inserter(unused_));
  chain_.erase(chain_.begin(), chain_.end() - 1);
  io::Status removed = remove_unused();
  return removed.is(io::ErrorKind::no_space) ? io::Status() : removed;
}

// Begins a segment that is a log of its own, without entries. Once its header is durable, no other segment counts.
io::Status LogStore::begin_empty(Index index, Term term) {
  io::MutexLock lock(preparing_);
  if (io::Status ready = ensure_ready(log_format::kSegmentHeaderBytes); !ready.ok()) return ready;
  log_format::SegmentHeader header;
  header.base_index = index;
  header.base_term = term;
  header.first_batch = next_batch_;
  header.is_reset = true;
  if (io::Status written = put_in_use(header, {}); !written.ok()) return written;
  base_index_ = index;
  base_term_ = term;
  last_index_ = index;
  places_.clear();
  terms_.clear();
  return {};
}

// ---- Reading -------------------------------------------------------------------------------------------------------------------

io::Result<std::vector<Entry>> LogStore::read(Index first, Index last, std::uint64_t cost_bytes_max) const {
  NARAD_CHECK(first <= last, "something is read");
  if (first <= base_index_ || first > last_index_) {
    return io::fail(io::ErrorKind::not_found, "raft/log: index " + std::to_string(first) + " is not in the log, which holds " +
                                                  std::to_string(base_index_ + 1) + " to " + std::to_string(last_index_));
  }
  last = std::min(last, last_index_);
  auto place = std::upper_bound(places_.begin(), places_.end(), first,
                                [](Index index, const Place& each) { return index < each.first; });
  NARAD_CHECK(place != places_.begin(), "every entry has its place");
  --place;
  // An append may change the list while we wait. The last of the copies only tells where the one before ends.
  std::vector<Place> places;
  const std::uint64_t places_max = cost_bytes_max / kCostPerPlaceMin + 16;
  for (; place != places_.end() && places.size() < places_max; ++place) {
    places.push_back(*place);
    if (place->first > last) break;
  }
  if (place == places_.end()) places.push_back(Place{last_index_ + 1, 0, 0});

  struct Pin {
    std::multiset<std::uint64_t>& pinned;
    std::multiset<std::uint64_t>::iterator mine;
    ~Pin() { pinned.erase(mine); }
  } pin{being_read_, being_read_.insert(places.front().generation)};

  std::vector<Entry> entries;
  std::uint64_t cost = 0;
  std::unique_ptr<io::File> file;
  std::optional<log_format::BatchReader> reader;
  const std::uint64_t stretch = std::clamp(cost_bytes_max, kReadBytesMin, kReadBytesMax);
  for (std::size_t i = 0; i + 1 < places.size(); ++i) {
    const Place& at = places[i];
    if (!file || at.generation != places[i - 1].generation) {
      reader.reset();
      auto opened = open_segment(at.generation, io::OpenMode::read);
      if (opened.is(io::ErrorKind::not_found)) return io::fail(io::ErrorKind::corrupt, opened.error().message);
      if (!opened.ok()) return opened.error();
      file = std::move(*opened);
    }
    const Index end = std::min(places[i + 1].first, last + 1);
    if (!reader || reader->offset() != at.offset) reader.emplace(*file, at.generation, at.offset, stretch);
    for (Index next = at.first; next < end;) {
      auto batch = reader->next();
      if (!batch.ok()) return batch.error();
      if (batch->first != next) {
        return io::fail(io::ErrorKind::corrupt, file->path() + ": index " + std::to_string(next) + " is not where it was");
      }
      for (const log_format::EntryView& view : batch->entries) {
        const Index index = next++;
        if (index < first || index >= end) continue;
        cost += Entry::kFrameBytes + view.payload.size();
        if (!entries.empty() && cost > cost_bytes_max) return entries;
        entries.push_back(log_format::to_entry(view, index));
      }
    }
  }
  NARAD_CHECK(!entries.empty(), "a read returns one entry at least");
  return entries;
}

}  // namespace raft
