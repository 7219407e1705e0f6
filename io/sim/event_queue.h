// What happens when: callables ordered by (time, sequence of their scheduling). Small captures live in reused slots, so
// that scheduling an event allocates nothing once the world is warm.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "io/check.h"
#include "io/time.h"

namespace io::sim {

class EventQueue {
 public:
  EventQueue() = default;
  ~EventQueue() { clear(); }
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }
  // kNever when empty.
  Instant next_time() const { return heap_.empty() ? kNever : heap_.front().at; }

  template <typename Fn>
  void push(Instant at, Fn fn) {
    static_assert(sizeof(Fn) <= kInlineBytes, "capture less, or a pointer to more");
    static_assert(std::is_nothrow_move_constructible_v<Fn>);
    const uint32_t index = take_slot();
    Slot& slot = slot_at(index);
    new (slot.storage) Fn(std::move(fn));
    slot.run_or_drop = [](void* storage, bool run) {
      Fn* stored = std::launder(reinterpret_cast<Fn*>(storage));
      if (run) {
        (*stored)();
      }
      stored->~Fn();
    };
    heap_.push_back(Entry{at, next_sequence_++, index});
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }

  // Runs the first event. It may push others.
  void run_next() {
    NARAD_CHECK(!heap_.empty(), "no event to run");
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    const uint32_t index = heap_.back().slot;
    heap_.pop_back();
    Slot& slot = slot_at(index);
    slot.run_or_drop(slot.storage, true);
    free_.push_back(index);
  }

  // Drops every event without running it.
  void clear() {
    while (!heap_.empty()) {
      const uint32_t index = heap_.back().slot;
      heap_.pop_back();
      Slot& slot = slot_at(index);
      slot.run_or_drop(slot.storage, false);
      free_.push_back(index);
    }
  }

 private:
  static constexpr size_t kInlineBytes = 96;
  static constexpr uint32_t kSlotsPerChunk = 256;

  struct Slot {
    alignas(std::max_align_t) std::byte storage[kInlineBytes];
    void (*run_or_drop)(void*, bool run) = nullptr;
  };
  struct Entry {
    Instant at;
    uint64_t sequence;
    uint32_t slot;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
    }
  };

  Slot& slot_at(uint32_t index) { return chunks_[index / kSlotsPerChunk][index % kSlotsPerChunk]; }
  uint32_t take_slot() {
    if (free_.empty()) {
      const uint32_t first = static_cast<uint32_t>(chunks_.size()) * kSlotsPerChunk;
      chunks_.push_back(std::make_unique<Slot[]>(kSlotsPerChunk));
      for (uint32_t i = kSlotsPerChunk; i > 0; --i) {
        free_.push_back(first + i - 1);
      }
    }
    const uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }

  std::vector<Entry> heap_;
  std::vector<std::unique_ptr<Slot[]>> chunks_;  // slots never move: an event may push while it runs
  std::vector<uint32_t> free_;
  uint64_t next_sequence_ = 0;
};

}  // namespace io::sim
