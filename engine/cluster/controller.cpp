#include "engine/cluster/controller.h"

#include <algorithm>
#include <utility>

#include "engine/metastore/records_reader.h"
#include "io/probe.h"

namespace engine::cluster {

using metastore::EntryType;
using metastore::Member;
using metastore::MemberStatus;

namespace {

// Bound of one planning pass: several writes, each with its own.
constexpr io::Duration kPassTimeout = std::chrono::seconds(30);

std::vector<std::string> alive_of(const std::vector<Member>& members) {
  std::vector<std::string> ids;
  for (const Member& member : members) {
    if (member.status == MemberStatus::alive) {
      ids.push_back(member.id);
    }
  }
  return ids;
}

}  // namespace

Controller::Controller(Parts parts)
    : parts_(std::move(parts)),
      assigner_({parts_.env, parts_.reader, parts_.proposer, parts_.gate, [this] { return parts_.servers.voters(); }}),
      moves_({parts_.env, parts_.reader, parts_.proposer, assigner_, parts_.servers}),
      decommission_({parts_.env, parts_.reader, parts_.proposer, assigner_, parts_.servers, parts_.ask_backlog}) {}

// ---- Terms -----------------------------------------------------------------------------------------------------------------

void Controller::run() {
  for (;;) {
    if (parts_.proposer.is_leader()) {
      const raft::Term term = parts_.proposer.term();
      io::with_scope([&](io::Scope& scope) {
        scope.spawn("controller", [&] { lead(term); });
        while (leads_in(parts_.proposer, term)) {
          io::sleep_for(kLeadershipPoll);
        }
        scope.cancel();
      });
      stop_leading();
    } else {
      io::sleep_for(kLeadershipPoll);
    }
  }
}

void Controller::stop_leading() {
  acting_term_ = 0;
  marking_.stop();
  moves_.stop_leading();
  decommission_.stop_leading();
  arrivals_ = {};
  assigned_.reset();
  rebalanced_.reset();
  pruned_.reset();
}

bool Controller::take_over(raft::Term term) {
  while (leads_in(parts_.proposer, term)) {
    if (parts_.proposer.barrier(parts_.env.after(kControllerBarrierTimeout)).ok()) {
      return true;
    }
    SOMETIMES("controller: a new leader's first barrier is tried again");
    io::sleep_for(kTakeoverRetry);
  }
  return false;
}

void Controller::lead(raft::Term term) {
  if (!take_over(term)) {
    return;
  }
  acting_term_ = term;
  parts_.env.log.info("controller: leadership gained; members are marked dead after that much silence, counted from now",
                      {{"term", term}, {"dead_timeout", std::to_string(kDeadAfter / std::chrono::seconds(1)) + "s"}});
  io::with_scope([&](io::Scope& scope) {
    scope.spawn("controller/watch", [&] { watch_loop(term); });
    tick_loop(term);
  });
}

// ---- The tick --------------------------------------------------------------------------------------------------------------

void Controller::tick_loop(raft::Term term) {
  io::Instant next = parts_.env.now();
  for (uint64_t number = 0;; ++number) {
    tick(term, number);
    next = std::max(next + kControllerTick, parts_.env.now());
    io::sleep_until(next);
  }
}

void Controller::tick(raft::Term term, uint64_t number) {
  if (number % kPruneEveryTicks == 0) {
    prune(term);
  }
  // While members arrive the watch decides when: what is placed on the first of them would have to move to the others.
  if (!arrivals_.latest) {
    assign(term);
  }
  mark_dead(term);
  if (!arrivals_.latest) {
    rebalance(term);
  }
  decommission(term);
}

// ---- The membership watch --------------------------------------------------------------------------------------------------

void Controller::watch_loop(raft::Term term) {
  for (;;) {
    const io::Instant due = watch(term);
    io::sleep_until(std::min(due, parts_.env.after(kMembershipWatch)));
  }
}

bool Controller::are_voters_alive(const std::vector<Member>& members) const {
  const std::vector<std::string> alive = alive_of(members);
  const std::vector<std::string> voters = parts_.servers.voters();
  return std::all_of(voters.begin(), voters.end(),
                     [&](const std::string& voter) { return std::find(alive.begin(), alive.end(), voter) != alive.end(); });
}

// One look. When the next one is due, if sooner than usual.
io::Instant Controller::watch(raft::Term term) {
  const io::Result<std::vector<Member>> members = metastore::list_members(parts_.reader, parts_.env.after(kControllerBarrierTimeout));
  if (!members.ok()) {
    return io::kNever;
  }
  const io::Instant now = parts_.env.now();
  assigner_.note_members(*members);
  marking_.observe(term, now, *members);
  std::vector<std::string> alive = alive_of(*members);
  if (!std::includes(arrivals_.alive.begin(), arrivals_.alive.end(), alive.begin(), alive.end())) {
    arrivals_.latest = now;
  }
  arrivals_.alive = std::move(alive);
  const bool is_left_over = assigner_.has_left_over() && !placeable_members(*members).empty();
  if (!arrivals_.latest && !is_left_over) {
    return io::kNever;
  }
  if (now < arrivals_.not_before) {
    return arrivals_.not_before;
  }
  if (arrivals_.latest && !are_voters_alive(*members)) {
    const io::Instant due = *arrivals_.latest + kArrivalWait;
    if (now < due) {
      return due;
    }
    SOMETIMES("controller: a pass follows an arrival although a voter is missing");
  } else if (arrivals_.latest) {
    SOMETIMES("controller: a pass follows an arrival, every voter is alive");
  } else {
    SOMETIMES("controller: a pass follows a create that left partitions unplaced");
  }
  follow_arrivals(term);
  return io::kNever;
}

void Controller::follow_arrivals(raft::Term term) {
  const std::optional<io::Instant> followed = arrivals_.latest;
  const bool is_done = assign(term) && rebalance(term);
  if (is_done && arrivals_.latest == followed) {
    arrivals_.latest.reset();
  }
  if (!is_done || assigner_.has_left_over()) {
    arrivals_.not_before = parts_.env.after(kArrivalWait);
  }
}

// ---- Passes ----------------------------------------------------------------------------------------------------------------

bool Controller::plan(raft::Term term, const std::function<bool(io::Instant)>& body) {
  const io::MutexLock lock(planning_);
  if (io::Status reached = parts_.proposer.barrier(parts_.env.after(kControllerBarrierTimeout)); !reached.ok()) {
    SOMETIMES("controller: a pass is put off, its barrier failed");
    return false;
  }
  return leads_in(parts_.proposer, term) && body(parts_.env.after(kPassTimeout));
}

bool Controller::plan_by_picture(raft::Term term, const std::function<bool(const Picture&, io::Instant)>& body) {
  return plan(term, [&](io::Instant deadline) {
    const io::Result<Picture> picture = read_picture(parts_.reader, deadline);
    return picture.ok() && leads_in(parts_.proposer, term) && body(*picture, deadline);
  });
}

std::optional<Controller::Ground> Controller::ground() {
  Ground ground;
  ground.change = parts_.last_change();
  const io::Result<std::vector<Member>> members = metastore::list_members(parts_.reader, parts_.env.after(kControllerBarrierTimeout));
  if (!members.ok()) {
    return std::nullopt;
  }
  for (const Member& member : *members) {
    ground.members.emplace_back(member.id, member.status, member.draining);
  }
  return ground;
}

bool Controller::assign(raft::Term term) {
  const std::optional<Ground> before = ground();
  if (before && before == assigned_ && !assigner_.has_left_over()) {
    return true;
  }
  return plan_by_picture(term, [&](const Picture& picture, io::Instant deadline) {
    assigned_.reset();
    const io::Result<Assigner::Swept> swept = assigner_.sweep(picture, term, deadline);
    if (swept.ok() && swept->placed == 0) {
      assigned_ = before;
    }
    return swept.ok();
  });
}

bool Controller::prune(raft::Term term) {
  const uint64_t before = parts_.last_change();
  return before == pruned_ || plan_by_picture(term, [&](const Picture& picture, io::Instant deadline) {
    pruned_.reset();
    if (orphans_of(picture).empty()) {
      pruned_ = before;
    } else {
      assigner_.prune(picture, term, deadline);
    }
    return true;
  });
}

bool Controller::mark_dead(raft::Term term) {
  return plan(term, [&](io::Instant deadline) {
    const io::Result<std::vector<Member>> members = metastore::list_members(parts_.reader, deadline);
    if (!members.ok()) {
      return false;
    }
    const DeadPass pass =
        marking_.judge(term, parts_.env.now(), *members, parts_.servers.voters(), std::string(parts_.servers.self()));
    log_dead_pass(parts_.env.log, pass);
    for (const DeadMark& mark : pass.marks) {
      propose_mark(mark, term, deadline);
    }
    return true;
  });
}

void Controller::propose_mark(const DeadMark& mark, raft::Term term, io::Instant deadline) {
  const GateAnswer gate = parts_.gate.judge(EntryType::mark_member_dead_if, deadline);
  const bool carries_heartbeat = gate.may_use;
  if (!gate.may_use && gate.holder.empty()) {
    return;  // it could not look; the next tick asks again
  }
  if (!carries_heartbeat) {
    // The older mark stands whatever has committed meanwhile: the last look is the leader's.
    const io::Result<std::optional<Member>> record = metastore::get_member(parts_.reader, mark.id, deadline);
    if (!record.ok() || !still_silent(mark, *record)) {
      return;
    }
    // One that is in the log and not applied would be followed, and undone, by the mark.
    if (parts_.newest_heartbeat(mark.id) > mark.last_heartbeat) {
      SOMETIMES("controller: an older dead mark is dropped, a heartbeat is on its way");
      return;
    }
  }
  const Written written = write_in_term(parts_.proposer, term, dead_mark_command(mark, carries_heartbeat),
                                        std::min(deadline, parts_.env.after(kControllerWriteTimeout)));
  if (written.is_done()) {
    SOMETIMES("controller: a silent member is marked dead");
    parts_.env.log.info("controller: member marked dead", {{"node", mark.id}, {"last_heartbeat", mark.last_heartbeat}});
  } else if (written.kind == Written::Kind::refused) {
    SOMETIMES("controller: a dead mark is refused, a newer heartbeat has committed");
  }
}

bool Controller::rebalance(raft::Term term) {
  const std::optional<Ground> before = ground();
  if (before && before == rebalanced_) {
    return true;
  }
  return plan_by_picture(term, [&](const Picture& picture, io::Instant deadline) {
    rebalanced_.reset();
    moves_.settle(picture, term, deadline);
    // Moves under way are looked after at every tick: whether they come to anything is a matter of time.
    const bool is_any_under_way = std::any_of(picture.rows.begin(), picture.rows.end(),
                                              [](const metastore::Assignment& row) { return !row.target_id.empty(); });
    if (moves_.start(picture, term, deadline) == 0 && !is_any_under_way) {
      rebalanced_ = before;
    }
    return true;
  });
}

bool Controller::decommission(raft::Term term) {
  const bool is_any_draining = [&] {
    const io::Result<std::vector<Member>> members = metastore::list_members(parts_.reader, parts_.env.after(kControllerBarrierTimeout));
    return members.ok() &&
           (!decommission_.blocked().empty() ||
            std::any_of(members->begin(), members->end(), [](const Member& member) { return member.draining; }));
  }();
  return !is_any_draining || plan_by_picture(term, [&](const Picture& picture, io::Instant deadline) {
    decommission_.pass(picture, term, deadline);
    return true;
  });
}

}  // namespace engine::cluster
