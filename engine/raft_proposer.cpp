#include "engine/raft_proposer.h"

#include <utility>

namespace engine {

namespace {

// What raft knows of the entry's fate, in the classes that a caller can act on: applied, certainly not (now, or ever), unknown.
Proposed::Outcome outcome_of(const raft::Proposed& proposed) {
  switch (proposed.outcome) {
    case raft::Outcome::ok:
      return Proposed::Outcome::applied;
    case raft::Outcome::not_leader:
    case raft::Outcome::superseded:
      return Proposed::Outcome::not_leader;
    case raft::Outcome::refused:
      return Proposed::Outcome::refused;
    case raft::Outcome::too_large:
      return Proposed::Outcome::too_large;
    case raft::Outcome::unknown:
      return Proposed::Outcome::unknown;
    case raft::Outcome::stopped:
      return proposed.index != 0 ? Proposed::Outcome::unknown : Proposed::Outcome::stopped;
  }
  return Proposed::Outcome::unknown;
}

}  // namespace

Proposed RaftProposer::propose(std::string command, io::Instant deadline) {
  raft::Proposed proposed = raft_.propose(std::move(command), deadline);
  return Proposed{outcome_of(proposed), proposed.index, std::move(proposed.answer), std::move(proposed.reason)};
}

// The replica's barrier covers what was committed when it was called, and fails on a state machine that has stopped. Entries of our own that were appended and not yet committed, of
// proposals whose outcome was unknown, may still commit behind it: they are waited for too.
io::Status RaftProposer::barrier(io::Instant deadline) {
  const raft::Index appended = raft_.core().last_index();
  if (io::Status reached = replica_.barrier(deadline); !reached.ok()) {
    return reached;
  }
  return raft_.wait_applied(appended, deadline)
             ? io::Status{}
             : io::fail(io::ErrorKind::timed_out, "entries appended before the barrier are not applied yet");
}

}  // namespace engine
