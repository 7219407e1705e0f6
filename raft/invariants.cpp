#include "raft/invariants.h"

#include <algorithm>
#include <utility>

#include "io/random.h"

namespace raft {

namespace {

constexpr std::size_t kVotesKept = 64;

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string place(Index index, Term term) { return "entry " + number(index) + " of term " + number(term); }

std::uint64_t content_of(const Entry& entry) {
  return io::mix(io::stable_hash(entry.bytes()), static_cast<std::uint64_t>(entry.type));
}

}  // namespace

void Invariants::fail(const char* invariant, const Core& core, std::string detail) {
  if (violation_) return;
  violation_ = Violation{invariant, core.id() + " (term " + number(core.term()) + ", " + to_string(core.role()) + "): " +
                                        std::move(detail)};
}

void Invariants::forget(const ServerId& id) { nodes_.erase(id); }

bool Invariants::has_voted(const Node& node, Term term, const ServerId& candidate) {
  const auto is_for = [&](const std::map<Term, ServerId>& votes) {
    const auto vote = votes.find(term);
    return vote != votes.end() && vote->second == candidate;
  };
  return is_for(node.durable_votes) || is_for(node.lost_votes);
}

bool Invariants::speaks_for(const Node& node, const Server& server) {
  return server.voter && (!server.store.is_known() || server.store == node.store);
}

bool Invariants::is_ledger_equal(Index index, Term term) const {
  return ledger_[index - 1].term == 0 || ledger_[index - 1].term == term;
}

std::optional<Violation> Invariants::observe(const Core& core) {
  if (violation_) return violation_;
  auto [at, is_new] = nodes_.try_emplace(core.id());
  Node& node = at->second;
  if (!is_new && node.store != core.store()) {
    Node wiped;
    wiped.lost_votes = std::move(node.durable_votes);
    node = std::move(wiped);
  }
  const bool is_new_session = node.session != core.session();
  if (is_new_session) check_restart(node, core);
  check_hard_state(node, core);
  check_election(node, core);
  check_log(node, core, is_new_session);
  if (violation_) return violation_;
  check_leader(node, core);
  check_commit(node, core, is_new_session);
  check_snapshot(node, core);
  check_matches(node, core);
  return violation_;
}

void Invariants::check_restart(Node& node, const Core& core) {
  const bool is_first = node.session == 0;
  if (!is_first) {
    const HardState& durable = node.durable_hard_state;
    if (core.term() < durable.term) fail("restart", core, "had term " + number(durable.term) + " durable");
    // A vote may have reached the disk in the instant in which the process ended, before anybody was told.
    if (core.term() == durable.term && core.vote() != durable.vote && !durable.vote.empty()) {
      fail("restart", core, "had a vote for '" + durable.vote + "' durable and came back with '" + core.vote() + "'");
    }
    // A server that says that it has lost entries gives no vote by what it still has.
    if (core.last_index() < node.durable && !core.is_rebuilding()) {
      fail("restart", core, "had " + number(node.durable) + " durable and came back with " + number(core.last_index()));
    }
    for (Index index = std::max(node.base, core.log().base_index()) + 1;
         index <= std::min(node.durable, core.last_index()); ++index) {
      if (core.log().term(index) != node.terms[index - node.base - 1]) {
        fail("restart", core, "came back with another entry at " + number(index));
        break;
      }
    }
  }
  Node fresh;
  fresh.store = core.store();
  fresh.session = core.session();
  fresh.durable_votes = std::move(node.durable_votes);
  fresh.lost_votes = std::move(node.lost_votes);
  fresh.durable_hard_state = core.durable_hard_state();
  fresh.term = core.term();
  fresh.vote = core.vote();
  fresh.base = core.log().base_index();
  fresh.base_term = core.log().base_term();
  if (core.log().base_index() > core.snapshot().index) fresh.bare_base = core.log().base_index();
  fresh.configuration = core.configuration();
  fresh.base_configurations = std::move(node.base_configurations);
  fresh.truncations = core.log().truncations();
  node = std::move(fresh);
}

void Invariants::check_hard_state(Node& node, const Core& core) {
  if (core.term() < node.term) fail("monotone", core, "had term " + number(node.term));
  if (core.term() == node.term && !node.vote.empty() && core.vote() != node.vote) {
    fail("one vote", core, "voted for '" + node.vote + "', now its vote is '" + core.vote() + "'");
  }
  if (core.log().last_term() > core.term()) fail("monotone", core, "its last entry is of a later term");
  if (node.term != core.term() || node.vote != core.vote()) {
    node.term = core.term();
    node.vote = core.vote();
  }
  node.is_rebuilding = core.is_rebuilding();
  const HardState& durable = core.durable_hard_state();
  if (durable.term < node.durable_hard_state.term) fail("monotone", core, "its durable term went back");
  node.durable_hard_state = durable;
  if (durable.vote.empty()) return;
  auto [vote, is_new] = node.durable_votes.try_emplace(durable.term, durable.vote);
  if (!is_new && vote->second != durable.vote) {
    fail("one vote", core, "stored votes for '" + vote->second + "' and '" + durable.vote + "' in term " +
                               number(durable.term));
  }
  if (node.durable_votes.size() > kVotesKept) node.durable_votes.erase(node.durable_votes.begin());
}

void Invariants::check_log(Node& node, const Core& core, bool is_new_session) {
  const LogView& log = core.log();
  while (node.base < log.base_index() && !node.terms.empty()) {
    node.terms.pop_front();
    ++node.base;
  }
  node.base = log.base_index();
  node.base_term = log.base_term();

  // The first index that may have changed since the last look.
  Index from = node.last() + 1;
  if (log.truncations() == node.truncations + 1) {
    from = std::min(from, log.last_truncated_from());
  } else if (log.truncations() != node.truncations) {
    from = node.base + 1;
  }
  from = std::max(from, node.base + 1);  // a reset begins below the new base
  node.truncations = log.truncations();
  for (Index index = from; index <= node.last() && index <= ledger_.size(); ++index) {
    const Term term = node.terms[index - node.base - 1];
    // A server that has not heard of the term in which the entry was committed may still follow an earlier leader.
    const bool is_known_there = core.term() >= ledger_[index - 1].committed_in;
    if (ledger_[index - 1].term == term && log.term(index) != term && is_known_there) {
      fail("committed durable", core, "cut " + place(index, term) + ", which is committed");
    }
  }
  const Index durable_floor = std::min(node.durable, from - 1);
  node.terms.resize(from - node.base - 1);
  for (Index index = from; index <= log.last_index(); ++index) {
    if (index >= log.held_from()) check_entry(core, index, is_new_session);
    node.terms.push_back(log.term(index).value());
  }

  if (core.durable_index() < durable_floor) {
    fail("monotone", core, "had " + number(node.durable) + " durable, now " + number(core.durable_index()));
  }
  if (core.durable_index() > log.last_index()) fail("monotone", core, "more is durable than its log holds");
  node.durable = core.durable_index();
  if (is_new_session || node.configuration_truncations != log.truncations() ||
      node.configuration_index != core.configurations().current_index()) {
    node.configuration_truncations = log.truncations();
    node.configuration_index = core.configurations().current_index();
    check_configuration(node, core);
  }
}

// Looked at when a configuration was appended, cut or found at a start.
void Invariants::check_configuration(Node& node, const Core& core) {
  const LogView& log = core.log();
  node.configuration = core.configuration();
  if (core.configuration().servers.empty()) return;  // not known: the snapshot that held it was damaged
  Index newest = log.last_index();
  while (newest >= log.held_from() && log.at(newest).type != EntryType::configuration) --newest;
  if (newest < log.held_from()) {
    if (core.configurations().current_index() > newest) fail("configuration", core, "in force is one of no entry");
    node.base_configurations.erase(node.base_configurations.begin(), node.base_configurations.lower_bound(newest));
    const auto [base, is_new] = node.base_configurations.try_emplace(newest, core.configuration());
    if (!is_new && !(base->second == core.configuration())) {
      fail("configuration", core, "in force is another than before at the log's base");
    }
  } else if (core.configurations().current_index() != newest ||
             decode_configuration(log.at(newest).bytes()) != core.configuration()) {
    fail("configuration", core, "in force is not that of entry " + number(newest) + ", the newest in its log");
  }
  std::size_t open_changes = 0;
  for (const Index index : core.configurations().voter_changes_after(core.commit_index())) {
    const bool is_committed = index <= ledger_.size() && log.term(index) && is_ledger_equal(index, *log.term(index));
    if (!is_committed) ++open_changes;
  }
  if (open_changes > 1) fail("one change", core, "has two uncommitted changes of the voters in its log");
}

void Invariants::check_entry(const Core& core, Index index, bool is_new_session) {
  const Entry& entry = core.log().at(index);
  const Term term_before = core.log().term(index - 1).value();
  const bool is_after_base = index - 1 == core.log().base_index() && index > 1;
  while (entries_.size() < index) entries_.emplace_back();
  std::vector<Known>& known = entries_[index - 1];
  const std::uint64_t content = content_of(entry);
  for (const Known& each : known) {
    if (each.term != entry.term) continue;
    if (each.content != content) fail("log matching", core, place(index, entry.term) + " differs from another server's");
    if (each.term_before != term_before) {
      fail("log matching", core, place(index, entry.term) + " follows an entry of term " + number(term_before) +
                                     ", elsewhere one of term " + number(each.term_before));
    }
    return;
  }
  // It may have been elected, have appended and have stepped down within one event.
  const auto leader = leaders_.find(entry.term);
  const bool is_creator = (core.role() == Role::leader && core.term() == entry.term) ||
                          (leader != leaders_.end() && leader->second == core.id());
  if (!is_creator && !is_new_session && !is_after_base) {
    fail("leader creates", core, place(index, entry.term) + " was not seen at the leader of its term before");
  }
  known.push_back(Known{entry.term, term_before, content});
}

// Judged by the term it won, not by its role: a server that reads a backlog may win an election and lose its leadership again
// within one event.
void Invariants::check_election(Node& node, const Core& core) {
  const Term term = core.term_won();
  if (term == node.term_won) return;
  node.term_won = term;
  const auto [leader, is_new] = leaders_.try_emplace(term, core.id());
  if (leader->second != core.id()) fail("election safety", core, leader->second + " led term " + number(term) + " too");
  // Of a term that is over, the voters' votes may be forgotten here.
  if (term != core.term()) return;
  std::size_t votes = 0;
  for (const Server& server : core.configuration().servers) {
    if (!server.voter) continue;
    const auto voter = nodes_.find(server.id);
    if (voter == nodes_.end()) continue;
    if (has_voted(voter->second, term, core.id())) ++votes;
  }
  if (votes < core.configuration().quorum()) {
    fail("election safety", core, "elected with " + number(votes) + " durable votes of " +
                                      number(core.configuration().voter_count()) + " voters");
  }
}

void Invariants::check_leader(Node& node, const Core& core) {
  const bool was_leader = node.role == Role::leader && node.leads == core.term();
  node.role = core.role();
  if (core.role() != Role::leader) {
    node.matches.clear();
    return;
  }
  node.leads = core.term();
  if (was_leader) return;
  // By log matching, one entry stands for all before it.
  for (Index index = ledger_.size(); index > 0; --index) {
    if (ledger_[index - 1].committed_in >= core.term()) continue;
    if (ledger_[index - 1].term != 0 && !node.has(index, ledger_[index - 1].term)) {
      fail("leader completeness", core, "lacks committed " + place(index, ledger_[index - 1].term));
    }
    break;
  }
}

void Invariants::check_commit(Node& node, const Core& core, bool is_new_session) {
  if (core.commit_index() < node.commit) fail("monotone", core, "had committed " + number(node.commit));
  if (core.commit_index() > node.last()) fail("monotone", core, "its commit index lies beyond its log");
  if (core.applied_index() < node.applied) fail("monotone", core, "had applied " + number(node.applied));
  if (core.applied_index() > core.commit_index()) fail("applied durable", core, "applied more than is committed");
  if (core.applied_index() > core.durable_index()) {
    fail("applied durable", core, "applied " + number(core.applied_index()) + " with only " +
                                      number(core.durable_index()) + " durable in its log");
  }
  node.applied = core.applied_index();
  const Index before = node.commit;
  node.commit = core.commit_index();
  if (before == node.commit || violation_) return;

  const Index known_before = ledger_.size();
  // A server that starts trusts what its state machine has applied; the run may have begun with it.
  if (is_new_session) {
    while (ledger_.size() < node.base) ledger_.push_back(Committed{});
  }
  for (Index index = std::max(before, node.base) + 1; index <= node.commit; ++index) {
    const Term term = node.terms[index - node.base - 1];
    if (index > ledger_.size() + 1) {
      fail("state-machine safety", core, "committed above a base that no server was seen to commit");
      return;
    }
    if (index == ledger_.size() + 1) {
      ledger_.push_back(Committed{term, core.term()});
      if (index >= core.log().held_from() && core.log().at(index).type == EntryType::configuration) {
        committed_configurations_[index] = decode_configuration(core.log().at(index).bytes()).value_or(Configuration{});
      }
    } else if (!is_ledger_equal(index, term)) {
      fail("state-machine safety", core, "committed " + place(index, term) + ", another server committed one of term " +
                                             number(ledger_[index - 1].term) + " there");
      return;
    }
  }
  if (ledger_.size() == known_before || is_new_session) return;
  // The newest entry stands for all before it.
  check_quorum_holds(core, node.commit, ledger_.back().term);
  check_nobody_electable_without(core, node.commit, ledger_.back().term);
}

void Invariants::check_quorum_holds(const Core& core, Index index, Term term) {
  std::size_t holders = 0;
  for (const Server& server : core.configuration().servers) {
    const auto at = nodes_.find(server.id);
    if (at == nodes_.end() || !speaks_for(at->second, server)) continue;
    if (at->second.durable >= index && at->second.has(index, term)) ++holders;
  }
  if (holders < core.configuration().quorum()) {
    fail("committed durable", core, "committed " + place(index, term) + ", durable on " + number(holders) + " of " +
                                        number(core.configuration().voter_count()) + " voters");
  }
}

void Invariants::check_nobody_electable_without(const Core& core, Index index, Term term) {
  for (const auto& [id, node] : nodes_) {
    // A candidate asks the voters of its own configuration, old as it may be.
    const Configuration& servers = node.configuration;
    const Server* candidate = servers.find(id);
    if (candidate == nullptr || !speaks_for(node, *candidate) || node.has(index, term)) continue;
    if (node.is_rebuilding) continue;
    if (node.role == Role::leader && node.term > core.term()) {
      fail("leader completeness", core, "committed " + place(index, term) + ", which " + id + ", leader of term " +
                                            number(node.term) + ", lacks");
      return;
    }
    // Who would find that candidate's log at least as up to date as its own.
    std::size_t votes = 0;
    for (const Server& server : servers.servers) {
      const auto at = nodes_.find(server.id);
      if (!server.voter || at == nodes_.end() || !speaks_for(at->second, server)) continue;
      const Node& voter = at->second;
      if (voter.is_rebuilding) continue;
      if (node.last_term() > voter.last_term() ||
          (node.last_term() == voter.last_term() && node.last() >= voter.last())) {
        ++votes;
      }
    }
    if (votes >= servers.quorum()) {
      fail("leader completeness", core, "committed " + place(index, term) + ", though " + id +
                                            ", which lacks it, could still be elected");
      return;
    }
  }
}

void Invariants::check_snapshot(Node& node, const Core& core) {
  const LogView& log = core.log();
  const SnapshotLabel& label = core.snapshot();
  if (log.base_index() > label.index && log.base_index() != node.bare_base) {
    fail("no hole", core, "its log begins above " + number(log.base_index()) + ", its newest snapshot ends at " +
                              number(label.index));
  }
  if (core.applied_index() < log.base_index() && !core.is_installing()) {
    fail("no hole", core, "its log begins above " + number(log.base_index()) + " and it has applied " +
                              number(core.applied_index()));
  }
  if (log.base_index() > ledger_.size()) {
    fail("state-machine safety", core, "its log begins above " + number(log.base_index()) +
                                           ", which no server was seen to commit");
    return;
  }
  if (log.base_index() > 0 && !is_ledger_equal(log.base_index(), log.base_term())) {
    fail("label", core, "its log's base is " + place(log.base_index(), log.base_term()) + ", committed was one of term " +
                            number(ledger_[log.base_index() - 1].term));
  }
  if (label.index < node.snapshot) fail("monotone", core, "had a snapshot of " + number(node.snapshot));
  if (label.index == node.snapshot) return;
  node.snapshot = label.index;
  if (label.index > ledger_.size() || !is_ledger_equal(label.index, label.term)) {
    fail("label", core, "has a snapshot of " + place(label.index, label.term) + ", which was not committed");
    return;
  }
  // What lay below every base at the start is not known.
  if (label.configuration_index > 0 && ledger_[label.configuration_index - 1].term == 0) return;
  const auto after = committed_configurations_.upper_bound(label.index);
  if (after == committed_configurations_.begin()) return;
  const auto& [index, configuration] = *std::prev(after);
  if (label.configuration_index != index || !(label.configuration == configuration)) {
    fail("label", core, "its snapshot of " + number(label.index) + " names the configuration of " +
                            number(label.configuration_index) + ", in force there was that of " + number(index));
  }
}

void Invariants::check_matches(Node& node, const Core& core) {
  if (core.role() != Role::leader) return;
  for (const auto& [id, progress] : core.tracked()) {
    Node::Match& known = node.matches[id];
    if (progress.next() <= progress.match()) fail("monotone", core, "next of " + id + " is not above its match");
    if (progress.match() > core.last_index()) fail("monotone", core, "match of " + id + " lies beyond the log");
    if (known.store == progress.store && known.session == progress.session && progress.match() < known.index) {
      fail("monotone", core, "match of " + id + " went back from " + number(known.index));
    }
    known = Node::Match{progress.store, progress.session, progress.match()};
  }
}

}  // namespace raft
