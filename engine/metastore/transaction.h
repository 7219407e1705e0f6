// Named rows, as an entry's handler sees them: read one, put one, erase one. No scans: what would need one (names that differ
// in letter case only, the bytes of all schemas) is a row that is kept in the same batch (kept_rows.h).
//
// WriteSet is the one implementation: it lays what the entries of a batch write over a RowSource (the database, or rows in
// memory), keeps the state digest up to date, and hands out the rows to write. A refused entry leaves nothing in it. Rows that it has
// read or written once are not asked of the source again; given a cache (row_cache.h), not in the next batches either.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/metastore/row_cache.h"

namespace engine::metastore {

// Kinds of rows. The names stand in row keys: they never change (entry-types.md section 9).
enum class Bucket : uint8_t {
  topics,             // name -> Topic
  schemas,            // topic:version -> the schema's bytes
  assignments,        // topic:partition -> Assignment
  members,            // id -> Member
  users,              // name -> User
  removed_members,    // id -> Tombstone
  remotes,            // name -> Remote; "_salt" -> bytes; "_seals/<fingerprint>" -> Counter
  topic_names,        // folded name -> NameList: the topics whose names differ in letter case only
  schema_heads,       // topic -> SchemaHead
  placed_partitions,  // topic -> PartitionRanges
  owners,             // user name -> OwnedTopics
  owned_topics,       // topic -> OwnedTopic
  counters,           // name -> Counter (kept_rows.h)
  fsm_meta,           // the database's own state; never a handler's, and not part of the digest
};

std::string_view name_of(Bucket bucket);
// "topics/orders". The bucket's name has no '/', so no two buckets share a key, whatever `key` holds.
std::string row_key(Bucket bucket, std::string_view key);
// The first key after every row of the bucket.
std::string end_of(Bucket bucket);
// The first key after every one that begins with `prefix`, which has a byte other than 0xff.
std::string end_of_prefix(std::string prefix);

// What a handler gets beside its payload.
class Transaction {
 public:
  virtual ~Transaction() = default;
  // The row as this transaction sees it, with what it has written itself; nullopt when there is none.
  virtual std::optional<std::string> get(Bucket bucket, std::string_view key) = 0;
  virtual void put(Bucket bucket, std::string_view key, std::string value) = 0;
  // Nothing happens when there is no such row.
  virtual void erase(Bucket bucket, std::string_view key) = 0;
};

// Where rows come from.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // The value under a row key, nullopt when absent. A source that cannot read remembers that it failed, and answers nullopt: its
  // user asks before it lets anything written on that ground take effect.
  virtual std::optional<std::string> read(const std::string& row_key) = 0;
};

// Hash of one row; equal on every machine and build.
uint64_t row_hash(std::string_view row_key, std::string_view value);

class WriteSet final : public Transaction {
 public:
  // `digest`: sum of the hashes of all rows in `source` (fsm_meta left out), modulo 2^64. `cache` holds rows of the same source and
  // outlives the set; null: the set keeps its rows itself.
  WriteSet(RowSource& source, uint64_t digest, RowCache* cache = nullptr)
      : source_(source), digest_(digest), own_(cache == nullptr ? std::make_unique<RowCache>() : nullptr), rows_(cache == nullptr ? own_.get() : cache) {}

  std::optional<std::string> get(Bucket bucket, std::string_view key) override;
  void put(Bucket bucket, std::string_view key, std::string value) override;
  void erase(Bucket bucket, std::string_view key) override;

  // Ends the current entry: keeps what it wrote, or forgets it.
  void keep_entry();
  void drop_entry();

  // The digest of the source with every kept entry; between entries. Takes time for each row that they changed.
  uint64_t digest() const;
  // True when kept entries changed at least one row.
  bool has_changes() const;
  // Calls put(row_key, value) and erase(row_key) for each row that differs from the source, in key order.
  template <typename Put, typename Erase>
  void for_each_change(Put&& put, Erase&& erase) const {
    for (const Node* node : changes()) {
      if (node->value.value) {
        put(node->name, *node->value.value);
      } else {
        erase(node->name);
      }
    }
  }
  // What was kept is in the source from now on. Ends the use of this set.
  void settle() { rows_->settle(written_); }

 private:
  using Node = RowCache::Node;
  // A row as it was before the current entry.
  struct Before {
    Node* row;
    std::optional<std::string> value;
    bool is_changed = false;
  };

  // In key order.
  std::vector<const Node*> changes() const;
  static uint64_t hash_of(Node& node);
  Node& load(Bucket bucket, std::string_view key);
  void write(Bucket bucket, std::string_view key, std::optional<std::string> value);

  RowSource& source_;
  const uint64_t digest_;  // of the source
  std::unique_ptr<RowCache> own_;
  RowCache* rows_;
  std::vector<Node*> written_;  // by the batch, each once
  std::vector<Before> entry_;   // of the rows that the current entry has written, each once
  std::string key_;             // of the row that is looked for
  Node* loaded_ = nullptr;      // the row that was looked for last
};

// Rows in memory, for tests and models.
class MemoryRows final : public RowSource {
 public:
  std::optional<std::string> read(const std::string& row_key) override;
  // Takes over the changes of a set made over these rows.
  void take(const WriteSet& changes);
  const std::map<std::string, std::string>& rows() const { return rows_; }
  void set(const std::string& row_key, std::string value) { rows_[row_key] = std::move(value); }
  // Summed anew over all rows.
  uint64_t digest() const;

 private:
  std::map<std::string, std::string> rows_;
};

}  // namespace engine::metastore
