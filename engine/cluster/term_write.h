// A metadata write of one leader's term: what a controller proposes, it proposes as the leader that it was started as, or not at all. A
// timer or a pass that outlives its term finds that out here (scenario HB-02).
#pragma once

#include <string>

#include "engine/metastore/answer.h"
#include "engine/topics/proposer.h"
#include "io/time.h"
#include "raft/types.h"

namespace engine::cluster {

struct Written {
  enum class Kind {
    done,
    refused,      // by the state machine: `answer` says why
    not_written,  // certainly not: this node does not lead in that term any more, or a bound is reached
    unknown,      // may yet be applied: nothing that this replica shows is to be relied on before a barrier
  };
  Kind kind = Kind::not_written;
  metastore::Answer answer;
  std::string reason;  // of anything but `done`, for people

  bool is_done() const { return kind == Kind::done; }
};

// Whether `proposer` leads in `term`.
inline bool leads_in(const Proposer& proposer, raft::Term term) { return proposer.is_leader() && proposer.term() == term; }

// Proposes `command` if this node leads in `term` at that very moment. Fiber only; throws Cancelled.
Written write_in_term(Proposer& proposer, raft::Term term, std::string command, io::Instant deadline);

}  // namespace engine::cluster
