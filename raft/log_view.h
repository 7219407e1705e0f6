// The core's picture of its server's log, in memory.
//
// Holds the entries above a base (index, term): the base is 0 for a log that starts at its first entry, or the last entry
// that a snapshot covers. The view is what the protocol reasons about; it may be ahead of the disk. How far the disk is
// (durable), how far entries were handed to the server for writing, is the core's bookkeeping, not kept here.
//
// Bounds: memory is the entries' payloads plus 40 bytes an entry; append, term() and at() take constant time.
// Preconditions are checked, in every build.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "raft/types.h"

namespace raft {

class LogView {
 public:
  LogView() = default;
  LogView(Index base_index, Term base_term) : base_index_(base_index), base_term_(base_term), last_(base_index) {}

  Index base_index() const { return base_index_; }
  Term base_term() const { return base_term_; }
  Index first_index() const { return base_index_ + 1; }
  Index last_index() const { return last_; }
  Term last_term() const { return last_ == base_index_ ? base_term_ : slot(last_).term; }
  bool is_empty() const { return last_ == base_index_; }

  // The term of the entry at `index`; the base counts. Nothing below the base or above the end.
  std::optional<Term> term(Index index) const {
    if (index == base_index_) return base_term_;
    if (index < base_index_ || index > last_) return std::nullopt;
    return slot(index).term;
  }
  bool matches(Index index, Term term) const { return this->term(index) == term; }
  const Entry& at(Index index) const;  // first_index() <= index <= last_index()

  // Whether a log that ends at (index, term) is at least as up to date as this one: last term first, then index.
  bool is_covered_by(Index index, Term term) const {
    return term > last_term() || (term == last_term() && index >= last_);
  }
  // The largest index at or below `index` whose term is at or below `term` (the base if none above it): where two logs
  // may agree, when one has `term` at `index`. `index` may lie beyond the end.
  Index find_possible_match(Index index, Term term) const;

  // `entry` must be the next one, of no older term than the last.
  void append(Entry entry);
  // Cuts every entry at and above `from`; from > base_index(). Cutting past the end does nothing.
  void truncate(Index from);
  // Makes `index` (held here) the base and frees what lies at or below it.
  void compact(Index index);

  // Appends copies of entries first..last to `out`, stopping before the one that would take the copied cost past
  // `cost_bytes_max`, but always copying the first. Returns the last index copied (first - 1 when first > last).
  Index copy(Index first, Index last, std::uint64_t cost_bytes_max, std::vector<Entry>& out,
             std::uint64_t* cost_bytes = nullptr) const;

  // Payload and frame cost of every entry held.
  std::uint64_t cost_bytes() const { return cost_bytes_; }
  // Cuts so far, and where the last one began: lets an observer look only at what changed.
  std::uint64_t truncations() const { return truncations_; }
  Index last_truncated_from() const { return last_truncated_from_; }

 private:
  static constexpr Index kBlockEntries = 512;
  using Block = std::array<Entry, kBlockEntries>;

  // Entry `index` stands in block (index - blocks_first_) / kBlockEntries; blocks_first_ is a multiple of the size.
  Entry& slot(Index index) const {
    const Index offset = index - blocks_first_;
    return (*blocks_[offset / kBlockEntries])[offset % kBlockEntries];
  }

  Index base_index_ = 0;
  Term base_term_ = 0;
  Index last_ = 0;
  Index blocks_first_ = 0;
  std::deque<std::unique_ptr<Block>> blocks_;
  std::uint64_t cost_bytes_ = 0;
  std::uint64_t truncations_ = 0;
  Index last_truncated_from_ = 0;
};

}  // namespace raft
