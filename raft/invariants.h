// What must hold over a set of cores at every moment, checked after every event.
//
// One Invariants watches one cluster. Whoever runs the cores (the simulator, a scenario, a property test) calls observe()
// with each core that an event may have changed, right after the event and before the next one: the checks compare what
// changed with a memory of the whole cluster, so that their cost follows the change, not the history. The memory
// outlives the cores: a core that comes back under the same id with another session has restarted from its disk and is
// held to what was durable; with another store its volume was replaced, and nothing of it is expected.
//
// Checked, by the names that violations carry:
//   election safety       one leader a term, elected by a quorum of durable votes
//   one vote              a server votes once in a term, in one life and over restarts
//   log matching          same index and term: same entry and same term before it
//   leader creates        an entry appears first at the leader of its term
//   leader completeness   a committed entry is in the log of every later leader, and no server that lacks it could still
//                         be elected when it is committed
//   state-machine safety  an index is committed with one term everywhere
//   committed durable     what is committed is durable on a quorum at that moment, and never cut from a log by a server of the
//                         term that committed it or a later one
//   applied durable       applied <= commit, and applied <= durable in the server's own log
//   monotone              term, commit, applied and a leader's match of a server never go back; durable only by a cut
//   restart               term, vote and durable entries are found again
//   one change            at most one change of the voters in a log that no server has committed
//   configuration         in force is the newest configuration entry of the log, or else what was in force at its base
//   no hole               a log begins at or below a durable snapshot, and no further than the state machine has come (but
//                         while an image is being installed)
//   label                 a snapshot's term and configuration are those of the log at its index, and so is a log's base
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "raft/core.h"

namespace raft {

struct Violation {
  const char* invariant;
  std::string detail;  // for a person: servers, terms, indexes
};

class Invariants {
 public:
  // The first violation of the cluster's life is returned, and again by every later call: what comes after a broken
  // invariant means nothing.
  std::optional<Violation> observe(const Core& core);

  // Drops the memory of what was durable at `id`, for a run that took it away on purpose (a volume restored from an
  // older moment). Votes it gave and entries it helped commit stay in the cluster's memory.
  void forget(const ServerId& id);

  Index committed_index() const { return ledger_.size(); }
  // The term that index was committed with; 1 <= index <= committed_index().
  Term committed_term(Index index) const { return ledger_[index - 1].term; }

 private:
  struct Node {
    StoreId store;
    std::uint64_t session = 0;
    Term term = 0;
    ServerId vote;
    Role role = Role::follower;
    Term term_won = 0;
    Term leads = 0;  // the term in which it was last seen leading
    HardState durable_hard_state;
    std::map<Term, ServerId> durable_votes;  // the newest few
    std::map<Term, ServerId> lost_votes;     // given through a volume that is gone
    Index base = 0;
    Term base_term = 0;
    std::deque<Term> terms;  // of the entries above base, as last seen in memory
    Index durable = 0;
    Index commit = 0;
    Index applied = 0;
    Index snapshot = 0;
    std::uint64_t truncations = 0;
    Configuration configuration;  // in force when last looked at
    Index configuration_index = 0;
    std::uint64_t configuration_truncations = 0;
    std::map<Index, Configuration> base_configurations;  // in force at the log's base
    struct Match {
      StoreId store;
      std::uint64_t session = 0;
      Index index = 0;
    };
    std::map<ServerId, Match> matches;  // while leader
    bool is_rebuilding = false;         // it gives no vote
    Index bare_base = 0;                // it started with a log that begins here, and no snapshot that reaches it

    Index last() const { return base + terms.size(); }
    Term last_term() const { return terms.empty() ? base_term : terms.back(); }
    bool has(Index index, Term term) const {
      return index <= base || (index <= last() && terms[index - base - 1] == term);
    }
  };
  // The one entry that exists for an (index, term).
  struct Known {
    Term term = 0;
    Term term_before = 0;
    std::uint64_t content = 0;
  };
  struct Committed {
    Term term = 0;          // of the entry; 0: not known, it lay below every base at the start
    Term committed_in = 0;  // term of the server that was first seen to have committed it
  };

  static bool has_voted(const Node& node, Term term, const ServerId& candidate);
  static bool speaks_for(const Node& node, const Server& server);
  bool is_ledger_equal(Index index, Term term) const;
  void check_restart(Node& node, const Core& core);
  void check_hard_state(Node& node, const Core& core);
  void check_log(Node& node, const Core& core, bool is_new_session);
  void check_entry(const Core& core, Index index, bool is_new_session);
  void check_configuration(Node& node, const Core& core);
  void check_snapshot(Node& node, const Core& core);
  void check_election(Node& node, const Core& core);
  void check_leader(Node& node, const Core& core);
  void check_commit(Node& node, const Core& core, bool is_new_session);
  void check_quorum_holds(const Core& core, Index index, Term term);
  void check_nobody_electable_without(const Core& core, Index index, Term term);
  void check_matches(Node& node, const Core& core);
  void fail(const char* invariant, const Core& core, std::string detail);

  std::map<ServerId, Node> nodes_;
  std::map<Term, ServerId> leaders_;
  std::deque<std::vector<Known>> entries_;  // by index, from 1
  std::deque<Committed> ledger_;            // by index, from 1
  std::map<Index, Configuration> committed_configurations_;
  std::optional<Violation> violation_;
};

}  // namespace raft
