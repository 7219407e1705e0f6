#include "sim/record_check.h"

#include "engine/metastore/commands.h"
#include "engine/metastore/envelope.h"
#include "engine/metastore/records.h"
#include "engine/metastore/topic.h"

namespace sim {

namespace {

namespace ms = engine::metastore;

template <typename Command>
std::optional<Command> decode(const raft::Entry& entry) {
  const auto envelope = entry.type == raft::EntryType::command ? ms::read_envelope(entry.bytes()) : std::nullopt;
  if (!envelope || envelope->type != static_cast<uint32_t>(Command::kType)) {
    return std::nullopt;
  }
  return ms::decode_payload<Command>(envelope->payload);
}

std::optional<std::string> first_row(const ms::MemoryRows& rows, ms::Bucket bucket, const std::string& prefix) {
  const std::string begin = ms::row_key(bucket, prefix);
  const auto found = rows.rows().lower_bound(begin);
  return found != rows.rows().end() && found->first.starts_with(begin) ? std::optional(found->first) : std::nullopt;
}

// A topic's name has no ':', so the prefix is its own.
std::optional<std::string> left_behind(const ms::MemoryRows& rows, const std::string& name) {
  if (const auto row = first_row(rows, ms::Bucket::assignments, name + ":")) {
    return row;
  }
  return first_row(rows, ms::Bucket::schemas, name + ":");
}

std::optional<std::string> after_removal(const ms::MemoryRows& rows, const std::string& name) {
  const auto row = left_behind(rows, name);
  return row ? std::optional("topic " + name + " is gone, and " + *row + " is still there") : std::nullopt;
}

}  // namespace

std::optional<std::string> judge_before(const ms::MemoryRows& rows, const raft::Entry& entry, const ms::Answer& answer) {
  const auto mark = answer.ok() ? decode<ms::MarkMemberDeadIf>(entry) : std::nullopt;
  if (!mark) {
    return std::nullopt;
  }
  const auto row = rows.rows().find(ms::row_key(ms::Bucket::members, mark->id));
  const auto member = row != rows.rows().end() ? ms::decode_member(row->second) : std::nullopt;
  if (!member || member->last_heartbeat <= mark->last_heartbeat) {
    return std::nullopt;
  }
  return "member " + mark->id + " is marked dead for its heartbeat of " + std::to_string(mark->last_heartbeat) + ", and has one of " +
         std::to_string(member->last_heartbeat) + " on record";
}

std::optional<std::string> judge_after(const ms::MemoryRows& rows, const raft::Entry& entry, const ms::Answer& answer) {
  if (!answer.ok()) {
    return std::nullopt;
  }
  if (const auto removed = decode<ms::DeleteTopic>(entry)) {
    return after_removal(rows, removed->name);
  }
  if (const auto removed = decode<ms::DeleteTopicIf>(entry)) {
    return after_removal(rows, removed->name);
  }
  if (const auto made = decode<ms::CreateTopicLinked>(entry)) {
    const auto row = first_row(rows, ms::Bucket::assignments, made->topic.name + ":");
    return row ? std::optional("topic " + made->topic.name + " is new, and " + *row + " is there already") : std::nullopt;
  }
  const auto user = decode<ms::DeleteUserReleasing>(entry);
  if (!user) {
    return std::nullopt;
  }
  const std::string begin = ms::row_key(ms::Bucket::topics, "");
  for (auto row = rows.rows().lower_bound(begin); row != rows.rows().end() && row->first.starts_with(begin); ++row) {
    const auto topic = ms::decode_topic(row->second);
    if (topic && topic->owner == user->username) {
      return "user " + user->username + " is deleted, and topic " + topic->name + " still names it as owner";
    }
  }
  return std::nullopt;
}

}  // namespace sim
