#include "engine/metastore/fsm_home.h"

#include <limits>
#include <utility>

#include "engine/metastore/active_file.h"
#include "engine/metastore/image.h"
#include "io/check.h"
#include "raft/restart.h"

namespace engine::metastore {

namespace {

// Which of the node's parts it comes from: raft hands it on.
io::Error of_metastore(const io::Error& error) { return io::fail(error.kind, "metastore: " + error.message); }

}  // namespace

raft::StateMachineBuild FsmHome::build() const {
  return {settings_.build, settings_.newest_type, std::string(kFsmDirectory), "raft"};
}

io::Result<raft::StateMachineFacts> FsmHome::look() {
  io::Result<FsmHeld> held = Fsm::look(env_);
  if (!held.ok()) {
    return of_metastore(held.error());
  }
  const FsmMeta& meta = held->meta;
  raft::StateMachineFacts facts;
  facts.holds_anything = held->holds_anything;
  facts.is_trusted = held->is_trusted;
  facts.distrust = held->distrust;
  facts.index = meta.state.applied_index;
  facts.term = meta.state.applied_term;
  facts.newest_type = meta.state.newest_type;
  facts.store = meta.store;
  facts.cluster = meta.cluster;
  return facts;
}

io::Result<std::uint32_t> FsmHome::newest_type_of(raft::ImageSource& source) {
  ImageReader image(source);
  if (io::Status head = image.read_head(std::numeric_limits<uint32_t>::max()); !head.ok()) {
    return head.error();
  }
  return image.state().newest_type;
}

void FsmHome::decided(const raft::RestartFacts& facts, const raft::RestartDecision& decision) {
  using Action = raft::RestartDecision::Action;
  const raft::Index applied = facts.state_machine.index;
  if (decision.action == Action::keep && facts.snapshot) {
    env_.log.info("metastore: fsm.db already holds the latest raft snapshot; skipping its restore and the entries fsm.db holds",
                  {{"applied_index", applied}, {"snapshot_index", facts.snapshot->index}});
  } else if (decision.action == Action::restore && facts.state_machine.holds_anything && !facts.state_machine.is_trusted) {
    env_.log.info("metastore: fsm.db has no applied index this release can trust; restoring the latest raft snapshot over it",
                  {{"snapshot_index", facts.snapshot->index}, {"reason", facts.state_machine.distrust}});
  } else if (decision.action == Action::restore && decision.row == raft::RestartRow::ahead) {
    env_.log.warn("metastore: restoring the latest raft snapshot over an fsm.db that is ahead of the raft log",
                  {{"applied_index", applied}, {"snapshot_index", facts.snapshot->index}});
  } else if (decision.action == Action::restore) {
    env_.log.info("metastore: restoring the latest raft snapshot over an older fsm.db",
                  {{"applied_index", applied}, {"snapshot_index", facts.snapshot->index}});
  } else if (decision.action == Action::rebase) {
    env_.log.error("metastore: fsm.db has no applied index this release can trust, there is no raft snapshot to restore and the raft "
                   "log no longer starts at index 1; replaying the log onto fsm.db as it is",
                   {{"first_log_index", facts.log_base + 1},
                    {"last_log_index", facts.log_last},
                    {"reason", facts.state_machine.distrust}});
  }
}

io::Status FsmHome::set_aside(const std::string& reason) {
  io::Result<std::optional<std::string>> moved = Fsm::set_aside(env_);
  if (!moved.ok()) {
    return io::fail(moved.error().kind, "metastore: fsm.db cannot be set aside as fsm.db.stale: " + moved.error().message);
  }
  if (*moved && **moved != kStaleDirectory) {
    env_.log.warn(
        "metastore: set aside the database in fsm.db, which is a volume of its own, and rebuilding it from the raft log; delete "
        "fsm.db/ACTIVE.stale once the node is ready, and the next start removes it",
        {{"reason", reason}, {"stale", **moved}});
  } else if (*moved) {
    env_.log.warn(
        "metastore: set aside fsm.db as fsm.db.stale and rebuilding it from the raft log; delete fsm.db.stale once the node is ready",
        {{"reason", reason}, {"stale", kStaleDirectory}});
  }
  return {};
}

io::Result<raft::StateMachine*> FsmHome::open(const Opening& opening) {
  NARAD_CHECK(fsm_ == nullptr, "fsm.db is opened once");
  settings_.store = opening.store;
  settings_.cluster = opening.cluster;
  OpenAs as;
  switch (opening.as) {
    case As::held: break;
    case As::replaced: as.kind = OpenAs::Kind::replaced; break;
    case As::rebased: as = {OpenAs::Kind::rebased, opening.index, opening.term}; break;
  }
  io::Result<std::unique_ptr<Fsm>> fsm = Fsm::open_looked_at(env_, settings_, as);
  if (!fsm.ok()) {
    return of_metastore(fsm.error());
  }
  fsm_ = std::move(*fsm);
  return static_cast<raft::StateMachine*>(fsm_.get());
}

}  // namespace engine::metastore
