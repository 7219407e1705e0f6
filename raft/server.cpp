#include "raft/server.h"

#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/probe.h"

namespace raft {

namespace {

// "a voter 10.0.0.1:7943, b non-voter 10.0.0.2:7943"
std::string describe(const Configuration& configuration) {
  std::string text;
  for (const Server& server : configuration.servers) {
    if (!text.empty()) text += ", ";
    text += server.id + (server.voter ? " voter " : " non-voter ") + server.address;
  }
  return text;
}

}  // namespace

const char* to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::ok: return "ok";
    case Outcome::not_leader: return "not the leader";
    case Outcome::refused: return "refused";
    case Outcome::too_large: return "too large";
    case Outcome::unknown: return "outcome unknown";
    case Outcome::superseded: return "superseded";
    case Outcome::stopped: return "stopped";
  }
  return "unknown";
}

RaftServer::RaftServer(io::Env& env, ServerOptions options, Observer* observer)
    : env_(env), options_(std::move(options)), observer_(observer) {
  NARAD_CHECK(!options_.id.empty() && options_.id.size() <= wire::kServerIdBytesMax, "a server has a name of 1 to 255 bytes");
  NARAD_CHECK(!options_.address.empty() && options_.address.size() <= wire::kAddressBytesMax, "a server has an address");
}

RaftServer::~RaftServer() = default;

// ---- Into the core -------------------------------------------------------------------------------------------------------------

void RaftServer::step(Message&& message) {
  ++counters_.messages_received;
  if (observer_ == nullptr) {
    core_->step(std::move(message), env_.now());
  } else {
    const Message taken = message;
    core_->step(std::move(message), env_.now());
    observer_->message_taken(*core_, taken);
  }
  wake();
}

void RaftServer::wake() {
  if (has_inputs_) return;
  has_inputs_ = true;
  inputs_.notify_one();
}

// ---- Out of the core -----------------------------------------------------------------------------------------------------------

// Does what the core asks for now. Never waits: disk and state machine have fibers of their own.
void RaftServer::drive() {
  has_inputs_ = false;
  if (is_stopping_) return;
  if (observer_ != nullptr) observer_->core_changed(*core_);
  while (core_->has_ready()) {
    core_->ready(ready_);
    if (observer_ != nullptr) observer_->ready_taken(*core_, ready_);
    follow_configuration();
    note_role_changes();
    // In this order: the store lane and the disk work while this thread writes messages.
    take_for_apply();
    take_for_disk();
    send_all(ready_.messages);
    take_reads();
    note_transfers();
    note_refused_votes();
    note_refused_messages();
    take_for_others();
  }
  // Recorded once it is known, so that later lives refuse another cluster's messages from their first moment.
  if (core_->cluster().is_known() && !is_cluster_recorded_) {
    is_cluster_recorded_ = true;
    state_machine_->joined_cluster(core_->cluster());
    if (!pending_.hard_state) pending_.hard_state = core_->hard_state();
    if (!is_persisting_) pending_added_.notify_one();
  }
  // The core's fiber may sleep towards a later deadline than the one that holds now.
  if (next_due() < sleeps_until_) inputs_.notify_one();
}

io::Instant RaftServer::next_due() const { return std::min(core_->next_deadline(), give_up_at_); }

void RaftServer::send_all(std::vector<Message>& messages) {
  for (Message& message : messages) {
    if (observer_ != nullptr) observer_->message_sent(*core_, message);
    const auto at = links_.find(message.to);
    if (at == links_.end()) {
      ++counters_.messages_dropped;
    } else if (at->second.link->send(std::move(message))) {
      ++counters_.messages_sent;  // or dropped later, with its connection
    }
  }
  messages.clear();
}

// Joins what this Ready hands out for the disk to what has not been written yet.
void RaftServer::take_for_disk() {
  if (ready_.hard_state) pending_.hard_state = std::move(ready_.hard_state);
  if (ready_.log_reset) {
    pending_.log_reset = ready_.log_reset;
    pending_.entries.clear();  // they came before it
  }
  if (!ready_.entries.empty()) {
    std::vector<Entry>& entries = pending_.entries;
    const Index first = ready_.entries.front().index;
    while (!entries.empty() && entries.back().index >= first) entries.pop_back();
    NARAD_CHECK(entries.empty() || entries.back().index + 1 == first, "what is handed out for the disk has no hole");
    if (entries.empty()) {
      entries.swap(ready_.entries);
    } else {
      entries.insert(entries.end(), std::make_move_iterator(ready_.entries.begin()),
                     std::make_move_iterator(ready_.entries.end()));
    }
    pending_.append_term = ready_.append_term;
  }
  if (!ready_.messages_after_persist.empty()) {
    if (pending_.is_empty() && !is_persisting_) {
      send_all(ready_.messages_after_persist);
    } else {
      pending_.messages.insert(pending_.messages.end(), std::make_move_iterator(ready_.messages_after_persist.begin()),
                               std::make_move_iterator(ready_.messages_after_persist.end()));
      drop_oldest_waiting();
    }
  }
  if (!pending_.is_empty() && !is_persisting_) pending_added_.notify_one();
}

// While the disk is full or hangs answers gather without end. Any message may be lost, and the newest tell most.
void RaftServer::drop_oldest_waiting() {
  std::vector<Message>& waiting = pending_.messages;
  if (waiting.size() <= kMessagesBehindDiskMax) return;
  SOMETIMES("raft: messages that wait for the disk are dropped");
  const auto excess = static_cast<std::ptrdiff_t>(waiting.size() - kMessagesBehindDiskMax);
  counters_.messages_dropped += static_cast<std::uint64_t>(excess);
  waiting.erase(waiting.begin(), waiting.begin() + excess);
}

void RaftServer::take_for_apply() {
  if (ready_.install) {
    NARAD_CHECK(ready_.committed.empty() && to_apply_.empty(), "an image is installed alone");
    to_install_ = std::move(ready_.install);
    to_apply_added_.notify_one();
  }
  if (ready_.committed.empty()) return;
  if (to_apply_.empty()) {
    to_apply_.swap(ready_.committed);
    to_apply_added_.notify_one();
  } else {
    to_apply_.insert(to_apply_.end(), std::make_move_iterator(ready_.committed.begin()),
                     std::make_move_iterator(ready_.committed.end()));
  }
}

void RaftServer::take_reads() {
  for (const ReadResult& read : ready_.reads) {
    const auto at = barriers_.find(read.context);
    if (at == barriers_.end()) continue;  // gave up
    BarrierWait& wait = *at->second;
    wait.is_answered = true;
    wait.is_confirmed = read.confirmed;
    wait.index = read.index;
    wait.done.set();
  }
}

void RaftServer::note_role_changes() {
  for (const RoleChange& change : ready_.role_changes) {
    env_.log.info("raft: role changed", {{"role", to_string(change.role)},
                                         {"term", change.term},
                                         {"leader", change.leader},
                                         {"last_index", core_->last_index()},
                                         {"commit_index", core_->commit_index()},
                                         {"reason", change.reason}});
    if (!change.leader.empty()) ++counters_.leader_changes;
    const bool leads = change.role == Role::leader;
    if (leads) {
      led_term_ = change.term;
      leads_since_ = env_.now();
    }
    if (change.role == Role::candidate) ++counters_.elections;
    if (is_leading_ && !leads && !proposals_.empty()) {
      SOMETIMES("raft: leadership lost with proposals in flight");
      give_up_at_ = env_.after(options_.lost_leadership_grace);
    }
    is_leading_ = leads;
  }
  if (!ready_.role_changes.empty()) leadership_moved_.notify_all();
}

void RaftServer::note_transfers() {
  for (const TransferEnd& end : ready_.transfers) {
    const bool is_over = end.outcome == TransferEnd::Outcome::handed_over;
    (is_over ? counters_.transfers_made : counters_.transfers_failed) += 1;
    env_.log.info("raft: hand-over ended", {{"to", end.to}, {"term", end.term}, {"outcome", to_string(end.outcome)}});
  }
  if (!ready_.transfers.empty()) leadership_moved_.notify_all();
}

void RaftServer::note_refused_votes() {
  for (const VoteRefusal& refusal : ready_.vote_refusals) {
    ++counters_.votes_refused;
    const auto left_out = vote_lines_.admit(refusal.candidate + '\n' + refusal.reason, env_.now());
    if (!left_out) continue;
    env_.log.info("raft: vote refused", {{"candidate", refusal.candidate},
                                         {"term", refusal.term},
                                         {"is_pre_vote", refusal.is_pre_vote},
                                         {"reason", refusal.reason},
                                         {"refused_since_last_line", *left_out}});
  }
}

void RaftServer::note_refused_messages() {
  for (const MessageRefusal& refusal : ready_.message_refusals) {
    ++counters_.messages_refused;
    const auto left_out = message_lines_.admit(refusal.from + '\n' + refusal.reason, env_.now());
    if (!left_out) continue;
    env_.log.error("raft: message refused, no server of a sound cluster sends it", {{"server", refusal.from},
                                                                                    {"its_term", refusal.term},
                                                                                    {"term", core_->term()},
                                                                                    {"reason", refusal.reason},
                                                                                    {"refused_since_last_line", *left_out}});
  }
}

void RaftServer::follow_configuration() {
  if (scope_ == nullptr) return;
  const Index index = core_->configurations().current_index();
  const std::uint64_t truncations = core_->log().truncations();
  const bool is_new = !has_followed_ || index != followed_index_ || truncations != followed_truncations_;
  if (!is_new) return;
  has_followed_ = true;
  followed_index_ = index;
  followed_truncations_ = truncations;
  const Configuration& configuration = core_->configuration();
  env_.log.info("raft: configuration in force", {{"index", index},
                                                 {"servers", describe(configuration)},
                                                 {"is_voter", configuration.is_voter(options_.id)}});
  for (const Server& server : configuration.servers) {
    if (server.id != options_.id) link_to(server.id, server.address);
  }
  retire_links();
  leadership_moved_.notify_all();  // an address may have become known
}

void RaftServer::link_to(const ServerId& id, const std::string& address) {
  if (scope_ == nullptr) return;
  Link& link = links_[id];
  if (link.link) {
    link.link->set_address(address);
    return;
  }
  wire::Hello self;
  self.from = options_.id;
  self.store = core_->store();
  self.session = session_;
  self.address = options_.address;
  link.link = std::make_unique<PeerLink>(env_, options_.link, std::move(self), core_->cluster(), id, address,
                                         counters_.messages_dropped);
  link.task = scope_->spawn("raft/link/" + id, [raw = link.link.get()] { raw->run(); });
}

void RaftServer::retire_links() {
  const Configuration& configuration = core_->configuration();
  for (auto at = links_.begin(); at != links_.end();) {
    if (configuration.find(at->first) != nullptr || incoming_.contains(at->first)) {
      ++at;
      continue;
    }
    at->second.task.cancel();
    retired_links_.push_back(std::move(at->second));
    at = links_.erase(at);
  }
  std::erase_if(retired_links_, [](const Link& link) { return link.task.done(); });
}

// ---- Ending --------------------------------------------------------------------------------------------------------------------

void RaftServer::fail(io::Error error) {
  if (is_stopping_) return;
  env_.log.error("raft: this server stops, it cannot go on safely", {{"reason", error.to_text()}});
  failure_ = std::move(error);
  stop();
}

void RaftServer::stop() {
  if (is_stopping_) return;
  is_stopping_ = true;
  proposals_.end_all(ProposalWait::End::stopped);
  for (auto& [context, wait] : barriers_) {
    wait->is_listed = false;
    wait->done.set();
  }
  barriers_.clear();
  for (auto& [index, wait] : applied_waits_) {
    wait->is_listed = false;
    wait->done.set();
  }
  applied_waits_.clear();
  for (auto& [id, incoming] : incoming_) incoming.stream->close();
  if (snapshot_stream_ != nullptr) snapshot_stream_->close();
  inputs_.notify_all();
  pending_added_.notify_all();
  segment_wanted_.notify_all();
  snapshot_wake_.notify_all();
  hard_state_saved_.notify_all();
  to_apply_added_.notify_all();
  leadership_moved_.notify_all();
  stopped_.set();
}

}  // namespace raft
