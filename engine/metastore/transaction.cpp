#include "engine/metastore/transaction.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "io/check.h"
#include "io/mix.h"

namespace engine::metastore {

namespace {

uint64_t little_endian_word(const char* bytes) {
  uint64_t word = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&word, bytes, sizeof(word));
    return word;
  }
  for (size_t i = 0; i < sizeof(word); ++i) {
    word |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return word;
}

// The bytes as little-endian words, the last one padded with zeros; the length goes in, so padding cannot collide.
uint64_t hash_bytes(uint64_t hash, std::string_view bytes) {
  hash = io::mix_inline(hash, bytes.size());
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    hash = io::mix_inline(hash, little_endian_word(bytes.data() + at));
  }
  uint64_t rest = 0;
  for (size_t i = 0; at + i < bytes.size(); ++i) {
    rest |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return io::mix_inline(hash, rest);
}

bool counts_in_digest(std::string_view key) { return !key.starts_with("fsm_meta/"); }

}  // namespace

std::string_view name_of(Bucket bucket) {
  switch (bucket) {
    case Bucket::topics: return "topics";
    case Bucket::schemas: return "schemas";
    case Bucket::assignments: return "assignments";
    case Bucket::members: return "members";
    case Bucket::users: return "users";
    case Bucket::removed_members: return "removed_members";
    case Bucket::remotes: return "remotes";
    case Bucket::topic_names: return "topic_names";
    case Bucket::schema_heads: return "schema_heads";
    case Bucket::placed_partitions: return "placed_partitions";
    case Bucket::owners: return "owners";
    case Bucket::owned_topics: return "owned_topics";
    case Bucket::counters: return "counters";
    case Bucket::fsm_meta: return "fsm_meta";
  }
  NARAD_CHECK(false, "a bucket without a name");
  return "";
}

std::string row_key(Bucket bucket, std::string_view key) {
  std::string_view name = name_of(bucket);
  std::string row;
  row.reserve(name.size() + 1 + key.size());
  row.append(name).push_back('/');
  row.append(key);
  return row;
}

std::string end_of(Bucket bucket) { return std::string(name_of(bucket)) + static_cast<char>('/' + 1); }

std::string end_of_prefix(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') {
    prefix.pop_back();
  }
  NARAD_CHECK(!prefix.empty(), "a prefix that nothing comes after");
  prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

uint64_t row_hash(std::string_view row_key, std::string_view value) {
  constexpr uint64_t kSeed = 0x4e617261642d726fULL;
  return hash_bytes(hash_bytes(kSeed, row_key), value);
}

// ---- WriteSet --------------------------------------------------------------------------------------------------------------

WriteSet::Node& WriteSet::load(Bucket bucket, std::string_view key) {
  const std::string_view name = name_of(bucket);
  key_.assign(name).push_back('/');
  key_.append(key);
  if (loaded_ != nullptr && loaded_->name == key_) {
    return *loaded_;
  }
  Node* found = rows_->find(key_);
  loaded_ = found != nullptr ? found : &rows_->add(key_, source_.read(key_));
  return *loaded_;
}

std::optional<std::string> WriteSet::get(Bucket bucket, std::string_view key) { return load(bucket, key).value.value; }

void WriteSet::put(Bucket bucket, std::string_view key, std::string value) { write(bucket, key, std::move(value)); }

void WriteSet::erase(Bucket bucket, std::string_view key) { write(bucket, key, std::nullopt); }

void WriteSet::write(Bucket bucket, std::string_view key, std::optional<std::string> value) {
  NARAD_CHECK(bucket != Bucket::fsm_meta, "a handler wrote the database's own row");
  Node& node = load(bucket, key);
  BatchRow& row = node.value;
  if (!row.is_written) {
    row.is_written = true;
    row.hash_in_source = hash_of(node);
    written_.push_back(&node);
  }
  if (!row.is_of_entry) {
    entry_.push_back({&node, std::move(row.value), row.is_changed});
    row.is_of_entry = true;
  }
  row.value = std::move(value);
  row.hash.reset();
  row.is_changed = true;
}

void WriteSet::keep_entry() {
  for (Before& before : entry_) {
    BatchRow& now = before.row->value;
    now.is_of_entry = false;
    if (now.value == before.value) {
      now.is_changed = before.is_changed;
    }
  }
  entry_.clear();
}

void WriteSet::drop_entry() {
  for (Before& before : entry_) {
    BatchRow& row = before.row->value;
    row.value = std::move(before.value);
    row.is_changed = before.is_changed;
    row.is_of_entry = false;
  }
  entry_.clear();
}

uint64_t WriteSet::digest() const {
  NARAD_CHECK(entry_.empty(), "the digest is asked for within an entry");
  uint64_t digest = digest_;
  for (Node* node : written_) {
    if (node->value.is_changed) {
      digest += hash_of(*node) - node->value.hash_in_source;
    }
  }
  return digest;
}

// 0 when there is no such row.
uint64_t WriteSet::hash_of(Node& node) {
  BatchRow& row = node.value;
  if (!row.hash) {
    row.hash = row.value ? row_hash(node.name, *row.value) : 0;
  }
  return *row.hash;
}

std::vector<const WriteSet::Node*> WriteSet::changes() const {
  std::vector<const Node*> changed;
  for (const Node* node : written_) {
    if (node->value.is_changed && (node->value.value || node->value.is_in_source)) {
      changed.push_back(node);
    }
  }
  std::sort(changed.begin(), changed.end(), [](const Node* one, const Node* other) { return one->name < other->name; });
  return changed;
}

bool WriteSet::has_changes() const { return !changes().empty(); }

// ---- MemoryRows ------------------------------------------------------------------------------------------------------------

std::optional<std::string> MemoryRows::read(const std::string& row_key) {
  auto found = rows_.find(row_key);
  return found == rows_.end() ? std::nullopt : std::optional<std::string>(found->second);
}

void MemoryRows::take(const WriteSet& changes) {
  changes.for_each_change([&](const std::string& key, const std::string& value) { rows_[key] = value; },
                          [&](const std::string& key) { rows_.erase(key); });
  NARAD_CHECK(digest() == changes.digest(), "the digest kept by a batch is not the sum over the rows");
}

uint64_t MemoryRows::digest() const {
  uint64_t sum = 0;
  for (const auto& [key, value] : rows_) {
    if (counts_in_digest(key)) {
      sum += row_hash(key, value);
    }
  }
  return sum;
}

}  // namespace engine::metastore
