#include "sim/replica.h"

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
  const std::string prefix = engine::metastore::row_key(engine::metastore::Bucket::topics, "");
  const auto note = [&](const std::string& key, std::optional<engine::metastore::Topic> topic) {
    if (key.starts_with(prefix)) applied.topics.emplace_back(key.substr(prefix.size()), std::move(topic));
  };
  result.rows.for_each_change([&](const std::string& key, const std::string& value) { note(key, engine::metastore::decode_topic(value)); },
                              [&](const std::string& key) { note(key, std::nullopt); });
  rows_.take(result.rows);
  state_ = result.state;
  digests_.push_back(state_.digest);
  NARAD_CHECK(result.answers.size() == 1, "an entry has one answer");
  applied.answer = std::move(result.answers.front());
  return applied;
}

}  // namespace sim
