// Topic records and entries for tests.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/metastore/envelope.h"
#include "engine/metastore/topic.h"
#include "raft/types.h"

namespace tests {

inline engine::metastore::Topic make_topic(std::string name, int32_t partitions = 3) {
  engine::metastore::Topic topic;
  topic.name = std::move(name);
  topic.id = "00112233445566aa";
  topic.partitions = partitions;
  topic.retention_ms = 604'800'000;
  topic.visibility_timeout_ms = 30'000;
  topic.max_in_flight_per_partition = 1024;
  topic.max_acked_ahead_per_partition = 1024;
  topic.created_at = 1'700'000'000;
  return topic;
}

inline raft::Entry make_entry(raft::Index index, std::string command, raft::Term term = 1) {
  return raft::Entry{term, index, raft::EntryType::command, std::make_shared<const std::string>(std::move(command))};
}

inline raft::Entry create_entry(raft::Index index, std::string name) {
  return make_entry(index, engine::metastore::encode_create_topic(make_topic(std::move(name))));
}

inline raft::Entry update_entry(raft::Index index, std::string name, int32_t partitions) {
  return make_entry(index, engine::metastore::encode_update_topic(make_topic(std::move(name), partitions)));
}

inline raft::Entry delete_entry(raft::Index index, std::string_view name) {
  return make_entry(index, engine::metastore::encode_delete_topic(name));
}

}  // namespace tests
