#include "engine/cluster/heartbeater.h"

#include <utility>

#include "engine/cluster/older_peers.h"
#include "engine/config.h"
#include "io/probe.h"

namespace engine::cluster {

Heartbeater::Heartbeater(io::Env& env, raft::RaftServer& raft, NodeClientPool& clients, RegisterHere register_here,
                         RegisterMemberRequest self, FrameFields fields)
    : env_(env),
      raft_(raft),
      clients_(clients),
      register_here_(std::move(register_here)),
      self_(std::move(self)),
      fields_(fields) {
  self_.status = "alive";
}

void Heartbeater::run() {
  while (raft_.is_running()) {
    const io::Instant begun = env_.now();
    if (const std::optional<std::string> why = beat()) {
      note_failure(*why);
    } else {
      note_success();
    }
    io::sleep_until(begun + (has_succeeded_ ? kHeartbeatInterval : kFirstHeartbeatInterval));
  }
}

std::optional<std::string> Heartbeater::beat() {
  RegisterMemberRequest request = self_;
  request.last_heartbeat = io::to_unix_seconds(env_.clock.wall());
  NodeReply reply;
  if (raft_.is_leader()) {
    reply = register_here_(fields_.build ? request : older_frame(std::move(request)));
  } else {
    const raft::LeaderHint leader = raft_.leader();
    if (leader.address.empty()) {
      return "no raft leader known";
    }
    const CallResult result = call_any_release(clients_, leader.address, request, fields_, env_.after(kHeartbeatTimeout));
    if (result.kind != CallResult::Kind::answered) {
      return result.detail;
    }
    reply = result.reply;
  }
  if (reply.status == 204) {
    return std::nullopt;
  }
  while (!reply.body.empty() && reply.body.back() == '\n') {
    reply.body.pop_back();
  }
  if (reply.status == 410 && !std::exchange(was_refused_, true)) {
    env_.log.error("member heartbeat refused", {{"member", self_.id}, {"err", reply.body}});
  }
  return std::to_string(reply.status) + " " + reply.body;
}

void Heartbeater::note_success() {
  if (failures_ > 0 && has_succeeded_) {
    env_.log.info("member heartbeat recovered", {{"member", self_.id}, {"failures", failures_}});
  }
  has_succeeded_ = true;
  was_refused_ = false;
  failures_ = 0;
  warned_at_.reset();
  last_success_at_ = io::to_unix_seconds(env_.clock.wall());
}

void Heartbeater::note_failure(const std::string& why) {
  if (failures_++ == 0) {
    failing_since_ = env_.now();
    failing_since_wall_ = env_.clock.wall();
  }
  env_.log.debug("member heartbeat failed", {{"member", self_.id}, {"err", why}});
  const io::Duration failing_for = env_.now() - failing_since_;
  if (failures_ < kHeartbeatFailuresBeforeWarning || failing_for < kHeartbeatFailingBeforeWarning ||
      (warned_at_ && env_.now() - *warned_at_ < kHeartbeatWarningPause)) {
    return;
  }
  warned_at_ = env_.now();
  SOMETIMES("heartbeat: failing for a while");
  env_.log.warn("member heartbeat failing",
                {{"member", self_.id},
                 {"failures", failures_},
                 {"since", io::to_unix_seconds(failing_since_wall_)},
                 {"failing_for", format_duration(std::chrono::floor<std::chrono::milliseconds>(failing_for))},
                 {"err", why}});
}

}  // namespace engine::cluster
