#include "engine/cluster/moves.h"

#include <algorithm>
#include <optional>

#include "engine/metastore/commands.h"
#include "engine/metastore/records_reader.h"
#include "io/probe.h"

namespace engine::cluster {

using metastore::Assignment;
using metastore::Code;
using metastore::Member;
using metastore::MemberStatus;

std::string_view to_string(MoveBlock block) {
  switch (block) {
    case MoveBlock::none: return "";
    case MoveBlock::source_dead: return "source_dead";
    case MoveBlock::target_dead: return "target_dead";
    case MoveBlock::target_not_member: return "target_not_member";
  }
  return "";
}

MoveBlock block_of(const Assignment& row, const Picture& picture) {
  const Member* target = picture.member(row.target_id);
  if (target == nullptr) {
    return MoveBlock::target_not_member;
  }
  if (target->status == MemberStatus::dead) {
    return MoveBlock::target_dead;
  }
  const Member* source = picture.member(row.owner_id);
  return source == nullptr || source->status == MemberStatus::dead ? MoveBlock::source_dead : MoveBlock::none;
}

void Moves::stop_leading() {
  dead_since_.clear();
  told_.clear();
  blocked_.clear();
  colocated_ = 0;
}

size_t Moves::blocked(MoveBlock block) const {
  const auto found = blocked_.find(block);
  return found == blocked_.end() ? 0 : found->second;
}

// ---- Starting --------------------------------------------------------------------------------------------------------------

size_t Moves::start(const Picture& picture, raft::Term term, io::Instant deadline) {
  const std::vector<PlacedPartition> placed = placed_partitions(picture);
  colocated_ = count_colocated(placed);
  size_t started = 0;
  for (const PlannedMove& move : plan_rebalance(placed, picture.members)) {
    started += start_one(move, term, deadline) ? 1 : 0;
  }
  return started;
}

bool Moves::start_one(const PlannedMove& move, raft::Term term, io::Instant deadline) {
  const AssignmentLock::Hold hold(parts_.assigner.lock(), AssignmentLock::Scope::any_topic, deadline);
  if (!hold.is_held()) {
    return false;
  }
  const io::Instant bound = std::min(deadline, parts_.env.after(kControllerWriteTimeout));
  const io::Result<std::optional<Member>> source = metastore::get_member(parts_.reader, move.from, bound);
  const io::Result<std::optional<Member>> target = metastore::get_member(parts_.reader, move.to, bound);
  const io::Result<std::optional<Assignment>> row = metastore::get_assignment(parts_.reader, move.topic, move.partition, bound);
  if (!source.ok() || !target.ok() || !row.ok()) {
    return false;
  }
  const bool is_as_planned = row->has_value() && (*row)->owner_id == move.from && (*row)->target_id.empty();
  const bool is_alive = source->has_value() && (*source)->status == MemberStatus::alive;
  if (!is_as_planned || !is_alive || !target->has_value() || (*target)->status != MemberStatus::alive || (*target)->draining) {
    SOMETIMES("moves: a planned move is dropped, its ground has changed");
    return false;
  }
  const Written written = write_in_term(
      parts_.proposer, term, metastore::encode_command(metastore::SetMoveTarget{move.topic, move.partition, move.to}), bound);
  if (written.is_done()) {
    SOMETIMES("moves: a partition is given a destination");
    parts_.env.log.info("controller: partition is to move",
                        {{"topic", move.topic}, {"partition", move.partition}, {"from", move.from}, {"to", move.to}});
  }
  return written.is_done();
}

// ---- Looking after those under way -------------------------------------------------------------------------------------------

void Moves::note_dead(const Picture& picture) {
  std::map<std::string, io::Instant> dead;
  for (const Member& member : picture.members) {
    if (member.status == MemberStatus::dead) {
      const auto known = dead_since_.find(member.id);
      dead.emplace(member.id, known == dead_since_.end() ? parts_.env.now() : known->second);
    }
  }
  dead_since_ = std::move(dead);
}

bool Moves::is_given_up(const Assignment& row, const Picture& picture) const {
  const Member* target = picture.member(row.target_id);
  if (target == nullptr) {
    SOMETIMES("moves: a destination that is no member is cleared");
    return true;
  }
  const bool is_dead = target->status == MemberStatus::dead;
  if ((is_dead || target->draining) && !parts_.servers.has(row.target_id)) {
    SOMETIMES("moves: a destination that is out of raft is cleared");
    return true;
  }
  if (is_dead && parts_.env.now() - dead_since_.at(row.target_id) >= kTargetDeadMax) {
    SOMETIMES("moves: a destination that has been dead for long is cleared");
    return true;
  }
  return false;
}

void Moves::settle(const Picture& picture, raft::Term term, io::Instant deadline) {
  note_dead(picture);
  blocked_.clear();
  for (const Assignment& row : picture.rows) {
    if (row.target_id.empty() || !picture.is_live(row)) {
      continue;
    }
    const MoveBlock block = block_of(row, picture);
    if (block != MoveBlock::none) {
      ++blocked_[block];
      tell_blocked(row, block);
    }
    if (is_given_up(row, picture)) {
      const metastore::AbortMove abort{row.topic, row.partition, row.target_id};
      const Written written = write_in_term(parts_.proposer, term, metastore::encode_command(abort),
                                            std::min(deadline, parts_.env.after(kControllerWriteTimeout)));
      if (written.is_done()) {
        parts_.env.log.info("controller: move given up, its destination will not come",
                            {{"topic", row.topic}, {"partition", row.partition}, {"from", row.owner_id}, {"to", row.target_id}});
      }
    }
  }
}

void Moves::tell_blocked(const Assignment& row, MoveBlock block) {
  if (block == MoveBlock::target_not_member || !told_.emplace(std::pair(row.topic, row.partition), block).second) {
    return;
  }
  const bool is_source = block == MoveBlock::source_dead;
  if (is_source) {
    SOMETIMES("moves: a move is blocked, its source is dead");
  } else {
    SOMETIMES("moves: a move is blocked, its destination is dead");
  }
  parts_.env.log.error(is_source ? "controller: move blocked: its source is dead" : "controller: move blocked: its destination is dead",
                       {{"topic", row.topic}, {"partition", row.partition}, {"from", row.owner_id}, {"to", row.target_id}});
}

// ---- Flip and abort ----------------------------------------------------------------------------------------------------------

Reply Moves::answer_of(const Written& written) const {
  switch (written.kind) {
    case Written::Kind::done: return Reply{204, ""};
    case Written::Kind::refused:
      return written.answer.code == Code::not_found ? engine::error_reply(404, "no such assignment") : engine::error_reply(409, written.answer.text());
    case Written::Kind::unknown: return outcome_unknown_reply();
    case Written::Kind::not_written: return unavailable_reply(written.reason);
  }
  return unavailable_reply();
}

Reply Moves::complete(std::string_view topic, int32_t partition, std::string_view expected_owner, std::string_view target,
                      io::Instant deadline) {
  const Written written = write_in_term(
      parts_.proposer, parts_.proposer.term(),
      metastore::encode_command(metastore::CompleteMove{std::string(topic), partition, std::string(expected_owner), std::string(target)}),
      std::min(deadline, parts_.env.after(kControllerWriteTimeout)));
  if (written.kind == Written::Kind::refused) {
    SOMETIMES("moves: a flip is refused, the move is another one or gone");
  }
  return answer_of(written);
}

Reply Moves::abort(std::string_view topic, int32_t partition, std::string_view target, io::Instant deadline, Assignment* before) {
  const raft::Term term = parts_.proposer.term();
  // The entry takes a move to another destination for success, which is no answer for a person: look first, behind a barrier.
  if (io::Status reached = parts_.proposer.barrier(std::min(deadline, parts_.env.after(kControllerBarrierTimeout))); !reached.ok()) {
    return unavailable_reply(reached.error().message);
  }
  const AssignmentLock::Hold hold(parts_.assigner.lock(), AssignmentLock::Scope::any_topic, deadline);
  if (!hold.is_held()) {
    return unavailable_reply("the assignment lock is held by another pass");
  }
  const io::Result<std::optional<Assignment>> row = metastore::get_assignment(parts_.reader, topic, partition, deadline);
  if (!row.ok()) {
    return unavailable_reply(row.error().to_text());
  }
  if (!row->has_value()) {
    return engine::error_reply(404, "no such assignment");
  }
  if ((*row)->target_id.empty()) {
    return engine::error_reply(409, "the partition is not being moved");
  }
  if (!target.empty() && (*row)->target_id != target) {
    return engine::error_reply(409, "the partition is being moved to " + (*row)->target_id + ", not to " + std::string(target));
  }
  if (before != nullptr) {
    *before = **row;
  }
  return answer_of(write_in_term(parts_.proposer, term,
                                 metastore::encode_command(metastore::AbortMove{std::string(topic), partition, (*row)->target_id}),
                                 std::min(deadline, parts_.env.after(kControllerWriteTimeout))));
}

}  // namespace engine::cluster
