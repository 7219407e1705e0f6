#include "engine/cluster/joiner.h"

#include <algorithm>
#include <utility>

#include "engine/cluster/join_rules.h"
#include "engine/cluster/older_peers.h"
#include "io/probe.h"

namespace engine::cluster {

namespace {

// How often it is looked at whether there is anything to ask for.
constexpr io::Duration kLook = std::chrono::milliseconds(250);

constexpr io::Duration kProbeRetry = std::chrono::milliseconds(100);

std::string without_newline(std::string text) {
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return text;
}

bool is_older_release(const NodeReply& reply) {
  return reply.status == 409 && reply.body.find("\"older_release\"") != std::string::npos;
}

std::string in_seconds(io::Duration duration) { return std::to_string(duration / std::chrono::seconds(1)) + "s"; }

}  // namespace

// ---- The probe ---------------------------------------------------------------------------------------------------------------

bool probe_for_cluster(io::Env& env, NodeClientPool& clients, const JoinerSettings& settings) {
  const JoinClusterRequest request{settings.id, settings.cluster_addr, true, settings.entry_types};
  for (int round = 0; round < kProbeRounds; ++round) {
    if (round > 0) {
      io::sleep_for(kProbePause);
    }
    size_t without_configuration = 0;
    bool has_cluster = false;
    io::with_scope([&](io::Scope& scope) {
      for (const std::string& peer : settings.peers) {
        scope.spawn("join/probe", [&env, &clients, &settings, &request, &peer, &without_configuration, &has_cluster] {
          const io::Instant deadline = env.after(kProbeTimeout);
          CallResult result = call_any_release(clients, peer, request, settings.fields, deadline);
          // A peer that was asked and went away has just ended its own probe: it is about to answer as one that has started.
          while (result.kind == CallResult::Kind::unknown && !result.timed_out && env.now() + kProbeRetry < deadline) {
            io::sleep_for(kProbeRetry);
            result = call_any_release(clients, peer, request, settings.fields, deadline);
          }
          if (result.kind == CallResult::Kind::answered) {
            has_cluster = has_cluster || shows_a_cluster(result.reply);
            without_configuration += result.reply.status == 412 ? 1 : 0;
          }
        });
      }
    });
    if (has_cluster) {
      SOMETIMES("join: the probe of an empty volume finds a cluster");
      return true;
    }
    if (without_configuration == settings.peers.size()) {
      SOMETIMES("join: the probe ends, every peer is as empty");
      return false;
    }
  }
  SOMETIMES("join: the probe ends without an answer of everybody");
  return false;
}

// ---- The walk ----------------------------------------------------------------------------------------------------------------

JoinWalk::JoinWalk(std::string own, std::string leader, const std::vector<std::string>& peers, const std::deque<std::string>& learned)
    : own_(std::move(own)) {
  ahead_.push_back(std::move(leader));
  ahead_.insert(ahead_.end(), peers.begin(), peers.end());
  ahead_.insert(ahead_.end(), learned.begin(), learned.end());
}

std::optional<std::string> JoinWalk::next() {
  while (!ahead_.empty()) {
    std::string address = std::move(ahead_.front());
    ahead_.pop_front();
    if (address.empty() || address == own_ || std::find(asked_.begin(), asked_.end(), address) != asked_.end()) {
      continue;
    }
    asked_.push_back(address);
    return address;
  }
  return std::nullopt;
}

bool JoinWalk::follow_hint(const std::string& address) {
  const bool is_new = !address.empty() && address != own_ && std::find(asked_.begin(), asked_.end(), address) == asked_.end();
  if (!is_new || hints_ == kHintsPerAttempt) {
    return false;
  }
  ++hints_;
  ahead_.push_front(address);
  return true;
}

// ---- The joiner --------------------------------------------------------------------------------------------------------------

Joiner::Joiner(io::Env& env, raft::RaftServer& raft, const metastore::Replica& replica, NodeClientPool& clients,
               JoinerSettings settings)
    : env_(env),
      raft_(raft),
      replica_(replica),
      clients_(clients),
      settings_(std::move(settings)),
      was_empty_(raft.core().last_index() == 0),
      leader_seen_at_(env.now()) {}

void Joiner::run() {
  if (settings_.peers.empty()) {
    return;
  }
  while (raft_.is_running()) {
    note_leader();
    const Duty due = duty();
    if (due == Duty::none) {
      io::sleep_for(kLook);
      continue;
    }
    const io::Instant next = env_.after(kJoinInterval);
    if (due == Duty::join) {
      attempt();
    } else {
      ask_for_promotion();
    }
    while (env_.now() < next && raft_.is_running()) {
      io::sleep_for(kLook);
      note_leader();
    }
  }
}

// Keeps track of leaders, of the loop's end, and of the promotion.
void Joiner::note_leader() {
  if (!raft_.is_running()) {
    return;
  }
  was_admitted_ = was_admitted_ || raft_.is_admitted();
  const raft::LeaderHint leader = raft_.leader();
  if (!leader.address.empty()) {
    has_seen_leader_ = true;
    leader_seen_at_ = env_.now();
    if (is_loop_running_ && !raft_.is_known_with_another_store()) {
      is_loop_running_ = false;
      if (attempts_ > 0) {
        env_.log.info("cluster join: admitted", {{"node", settings_.id}, {"leader", leader.id}, {"attempts", attempts_}});
      }
      attempts_ = 0;
    }
  }
  if (!raft_.is_admitted()) {
    is_staged_ = false;
  } else if (!raft_.core().configuration().is_voter(settings_.id)) {
    is_staged_ = true;
  } else if (std::exchange(is_staged_, false)) {
    SOMETIMES("join: this node has become a voter");
    env_.log.info("cluster join: promoted to raft voter", {{"node", settings_.id}});
    last_deferral_.clear();
  }
}

Joiner::Duty Joiner::duty() const {
  if (!raft_.is_running()) {
    return Duty::none;
  }
  if (raft_.is_known_with_another_store()) {
    return Duty::join;
  }
  if (raft_.leader().address.empty()) {
    const bool is_new = settings_.is_joining && !has_seen_leader_;
    return is_new || is_loop_running_ || env_.now() - leader_seen_at_ >= kLeaderlessBeforeJoin ? Duty::join : Duty::none;
  }
  if (!raft_.is_admitted()) {
    return Duty::none;
  }
  const raft::Server* self = raft_.core().configuration().find(settings_.id);
  if (self == nullptr) {
    return Duty::none;  // it holds the cluster's log, and does not know who belongs to it (RaftServer::is_admitted)
  }
  if (self->address != settings_.cluster_addr && replica_.is_caught_up()) {
    SOMETIMES("join: this node is on record at another address");
    return Duty::join;
  }
  return !self->voter && replica_.is_caught_up() ? Duty::promotion : Duty::none;
}

bool Joiner::is_fresh() const {
  return (was_empty_ && !was_admitted_ && !raft_.is_admitted()) || raft_.is_known_with_another_store();
}

JoinClusterRequest Joiner::request() const { return {settings_.id, settings_.cluster_addr, is_fresh(), settings_.entry_types}; }

void Joiner::attempt() {
  if (!is_loop_running_) {
    is_loop_running_ = true;
    const io::Duration leaderless = env_.now() - leader_seen_at_;
    if (leaderless >= kLeaderlessBeforeJoin) {
      const bool is_non_voter = raft_.is_admitted() && !raft_.core().configuration().is_voter(settings_.id);
      SOMETIMES("join: no leader for a while, asked again");
      env_.log.warn(is_non_voter ? "raft non-voter has had no leader for a while; running the cluster join loop"
                                 : "no raft leader for a while; running the cluster join loop",
                    {{"node", settings_.id}, {"leaderless_for", in_seconds(leaderless)}});
    }
  }
  ++attempts_;
  JoinWalk walk(settings_.cluster_addr, raft_.leader().address, settings_.peers, learned_);
  while (const std::optional<std::string> address = walk.next()) {
    const CallResult result = call_any_release(clients_, *address, request(), settings_.fields, env_.after(kJoinCallTimeout));
    if (!raft_.is_running()) {
      return;
    }
    if (result.kind != CallResult::Kind::answered) {
      env_.log.debug("cluster join attempt failed", {{"addr", *address}, {"err", result.detail}});
      continue;
    }
    switch (result.reply.status) {
      case 412:
        continue;
      case 421: {
        const std::string hint = parse_leader_hint(result.reply.body);
        if (walk.follow_hint(hint)) {
          SOMETIMES("join: a hint leads to the leader");
        }
        learn(hint);
        continue;
      }
      case 200:
        note_admitted(*address, result.reply);
        return;
      default:
        note_refused(*address, result.reply);
        return;
    }
  }
}

void Joiner::learn(const std::string& address) {
  if (address.empty()) {
    return;
  }
  std::erase(learned_, address);
  learned_.push_front(address);
  if (learned_.size() > kLearnedMax) {
    learned_.pop_back();
  }
}

void Joiner::note_admitted(const std::string& via, const NodeReply& reply) {
  const JoinAnswer answer = parse_join_answer(reply.body);
  was_admitted_ = true;
  last_refusal_.clear();
  if (std::exchange(last_outcome_, answer.status) != answer.status) {
    env_.log.info("cluster join: leader accepted", {{"node", settings_.id}, {"via", via}, {"outcome", answer.status}});
  }
}

void Joiner::note_refused(const std::string& via, const NodeReply& reply) {
  const std::string body = without_newline(reply.body);
  const bool is_older = is_older_release(reply);
  const std::string refusal = std::to_string(reply.status) + (is_older ? " older_release" : "");
  if (refusal == last_refusal_) {
    return;
  }
  last_refusal_ = refusal;
  if (is_older) {
    env_.log.error("cluster join refused: this node runs an older release than every member",
                   {{"via", via}, {"entry_types", settings_.entry_types}, {"body", body}});
  } else if (reply.status == 409) {
    env_.log.warn("cluster join refused: this node was decommissioned and removed; it will not rejoin with its old data directory. "
                  "Scale it away, or delete its volume to rejoin as a new node",
                  {{"node", settings_.id}, {"via", via}, {"body", body}});
  } else {
    env_.log.warn("cluster join rejected", {{"via", via}, {"status", reply.status}});
  }
}

void Joiner::ask_for_promotion() {
  const std::string leader = raft_.leader().address;
  const CallResult result = call_any_release(clients_, leader, request(), settings_.fields, env_.after(kJoinCallTimeout));
  if (result.kind != CallResult::Kind::answered) {
    env_.log.debug("cluster join attempt failed", {{"addr", leader}, {"err", result.detail}});
    return;
  }
  if (result.reply.status != 200) {
    env_.log.debug("cluster join: promotion request not accepted",
                   {{"node", settings_.id}, {"via", leader}, {"status", result.reply.status}});
    return;
  }
  note_deferred(result.reply);
}

void Joiner::note_deferred(const NodeReply& reply) {
  const JoinAnswer answer = parse_join_answer(reply.body);
  if (answer.status != "deferred" || answer.reason == last_deferral_) {
    return;
  }
  last_deferral_ = answer.reason;
  env_.log.info("cluster join: caught up as a raft non-voter; the leader defers promotion",
                {{"node", settings_.id}, {"reason", answer.reason}});
}

}  // namespace engine::cluster
