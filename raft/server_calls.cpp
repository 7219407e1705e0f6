// The calls that wait: proposals, changes of the configuration, transfers of leadership, barriers; and the status.
#include <utility>

#include "io/check.h"
#include "io/probe.h"
#include "raft/server.h"

namespace raft {

Proposed RaftServer::propose(std::string command, io::Instant deadline) {
  Proposed proposed;
  if (!core_ || is_stopping_) {
    proposed.outcome = Outcome::stopped;
    proposed.reason = "this server has stopped";
    return proposed;
  }
  if (is_disk_full_ && core_->role() == Role::leader) {
    SOMETIMES("raft: proposal refused, the disk is full");
    proposed.outcome = Outcome::refused;
    proposed.reason = "no space left for the raft log";
    note_refused_proposal(proposed.reason);
    return proposed;
  }
  const Payload payload = std::make_shared<const std::string>(std::move(command));
  const ProposeResult result = core_->propose(std::span(&payload, 1));
  if (result.refusal != Refusal::none) {
    if (result.refusal != Refusal::not_leader) note_refused_proposal(to_string(result.refusal));
    return refuse(result.refusal, result.leader);
  }
  return wait_for_entry(result.term, result.first, deadline);
}

void RaftServer::note_refused_proposal(const std::string& reason) {
  ++counters_.proposals_refused;
  const auto left_out = proposal_lines_.admit(reason, env_.now());
  if (!left_out) return;
  env_.log.info("raft: proposal refused",
                {{"term", core_->term()}, {"reason", reason}, {"refused_since_last_line", *left_out}});
}

ChangeResult RaftServer::start_change(const ConfigurationChange& change) {
  NARAD_CHECK(core_ && !is_stopping_, "a change is asked of a server that runs");
  const ChangeResult result = core_->change_configuration(change);
  if (result.refusal != Refusal::none) {
    ++counters_.changes_refused;
    env_.log.info("raft: configuration change refused",
                  {{"change", to_string(change.kind)}, {"server", change.id}, {"reason", to_string(result.refusal)}});
    return result;
  }
  ++counters_.configuration_changes;
  env_.log.info("raft: configuration change appended", {{"change", to_string(change.kind)},
                                                        {"server", change.id},
                                                        {"address", change.address},
                                                        {"term", result.term},
                                                        {"index", result.index}});
  wake();
  return result;
}

Proposed RaftServer::change_configuration(const ConfigurationChange& change, io::Instant deadline) {
  Proposed proposed;
  if (!core_ || is_stopping_) {
    proposed.outcome = Outcome::stopped;
    proposed.reason = "this server has stopped";
    return proposed;
  }
  const ChangeResult result = start_change(change);
  if (result.refusal != Refusal::none) return refuse(result.refusal, result.leader);
  return wait_for_entry(result.term, result.index, deadline);
}

// Registered before the next Ready, so before the entry can be replicated, committed or applied.
Proposed RaftServer::wait_for_entry(Term term, Index index, io::Instant deadline) {
  struct Registered {
    ProposalTable& table;
    std::shared_ptr<ProposalWait> wait;
    ~Registered() {
      if (wait->end == ProposalWait::End::pending) table.remove(wait);
    }
  } registered{proposals_, proposals_.add(term, index)};
  wake();
  registered.wait->done.wait(deadline);
  return finish(*registered.wait);
}

Proposed RaftServer::refuse(Refusal refusal, const ServerId& leader) const {
  Proposed proposed;
  proposed.reason = to_string(refusal);
  proposed.refusal = refusal;
  switch (refusal) {
    case Refusal::not_leader:
      proposed.outcome = Outcome::not_leader;
      proposed.leader = hint(leader);
      break;
    case Refusal::payload_too_large:
      proposed.outcome = Outcome::too_large;
      break;
    default:
      proposed.outcome = Outcome::refused;
      break;
  }
  return proposed;
}

Proposed RaftServer::finish(const ProposalWait& wait) const {
  Proposed proposed;
  proposed.term = wait.term;
  proposed.index = wait.index;
  switch (wait.end) {
    case ProposalWait::End::applied:
      proposed.outcome = Outcome::ok;
      proposed.answer = wait.answer;
      break;
    case ProposalWait::End::superseded:
      proposed.outcome = Outcome::superseded;
      proposed.reason = "another leader's entry was committed in its place";
      break;
    case ProposalWait::End::stopped:
      proposed.outcome = Outcome::stopped;
      proposed.reason = "this server stopped before the entry was applied";
      break;
    case ProposalWait::End::unknown:
      proposed.outcome = Outcome::unknown;
      proposed.reason = "leadership was lost before the entry was committed";
      break;
    case ProposalWait::End::pending:
      SOMETIMES("raft: proposal not applied by its deadline");
      proposed.outcome = Outcome::unknown;
      proposed.reason = "not committed in time";
      break;
  }
  return proposed;
}

// ---- Leadership ----------------------------------------------------------------------------------------------------------------

TransferStart RaftServer::start_transfer(const ServerId& to) {
  NARAD_CHECK(core_ && !is_stopping_, "a transfer is asked of a server that runs");
  const TransferStart start = core_->transfer_leadership(to);
  if (start.refusal != Refusal::none) {
    ++counters_.transfers_refused;
    env_.log.info("raft: hand-over refused", {{"to", to}, {"term", core_->term()}, {"reason", to_string(start.refusal)}});
    return start;
  }
  env_.log.info("raft: leadership is handed over", {{"to", start.to}, {"term", core_->term()}});
  wake();
  return start;
}

Transferred RaftServer::transfer_leadership(const ServerId& to, io::Instant deadline) {
  Transferred transferred;
  const auto end = [&transferred](Outcome outcome, std::string reason) {
    transferred.outcome = outcome;
    transferred.reason = std::move(reason);
    return transferred;
  };
  if (!core_ || is_stopping_) return end(Outcome::stopped, "this server has stopped");
  const Term term = core_->term();
  const TransferStart start = start_transfer(to);
  if (start.refusal == Refusal::not_leader) transferred.leader = hint(start.leader);
  if (start.refusal != Refusal::none) {
    return end(start.refusal == Refusal::not_leader ? Outcome::not_leader : Outcome::refused, to_string(start.refusal));
  }
  transferred.to = start.to;
  while (!is_stopping_ && (core_->term() == term ? !core_->transfer_target().empty() : !leader_is_known())) {
    if (!leadership_moved_.wait(deadline)) return end(Outcome::unknown, "not handed over in time");
  }
  if (is_stopping_) return end(Outcome::stopped, "this server has stopped");
  if (core_->term() == term) return end(Outcome::refused, "the other server did not take over in time");
  transferred.leader = leader();
  return end(Outcome::ok, std::string());
}

bool RaftServer::wait_leadership_settled(io::Instant deadline) {
  while (!is_stopping_ && core_ && !(leader_is_known() && core_->transfer_target().empty())) {
    if (!leadership_moved_.wait(deadline)) return false;
  }
  return core_ && !is_stopping_;
}

bool RaftServer::wait_newer_term(Term term, io::Instant deadline) {
  while (!is_stopping_ && core_ && core_->term() <= term) {
    if (!leadership_moved_.wait(deadline)) return false;
  }
  return core_ && !is_stopping_;
}

bool RaftServer::leader_is_known() const { return !leader().address.empty(); }

// ---- Reading -------------------------------------------------------------------------------------------------------------------

Barrier RaftServer::barrier(io::Instant deadline) {
  Barrier barrier;
  const auto end = [&barrier](Outcome outcome, std::string reason) {
    barrier.outcome = outcome;
    barrier.reason = std::move(reason);
    return barrier;
  };
  if (!core_ || is_stopping_) return end(Outcome::stopped, "this server has stopped");
  const std::uint64_t context = next_context_++;
  const ReadRefusal refusal = core_->read_index(context);
  if (refusal.refusal == Refusal::not_leader) {
    barrier.leader = hint(refusal.leader);
    return end(Outcome::not_leader, to_string(refusal.refusal));
  }
  const auto refuse = [&](Outcome outcome, const std::string& reason) {
    note_refused_read(reason);
    return end(outcome, reason);
  };
  if (refusal.refusal != Refusal::none) return refuse(Outcome::refused, to_string(refusal.refusal));
  struct Registered {
    std::map<std::uint64_t, std::shared_ptr<BarrierWait>>& table;
    std::uint64_t context;
    std::shared_ptr<BarrierWait> wait;
    ~Registered() {
      if (wait->is_listed) table.erase(context);
    }
  } registered{barriers_, context, std::make_shared<BarrierWait>()};
  barriers_.emplace(context, registered.wait);
  wake();
  const BarrierWait& wait = *registered.wait;
  if (!registered.wait->done.wait(deadline)) return refuse(Outcome::unknown, "no quorum answered in time");
  if (!wait.is_answered) return end(Outcome::stopped, "this server has stopped");
  if (!wait.is_confirmed) {
    barrier.leader = leader();
    return end(Outcome::not_leader, "leadership was lost");
  }
  if (!wait_applied(wait.index, deadline)) {
    return is_stopping_ ? end(Outcome::stopped, "this server has stopped") : refuse(Outcome::unknown, "not applied in time");
  }
  barrier.outcome = Outcome::ok;
  barrier.index = wait.index;
  return barrier;
}

void RaftServer::note_refused_read(const std::string& reason) {
  ++counters_.reads_refused;
  const auto left_out = read_lines_.admit(reason, env_.now());
  if (!left_out) return;
  env_.log.info("raft: barrier refused",
                {{"term", core_->term()}, {"reason", reason}, {"refused_since_last_line", *left_out}});
}

bool RaftServer::wait_applied(Index index, io::Instant deadline) {
  if (!core_ || is_stopping_) return false;
  if (core_->applied_index() >= index) return true;
  using Table = std::multimap<Index, std::shared_ptr<AppliedWait>>;
  struct Registered {
    Table& table;
    Table::iterator at;
    std::shared_ptr<AppliedWait> wait;
    ~Registered() {
      if (wait->is_listed) table.erase(at);
    }
  } registered{applied_waits_, applied_waits_.emplace(index, std::make_shared<AppliedWait>()), nullptr};
  registered.wait = registered.at->second;
  return registered.wait->done.wait(deadline) && !is_stopping_;
}

void RaftServer::release_applied() {
  while (!applied_waits_.empty() && applied_waits_.begin()->first <= core_->applied_index()) {
    applied_waits_.begin()->second->is_listed = false;
    applied_waits_.begin()->second->done.set();
    applied_waits_.erase(applied_waits_.begin());
  }
}

// ---- Looking -------------------------------------------------------------------------------------------------------------------

LeaderHint RaftServer::hint(const ServerId& id) const {
  LeaderHint hint;
  if (const Server* server = core_->configuration().find(id)) {
    hint.id = id;
    hint.address = server->address;
  } else if (const auto link = links_.find(id); link != links_.end()) {
    // Who leads may be outside of the configuration that this server has: it has removed itself, or this server has none yet.
    hint.id = id;
    hint.address = link->second.link->address();
  }
  return hint;
}

LeaderHint RaftServer::leader() const {
  if (!core_ || is_stopping_) return LeaderHint();
  return core_->role() == Role::leader ? LeaderHint{options_.id, options_.address} : hint(core_->leader());
}

bool RaftServer::is_admitted() const {
  // It holds the cluster's log, and has lost the snapshot in which stood who belongs to it: the next change tells it.
  if (core_ && core_->configuration().servers.empty()) return core_->last_index() > 0;
  const Server* self = core_ ? core_->configuration().find(options_.id) : nullptr;
  return self != nullptr && (!self->store.is_known() || self->store == core_->store());
}

bool RaftServer::is_known_with_another_store() const {
  const Server* self = core_ ? core_->configuration().find(options_.id) : nullptr;
  return self != nullptr && self->store.is_known() && !(self->store == core_->store());
}

ServerStatus RaftServer::status() const {
  ServerStatus status;
  status.id = options_.id;
  status.is_stopped = is_stopping_;
  status.is_disk_full = is_disk_full_;
  if (!core_) return status;
  const Core& core = *core_;
  status.store = core.store();
  status.cluster = core.cluster();
  status.role = core.role();
  status.term = core.term();
  status.leader = leader();
  status.commit = core.commit_index();
  status.applied = core.applied_index();
  status.last = core.last_index();
  status.durable = core.durable_index();
  status.log_base = core.log().base_index();
  status.snapshot = core.snapshot().index;
  status.snapshot_term = core.snapshot().term;
  status.snapshot_took = last_snapshot_took_;
  if (!snapshots_->kept().empty()) status.snapshot_bytes = snapshots_->kept().front().bytes;
  status.is_rebuilding = core.is_rebuilding();
  status.apply_backlog = status.commit - status.applied;
  status.leader_contact = core.leader_contact();
  const Configuration& configuration = core.configuration();
  status.voters = configuration.voter_count();
  status.non_voters = configuration.servers.size() - status.voters;
  status.is_voter = configuration.is_voter(options_.id);
  const std::vector<ServerProgress> progress = core.progress();
  for (const Server& server : configuration.servers) {
    if (server.id == options_.id) continue;
    PeerStatus peer;
    peer.id = server.id;
    peer.address = server.address;
    peer.is_voter = server.voter;
    const auto link = links_.find(server.id);
    peer.is_connected = link != links_.end() && link->second.link->is_connected();
    for (const ServerProgress& each : progress) {
      if (each.id != server.id) continue;
      peer.match = each.match;
      peer.state = each.state;
      peer.last_contact = each.last_contact;
    }
    status.peers.push_back(std::move(peer));
  }
  return status;
}

}  // namespace raft
