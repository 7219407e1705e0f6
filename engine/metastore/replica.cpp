#include "engine/metastore/replica.h"

#include <algorithm>

#include "io/defence.h"
#include "io/probe.h"

namespace engine::metastore {

namespace {

io::Error stopped_applying() {
  return io::fail(io::ErrorKind::busy, "metastore: stopped applying raft entries; this node leaves raft");
}

}  // namespace

Currency Replica::currency() const {
  if (has_stopped()) {
    return Currency::stopped;
  }
  const raft::Core& core = raft_.core();
  const bool leads = core.role() == raft::Role::leader;
  if (!leads && core.leader().empty()) {
    return Currency::no_leader;
  }
  const std::optional<io::Duration> age = contact_age();
  if (!age) {
    return Currency::no_contact;
  }
  if (*age > kContactFreshness && io::defence(io::Defence::contact_freshness_ignored)) {
    SOMETIMES("metastore: not caught up, the contact with the leader is old");
    return Currency::old_contact;
  }
  if (!core.knows_commit_of_term()) {
    if (core.applied_index() == core.commit_index()) {
      SOMETIMES("metastore: not caught up although all that is known to be committed is applied");
    }
    return Currency::unheard;
  }
  const raft::Index committed = std::max(core.commit_index(), core.heard_commit());
  if (core.applied_index() < committed || state_machine_.applied_index() < raft_.last_command_applied()) {
    return Currency::behind;
  }
  return Currency::caught_up;
}

std::optional<io::Duration> Replica::contact_age() const {
  const std::optional<io::Instant> contact = raft_.core().leader_contact();
  return contact ? std::optional(env_.now() - *contact) : std::nullopt;
}

io::Status Replica::barrier(io::Instant deadline) {
  if (state_machine_.is_stopped()) {
    return stopped_applying();
  }
  const raft::Barrier barrier = raft_.barrier(std::min(deadline, env_.after(kReplicaBarrierTimeout)));
  if (state_machine_.is_stopped()) {
    SOMETIMES("metastore: the state machine stopped while a barrier was under way");
    return stopped_applying();
  }
  if (!barrier.ok()) {
    return io::fail(io::ErrorKind::busy, barrier.reason.empty() ? std::string(raft::to_string(barrier.outcome)) : barrier.reason);
  }
  return {};
}

// ---- The latch -------------------------------------------------------------------------------------------------------------------

io::Status Replica::may_serve_ownership() const {
  if (has_caught_up_ || !io::defence(io::Defence::assignments_before_caught_up)) {
    return {};
  }
  SOMETIMES("metastore: ownership is not served before the replica has caught up");
  return io::fail(io::ErrorKind::busy, "replica has not caught up with the leader since start");
}

// False when the replica is not there yet; a leader's last word is its barrier's.
bool Replica::try_latch(io::Instant deadline) {
  if (!is_caught_up() || (raft_.is_leader() && !barrier(deadline).ok())) {
    return false;
  }
  has_caught_up_ = true;
  return true;
}

bool Replica::wait_until_caught_up(io::Instant deadline) {
  while (!has_caught_up_ && !try_latch(deadline)) {
    if (env_.now() >= deadline) {
      return false;
    }
    io::sleep_for(kCaughtUpPoll);
  }
  return true;
}

void Replica::wait_until_caught_up() { (void)wait_until_caught_up(io::kNever); }

}  // namespace engine::metastore
