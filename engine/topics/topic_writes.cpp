// Create, alter and delete.
#include <algorithm>

#include "engine/metastore/records_reader.h"
#include "engine/topics/create_gate.h"
#include "engine/topics/manager.h"
#include "engine/topics/schema_rules.h"
#include "io/check.h"
#include "io/probe.h"

namespace engine::topics {

using metastore::Answer;
using metastore::Code;
using metastore::CreateTopicLinked;
using metastore::Topic;

namespace {

Reply topic_reply(int status, const Topic& topic, bool shows_standalone) {
  return Reply{status, topic_json(topic, shows_standalone) + "\n"};
}

Reply create_refused(const Answer& answer, const std::string& name) {
  switch (answer.code) {
    case Code::already_exists:
      return error_reply(409, "topic already exists: " + name);
    case Code::topic_already_exists:
      return error_reply(409, "topic already exists: " + answer.detail + " (names must differ in more than letter case)");
    default:
      return refused_reply(answer);
  }
}

// What an entry's answer comes to for a request that has checked it against records: changed where those are others by now.
Attempt settle(const Answer& answer, Reply done) {
  if (answer.code == Code::topic_changed) {
    return Attempt::changed();
  }
  return Attempt::settled(answer.ok() ? std::move(done) : refused_reply(answer));
}

// The command by itself: what it asks for, with no link.
Topic record_of(const CreateRequest& request, int32_t partitions, std::string id, int64_t created_at, const Actor& actor) {
  Topic topic;
  topic.name = request.name;
  topic.id = std::move(id);
  topic.partitions = partitions;
  topic.retention_ms = request.retention_ms;
  topic.visibility_timeout_ms = request.visibility_timeout_ms;
  topic.max_in_flight_per_partition = request.max_in_flight;
  topic.max_acked_ahead_per_partition = request.max_acked_ahead;
  topic.created_at = created_at;
  topic.owner = actor.value_or("");
  return topic;
}

Topic as_linked(const CreateTopicLinked& entry) {
  Topic topic = entry.topic;
  if (entry.link) {
    topic.role = metastore::Role::child;
    topic.parent = entry.link->parent;
    topic.attach_epoch = entry.link->epoch;
    topic.fanout_delay_ms = entry.link->delay_ms;
    topic.attach_offsets = entry.link->offsets;
  }
  return topic;
}

}  // namespace

Manager::Manager(Parts parts)
    : ground_(parts.env, parts.reader, parts.proposer, parts.gate),
      reader_(parts.reader),
      placer_(parts.placer),
      limits_(parts.limits),
      ownership_(parts.ownership),
      create_gate_(parts.create_gate) {}

Manager::~Manager() = default;

std::optional<Attempt> Manager::foresee_refusal(const std::string& command, io::Instant deadline) {
  const io::Result<Answer> answer = ground_.foresee(command, deadline);
  if (!answer.ok()) {
    return Attempt::settled(unreadable(answer.error()));
  }
  // Records that changed while the rules were looked at: the request is judged anew.
  if (answer->code == Code::topic_changed) {
    return Attempt::changed();
  }
  return answer->ok() ? std::nullopt : std::optional(Attempt::refused(refused_reply(*answer)));
}

// ---- Create ----------------------------------------------------------------------------------------------------------------

struct Manager::Creation {
  bool may_place = false;  // the placer has been asked
};

Reply Manager::create(std::string_view body, const Actor& actor, io::Instant deadline) {
  Checked<CreateRequest> request = parse_create(body, limits_);
  if (Reply* wrong = std::get_if<Reply>(&request)) {
    return *wrong;
  }
  if (create_gate_ != nullptr && !create_gate_->is_open()) {
    SOMETIMES("topics: a create waits for the node's start");
    if (!create_gate_->wait(deadline)) {
      return unavailable_reply("this node is starting");
    }
  }
  const CreateRequest& wanted = std::get<CreateRequest>(request);
  std::vector<std::string_view> names{wanted.name};
  if (!wanted.parent.empty()) {
    names.push_back(wanted.parent);
  }
  Creation progress;
  return ground_.carry_out(names, deadline, [&](const Turn& turn) { return try_create(wanted, actor, progress, turn); });
}

Attempt Manager::try_create(const CreateRequest& request, const Actor& actor, Creation& progress, const Turn& turn) {
  if (std::optional<Reply> denied = why_not_create(reader_, actor, request.name, turn.deadline)) {
    return Attempt::refused(*std::move(denied));
  }
  CreateTopicLinked entry;
  int32_t partitions = request.partitions;
  if (!request.parent.empty()) {
    const io::Result<TopicPtr> parent = reader_.get_topic(request.parent, turn.deadline);
    if (!parent.ok()) {
      return Attempt::settled(unreadable(parent.error()));
    }
    if (*parent == nullptr) {
      return Attempt::refused(topic_not_found());
    }
    if (std::optional<Reply> denied = why_not_own_all(reader_, actor, {parent->get()}, turn.deadline)) {
      return Attempt::refused(*std::move(denied));
    }
    partitions = partitions == 0 ? (*parent)->partitions : partitions;
    entry.link.emplace(metastore::ParentLink{request.parent, (*parent)->id, ground_.draw_id(), request.fanout_delay_ms,
                                             attach_offsets(**parent)});
  }
  entry.topic = record_of(request, partitions, ground_.draw_id(), io::to_unix_seconds(ground_.env().clock.wall()), actor);
  entry.schema = request.schema;
  const io::Result<Answer> foreseen = ground_.foresee(metastore::encode_command(entry), turn.deadline);
  if (!foreseen.ok()) {
    return Attempt::settled(unreadable(foreseen.error()));
  }
  if (!foreseen->ok()) {
    return foreseen->code == Code::topic_changed ? Attempt::changed() : Attempt::refused(create_refused(*foreseen, request.name));
  }
  if (!progress.may_place) {
    if (std::optional<Reply> refusal = placer_.ready_to_place(turn.deadline)) {
      SOMETIMES("topics: no node takes new partitions");
      return Attempt::settled(*std::move(refusal));
    }
    progress.may_place = true;
    return try_create(request, actor, progress, turn);  // that may have waited: everything is read again
  }
  const Outcome outcome = ground_.may_use(CreateTopicLinked::kType, turn)
                              ? ground_.propose(metastore::encode_command(entry), turn)
                              : create_in_steps(entry, turn);
  if (!outcome.answer) {
    return Attempt::settled(outcome.failure);
  }
  if (!outcome.answer->ok()) {
    return outcome.answer->code == Code::topic_changed ? Attempt::changed()
                                                       : Attempt::settled(create_refused(*outcome.answer, request.name));
  }
  placer_.place(request.name, PlacementCause::created, turn.deadline);
  return Attempt::settled(topic_reply(201, as_linked(entry), false));
}

// The entries of every release. A step that is refused, or certainly not taken, is followed by a delete of what was made before it.
Manager::Outcome Manager::create_in_steps(const CreateTopicLinked& entry, const Turn& turn) {
  const std::string& name = entry.topic.name;
  Outcome outcome = ground_.propose(metastore::encode_command(metastore::CreateTopic{entry.topic}), turn);
  const auto went_on = [&] { return outcome.answer && outcome.answer->ok(); };
  if (!went_on()) {
    return outcome;
  }
  std::string schema = entry.schema;
  if (!schema.empty() && entry.link) {
    // The older entry compares histories byte by byte. The parent's version is equal in value, so it can be the child's as well.
    const io::Result<std::optional<std::string>> parents = metastore::get_schema(reader_, entry.link->parent, 1, turn.deadline);
    schema = parents.ok() && *parents ? **parents : schema;
  }
  if (!schema.empty()) {
    SOMETIMES("topics: a create writes its schema by an entry of its own");
    outcome = ground_.propose(metastore::encode_command(metastore::PutSchema{name, 1, schema}), turn);
    if (!went_on()) {
      return undo_create(entry.topic, std::move(outcome), turn);
    }
  }
  if (entry.link) {
    SOMETIMES("topics: a create links its parent by an entry of its own");
    const metastore::ParentLink& link = *entry.link;
    outcome = ground_.propose(
        metastore::encode_command(metastore::AttachChild{link.parent, name, link.epoch, link.delay_ms, link.offsets}), turn);
    if (!went_on()) {
      return undo_create(entry.topic, std::move(outcome), turn);
    }
  }
  return outcome;
}

Manager::Outcome Manager::undo_create(const Topic& topic, Outcome why, const Turn& turn) {
  if (!why.answer && why.may_be_appended) {
    // It may still be done: what is deleted now might be a whole topic.
    SOMETIMES("topics: half a create is left, since the rest may still come");
    return why;
  }
  // Read again before it is undone: the name may be another's by now.
  const io::Result<TopicPtr> left = reader_.get_topic(topic.name, turn.deadline);
  Outcome undone;
  if (left.ok() && *left != nullptr && (*left)->id == topic.id) {
    SOMETIMES("topics: half a create is taken back");
    undone = ground_.propose(metastore::encode_command(metastore::DeleteTopic{topic.name}), turn);
  }
  const bool is_gone = (left.ok() && (*left == nullptr || (*left)->id != topic.id)) || (undone.answer && undone.answer->ok());
  if (is_gone) {
    return why;
  }
  SOMETIMES("topics: half a create could not be taken back");
  ground_.env().log.warn("topic was created without its schema or its link, and could not be deleted again",
                         {{"topic", topic.name}, {"id", topic.id}});
  return {std::nullopt, outcome_unknown_reply(), true};
}

// ---- Alter -----------------------------------------------------------------------------------------------------------------

// How far an alter has come, over its tries.
struct Manager::Alteration {
  bool may_place = false;    // the placer has been asked
  bool has_record = false;   // the record's groups are written
  std::string id;            // of the incarnation they were written to
};

// The version that a schema makes, if it makes one.
struct Manager::SchemaStep {
  std::optional<metastore::PutSchemaIf> entry;
};

Reply Manager::alter(std::string_view name, std::string_view body, const Actor& actor, io::Instant deadline) {
  Checked<AlterRequest> request = parse_alter(body, limits_);
  if (Reply* wrong = std::get_if<Reply>(&request)) {
    return *wrong;
  }
  const AlterRequest& wanted = std::get<AlterRequest>(request);
  Alteration progress;
  Reply reply = ground_.carry_out({name}, deadline, [&](const Turn& turn) { return try_alter(name, wanted, actor, progress, turn); });
  if (progress.has_record && is_unavailable(reply.status, reply.body)) {
    // Nothing came of the rest, but the record is changed: asking the same again is not what would have been asked at first.
    SOMETIMES("topics: half a change of a topic has no leader for its rest");
    return outcome_unknown_reply();
  }
  return reply;
}

Attempt Manager::try_alter(std::string_view name, const AlterRequest& request, const Actor& actor, Alteration& progress,
                           const Turn& turn) {
  const io::Result<TopicPtr> stored = reader_.get_topic(name, turn.deadline);
  if (!stored.ok()) {
    return Attempt::settled(unreadable(stored.error()));
  }
  if (*stored == nullptr) {
    return Attempt::refused(topic_not_found());
  }
  if (progress.has_record && (*stored)->id != progress.id) {
    return Attempt::settled(topic_changed_reply());
  }
  if (std::optional<Reply> denied = why_not_own_all(reader_, actor, {stored->get()}, turn.deadline)) {
    return Attempt::refused(*std::move(denied));
  }
  Topic changed = **stored;
  const bool writes_record = request.changes_record() && !progress.has_record;
  if (writes_record) {
    changed.retention_ms = request.retention_ms.value_or(changed.retention_ms);
    changed.max_in_flight_per_partition = request.max_in_flight.value_or(changed.max_in_flight_per_partition);
    changed.max_acked_ahead_per_partition = request.max_acked_ahead.value_or(changed.max_acked_ahead_per_partition);
    if (request.partitions && *request.partitions <= changed.partitions) {
      return Attempt::refused(
          invalid_argument("partitions must be more than the topic has (" + std::to_string(changed.partitions) + ")"));
    }
    changed.partitions = request.partitions.value_or(changed.partitions);
    if (auto refused = foresee_refusal(metastore::encode_command(metastore::UpdateTopicIf{changed, changed.id}), turn.deadline)) {
      return *std::move(refused);
    }
  }
  SchemaStep schema;
  if (auto refused = judge_schema(changed, request, schema, turn)) {
    return *std::move(refused);
  }
  if (writes_record && request.partitions && !progress.may_place) {
    if (std::optional<Reply> refusal = placer_.ready_to_place(turn.deadline)) {
      SOMETIMES("topics: no node takes new partitions");
      return Attempt::settled(*std::move(refusal));
    }
    progress.may_place = true;
    return try_alter(name, request, actor, progress, turn);  // that may have waited: everything is read again
  }
  if (writes_record) {
    if (auto ended = alter_record(changed, request, progress, turn)) {
      return *std::move(ended);
    }
  }
  if (schema.entry) {
    const metastore::PutSchemaIf& entry = *schema.entry;
    const Outcome outcome = ground_.propose_either(entry, metastore::PutSchema{entry.topic, entry.version, entry.schema}, turn);
    if (!outcome.answer) {
      return Attempt::settled(outcome.failure);
    }
    // The version was taken, or versions went: another leader's entries.
    const bool is_other = outcome.answer->code == Code::already_exists || outcome.answer->code == Code::invalid_argument;
    return is_other ? Attempt::changed() : settle(*outcome.answer, topic_reply(200, changed, true));
  }
  return Attempt::settled(topic_reply(200, changed, true));
}

// Nullopt once the record is written.
std::optional<Attempt> Manager::alter_record(const Topic& changed, const AlterRequest& request, Alteration& progress,
                                             const Turn& turn) {
  const Outcome outcome =
      ground_.propose_either(metastore::UpdateTopicIf{changed, changed.id}, metastore::UpdateTopic{changed}, turn);
  if (!outcome.answer) {
    return Attempt::settled(outcome.failure);
  }
  if (!outcome.answer->ok()) {
    return settle(*outcome.answer, {});
  }
  progress.has_record = true;
  progress.id = changed.id;
  if (request.partitions) {
    placer_.place(changed.name, PlacementCause::grown, turn.deadline);
  }
  return std::nullopt;
}

std::optional<Attempt> Manager::judge_schema(const Topic& topic, const AlterRequest& request, SchemaStep& step, const Turn& turn) {
  if (!request.schema) {
    return std::nullopt;
  }
  if (topic.role == metastore::Role::child) {
    return Attempt::refused(refused_reply(metastore::refuse(Code::fanout_schema_managed, "topic " + topic.name)));
  }
  const io::Result<metastore::SchemaHead> head = metastore::get_schema_head(reader_, topic.name, turn.deadline);
  if (!head.ok()) {
    return Attempt::settled(unreadable(head.error()));
  }
  if (request.schema_base_version && *request.schema_base_version != head->versions) {
    return Attempt::refused(error_reply(409, "schema version conflict: the topic's schema is at version " +
                                                 std::to_string(head->versions) + ", not " +
                                                 std::to_string(*request.schema_base_version)));
  }
  if (head->versions > 0) {
    const io::Result<std::optional<std::string>> latest = metastore::get_schema(reader_, topic.name, head->versions, turn.deadline);
    if (!latest.ok()) {
      return Attempt::settled(unreadable(latest.error()));
    }
    if (!*latest) {
      return Attempt::changed();  // versions went between the two reads
    }
    const SchemaComparison comparison = compare_schemas(**latest, *request.schema);
    if (comparison.change == SchemaChange::none) {
      return std::nullopt;
    }
    if (comparison.change == SchemaChange::narrows) {
      return Attempt::refused(invalid_argument("schema: it accepts less than version " + std::to_string(head->versions) + ": " +
                                               comparison.why));
    }
  }
  step.entry.emplace(metastore::PutSchemaIf{topic.name, head->versions + 1, *request.schema, topic.id});
  return foresee_refusal(metastore::encode_command(*step.entry), turn.deadline);
}

// ---- Delete ----------------------------------------------------------------------------------------------------------------

Reply Manager::remove(std::string_view name, const std::optional<std::string>& id, const Actor& actor, io::Instant deadline) {
  return ground_.carry_out({name}, deadline, [&](const Turn& turn) { return try_remove(name, id, actor, turn); });
}

Attempt Manager::try_remove(std::string_view name, const std::optional<std::string>& id, const Actor& actor, const Turn& turn) {
  const io::Result<TopicPtr> stored = reader_.get_topic(name, turn.deadline);
  if (!stored.ok()) {
    return Attempt::settled(unreadable(stored.error()));
  }
  if (*stored == nullptr) {
    return Attempt::refused(topic_not_found());
  }
  const Topic& topic = **stored;
  if (id && !id->empty() && *id != topic.id) {
    return Attempt::refused(topic_changed_reply());
  }
  if (std::optional<Reply> denied = why_not_own_all(reader_, actor, {&topic}, turn.deadline)) {
    return Attempt::refused(*std::move(denied));
  }
  if (topic.is_remote_stub()) {
    return Attempt::settled(error_reply(501, "this release does not serve remote children"));
  }
  const Outcome outcome =
      ground_.propose_either(metastore::DeleteTopicIf{topic.name, topic.id}, metastore::DeleteTopic{topic.name}, turn);
  return outcome.answer ? settle(*outcome.answer, Reply{204, ""}) : Attempt::settled(outcome.failure);
}

}  // namespace engine::topics
