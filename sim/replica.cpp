#include "sim/replica.h"

#include "engine/metastore/kept_rows.h"
#include "io/check.h"

namespace sim {

Replica::Applied Replica::apply(const raft::Entry& entry) {
  NARAD_CHECK(entry.index == last_index() + 1, "the replica takes every entry, in order");
  engine::metastore::Evaluation result = engine::metastore::evaluate(rows_, state_, {entry}, newest_type_);
  if (result.unknown) {
    digests_.push_back(state_.digest);
    return {};
  }
  Applied applied;
  namespace ms = engine::metastore;
  const std::string topics = ms::row_key(ms::Bucket::topics, "");
  const std::string heads = ms::row_key(ms::Bucket::schema_heads, "");
  const auto note = [&](const std::string& key, const std::string* value) {
    if (key.starts_with(topics)) {
      applied.topics.emplace_back(key.substr(topics.size()), value == nullptr ? std::nullopt : ms::decode_topic(*value));
    } else if (key.starts_with(heads)) {
      const auto head = value == nullptr ? std::nullopt : ms::decode_schema_head(*value);
      applied.schemas.push_back({key.substr(heads.size()), head ? head->versions : 0, ""});
    }
  };
  result.rows.for_each_change([&](const std::string& key, const std::string& value) { note(key, &value); },
                              [&](const std::string& key) { note(key, nullptr); });
  rows_.take(result.rows);
  state_ = result.state;
  for (Applied::Schemas& schemas : applied.schemas) {
    schemas.latest = rows_.read(ms::row_key(ms::Bucket::schemas, ms::schema_key(schemas.topic, schemas.versions))).value_or("");
  }
  digests_.push_back(state_.digest);
  NARAD_CHECK(result.answers.size() == 1, "an entry has one answer");
  applied.answer = std::move(result.answers.front());
  return applied;
}

}  // namespace sim
