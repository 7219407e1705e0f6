#include "engine/cluster/admin_json.h"

#include "engine/topics/json.h"

namespace engine::cluster {

namespace {

using json::Value;
using json::Writer;

void write_reasons(Writer& writer, std::string_view key, const std::vector<Blocked>& reasons) {
  writer.key(key).begin_array();
  for (const Blocked& reason : reasons) {
    writer.begin_object();
    writer.key("code").string(code_of(reason.reason));
    writer.key("message").string(reason.message);
    writer.end_object();
  }
  writer.end_array();
}

void write_count(Writer& writer, std::string_view key, uint64_t count) { writer.key(key).integer(static_cast<int64_t>(count)); }

void write_given(Writer& writer, std::string_view key, const std::string& text) {
  if (!text.empty()) {
    writer.key(key).string(text);
  }
}

void write_raw(Writer& writer, std::string_view key, const std::string& json) {
  if (!json.empty()) {
    writer.key(key).raw(json);
  }
}

void write_member(Writer& writer, const MemberRow& row) {
  writer.begin_object();
  writer.key("id").string(row.id);
  writer.key("addr").string(row.addr);
  writer.key("status").string(row.status);
  writer.key("draining").boolean(row.is_draining);
  write_count(writer, "owned_partitions", row.owned_partitions);
  write_count(writer, "outbound_moves", row.outbound_moves);
  writer.key("voter").boolean(row.is_voter);
  writer.key("leader").boolean(row.is_leader);
  writer.key("heartbeat_age_seconds").integer(row.heartbeat_age_seconds);
  if (!row.decommission_blocked.empty()) {
    write_reasons(writer, "decommission_blocked", row.decommission_blocked);
  }
  write_raw(writer, "node_status", row.node_status);
  write_given(writer, "status_error", row.status_error);
  writer.end_object();
}

void write_move(Writer& writer, const MoveRow& row) {
  writer.begin_object();
  writer.key("topic").string(row.topic);
  writer.key("partition").integer(row.partition);
  writer.key("from").string(row.from);
  writer.key("to").string(row.to);
  writer.key("from_status").string(row.from_status);
  writer.key("to_status").string(row.to_status);
  write_given(writer, "blocked", row.blocked);
  write_raw(writer, "worker", row.worker);
  write_given(writer, "worker_error", row.worker_error);
  writer.end_object();
}

void write_node_move(Writer& writer, const NodeStatusFacts::Move& move) {
  writer.begin_object();
  writer.key("topic").string(move.topic);
  writer.key("partition").integer(move.partition);
  writer.key("source").string(move.source);
  writer.key("target").string(move.target);
  writer.key("started_at").integer(move.started_at);
  writer.key("phase").string(move.phase);
  write_count(writer, "attempts", move.attempts);
  writer.key("last_error").string(move.last_error);
  write_count(writer, "copied_bytes", move.copied_bytes);
  writer.end_object();
}

std::string text_at(const Value& object, const char* name) {
  const Value* value = object.find(name);
  return value != nullptr && value->is(Value::Kind::string) ? value->text : std::string();
}

int64_t integer_at(const Value& object, const char* name) {
  const Value* value = object.find(name);
  return value != nullptr && value->is(Value::Kind::integer) ? value->integer : 0;
}

uint64_t count_at(const Value& object, const char* name) {
  const int64_t value = integer_at(object, name);
  return value < 0 ? 0 : static_cast<uint64_t>(value);
}

}  // namespace

std::string members_json(const std::vector<MemberRow>& rows) {
  Writer writer;
  writer.begin_object().key("members").begin_array();
  for (const MemberRow& row : rows) {
    write_member(writer, row);
  }
  writer.end_array().end_object();
  return writer.take();
}

std::string moves_json(const std::vector<MoveRow>& rows) {
  Writer writer;
  writer.begin_object().key("moves").begin_array();
  for (const MoveRow& row : rows) {
    write_move(writer, row);
  }
  writer.end_array().end_object();
  return writer.take();
}

std::string aborted_json(const MoveRow& move, std::string_view note) {
  Writer writer;
  writer.begin_object().key("move");
  write_move(writer, move);
  writer.key("note").string(note);
  writer.end_object();
  return writer.take();
}

std::string dry_run_json(const DryRun& result) {
  Writer writer;
  writer.begin_object();
  writer.key("member").string(result.member);
  writer.key("would_decommission").boolean(result.reasons.empty());
  write_reasons(writer, "reasons", result.reasons);
  writer.key("voter").boolean(result.is_voter);
  write_count(writer, "owned_partitions", result.owned_partitions);
  write_count(writer, "inbound_moves", result.inbound_moves);
  writer.end_object();
  return writer.take();
}

std::string refusal_json(std::string_view id, const std::vector<Blocked>& reasons) {
  std::string text = "decommission of " + std::string(id) + " refused: ";
  for (size_t i = 0; i < reasons.size(); ++i) {
    text.append(i == 0 ? "" : "; ").append(reasons[i].message);
  }
  Writer writer;
  writer.begin_object();
  writer.key("error").string(text);
  write_reasons(writer, "reasons", reasons);
  writer.end_object();
  return writer.take();
}

std::string assignment_json(std::string_view topic, int32_t partition, std::string_view owner, std::string_view target) {
  Writer writer;
  writer.begin_object();
  writer.key("topic").string(topic);
  writer.key("partition").integer(partition);
  writer.key("owner_id").string(owner);
  write_given(writer, "target_id", std::string(target));
  writer.key("leader_read").boolean(true);
  writer.end_object();
  return writer.take();
}

std::string node_status_json(const NodeStatusFacts& facts) {
  Writer writer;
  writer.begin_object();
  writer.key("node").string(facts.node);
  writer.key("draining").boolean(facts.is_draining);
  write_count(writer, "produce_in_flight", facts.produce_in_flight);
  write_count(writer, "dispatch_backlog", facts.dispatch_backlog);
  writer.key("quarantine").begin_object();
  writer.key("copies").integer(0);
  writer.key("bytes").integer(0);
  writer.key("list").begin_array().end_array();
  writer.end_object();
  writer.key("moves").begin_array();
  for (const NodeStatusFacts::Move& move : facts.moves) {
    write_node_move(writer, move);
  }
  writer.end_array().end_object();
  return writer.take();
}

std::string node_move_json(const NodeStatusFacts::Move& move) {
  Writer writer;
  write_node_move(writer, move);
  return writer.take();
}

std::optional<NodeStatusFacts> parse_node_status(std::string_view text) {
  const io::Result<Value> value = json::parse(text);
  if (!value.ok() || !value->is(Value::Kind::object)) {
    return std::nullopt;
  }
  // What is not told is not nothing.
  const Value* backlog = value->find("dispatch_backlog");
  if (backlog == nullptr || !backlog->is(Value::Kind::integer)) {
    return std::nullopt;
  }
  NodeStatusFacts facts;
  facts.node = text_at(*value, "node");
  const Value* draining = value->find("draining");
  facts.is_draining = draining != nullptr && draining->is(Value::Kind::boolean) && draining->boolean;
  facts.produce_in_flight = count_at(*value, "produce_in_flight");
  facts.dispatch_backlog = count_at(*value, "dispatch_backlog");
  const Value* moves = value->find("moves");
  if (moves == nullptr || !moves->is(Value::Kind::array)) {
    return facts;
  }
  for (const Value& item : moves->array) {
    if (!item.is(Value::Kind::object)) {
      return std::nullopt;
    }
    NodeStatusFacts::Move move;
    move.topic = text_at(item, "topic");
    move.partition = static_cast<int32_t>(integer_at(item, "partition"));
    move.source = text_at(item, "source");
    move.target = text_at(item, "target");
    move.started_at = integer_at(item, "started_at");
    move.phase = text_at(item, "phase");
    move.attempts = count_at(item, "attempts");
    move.last_error = text_at(item, "last_error");
    move.copied_bytes = count_at(item, "copied_bytes");
    facts.moves.push_back(std::move(move));
  }
  return facts;
}

}  // namespace engine::cluster
