#include "engine/cluster/decommission_rules.h"

#include <algorithm>

#include "io/probe.h"

namespace engine::cluster {

namespace {

using metastore::Member;
using metastore::MemberStatus;
using Reason = DecommissionReason;

std::string count_of(size_t count, std::string_view thing) {
  return std::to_string(count) + " " + std::string(thing) + (count == 1 ? "" : "s");
}

bool is_voter(const DecommissionFacts& facts) {
  return std::any_of(facts.voters.begin(), facts.voters.end(), [&](const VoterFact& voter) { return voter.id == facts.id; });
}

bool is_draining(const DecommissionFacts& facts, const std::string& id) {
  return std::any_of(facts.members.begin(), facts.members.end(),
                     [&](const Member& member) { return member.id == id && member.draining; });
}

// The voters that are left when the member has gone, and those of them that are well.
struct Left {
  size_t voters = 0;
  size_t healthy = 0;
};

Left left_without(const DecommissionFacts& facts, bool draining_leave_too) {
  Left left;
  for (const VoterFact& voter : facts.voters) {
    if (voter.id == facts.id || (draining_leave_too && is_draining(facts, voter.id))) {
      continue;
    }
    ++left.voters;
    left.healthy += voter.is_healthy ? 1 : 0;
  }
  return left;
}

std::optional<Blocked> too_few_voters(const Left& left) {
  if (left.voters >= kMinVoters) {
    return std::nullopt;
  }
  SOMETIMES("decommission: too few voters would be left");
  return Blocked{Reason::below_min_voters,
                 "it would leave " + count_of(left.voters, "raft voter") + "; at least " + std::to_string(kMinVoters) + " must remain"};
}

std::optional<Blocked> no_majority(const Left& left) {
  if (left.healthy >= left.voters / 2 + 1) {
    return std::nullopt;
  }
  SOMETIMES("decommission: the voters left would have no healthy majority");
  return Blocked{Reason::no_healthy_majority, "of the " + count_of(left.voters, "raft voter") + " it would leave, " +
                                                  std::to_string(left.healthy) + " are healthy, which is no majority"};
}

std::optional<Blocked> dead_owner(const DecommissionFacts& facts) {
  if (facts.is_alive || facts.owned_partitions == 0) {
    return std::nullopt;
  }
  SOMETIMES("decommission: a dead member owns partitions");
  return Blocked{Reason::owner_dead, "it is dead and owns " + count_of(facts.owned_partitions, "partition") +
                                         " whose data is on its disk only; bring it back first"};
}

std::optional<Blocked> nobody_receives(const DecommissionFacts& facts) {
  if (facts.owned_partitions == 0) {
    return std::nullopt;
  }
  for (const Member& member : facts.members) {
    if (member.id != facts.id && member.status == MemberStatus::alive && !member.draining) {
      return std::nullopt;
    }
  }
  SOMETIMES("decommission: nobody is left to receive partitions");
  return Blocked{Reason::no_receivers,
                 "no other live member takes partitions, and it owns " + count_of(facts.owned_partitions, "partition")};
}

}  // namespace

std::string_view code_of(DecommissionReason reason) {
  switch (reason) {
    case Reason::below_min_voters: return "below_min_voters";
    case Reason::no_healthy_majority: return "no_healthy_majority";
    case Reason::no_receivers: return "no_receivers";
    case Reason::owner_dead: return "owner_dead";
    case Reason::node_status_unavailable: return "node_status_unavailable";
    case Reason::dispatch_backlog: return "dispatch_backlog";
    case Reason::move_target: return "move_target";
    case Reason::move_budget_full: return "move_budget_full";
    case Reason::leader_transfer: return "leader_transfer";
  }
  return "";
}

bool clears_by_itself(DecommissionReason reason) { return reason >= Reason::dispatch_backlog; }

std::vector<Blocked> refuse_decommission(const DecommissionFacts& facts) {
  std::vector<Blocked> reasons;
  const auto add = [&reasons](std::optional<Blocked> reason) {
    if (reason) {
      reasons.push_back(std::move(*reason));
    }
  };
  if (is_voter(facts)) {
    const Left left = left_without(facts, true);
    add(too_few_voters(left));
    add(no_majority(left));
  }
  add(nobody_receives(facts));
  add(dead_owner(facts));
  return reasons;
}

std::optional<Blocked> blocked_draining(const DecommissionFacts& facts) {
  if (std::optional<Blocked> dead = dead_owner(facts)) {
    return dead;
  }
  if (std::optional<Blocked> nobody = nobody_receives(facts)) {
    return nobody;
  }
  if (facts.owned_partitions > 0 && facts.outbound_moves == 0 && facts.moves_in_flight > 0) {
    SOMETIMES("decommission: other moves use up what may be under way");
    return Blocked{Reason::move_budget_full, "as many moves are under way as may be; its partitions wait for their turn"};
  }
  if (facts.inbound_moves > 0) {
    SOMETIMES("decommission: a draining member is the destination of a move");
    return Blocked{Reason::move_target, "it is the destination of " + count_of(facts.inbound_moves, "move") + " under way"};
  }
  return std::nullopt;
}

std::optional<Blocked> blocked_removal(const DecommissionFacts& facts) {
  if (!is_voter(facts)) {
    return std::nullopt;
  }
  const Left left = left_without(facts, false);
  if (std::optional<Blocked> few = too_few_voters(left)) {
    return few;
  }
  return no_majority(left);
}

std::optional<Blocked> blocked_backlog(const std::string& id, const NodeBacklog& backlog) {
  switch (backlog.kind) {
    case NodeBacklog::Kind::unsupported:
      return std::nullopt;
    case NodeBacklog::Kind::unavailable:
      SOMETIMES("decommission: a draining member does not tell its status");
      return Blocked{Reason::node_status_unavailable, "member " + id + " does not tell what it still holds: " + backlog.error};
    case NodeBacklog::Kind::told:
      break;
  }
  if (backlog.produce_in_flight == 0 && backlog.dispatch_backlog == 0) {
    return std::nullopt;
  }
  return Blocked{Reason::dispatch_backlog, "member " + id + " still has " + std::to_string(backlog.produce_in_flight) +
                                               " produces in flight and " + std::to_string(backlog.dispatch_backlog) +
                                               " records to dispatch"};
}

}  // namespace engine::cluster
