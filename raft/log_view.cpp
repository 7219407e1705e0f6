#include "raft/log_view.h"

#include <algorithm>
#include <utility>

#include "io/check.h"

namespace raft {

const Entry& LogView::at(Index index) const {
  NARAD_CHECK(index > base_index_ && index <= last_, "the entry is held in the view");
  return slot(index);
}

Index LogView::find_possible_match(Index index, Term term) const {
  // Terms never fall along a log, so the place can be searched for by halves.
  Index low = base_index_;
  Index high = std::max(std::min(index, last_), base_index_);
  while (low < high) {
    const Index middle = low + (high - low + 1) / 2;
    if (slot(middle).term <= term) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

void LogView::append(Entry entry) {
  NARAD_CHECK(entry.index == last_ + 1, "entries are appended one after the other");
  NARAD_CHECK(entry.term >= last_term(), "terms never fall along a log");
  if (blocks_.empty()) blocks_first_ = entry.index / kBlockEntries * kBlockEntries;
  if (entry.index >= blocks_first_ + blocks_.size() * kBlockEntries) blocks_.push_back(std::make_unique<Block>());
  cost_bytes_ += entry.cost_bytes();
  ++last_;
  slot(last_) = std::move(entry);
}

void LogView::truncate(Index from) {
  NARAD_CHECK(from > base_index_, "what lies at or below the base is never cut");
  if (from > last_) return;
  for (Index index = from; index <= last_; ++index) {
    Entry& entry = slot(index);
    cost_bytes_ -= entry.cost_bytes();
    entry = Entry{};
  }
  last_ = from - 1;
  const Index blocks_needed = last_ == base_index_ ? 0 : (last_ - blocks_first_) / kBlockEntries + 1;
  while (blocks_.size() > blocks_needed) blocks_.pop_back();
  ++truncations_;
  last_truncated_from_ = from;
}

void LogView::compact(Index index) {
  NARAD_CHECK(index >= base_index_ && index <= last_, "the new base is held in the view");
  if (index == base_index_) return;
  const Term term = slot(index).term;
  for (Index i = base_index_ + 1; i <= index; ++i) {
    Entry& entry = slot(i);
    cost_bytes_ -= entry.cost_bytes();
    entry = Entry{};
  }
  base_index_ = index;
  base_term_ = term;
  if (last_ == base_index_) {
    blocks_.clear();
    return;
  }
  while (blocks_first_ + kBlockEntries <= base_index_ + 1) {
    blocks_.pop_front();
    blocks_first_ += kBlockEntries;
  }
}

Index LogView::copy(Index first, Index last, std::uint64_t cost_bytes_max, std::vector<Entry>& out,
                    std::uint64_t* cost_bytes) const {
  std::uint64_t cost = 0;
  Index index = first;
  if (first <= last) {
    NARAD_CHECK(first > base_index_ && last <= last_, "copied entries are held in the view");
    out.reserve(out.size() + std::min<Index>(last - first + 1, 256));
    for (; index <= last; ++index) {
      const Entry& entry = slot(index);
      const std::uint64_t next_cost = cost + entry.cost_bytes();
      if (index > first && next_cost > cost_bytes_max) break;
      cost = next_cost;
      out.push_back(entry);
    }
  }
  if (cost_bytes != nullptr) *cost_bytes = cost;
  return index - 1;
}

}  // namespace raft
