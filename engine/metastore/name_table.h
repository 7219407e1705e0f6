// A table of values by name, for what is looked up far more often than anything else: find, add and erase in constant time, and
// values that stay where they are in memory while others come and go.
//
// Open addressing with linear probes over a hash of our own, at most half full. Nothing about it depends on addresses, on the library
// or on the process: the same calls make the same table everywhere. It has no bound of its own; whoever fills it states one.
// The hash is fixed, so somebody who picks names with care can make probes long: a table's bound is also the bound of that.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/check.h"

namespace engine::metastore {

// Eight bytes at a time, the last ones padded with zeros; good for tables only.
inline uint64_t name_hash(std::string_view name) {
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15ULL;
  uint64_t hash = name.size() * kMultiplier;
  const char* at = name.data();
  size_t left = name.size();
  const auto add = [&](uint64_t word) {
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 32;
  };
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, 8);
    add(word);
  }
  uint64_t rest = 0;
  if (left > 0) {
    std::memcpy(&rest, at, left);
  }
  add(rest);
  return hash * kMultiplier >> 32;
}

template <typename Value>
class NameTable {
 public:
  struct Node {
    std::string name;
    Value value{};
    bool is_used = false;
  };

  NameTable() = default;
  NameTable(NameTable&&) = default;
  NameTable& operator=(NameTable&&) = default;
  NameTable(const NameTable&) = delete;
  NameTable& operator=(const NameTable&) = delete;

  size_t size() const { return used_; }

  // Null when there is none. Stays valid until the name is erased or the table cleared or moved away.
  Node* find(std::string_view name) { return const_cast<Node*>(std::as_const(*this).find(name)); }
  const Node* find(std::string_view name) const {
    if (used_ == 0) {
      return nullptr;
    }
    const size_t slot = slot_of(name, tag_of(name));
    return slots_[slot].node == 0 ? nullptr : &nodes_[slots_[slot].node - 1];
  }

  // The name's node, with a new value where there was none.
  Node& add(std::string_view name) {
    if (2 * (used_ + 1) > slots_.size()) {
      grow();
    }
    const uint32_t tag = tag_of(name);
    Slot& slot = slots_[slot_of(name, tag)];
    if (slot.node == 0) {
      slot = {tag, new_node()};
      ++used_;
      nodes_[slot.node - 1].name = name;
    }
    return nodes_[slot.node - 1];
  }

  // False when there was none.
  bool erase(std::string_view name) {
    if (used_ == 0) {
      return false;
    }
    const size_t slot = slot_of(name, tag_of(name));
    if (slots_[slot].node == 0) {
      return false;
    }
    drop_node(slots_[slot].node);
    close_gap(slot);
    return true;
  }

  // Of every node for which drops(node) is true; asked once of each, oldest place first.
  template <typename Drops>
  void erase_if(Drops drops) {
    for (Node& node : nodes_) {
      if (node.is_used && drops(node)) {
        const size_t slot = slot_of(node.name, tag_of(node.name));
        NARAD_CHECK(slots_[slot].node != 0, "a name that its table does not find");
        drop_node(slots_[slot].node);
        close_gap(slot);
      }
    }
  }

  void clear() {
    slots_.clear();
    nodes_.clear();
    free_.clear();
    used_ = 0;
  }

 private:
  static constexpr size_t kSlotsMin = 16;

  struct Slot {
    uint32_t tag = 0;   // of the name's hash
    uint32_t node = 0;  // place of its node, plus one; 0: the slot is empty
  };

  static uint32_t tag_of(std::string_view name) { return static_cast<uint32_t>(name_hash(name)); }
  size_t home_of(uint32_t tag) const { return tag & (slots_.size() - 1); }
  size_t after(size_t slot) const { return (slot + 1) & (slots_.size() - 1); }

  // Where the name is, or the empty slot where it would go.
  size_t slot_of(std::string_view name, uint32_t tag) const {
    size_t slot = home_of(tag);
    while (slots_[slot].node != 0 && (slots_[slot].tag != tag || nodes_[slots_[slot].node - 1].name != name)) {
      slot = after(slot);
    }
    return slot;
  }

  uint32_t new_node() {
    if (free_.empty()) {
      NARAD_CHECK(nodes_.size() < UINT32_MAX / 4, "a table of more names than it can count");
      nodes_.emplace_back().is_used = true;
      return static_cast<uint32_t>(nodes_.size());
    }
    const uint32_t node = free_.back();
    free_.pop_back();
    nodes_[node - 1].is_used = true;
    return node;
  }

  void drop_node(uint32_t node) {
    nodes_[node - 1] = Node{};
    free_.push_back(node);
    --used_;
  }

  // Those behind the emptied slot move up, unless they would stand before their own place.
  void close_gap(size_t gap) {
    for (size_t slot = after(gap); slots_[slot].node != 0; slot = after(slot)) {
      const size_t from_home = (slot - home_of(slots_[slot].tag)) & (slots_.size() - 1);
      const size_t from_gap = (slot - gap) & (slots_.size() - 1);
      if (from_home >= from_gap) {
        slots_[gap] = slots_[slot];
        gap = slot;
      }
    }
    slots_[gap] = {};
  }

  void grow() {
    std::vector<Slot> before(slots_.empty() ? kSlotsMin : slots_.size() * 2);
    before.swap(slots_);
    for (const Slot& old : before) {
      if (old.node == 0) {
        continue;
      }
      size_t slot = home_of(old.tag);
      while (slots_[slot].node != 0) {
        slot = after(slot);
      }
      slots_[slot] = old;
    }
  }

  std::vector<Slot> slots_;  // a power of two of them
  std::deque<Node> nodes_;
  std::vector<uint32_t> free_;
  size_t used_ = 0;
};

}  // namespace engine::metastore
