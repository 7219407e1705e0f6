#include "raft/restart.h"

#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/defence.h"
#include "io/probe.h"

namespace raft {

namespace {

using Action = RestartDecision::Action;
using Row = RestartRow;

std::string at(Index index) { return "index " + std::to_string(index); }

// What follows from the facts, in the words of the table.
class Table {
 public:
  explicit Table(const RestartFacts& facts) : facts_(facts), held_(facts.state_machine) {}

  RestartDecision decide() const {
    if (is_newer_release()) {
      SOMETIMES("restart row 1: of a newer release");
      return refuse(Row::newer_release, newer_release_text());
    }
    if (has_raft_state() && !facts_.has_term_record) {
      SOMETIMES("restart row 2: no record of term and vote");
      return refuse(Row::no_term_record, no_term_record_text());
    }
    if (facts_.damaged_snapshot > end()) {
      SOMETIMES("restart: a damaged snapshot beyond everything else");
      return hole();
    }
    if (!has_raft_state()) {
      return held_.holds_anything ? without_raft_state() : start();
    }
    if (std::optional<std::string> why = why_foreign()) {
      return foreign(std::move(*why));
    }
    if (held_.is_trusted && held_.index > end()) {
      return ahead();
    }
    if (held_.is_trusted && held_.index >= snapshot_index() && held_.index >= base()) {
      SOMETIMES("restart row 7: the state machine is kept");
      return {Row::held, Action::keep, goes_log(), ""};
    }
    if (meets_log()) {
      SOMETIMES("restart row 8: the snapshot is restored");
      if (goes_log()) SOMETIMES("restart: the log is reset behind the snapshot");
      return {Row::behind, Action::restore, goes_log(), ""};
    }
    if (!facts_.snapshot && facts_.log_base == 0) {
      return from_the_first_entry();
    }
    if (held_.holds_anything && !held_.is_trusted && !facts_.snapshot && facts_.damaged_snapshot == 0) {
      SOMETIMES("restart row 11: the log is replayed onto the state machine as it is");
      return {Row::replayed_onto, Action::rebase, false, ""};
    }
    return hole();
  }

 private:
  // ---- The words ---------------------------------------------------------------------------------------------------------------

  bool has_raft_state() const { return facts_.log_last > 0 || facts_.snapshot; }
  Index snapshot_index() const { return facts_.snapshot ? facts_.snapshot->index : 0; }

  bool is_newer_release() const {
    const std::uint32_t newest = facts_.build.newest_type;
    return held_.newest_type > newest || (facts_.snapshot && facts_.snapshot->newest_type > newest);
  }

  bool parts_from_snapshot() const {
    return facts_.snapshot && facts_.log_term_at_snapshot && *facts_.log_term_at_snapshot != facts_.snapshot->term;
  }

  // What lies below the log's base is committed, in the term that the base has: a snapshot of another term there is of another log.
  bool meets_log() const {
    if (!facts_.snapshot || facts_.snapshot->index < facts_.log_base) return false;
    return facts_.snapshot->index > facts_.log_base || !parts_from_snapshot();
  }

  // The snapshot is committed: where the log parts from it, the log goes.
  bool goes_log() const { return meets_log() && (facts_.log_last < facts_.snapshot->index || parts_from_snapshot()); }

  Index base() const { return goes_log() ? facts_.snapshot->index : facts_.log_base; }
  Index end() const { return goes_log() ? facts_.snapshot->index : facts_.log_last; }

  std::optional<Term> term_at_index() const {
    if (facts_.snapshot && held_.index == facts_.snapshot->index) return facts_.snapshot->term;
    return facts_.log_term_at_index;
  }

  // ---- Rows that depend on who starts --------------------------------------------------------------------------------------------

  static RestartDecision refuse(Row row, std::string reason) { return {row, Action::refuse, false, std::move(reason)}; }

  static RestartDecision start() {
    SOMETIMES("restart row 3: nothing is there");
    return {Row::empty, Action::start, false, ""};
  }

  RestartDecision without_raft_state() const {
    if (facts_.is_joining) {
      SOMETIMES("restart row 4: a joining server sets a state machine without raft state aside");
      return {Row::no_raft_state, Action::set_aside, false,
              "there is no raft state beside it, and the cluster this node joins replaces it with its own log or snapshot"};
    }
    if (!io::defence(io::Defence::bootstrap_over_data)) return {Row::no_raft_state, Action::rebase, false, ""};
    SOMETIMES("restart row 4: a state machine without raft state is refused");
    return refuse(Row::no_raft_state,
                  path() + " holds metadata, but there is no raft state beside it (" + facts_.build.raft_path +
                      "/ is missing or empty and there is no raft snapshot), so this node would bootstrap a new cluster with an "
                      "empty log and none of its topics; refusing to start. Restore " +
                      facts_.build.raft_path + "/ from the same moment as " + path() +
                      ", or move the whole data directory away to start empty");
  }

  RestartDecision foreign(std::string why) const {
    if (facts_.is_joining) {
      SOMETIMES("restart row 5: a joining server resets what is not its own");
      return {Row::foreign, Action::reset, false, std::move(why)};
    }
    SOMETIMES("restart row 5: a state machine that is not its own is refused");
    return refuse(Row::foreign, std::move(why) + "; refusing to start. Restore " + path() + " and " + facts_.build.raft_path +
                                    "/ from one moment of this node, or move the whole data directory away and let this node join "
                                    "its cluster as a new one");
  }

  RestartDecision ahead() const {
    if (facts_.is_joining || !io::defence(io::Defence::older_raft_rebuilt_silently)) {
      SOMETIMES("restart row 6: a joining server gives up a state machine ahead of raft's state");
      if (meets_log()) return {Row::ahead, Action::restore, goes_log(), ""};
      std::string why = "it has applied raft " + at(held_.index) + ", past the end of the raft log (" + at(facts_.log_last) +
                        "), and the cluster this node joins has what it is missing";
      return {Row::ahead, facts_.log_base == 0 && !facts_.snapshot ? Action::set_aside : Action::reset, false, std::move(why)};
    }
    SOMETIMES("restart row 6: a state machine ahead of raft's state is refused");
    return refuse(Row::ahead, "raft state is older than " + path() + ": " + path() + " has applied raft " + at(held_.index) +
                                  ", past the end of the raft log (" + at(facts_.log_last) + ") and the latest raft snapshot (" +
                                  at(snapshot_index()) + ") in " + facts_.build.raft_path +
                                  "/; starting would drop every metadata change after " + at(end()) +
                                  ", so refusing to start. Restore " + facts_.build.raft_path + "/ from the same moment as " +
                                  path() + " or later, or move the whole data directory away and let this node join its cluster "
                                  "as a new one");
  }

  RestartDecision from_the_first_entry() const {
    if (!held_.holds_anything) {
      SOMETIMES("restart row 9: the log is replayed from its first entry");
      return {Row::replayed, Action::keep, false, ""};
    }
    NARAD_CHECK(!held_.is_trusted, "an index within a log that begins at 1 is held or ahead");
    SOMETIMES("restart row 10: the state machine is rebuilt from the log");
    return {Row::rebuilt, Action::set_aside, false,
            path() + " has no applied index this release can trust (an older release or another program wrote it last), and replaying "
                     "the raft log onto it would apply entries twice: " + held_.distrust};
  }

  RestartDecision hole() const {
    std::string why = facts_.damaged_snapshot > end()
                          ? "the snapshot at " + at(facts_.damaged_snapshot) + " is damaged, and nothing else reaches that far (the raft log ends at " +
                                at(facts_.log_last) + "): this node has acknowledged what it held"
                          : "the raft log begins after " + at(facts_.log_base) + ", and neither a snapshot (" +
                      (facts_.snapshot ? "the newest is at " + at(facts_.snapshot->index) : std::string("there is none")) +
                      (facts_.damaged_snapshot > 0 ? ", others are damaged" : "") + ") nor " + path() + " (" + index_text() +
                      ") reaches it: entries between them are missing";
    if (facts_.is_joining) {
      SOMETIMES("restart row 12: a joining server resets a state with a hole");
      return {Row::hole, Action::reset, false, std::move(why)};
    }
    SOMETIMES("restart row 12: a state with a hole is refused");
    return refuse(Row::hole, std::move(why) + "; refusing to start. Restore the whole data directory from one moment, or move it "
                                              "away and let this node join its cluster as a new one");
  }

  // ---- Texts ---------------------------------------------------------------------------------------------------------------------

  const std::string& path() const { return facts_.build.path; }

  std::string index_text() const {
    if (!held_.holds_anything) return "empty";
    return held_.is_trusted ? at(held_.index) : std::string("no index to be trusted");
  }

  std::string newer_release_text() const {
    const bool is_held = held_.newest_type > facts_.build.newest_type;
    const std::uint32_t type = is_held ? held_.newest_type : facts_.snapshot->newest_type;
    return (is_held ? "fsm: " + path() : "the raft snapshot at " + at(facts_.snapshot->index)) + " holds raft entry type " +
           std::to_string(type) + ", written by a newer Narad release than this build (" + facts_.build.name +
           ", which knows entry types up to " + std::to_string(facts_.build.newest_type) + "); run that release or newer";
  }

  std::string no_term_record_text() const {
    return "the raft log ends at " + at(facts_.log_last) + " and there is " +
           (facts_.snapshot ? "a snapshot (" + at(facts_.snapshot->index) + ")" : std::string("no snapshot")) +
           ", but no record of term and vote: this node cannot know whom it voted for; refusing to start. Restore " +
           facts_.build.raft_path + "/ whole, or move the whole data directory away and let this node join its cluster as a new one";
  }

  std::optional<std::string> why_foreign() const {
    if (!held_.holds_anything) return std::nullopt;
    if (held_.store.is_known() && facts_.store.is_known() && held_.store != facts_.store) {
      return path() + " belongs to store " + held_.store.to_string() + ", not to this data directory (store " +
             facts_.store.to_string() + ")";
    }
    if (held_.cluster.is_known() && facts_.cluster.is_known() && held_.cluster != facts_.cluster) {
      return path() + " belongs to cluster " + held_.cluster.to_string() + ", raft's state to cluster " +
             facts_.cluster.to_string();
    }
    const std::optional<Term> term = term_at_index();
    if (held_.is_trusted && held_.term > 0 && term && *term != held_.term) {
      return path() + " has applied raft " + at(held_.index) + " of term " + std::to_string(held_.term) +
             ", but raft's state has an entry of term " + std::to_string(*term) + " there";
    }
    return std::nullopt;
  }

  const RestartFacts& facts_;
  const StateMachineFacts& held_;
};

}  // namespace

const char* to_string(RestartRow row) {
  switch (row) {
    case Row::newer_release: return "newer_release";
    case Row::no_term_record: return "no_term_record";
    case Row::empty: return "empty";
    case Row::no_raft_state: return "no_raft_state";
    case Row::foreign: return "foreign";
    case Row::ahead: return "ahead";
    case Row::held: return "held";
    case Row::behind: return "behind";
    case Row::replayed: return "replayed";
    case Row::rebuilt: return "rebuilt";
    case Row::replayed_onto: return "replayed_onto";
    case Row::hole: return "hole";
  }
  return "unknown";
}

RestartDecision decide_restart(const RestartFacts& facts) {
  const StateMachineFacts& held = facts.state_machine;
  NARAD_CHECK(facts.log_base <= facts.log_last, "a log ends at its base or after it");
  NARAD_CHECK(!facts.snapshot || facts.snapshot->index > 0, "a snapshot of nothing");
  NARAD_CHECK(held.holds_anything || (!held.is_trusted && held.index == 0), "an index is something");
  NARAD_CHECK(!held.is_trusted || held.index > 0, "no index is trusted where there is none");
  return Table(facts).decide();
}

}  // namespace raft
