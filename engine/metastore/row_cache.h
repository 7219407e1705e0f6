// The rows that recent batches have read or written, as the database has them: what the next batches most often ask for again (members
// and counters always, a topic for as long as something happens to it), without a search in RocksDB. Also keeps that a row is not there.
//
// A WriteSet works on it in place. Between batches every row here must be what the database holds: settle() after a batch that was
// written, clear() after anything else (a failed write or read, another database).
//
// Bounded: two generations. A full one becomes the older one, whose rows come back when they are asked for and otherwise go with
// it. A batch's own rows always find room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/metastore/name_table.h"

namespace engine::metastore {

// Of one generation, when a batch has ended.
inline constexpr size_t kCachedRowsMax = 8192;
inline constexpr size_t kCachedRowBytesMax = 1u << 20;

// A row as a batch sees it.
struct BatchRow {
  std::optional<std::string> value;
  std::optional<uint64_t> hash;  // of the row as it is here, 0 for none; nullopt: not known
  uint64_t hash_in_source = 0;   // of one that is written
  bool is_in_source = false;
  bool is_changed = false;
  bool is_of_entry = false;  // written by the current entry
  bool is_written = false;   // by any entry of the batch, kept or not
};

class RowCache {
 public:
  using Node = NameTable<BatchRow>::Node;

  // Null when it is not here. A node stays where it is until settle() or clear().
  Node* find(std::string_view key) {
    if (Node* found = young_.find(key); found != nullptr) {
      return found;
    }
    Node* old = old_.find(key);
    if (old == nullptr) {
      return nullptr;
    }
    BatchRow row = std::move(old->value);
    old_.erase(key);
    Node& node = add(key, std::move(row.value));
    node.value.hash = row.hash;
    return &node;
  }

  // A row that is not here, as it is in the source.
  Node& add(std::string_view key, std::optional<std::string> value) {
    Node& node = young_.add(key);
    bytes_ += key.size() + (value ? value->size() : 0);
    node.value.is_in_source = value.has_value();
    node.value.value = std::move(value);
    return node;
  }

  // The batch was written: its rows are now the database's.
  void settle(const std::vector<Node*>& written) {
    for (Node* node : written) {
      BatchRow& row = node->value;
      row = {std::move(row.value), row.hash};
      row.is_in_source = row.value.has_value();
      bytes_ += row.value ? row.value->size() : 0;
    }
    if (young_.size() > kCachedRowsMax || bytes_ > kCachedRowBytesMax) {
      old_ = std::move(young_);
      young_ = {};
      bytes_ = 0;
    }
  }

  void clear() {
    young_.clear();
    old_.clear();
    bytes_ = 0;
  }

 private:
  NameTable<BatchRow> young_;
  NameTable<BatchRow> old_;
  size_t bytes_ = 0;  // of keys and values that came into young_
};

}  // namespace engine::metastore
