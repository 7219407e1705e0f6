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

io::Status RaftServer::open(StateMachineHome& home) {
  NARAD_CHECK(contents_ && !core_, "a server is opened once, after its stores were read");
  io::Status status = decide(home);
  if (status.ok()) status = confirm_stores();
  if (status.ok()) status = carry_out(home);
  if (status.ok()) status = read_unapplied();
  if (!status.ok()) {
    env_.log.error("raft: start refused", {{"reason", status.error().to_text()}});
    return status;
  }
  make_core();
  return {};
}

bool RaftServer::is_blank() const {
  NARAD_CHECK(contents_ && !core_, "asked after the stores were read, and before the server is open");
  return contents_->last_index == 0 && snapshots_->kept().empty() && snapshots_->damaged().empty() &&
         stable_->record().hard_state.term == 0;
}

io::Result<RestartDecision> RaftServer::judge(StateMachineHome& home, bool is_joining) {
  NARAD_CHECK(contents_ && !core_, "a server that is not open is judged, after its stores were read");
  options_.is_joining = is_joining;
  decision_.reset();
  io::Status status = decide(home);
  const bool is_decided = status.ok() || (decision_ && decision_->action == RestartDecision::Action::refuse);
  if (!is_decided) return status.error();
  return *decision_;
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
  return {};
}

// ---- The decision --------------------------------------------------------------------------------------------------------------

// A snapshot that is to be restored is read whole first: when it turns out damaged it counts as that, and the table is read again.
io::Status RaftServer::decide(StateMachineHome& home) {
  auto held = home.look();
  if (!held.ok()) return held.error();
  for (;;) {
    if (io::Status chosen = choose_snapshot(home); !chosen.ok()) return chosen;
    const RestartFacts facts = restart_facts(home.build(), *held);
    decision_ = decide_restart(facts);
    io::Status sound;
    if (decision_->action == RestartDecision::Action::restore) sound = snapshots_->verify(chosen_->label);
    if (sound.ok()) {
      home.decided(facts, *decision_);
      env_.log.info("raft: start decided", {{"row", to_string(decision_->row)}});
      const bool is_refused = decision_->action == RestartDecision::Action::refuse;
      return is_refused ? io::fail(io::ErrorKind::corrupt, decision_->reason) : io::Status();
    }
    if (!sound.is(io::ErrorKind::corrupt)) return sound;
    SOMETIMES("raft: the newest snapshot is damaged, the start goes by what is left");
    log_damaged(chosen_->label.index, sound.error());
  }
}

void RaftServer::log_damaged(Index index, const io::Error& error) {
  env_.log.warn("raft: a snapshot is damaged", {{"index", index}, {"reason", error.to_text()}});
}

// The newest that is intact, as far as headers and the begin of its image tell.
io::Status RaftServer::choose_snapshot(StateMachineHome& home) {
  for (;;) {
    chosen_.reset();
    chosen_newest_type_ = 0;
    if (snapshots_->kept().empty()) return {};
    chosen_ = snapshots_->kept().front();
    auto image = snapshots_->read(chosen_->label);
    if (!image.ok()) return image.error();
    auto newest_type = home.newest_type_of(**image);
    if (newest_type.ok()) {
      chosen_newest_type_ = *newest_type;
      return {};
    }
    if (!newest_type.is(io::ErrorKind::corrupt)) return newest_type.error();
    io::Status verified = snapshots_->verify(chosen_->label);
    if (verified.ok()) return newest_type.error();  // as it was written, and no image all the same
    if (!verified.is(io::ErrorKind::corrupt)) return verified;
    SOMETIMES("raft: the newest snapshot is damaged at its begin");
    log_damaged(chosen_->label.index, verified.error());
  }
}

RestartFacts RaftServer::restart_facts(StateMachineBuild build, StateMachineFacts held) const {
  RestartFacts facts;
  facts.build = std::move(build);
  facts.has_term_record = stable_->record().hard_state.term > 0;
  if (!stable_->is_new()) facts.store = stable_->record().store;
  facts.cluster = stable_->record().cluster;
  facts.log_base = contents_->base_index;
  facts.log_last = contents_->last_index;
  if (chosen_) {
    facts.snapshot = RestartFacts::Snapshot{chosen_->label.index, chosen_->label.term, chosen_newest_type_};
    facts.log_term_at_snapshot = term_at(*contents_, chosen_->label.index);
  }
  if (!snapshots_->damaged().empty()) facts.damaged_snapshot = snapshots_->damaged().front().index;
  facts.log_term_at_index = term_at(*contents_, held.index);
  facts.is_joining = options_.is_joining;
  facts.state_machine = std::move(held);
  return facts;
}

// ---- Its outcome ---------------------------------------------------------------------------------------------------------------

// Everything was read and judged; only now something is written.
io::Status RaftServer::confirm_stores() {
  // A server that got its log from others, without ever being bootstrapped, belongs to their cluster.
  const bool is_empty = contents_->last_index == 0 && !chosen_;
  const bool may_bootstrap = is_empty && !options_.is_joining && stable_->record().hard_state.term == 0;
  io::Status status = stable_->confirm(may_bootstrap ? options_.bootstrap : std::nullopt);
  if (!status.ok()) return status;
  log_->set_stable_record(stable_->record().sequence);
  status = snapshots_->confirm();
  return status.ok() ? log_->confirm() : status;
}

// A crash in between leaves what the next start brings to the same end:
//  - What gives up entries that this server had acknowledged begins with the record that it gives no vote, which stays until a leader
//    has brought it up: a reset, and a joining server's start with a log that ends before what its state machine had applied.
//  - A reset goes on: the state machine goes, then the snapshots, then the log. After the first of them it holds nothing: what is left
//    of raft's own state is then either whole in itself, and is gone by (rows 8, 9), or has a hole, and the reset goes on (row 12).
//  - A state machine that was set aside, and not opened yet, holds nothing: replay (row 9), or start (row 3).
//  - An image that is to be restored over a state machine leaves the old one in place until the switch, as little trusted as before.
io::Status RaftServer::carry_out(StateMachineHome& home) {
  using Action = RestartDecision::Action;
  const RestartDecision& decision = *decision_;
  io::Status status;
  const bool gives_up_entries = decision.action == Action::reset || (decision.row == RestartRow::ahead && options_.is_joining);
  if (gives_up_entries) status = stable_->begin_rebuilding();
  if (status.ok() && (decision.action == Action::reset || decision.action == Action::set_aside)) {
    status = home.set_aside(decision.reason);
  }
  if (status.ok() && decision.action == Action::reset) status = forget_everything();
  if (!status.ok()) return status;
  StateMachineHome::Opening opening;
  opening.store = stable_->record().store;
  opening.cluster = stable_->record().cluster;
  if (decision.action == Action::restore) opening.as = StateMachineHome::As::replaced;
  if (decision.action == Action::rebase) {
    opening.as = StateMachineHome::As::rebased;
    opening.index = contents_->base_index;
    opening.term = contents_->base_term;
  }
  auto opened = home.open(opening);
  if (!opened.ok()) return opened.error();
  state_machine_ = *opened;
  if (decision.resets_log) status = begin_log_behind(chosen_->label);
  if (!status.ok() || decision.action != Action::restore) return status;
  auto image = snapshots_->read(chosen_->label);
  return image.ok() ? state_machine_->install_image(**image, chosen_->label.index) : io::Status(image.error());
}

io::Status RaftServer::forget_everything() {
  env_.log.warn("raft: log and snapshots are dropped; this node gives no vote until a leader has brought it up to date",
                {{"last_index", contents_->last_index}, {"term", stable_->record().hard_state.term}});
  log_->set_stable_record(stable_->record().sequence);
  io::Status status = snapshots_->drop_all();
  if (status.ok()) status = log_->forget();
  chosen_.reset();
  const bool had_torn_tail = contents_->had_torn_tail;
  contents_ = LogStore::Contents();
  contents_->had_torn_tail = had_torn_tail;
  return status;
}

io::Status RaftServer::begin_log_behind(const SnapshotLabel& label) {
  env_.log.info("raft: the log is reset behind the newest snapshot",
                {{"snapshot_index", label.index}, {"last_index", contents_->last_index}});
  if (io::Status reset = log_->reset(label.index, label.term); !reset.ok()) return reset;
  const bool had_torn_tail = contents_->had_torn_tail;
  contents_ = LogStore::Contents();
  contents_->base_index = contents_->last_index = label.index;
  contents_->base_term = label.term;
  contents_->had_torn_tail = had_torn_tail;
  return {};
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
  if (chosen_ && chosen_->label.index >= contents.base_index) initial.snapshot = chosen_->label;
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
