#include "engine/topics/write_ground.h"

#include <algorithm>

#include "engine/metastore/apply.h"
#include "engine/metastore/topic.h"
#include "io/check.h"
#include "io/probe.h"

namespace engine::topics {

namespace {

using metastore::Answer;
using metastore::Code;

// A replica's rows, one read each. A read that fails makes the rest worthless; it is kept for who asks.
class ReplicaRows final : public metastore::RowSource {
 public:
  ReplicaRows(metastore::Reader& reader, io::Instant deadline) : reader_(reader), deadline_(deadline) {}

  std::optional<std::string> read(const std::string& row_key) override {
    const size_t slash = row_key.find('/');
    for (int number = 0; number <= static_cast<int>(metastore::Bucket::fsm_meta) && !error_; ++number) {
      const auto bucket = static_cast<metastore::Bucket>(number);
      if (name_of(bucket) == std::string_view(row_key).substr(0, slash)) {
        io::Result<std::optional<std::string>> row = reader_.get_row(bucket, std::string_view(row_key).substr(slash + 1), deadline_);
        if (row.ok()) {
          return *row;
        }
        error_ = row.error();
      }
    }
    return std::nullopt;
  }
  const std::optional<io::Error>& error() const { return error_; }

 private:
  metastore::Reader& reader_;
  const io::Instant deadline_;
  std::optional<io::Error> error_;
};

}  // namespace

// ---- Replies ---------------------------------------------------------------------------------------------------------------

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

Reply topic_not_found() { return error_reply(404, "topic not found"); }

Reply topic_changed_reply() { return error_reply(409, text_of(Code::topic_changed)); }

Reply unreadable(const io::Error& error) { return unavailable_reply(error.to_text()); }

Reply refused_reply(const Answer& answer) {
  switch (answer.code) {
    case Code::not_found: return topic_not_found();
    case Code::topic_changed: return topic_changed_reply();
    default: return error_reply(status_of(answer.code), answer.text());
  }
}

// ---- Locks of names ----------------------------------------------------------------------------------------------------------

struct WriteGround::NameSlot {
  bool is_held = false;
  size_t waiting = 0;
  io::Condition freed;
};

// Held from acquire() to destruction. A slot lives while somebody holds it or waits for it. Taken in the order of the folded names, so
// that two requests for the same two names never wait for each other.
class WriteGround::NameLocks {
 public:
  NameLocks(WriteGround& ground, const std::vector<std::string_view>& names) : ground_(ground) {
    std::vector<std::string> folded;
    for (const std::string_view name : names) {
      folded.push_back(metastore::fold_name(name));
    }
    std::sort(folded.begin(), folded.end());
    folded.erase(std::unique(folded.begin(), folded.end()), folded.end());
    for (const std::string& name : folded) {
      places_.push_back(ground_.locks_.try_emplace(name).first);
      ++places_.back()->second.waiting;
    }
  }
  ~NameLocks() {
    for (size_t i = 0; i < places_.size(); ++i) {
      NameSlot& slot = places_[i]->second;
      if (i < held_) {
        slot.is_held = false;
        slot.freed.notify_one();
      }
      if (--slot.waiting == 0) {
        ground_.locks_.erase(places_[i]);
      }
    }
  }
  NameLocks(const NameLocks&) = delete;
  NameLocks& operator=(const NameLocks&) = delete;

  // False when the deadline passed first. Throws Cancelled.
  bool acquire(io::Instant deadline) {
    for (; held_ < places_.size(); ++held_) {
      NameSlot& slot = places_[held_]->second;
      while (slot.is_held) {
        SOMETIMES("topics: a request waits for another of the same name");
        if (!slot.freed.wait(deadline) && slot.is_held) {
          return false;
        }
      }
      slot.is_held = true;
    }
    return true;
  }

 private:
  WriteGround& ground_;
  std::vector<std::map<std::string, NameSlot, std::less<>>::iterator> places_;
  size_t held_ = 0;
};

// An entry whose fate stays unknown (also because the fiber was cancelled) may still change what the replica shows: the next
// request waits for a barrier.
class WriteGround::Distrust {
 public:
  explicit Distrust(WriteGround& ground) : ground_(ground) {}
  ~Distrust() {
    if (!is_settled_) {
      ground_.trusted_term_ = 0;
      ++ground_.distrusts_;
    }
  }
  Distrust(const Distrust&) = delete;
  Distrust& operator=(const Distrust&) = delete;
  void settle() { is_settled_ = true; }

 private:
  WriteGround& ground_;
  bool is_settled_ = false;
};

// ---- WriteGround -----------------------------------------------------------------------------------------------------------

WriteGround::WriteGround(io::Env& env, metastore::Reader& reader, Proposer& proposer, cluster::EntryGate& gate)
    : env_(env), reader_(reader), proposer_(proposer), gate_(gate), ids_(env.random.stream("topic id", 0)) {}

WriteGround::~WriteGround() = default;

Reply WriteGround::carry_out(const std::vector<std::string_view>& names, io::Instant deadline,
                             const std::function<Attempt(const Turn&)>& attempt) {
  NameLocks locks(*this, names);
  if (!locks.acquire(deadline)) {
    return unavailable_reply("another request holds the topic's name");
  }
  Turn turn;
  turn.deadline = deadline;
  bool has_met_change = false;
  while (true) {
    if (io::Status trusted = trust_local_state(deadline); !trusted.ok()) {
      return unavailable_reply(trusted.error().message);
    }
    turn.term = proposer_.term();  // nothing has waited since it was found to be trusted
    Attempt tried = attempt(turn);
    if (tried.kind == Attempt::Kind::settled || (tried.kind == Attempt::Kind::refused && turn.state == State::confirmed)) {
      return std::move(tried.reply);
    }
    if (tried.kind == Attempt::Kind::changed) {
      if (has_met_change) {
        SOMETIMES("topics: a topic changed twice under a request");
        return topic_changed_reply();
      }
      SOMETIMES("topics: a topic changed since it was read, and is read again");
      env_.log.info("topic changed since it was read; reading it again", {{"topic", std::string(names.front())}});
      has_met_change = true;
      continue;
    }
    SOMETIMES("topics: a refusal waits for a barrier");
    if (io::Status reached = proposer_.barrier(std::min(deadline, env_.after(kBarrierTimeout))); !reached.ok()) {
      return unavailable_reply(reached.error().message);
    }
    turn.state = State::confirmed;
  }
}

io::Status WriteGround::trust_local_state(io::Instant deadline) {
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

io::Result<Answer> WriteGround::foresee(const std::string& command, io::Instant deadline) {
  ReplicaRows rows(reader_, deadline);
  metastore::WriteSet changes(rows, 0);
  const metastore::CommandResult result = metastore::apply_command(changes, command, metastore::kNewestEntryType);
  if (rows.error()) {
    return *rows.error();
  }
  return result.answer;
}

WriteGround::Outcome WriteGround::propose(std::string command, const Turn& turn) {
  if (proposer_.term() != turn.term) {
    SOMETIMES("topics: a write outlives the term that it was judged in");
    return {std::nullopt, unavailable_reply("leadership was lost"), false};
  }
  Distrust unsettled(*this);
  Proposed proposed = proposer_.propose(std::move(command), std::min(turn.deadline, env_.after(kProposeTimeout)));
  if (proposed.outcome != Proposed::Outcome::unknown) {
    unsettled.settle();
  }
  switch (proposed.outcome) {
    case Proposed::Outcome::applied: {
      std::optional<Answer> answer = metastore::decode_answer(proposed.answer);
      NARAD_CHECK(answer.has_value(), "an applied proposal without the state machine's answer");
      return {std::move(answer), {}, true};
    }
    case Proposed::Outcome::unknown:
      SOMETIMES("topics: the outcome of a proposal is unknown");
      return {std::nullopt, outcome_unknown_reply(), true};
    case Proposed::Outcome::too_large:
      SOMETIMES("topics: a change longer than any entry may be is refused");
      return {std::nullopt, error_reply(413, kTooLargeText), false};
    case Proposed::Outcome::not_leader:
    case Proposed::Outcome::refused:
    case Proposed::Outcome::stopped:
      return {std::nullopt, unavailable_reply(proposed.reason), false};
  }
  NARAD_CHECK(false, "an outcome that does not exist");
  return {};
}

std::string WriteGround::draw_id() {
  constexpr char kDigits[] = "0123456789abcdef";
  uint64_t number = ids_.next();
  std::string id(16, '0');
  for (size_t i = 0; i < id.size(); ++i) {
    id[i] = kDigits[number >> (60 - 4 * i) & 15];
  }
  return id;
}

}  // namespace engine::topics
