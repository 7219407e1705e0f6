// What every write on the leader stands on: its turn among requests for the same names, a replica that may be trusted, the rules of the
// state machine foreseen, and the proposal itself.
//
// A write goes: its names' locks (letter case ignored), so that requests for one name take turns; a barrier, once a term and after each
// unknown outcome, before this node's own replica is trusted; the checks; the gate; the proposal. A refusal that rests on this replica
// is confirmed by a barrier within the request, since a deposed leader that does not know it yet would refuse by a state that the cluster
// has left. A proposal needs no such proof: a deposed leader's never commits. A proposal that the state machine refuses because the
// topic is not any more what it was read as is checked and made once more.
// Source: narad/lifecycle.md section 6; spec "Raft entry types and upgrades".
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cluster/entry_gate.h"
#include "engine/metastore/answer.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/reader.h"
#include "engine/topics/proposer.h"
#include "engine/topics/reply.h"
#include "io/env.h"
#include "io/fiber.h"

namespace engine::topics {

inline constexpr io::Duration kProposeTimeout = std::chrono::seconds(5);
inline constexpr io::Duration kBarrierTimeout = std::chrono::seconds(5);

// How far the replica's state is known to be the cluster's. `trusted`: a barrier once in this term, enough to propose on.
// `confirmed`: a barrier within this request, needed to refuse on.
enum class State { trusted, confirmed };

// What one try goes by.
struct Turn {
  State state = State::trusted;
  // In which the replica was found to be trusted. What the try proposes is proposed by the leader of that term or not at all: an entry that
  // carries no comparison of its own (the older ones) would otherwise be judged by rows that a leader in between has changed.
  raft::Term term = 0;
  io::Instant deadline{};
};

// What one try of a write came to.
struct Attempt {
  enum class Kind {
    settled,  // `reply` is the answer
    refused,  // `reply` rests on this replica alone
    changed,  // the state machine refused it: something is not as it was read
  };
  Kind kind = Kind::settled;
  Reply reply;

  static Attempt settled(Reply reply) { return {Kind::settled, std::move(reply)}; }
  static Attempt refused(Reply reply) { return {Kind::refused, std::move(reply)}; }
  static Attempt changed() { return {Kind::changed, {}}; }
};

class WriteGround {
 public:
  // All references outlive it.
  WriteGround(io::Env& env, metastore::Reader& reader, Proposer& proposer, cluster::EntryGate& gate);
  ~WriteGround();
  WriteGround(const WriteGround&) = delete;
  WriteGround& operator=(const WriteGround&) = delete;

  io::Env& env() { return env_; }
  metastore::Reader& reader() { return reader_; }

  // ---- Requests ------------------------------------------------------------------------------------------------------------

  // Carries a write out that concerns `names`: with their locks held, tries until an attempt is settled or refused on confirmed state.
  // At most two tries meet a change; then 409. 503 when the locks or a barrier are not reached by `deadline`. Fiber only; throws Cancelled.
  Reply carry_out(const std::vector<std::string_view>& names, io::Instant deadline, const std::function<Attempt(const Turn&)>& attempt);

  // What a leader does before it answers from its own replica: a barrier where one is due. Ok, or why it cannot be trusted now.
  io::Status trust_local_state(io::Instant deadline);

  // ---- Proposals -----------------------------------------------------------------------------------------------------------

  // What the state machine would answer to the command on this replica, or why it cannot be read. No proposal, no effect.
  io::Result<metastore::Answer> foresee(const std::string& command, io::Instant deadline);

  // Proposes `newer` where the gate lets it pass, else `older`: the state machine's answer, or the reply to give because there is none.
  struct Outcome {
    std::optional<metastore::Answer> answer;
    Reply failure;
    bool may_be_appended = false;  // false: it is certainly in no log
  };
  template <typename Newer, typename Older>
  Outcome propose_either(const Newer& newer, const Older& older, const Turn& turn) {
    return may_use(Newer::kType, turn) ? propose(metastore::encode_command(newer), turn)
                                       : propose(metastore::encode_command(older), turn);
  }
  bool may_use(metastore::EntryType type, const Turn& turn) { return gate_.may_use(type, turn.deadline); }
  Outcome propose(std::string command, const Turn& turn);

  // 16 hexadecimal digits: of an incarnation or a link.
  std::string draw_id();

 private:
  class NameLocks;
  class Distrust;
  struct NameSlot;

  io::Env& env_;
  metastore::Reader& reader_;
  Proposer& proposer_;
  cluster::EntryGate& gate_;
  io::RandomStream ids_;
  std::map<std::string, NameSlot, std::less<>> locks_;  // by folded name; only names in use
  // The term in which a barrier has succeeded; 0 again after a proposal of unknown outcome, since an entry of our own may then
  // still change what the replica shows.
  raft::Term trusted_term_ = 0;
  uint64_t distrusts_ = 0;  // how often it was taken back
};

// ---- Replies ---------------------------------------------------------------------------------------------------------------

// The status of a state machine's refusal. narad/entry-types.md section 7.
int status_of(metastore::Code code);
Reply topic_not_found();
Reply topic_changed_reply();
// A replica that cannot be read now says nothing about the topic.
Reply unreadable(const io::Error& error);
// A refusal of the state machine, as clients are told it.
Reply refused_reply(const metastore::Answer& answer);

}  // namespace engine::topics
