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
// A place covers no more than this, or one batch.
constexpr std::uint64_t kPlaceBytes = 64u << 10;
}  // namespace

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
  // First what never was part of the log: on a full disk its room may be what the rest needs.
  for (const std::string& path : unused_spares_) {
    if (io::Status removed = disk_.remove(path); !removed.ok()) return removed;
  }
  unused_spares_.clear();
  if (!last_entries_.empty()) {
    if (io::Status repeated = repeat_last_batch(); !repeated.ok()) return repeated;
  } else if (active_) {
    SOMETIMES("raft log: reset repeated in a new segment");
    left_over_.push_back(log_format::segment_path(active_->generation));
    chain_.clear();
    if (io::Status begun = begin_empty(base_index_, base_term_); !begun.ok()) return begun;
  }
  // Oldest first, as compaction does it.
  for (const std::string& path : left_over_) {
    if (io::Status removed = disk_.remove(path); !removed.ok()) return removed;
    if (io::Status synced = disk_.sync_directory(log_format::kDirectory); !synced.ok()) return synced;
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
    auto file = open_segment(active_->generation, io::OpenMode::read_write);
    if (!file.ok()) return file.error();
    active_->file = std::move(*file);
    return append_batch(entries, sequence, last_frontier_);
  }
  SOMETIMES("raft log: last batch repeated in a new segment");
  // The segment in use ends in front of that batch; or, when it holds nothing else, falls out of the log altogether.
  const End before = is_header_in_doubt ? before_active_ : End{active_->generation, last_frontier_};
  if (is_header_in_doubt) {
    left_over_.push_back(log_format::segment_path(active_->generation));
    chain_.pop_back();
  }
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

io::Status LogStore::begin_segment(std::span<const Entry> entries, std::uint64_t sequence, End before) {
  io::MutexLock lock(preparing_);
  if (io::Status ready = ensure_ready(kHeaderBytes + log_format::batch_bytes(entries)); !ready.ok()) return ready;
  log_format::SegmentHeader header;
  header.base_index = entries.front().index - 1;
  const std::optional<Term> base_term = term(header.base_index);
  NARAD_CHECK(base_term.has_value(), "what precedes an entry of the log is in the log, or is its base");
  header.base_term = *base_term;
  header.first_batch = sequence;
  header.before_generation = before.generation;
  header.before_end = before.offset;
  return put_in_use(header, entries);
}

// Header and first batch are one write: a segment without a batch was never begun, unless it says that the log was reset.
io::Status LogStore::put_in_use(log_format::SegmentHeader header, std::span<const Entry> entries) {
  Segment& segment = *ready_;
  header.generation = segment.generation;
  header.filled_bytes = segment.filled_bytes;
  header.is_recycled = segment.is_recycled;
  header.store = store_;
  std::string out = log_format::encode(header);
  if (!entries.empty()) encode_batch(entries, header.first_batch, kHeaderBytes, header.generation, kHeaderBytes, out);
  const std::uint64_t bytes = out.size() - kHeaderBytes;
  io::Status written = write_out(segment, 0, std::move(out));
  if (written.is(io::ErrorKind::no_space)) {
    // What landed could pass for the log's continuation after a restart, so it goes before anything else is written.
    SOMETIMES("raft log: begun segment taken back on a full disk");
    segment.file.reset();
    io::Status removed = disk_.remove(log_format::segment_path(header.generation));
    if (removed.ok()) removed = disk_.sync_directory(log_format::kDirectory);
    ready_.reset();
    if (!removed.ok()) {
      failure_ = removed.error();
      return removed;
    }
  }
  if (!written.ok()) return written;
  active_ = std::move(*ready_);
  ready_.reset();
  before_active_ = End{header.before_generation, header.before_end};
  end_ = kHeaderBytes;
  chain_.push_back(Link{header.generation, header.filled_bytes, header.base_index, header.base_term, false});
  if (!entries.empty()) note_written(entries, header.first_batch, kHeaderBytes, bytes);
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

// ---- Keeping track -------------------------------------------------------------------------------------------------------------

void LogStore::note_written(std::span<const Entry> entries, std::uint64_t sequence, std::uint64_t offset,
                            std::uint64_t bytes) {
  NARAD_CHECK(sequence == next_batch_ || sequence + 1 == next_batch_, "a batch is the next one or repeats the last");
  note_batch(entries.front().index, entries.size(), offset, bytes);
  for (const Entry& entry : entries) note_term(entry.index, entry.term);
  next_batch_ = sequence + 1;
  end_ = offset + bytes;
}

// A batch of the newest segment: cuts the log at its first entry, and continues it.
void LogStore::note_batch(Index first, std::uint64_t entries, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t generation = chain_.back().generation;
  while (!places_.empty() && places_.back().first >= first) places_.pop_back();
  while (!terms_.empty() && terms_.back().first >= first) terms_.pop_back();
  // Those that are not marked have rising bases.
  for (auto link = chain_.rbegin(); link != chain_.rend() && (link->is_cut_below || link->base_index >= first); ++link) {
    link->is_cut_below = true;
  }
  const bool continues = !places_.empty() && places_.back().generation == generation && place_end_ == offset &&
                         next_in_place_ == first && offset + bytes - places_.back().offset <= kPlaceBytes;
  if (!continues) places_.push_back(Place{first, generation, offset});
  place_end_ = offset + bytes;
  next_in_place_ = first + entries;
  last_index_ = first + entries - 1;
}

void LogStore::note_term(Index index, Term term) {
  if (terms_.empty() || terms_.back().term != term) terms_.push_back(TermRun{index, term});
}

std::optional<Term> LogStore::term(Index index) const {
  if (index == base_index_) return base_term_;
  if (index < base_index_ || index > last_index_) return std::nullopt;
  const auto next = std::upper_bound(terms_.begin(), terms_.end(), index,
                                     [](Index at, const TermRun& run) { return at < run.first; });
  NARAD_CHECK(next != terms_.begin(), "every entry has its term");
  return std::prev(next)->term;
}

std::uint64_t LogStore::disk_bytes() const {
  std::uint64_t bytes = spares_.size() * settings_.segment_bytes + (ready_ ? ready_->filled_bytes : 0);
  for (const Link& link : chain_) bytes += link.filled_bytes;
  for (const Link& link : unused_) bytes += link.filled_bytes;
  return bytes;
}

}  // namespace raft
