#include "engine/cluster/mover.h"

#include "engine/metastore/records_reader.h"
#include "io/probe.h"

namespace engine::cluster {

using metastore::Assignment;

namespace {

constexpr io::Duration kLookFor = std::chrono::seconds(10);

}  // namespace

void Mover::run() {
  for (;;) {
    io::sleep_for(kMoverTick);
    look();
  }
}

bool Mover::is_worth_a_look() const {
  return !has_looked_ || !moves_.empty() || parts_.last_change() != seen_change_ || parts_.env.now() - looked_at_ >= kMoverFullPass;
}

void Mover::look() {
  if (!parts_.knows_owners() || !is_worth_a_look()) {
    return;
  }
  const uint64_t change = parts_.last_change();
  if (!find().ok()) {
    return;
  }
  has_looked_ = true;
  seen_change_ = change;
  looked_at_ = parts_.env.now();
  // Worked through by name: what find() sees next time decides what stays.
  for (auto& [place, move] : moves_) {
    work(move);
  }
}

io::Status Mover::find() {
  std::map<Place, NodeStatusFacts::Move> found;
  const io::Instant deadline = parts_.env.after(kLookFor);
  for (std::string after;;) {
    io::Result<std::vector<metastore::AssignmentRow>> page =
        metastore::list_all_assignments(parts_.reader, after, metastore::kListMax, deadline);
    if (!page.ok()) {
      return page.error();
    }
    for (const metastore::AssignmentRow& row : *page) {
      const Assignment& assignment = row.assignment;
      if (assignment.target_id != parts_.self) {
        continue;
      }
      const Place place(assignment.topic, assignment.partition);
      const auto known = moves_.find(place);
      if (known != moves_.end() && known->second.source == assignment.owner_id) {
        found.insert(*known);
        continue;
      }
      NodeStatusFacts::Move move;
      move.topic = assignment.topic;
      move.partition = assignment.partition;
      move.source = assignment.owner_id;
      move.target = parts_.self;
      move.started_at = io::to_unix_seconds(parts_.env.clock.wall());
      move.phase = "flip_pending";
      found.emplace(place, std::move(move));
    }
    if (page->size() < metastore::kListMax) {
      break;
    }
    after = std::move(page->back().key);
  }
  moves_ = std::move(found);
  return {};
}

bool Mover::is_source_alive(const std::string& id) {
  const io::Result<std::optional<metastore::Member>> member =
      metastore::get_member(parts_.reader, id, parts_.env.after(kLookFor));
  return member.ok() && member->has_value() && (*member)->status == metastore::MemberStatus::alive;
}

void Mover::work(NodeStatusFacts::Move& move) {
  if (!is_source_alive(move.source)) {
    SOMETIMES("mover: a move waits for its dead source");
    move.phase = "waiting_for_source";
    return;
  }
  move.phase = "flip_pending";
  ++move.attempts;
  const NodeReply reply = parts_.ask_leader({move.topic, move.partition, move.source, move.target}, parts_.env.after(kLookFor));
  if (reply.status < 300) {
    SOMETIMES("mover: a partition has come to its destination");
    ++completed_;
    move.last_error.clear();
    parts_.env.log.info("move: the partition has moved here",
                        {{"topic", move.topic}, {"partition", move.partition}, {"source", move.source}});
    return;
  }
  if (reply.status == 404 || reply.status == 409) {
    SOMETIMES("mover: a flip is refused, the row is another one by now");
  }
  move.last_error = "the leader answered with status " + std::to_string(reply.status);
}

std::vector<NodeStatusFacts::Move> Mover::moves() const {
  std::vector<NodeStatusFacts::Move> moves;
  for (const auto& [place, move] : moves_) {
    moves.push_back(move);
  }
  return moves;
}

}  // namespace engine::cluster
