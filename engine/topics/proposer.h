// What the leader-side managers need of raft, and nothing more: so they can be tested without it.
#pragma once

#include <string>

#include "io/result.h"
#include "io/time.h"
#include "raft/types.h"

namespace engine {

struct Proposed {
  enum class Outcome {
    applied,     // committed and applied here: `answer` is the state machine's
    not_leader,  // certainly not appended
    refused,     // certainly not appended: a bound is reached
    too_large,   // certainly not appended: no entry may be as long as this, now or later
    unknown,     // may still commit
    stopped,     // this node has left raft; certainly not appended
  };
  Outcome outcome = Outcome::unknown;
  raft::Index index = 0;  // of what was applied
  std::string answer;
  std::string reason;  // of what was not applied, for people
};

class Proposer {
 public:
  virtual ~Proposer() = default;
  virtual bool is_leader() const = 0;
  virtual raft::Term term() const = 0;
  // Proposes a command and waits until it is applied here. Throws Cancelled.
  virtual Proposed propose(std::string command, io::Instant deadline) = 0;
  // Waits until this node is proven leader by a quorum round begun after the call, and everything that was committed anywhere
  // or appended here before the call is applied here. So the entries of proposals whose outcome was unknown count too.
  virtual io::Status barrier(io::Instant deadline) = 0;
};

}  // namespace engine
