// Opening: what the disk holds is read and judged, then made durable and brought in line, and the core is made from it.
#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/probe.h"
#include "raft/restart.h"
#include "raft/server.h"

namespace raft {

namespace {

// The term of the entry at `index`, where the log tells.
std::optional<Term> term_at(const LogStore::Contents& contents, Index index) {
  if (index < contents.base_index || index > contents.last_index) return std::nullopt;
  if (index == contents.base_index) return contents.base_index == 0 ? std::nullopt : std::optional(contents.base_term);
  std::optional<Term> term;
  for (const TermRun& run : contents.terms) {
    if (run.first <= index) term = run.term;
  }
  return term;
}

}  // namespace

io::Status RaftServer::read() {
  NARAD_CHECK(!stable_, "a server's stores are read once");
  io::Status status = read_stores();
  if (status.ok()) status = check_contents();
  if (!status.ok()) env_.log.error("raft: start refused", {{"reason", status.error().to_text()}});
  return status;
}

io::Status RaftServer::check(Index applied) const {
  NARAD_CHECK(contents_ && !core_, "a state machine is judged between reading and opening");
  RestartDecision decision;
  return decide(applied, decision);
}

io::Status RaftServer::open(StateMachine& state_machine) {
  NARAD_CHECK(contents_ && !core_, "a server is opened once, after its stores were read");
  state_machine_ = &state_machine;
  RestartDecision decision;
  io::Status status = decide_by_sound_snapshot(decision);
  if (status.ok()) status = confirm_stores(decision.action == RestartDecision::Action::start);
  if (status.ok()) status = carry_out(decision);
  if (status.ok()) status = read_unapplied();
  if (!status.ok()) {
    env_.log.error("raft: start refused", {{"reason", status.error().to_text()}});
    return status;
  }
  make_core();
  return {};
}

io::Status RaftServer::read_stores() {
  io::RandomStream ids = env_.random.stream("raft store id", options_.id);
  const StoreId new_store{ids.next() | 1, ids.next()};
  auto stable = StableStore::open(env_.disk, new_store);
  if (!stable.ok()) return stable.error();
  stable_ = std::move(*stable);
  const StoreId& store = stable_->record().store;
  LogStore::Contents contents;
  auto log = LogStore::open(env_.disk, store, options_.log, contents);
  if (!log.ok()) return log.error();
  log_ = std::move(*log);
  contents_ = std::move(contents);
  auto snapshots = SnapshotStore::open(env_.disk, env_.clock, store, options_.snapshots.store);
  if (!snapshots.ok()) return snapshots.error();
  snapshots_ = std::move(*snapshots);
  return {};
}

// Whether the stores belong together, and which snapshot counts.
io::Status RaftServer::check_contents() {
  const LogStore::Contents& contents = *contents_;
  const StableRecord& record = stable_->record();
  const auto corrupt = [](std::string text) { return io::fail(io::ErrorKind::corrupt, std::move(text)); };
  if (log_->last_batch() < record.log_batch) {
    SOMETIMES("raft: log that lost its end refused");
    return corrupt("raft/log: ends with batch " + std::to_string(log_->last_batch()) + " (index " +
                   std::to_string(log_->last_index()) + "), but batch " + std::to_string(record.log_batch) +
                   " was durable when raft/stable was written");
  }
  if (log_->stable_record() > record.sequence) {
    SOMETIMES("raft: stable record older than the log refused");
    return corrupt("raft/stable: holds record " + std::to_string(record.sequence) + ", but the log was written under record " +
                   std::to_string(log_->stable_record()));
  }
  const Term last_term = contents.last_term();
  if (last_term > record.hard_state.term) {
    return corrupt("raft/stable: term " + std::to_string(record.hard_state.term) + " is older than the log's " +
                   std::to_string(last_term));
  }
  for (const Entry& entry : contents.configurations) {
    if (!decode_configuration(entry.bytes())) {
      return corrupt("raft/log: entry " + std::to_string(entry.index) + " holds no configuration");
    }
  }
  for (const SnapshotStore::Damaged& damaged : snapshots_->damaged()) {
    env_.log.warn("raft: a snapshot is damaged", {{"path", damaged.path}, {"index", damaged.index}, {"reason", damaged.reason}});
  }
  auto chosen = snapshots_->choose(contents.base_index);
  if (!chosen.ok()) return chosen.error();
  chosen_ = std::move(*chosen);
  return {};
}

// A snapshot that is to be restored is read whole first: when it turns out damaged, the start goes by the one before, provided that the
// log reaches back to it.
io::Status RaftServer::decide_by_sound_snapshot(RestartDecision& decision) {
  for (;;) {
    if (io::Status decided = decide(state_machine_->applied_index(), decision); !decided.ok()) return decided;
    if (decision.action != RestartDecision::Action::restore) return {};
    io::Status verified = snapshots_->verify(chosen_->label);
    if (verified.ok() || !verified.is(io::ErrorKind::corrupt)) return verified;
    SOMETIMES("raft: the newest snapshot is damaged, the start goes by the one before");
    env_.log.warn("raft: a snapshot is damaged", {{"index", chosen_->label.index}, {"reason", verified.error().to_text()}});
    auto chosen = snapshots_->choose(contents_->base_index);
    if (!chosen.ok()) return chosen.error();
    chosen_ = std::move(*chosen);
  }
}

io::Status RaftServer::decide(Index applied, RestartDecision& decision) const {
  RestartFacts facts;
  facts.has_hard_state = stable_->record().hard_state.term > 0;
  facts.log_base = contents_->base_index;
  facts.log_last = contents_->last_index;
  if (chosen_) {
    facts.snapshot = RestartFacts::Snapshot{chosen_->label.index, chosen_->label.term};
    facts.log_term_at_snapshot = term_at(*contents_, chosen_->label.index);
  }
  if (!snapshots_->damaged().empty()) facts.damaged_snapshot = snapshots_->damaged().front().index;
  facts.applied = applied;
  facts.log_term_at_applied = term_at(*contents_, facts.applied);
  decision = decide_restart(facts);
  return decision.action == RestartDecision::Action::refuse ? io::fail(io::ErrorKind::corrupt, decision.reason) : io::Status();
}

// Everything was read and judged; only now something is written.
io::Status RaftServer::confirm_stores(bool is_empty) {
  // A server that got its log from others, without ever being bootstrapped, belongs to their cluster.
  const bool may_bootstrap = is_empty && stable_->record().hard_state.term == 0;
  io::Status status = stable_->confirm(may_bootstrap ? options_.bootstrap : std::nullopt);
  if (!status.ok()) return status;
  log_->set_stable_record(stable_->record().sequence);
  status = snapshots_->confirm();
  return status.ok() ? log_->confirm() : status;
}

// A crash in between leaves what the next start brings to the same end.
io::Status RaftServer::carry_out(const RestartDecision& decision) {
  if (!chosen_) return {};
  const SnapshotLabel& label = chosen_->label;
  if (decision.resets_log) {
    env_.log.info("raft: the log is reset behind the newest snapshot",
                  {{"snapshot_index", label.index}, {"last_index", contents_->last_index}});
    if (io::Status reset = log_->reset(label.index, label.term); !reset.ok()) return reset;
    const bool had_torn_tail = contents_->had_torn_tail;
    contents_ = LogStore::Contents();
    contents_->base_index = contents_->last_index = label.index;
    contents_->base_term = label.term;
    contents_->had_torn_tail = had_torn_tail;
  }
  if (decision.action != RestartDecision::Action::restore) return {};
  env_.log.info("raft: the newest snapshot is restored over an older state machine",
                {{"applied_index", state_machine_->applied_index()}, {"snapshot_index", label.index}});
  auto image = snapshots_->read(label);
  return image.ok() ? state_machine_->install_image(**image, label.index) : io::Status(image.error());
}

// The core wants in memory what is not applied yet; the log's end that was read may begin above that.
io::Status RaftServer::read_unapplied() {
  LogStore::Contents& contents = *contents_;
  const Index wanted = std::max(state_machine_->applied_index(), contents.base_index) + 1;
  while (!contents.entries.empty() && contents.entries.front().index > wanted) {
    const Index last = contents.entries.front().index - 1;
    auto before = log_->read(wanted, last, ~std::uint64_t{0});
    if (!before.ok()) return before.error();
    NARAD_CHECK(before->back().index == last, "an unbounded read is complete");
    before->insert(before->end(), std::make_move_iterator(contents.entries.begin()),
                   std::make_move_iterator(contents.entries.end()));
    contents.entries = std::move(*before);
  }
  return {};
}

void RaftServer::make_core() {
  LogStore::Contents contents = std::move(*contents_);
  contents_.reset();
  const StableRecord& record = stable_->record();
  io::RandomStream ids = env_.random.stream("raft session", options_.id);
  session_ = ids.next() | 1;
  Identity identity;
  identity.id = options_.id;
  identity.store = record.store;
  identity.session = session_;
  identity.new_cluster = ClusterId{ids.next() | 1, ids.next()};
  InitialState initial;
  initial.hard_state = record.hard_state;
  initial.cluster = record.cluster;
  initial.base_index = contents.base_index;
  initial.base_term = contents.base_term;
  initial.base_configuration = stable_->bootstrap();
  if (chosen_) initial.snapshot = chosen_->label;
  const Index first_held = contents.entries.empty() ? contents.last_index + 1 : contents.entries.front().index;
  if (first_held > contents.base_index + 1) {
    initial.older_last = first_held - 1;
    for (const TermRun& run : contents.terms) {
      if (run.first <= initial.older_last) initial.older_terms.push_back(run);
    }
    for (const Entry& entry : contents.configurations) {
      if (entry.index <= initial.older_last) {
        initial.older_configurations.emplace_back(entry.index, *decode_configuration(entry.bytes()));
      }
    }
  }
  initial.entries = std::move(contents.entries);
  initial.applied = state_machine_->applied_index();
  env_.log.info("raft: state opened", {{"store", record.store.to_string()},
                                       {"is_new", stable_->is_new()},
                                       {"term", record.hard_state.term},
                                       {"vote", record.hard_state.vote},
                                       {"last_index", log_->last_index()},
                                       {"applied_index", initial.applied},
                                       {"torn_tail_cut", contents.had_torn_tail}});
  is_cluster_recorded_ = record.cluster.is_known();
  core_ = std::make_unique<Core>(std::move(identity), options_.core, std::move(initial),
                                 env_.random.stream("raft election timeout", options_.id), env_.now());
  if (observer_ != nullptr) observer_->opened(*core_);
}

}  // namespace raft
