#include "engine/topics/manager.h"

#include <algorithm>
#include <charconv>

#include "engine/metastore/envelope.h"
#include "engine/topics/topic_json.h"
#include "io/check.h"
#include "io/probe.h"

namespace engine::topics {

namespace {

using metastore::Answer;
using metastore::Code;
using metastore::Topic;
using TopicPtr = std::shared_ptr<const Topic>;

Reply topic_reply(int status, const Topic& topic, bool shows_standalone) {
  return Reply{status, topic_json(topic, shows_standalone) + "\n"};
}

Reply not_found() { return error_reply(404, "topic not found"); }

Reply already_exists(std::string_view name) { return error_reply(409, "topic already exists: " + std::string(name)); }

// A replica that cannot be read now says nothing about the topic.
Reply unreadable(const io::Error& error) { return unavailable_reply(error.to_text()); }

Reply refused(const Answer& answer) {
  switch (answer.code) {
    case Code::not_found: return not_found();
    case Code::already_exists: return error_reply(409, "topic " + answer.text());
    default: return error_reply(status_of(answer.code), answer.text());
  }
}

}  // namespace

int status_of(Code code) {
  switch (code) {
    case Code::ok: return 200;
    case Code::not_found: return 404;
    case Code::invalid_argument: return 400;
    case Code::member_removed: return 410;
    case Code::root_protected: return 403;
    case Code::undecodable:
    case Code::assignment_live: return 500;
    case Code::already_exists:
    case Code::topic_already_exists:
    case Code::topic_changed:
    case Code::fanout_role_conflict:
    case Code::fanout_child_limit:
    case Code::fanout_schema_mismatch:
    case Code::fanout_schema_managed:
    case Code::fanout_delay_too_long:
    case Code::schema_history_full:
    case Code::partition_assigned:
    case Code::member_heartbeat_newer:
    case Code::remote_stub_immutable:
    case Code::remote_retention_floor:
    case Code::remote_child_conflict:
    case Code::remote_child_limit:
    case Code::remote_target_linked:
    case Code::remote_child_stale:
    case Code::remote_salt_race:
    case Code::remote_key_exhausted:
    case Code::remote_exists:
    case Code::remote_limit:
    case Code::remote_changed:
    case Code::remote_in_use: return 409;
  }
  return 500;
}

// ---- The lock of a name ----------------------------------------------------------------------------------------------------

struct Manager::NameSlot {
  bool is_held = false;
  size_t waiting = 0;
  io::Condition freed;
};

// Held from acquire() to destruction. A slot lives while somebody holds it or waits for it.
class Manager::NameLock {
 public:
  NameLock(Manager& manager, std::string_view name)
      : manager_(manager), place_(manager.locks_.try_emplace(metastore::fold_name(name)).first) {
    ++place_->second.waiting;
  }
  ~NameLock() {
    NameSlot& slot = place_->second;
    if (is_mine_) {
      slot.is_held = false;
      slot.freed.notify_one();
    }
    if (--slot.waiting == 0) {
      manager_.locks_.erase(place_);
    }
  }
  NameLock(const NameLock&) = delete;
  NameLock& operator=(const NameLock&) = delete;

  // False when the deadline passed first. Throws Cancelled.
  bool acquire(io::Instant deadline) {
    NameSlot& slot = place_->second;
    while (slot.is_held) {
      SOMETIMES("topics: a request waits for another of the same name");
      if (!slot.freed.wait(deadline) && slot.is_held) {
        return false;
      }
    }
    slot.is_held = true;
    is_mine_ = true;
    return true;
  }

 private:
  Manager& manager_;
  std::map<std::string, NameSlot, std::less<>>::iterator place_;
  bool is_mine_ = false;
};

// An entry whose fate stays unknown (also because the fiber was cancelled) may still change what the replica shows: the next
// request waits for a barrier.
class Manager::Distrust {
 public:
  explicit Distrust(Manager& manager) : manager_(manager) {}
  ~Distrust() {
    if (!is_settled_) {
      manager_.trusted_term_ = 0;
      ++manager_.distrusts_;
    }
  }
  Distrust(const Distrust&) = delete;
  Distrust& operator=(const Distrust&) = delete;
  void settle() { is_settled_ = true; }

 private:
  Manager& manager_;
  bool is_settled_ = false;
};

// ---- Manager ---------------------------------------------------------------------------------------------------------------

Manager::Manager(io::Env& env, metastore::Reader& reader, Proposer& proposer, Limits limits)
    : env_(env), reader_(reader), proposer_(proposer), limits_(limits), ids_(env.random.stream("topic id", 0)) {}

Manager::~Manager() = default;

io::Status Manager::trust_local_state(io::Instant deadline) {
  if (!proposer_.is_leader()) {
    return io::fail(io::ErrorKind::busy, "this node does not lead");
  }
  const raft::Term term = proposer_.term();
  if (term == trusted_term_) {
    return {};
  }
  SOMETIMES("topics: a new leader waits for its barrier");
  const uint64_t distrusts = distrusts_;
  if (io::Status reached = proposer_.barrier(std::min(deadline, env_.after(kBarrierTimeout))); !reached.ok()) {
    return reached;
  }
  if (!proposer_.is_leader() || proposer_.term() != term) {
    SOMETIMES("topics: leadership was lost during the barrier");
    return io::fail(io::ErrorKind::busy, "leadership was lost");
  }
  // A proposal whose outcome became unknown meanwhile may be younger than this barrier. It had another name: this request may
  // go on, the next one waits again.
  if (distrusts_ == distrusts) {
    trusted_term_ = term;
  }
  return {};
}

Checked<TopicPtr> Manager::current(std::string_view name, io::Instant deadline) {
  if (io::Status trusted = trust_local_state(deadline); !trusted.ok()) {
    return unavailable_reply(trusted.error().message);
  }
  io::Result<TopicPtr> topic = reader_.get_topic(name, deadline);
  if (!topic.ok()) {
    return unreadable(topic.error());
  }
  return *topic;
}

std::optional<Answer> Manager::propose(std::string command, io::Instant deadline, Reply& failure) {
  Distrust unsettled(*this);
  Proposed proposed = proposer_.propose(std::move(command), std::min(deadline, env_.after(kProposeTimeout)));
  if (proposed.outcome != Proposed::Outcome::unknown) {
    unsettled.settle();
  }
  switch (proposed.outcome) {
    case Proposed::Outcome::applied: {
      std::optional<Answer> answer = metastore::decode_answer(proposed.answer);
      NARAD_CHECK(answer.has_value(), "an applied proposal without the state machine's answer");
      return answer;
    }
    case Proposed::Outcome::unknown:
      SOMETIMES("topics: the outcome of a proposal is unknown");
      failure = outcome_unknown_reply();
      return std::nullopt;
    case Proposed::Outcome::too_large:
      SOMETIMES("topics: a change longer than any entry may be is refused");
      failure = error_reply(413, kTooLargeText);
      return std::nullopt;
    case Proposed::Outcome::not_leader:
    case Proposed::Outcome::refused:
    case Proposed::Outcome::stopped:
      failure = unavailable_reply(proposed.reason);
      return std::nullopt;
  }
  NARAD_CHECK(false, "an outcome that does not exist");
  return std::nullopt;
}

Reply Manager::confirm(io::Instant deadline, const std::function<Reply()>& again) {
  SOMETIMES("topics: a refusal waits for a barrier");
  if (io::Status reached = proposer_.barrier(std::min(deadline, env_.after(kBarrierTimeout))); !reached.ok()) {
    return unavailable_reply(reached.error().message);
  }
  return again();
}

std::string Manager::draw_topic_id() {
  constexpr char kDigits[] = "0123456789abcdef";
  uint64_t number = ids_.next();
  std::string id(16, '0');
  for (size_t i = 0; i < id.size(); ++i) {
    id[i] = kDigits[number >> (60 - 4 * i) & 15];
  }
  return id;
}

// ---- Writes ----------------------------------------------------------------------------------------------------------------

Reply Manager::create(std::string_view body, io::Instant deadline) {
  Checked<CreateRequest> request = parse_create(body, limits_);
  if (Reply* wrong = std::get_if<Reply>(&request)) {
    return *wrong;
  }
  const CreateRequest& wanted = std::get<CreateRequest>(request);
  NameLock lock(*this, wanted.name);
  return lock.acquire(deadline) ? create_locked(wanted, State::trusted, deadline) : unavailable_reply("another request holds the topic's name");
}

Reply Manager::create_locked(const CreateRequest& request, State state, io::Instant deadline) {
  if (io::Status trusted = trust_local_state(deadline); !trusted.ok()) {
    return unavailable_reply(trusted.error().message);
  }
  io::Result<std::vector<std::string>> alike = reader_.names_like(request.name, deadline);
  if (!alike.ok()) {
    return unreadable(alike.error());
  }
  if (!alike->empty()) {
    if (state == State::trusted) {
      return confirm(deadline, [&] { return create_locked(request, State::confirmed, deadline); });
    }
    bool is_same = std::find(alike->begin(), alike->end(), request.name) != alike->end();
    return already_exists(is_same ? request.name : alike->front() + " (names must differ in more than letter case)");
  }
  Topic topic;
  topic.name = request.name;
  topic.id = draw_topic_id();
  topic.partitions = request.partitions;
  topic.retention_ms = request.retention_ms;
  topic.visibility_timeout_ms = request.visibility_timeout_ms;
  topic.max_in_flight_per_partition = request.max_in_flight;
  topic.max_acked_ahead_per_partition = request.max_acked_ahead;
  topic.created_at = io::to_unix_seconds(env_.clock.wall());
  Reply failure;
  std::optional<Answer> answer = propose(metastore::encode_create_topic(topic), deadline, failure);
  if (!answer) {
    return failure;
  }
  return answer->ok() ? topic_reply(201, topic, false) : refused(*answer);
}

Reply Manager::alter(std::string_view name, std::string_view body, io::Instant deadline) {
  Checked<AlterRequest> request = parse_alter(body, limits_);
  if (Reply* wrong = std::get_if<Reply>(&request)) {
    return *wrong;
  }
  NameLock lock(*this, name);
  return lock.acquire(deadline) ? alter_locked(name, std::get<AlterRequest>(request), State::trusted, deadline)
                                : unavailable_reply("another request holds the topic's name");
}

Reply Manager::alter_locked(std::string_view name, const AlterRequest& request, State state, io::Instant deadline) {
  Checked<TopicPtr> stored = current(name, deadline);
  if (Reply* wrong = std::get_if<Reply>(&stored)) {
    return *wrong;
  }
  const TopicPtr& topic = std::get<TopicPtr>(stored);
  const bool is_too_few = topic != nullptr && request.partitions && *request.partitions <= topic->partitions;
  if (state == State::trusted && (topic == nullptr || is_too_few)) {
    return confirm(deadline, [&] { return alter_locked(name, request, State::confirmed, deadline); });
  }
  if (topic == nullptr) {
    return not_found();
  }
  Topic changed = *topic;
  changed.retention_ms = request.retention_ms.value_or(changed.retention_ms);
  changed.max_in_flight_per_partition = request.max_in_flight.value_or(changed.max_in_flight_per_partition);
  changed.max_acked_ahead_per_partition = request.max_acked_ahead.value_or(changed.max_acked_ahead_per_partition);
  if (request.partitions) {
    if (is_too_few) {
      return invalid_argument("partitions must be more than the topic has (" + std::to_string(changed.partitions) + ")");
    }
    changed.partitions = *request.partitions;
  }
  Reply failure;
  std::optional<Answer> answer = propose(metastore::encode_update_topic(changed), deadline, failure);
  if (!answer) {
    return failure;
  }
  return answer->ok() ? topic_reply(200, changed, true) : refused(*answer);
}

Reply Manager::remove(std::string_view name, const std::optional<std::string>& id, io::Instant deadline) {
  NameLock lock(*this, name);
  return lock.acquire(deadline) ? remove_locked(name, id, State::trusted, deadline)
                                : unavailable_reply("another request holds the topic's name");
}

Reply Manager::remove_locked(std::string_view name, const std::optional<std::string>& id, State state,
                             io::Instant deadline) {
  Checked<TopicPtr> stored = current(name, deadline);
  if (Reply* wrong = std::get_if<Reply>(&stored)) {
    return *wrong;
  }
  const TopicPtr& topic = std::get<TopicPtr>(stored);
  const bool is_other = topic != nullptr && id && !id->empty() && *id != topic->id;
  if (state == State::trusted && (topic == nullptr || is_other)) {
    return confirm(deadline, [&] { return remove_locked(name, id, State::confirmed, deadline); });
  }
  if (topic == nullptr) {
    return not_found();
  }
  if (is_other) {
    return error_reply(409, text_of(Code::topic_changed));
  }
  Reply failure;
  std::optional<Answer> answer = propose(metastore::encode_delete_topic(name), deadline, failure);
  if (!answer) {
    return failure;
  }
  return answer->ok() ? Reply{204, ""} : refused(*answer);
}

// ---- Reads -----------------------------------------------------------------------------------------------------------------

Reply Manager::get(std::string_view name, const std::optional<std::string>& partition, io::Instant deadline) {
  io::Result<TopicPtr> topic = reader_.get_topic(name, deadline);
  if (!topic.ok()) {
    return unreadable(topic.error());
  }
  if (*topic == nullptr) {
    return not_found();
  }
  std::optional<int32_t> wanted;
  if (partition && !partition->empty()) {
    int32_t index = 0;
    const char* end = partition->data() + partition->size();
    auto [stop, error] = std::from_chars(partition->data(), end, index);
    if (error != std::errc() || stop != end || index < 0 || index >= (*topic)->partitions) {
      return invalid_argument("partition must be an integer from 0 to " + std::to_string((*topic)->partitions - 1));
    }
    wanted = index;
  }
  return Reply{200, topic_detail_json(**topic, wanted) + "\n"};
}

Reply Manager::get_record(std::string_view name, io::Instant deadline) {
  io::Result<TopicPtr> topic = reader_.get_topic(name, deadline);
  if (!topic.ok()) {
    return unreadable(topic.error());
  }
  return *topic == nullptr ? not_found() : topic_reply(200, **topic, true);
}

Reply Manager::list(const std::optional<std::string>& limit, const std::optional<std::string>& page_token,
                    io::Instant deadline) {
  Checked<ListRequest> request = parse_list(limit, page_token);
  if (Reply* wrong = std::get_if<Reply>(&request)) {
    return *wrong;
  }
  const ListRequest& wanted = std::get<ListRequest>(request);
  // One more than asked for tells whether there is a next page.
  io::Result<std::vector<TopicPtr>> found = reader_.list_topics(wanted.after, wanted.limit + 1, deadline);
  if (!found.ok()) {
    return unreadable(found.error());
  }
  const bool is_last = found->size() <= wanted.limit;
  std::vector<const Topic*> page;
  for (size_t i = 0; i < std::min(found->size(), wanted.limit); ++i) {
    page.push_back((*found)[i].get());
  }
  return Reply{200, topic_list_json(page, is_last ? std::string_view() : std::string_view(page.back()->name)) + "\n"};
}

}  // namespace engine::topics
