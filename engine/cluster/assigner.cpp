#include "engine/cluster/assigner.h"

#include <algorithm>
#include <memory>

#include "engine/metastore/commands.h"
#include "engine/metastore/records_reader.h"
#include "io/check.h"
#include "io/probe.h"

namespace engine::cluster {

using metastore::Assignment;
using metastore::Code;
using metastore::EntryType;
using metastore::Member;
using metastore::Topic;

namespace {

constexpr std::string_view kNobody = "no alive member to own new partitions";

// Runs body(i) for each i below `count`, kPlacementsAtOnce of them side by side.
void side_by_side(size_t count, const char* name, const std::function<void(size_t)>& body) {
  if (count == 1) {
    body(0);
    return;
  }
  size_t next = 0;
  io::with_scope([&](io::Scope& scope) {
    for (size_t i = 0; i < std::min(count, kPlacementsAtOnce); ++i) {
      scope.spawn(name, [&] {
        while (next < count) {
          body(next++);
        }
      });
    }
  });
}

}  // namespace

bool is_forming(const std::vector<std::string>& voters, const std::vector<Member>& members) {
  size_t recorded = 0;
  for (const std::string& voter : voters) {
    recorded += std::any_of(members.begin(), members.end(), [&](const Member& member) { return member.id == voter; }) ? 1 : 0;
  }
  return recorded > 0 && recorded < voters.size();
}

// ---- For the topic manager -------------------------------------------------------------------------------------------------

void Assigner::note_members(const std::vector<Member>& members) {
  if (!is_forming(parts_.voters(), members)) {
    forming_since_.reset();
  } else if (!forming_since_) {
    forming_since_ = parts_.env.now();
  }
}

std::optional<Reply> Assigner::ready_to_place(io::Instant deadline) {
  for (;;) {
    const io::Result<std::vector<Member>> members = metastore::list_members(parts_.reader, deadline);
    if (!members.ok()) {
      return unavailable_reply(members.error().to_text());
    }
    if (are_all_draining(*members)) {
      SOMETIMES("placement: a create is refused, every live node is being decommissioned");
      return engine::error_reply(503, "every live node is being decommissioned; there is none to own new partitions");
    }
    note_members(*members);
    const io::Instant now = parts_.env.now();
    if (!forming_since_) {
      return std::nullopt;
    }
    const io::Instant give_up = std::min(*forming_since_ + kFormingWait, deadline);
    if (now >= give_up) {
      SOMETIMES("placement: a create goes on without a voter that has not registered");
      return std::nullopt;
    }
    SOMETIMES("placement: a create waits for the rest of a forming cluster");
    io::sleep_until(std::min(give_up, now + kFormingPoll));
  }
}

void Assigner::place(std::string_view topic, topics::PlacementCause cause, io::Instant deadline) {
  const raft::Term term = parts_.proposer.term();
  std::string why;
  {
    const AssignmentLock::Hold hold(lock_, AssignmentLock::Scope::one_topic, deadline);
    if (!hold.is_held()) {
      why = "the assignment lock is held by another pass";
    } else if (io::Result<Outcome> outcome = place_topic(topic, term, deadline); !outcome.ok()) {
      why = outcome.error().to_text();
    } else if (outcome->left > 0) {
      why = std::move(outcome->why);
    }
  }
  if (why.empty()) {
    return;
  }
  SOMETIMES("placement: a topic is created without owners for all of its partitions");
  has_left_over_ = true;
  parts_.env.log.warn(cause == topics::PlacementCause::created ? "topic created without immediate partition assignment"
                                                               : "partitions added without immediate partition assignment",
                      {{"topic", topic}, {"err", why}});
}

// ---- Placing ---------------------------------------------------------------------------------------------------------------

io::Status Assigner::trust(raft::Term term, io::Instant deadline) {
  if (term == trusted_term_) {
    return {};
  }
  const uint64_t distrusts = distrusts_;
  const io::Instant bound = std::min(deadline, parts_.env.after(kControllerBarrierTimeout));
  if (io::Status reached = parts_.proposer.barrier(bound); !reached.ok()) {
    return reached;
  }
  if (!leads_in(parts_.proposer, term)) {
    return io::fail(io::ErrorKind::busy, "leadership was lost");
  }
  if (distrusts_ == distrusts) {
    trusted_term_ = term;
  }
  return {};
}

io::Result<std::optional<Owners>> Assigner::parent_owners(const Topic& topic, io::Instant deadline) {
  if (topic.parent.empty()) {
    return std::optional<Owners>();
  }
  const io::Result<std::shared_ptr<const Topic>> parent = parts_.reader.get_topic(topic.parent, deadline);
  if (!parent.ok()) {
    return parent.error();
  }
  if (*parent == nullptr) {
    return std::optional<Owners>();
  }
  const io::Result<std::vector<Assignment>> rows = metastore::list_assignments(parts_.reader, topic.parent, deadline);
  if (!rows.ok()) {
    return rows.error();
  }
  return std::optional(owners_of(*rows, (*parent)->partitions));
}

io::Result<Assigner::Outcome> Assigner::place_topic(std::string_view name, raft::Term term, io::Instant deadline) {
  if (io::Status trusted = trust(term, deadline); !trusted.ok()) {
    return trusted.error();
  }
  const io::Result<std::shared_ptr<const Topic>> topic = parts_.reader.get_topic(name, deadline);
  if (!topic.ok()) {
    return topic.error();
  }
  if (*topic == nullptr) {
    return Outcome();
  }
  const io::Result<std::vector<Assignment>> rows = metastore::list_assignments(parts_.reader, name, deadline);
  if (!rows.ok()) {
    return rows.error();
  }
  const io::Result<std::optional<Owners>> parent = parent_owners(**topic, deadline);
  if (!parent.ok()) {
    return parent.error();
  }
  const io::Result<std::vector<Member>> members = metastore::list_members(parts_.reader, deadline);
  if (!members.ok()) {
    return members.error();
  }
  const PlacementPlan plan = plan_placement(owners_of(*rows, (*topic)->partitions), placeable_members(*members),
                                            parent->has_value() ? &**parent : nullptr);
  Outcome outcome;
  outcome.left = plan.deferred.size() + plan.without_owner.size();
  if (!plan.without_owner.empty()) {
    outcome.why = kNobody;
  } else if (!plan.deferred.empty()) {
    outcome.why = "partition " + std::to_string(plan.deferred.front()) + " of the parent has no owner yet";
  }
  place_all(**topic, plan.placements, term, deadline, outcome);
  return outcome;
}

void Assigner::place_all(const Topic& topic, const std::vector<Placement>& placements, raft::Term term, io::Instant deadline,
                         Outcome& outcome) {
  side_by_side(placements.size(), "controller/place", [&](size_t i) {
    const Written written = place_one(topic, placements[i], term, deadline);
    const bool is_benign = written.kind == Written::Kind::refused &&
                           (written.answer.code == Code::partition_assigned || written.answer.code == Code::topic_changed ||
                            written.answer.code == Code::not_found);
    outcome.placed += written.is_done() ? 1 : 0;
    if (is_benign) {
      SOMETIMES("placement: the state machine refuses a placement that came too late");
    } else if (!written.is_done()) {
      ++outcome.left;
      if (outcome.why.empty()) outcome.why = written.reason;
    }
  });
}

Written Assigner::place_one(const Topic& topic, const Placement& placement, raft::Term term, io::Instant deadline) {
  const io::Instant bound = std::min(deadline, parts_.env.after(kControllerWriteTimeout));
  std::string command;
  const GateAnswer gate = parts_.gate.judge(EntryType::place_partition, bound);
  if (!gate.may_use && gate.holder.empty()) {
    return {Written::Kind::not_written, {}, gate.reason};  // it could not look; that is no reason for the older entry
  }
  if (gate.may_use) {
    command = metastore::encode_command(metastore::PlacePartition{topic.name, placement.partition, placement.owner, topic.id});
  } else {
    // The entry of every release puts its owner whatever is there. What the state machine does not check, this does: the topic is still
    // that one and the partition is still nobody's.
    SOMETIMES("placement: an older entry places a partition");
    const io::Result<std::shared_ptr<const Topic>> now = parts_.reader.get_topic(topic.name, bound);
    if (!now.ok()) {
      return {Written::Kind::not_written, {}, now.error().to_text()};
    }
    if (*now == nullptr || (*now)->id != topic.id) {
      return {Written::Kind::refused, metastore::refuse(Code::topic_changed), "the topic is another one by now"};
    }
    const io::Result<std::optional<Assignment>> row =
        metastore::get_assignment(parts_.reader, topic.name, placement.partition, bound);
    if (!row.ok()) {
      return {Written::Kind::not_written, {}, row.error().to_text()};
    }
    if (row->has_value()) {
      return {Written::Kind::refused, metastore::refuse(Code::partition_assigned), "it has an owner by now"};
    }
    command = metastore::encode_command(metastore::AssignPartition{{topic.name, placement.partition, placement.owner, ""}});
  }
  Written written = write_in_term(parts_.proposer, term, std::move(command), bound);
  if (written.kind == Written::Kind::unknown) {
    note_unknown();
  }
  return written;
}

io::Result<Assigner::Swept> Assigner::sweep(const Picture& picture, raft::Term term, io::Instant deadline) {
  has_left_over_ = false;
  Swept swept;
  for (const std::string& name : unplaced_topics(picture)) {
    // One topic at a time: a create that comes meanwhile waits for one, not for all.
    const AssignmentLock::Hold hold(lock_, AssignmentLock::Scope::any_topic, deadline);
    if (!hold.is_held()) {
      has_left_over_ = true;
      return io::fail(io::ErrorKind::timed_out, "the assignment lock was not free in time");
    }
    const io::Result<Outcome> outcome = place_topic(name, term, deadline);
    if (!outcome.ok()) {
      has_left_over_ = true;
      return outcome.error();
    }
    swept.placed += outcome->placed;
    swept.left += outcome->left;
  }
  has_left_over_ = has_left_over_ || swept.left > 0;
  if (swept.placed > 0) {
    SOMETIMES("placement: a sweep places what a create could not");
  }
  return swept;
}

// ---- Pruning ---------------------------------------------------------------------------------------------------------------

size_t Assigner::prune(const Picture& picture, raft::Term term, io::Instant deadline) {
  const std::vector<Assignment> orphans = orphans_of(picture);
  std::set<std::pair<std::string, int32_t>> standing;
  for (const Assignment& row : orphans) {
    standing.emplace(row.topic, row.partition);
  }
  std::erase_if(logged_orphans_, [&](const auto& place) { return !standing.contains(place); });
  size_t pruned = 0;
  side_by_side(orphans.size(), "controller/prune", [&](size_t i) { pruned += prune_one(orphans[i], term, deadline) ? 1 : 0; });
  if (pruned > 0) {
    SOMETIMES("controller: orphan assignment rows are pruned");
    parts_.env.log.info("controller: pruned assignment rows that belonged to no partition", {{"rows", pruned}});
  }
  return pruned;
}

bool Assigner::prune_one(const Assignment& row, raft::Term term, io::Instant deadline) {
  const io::Instant bound = std::min(deadline, parts_.env.after(kControllerWriteTimeout));
  if (const GateAnswer gate = parts_.gate.judge(EntryType::prune_assignment, bound); !gate.may_use) {
    if (!gate.holder.empty() && leads_in(parts_.proposer, term) && logged_orphans_.emplace(row.topic, row.partition).second) {
      SOMETIMES("controller: an orphan assignment row is told of and left");
      parts_.env.log.error("orphan assignment row for " + row.topic + "/" + std::to_string(row.partition) +
                               "; it is pruned once every member runs 3.1.0",
                           {{"topic", row.topic}, {"partition", row.partition}, {"owner", row.owner_id}});
    }
    return false;
  }
  return write_in_term(parts_.proposer, term, metastore::encode_command(metastore::PruneAssignment{row.topic, row.partition}), bound)
      .is_done();
}

}  // namespace engine::cluster
