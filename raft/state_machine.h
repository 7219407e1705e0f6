// What raft/server drives: the state machine that committed entries are for, and whoever watches from outside.
#pragma once

#include <string>
#include <vector>

#include "io/result.h"
#include "raft/core.h"
#include "raft/types.h"

namespace raft {

class StateMachine {
 public:
  virtual ~StateMachine() = default;

  // The last entry whose effects the state machine holds, as it will find it again after a restart; 0 before the first.
  // Asked once, when the server opens.
  virtual Index applied_index() const = 0;

  // Applies committed commands, in order, each exactly once per life: entries of type command only, of rising but not
  // always consecutive indexes (no-ops and configurations never come here). Called by the apply fiber alone; may wait.
  // Returns one answer for each entry: opaque bytes, handed to the proposer on the server that proposed it. An error
  // means that the state machine cannot go on: the server stops (fail-stop), and no later entry is applied.
  virtual io::Result<std::vector<std::string>> apply(const std::vector<Entry>& batch) = 0;
};

// Told what the server does, for checks of a world or a test. Null in production. Must not wait, must not call back.
class Observer {
 public:
  virtual ~Observer() = default;
  // The core has taken one or more inputs; nothing of what follows from them has left the server yet.
  virtual void core_changed(const Core&) {}
  // The state machine has applied `entry`; `answer` is empty for entries that never reach it.
  virtual void entry_applied(const Entry&, const std::string& answer) { (void)answer; }
};

}  // namespace raft
