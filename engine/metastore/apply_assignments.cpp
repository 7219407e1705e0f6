#include "engine/metastore/apply_assignments.h"

#include <string>

#include "engine/metastore/kept_rows.h"
#include "engine/metastore/records.h"
#include "io/check.h"
#include "io/defence.h"

namespace engine::metastore {

namespace {

std::string partition_text(const std::string& topic, int32_t partition) {
  return "partition " + std::to_string(partition) + " of topic " + topic;
}

std::optional<Assignment> load(Transaction& rows, const std::string& topic, int32_t partition) {
  std::optional<std::string> bytes = rows.get(Bucket::assignments, assignment_key(topic, partition));
  if (!bytes) {
    return std::nullopt;
  }
  std::optional<Assignment> row = decode_assignment(*bytes);
  NARAD_CHECK(row.has_value(), "an assignment row that is no record");
  return row;
}

// A row that exists.
void replace(Transaction& rows, const Assignment& row, Effects& effects) {
  rows.put(Bucket::assignments, assignment_key(row.topic, row.partition), encode_assignment(row));
  effects.moved(Domain::assignments, row.topic);
}

void put(Transaction& rows, const Assignment& row, Effects& effects) {
  add_placed(rows, row.topic, row.partition);
  replace(rows, row, effects);
}

Answer no_row(const std::string& topic, int32_t partition) { return refuse(Code::not_found, partition_text(topic, partition)); }

bool is_in_range(const Topic& topic, int32_t partition) { return partition >= 0 && partition < topic.partitions; }

}  // namespace

Answer apply_entry(Transaction& rows, const AssignPartition& entry, Effects& effects) {
  put(rows, entry.assignment, effects);
  return {};
}

Answer apply_entry(Transaction& rows, const SetMoveTarget& entry, Effects& effects) {
  std::optional<Assignment> row = load(rows, entry.topic, entry.partition);
  if (!row) {
    return no_row(entry.topic, entry.partition);
  }
  if (row->target_id != entry.target) {
    row->target_id = entry.target;
    replace(rows, *row, effects);
  }
  return {};
}

Answer apply_entry(Transaction& rows, const CompleteMove& entry, Effects& effects) {
  std::optional<Assignment> row = load(rows, entry.topic, entry.partition);
  if (!row) {
    return no_row(entry.topic, entry.partition);
  }
  if (row->owner_id == entry.target && row->target_id.empty()) {
    return {};
  }
  if (row->owner_id != entry.expected_owner || row->target_id != entry.target) {
    return refuse(Code::invalid_argument, "the move of " + partition_text(entry.topic, entry.partition) + " is another one");
  }
  row->owner_id = entry.target;
  row->target_id.clear();
  replace(rows, *row, effects);
  return {};
}

Answer apply_entry(Transaction& rows, const AbortMove& entry, Effects& effects) {
  std::optional<Assignment> row = load(rows, entry.topic, entry.partition);
  if (!row) {
    return no_row(entry.topic, entry.partition);
  }
  if (row->target_id == entry.expected_target && !row->target_id.empty()) {
    row->target_id.clear();
    replace(rows, *row, effects);
  }
  return {};
}

Answer apply_entry(Transaction& rows, const PlacePartition& entry, Effects& effects) {
  const std::optional<Topic> topic = load_topic(rows, entry.topic);
  if (!topic) {
    return refuse(Code::not_found, "topic " + entry.topic);
  }
  if (topic->id != entry.topic_id) {
    return refuse(Code::topic_changed, "topic " + entry.topic);
  }
  if (!is_in_range(*topic, entry.partition)) {
    return refuse(Code::invalid_argument, "no " + partition_text(entry.topic, entry.partition));
  }
  if (entry.owner.empty()) {
    return refuse(Code::invalid_argument, partition_text(entry.topic, entry.partition) + " without an owner");
  }
  if (rows.get(Bucket::removed_members, entry.owner)) {
    return refuse(Code::invalid_argument, "member " + entry.owner + " was removed from the cluster");
  }
  if (rows.get(Bucket::assignments, assignment_key(entry.topic, entry.partition)) &&
      io::defence(io::Defence::placement_replaces_owner)) {
    return refuse(Code::partition_assigned, partition_text(entry.topic, entry.partition));
  }
  put(rows, {entry.topic, entry.partition, entry.owner, {}}, effects);
  return {};
}

Answer apply_entry(Transaction& rows, const PruneAssignment& entry, Effects& effects) {
  const std::string key = assignment_key(entry.topic, entry.partition);
  if (!rows.get(Bucket::assignments, key)) {
    return no_row(entry.topic, entry.partition);
  }
  const std::optional<Topic> topic = load_topic(rows, entry.topic);
  if (topic && is_in_range(*topic, entry.partition)) {
    return refuse(Code::assignment_live, partition_text(entry.topic, entry.partition));
  }
  rows.erase(Bucket::assignments, key);
  drop_placed(rows, entry.topic, entry.partition);
  if (topic) {
    effects.moved(Domain::assignments, entry.topic);
  } else {
    effects.retired(Domain::assignments, entry.topic);
  }
  return {};
}

}  // namespace engine::metastore
