#include "sim/world.h"

#include <algorithm>

#include "engine/metastore/answer.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/fsm.h"
#include "raft/restart.h"
#include "io/probe.h"
#include "raft/server.h"
#include "sim/answers.h"
#include "sim/bounds.h"
#include "sim/command_draws.h"
#include "sim/placement_check.h"
#include "sim/proposals.h"
#include "sim/record_check.h"
#include "sim/snapshot_look.h"

namespace sim {
namespace {

using namespace std::chrono_literals;

// How long a node that ended by itself stays down: a service manager's restart delay.
constexpr io::Duration kRestartDelay = 300ms;
constexpr io::Duration kRestartDelayMax = 2s;
// What a forwarding node reaches when it answers a write before its own replica holds it: the leader could not be asked, or 3 s
// have passed. Only then may a read after the answer be behind the write.
constexpr const char* kEarlyAnswer = "forward: a write is answered before this replica holds it";
// What a node says of an entry that is no command, which the load proposes among others (proposals.h).
// Error lines about what a node was given, not about the node: what the load proposes, and the state that faults and operators bring the
// cluster's members into.
constexpr std::string_view kTellsOfOthers[] = {
    "metastore: consumed a raft entry it cannot decode",
    "orphan assignment row for ",
    "controller: move blocked: its source is dead",
    "controller: move blocked: its destination is dead",
    "controller: decommission blocked",
    // Raft refuses a step of an admission, or an entry of it is not committed in time. The joiner asks again; that it gets in is for the
    // liveness check to see.
    "join cluster: ",
};
// What the leader and the joiner say of a joiner of an older release.
constexpr std::string_view kOlderJoinerLine = "cluster join refused: th";
// What a node says that an operator has taken out of the cluster.
constexpr std::string_view kRemovedMemberLine = "member heartbeat refused";
// Longest time of one call at a node that nothing is wrong with: a barrier, a proposal (5 s each), and the way there and back.
constexpr io::Duration kCallBound = 16s;

std::string node_name(int node) { return "n" + std::to_string(node); }

int initial_count(const WorldOptions& options) { return options.initial == 0 ? options.nodes : options.initial; }

// What cluster.initial_members says on every node: nothing where all are.
std::string initial_members(const WorldOptions& options) {
  std::string members;
  for (int i = 0; i < initial_count(options) && initial_count(options) < options.nodes; ++i) {
    members += (i == 0 ? "" : ",") + node_name(i);
  }
  return members;
}

}  // namespace

// Sees one life of one node through the eyes of raft.
class World::Watcher final : public raft::Observer {
 public:
  Watcher(World& world, int node, uint64_t life) : world_(world), node_(node), life_(life) {}

  void core_changed(const raft::Core& core) override {
    if (RaftTrace* trace = this->trace()) trace->core_changed(source(), core);
    world_.core_changed(node_, life_, core, *this);
  }
  void opened(const raft::Core& core) override {
    if (RaftTrace* trace = this->trace()) trace->opened(source(), core);
  }
  void message_taken(const raft::Core& core, const raft::Message& message) override {
    if (RaftTrace* trace = this->trace()) trace->message_taken(source(), core, message);
  }
  void offer_taken(const raft::Core& core, const raft::SnapshotOffer& offer, const raft::OfferAnswer& answer) override {
    if (RaftTrace* trace = this->trace()) trace->offer_taken(source(), core, offer, answer);
  }
  void ready_taken(const raft::Core& core, const raft::Ready& ready) override {
    if (RaftTrace* trace = this->trace()) trace->ready_taken(source(), core, ready);
    if (ready.install) world_.tell(Moment::install, node_, life_);
  }
  void message_sent(const raft::Core& core, const raft::Message& message) override {
    if (RaftTrace* trace = this->trace()) trace->message_sent(source(), core, message);
  }
  void persisted(const raft::Core& core) override {
    if (RaftTrace* trace = this->trace()) trace->persisted(source(), core);
  }
  void applied(const raft::Core& core) override {
    if (RaftTrace* trace = this->trace()) trace->applied(source(), core);
  }
  void entry_applied(const raft::Entry& entry, const std::string& answer) override {
    world_.entry_applied(node_, life_, entry, answer);
  }

  void snapshot_taken(const raft::SnapshotLabel& label) override { world_.snapshot_taken(node_, life_, label); }
  void image_installed(const raft::SnapshotLabel& label) override { world_.image_installed(node_, life_, label.index); }

  raft::Role role = raft::Role::follower;
  raft::Term voted_in = 0;
  raft::Index last = 0;
  raft::Index last_applied = 0;
  raft::Index term_start = 0;  // as a leader: its first entry of the term
  bool is_new = true;

 private:
  // Null for a life that has ended: what unwinds of it is no event.
  RaftTrace* trace() const {
    const bool is_current = world_.nodes_[static_cast<size_t>(node_)].life == life_;
    return is_current && world_.raft_trace_ ? &*world_.raft_trace_ : nullptr;
  }
  RaftTrace::Source source() const { return {node_, life_, world_.now()}; }

  World& world_;
  int node_;
  uint64_t life_;
};

namespace {

raft::Index first_of_term(const raft::Core& core) {
  raft::Index first = core.last_index() + 1;
  while (first > core.log().held_from() && core.log().at(first - 1).term == core.term()) {
    --first;
  }
  return first;
}

}  // namespace

World::World(WorldOptions options) : options_(std::move(options)), io_(std::make_unique<io::sim::World>(options_.seed, options_.io)) {
  board_.off = options_.defects;
  NARAD_CHECK(options_.nodes >= 1 && options_.nodes <= 9, "a world has 1 to 9 nodes");
  NARAD_CHECK(options_.initial >= 0 && options_.initial <= options_.nodes, "the initial nodes are among the nodes");
  for (int i = 0; i < options_.nodes; ++i) {
    Node node;
    io::sim::MachineSettings machine = options_.machine;
    machine.name = node_name(i);
    node.machine = &io_->add_machine(std::move(machine));
    node.config = options_.node;
    node.config.insecure = true;
    node.config.http.addr = node_name(i) + ":7942";
    node.config.cluster.node_id = node_name(i);
    node.config.cluster.addr = node_name(i) + ":7943";
    node.config.cluster.initial_members = initial_members(options_);
    node.config.cluster.peers.clear();
    for (int peer = 0; peer < options_.nodes && options_.nodes > 1; ++peer) {
      node.config.cluster.peers.push_back({node_name(peer), node_name(peer) + ":7943"});
    }
    nodes_.push_back(std::move(node));
  }
  for (int i = 0; i < options_.nodes; ++i) {
    machine(i).set_on_end([this, i](io::sim::Incarnation& life) { on_end(i, life); });
  }
  io::sim::MachineSettings clients;
  clients.name = "clients";
  clients_ = &io_->add_machine(std::move(clients));
  io_->set_log_sink(io::LogLevel::error,
                   [this](io::sim::Incarnation& process, io::LogLevel level, std::string_view line) { on_log(process, level, line); });
}

World::~World() {
  is_closing_ = true;
  io_.reset();
}

void World::set_raft_trace(std::function<void(std::string_view line)> sink) { raft_trace_.emplace(std::move(sink)); }

std::string World::http_address(int node) const { return node_name(node) + ":7942"; }
std::string World::cluster_address(int node) const { return nodes_[static_cast<size_t>(node)].config.cluster.addr; }

void World::start() {
  for (int i = 0; i < initial_count(options_); ++i) {
    start_node(i);
  }
  if (options_.load.proposals_per_minute > 0) {
    proposals_ = std::make_unique<Proposals>(*this, options_.load.proposals_per_minute);
    proposals_->start();
  }
}

void World::grow(int node) {
  if (!has_begun(node)) {
    start_node(node);
  }
}

void World::check_proposals() {
  if (proposals_ && !violation_) {
    proposals_->check_history();
  }
}

// ---- lives -----------------------------------------------------------------------------------------------------------------

void World::start_node(int index) {
  Node& node = nodes_[static_cast<size_t>(index)];
  if (violation_ || is_closing_ || node.machine->process() != nullptr) {
    return;
  }
  if (node.program) {
    node.runs_program = true;
    node.machine->start(std::exchange(node.program, nullptr));
    return;
  }
  ++counts_.starts;
  ++node.life;
  node.was_started = false;
  node.next_down.reset();
  node.reason.clear();
  node.running = node.release;
  node.config.tuning.release = *node.release;
  node.watcher_before = std::move(node.watcher);
  node.watcher = std::make_unique<Watcher>(*this, index, node.life);
  node.machine->start([this, index](io::Env& env) { return run(index, env); });
}

int World::run(int index, io::Env& env) {
  Node& node = nodes_[static_cast<size_t>(index)];
  io::Event stop;
  struct Registered {  // however this life ends, nobody keeps a pointer into its stack
    Node& node;
    Registered(Node& n, io::Event& event) : node(n) { node.stop = &event; }
    ~Registered() {
      node.stop = nullptr;
      node.view.reset();
    }
  } registered(node, stop);
  engine::Hooks hooks;
  hooks.raft_observer = node.watcher.get();
  hooks.started = [this, index](const engine::NodeView& view) {
    Node& self = nodes_[static_cast<size_t>(index)];
    if (view.raft.decision()->row == raft::RestartRow::replayed_onto || self.is_distrusted) {
      self.was_started = true;
      tell(Moment::rebased, index, self.life);
      return;
    }
    self.view.emplace(view);
    self.was_started = true;
    self.failed_starts = 0;
    ++self.good_starts;
    take_restart(index, view);
    view.scope.spawn("sim/audit", [this, index] { audit(index); });
  };
  hooks.stopping = [&node] { node.view.reset(); };
  return engine::run_node(env, node.config, hooks, stop, &node.reason);
}

// What the state machine holds must be what the cluster agreed on, also where its last life ended before it told.
void World::take_restart(int index, const engine::NodeView& view) {
  const raft::Index applied = view.fsm.applied_index();
  note_committed(view.raft.core());
  while (book_.last_index() < applied) {
    const auto found = committed_.find(book_.last_index() + 1);
    if (found == committed_.end()) {
      fail("what a state machine holds was committed somewhere", node_name(index) + " starts at index " + std::to_string(applied) +
                                                                      ", and entry " + std::to_string(book_.last_index() + 1) +
                                                                      " is known to nobody");
      return;
    }
    const raft::Entry entry = found->second;
    const auto change = decode_change(entry);
    book_.applied_unseen(index, entry, change, now());
    gate_check_.committed(entry);
    if (book_.line(entry.index).change) {
      judge_effect(entry.index, *change);
    }
  }
  book_.restarted(index, nodes_[static_cast<size_t>(index)].life, applied);
  if (const auto wrong = book_.digest(index, applied, view.fsm.digest(), now()); wrong && applied > 0) {
    fail(*wrong);
  }
}

void World::on_end(int index, io::sim::Incarnation& life) {
  Node& node = nodes_[static_cast<size_t>(index)];
  node.view.reset();
  node.stop = nullptr;
  if (is_closing_) {
    return;
  }
  note_trouble(now() + 5s);
  io::Duration down = node.next_down.value_or(kRestartDelay);
  if (std::exchange(node.runs_program, false)) {
    io_->after(down, [this, index] { start_node(index); });
    return;
  }
  if (life.ending() == io::sim::Ending::exited && life.exit_code().value_or(0) != 0) {
    if (!is_explained(node)) {
      fail(node.was_started ? "a node gives up only for a reason" : "a node refuses to start only for a reason",
           node_name(index) + " exited with " + std::to_string(*life.exit_code()) + ": " + node.reason);
      return;
    }
    ++node.failed_starts;
    down = std::max(down, std::min<io::Duration>(kRestartDelayMax, kRestartDelay * node.failed_starts));
  }
  node.next_down.reset();
  io_->after(down, [this, index] { start_node(index); });
}

void World::kill(int node, io::Duration down) {
  set_next_down(node, down);
  machine(node).kill();
}

void World::kill_and_run(int node, io::Duration down, std::function<int(io::Env&)> program) {
  nodes_[static_cast<size_t>(node)].program = std::move(program);
  kill(node, down);
}

void World::power_loss(int node, io::Duration down) {
  const bool was_live = machine(node).process() != nullptr;
  set_next_down(node, down);
  machine(node).power_loss();
  if (!was_live) {
    nodes_[static_cast<size_t>(node)].next_down.reset();  // it was down already and its start is under way
  }
}

void World::stop(int node, io::Duration down) {
  Node& target = nodes_[static_cast<size_t>(node)];
  if (target.stop != nullptr && target.machine->process() != nullptr && target.machine->process()->live()) {
    set_next_down(node, down);
    target.stop->set();
  }
}

void World::explain(int node, io::Instant until) {
  io::Instant& explained = nodes_[static_cast<size_t>(node)].explained_until;
  explained = std::max(explained, until);
}

void World::change_address(int index, io::Duration down) {
  const std::string& before = cluster_address(index);
  const std::string after = node_name(index) + (before.ends_with(":7943") ? ":7944" : ":7943");
  nodes_[static_cast<size_t>(index)].config.cluster.addr = after;
  for (Node& node : nodes_) {
    for (engine::Peer& peer : node.config.cluster.peers) {
      if (peer.id == node_id(index)) peer.addr = after;
    }
  }
  if (view(index) != nullptr) {
    stop(index, down);
  } else {
    kill(index, down);
  }
}

void World::set_release(int index, const Release& release) {
  Node& node = nodes_[static_cast<size_t>(index)];
  node.release = &release;
  if (node.life == 0) {
    node.running = &release;
  }
}

void World::set_joining(int index) {
  std::string& members = nodes_[static_cast<size_t>(index)].config.cluster.initial_members;
  members.clear();
  for (int other = 0; other < options_.nodes; ++other) {
    if (other != index) {
      members += (members.empty() ? "" : ",") + node_id(other);
    }
  }
}

bool World::may_change_release(int index, const Release& release) const {
  const uint32_t oldest = releases().front().newest_type;
  bool has_other = false;
  for (const Node& node : nodes_) {
    if (&node == &nodes_[static_cast<size_t>(index)]) {
      continue;
    }
    const bool skips = node.running->skips_unknown || node.release->skips_unknown;
    const uint32_t reported = gate_check_.types_of(node.config.cluster.node_id);
    if (skips && reported > oldest) {
      return false;
    }
    has_other = has_other || (node.running->skips_unknown && node.release->skips_unknown && reported == oldest);
  }
  return !release.skips_unknown || (has_other && !is_outrun(release));
}

// It was taken back to a release below what it had reported, and what it reported was used.
bool World::is_past_boundary(const Node& node) const {
  const uint32_t newest = node.running->newest_type;
  return is_outrun(*node.running) && (!options_.is_gated || gate_check_.has_reported(node.config.cluster.node_id, newest + 1));
}

bool World::is_up(int node) const { return view(node) != nullptr; }

bool World::is_starting(int index) const {
  const Node& node = nodes_[static_cast<size_t>(index)];
  const io::sim::Incarnation* process = node.machine->process();
  return process != nullptr && process->live() && !node.was_started && !node.runs_program;
}

const engine::NodeView* World::view(int index) const {
  const Node& node = nodes_[static_cast<size_t>(index)];
  const io::sim::Incarnation* process = node.machine->process();
  return node.view && process != nullptr && process->live() ? &*node.view : nullptr;
}

raft::Index World::applied(int node) const {
  const engine::NodeView* shown = view(node);
  return shown == nullptr ? 0 : shown->fsm.applied_index();
}

int World::leader() const {
  int found = -1;
  raft::Term term = 0;
  for (int i = 0; i < options_.nodes; ++i) {
    const engine::NodeView* shown = view(i);
    if (shown != nullptr && shown->raft.is_leader() && shown->raft.core().term() > term) {
      found = i;
      term = shown->raft.core().term();
    }
  }
  return found;
}

// ---- watching --------------------------------------------------------------------------------------------------------------

void World::set_log_tap(std::function<void(std::string_view)> tap) {
  log_tap_ = std::move(tap);
  io_->set_log_sink(io::LogLevel::info, [this](io::sim::Incarnation& process, io::LogLevel level, std::string_view line) {
    on_log(process, level, line);
  });
}

bool World::runs_several_releases() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [this](const Node& node) { return node.running != nodes_.front().running; });
}

std::optional<std::string> World::row_of(engine::metastore::Bucket bucket, int node) const {
  const auto& rows = book_.replica().rows().rows();
  const auto found = rows.find(engine::metastore::row_key(bucket, node_id(node)));
  return found == rows.end() ? std::nullopt : std::optional(found->second);
}

bool World::is_draining(int node) const {
  const auto bytes = row_of(engine::metastore::Bucket::members, node);
  const auto member = bytes ? engine::metastore::decode_member(*bytes) : std::nullopt;
  return member && member->draining;
}

bool World::is_removed(int node) const { return row_of(engine::metastore::Bucket::removed_members, node).has_value(); }

void World::on_log(io::sim::Incarnation& process, io::LogLevel level, std::string_view line) {
  if (log_tap_) {
    log_tap_(std::to_string(io::to_ns(now()) / 1'000) + " us " + process.label() + " " + std::string(io::to_string(level)) +
             " " + std::string(line));
  }
  for (int i = 0; i < options_.nodes; ++i) {
    const bool tells_of_others = std::any_of(std::begin(kTellsOfOthers), std::end(kTellsOfOthers),
                                             [&](std::string_view text) { return line.find(text) != std::string_view::npos; });
    const bool is_of_release = line.find(kOlderJoinerLine) != std::string_view::npos && runs_several_releases();
    const bool is_of_removal = line.starts_with(kRemovedMemberLine) && is_removed(i);
    if (&machine(i) == &process.machine() && level == io::LogLevel::error && !tells_of_others && !is_of_release && !is_of_removal &&
        !is_explained(nodes_[static_cast<size_t>(i)])) {
      fail("no error line that the plan does not explain", node_name(i) + " logged: " + std::string(line));
    }
  }
}

void World::core_changed(int index, uint64_t life, const raft::Core& core, Watcher& watcher) {
  if (violation_ || nodes_[static_cast<size_t>(index)].life != life) {
    return;
  }
  if (const auto broken = invariants_.observe(core)) {
    fail(std::string("raft: ") + broken->invariant, broken->detail);
    return;
  }
  check_bounds(index, core);
  if (violation_) {
    return;
  }
  note_committed(core);
  const auto moment = [&](Moment which) {
    if (on_moment_) {
      on_moment_(which, index);
    }
  };
  if (watcher.is_new) {
    watcher.is_new = false;
    watcher.voted_in = core.vote().empty() ? 0 : core.term();
    watcher.last = core.last_index();
  }
  if (core.role() != watcher.role) {
    watcher.role = core.role();
    if (core.role() == raft::Role::leader) {
      ++counts_.elections;
      watcher.term_start = first_of_term(core);
      note_leader(core.applied_index());
      note_trouble(now() + 5s);
      moment(Moment::elected);
    } else if (core.role() == raft::Role::candidate) {
      moment(Moment::campaign);
    }
  }
  if (!core.vote().empty() && core.vote() != core.id() && core.term() > watcher.voted_in) {
    watcher.voted_in = core.term();
    moment(Moment::vote);
  }
  if (core.last_index() > watcher.last) {
    check_gate(index, core, watcher);
    moment(Moment::append);
  }
  watcher.last = core.last_index();
  watcher.last_applied = core.applied_index();
}

// Of a leader's own new entries. Its gate was asked at some moment since the core was looked at last, and its replica had applied the log
// that the leader came with by then.
void World::check_gate(int index, const raft::Core& core, const Watcher& watcher) {
  if (core.role() != raft::Role::leader) {
    return;
  }
  for (raft::Index i = std::max(watcher.last + 1, core.log().held_from()); i <= core.last_index(); ++i) {
    const raft::Entry& entry = core.log().at(i);
    const auto envelope = entry.type == raft::EntryType::command ? engine::metastore::read_envelope(entry.bytes()) : std::nullopt;
    if (!envelope || entry.term != core.term()) {
      continue;
    }
    note_proposed(envelope->type);
    if (!options_.is_gated) {
      continue;
    }
    const raft::Index applied = std::max(core.applied_index(), this->applied(index));
    const uint32_t own = nodes_[static_cast<size_t>(index)].running->newest_type;
    const raft::Index from = std::max(watcher.last_applied, watcher.term_start);
    if (const auto wrong = gate_check_.appended(core.id(), own, from, applied, core.configurations().at(i), entry)) {
      fail("an entry type is proposed only when everybody has reported it", *wrong);
      return;
    }
  }
}

void World::tell(Moment moment, int index, uint64_t life) {
  if (on_moment_ && nodes_[static_cast<size_t>(index)].life == life) {
    on_moment_(moment, index);
  }
}

void World::check_bounds(int index, const raft::Core& core) {
  auto wrong = beyond_bounds(core, core.settings());
  const std::optional<engine::NodeView>& view = nodes_[static_cast<size_t>(index)].view;
  if (!wrong && view) {
    wrong = beyond_bounds(view->raft, view->raft.link_settings(), core.settings());
  }
  if (wrong) {
    fail(kBoundsRule, *wrong);
  }
}

// Entries that are committed and that no node has told of yet. They are in the memory of whoever learns that they are committed.
void World::note_committed(const raft::Core& core) {
  committed_.erase(committed_.begin(), committed_.upper_bound(book_.last_index()));
  const raft::Index known = committed_.empty() ? book_.last_index() : committed_.rbegin()->first;
  for (raft::Index i = std::max(known + 1, core.log().held_from()); i <= core.commit_index(); ++i) {
    committed_.emplace(i, core.log().at(i));
  }
}

std::optional<Change> decode_change(const raft::Entry& entry) {
  namespace ms = engine::metastore;
  if (entry.type != raft::EntryType::command) {
    return std::nullopt;
  }
  const auto envelope = ms::read_envelope(entry.bytes());
  if (!envelope) {
    return std::nullopt;
  }
  const bool is_known = envelope->type >= 1 && envelope->type <= ms::kNewestEntryType;
  const auto command = is_known ? ms::decode_payload(envelope->type, envelope->payload) : std::nullopt;
  if (!command) {
    return std::nullopt;
  }
  Change change;
  if (const auto* create = std::get_if<ms::CreateTopic>(&*command)) {
    change = {ChangeKind::create, model_topic(create->topic)};
  } else if (const auto* update = std::get_if<ms::UpdateTopic>(&*command)) {
    change = {ChangeKind::update, model_topic(update->topic)};
  } else if (const auto* remove = std::get_if<ms::DeleteTopic>(&*command)) {
    change.kind = ChangeKind::remove;
    change.topic.name = remove->name;
  } else if (const auto* linked = std::get_if<ms::CreateTopicLinked>(&*command)) {
    change = {ChangeKind::create, model_topic(linked->topic), true, std::nullopt, !linked->schema.empty() || linked->link};
  } else if (const auto* update_if = std::get_if<ms::UpdateTopicIf>(&*command)) {
    change = {ChangeKind::update, model_topic(update_if->topic), true, update_if->expected_id};
  } else if (const auto* remove_if = std::get_if<ms::DeleteTopicIf>(&*command)) {
    change = {ChangeKind::remove, {}, true, remove_if->expected_id};
    change.topic.name = remove_if->name;
  } else {
    return std::nullopt;
  }
  return change.topic.name.empty() || is_command_topic(change.topic.name) ? std::nullopt : std::optional(change);
}

void World::image_installed(int index, uint64_t life, raft::Index applied) {
  const Node& node = nodes_[static_cast<size_t>(index)];
  if (violation_ || node.life != life) {
    return;
  }
  auto wrong = book_.installed(index, life, applied, now());
  if (!wrong && node.view) {
    wrong = book_.digest(index, applied, node.view->fsm.digest(), now());
  }
  if (wrong) {
    fail(*wrong);
  }
}

// The label is the index that the image's content has. That the rows add up to the digest is the image's own affair.
void World::snapshot_taken(int index, uint64_t life, const raft::SnapshotLabel& label) {
  const Node& node = nodes_[static_cast<size_t>(index)];
  if (violation_ || node.life != life) {
    return;
  }
  const std::string path = raft::snapshot_format::path_of(label.index, label.term);
  const auto head = read_image_head(node.machine->volume().tree().content(path).value_or(""));
  if (!head) {
    return;  // not whole, or not any more: another check's business
  }
  if (options_.node.cluster.raft_snapshot_threshold == engine::Config().cluster.raft_snapshot_threshold &&
      label.index >= options_.node.cluster.raft_snapshot_threshold) {
    SOMETIMES("simulator: a snapshot at the production threshold");
  }
  // A release that keeps no index leaves it to the label.
  const raft::Index content = head->applied_index == 0 ? label.index : head->applied_index;
  auto wrong = book_.labelled(index, label.index, content, head->digest, now());
  if (wrong) {
    fail(*wrong);
  }
}

// What a start went by must be there: the digest kept beside the rows is that of the rows.
void World::audit(int index) {
  const engine::NodeView* shown = view(index);
  if (shown == nullptr) {
    return;
  }
  const auto audit = shown->fsm.audit();
  if (audit.ok() && audit->digest_of_rows != audit->stored.digest) {
    fail("a database adds up", node_name(index) + " has started at index " + std::to_string(audit->stored.applied_index) +
                                   ", and its rows do not have the digest kept beside them");
  }
}

void World::entry_applied(int index, uint64_t life, const raft::Entry& entry, const std::string& answer) {
  const Node& node = nodes_[static_cast<size_t>(index)];
  if (violation_ || node.life != life) {
    return;
  }
  const auto envelope = engine::metastore::read_envelope(entry.bytes());
  if (entry.type == raft::EntryType::command && envelope && envelope->type > node.running->newest_type) {
    fail("no release counts an entry that it does not know",
         node_name(index) + ", which is " + node.running->name + ", has applied entry type " + std::to_string(envelope->type) +
             " at index " + std::to_string(entry.index));
    return;
  }
  // Nodes propose by themselves too: placements, prunes, dead marks.
  note_proposed(entry.type == raft::EntryType::command && envelope ? envelope->type : 0);
  const auto change = decode_change(entry);
  const auto decoded = engine::metastore::decode_answer(answer);
  const bool is_first = entry.index > book_.last_index();
  if (is_first && decoded && entry.index == book_.last_index() + 1) {
    if (const auto wrong = judge_assignment(book_.replica().rows(), entry, *decoded)) {
      fail("owners are not overwritten by placement, and move by compare-and-set", *wrong + " (index " + std::to_string(entry.index) + ")");
      return;
    }
    if (const auto wrong = judge_before(book_.replica().rows(), entry, *decoded)) {
      fail("a dead mark does not stand over a newer heartbeat", *wrong + " (index " + std::to_string(entry.index) + ")");
      return;
    }
  }
  if (auto wrong = book_.applied(index, life, entry, answer, !decoded || !decoded->ok(), change, now())) {
    // What it was about, for whoever reads the failure.
    if (change) {
      wrong->sentence += "; the entry is about " + to_text(change->topic);
    }
    if (decoded && !decoded->ok()) {
      wrong->sentence += ", the answer here is " + std::string(decoded->text());
    }
    fail(*wrong);
    return;
  }
  if (is_first) {
    gate_check_.committed(entry);
  }
  if (is_first && decoded) {
    if (const auto left = judge_after(book_.replica().rows(), entry, *decoded)) {
      fail("what is gone leaves nothing to the next one of its name", *left + " (index " + std::to_string(entry.index) + ")");
      return;
    }
    note_answer(entry.bytes(), *decoded);
  }
  if (is_first && book_.line(entry.index).change) {
    judge_effect(entry.index, *change);
  }
  if (const engine::NodeView* shown = view(index); shown != nullptr && entry.index == shown->fsm.applied_index()) {
    if (const auto wrong = book_.digest(index, entry.index, shown->fsm.digest(), now())) {
      fail(*wrong);
    }
  }
}

void World::judge_effect(raft::Index index, const Change& change) {
  const auto call = call_of_tag(change.topic.retention_ms);
  if (change.kind == ChangeKind::remove || !call || *call > calls_.size()) {
    return;
  }
  if (const auto wrong = call_check_.judge_effect(*calls_[*call - 1], index)) {
    fail(*wrong);
  }
}

void World::fail(std::string rule, std::string sentence) {
  if (!violation_) {
    violation_ = Violation{std::move(rule), std::move(sentence), now(), io_->events()};
    io_->report_violation(violation_->rule + ": " + violation_->sentence);
  }
}

// ---- calls -----------------------------------------------------------------------------------------------------------------

Call& World::begin_call(Call wish) {
  calls_.push_back(std::make_unique<Call>(std::move(wish)));
  Call& call = *calls_.back();
  call.id = calls_.size();
  call.asked = now();
  call.acked_before = call_check_.acked();
  call.early_answers_before = early_answers();
  if (view(call.node) != nullptr) {
    call.life = nodes_[static_cast<size_t>(call.node)].life;
    call.applied_before = applied(call.node);
  }
  for (int i = 0; i < options_.nodes; ++i) {
    const engine::NodeView* shown = view(i);
    if (shown != nullptr && shown->raft.is_leader()) {
      const raft::Index led = shown->raft.applied_index();
      call.least_leader_applied = std::min(call.least_leader_applied.value_or(led), led);
    }
  }
  pending_.push_back(&call);
  ++counts_.calls;
  return call;
}

void World::note_leader(raft::Index applied) {
  for (Call* call : pending_) {
    call->least_leader_applied = std::min(call->least_leader_applied.value_or(applied), applied);
  }
}

uint64_t World::early_answers() const {
  const auto found = board_.probes.find(kEarlyAnswer);
  return found == board_.probes.end() ? 0 : found->second;
}

void World::end_call(Call& call) {
  std::erase(pending_, &call);
  call.answered = now();
  if (const engine::NodeView* shown = view(call.node)) {
    call.applied_after = std::max<raft::Index>(shown->fsm.applied_index(), shown->raft.applied_index());
    call.same_life = call.life != 0 && call.life == nodes_[static_cast<size_t>(call.node)].life;
  }
  io_->record(io::sim::TraceKind::world, nullptr, "call", call.id, static_cast<uint64_t>(call.status), call.applied_after);
  counts_.calls_ok += call.outcome == Outcome::ok ? 1 : 0;
  counts_.calls_refused += call.outcome == Outcome::refused ? 1 : 0;
  counts_.calls_unknown += call.outcome == Outcome::unknown ? 1 : 0;
  if (violation_) {
    return;
  }
  if (const auto wrong = call_check_.judge(call, early_answers() > call.early_answers_before)) {
    fail(*wrong);
    return;
  }
  if (call.same_life && call.answered - call.asked > kCallBound && trouble_until_ < call.asked) {
    fail("every call ends within its bound", to_text(call) + " took " +
                                                 std::to_string((call.answered - call.asked) / std::chrono::milliseconds(1)) +
                                                 " ms at a node that nothing was wrong with");
  }
}

void World::end_load() {
  load_over_ = true;
  load_over_event_.set();
}

}  // namespace sim
