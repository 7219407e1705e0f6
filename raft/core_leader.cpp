// Leading: replication, commit, heartbeats, contact to a quorum, reads.
#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/defence.h"
#include "io/probe.h"
#include "raft/core.h"

namespace raft {

// --- the servers and their stores ---

// Brings the list of followed servers in line with the configuration in force.
void Core::track_servers() {
  const Configuration& servers = configuration();
  for (auto at = progress_.begin(); at != progress_.end();) {
    at = servers.find(at->first) == nullptr ? progress_.erase(at) : std::next(at);
  }
  for (const Server& server : servers.servers) {
    if (server.id == identity_.id) continue;
    auto [at, is_new] = progress_.try_emplace(server.id, log_.last_index() + 1);
    Progress& progress = at->second;
    // Nobody is out of contact before there was time to answer.
    if (is_new) {
      progress.contact_ns = now_ns();
      progress.begin_catch_up(log_.last_index(), now_ns());
    }
    progress.is_voter = server.voter;
    progress.recorded = server.store;
  }
}

// A leader's first entry commits what came before it. The first leader ever fixes the cluster's identity with it.
void Core::append_first_entry() {
  Configuration next = configuration();
  bool has_changed = !next.cluster.is_known();
  if (has_changed) {
    NARAD_CHECK(identity_.new_cluster.is_known(), "a cluster id was drawn");
    next.cluster = cluster_.is_known() ? cluster_ : identity_.new_cluster;
  }
  for (Server& server : next.servers) {
    if (server.store.is_known()) continue;
    if (server.id == identity_.id) server.store = identity_.store;
    for (const Ballot::Voter& voter : ballot_.voters()) {
      if (voter.id == server.id && voter.answered) server.store = voter.heard;
    }
    has_changed = has_changed || server.store.is_known();
  }
  Entry entry{hard_state_.term, log_.last_index() + 1, EntryType::noop, nullptr};
  if (has_changed) {
    entry.type = EntryType::configuration;
    entry.data = std::make_shared<const std::string>(encode(next));
  }
  append_to_log(std::move(entry));
  append_term_ = hard_state_.term;
  track_servers();
}

// A server was heard through `store`. Records it where the configuration knows none: that changes no voter, so it may be
// appended at any time. A recorded store is replaced only by the first leader ever, before its first entry commits.
void Core::record_store(const ServerId& id, const StoreId& store) {
  if (transfer_) return;  // the log stands still while leadership is handed over
  const Server* server = configuration().find(id);
  if (server == nullptr || !store.is_known() || server->store == store) return;
  const bool is_founding = !cluster_.is_known() && !configurations_.at(term_start_ - 1).cluster.is_known();
  if (server->store.is_known() && !is_founding) {
    SOMETIMES("raft: answer through a store that was not admitted");
    return;
  }
  SOMETIMES("raft: store recorded after the first entry");
  Configuration next = configuration();
  for (Server& each : next.servers) {
    if (each.id == id) each.store = store;
  }
  append_configuration(next);
}

// --- replication ---

void Core::on_append_reply(const Message& message) {
  if (role_ != Role::leader) return;
  const auto at = progress_.find(message.from);
  if (at == progress_.end()) return;
  if (message.match > message.log_index || (!message.rejected && message.log_index > log_.last_index())) {
    SOMETIMES("raft: implausible append answer dropped");
    return;
  }
  Progress& progress = at->second;
  record_store(message.from, message.from_store);
  observe_session(message, progress);
  if (message.echo_session == identity_.session && message.echo_ns <= now_ns()) {
    progress.contact_ns = std::max(progress.contact_ns, message.echo_ns);
  }
  progress.round_acked = std::max(progress.round_acked, std::min(message.round, round_));
  bool has_advanced = false;
  if (message.rejected) {
    const Index retry_at = log_.find_possible_match(message.hint_index, message.hint_term);
    if (!progress.refused(message.log_index, retry_at)) SOMETIMES("raft: stray refusal ignored");
  } else if (message.log_index >= log_.base_index()) {
    // (What is proven below the log's base does not say where the logs meet.)
    has_advanced = progress.accepted(message.log_index, message.match);
    progress.follow_catch_up(log_.last_index(), now_ns(), settings_.election_timeout_max.count());
  }
  if (progress.next() <= log_.last_index() || progress.commit_sent < commit_) must_send_ = true;
  // A commit may end this leadership (leave_when_removed), and with it `progress`.
  if (has_advanced) advance_commit();
  if (role_ != Role::leader) return;
  if (!reads_.empty()) answer_reads();
  if (has_advanced && transfer_ && !transfer_->is_told) advance_transfer();
}

void Core::observe_session(const Message& message, Progress& progress) {
  if (progress.store.is_known() && progress.store != message.from_store) {
    SOMETIMES("raft: server came back with another volume");
    progress.reset(log_.last_index() + 1);
  } else if (progress.session != 0 && progress.session != message.session) {
    SOMETIMES("raft: server came back in a new session");
    progress.begin_session(log_.base_index());
  }
  progress.store = message.from_store;
  progress.session = message.session;
  progress.echo_ns = message.sent_at_ns;
}

void Core::begin_round() { ++round_; }

void Core::heartbeat() {
  if (now_ns() - quorum_contact_ns() > settings_.election_timeout_max.count()) {
    SOMETIMES("raft: leader steps down, no contact to a quorum");
    become_follower(hard_state_.term, ServerId(), "lost contact to a quorum");
    return;
  }
  begin_round();
  for (auto& [id, progress] : progress_) {
    progress.allow_probe();
    send_append(id, progress, false);
  }
  must_broadcast_ = false;
  heartbeat_deadline_ = now_ + settings_.heartbeat_interval;
  advance_transfer();
}

void Core::send_appends() {
  for (auto& [id, progress] : progress_) {
    bool has_sent = false;
    while (progress.next() <= log_.last_index() && progress.can_send_entries(settings_.flight)) {
      if (progress.state() == Progress::State::replicate && progress.next() > log_.base_index() &&
          progress.next() < log_.held_from()) {
        ask_for_read(id, progress);
        break;
      }
      send_append(id, progress, true);
      has_sent = true;
    }
    const bool is_behind_on_commit = progress.state() == Progress::State::replicate && progress.commit_sent < commit_;
    if (!has_sent && (must_broadcast_ || is_behind_on_commit)) send_append(id, progress, false);
  }
  must_broadcast_ = false;
}

void Core::send_append(const ServerId& id, Progress& progress, bool with_entries) {
  if (progress.state() != Progress::State::snapshot && progress.next() <= log_.base_index()) ask_for_snapshot(id, progress);
  Message request = make_append(id, progress);
  if (with_entries && progress.state() != Progress::State::snapshot && progress.next() >= log_.held_from()) {
    const Index last = std::min(log_.last_index(), request.log_index + settings_.append_entries_max);
    std::uint64_t cost = 0;
    // Packing stops at the first entry that does not fit: a list with a hole would be worse than a short one.
    const Index copied = log_.copy(progress.next(), last, settings_.append_bytes_max, request.entries, &cost);
    progress.sent_entries(copied, cost);
  } else if (progress.state() == Progress::State::probe) {
    progress.sent_probe();
  }
  send(std::move(request));
}

// The head of a request that follows the entry before next(). To a server that waits for an image it is a heartbeat that asks
// nothing of its log: every log holds (0, 0).
Message Core::make_append(const ServerId& id, Progress& progress) const {
  Message request = make(MessageType::append_request, id);
  if (progress.state() != Progress::State::snapshot) {
    request.log_index = progress.next() - 1;
    request.log_term = log_.term(request.log_index).value();
  }
  request.commit = commit_;
  request.round = round_;
  request.echo_ns = progress.echo_ns;
  request.echo_session = progress.session;
  progress.commit_sent = commit_;
  return request;
}

// --- quorums ---

// The greatest value that a majority of the voters has reached; of_progress gives another server's, `own` is ours.
template <class OfProgress>
std::uint64_t Core::reached_by_quorum(std::uint64_t own, OfProgress of_progress) const {
  reached_.clear();
  if (configuration().is_voter(identity_.id)) reached_.push_back(own);
  for (const auto& [id, progress] : progress_) {
    if (progress.is_voter) reached_.push_back(progress.counts() ? of_progress(progress) : 0);
  }
  return quorum_value(reached_);
}

void Core::advance_commit() {
  const Index own = io::defence(io::Defence::ack_before_sync) ? durable_ : log_.last_index();
  const Index index = reached_by_quorum(own, [](const Progress& progress) { return progress.match(); });
  if (index <= commit_) return;
  if (log_.term(index) != hard_state_.term) {
    // An older term's entry on a quorum may still be overwritten; an entry of this term above it settles both.
    SOMETIMES("raft: commit waits for an entry of the leader's own term");
    if (io::defence(io::Defence::commit_older_term)) return;
  }
  commit_to(index);
  must_send_ = true;
  leave_when_removed();
}

bool Core::has_committed_in_term() const { return role_ == Role::leader && commit_ >= term_start_; }

std::int64_t Core::quorum_contact_ns() const {
  // A server not heard yet has the contact of the term's begin, whatever its store turns out to be.
  std::vector<std::int64_t> contacts;
  if (configuration().is_voter(identity_.id)) contacts.push_back(now_ns());
  for (const auto& [id, progress] : progress_) {
    if (!progress.is_voter) continue;
    contacts.push_back(progress.counts() || !progress.store.is_known() ? progress.contact_ns : 0);
  }
  return quorum_value(contacts);
}

// --- reads ---

ReadRefusal Core::read_index(std::uint64_t context) {
  if (role_ != Role::leader) return ReadRefusal{Refusal::not_leader, leader_};
  if (reads_.size() >= settings_.pending_reads_max) return ReadRefusal{Refusal::too_many_reads, leader_};
  reads_.push_back(PendingRead{context, 0, 0});
  must_send_ = true;
  return ReadRefusal{};
}

// Begins one round for all reads that wait for one. Before an entry of this term has committed the commit index may lie
// behind what an earlier leader acknowledged: reads wait for that.
void Core::begin_read_round() {
  if (reads_.empty() || reads_.back().round != 0) return;
  if (!has_committed_in_term()) {
    SOMETIMES("raft: read waits for the leader's first commit");
    return;
  }
  begin_round();
  for (auto read = reads_.rbegin(); read != reads_.rend() && read->round == 0; ++read) {
    read->round = round_;
    read->index = commit_;
  }
  must_broadcast_ = true;
  answer_reads();
}

void Core::answer_reads() {
  const std::uint64_t round = reached_by_quorum(round_, [](const Progress& progress) { return progress.round_acked; });
  std::size_t answered = 0;
  while (answered < reads_.size() && reads_[answered].round != 0 && reads_[answered].round <= round) {
    read_results_.push_back(ReadResult{reads_[answered].context, true, reads_[answered].index});
    ++answered;
  }
  reads_.erase(reads_.begin(), reads_.begin() + static_cast<std::ptrdiff_t>(answered));
}

void Core::fail_reads() {
  if (!reads_.empty()) SOMETIMES("raft: reads failed, leadership lost");
  for (const PendingRead& read : reads_) read_results_.push_back(ReadResult{read.context, false, 0});
  reads_.clear();
}

// --- observers ---

std::vector<ServerProgress> Core::progress() const {
  std::vector<ServerProgress> all;
  for (const auto& [id, progress] : progress_) {
    all.push_back(ServerProgress{id, progress.is_voter, progress.counts(), progress.match(), progress.next(),
                                 progress.state(), progress.snapshot_index(), io::Instant(io::Duration(progress.contact_ns))});
  }
  return all;
}

const Progress* Core::find_progress(const ServerId& id) const {
  const auto at = progress_.find(id);
  return at == progress_.end() ? nullptr : &at->second;
}

}  // namespace raft
