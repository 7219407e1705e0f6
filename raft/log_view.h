// The core's picture of its server's log.
//
// The log holds the entries above a base (index, term): the base is 0 for a log that starts at its first entry, or an entry
// that a snapshot covers. Of these the view keeps the newest in memory, from held_from() on, with their payloads; of the older
// ones, which the disk still has, only the terms (a few bytes for each term, not for each entry). The view is what the
// protocol reasons about; it may be ahead of the disk. How far the disk is (durable), how far entries were handed to the
// server for writing, is the core's bookkeeping, not kept here.
//
// Bounds: memory is the held entries' payloads plus 40 bytes an entry, plus 16 bytes for each term of those not held; append()
// and at() take constant time, term() too for what is held.
// Preconditions are checked, in every build.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "raft/types.h"

namespace raft {

// Consecutive entries of one term, from `first` up to the next run's first.
struct TermRun {
  Index first = 0;
  Term term = 0;
  friend bool operator==(const TermRun&, const TermRun&) = default;
};

class LogView {
 public:
  LogView() = default;
  LogView(Index base_index, Term base_term)
      : base_index_(base_index), base_term_(base_term), held_base_(base_index), held_base_term_(base_term), last_(base_index) {}

  Index base_index() const { return base_index_; }
  Term base_term() const { return base_term_; }
  Index first_index() const { return base_index_ + 1; }
  // The first entry in memory; last_index() + 1 when none is.
  Index held_from() const { return held_base_ + 1; }
  Index last_index() const { return last_; }
  Term last_term() const { return last_ == held_base_ ? held_base_term_ : slot(last_).term; }
  bool is_empty() const { return last_ == base_index_; }

  // The term of the entry at `index`; the base counts. Nothing below the base or above the end.
  std::optional<Term> term(Index index) const {
    if (index > last_) return std::nullopt;
    if (index > held_base_) return slot(index).term;
    if (index == held_base_) return held_base_term_;
    return term_of_unheld(index);
  }
  bool matches(Index index, Term term) const { return this->term(index) == term; }
  const Entry& at(Index index) const;  // held_from() <= index <= last_index()

  // Whether a log that ends at (index, term) is at least as up to date as this one: last term first, then index.
  bool is_covered_by(Index index, Term term) const {
    return term > last_term() || (term == last_term() && index >= last_);
  }
  // The largest index at or below `index` whose term is at or below `term` (the base if none above it): where two logs
  // may agree, when one has `term` at `index`. `index` may lie beyond the end.
  Index find_possible_match(Index index, Term term) const;

  // Entries first..last exist on the disk and are not in memory. Only right after construction.
  void extend_unheld(std::span<const TermRun> runs, Index last);
  // `entry` must be the next one, of no older term than the last.
  void append(Entry entry);
  // Cuts every entry at and above `from`, which is held. Cutting past the end does nothing.
  void truncate(Index from);
  // Frees the memory of entries up to `index` (in the log); their terms stay known.
  void release(Index index);
  // Makes `index` (in the log) the base and forgets what lies at or below it.
  void compact(Index index);
  // An image takes the place of the whole log: what was held is gone, the base is (index, term).
  void reset(Index index, Term term);

  // Appends copies of held entries first..last to `out`, stopping before the one that would take the copied cost past
  // `cost_bytes_max`, but always copying the first. Returns the last index copied (first - 1 when first > last).
  Index copy(Index first, Index last, std::uint64_t cost_bytes_max, std::vector<Entry>& out,
             std::uint64_t* cost_bytes = nullptr) const;

  // Payload and frame cost of every entry held.
  std::uint64_t cost_bytes() const { return cost_bytes_; }
  // Cuts so far, a reset counting as one, and where the last one began: lets an observer look only at what changed.
  std::uint64_t truncations() const { return truncations_; }
  Index last_truncated_from() const { return last_truncated_from_; }
  // Resets so far.
  std::uint64_t resets() const { return resets_; }

 private:
  static constexpr Index kBlockEntries = 512;
  using Block = std::array<Entry, kBlockEntries>;

  // Entry `index` stands in block (index - blocks_first_) / kBlockEntries; blocks_first_ is a multiple of the size.
  Entry& slot(Index index) const {
    const Index offset = index - blocks_first_;
    return (*blocks_[offset / kBlockEntries])[offset % kBlockEntries];
  }
  std::optional<Term> term_of_unheld(Index index) const;
  void note_unheld(Index first, Term term);
  void forget_runs_up_to(Index index);

  Index base_index_ = 0;
  Term base_term_ = 0;
  // The entry before the first held one.
  Index held_base_ = 0;
  Term held_base_term_ = 0;
  Index last_ = 0;
  std::deque<TermRun> unheld_;  // covers base_index_ + 1 .. held_base_
  Index blocks_first_ = 0;
  std::deque<std::unique_ptr<Block>> blocks_;
  std::uint64_t cost_bytes_ = 0;
  std::uint64_t truncations_ = 0;
  Index last_truncated_from_ = 0;
  std::uint64_t resets_ = 0;
};

}  // namespace raft
