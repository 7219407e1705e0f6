#include "raft/log_view.h"

#include <algorithm>
#include <utility>

#include "io/check.h"

namespace raft {

const Entry& LogView::at(Index index) const {
  NARAD_CHECK(index > held_base_ && index <= last_, "the entry is held in the view");
  return slot(index);
}

std::optional<Term> LogView::term_of_unheld(Index index) const {
  if (index == base_index_) return base_term_;
  if (index < base_index_) return std::nullopt;
  const auto above = std::upper_bound(unheld_.begin(), unheld_.end(), index,
                                      [](Index wanted, const TermRun& run) { return wanted < run.first; });
  NARAD_CHECK(above != unheld_.begin(), "the terms of entries not held are known");
  return std::prev(above)->term;
}

Index LogView::find_possible_match(Index index, Term term) const {
  // Terms never fall along a log, so the place can be searched for by halves.
  Index low = base_index_;
  Index high = std::max(std::min(index, last_), base_index_);
  while (low < high) {
    const Index middle = low + (high - low + 1) / 2;
    if (*this->term(middle) <= term) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

void LogView::extend_unheld(std::span<const TermRun> runs, Index last) {
  NARAD_CHECK(last_ == base_index_, "what is on the disk alone comes before what is held");
  if (last == base_index_) return;
  NARAD_CHECK(last > base_index_ && !runs.empty() && runs.front().first == base_index_ + 1,
              "the terms of the entries on the disk are given from the first on");
  for (const TermRun& run : runs) {
    NARAD_CHECK(run.first <= last && run.term >= (unheld_.empty() ? base_term_ : unheld_.back().term) &&
                    (unheld_.empty() || run.first > unheld_.back().first),
                "terms never fall along a log");
    note_unheld(run.first, run.term);
  }
  held_base_ = last_ = last;
  held_base_term_ = unheld_.back().term;
}

void LogView::note_unheld(Index first, Term term) {
  if (unheld_.empty() || unheld_.back().term != term) unheld_.push_back(TermRun{first, term});
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
  NARAD_CHECK(from > held_base_, "what lies at or below the base of what is held is never cut");
  if (from > last_) return;
  for (Index index = from; index <= last_; ++index) {
    Entry& entry = slot(index);
    cost_bytes_ -= entry.cost_bytes();
    entry = Entry{};
  }
  last_ = from - 1;
  const Index blocks_needed = last_ == held_base_ ? 0 : (last_ - blocks_first_) / kBlockEntries + 1;
  while (blocks_.size() > blocks_needed) blocks_.pop_back();
  ++truncations_;
  last_truncated_from_ = from;
}

void LogView::release(Index index) {
  NARAD_CHECK(index <= last_, "what is released is in the log");
  if (index <= held_base_) return;
  for (Index i = held_base_ + 1; i <= index; ++i) {
    Entry& entry = slot(i);
    if (entry.term != held_base_term_ || unheld_.empty()) note_unheld(i, entry.term);
    held_base_term_ = entry.term;
    cost_bytes_ -= entry.cost_bytes();
    entry.data.reset();
  }
  held_base_ = index;
  if (last_ == held_base_) {
    blocks_.clear();
    return;
  }
  while (blocks_first_ + kBlockEntries <= held_base_ + 1) {
    blocks_.pop_front();
    blocks_first_ += kBlockEntries;
  }
}

void LogView::compact(Index index) {
  NARAD_CHECK(index >= base_index_ && index <= last_, "the new base is in the log");
  if (index == base_index_) return;
  const Term term = *this->term(index);
  release(index);
  forget_runs_up_to(index);
  base_index_ = index;
  base_term_ = term;
}

void LogView::forget_runs_up_to(Index index) {
  if (index == held_base_) {
    unheld_.clear();
    return;
  }
  while (unheld_.size() > 1 && unheld_[1].first <= index + 1) unheld_.pop_front();
  unheld_.front().first = std::max(unheld_.front().first, index + 1);
}

void LogView::reset(Index index, Term term) {
  const Index old_base = base_index_;
  blocks_.clear();
  unheld_.clear();
  cost_bytes_ = 0;
  base_index_ = held_base_ = last_ = index;
  base_term_ = held_base_term_ = term;
  ++truncations_;
  ++resets_;
  last_truncated_from_ = old_base + 1;
}

Index LogView::copy(Index first, Index last, std::uint64_t cost_bytes_max, std::vector<Entry>& out,
                    std::uint64_t* cost_bytes) const {
  std::uint64_t cost = 0;
  Index index = first;
  if (first <= last) {
    NARAD_CHECK(first > held_base_ && last <= last_, "copied entries are held in the view");
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
