#include "raft/log_recovery.h"

#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/probe.h"
#include "raft/bytes.h"

namespace raft {

using log_format::HeaderState;

io::Error LogRecovery::damaged(std::uint64_t generation, std::uint64_t offset, std::string_view what) const {
  const Index index = store_.last_index_ + 1;
  return io::fail(io::ErrorKind::corrupt, log_format::segment_path(generation) + ": damaged at offset " +
                                              std::to_string(offset) + " (index " + std::to_string(index) + "): " +
                                              std::string(what));
}

io::Result<std::string> LogRecovery::read_file(std::uint64_t generation, std::uint64_t bytes) {
  auto file = store_.disk_.open(log_format::segment_path(generation), io::OpenMode::read);
  if (!file.ok()) return file.error();
  return (*file)->read(0, bytes);
}

io::Status LogRecovery::run(LogStore::Contents& contents) {
  if (io::Status looked = look_at_headers(); !looked.ok()) return looked;
  if (io::Status chained = find_chain(); !chained.ok()) return chained;
  for (io::Status replayed = replay(); !replayed.ok(); replayed = replay()) {
    // A compaction that a crash interrupted: what is left of the prefix does not stand by itself, and goes too.
    const bool is_rest = is_cut_below_base_ && chain_.size() > 1 && found_[chain_.front()].header.before_generation != 0;
    if (!is_rest) return replayed;
    SOMETIMES("raft log: interrupted compaction carried on");
    chain_.erase(chain_.begin());
  }
  for (const auto& [generation, found] : found_) {
    if (std::find(chain_.begin(), chain_.end(), generation) != chain_.end()) continue;
    if (chain_.empty() || generation > chain_.back()) {
      if (io::Status unused = check_unused(generation); !unused.ok()) return unused;
    }
    store_.left_over_.push_back(log_format::segment_path(generation));
  }

  store_.newest_generation_ = found_.empty() ? 0 : found_.rbegin()->first;
  store_.next_batch_ = next_sequence_;
  store_.epoch_ = epoch_max_ + 1;
  if (!chain_.empty()) {
    const Found& last = found_[chain_.back()];
    store_.active_.emplace(LogStore::Segment{chain_.back(), last.header.filled_bytes, nullptr});
    store_.before_active_ = {last.header.before_generation, last.header.before_end};
    store_.end_ = end_;
  }
  if (has_batch_) {
    NARAD_CHECK(last_generation_ == chain_.back(), "a segment in the chain has a batch");
    store_.last_frontier_ = last_frontier_;
    if (io::Status read = read_last_batch(); !read.ok()) return read;
  }
  contents.base_index = store_.base_index_;
  contents.base_term = store_.base_term_;
  contents.last_index = store_.last_index_;
  contents.had_torn_tail = has_torn_tail_;
  contents.terms.assign(store_.terms_.begin(), store_.terms_.end());
  contents.configurations = std::move(configurations_);
  return read_tail(contents);
}

io::Status LogRecovery::replay() {
  if (chain_.empty()) return {};
  const log_format::SegmentHeader& first = found_[chain_.front()].header;
  store_.base_index_ = store_.last_index_ = first.base_index;
  store_.base_term_ = first.base_term;
  store_.chain_.clear();
  store_.places_.clear();
  store_.terms_.clear();
  configurations_.clear();
  next_sequence_ = first.first_batch;
  epoch_ = 0;
  is_cut_below_base_ = has_torn_tail_ = false;
  for (std::size_t i = 0; i < chain_.size(); ++i) {
    std::optional<std::uint64_t> required_end;
    if (i + 1 < chain_.size()) required_end = found_[chain_[i + 1]].header.before_end;
    if (io::Status read = read_segment(chain_[i], required_end); !read.ok()) return read;
  }
  return {};
}

io::Status LogRecovery::read_last_batch() {
  auto file = store_.open_segment(last_generation_, io::OpenMode::read);
  if (!file.ok()) return file.error();
  log_format::BatchReader reader(**file, last_generation_, last_offset_, log_format::kBatchHeaderBytes);
  auto batch = reader.next();
  if (!batch.ok()) return batch.error();
  for (const log_format::EntryView& view : batch->entries) {
    store_.last_entries_.push_back(log_format::to_entry(view, batch->first + store_.last_entries_.size()));
  }
  return {};
}

// From the end of the log backwards, a few places at a time.
io::Status LogRecovery::read_tail(LogStore::Contents& contents) {
  constexpr std::size_t kPlacesAtATime = 16;
  const std::uint64_t cost_max = store_.settings_.tail_bytes_max;
  std::vector<std::vector<Entry>> pieces;  // the last one first
  std::uint64_t cost = 0;
  std::size_t places = store_.places_.size();
  for (bool is_full = false; !is_full && places > 0;) {
    const Index end = places == store_.places_.size() ? store_.last_index_ + 1 : store_.places_[places].first;
    places -= std::min(places, kPlacesAtATime);
    const Index begin = store_.places_[places].first;
    auto read = store_.read(begin, end - 1, ~std::uint64_t{0});
    if (!read.ok()) return read.error();
    NARAD_CHECK(read->back().index == end - 1, "an unbounded read is complete");
    std::vector<Entry> piece = std::move(*read);
    std::size_t first = piece.size();
    while (first > 0 && (cost == 0 || cost + piece[first - 1].cost_bytes() <= cost_max)) {
      cost += piece[--first].cost_bytes();
    }
    is_full = first > 0;
    piece.erase(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(first));
    pieces.push_back(std::move(piece));
  }
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    std::move(piece->begin(), piece->end(), std::back_inserter(contents.entries));
  }
  return {};
}

io::Status LogRecovery::look_at_headers() {
  auto names = store_.disk_.list(log_format::kDirectory);
  if (names.is(io::ErrorKind::not_found)) return {};
  if (!names.ok()) return names.error();
  for (const std::string& name : *names) {
    const std::optional<std::uint64_t> generation = log_format::generation_of(name);
    if (log_format::is_spare(name)) store_.unused_spares_.push_back(std::string(log_format::kDirectory) + "/" + name);
    if (!generation) continue;
    const auto info = store_.disk_.stat(log_format::segment_path(*generation));
    if (!info.ok()) return info.error();
    auto block = read_file(*generation, log_format::kSegmentHeaderBytes);
    if (!block.ok()) return block.error();
    Found found;
    found.file_bytes = info->size;
    found.state = log_format::parse(*block, *generation, found.header);
    if (found.state == HeaderState::newer_version) {
      return io::fail(io::ErrorKind::invalid, log_format::segment_path(*generation) +
                                                  ": written by a newer release, in a format that this one does not know");
    }
    if (found.state == HeaderState::valid && found.header.store != store_.store_) {
      SOMETIMES("raft log: segment of another volume refused");
      return io::fail(io::ErrorKind::corrupt, log_format::segment_path(*generation) + ": belongs to store " +
                                                  found.header.store.to_string() + ", not to this one (" +
                                                  store_.store_.to_string() + ")");
    }
    found_.emplace(*generation, std::move(found));
  }
  return {};
}

// From the newest segment that was begun back to the first, by what each header names as the one before.
io::Status LogRecovery::find_chain() {
  std::optional<std::uint64_t> newest;
  for (auto at = found_.rbegin(); at != found_.rend() && !newest; ++at) {
    if (at->second.state != HeaderState::valid) continue;
    auto begun = is_begun(at->first);
    if (!begun.ok()) return begun.error();
    if (*begun) newest = at->first;
  }
  if (!newest) return {};
  for (std::uint64_t generation = *newest;;) {
    const auto at = found_.find(generation);
    if (at == found_.end()) {
      // Compaction removes the oldest first, so it has left nothing that is older.
      const auto is_older = [generation](const auto& each) {
        return each.first < generation && each.second.state == HeaderState::valid;
      };
      if (std::none_of(found_.begin(), found_.end(), is_older)) break;
      SOMETIMES("raft log: missing segment refused");
      return io::fail(io::ErrorKind::corrupt, log_format::segment_path(generation) + ": missing, though " +
                                                  log_format::segment_path(chain_.back()) + " continues it");
    }
    const Found& found = at->second;
    if (found.state != HeaderState::valid) return damaged(generation, 0, "the header of a segment in use");
    if (found.file_bytes < found.header.filled_bytes) {
      return damaged(generation, found.file_bytes, "the file is shorter than it was made");
    }
    chain_.push_back(generation);
    if (found.header.before_generation == 0) break;
    if (found.header.before_generation >= generation) return damaged(generation, 48, "the segment before is not older");
    generation = found.header.before_generation;
  }
  std::reverse(chain_.begin(), chain_.end());
  return {};
}

// Whether the write that began the segment landed with its first batch. A header alone, without proof that it was ever synced,
// is what a crash left of that write.
io::Result<bool> LogRecovery::is_begun(std::uint64_t generation) {
  const Found& found = found_[generation];
  if (found.header.is_reset) return true;
  auto bytes = read_file(generation, found.file_bytes);
  if (!bytes.ok()) return bytes.error();
  const auto first = log_format::parse_batch_header(*bytes, generation, log_format::kSegmentHeaderBytes);
  std::vector<log_format::EntryView> entries;
  if (first && first->sequence == found.header.first_batch &&
      log_format::parse_batch_body(*bytes, generation, log_format::kSegmentHeaderBytes, *first, entries)) {
    return true;
  }
  for (auto at = log_format::find_batch(*bytes, generation, log_format::kSegmentHeaderBytes); at;
       at = log_format::find_batch(*bytes, generation, *at + log_format::kAlignment)) {
    if (log_format::parse_batch_header(*bytes, generation, *at)->frontier > log_format::kSegmentHeaderBytes) return true;
  }
  return false;
}

// A segment behind the log's end: prepared (perhaps with the bytes of its earlier life), or begun by a write that was never synced.
// It is no damage unless something in it was written after its header was known to be durable.
io::Status LogRecovery::check_unused(std::uint64_t generation) {
  const Found& found = found_[generation];
  auto bytes = read_file(generation, found.file_bytes);
  if (!bytes.ok()) return bytes.error();
  if (is_all_zero(*bytes)) return {};
  has_torn_tail_ = has_torn_tail_ || found.state == HeaderState::valid;
  for (auto at = log_format::find_batch(*bytes, generation, log_format::kSegmentHeaderBytes); at;
       at = log_format::find_batch(*bytes, generation, *at + log_format::kAlignment)) {
    const auto header = log_format::parse_batch_header(*bytes, generation, *at);
    epoch_max_ = std::max(epoch_max_, header->epoch);
    has_torn_tail_ = true;
    if (header->frontier > log_format::kSegmentHeaderBytes) {
      SOMETIMES("raft log: damaged segment header refused");
      return damaged(generation, 0, "the header of a segment in use");
    }
  }
  if (has_torn_tail_) SOMETIMES("raft log: segment begun by an unsynced write dropped");
  return {};
}

io::Status LogRecovery::read_segment(std::uint64_t generation, std::optional<std::uint64_t> required_end) {
  const Found& found = found_[generation];
  auto bytes = read_file(generation, found.file_bytes);
  if (!bytes.ok()) return bytes.error();
  std::string_view used = *bytes;
  if (required_end) {
    if (*required_end > used.size()) return damaged(generation, used.size(), "the file ends before its last batch");
    used = used.substr(0, *required_end);
  }
  if (found.header.first_batch != next_sequence_) {
    return damaged(generation, 40, "its first batch does not follow the segment before");
  }
  has_batch_ = false;
  store_.chain_.push_back(LogStore::Link{generation, found.header.filled_bytes, found.header.base_index,
                                         found.header.base_term, false});
  std::uint64_t at = log_format::kSegmentHeaderBytes;
  for (;;) {
    auto batch = next_batch(used, generation, at);
    if (!batch.ok()) return batch.error();
    if (!*batch) break;
    if (io::Status taken = take(**batch, generation); !taken.ok()) return taken;
    at = log_format::batch_end((*batch)->offset, (*batch)->header);
  }
  // It was begun with a batch (is_begun), and yet none of its batches may follow what the segments before hold.
  if (!has_batch_ && !found.header.is_reset) {
    return damaged(generation, at, "its first batch is older than what the segment before holds");
  }
  if (required_end && at != *required_end) {
    SOMETIMES("raft log: damage in an older segment refused");
    return damaged(generation, at, "the segment behind it names this place as synced");
  }
  if (!required_end) {
    end_ = at;
    // Old bytes of a recycled segment are no tail.
    if (found.header.is_recycled ? log_format::find_batch(used, generation, at).has_value() : !is_all_zero(used.substr(at))) {
      has_torn_tail_ = true;
      SOMETIMES("raft log: torn tail cut");
    }
  }
  return {};
}

io::Result<std::optional<LogRecovery::Batch>> LogRecovery::next_batch(std::string_view bytes, std::uint64_t generation,
                                                                      std::uint64_t from) {
  for (auto at = log_format::find_batch(bytes, generation, from); at;
       at = log_format::find_batch(bytes, generation, *at + log_format::kAlignment)) {
    const log_format::BatchHeader header = *log_format::parse_batch_header(bytes, generation, *at);
    epoch_max_ = std::max(epoch_max_, header.epoch);
    if (header.epoch < epoch_) continue;  // what an earlier opening left behind a cut
    if (header.frontier > from) {
      SOMETIMES("raft log: damage below the synced frontier refused");
      return damaged(generation, from, "the batch at offset " + std::to_string(*at) + " names this place as synced");
    }
    const bool is_next = header.sequence == next_sequence_;
    const bool is_repeat =
        has_batch_ && header.sequence + 1 == next_sequence_ && header.frontier == last_frontier_;
    if (!is_next && !is_repeat) continue;
    if (!log_format::parse_batch_body(bytes, generation, *at, header, scratch_)) continue;
    if (is_next && header.frontier != from) {
      return damaged(generation, *at, "the batch does not name the end of the one before as synced");
    }
    if (*at != from) SOMETIMES("raft log: lost batch made good by its repetition");
    return std::optional(Batch{*at, header});
  }
  return std::optional<Batch>();
}

io::Status LogRecovery::take(const Batch& batch, std::uint64_t generation) {
  const log_format::BatchHeader& header = batch.header;
  const Index last = store_.last_index_;
  is_cut_below_base_ = header.first <= store_.base_index_;
  if (is_cut_below_base_ || header.first > last + 1) {
    return damaged(generation, batch.offset, "the batch begins with index " + std::to_string(header.first) +
                                                 ", the log ends at " + std::to_string(last));
  }
  Term term = store_.term(header.first - 1).value();
  for (const log_format::EntryView& entry : scratch_) {
    if (entry.term < term) {
      SOMETIMES("raft log: falling terms refused");
      return damaged(generation, batch.offset, "term " + std::to_string(entry.term) + " follows term " + std::to_string(term));
    }
    term = entry.term;
  }
  if (header.first <= last) SOMETIMES("raft log: cut replayed");
  while (!configurations_.empty() && configurations_.back().index >= header.first) configurations_.pop_back();
  store_.note_batch(header.first, scratch_.size(), batch.offset,
                    log_format::batch_end(batch.offset, header) - batch.offset);
  for (std::size_t i = 0; i < scratch_.size(); ++i) {
    store_.note_term(header.first + i, scratch_[i].term);
    if (scratch_[i].type == EntryType::configuration) {
      configurations_.push_back(log_format::to_entry(scratch_[i], header.first + i));
    }
  }
  store_.stable_record_ = std::max(store_.stable_record_, header.stable_record);
  next_sequence_ = header.sequence + 1;
  last_frontier_ = header.frontier;
  last_generation_ = generation;
  last_offset_ = batch.offset;
  epoch_ = header.epoch;
  has_batch_ = true;
  return {};
}

}  // namespace raft
