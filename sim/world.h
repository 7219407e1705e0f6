// A cluster of nodes in one simulated world, watched by every check there is.
//
// Each node is a machine that runs engine::run_node, the function that narad's main runs, and is started again by a supervisor
// whenever it has ended. Clients run on a machine of their own and speak HTTP to the nodes over the simulated network. Faults
// come from above (chaos/driver): this class offers the machines, the supervisor's delays and the moments to strike at, and is
// told which errors a fault explains.
//
// The first violation stops the run: what comes after a broken rule means nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/config.h"
#include "engine/node.h"
#include "io/sim/switches.h"
#include "io/sim/world.h"
#include "raft/invariants.h"
#include "sim/call_check.h"
#include "sim/gate_check.h"
#include "sim/history.h"
#include "sim/load.h"
#include "sim/log_book.h"
#include "sim/raft_trace.h"
#include "sim/releases.h"
#include "sim/violation.h"

namespace sim {

class Proposals;

struct WorldOptions {
  uint64_t seed = 0;
  std::set<io::Defence> defects;  // switched on while the world lives
  int nodes = 3;
  // The nodes that begin, from the first on: they alone may bootstrap the cluster. The others join it, with empty volumes, each when grow()
  // says so. 0: all.
  int initial = 0;
  engine::Config node;        // of every node; ids, addresses and peers are filled in
  io::sim::WorldSettings io;
  io::sim::MachineSettings machine;  // of every node; the name is filled in
  LoadSettings load;
  // The load proposes an entry type only when the node's gate lets it pass. False: whatever the proposing node's release knows, so that the
  // older ones stop.
  bool is_gated = true;
};

// Moments that a fault may wait for.
// rebased: a start takes the metastore's rows for what they may not be (restart row 11). Such a life tells nobody of itself, and whoever
// brought it about ends it.
enum class Moment { elected, campaign, vote, append, install, rebased };

// Counts for reports.
struct WorldCounts {
  uint64_t calls = 0;
  uint64_t calls_ok = 0;
  uint64_t calls_refused = 0;
  uint64_t calls_unknown = 0;
  uint64_t starts = 0;
  uint64_t elections = 0;
};

class World {
 public:
  explicit World(WorldOptions options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  io::sim::World& io() { return *io_; }
  io::Instant now() const { return io_->now(); }
  const WorldOptions& options() const { return options_; }
  int node_count() const { return options_.nodes; }
  io::sim::Machine& machine(int node) { return *nodes_[static_cast<size_t>(node)].machine; }
  io::sim::Machine& client_machine() { return *clients_; }
  std::string http_address(int node) const;
  std::string cluster_address(int node) const;
  const std::string& node_id(int node) const { return nodes_[static_cast<size_t>(node)].config.cluster.node_id; }

  // Starts every initial node and the clients' process.
  void start();
  // Starts a node that is not an initial one, for the first time. Nothing happens when it has been started before.
  void grow(int node);
  bool is_initial(int node) const { return options_.initial == 0 || node < options_.initial; }
  bool has_begun(int node) const { return nodes_[static_cast<size_t>(node)].life > 0; }

  // ---- For faults ----------------------------------------------------------------------------------------------------------
  // Ends the node's process (the kinds of io::sim), and starts it again after `down`.
  void kill(int node, io::Duration down);
  void power_loss(int node, io::Duration down);
  void stop(int node, io::Duration down);  // gracefully
  // Kills the node, runs `program` on its machine instead, once, and then starts the node again after `down`.
  void kill_and_run(int node, io::Duration down, std::function<int(io::Env&)> program);
  // When the node ends next, however that happens, it is started again after `down`.
  void set_next_down(int node, io::Duration down) { nodes_[static_cast<size_t>(node)].next_down = down; }
  // Stops the node gracefully; from its next start on it is reached at another address of its machine, and at that one only.
  void change_address(int node, io::Duration down);
  // What the node finds at a start is worth nothing, whatever the start makes of it: each life counts as rebased, until this is taken back.
  void set_distrusted(int node, bool is_distrusted) { nodes_[static_cast<size_t>(node)].is_distrusted = is_distrusted; }
  // From its next start on the node is one that joins: its cluster.initial_members names the others only.
  void set_joining(int node);
  // The node is another release from its next start on. Before start(): from the first.
  void set_release(int node, const Release& release);
  const Release& release(int node) const { return *nodes_[static_cast<size_t>(node)].release; }
  const Release& running_release(int node) const { return *nodes_[static_cast<size_t>(node)].running; }
  // What the node may have to apply goes beyond that release.
  bool is_outrun(const Release& release) const { return newest_proposed_ > release.newest_type; }
  // Whether an operator who keeps to the upgrade rules may stop the node now and start it as that release. A release that passes over what
  // it does not know: only while another member of it is on record. And nobody changes a node's release while another one that was taken
  // back to such a release has not reported it yet.
  bool may_change_release(int node, const Release& release) const;
  // Error-level log lines of the node, its refusals to start and its giving up are due to a fault until `until`.
  void explain(int node, io::Instant until);
  // Something is wrong with the network, a disk or a node until `until`: calls may take long.
  void note_trouble(io::Instant until) { trouble_until_ = std::max(trouble_until_, until); }
  // Called at each such moment, from inside a fiber of the node: only schedules.
  void set_on_moment(std::function<void(Moment, int node)> hook) { on_moment_ = std::move(hook); }
  // The live node that leads in the highest term; -1 when none does.
  int leader() const;
  bool is_up(int node) const;
  // By what is committed: an operator's decommission of the node is on its way, or has removed it.
  bool is_draining(int node) const;
  bool is_removed(int node) const;
  // It lives, and has not come as far as serving.
  bool is_starting(int node) const;
  // Lives of the node that came as far as serving.
  uint64_t good_starts(int node) const { return nodes_[static_cast<size_t>(node)].good_starts; }

  // ---- For clients ---------------------------------------------------------------------------------------------------------
  // Takes down what the world sees as a call is made; the reference stays valid.
  Call& begin_call(Call wish);
  // The answer is in `call`: takes down the rest and judges it.
  void end_call(Call& call);
  bool load_over() const { return load_over_; }
  io::Event& load_over_event() { return load_over_event_; }
  void note_proposed(uint32_t type) { newest_proposed_ = std::max(newest_proposed_, type); }
  // No new calls; those under way go on.
  void end_load();
  // What the load's proposals were answered, against the log. Once nothing is under way.
  void check_proposals();
  uint64_t calls_pending() const { return pending_.size(); }

  // ---- What is known -------------------------------------------------------------------------------------------------------
  const LogBook& book() const { return book_; }
  const std::vector<std::unique_ptr<Call>>& calls() const { return calls_; }
  const std::optional<Violation>& violation() const { return violation_; }
  const WorldCounts& counts() const { return counts_; }
  const std::map<std::string, uint64_t>& probes() const { return board_.probes; }
  // What the node shows of itself; nullptr while it is not up.
  const engine::NodeView* view(int node) const;
  raft::Index applied(int node) const;

  // Every log line of the nodes, from info on, with time and node. Before start().
  void set_log_tap(std::function<void(std::string_view line)> tap);

  // One JSON object a line for each raft event (raft_trace.h). Before start().
  void set_raft_trace(std::function<void(std::string_view line)> sink);

  // Records a broken rule and stops the run. May be called from anywhere.
  void fail(std::string rule, std::string sentence);
  void fail(const Violation& violation) { fail(violation.rule, violation.sentence); }

 private:
  class Watcher;

  struct Node {
    io::sim::Machine* machine = nullptr;
    engine::Config config;
    const Release* release = &own_release();  // of the next life
    const Release* running = &own_release();  // of this life
    uint64_t life = 0;
    std::unique_ptr<Watcher> watcher;  // of this life
    std::unique_ptr<Watcher> watcher_before;
    std::optional<engine::NodeView> view;
    io::Event* stop = nullptr;  // of this life, while it runs
    std::string reason;         // why it ended by itself
    bool was_started = false;   // in this life
    bool is_distrusted = false;
    std::optional<io::Duration> next_down;
    io::Instant explained_until{};
    uint32_t failed_starts = 0;
    uint64_t good_starts = 0;
    std::function<int(io::Env&)> program;  // to run instead, next
    bool runs_program = false;
  };

  void start_node(int node);
  std::optional<std::string> row_of(engine::metastore::Bucket bucket, int node) const;  // the row under the node's id
  int run(int node, io::Env& env);
  void take_restart(int node, const engine::NodeView& view);
  void on_end(int node, io::sim::Incarnation& life);
  bool runs_several_releases() const;
  void on_log(io::sim::Incarnation& process, io::LogLevel level, std::string_view line);
  void core_changed(int node, uint64_t life, const raft::Core& core, Watcher& watcher);
  void entry_applied(int node, uint64_t life, const raft::Entry& entry, const std::string& answer);
  void check_bounds(int node, const raft::Core& core);
  void note_committed(const raft::Core& core);
  void image_installed(int node, uint64_t life, raft::Index index);
  void snapshot_taken(int node, uint64_t life, const raft::SnapshotLabel& label);
  void audit(int node);
  void tell(Moment moment, int node, uint64_t life);
  void judge_effect(raft::Index index, const Change& change);
  void check_gate(int node, const raft::Core& core, const Watcher& watcher);
  bool is_past_boundary(const Node& node) const;
  // The node cannot be blamed for giving up now: of a fault, or of its release.
  bool is_explained(const Node& node) const { return now() <= node.explained_until || is_past_boundary(node); }
  uint64_t early_answers() const;
  void note_leader(raft::Index applied);

  WorldOptions options_;
  io::sim::Switchboard board_;
  io::sim::SwitchboardGuard guard_{&board_};
  std::unique_ptr<io::sim::World> io_;  // ended before everything that its fibers refer to
  bool is_closing_ = false;
  std::vector<Node> nodes_;
  io::sim::Machine* clients_ = nullptr;
  raft::Invariants invariants_;
  LogBook book_;
  std::map<raft::Index, raft::Entry> committed_;  // and not in the book yet
  CallCheck call_check_{book_};
  GateCheck gate_check_;
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<Call*> pending_;
  io::Instant trouble_until_{};
  uint32_t newest_proposed_ = 0;  // entry type
  std::unique_ptr<Proposals> proposals_;
  std::function<void(Moment, int)> on_moment_;
  std::function<void(std::string_view)> log_tap_;
  std::optional<RaftTrace> raft_trace_;
  bool load_over_ = false;
  io::Event load_over_event_;
  std::optional<Violation> violation_;
  WorldCounts counts_;
};

// The command in an entry as the model reads it; nothing when it is none or undecodable.
std::optional<Change> decode_change(const raft::Entry& entry);

}  // namespace sim
