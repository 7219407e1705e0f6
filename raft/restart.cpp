#include "raft/restart.h"

#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/probe.h"

namespace raft {

namespace {

using Action = RestartDecision::Action;

RestartDecision refuse(std::string reason) { return {Action::refuse, false, std::move(reason)}; }

std::string at(Index index) { return "index " + std::to_string(index); }

std::string snapshot_text(const RestartFacts& facts) {
  return facts.snapshot ? "the newest snapshot (" + at(facts.snapshot->index) + ")" : std::string("no snapshot");
}

// The snapshot is committed, so where the log parts from it the log is the one that goes, unless that cannot have come about.
bool parts_from_snapshot(const RestartFacts& facts) {
  return facts.snapshot && facts.log_term_at_snapshot && *facts.log_term_at_snapshot != facts.snapshot->term;
}

bool ends_below_snapshot(const RestartFacts& facts) { return facts.snapshot && facts.log_last < facts.snapshot->index; }

// What no crash leaves behind, whatever the state machine holds.
std::optional<std::string> contradiction(const RestartFacts& facts) {
  const bool has_raft_state = facts.log_last > 0 || facts.snapshot;
  if (has_raft_state && !facts.has_hard_state) {
    SOMETIMES("restart: entries or a snapshot without a record of term and vote");
    return "the log ends at " + at(facts.log_last) + " and there is " + snapshot_text(facts) +
           ", but no record of term and vote (raft/stable): this server cannot know whom it voted for";
  }
  if (!has_raft_state && facts.applied > 0) {
    SOMETIMES("restart: a state machine without raft state");
    return "the state machine holds entries up to " + at(facts.applied) +
           ", but there is no raft state beside it: a new cluster would hold nothing of it";
  }
  const Index reached = std::max(facts.log_last, facts.snapshot ? facts.snapshot->index : 0);
  if (facts.damaged_snapshot > reached) {
    SOMETIMES("restart: a damaged snapshot beyond everything else");
    return "the snapshot at " + at(facts.damaged_snapshot) + " is damaged, and nothing else reaches that far: the log ends at " +
           at(facts.log_last) + " and there is " + snapshot_text(facts) +
           "; this server has acknowledged what it held. Restore the file, or remove the server from the cluster and add it again "
           "with an empty directory";
  }
  // Also where the state machine reaches far enough: the configuration at the log's begin stands in the snapshot alone.
  if (facts.log_base > 0 && (!facts.snapshot || facts.snapshot->index < facts.log_base)) {
    SOMETIMES("restart: a hole before the log");
    return "the log begins after " + at(facts.log_base) + ", and no snapshot reaches it: there is " + snapshot_text(facts);
  }
  if (parts_from_snapshot(facts) && facts.snapshot->index == facts.log_base) {
    return "the log begins after " + at(facts.log_base) + " in term " + std::to_string(*facts.log_term_at_snapshot) +
           ", but the snapshot of that index is of term " + std::to_string(facts.snapshot->term);
  }
  return std::nullopt;
}

// The term that raft's state gives the state machine's last entry, where it knows it.
std::optional<Term> term_of_applied(const RestartFacts& facts) {
  if (facts.snapshot && facts.applied == facts.snapshot->index) {
    return facts.snapshot->term;
  }
  return facts.log_term_at_applied;
}

}  // namespace

RestartDecision decide_restart(const RestartFacts& facts) {
  NARAD_CHECK(facts.log_base <= facts.log_last, "a log ends at its base or after it");
  NARAD_CHECK(!facts.snapshot || facts.snapshot->index > 0, "a snapshot of nothing");
  if (std::optional<std::string> reason = contradiction(facts)) {
    return refuse(std::move(*reason));
  }
  if (facts.log_last == 0 && !facts.snapshot) {
    SOMETIMES("restart: nothing is there");
    return {Action::start, false, ""};
  }
  const Index snapshot = facts.snapshot ? facts.snapshot->index : 0;
  const bool resets_log = ends_below_snapshot(facts) || parts_from_snapshot(facts);
  const Index end = resets_log ? snapshot : facts.log_last;
  if (facts.applied > end) {
    SOMETIMES("restart: a state machine ahead of raft's state");
    return refuse("raft's state is older than the state machine: it has applied " + at(facts.applied) +
                  ", past the end of the log (" + at(facts.log_last) + ") and " + snapshot_text(facts) +
                  "; starting would drop every change after " + at(end));
  }
  const std::optional<Term> term = term_of_applied(facts);
  if (facts.applied > 0 && facts.applied_term > 0 && term && *term != facts.applied_term) {
    SOMETIMES("restart: a state machine of another history");
    return refuse("the state machine's last entry (" + at(facts.applied) + ") is of term " +
                  std::to_string(facts.applied_term) + ", but of term " + std::to_string(*term) + " in raft's state");
  }
  if (facts.applied >= snapshot) {
    NARAD_CHECK(facts.applied >= facts.log_base, "a log that begins after the snapshot is a hole");
    if (snapshot > 0) {
      SOMETIMES("restart: the state machine holds the newest snapshot");
    }
    return {Action::keep, resets_log, ""};
  }
  SOMETIMES("restart: the newest snapshot is restored");
  if (resets_log) {
    SOMETIMES("restart: the log is reset behind the snapshot");
  }
  return {Action::restore, resets_log, ""};
}

}  // namespace raft
