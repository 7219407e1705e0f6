#include "sim/placement_check.h"

#include <map>
#include <vector>

#include "engine/cluster/entry_gate.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/kept_rows.h"
#include "engine/metastore/records.h"
#include "engine/metastore/topic.h"
#include "sim/command_draws.h"

namespace sim {
namespace {

namespace ms = engine::metastore;
using ms::Bucket;
using Wrong = std::optional<std::string>;

std::optional<std::string> find(const ms::MemoryRows& rows, Bucket bucket, std::string_view key) {
  const auto found = rows.rows().find(ms::row_key(bucket, key));
  return found == rows.rows().end() ? std::nullopt : std::optional(found->second);
}

std::optional<ms::Topic> topic_of(const ms::MemoryRows& rows, std::string_view name) {
  const auto bytes = find(rows, Bucket::topics, name);
  return bytes ? ms::decode_topic(*bytes) : std::nullopt;
}

std::optional<ms::Assignment> row_of(const ms::MemoryRows& rows, std::string_view topic, int32_t partition) {
  const auto bytes = find(rows, Bucket::assignments, ms::assignment_key(topic, partition));
  return bytes ? ms::decode_assignment(*bytes) : std::nullopt;
}

// Every record of a bucket.
template <typename Record>
std::vector<Record> all(const ms::MemoryRows& rows, Bucket bucket, std::optional<Record> (*decode)(std::string_view)) {
  std::vector<Record> records;
  const std::string begin = ms::row_key(bucket, "");
  for (auto at = rows.rows().lower_bound(begin); at != rows.rows().end() && at->first.starts_with(begin); ++at) {
    if (std::optional<Record> record = decode(at->second)) {
      records.push_back(std::move(*record));
    }
  }
  return records;
}

std::string place(const std::string& topic, int32_t partition) { return topic + "/" + std::to_string(partition); }

bool is_live(const ms::MemoryRows& rows, const std::string& topic, int32_t partition) {
  const std::optional<ms::Topic> record = topic_of(rows, topic);
  return record && partition >= 0 && partition < record->partitions;
}

// ---- One entry -----------------------------------------------------------------------------------------------------------------

template <typename C>
Wrong judge(const ms::MemoryRows&, const C&) {
  return std::nullopt;
}

Wrong judge(const ms::MemoryRows& before, const ms::PlacePartition& entry) {
  const auto row = row_of(before, entry.topic, entry.partition);
  if (row) {
    return "a placement of " + place(entry.topic, entry.partition) + " on " + entry.owner + " was accepted over its owner " + row->owner_id;
  }
  const auto topic = topic_of(before, entry.topic);
  if (!topic || topic->id != entry.topic_id || !is_live(before, entry.topic, entry.partition)) {
    return "a placement was accepted for " + place(entry.topic, entry.partition) + ", which is no partition of that incarnation";
  }
  return std::nullopt;
}

Wrong judge(const ms::MemoryRows& before, const ms::AssignPartition& entry) {
  const ms::Assignment& next = entry.assignment;
  const auto row = row_of(before, next.topic, next.partition);
  if (row && row->owner_id != next.owner_id && !is_command_topic(next.topic)) {
    return place(next.topic, next.partition) + " was taken from its owner " + row->owner_id + " and given to " + next.owner_id;
  }
  return std::nullopt;
}

Wrong judge(const ms::MemoryRows& before, const ms::CompleteMove& entry) {
  const auto row = row_of(before, entry.topic, entry.partition);
  const bool is_done = row && row->owner_id == entry.target && row->target_id.empty();
  const bool fits = row && row->owner_id == entry.expected_owner && row->target_id == entry.target;
  if (!is_done && !fits) {
    return "the move of " + place(entry.topic, entry.partition) + " from " + entry.expected_owner + " to " + entry.target +
           " was completed, and the row is " + (row ? row->owner_id + ">" + row->target_id : "not there");
  }
  return std::nullopt;
}

Wrong judge(const ms::MemoryRows& before, const ms::SetMoveTarget& entry) {
  const auto row = row_of(before, entry.topic, entry.partition);
  // Members of the load's own making are marked dead by it at any moment, a leader's mark comes between two plans.
  if (!row || is_command_topic(entry.topic) || entry.target.empty() || is_command_member(row->owner_id)) {
    return std::nullopt;
  }
  const auto owner = find(before, Bucket::members, row->owner_id);
  const auto member = owner ? ms::decode_member(*owner) : std::nullopt;
  if (member && member->status == ms::MemberStatus::dead) {
    return place(entry.topic, entry.partition) + " of " + row->owner_id + ", which is dead, was given the destination " + entry.target;
  }
  return std::nullopt;
}

Wrong judge(const ms::MemoryRows& before, const ms::PruneAssignment& entry) {
  if (is_live(before, entry.topic, entry.partition)) {
    return "the row of " + place(entry.topic, entry.partition) + " was pruned, and the partition exists";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> judge_assignment(const ms::MemoryRows& before, const raft::Entry& entry, const ms::Answer& answer) {
  const auto envelope = ms::read_envelope(entry.bytes());
  if (entry.type != raft::EntryType::command || !answer.ok() || !envelope || envelope->type > ms::kNewestEntryType) {
    return std::nullopt;
  }
  const auto command = ms::decode_payload(envelope->type, envelope->payload);
  return command ? std::visit([&](const auto& one) { return judge(before, one); }, *command) : std::nullopt;
}

std::optional<std::string> unplaced_partition(const ms::MemoryRows& rows) {
  bool is_anybody_there = false;
  for (const ms::Member& member : all(rows, Bucket::members, &ms::decode_member)) {
    is_anybody_there = is_anybody_there || (member.status == ms::MemberStatus::alive && !member.draining);
  }
  if (!is_anybody_there) {
    return std::nullopt;
  }
  for (const ms::Topic& topic : all(rows, Bucket::topics, &ms::decode_topic)) {
    for (int32_t partition = 0; partition < topic.partitions; ++partition) {
      if (!row_of(rows, topic.name, partition)) {
        return place(topic.name, partition);
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> orphan_row(const ms::MemoryRows& rows, const raft::Configuration& configuration) {
  std::vector<std::string> servers;
  for (const raft::Server& server : configuration.servers) {
    servers.push_back(server.id);
  }
  // Nobody is the leader here: its record, too, is as its last heartbeat made it.
  const auto prune = static_cast<uint32_t>(ms::EntryType::prune_assignment);
  const engine::cluster::GateSelf nobody{"", "", ms::kNewestEntryType};
  if (engine::cluster::hold_back(prune, servers, all(rows, Bucket::members, &ms::decode_member), nobody)) {
    return std::nullopt;
  }
  for (const ms::Assignment& row : all(rows, Bucket::assignments, &ms::decode_assignment)) {
    if (!is_live(rows, row.topic, row.partition)) {
      return place(row.topic, row.partition);
    }
  }
  return std::nullopt;
}

}  // namespace sim
