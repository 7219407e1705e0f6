#include "engine/metastore/kept_rows.h"

#include <algorithm>

#include "engine/metastore/fb_io.h"
#include "engine/metastore/records_generated.h"
#include "io/check.h"
#include "io/defence.h"

namespace engine::metastore {

namespace {

using Builder = flatbuffers::FlatBufferBuilder;

// What `decode` makes of the row; `Value()` when there is none.
template <typename Value>
Value load_row(Transaction& rows, Bucket bucket, std::string_view key, std::optional<Value> (*decode)(std::string_view)) {
  std::optional<std::string> bytes = rows.get(bucket, key);
  if (!bytes) {
    return Value();
  }
  std::optional<Value> value = decode(*bytes);
  NARAD_CHECK(value.has_value(), "a kept row that cannot be decoded");
  return std::move(*value);
}

std::string with_number(std::string_view name, int64_t number) {
  std::string key(name);
  key.push_back(':');
  return key += std::to_string(number);
}

// ---- Stored forms ----------------------------------------------------------------------------------------------------------

std::string encode_names(const std::vector<std::string>& names) {
  Builder builder(128);
  auto built = builder.CreateVectorOfStrings(names);
  builder.Finish(fb::CreateNameList(builder, built));
  return std::string(finished(builder));
}

std::optional<std::vector<std::string>> read_names(std::string_view bytes) {
  return read_root<fb::NameList>(bytes, [](const fb::NameList& stored, Copies& copies) { return copies.texts(stored.names()); });
}

// First and last partition of each run without a gap, in order.
using Ranges = std::vector<int32_t>;

std::string encode_ranges(const Ranges& ends) {
  Builder builder(64);
  auto built = builder.CreateVector(ends);
  builder.Finish(fb::CreatePartitionRanges(builder, built));
  return std::string(finished(builder));
}

std::optional<Ranges> decode_ranges(std::string_view bytes) {
  return read_root<fb::PartitionRanges>(bytes, [](const fb::PartitionRanges& stored, Copies& copies) {
    Ranges ends = copies.integers(stored.ends());
    if (ends.size() % 2 != 0 || !std::is_sorted(ends.begin(), ends.end())) {
      copies.fail();
    }
    return ends;
  });
}

std::vector<int32_t> expand(const Ranges& ends) {
  std::vector<int32_t> partitions;
  for (size_t i = 0; i + 1 < ends.size(); i += 2) {
    for (int64_t partition = ends[i]; partition <= ends[i + 1]; ++partition) {
      partitions.push_back(static_cast<int32_t>(partition));
    }
  }
  return partitions;
}

struct OwnedTopics {
  std::optional<std::string> first;
  uint64_t count = 0;
};

std::string encode_owned(const OwnedTopics& owned) {
  Builder builder(128);
  auto first = optional_text(builder, owned.first);
  builder.Finish(fb::CreateOwnedTopics(builder, first, owned.count));
  return std::string(finished(builder));
}

std::optional<OwnedTopics> decode_owned(std::string_view bytes) {
  return read_root<fb::OwnedTopics>(bytes, [](const fb::OwnedTopics& stored, Copies& copies) {
    return OwnedTopics{copies.optional_text(stored.first()), stored.count()};
  });
}

struct Neighbours {
  std::optional<std::string> previous;
  std::optional<std::string> next;
};

std::string encode_neighbours(const Neighbours& neighbours) {
  Builder builder(128);
  auto previous = optional_text(builder, neighbours.previous);
  auto next = optional_text(builder, neighbours.next);
  builder.Finish(fb::CreateOwnedTopic(builder, previous, next));
  return std::string(finished(builder));
}

std::optional<Neighbours> decode_neighbours(std::string_view bytes) {
  return read_root<fb::OwnedTopic>(bytes, [](const fb::OwnedTopic& stored, Copies& copies) {
    return Neighbours{copies.optional_text(stored.previous()), copies.optional_text(stored.next())};
  });
}

std::optional<Neighbours> load_neighbours(Transaction& rows, std::string_view topic) {
  std::optional<std::string> bytes = rows.get(Bucket::owned_topics, topic);
  if (!bytes) {
    return std::nullopt;
  }
  std::optional<Neighbours> neighbours = decode_neighbours(*bytes);
  NARAD_CHECK(neighbours.has_value(), "an owned_topics row that cannot be decoded");
  return neighbours;
}

void store_neighbours(Transaction& rows, const std::string& topic, const Neighbours& neighbours) {
  rows.put(Bucket::owned_topics, topic, encode_neighbours(neighbours));
}

void store_topic(Transaction& rows, const Topic& topic) { rows.put(Bucket::topics, topic.name, encode_topic(topic)); }

void store_ranges(Transaction& rows, std::string_view topic, const Ranges& ends) {
  if (ends.empty()) {
    rows.erase(Bucket::placed_partitions, topic);
  } else {
    rows.put(Bucket::placed_partitions, topic, encode_ranges(ends));
  }
}

void count_remote(Transaction& rows, const Topic& topic, bool is_coming) {
  if (!topic.remote) {
    return;
  }
  for (const std::string& name :
       {remote_children_counter(topic.remote->name), remote_target_counter(topic.remote->name, topic.remote->topic)}) {
    const uint64_t count = counter(rows, name);
    set_counter(rows, name, is_coming ? count + 1 : count - std::min<uint64_t>(count, 1));
  }
}

bool is_same_target(const std::optional<RemoteLink>& one, const std::optional<RemoteLink>& other) {
  return one.has_value() == other.has_value() && (!one || (one->name == other->name && one->topic == other->topic));
}

}  // namespace

std::string schema_key(std::string_view topic, int64_t version) { return with_number(topic, version); }
std::string assignment_key(std::string_view topic, int32_t partition) { return with_number(topic, partition); }

// ---- Names -----------------------------------------------------------------------------------------------------------------

std::vector<std::string> decode_names(std::string_view bytes) {
  std::optional<std::vector<std::string>> names = read_names(bytes);
  NARAD_CHECK(names.has_value(), "a topic_names row that is no list of names");
  return std::move(*names);
}

std::vector<std::string> names_like(Transaction& rows, std::string_view name) {
  return load_row(rows, Bucket::topic_names, fold_name(name), read_names);
}

void add_name(Transaction& rows, const std::string& name) {
  std::vector<std::string> names = names_like(rows, name);
  auto place = std::lower_bound(names.begin(), names.end(), name);
  if (place != names.end() && *place == name) {
    return;
  }
  names.insert(place, name);
  rows.put(Bucket::topic_names, fold_name(name), encode_names(names));
}

void drop_name(Transaction& rows, const std::string& name) {
  std::vector<std::string> names = names_like(rows, name);
  if (std::erase(names, name) == 0) {
    return;
  }
  if (names.empty()) {
    rows.erase(Bucket::topic_names, fold_name(name));
  } else {
    rows.put(Bucket::topic_names, fold_name(name), encode_names(names));
  }
}

// ---- Schemas ---------------------------------------------------------------------------------------------------------------

std::string encode_schema_head(const SchemaHead& head) {
  Builder builder(64);
  builder.Finish(fb::CreateSchemaHead(builder, head.versions, head.bytes));
  return std::string(finished(builder));
}

std::optional<SchemaHead> decode_schema_head(std::string_view bytes) {
  return read_root<fb::SchemaHead>(bytes, [](const fb::SchemaHead& stored, Copies&) {
    return SchemaHead{stored.versions(), stored.bytes()};
  });
}

SchemaHead schema_head(Transaction& rows, std::string_view topic) {
  return load_row(rows, Bucket::schema_heads, topic, decode_schema_head);
}

std::string schema_at(Transaction& rows, std::string_view topic, int64_t version) {
  return rows.get(Bucket::schemas, schema_key(topic, version)).value_or(std::string());
}

void add_schema(Transaction& rows, std::string_view topic, int64_t version, std::string schema) {
  SchemaHead head = schema_head(rows, topic);
  if (version <= head.versions) {
    return;
  }
  NARAD_CHECK(version == head.versions + 1, "a schema version that leaves a gap");
  head.versions = version;
  head.bytes += schema.size();
  set_counter(rows, kSchemaBytes, cluster_schema_bytes(rows) + schema.size());
  rows.put(Bucket::schema_heads, topic, encode_schema_head(head));
  rows.put(Bucket::schemas, schema_key(topic, version), std::move(schema));
}

bool drop_schemas(Transaction& rows, std::string_view topic) {
  const SchemaHead head = schema_head(rows, topic);
  if (head.versions == 0) {
    return false;
  }
  for (int64_t version = 1; version <= head.versions; ++version) {
    rows.erase(Bucket::schemas, schema_key(topic, version));
  }
  rows.erase(Bucket::schema_heads, topic);
  const uint64_t all = cluster_schema_bytes(rows);
  set_counter(rows, kSchemaBytes, all - std::min(all, head.bytes));
  return true;
}

uint64_t cluster_schema_bytes(Transaction& rows) { return counter(rows, kSchemaBytes); }

// ---- Assignments -----------------------------------------------------------------------------------------------------------

std::optional<std::vector<int32_t>> decode_placed(std::string_view bytes) {
  std::optional<Ranges> ends = decode_ranges(bytes);
  return ends ? std::optional<std::vector<int32_t>>(expand(*ends)) : std::nullopt;
}

std::vector<int32_t> placed_partitions(Transaction& rows, std::string_view topic) {
  return expand(load_row(rows, Bucket::placed_partitions, topic, decode_ranges));
}

void add_placed(Transaction& rows, std::string_view topic, int32_t partition) {
  Ranges ends = load_row(rows, Bucket::placed_partitions, topic, decode_ranges);
  // The first range that ends at or behind the partition.
  size_t at = 0;
  while (at < ends.size() && ends[at + 1] < partition) {
    at += 2;
  }
  if (at < ends.size() && ends[at] <= partition) {
    return;
  }
  const bool meets_left = at > 0 && int64_t{ends[at - 1]} + 1 == partition;
  const bool meets_right = at < ends.size() && int64_t{partition} + 1 == ends[at];
  const auto place = ends.begin() + static_cast<ptrdiff_t>(at);
  if (meets_left && meets_right) {
    ends.erase(place - 1, place + 1);
  } else if (meets_left) {
    ends[at - 1] = partition;
  } else if (meets_right) {
    ends[at] = partition;
  } else {
    ends.insert(place, {partition, partition});
  }
  store_ranges(rows, topic, ends);
}

void drop_placed(Transaction& rows, std::string_view topic, int32_t partition) {
  Ranges ends = load_row(rows, Bucket::placed_partitions, topic, decode_ranges);
  size_t at = 0;
  while (at < ends.size() && ends[at + 1] < partition) {
    at += 2;
  }
  if (at == ends.size() || ends[at] > partition) {
    return;
  }
  const auto place = ends.begin() + static_cast<ptrdiff_t>(at);
  const bool is_first = ends[at] == partition;
  const bool is_last = ends[at + 1] == partition;
  if (is_first && is_last) {
    ends.erase(place, place + 2);
  } else if (is_first) {
    ++ends[at];
  } else if (is_last) {
    --ends[at + 1];
  } else {
    ends.insert(place + 1, {partition - 1, partition + 1});
  }
  store_ranges(rows, topic, ends);
}

bool drop_assignments(Transaction& rows, std::string_view topic) {
  const std::vector<int32_t> partitions = placed_partitions(rows, topic);
  for (int32_t partition : partitions) {
    rows.erase(Bucket::assignments, assignment_key(topic, partition));
  }
  if (!partitions.empty()) {
    rows.erase(Bucket::placed_partitions, topic);
  }
  return !partitions.empty();
}

// ---- Owners ----------------------------------------------------------------------------------------------------------------

std::vector<std::string> owned_topics(Transaction& rows, std::string_view owner) {
  const OwnedTopics owned = load_row(rows, Bucket::owners, owner, decode_owned);
  std::vector<std::string> names;
  std::optional<std::string> at = owned.first;
  while (at && names.size() < owned.count) {
    names.push_back(*at);
    std::optional<Neighbours> neighbours = load_neighbours(rows, *at);
    at = neighbours ? neighbours->next : std::nullopt;
  }
  return names;
}

void join_owner(Transaction& rows, const std::string& owner, const std::string& topic) {
  if (owner.empty()) {
    return;
  }
  OwnedTopics owned = load_row(rows, Bucket::owners, owner, decode_owned);
  if (owned.first) {
    if (std::optional<Neighbours> neighbours = load_neighbours(rows, *owned.first)) {
      neighbours->previous = topic;
      store_neighbours(rows, *owned.first, *neighbours);
    }
  }
  store_neighbours(rows, topic, {std::nullopt, owned.first});
  owned.first = topic;
  ++owned.count;
  rows.put(Bucket::owners, owner, encode_owned(owned));
}

void leave_owner(Transaction& rows, const std::string& owner, const std::string& topic) {
  const std::optional<Neighbours> mine = owner.empty() ? std::nullopt : load_neighbours(rows, topic);
  if (!mine) {
    return;
  }
  OwnedTopics owned = load_row(rows, Bucket::owners, owner, decode_owned);
  if (mine->next) {
    if (std::optional<Neighbours> next = load_neighbours(rows, *mine->next)) {
      next->previous = mine->previous;
      store_neighbours(rows, *mine->next, *next);
    }
  }
  if (!mine->previous) {
    owned.first = mine->next;
  } else if (std::optional<Neighbours> previous = load_neighbours(rows, *mine->previous)) {
    previous->next = mine->next;
    store_neighbours(rows, *mine->previous, *previous);
  }
  rows.erase(Bucket::owned_topics, topic);
  if (owned.count <= 1) {
    rows.erase(Bucket::owners, owner);
  } else {
    --owned.count;
    rows.put(Bucket::owners, owner, encode_owned(owned));
  }
}

// ---- Counters --------------------------------------------------------------------------------------------------------------

std::string remote_children_counter(std::string_view remote) { return "remote_children/" + std::string(remote); }

std::string remote_target_counter(std::string_view remote, std::string_view topic) {
  std::string name = "remote_targets/" + std::to_string(remote.size());
  name.append("/").append(remote).append("/").append(topic);
  return name;
}

std::optional<uint64_t> decode_counter(std::string_view bytes) {
  return read_root<fb::Counter>(bytes, [](const fb::Counter& stored, Copies&) { return stored.value(); });
}

uint64_t counter(Transaction& rows, Bucket bucket, std::string_view name) { return load_row(rows, bucket, name, decode_counter); }

void set_counter(Transaction& rows, Bucket bucket, std::string_view name, uint64_t value) {
  if (value == 0) {
    rows.erase(bucket, name);
    return;
  }
  Builder builder(64);
  builder.Finish(fb::CreateCounter(builder, value));
  rows.put(bucket, name, std::string(finished(builder)));
}

// ---- Topics ----------------------------------------------------------------------------------------------------------------

std::optional<Topic> load_topic(Transaction& rows, std::string_view name) {
  std::optional<std::string> bytes = rows.get(Bucket::topics, name);
  if (!bytes) {
    return std::nullopt;
  }
  std::optional<Topic> topic = decode_topic(*bytes);
  NARAD_CHECK(topic.has_value(), "a topic row that is no record");
  return topic;
}

void add_topic(Transaction& rows, const Topic& topic) {
  store_topic(rows, topic);
  add_name(rows, topic.name);
  join_owner(rows, topic.owner, topic.name);
  count_remote(rows, topic, true);
}

void replace_topic(Transaction& rows, const Topic& before, const Topic& after) {
  NARAD_CHECK(before.name == after.name, "a record replaced under another name");
  store_topic(rows, after);
  if (before.owner != after.owner) {
    leave_owner(rows, before.owner, before.name);
    join_owner(rows, after.owner, after.name);
  }
  if (!is_same_target(before.remote, after.remote)) {
    count_remote(rows, before, false);
    count_remote(rows, after, true);
  }
}

void drop_topic(Transaction& rows, const Topic& topic) {
  rows.erase(Bucket::topics, topic.name);
  drop_name(rows, topic.name);
  leave_owner(rows, topic.owner, topic.name);
  count_remote(rows, topic, false);
  if (io::defence(io::Defence::rows_survive_topic)) {
    drop_schemas(rows, topic.name);
    drop_assignments(rows, topic.name);
  }
}

std::vector<std::string> release_owned_topics(Transaction& rows, const std::string& owner) {
  std::vector<std::string> names = owned_topics(rows, owner);
  for (const std::string& name : names) {
    if (std::optional<Topic> topic = load_topic(rows, name)) {
      topic->owner.clear();
      store_topic(rows, *topic);
    }
    rows.erase(Bucket::owned_topics, name);
  }
  rows.erase(Bucket::owners, owner);
  return names;
}

}  // namespace engine::metastore
