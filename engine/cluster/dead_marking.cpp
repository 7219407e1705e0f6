#include "engine/cluster/dead_marking.h"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/metastore/commands.h"
#include "io/probe.h"

namespace engine::cluster {

namespace {

using metastore::Member;
using metastore::MemberStatus;

std::string join(const std::vector<std::string>& ids) {
  std::string text;
  for (const std::string& id : ids) {
    text += (text.empty() ? "" : ",") + id;
  }
  return text;
}

}  // namespace

void DeadMarking::observe(raft::Term term, io::Instant now, const std::vector<Member>& members) {
  if (term != term_) {
    stop();
    term_ = term;
  } else if (now - looked_at_ > kWatchGapMax) {
    SOMETIMES("dead marking: a leader that did not watch begins anew");
    seen_.clear();
  }
  looked_at_ = now;
  std::map<std::string, Seen> seen;
  for (const Member& member : members) {
    const auto known = seen_.find(member.id);
    const bool is_unchanged = known != seen_.end() && known->second.stamp == member.last_heartbeat;
    seen.emplace(member.id, is_unchanged ? known->second : Seen{member.last_heartbeat, now});
  }
  seen_ = std::move(seen);
}

bool DeadMarking::is_silent(const Member& member, io::Instant now) const {
  return member.status == MemberStatus::alive && now - seen_.at(member.id).at >= kDeadAfter;
}

DeadPass DeadMarking::judge(raft::Term term, io::Instant now, const std::vector<Member>& members, const std::vector<std::string>& voters,
                            const std::string& self) {
  observe(term, now, members);
  const std::set<std::string> voting(voters.begin(), voters.end());
  std::vector<DeadMark> marks;
  std::vector<std::string> silent_voters;
  std::set<std::string> alive_voters;
  if (voting.contains(self)) {
    alive_voters.insert(self);
  }
  for (const Member& member : members) {
    if (member.id == self) {
      continue;
    }
    if (is_silent(member, now)) {
      marks.push_back({member.id, member.last_heartbeat});
      if (voting.contains(member.id)) {
        silent_voters.push_back(member.id);
      }
    } else if (member.status == MemberStatus::alive && voting.contains(member.id)) {
      alive_voters.insert(member.id);
    }
  }
  std::sort(marks.begin(), marks.end(), [](const DeadMark& one, const DeadMark& other) { return one.id < other.id; });
  std::sort(silent_voters.begin(), silent_voters.end());

  DeadPass pass;
  pass.voters = voting.size();
  pass.quorum = voting.size() / 2 + 1;
  pass.alive_voters_after = alive_voters.size();
  if (!silent_voters.empty() && pass.alive_voters_after < pass.quorum) {
    SOMETIMES("dead marking: the breaker keeps voters from being marked");
    std::erase_if(marks, [&](const DeadMark& mark) { return voting.contains(mark.id); });
    pass.refused = std::move(silent_voters);
  }
  pass.marks = std::move(marks);
  pass.is_first_refusal = refused_ == 0 && !pass.refused.empty();
  pass.is_cleared = refused_ != 0 && pass.refused.empty();
  refused_ = pass.refused.size();
  return pass;
}

bool still_silent(const DeadMark& mark, const std::optional<Member>& record) {
  return record && record->status == MemberStatus::alive && record->last_heartbeat <= mark.last_heartbeat;
}

std::string dead_mark_command(const DeadMark& mark, bool carries_heartbeat) {
  if (carries_heartbeat) {
    return metastore::encode_command(metastore::MarkMemberDeadIf{mark.id, mark.last_heartbeat});
  }
  SOMETIMES("dead marking: the older mark is proposed, not every member applies the newer");
  return metastore::encode_command(metastore::MarkMemberDead{mark.id});
}

void log_dead_pass(io::Log& log, const DeadPass& pass) {
  if (pass.is_first_refusal) {
    log.error(
        "controller: refusing to mark voters dead: the verdict would leave fewer alive voters than a Raft quorum, which a leader holding its "
        "lease rules out; check the cluster RPC plane (port, secret, certificates) into this leader",
        {{"refused", join(pass.refused)},
         {"alive_voters_after", pass.alive_voters_after},
         {"quorum", pass.quorum},
         {"voters", pass.voters}});
  }
  if (pass.is_cleared) {
    log.info("controller: dead-marking breaker cleared");
  }
}

}  // namespace engine::cluster
