#include "engine/cluster/leader_confirm.h"

#include <utility>

#include "engine/cluster/node_frames.h"
#include "engine/topics/topic_json.h"
#include "io/defence.h"
#include "io/probe.h"

namespace engine::cluster {

Confirmed LeaderConfirm::unknown(std::string_view why, std::string_view name, const raft::LeaderHint& leader, std::string_view error) {
  env_.log.warn("leader confirm: " + std::string(why), {{"topic", name}, {"leader", leader.id}, {"err", error}});
  return Confirmed{};
}

Confirmed LeaderConfirm::read_here(std::string_view name, io::Instant deadline) {
  io::Result<std::shared_ptr<const metastore::Topic>> found = reader_.get_topic(name, deadline);
  if (!found.ok()) {
    return unknown("local topic read failed", name, raft_.leader(), found.error().to_text());
  }
  return *found ? Confirmed{Confirmed::Kind::present, std::move(*found)} : Confirmed{Confirmed::Kind::absent, nullptr};
}

Confirmed LeaderConfirm::behind_barrier(std::string_view name, Confirmed before, io::Instant deadline) {
  if (io::Status reached = replica_.barrier(deadline); !reached.ok()) {
    SOMETIMES("confirm: this node leads and its barrier fails");
    return unknown("barrier failed", name, raft_.leader(), reached.error().to_text());
  }
  if (!io::defence(io::Defence::no_reread_after_barrier)) {
    return before;
  }
  Confirmed after = read_here(name, deadline);
  if (before.kind == Confirmed::Kind::absent && after.kind == Confirmed::Kind::present) {
    SOMETIMES("confirm: a topic reappears when it is read again after the barrier");
  }
  return after;
}

Confirmed LeaderConfirm::ask_leader(std::string_view name, io::Instant deadline) {
  const raft::LeaderHint leader = raft_.leader();
  if (leader.address.empty()) {
    return unknown("leader member unresolvable", name, {raft_.core().leader(), ""}, "no address is known for it");
  }
  const CallResult answer = clients_.call(leader.address, encode(GetTopicRequest{std::string(name)}), deadline);
  if (answer.kind != CallResult::Kind::answered) {
    SOMETIMES("confirm: the leader cannot be asked");
    return unknown("leader unreachable", name, leader, answer.detail);
  }
  if (answer.reply.status == 404) {
    return Confirmed{Confirmed::Kind::absent, nullptr};
  }
  if (answer.reply.status != 200) {
    SOMETIMES("confirm: the leader gives no definite answer");
    env_.log.warn("leader confirm: leader returned non-OK",
                  {{"topic", name}, {"leader", leader.id}, {"status", static_cast<uint64_t>(answer.reply.status)}});
    return Confirmed{};
  }
  std::optional<metastore::Topic> record = topics::parse_topic_json(answer.reply.body);
  if (!record || record->name != name) {
    return unknown("leader response undecodable", name, leader, "not a record of this topic");
  }
  return Confirmed{Confirmed::Kind::present, std::make_shared<const metastore::Topic>(std::move(*record))};
}

// `local` is what this node's replica said before anybody was asked.
Confirmed LeaderConfirm::authority(std::string_view name, Confirmed local, io::Instant deadline) {
  if (raft_.is_leader()) {
    return io::defence(io::Defence::self_leader_skips_barrier) ? behind_barrier(name, std::move(local), deadline) : local;
  }
  if (!raft_.is_running() || raft_.core().leader().empty()) {
    return unknown("no leader known", name, {}, "");
  }
  if (!replica_.is_caught_up()) {
    SOMETIMES("confirm: not asked, this replica is not caught up");
    return Confirmed{};
  }
  return ask_leader(name, deadline);
}

Confirmed LeaderConfirm::topic(std::string_view name) {
  const io::Instant deadline = env_.after(kConfirmTimeout);
  Confirmed local = read_here(name, deadline);
  return local.kind == Confirmed::Kind::unknown ? local : authority(name, std::move(local), deadline);
}

// What the local replica still holds is not lost, and needs no leader.
template <typename Holds>
Verdict LeaderConfirm::judge_loss(std::string_view name, Holds still_holds) {
  const io::Instant deadline = env_.after(kConfirmTimeout);
  const auto holds = [&still_holds](const Confirmed& confirmed) {
    return confirmed.kind == Confirmed::Kind::present && still_holds(*confirmed.topic);
  };
  Confirmed local = read_here(name, deadline);
  if (local.kind == Confirmed::Kind::unknown) {
    return Verdict::unknown;
  }
  if (holds(local)) {
    return Verdict::no;
  }
  const Confirmed confirmed = authority(name, std::move(local), deadline);
  if (confirmed.kind == Confirmed::Kind::unknown) {
    return Verdict::unknown;
  }
  if (holds(confirmed)) {
    SOMETIMES("confirm: the leader still holds what this replica has lost");
    return Verdict::no;
  }
  return Verdict::yes;
}

Verdict LeaderConfirm::is_absent(std::string_view name) {
  return judge_loss(name, [](const metastore::Topic&) { return true; });
}

Verdict LeaderConfirm::is_incarnation_gone(std::string_view name, std::string_view id) {
  return judge_loss(name, [id](const metastore::Topic& topic) { return topic.id == id; });
}

Verdict LeaderConfirm::is_link_dissolved(std::string_view child, std::string_view parent) {
  return judge_loss(child, [parent](const metastore::Topic& topic) {
    return topic.role == metastore::Role::child && topic.parent == parent;
  });
}

// A positive claim: the local replica is no authority for it either.
Verdict LeaderConfirm::is_epoch_live(std::string_view child, std::string_view parent, std::string_view attach_epoch) {
  const Confirmed confirmed = topic(child);
  if (confirmed.kind == Confirmed::Kind::unknown) {
    return Verdict::unknown;
  }
  const bool is_live = confirmed.kind == Confirmed::Kind::present && confirmed.topic->role == metastore::Role::child &&
                       confirmed.topic->parent == parent && confirmed.topic->attach_epoch == attach_epoch;
  return is_live ? Verdict::yes : Verdict::no;
}

}  // namespace engine::cluster
