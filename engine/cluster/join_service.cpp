#include "engine/cluster/join_service.h"

#include <algorithm>
#include <utility>

#include "engine/metastore/answer.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/records_reader.h"
#include "io/probe.h"

namespace engine::cluster {

namespace {

using Outcome = JoinDecision::Outcome;
using Kind = raft::ConfigurationChange::Kind;

constexpr io::Duration kLookTimeout = std::chrono::seconds(5);

uint32_t types_of(const metastore::Member& member) {
  return member.entry_types == 0 ? metastore::kEveryReleaseEntryType : member.entry_types;
}

bool is_answered_as_it_stands(Outcome outcome) {
  switch (outcome) {
    case Outcome::malformed:
    case Outcome::incomplete:
    case Outcome::unavailable:
    case Outcome::no_configuration:
    case Outcome::not_leader:
    case Outcome::older_release:
    case Outcome::removed:
    case Outcome::deferred:
    case Outcome::is_voter:
      return true;
    case Outcome::readmit:
    case Outcome::add:
    case Outcome::replace:
    case Outcome::move_voter:
    case Outcome::move_non_voter:
    case Outcome::promote:
      return false;
  }
  return true;
}

}  // namespace

NodeReply JoinService::answer(std::string_view payload) {
  const io::Result<JoinClusterRequest> request = decode_join_cluster(payload);
  const JoinFacts facts = look(request);
  const JoinDecision decision = decide_join(request, facts);
  if (decision.outcome == Outcome::older_release) {
    log_older(*request, decision, facts);
  } else if (decision.outcome == Outcome::deferred) {
    env_.log.debug("cluster join: promotion deferred", {{"id", request->id}, {"reason", decision.reason}});
  }
  return is_answered_as_it_stands(decision.outcome) ? decision.reply : decide_and_carry_out(*request);
}

// ---- Facts -------------------------------------------------------------------------------------------------------------------

JoinFacts JoinService::look(const io::Result<JoinClusterRequest>& request) {
  JoinFacts facts;
  facts.is_running = raft_.is_running();
  if (!facts.is_running) {
    return facts;
  }
  const std::string id = request.ok() ? request->id : std::string();
  facts.is_leader = raft_.is_leader();
  if (facts.is_leader && !id.empty()) {
    read_records(id, facts);  // waits
  }
  facts.is_running = raft_.is_running();
  if (!facts.is_running) {
    return facts;
  }
  // From here on nothing waits: raft's part of the facts is of one moment.
  facts.has_configuration = !raft_.core().configuration().servers.empty();
  facts.is_leader = facts.is_leader && raft_.is_leader();
  const raft::LeaderHint leader = raft_.leader();
  facts.leader_id = leader.id;
  facts.leader_addr = leader.address;
  if (facts.is_leader) {
    look_at_server(id, facts);
  }
  return facts;
}

void JoinService::read_records(const std::string& id, JoinFacts& facts) {
  const io::Instant deadline = env_.after(kLookTimeout);
  if (io::Status reached = replica_.barrier(deadline); !reached.ok()) {
    facts.members_error = reached.error().to_text();
    return;
  }
  const io::Result<std::vector<metastore::Member>> members = metastore::list_members(fsm_, deadline);
  const io::Result<std::optional<metastore::Tombstone>> tombstone = metastore::get_tombstone(fsm_, id, deadline);
  if (!members.ok() || !tombstone.ok()) {
    facts.members_error = members.ok() ? tombstone.error().to_text() : members.error().to_text();
    return;
  }
  const std::string& own_id = raft_.core().id();
  facts.member_types_min = own_types_;
  for (const metastore::Member& member : *members) {
    if (member.id == id) {
      facts.record = JoinFacts::Record{member.status == metastore::MemberStatus::alive, member.draining};
    } else if (member.id != own_id) {
      facts.member_types_min = std::min(facts.member_types_min, types_of(member));
    }
  }
  facts.types_used = fsm_.state().newest_type;
  facts.is_tombstoned = tombstone->has_value();
}

void JoinService::look_at_server(const std::string& id, JoinFacts& facts) const {
  facts.is_self = id == raft_.core().id();
  facts.led_for = raft_.led_for();
  const raft::Server* server = raft_.core().configuration().find(id);
  if (server == nullptr) {
    return;
  }
  facts.server = JoinFacts::Server{server->address, server->voter, false};
  const raft::Progress* progress = raft_.core().find_progress(id);
  if (progress == nullptr) {
    return;
  }
  facts.server->is_other_store =
      progress->recorded.is_known() && progress->store.is_known() && !(progress->recorded == progress->store);
  const bool was_ever_heard = progress->session != 0;
  if (was_ever_heard) {
    facts.heartbeat_answered_ago = env_.now() - io::Instant(io::Duration(progress->contact_ns));
  }
  // Heartbeats go out all the time: while none is answered within an election timeout, the last one has just failed.
  if (!was_ever_heard || *facts.heartbeat_answered_ago > raft_.core().settings().election_timeout_max) {
    facts.heartbeat_failed_ago = io::Duration(0);
  }
}

// ---- Carrying out ------------------------------------------------------------------------------------------------------------

// Held from construction to destruction, unless its time passed first.
class JoinService::AdmissionTurn {
 public:
  AdmissionTurn(JoinService& service, io::Instant deadline) : service_(service) {
    while (service_.is_admitting_) {
      SOMETIMES("join: an admission waits for another");
      if (!service_.admitted_.wait(deadline) && service_.is_admitting_) return;
    }
    is_held_ = service_.is_admitting_ = true;
  }
  ~AdmissionTurn() {
    if (is_held_) {
      service_.is_admitting_ = false;
      service_.admitted_.notify_one();
    }
  }
  AdmissionTurn(const AdmissionTurn&) = delete;
  AdmissionTurn& operator=(const AdmissionTurn&) = delete;
  bool is_held() const { return is_held_; }

 private:
  JoinService& service_;
  bool is_held_ = false;
};

NodeReply JoinService::decide_and_carry_out(const JoinClusterRequest& request) {
  const AdmissionTurn turn(*this, env_.after(kAdmissionWait));
  if (!turn.is_held()) {
    SOMETIMES("join: an admission gives up its turn");
    return error_reply(503, kAdmissionFailed);
  }
  JoinDecision decision = decide_join(request, look(request));
  if (decision.outcome == Outcome::readmit) {
    if (!readmit(request)) {
      return decision.reply;
    }
    decision = decide_join(request, look(request));
  }
  if (is_answered_as_it_stands(decision.outcome) || decision.outcome == Outcome::readmit) {
    return decision.reply;
  }
  return carry_out(request, decision);
}

bool JoinService::readmit(const JoinClusterRequest& request) {
  env_.log.info("cluster join: readmitting a previously decommissioned id with a fresh data directory", {{"id", request.id}});
  const metastore::ReadmitMember command{request.id, io::to_unix_seconds(env_.clock.wall())};
  const Proposed proposed = proposer_.propose(metastore::encode_command(command), env_.after(kConfigurationTimeout));
  const std::optional<metastore::Answer> answer = metastore::decode_answer(proposed.answer);
  if (proposed.outcome == Proposed::Outcome::applied && answer && answer->ok()) {
    SOMETIMES("join: a removed member with an empty volume is readmitted");
    return true;
  }
  env_.log.error("join cluster: readmit member", {{"id", request.id}, {"err", proposed.reason}});
  return false;
}

raft::Proposed JoinService::change(Kind kind, const JoinClusterRequest& request) {
  const bool has_address = kind == Kind::add || kind == Kind::change_address;
  return raft_.change_configuration({kind, request.id, has_address ? request.cluster_addr : std::string(), {}},
                                    env_.after(kConfigurationTimeout));
}

NodeReply JoinService::carry_out(const JoinClusterRequest& request, const JoinDecision& decision) {
  raft::Proposed changed;
  switch (decision.outcome) {
    case Outcome::add:
      changed = change(Kind::add, request);
      break;
    case Outcome::replace:
      SOMETIMES("join: a known server with another volume is taken out and staged");
      changed = change(Kind::remove, request);
      if (changed.ok()) {
        changed = change(Kind::add, request);
      }
      break;
    case Outcome::move_voter:
    case Outcome::move_non_voter:
      SOMETIMES("join: a server has moved");
      changed = change(Kind::change_address, request);
      break;
    case Outcome::promote:
      changed = change(Kind::promote, request);
      break;
    default:
      return decision.reply;
  }
  if (!changed.ok() && changed.refusal != raft::Refusal::already_so) {
    return change_failed(request, decision, changed);
  }
  log_admitted(request, decision.outcome);
  return decision.reply;
}

NodeReply JoinService::change_failed(const JoinClusterRequest& request, const JoinDecision& decision, const raft::Proposed& changed) {
  if (decision.outcome == Outcome::promote && changed.refusal == raft::Refusal::not_caught_up) {
    // Raft's own measure of what the joiner says of itself.
    SOMETIMES("join: promotion deferred, raft does not find it caught up");
    return deferred_reply(kNotCaughtUpReason);
  }
  SOMETIMES("join: an admission fails");
  env_.log.error("join cluster: admission failed",
                 {{"id", request.id}, {"cluster_addr", request.cluster_addr}, {"err", changed.reason}});
  return error_reply(503, kAdmissionFailed);
}

// ---- Log lines ---------------------------------------------------------------------------------------------------------------

void JoinService::log_older(const JoinClusterRequest& request, const JoinDecision& decision, const JoinFacts& facts) {
  if (!older_lines_.admit(request.id, env_.now())) {
    return;
  }
  env_.log.error("cluster join refused: the joiner runs an older release than the cluster",
                 {{"id", request.id},
                  {"joiner_entry_types", decision.joiner_types},
                  {"member_entry_types_min", facts.member_types_min},
                  {"cluster_entry_type_used", facts.types_used}});
}

void JoinService::log_admitted(const JoinClusterRequest& request, Outcome outcome) {
  if (outcome == Outcome::add || outcome == Outcome::replace) {
    SOMETIMES("join: a server is staged");
    env_.log.info("cluster join: admitted as a raft non-voter; promoted to voter when it asks again, caught up",
                  {{"id", request.id}, {"cluster_addr", request.cluster_addr}});
  } else if (outcome == Outcome::promote) {
    SOMETIMES("join: a non-voter is promoted");
    env_.log.info("cluster join: promoted a non-voter to voter", {{"id", request.id}, {"cluster_addr", request.cluster_addr}});
  }
}

}  // namespace engine::cluster
