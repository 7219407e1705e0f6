// How far this node's replica may be believed: AppliedCaughtUp, the barrier, and the latch of ownership.
//
// A replica's own indexes agree with each other however stale they are: after a restart everything it knows of is applied, and what
// it knows of may be hours old. So the claim "caught up" rests on what was heard, and on when:
//  - a leader is known, and the state machine has not stopped;
//  - contact with it is at most kContactFreshness old, measured from this node's own message that the leader's answer echoes: what
//    a frozen leader sent, or what waited in a buffer, does not look fresh when it is read;
//  - that leader has said, since this node's start, up to where entries are committed, and this reaches an entry of its own term: a
//    leader that has just been elected may itself not know yet what was acknowledged before. (A node that leads has committed an
//    entry of its term.)
//  - all of that is applied, and the state machine's own index shows that it is in the database.
// Being caught up means: nothing is missing that was acknowledged before the contact. It does not mean that nothing has changed
// since; who acts on what the replica does not hold asks the leader as well (cluster/leader_confirm.h).
//
// A leader's election proves its log, not its state: before it takes its own state for the cluster's it passes barrier(), and then
// reads again.
// Source: spec "Stale replicas"; narad/lifecycle.md section 7.
#pragma once

#include <optional>

#include "io/env.h"
#include "io/fiber.h"
#include "io/result.h"
#include "raft/server.h"
#include "raft/state_machine.h"

namespace engine::metastore {

inline constexpr io::Duration kContactFreshness = std::chrono::seconds(5);
inline constexpr io::Duration kReplicaBarrierTimeout = std::chrono::seconds(5);
inline constexpr io::Duration kCaughtUpPoll = std::chrono::milliseconds(100);

// Whether the replica is caught up, or the first condition that fails.
enum class Currency {
  caught_up,
  stopped,      // the state machine, or raft, has ended
  no_leader,
  no_contact,   // none yet with this term's leader
  old_contact,  // older than kContactFreshness
  unheard,      // the leader has not said yet what is committed
  behind,       // something that is known to be committed is not applied
};

class Replica {
 public:
  // Keeps references to all three. `raft` is open.
  Replica(io::Env& env, raft::RaftServer& raft, const raft::StateMachine& state_machine)
      : env_(env), raft_(raft), state_machine_(state_machine) {}

  // AppliedCaughtUp, now. Does not wait; cheap enough to be asked before each decision.
  Currency currency() const;
  bool is_caught_up() const { return currency() == Currency::caught_up; }
  // The state machine, or raft, has ended: nothing here says anything about the cluster any more.
  bool has_stopped() const { return !raft_.is_running() || state_machine_.is_stopped(); }

  // How long ago this node sent the newest message that its leader has answered (leading: that a quorum has answered); nothing when
  // there is none in this term.
  std::optional<io::Duration> contact_age() const;

  // Waits until this node is proven to lead by a quorum round begun after the call, and everything acknowledged anywhere before
  // the call is applied here; 5 s at most, whatever the deadline. `busy` when it does not lead, cannot reach a quorum in time or has
  // stopped applying (also where raft's own barrier succeeded). Throws Cancelled.
  io::Status barrier(io::Instant deadline);

  // ---- The latch of ownership -----------------------------------------------------------------------------------------------
  // Set once the replica was caught up (and, on a leader, a barrier passed) since the start, and for good: until then the partitions'
  // owners are those of some past moment, and nobody may route, serve or place by them.
  bool has_caught_up() const { return has_caught_up_; }
  // `busy`, which every caller takes for transient, until the latch is set. What reads owners asks this first.
  io::Status may_serve_ownership() const;
  // Waits until the latch is set. Throws Cancelled.
  void wait_until_caught_up();
  bool wait_until_caught_up(io::Instant deadline);

 private:
  bool try_latch(io::Instant deadline);

  io::Env& env_;
  raft::RaftServer& raft_;
  const raft::StateMachine& state_machine_;
  bool has_caught_up_ = false;
};

}  // namespace engine::metastore
