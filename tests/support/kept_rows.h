// The rows that handlers keep so as not to scan (engine/metastore/kept_rows.h), held against what a scan of the records says.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/metastore/kept_rows.h"
#include "engine/metastore/records.h"
#include "engine/metastore/topic.h"
#include "engine/metastore/transaction.h"

namespace tests {

// The rows of a bucket, without the bucket's name in the key.
inline std::map<std::string, std::string> rows_in(const std::map<std::string, std::string>& rows, engine::metastore::Bucket bucket) {
  const std::string begin = engine::metastore::row_key(bucket, "");
  std::map<std::string, std::string> found;
  for (auto row = rows.lower_bound(begin); row != rows.end() && row->first.starts_with(begin); ++row) {
    found.emplace(row->first.substr(begin.size()), row->second);
  }
  return found;
}

// What the kept rows must say, from the records alone.
struct KeptRows {
  std::map<std::string, std::vector<std::string>> names;            // folded name -> names, in order
  std::map<std::string, engine::metastore::SchemaHead> schemas;     // by topic
  std::map<std::string, std::set<int64_t>> versions;                // by topic
  std::map<std::string, std::vector<int32_t>> placed;               // by topic, in order
  std::map<std::string, std::set<std::string>> owners;              // user -> topics
  std::map<std::string, uint64_t> counters;
};

inline KeptRows scan_records(const std::map<std::string, std::string>& rows) {
  using namespace engine::metastore;
  KeptRows kept;
  for (const auto& [name, bytes] : rows_in(rows, Bucket::topics)) {
    const Topic topic = decode_topic(bytes).value();
    kept.names[fold_name(name)].push_back(name);
    if (!topic.owner.empty()) {
      kept.owners[topic.owner].insert(name);
    }
    if (topic.remote) {
      ++kept.counters["remote_children/" + topic.remote->name];
      ++kept.counters["remote_targets/" + std::to_string(topic.remote->name.size()) + "/" + topic.remote->name + "/" +
                      topic.remote->topic];
    }
  }
  for (const auto& [key, text] : rows_in(rows, Bucket::schemas)) {
    const size_t colon = key.rfind(':');
    SchemaHead& head = kept.schemas[key.substr(0, colon)];
    ++head.versions;
    head.bytes += text.size();
    kept.versions[key.substr(0, colon)].insert(std::stoll(key.substr(colon + 1)));
    kept.counters["schema_bytes"] += text.size();
  }
  std::erase_if(kept.counters, [](const auto& one) { return one.second == 0; });
  for (const auto& [key, bytes] : rows_in(rows, Bucket::assignments)) {
    const Assignment row = decode_assignment(bytes).value();
    kept.placed[row.topic].push_back(row.partition);
  }
  for (auto& [topic, partitions] : kept.placed) {
    std::sort(partitions.begin(), partitions.end());
  }
  for (const auto& [name, bytes] : rows_in(rows, Bucket::remotes)) {
    kept.counters["remotes"] += name.starts_with('_') ? 0 : 1;
  }
  std::erase_if(kept.counters, [](const auto& one) { return one.second == 0; });
  return kept;
}

// Empty when the kept rows say what the records say, else what is wrong with them.
inline std::string wrong_kept_rows(const std::map<std::string, std::string>& rows) {
  using namespace engine::metastore;
  const KeptRows expected = scan_records(rows);
  KeptRows found;
  for (const auto& [key, bytes] : rows_in(rows, Bucket::topic_names)) {
    found.names[key] = decode_names(bytes);
  }
  if (found.names != expected.names) {
    return "topic_names differ from the topics";
  }
  for (const auto& [key, bytes] : rows_in(rows, Bucket::schema_heads)) {
    found.schemas[key] = decode_schema_head(bytes).value();
  }
  if (found.schemas != expected.schemas) {
    return "schema_heads differ from the schemas";
  }
  for (const auto& [topic, versions] : expected.versions) {
    if (*versions.begin() != 1 || *versions.rbegin() != static_cast<int64_t>(versions.size())) {
      return "the schema versions of " + topic + " have a gap";
    }
  }
  for (const auto& [key, bytes] : rows_in(rows, Bucket::placed_partitions)) {
    found.placed[key] = decode_placed(bytes).value();
  }
  if (found.placed != expected.placed) {
    return "placed_partitions differ from the assignments";
  }
  for (const auto& [key, bytes] : rows_in(rows, Bucket::counters)) {
    found.counters[key] = decode_counter(bytes).value();
  }
  if (found.counters != expected.counters) {
    return "counters differ from what there is";
  }
  MemoryRows source;
  for (const auto& [key, bytes] : rows) {
    source.set(key, bytes);
  }
  WriteSet set(source, 0);
  size_t owned = 0;
  for (const auto& [owner, bytes] : rows_in(rows, Bucket::owners)) {
    const std::vector<std::string> chain = owned_topics(set, owner);
    owned += chain.size();
    found.owners[owner].insert(chain.begin(), chain.end());
    if (found.owners[owner].size() != chain.size()) {
      return "the chain of " + owner + " has a topic twice";
    }
  }
  if (found.owners != expected.owners || owned != rows_in(rows, Bucket::owned_topics).size()) {
    return "the chains of owners differ from the topics";
  }
  return {};
}

}  // namespace tests
