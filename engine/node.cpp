#include "engine/node.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "engine/api/http_server.h"
#include "engine/api/routes.h"
#include "engine/cluster/admin_service.h"
#include "engine/cluster/controller.h"
#include "engine/cluster/entry_gate.h"
#include "engine/cluster/forget_service.h"
#include "engine/cluster/forward.h"
#include "engine/cluster/heartbeater.h"
#include "engine/cluster/join_rules.h"
#include "engine/cluster/join_service.h"
#include "engine/cluster/joiner.h"
#include "engine/cluster/leader_confirm.h"
#include "engine/cluster/listener.h"
#include "engine/cluster/mover.h"
#include "engine/cluster/node_client.h"
#include "engine/cluster/node_server.h"
#include "engine/cluster/node_service.h"
#include "engine/cluster/registry.h"
#include "engine/cluster/servers.h"
#include "engine/cluster/status_client.h"
#include "engine/data_dir.h"
#include "engine/metastore/fsm_home.h"
#include "engine/metastore/records_reader.h"
#include "engine/metastore/ownership.h"
#include "engine/metastore/replica.h"
#include "engine/metrics.h"
#include "engine/node_settings.h"
#include "engine/raft_proposer.h"
#include "engine/readiness.h"
#include "engine/topics/create_gate.h"
#include "engine/topics/manager.h"
#include "engine/version.h"
#include "io/check.h"
#include "io/probe.h"
#include "raft/server.h"

namespace engine {

namespace {

// How long the startup reconcile waits for the replica to catch up before the destructive part of it is left out for this start.
constexpr io::Duration kReconcileWait = std::chrono::seconds(60);
constexpr io::Duration kPoll = std::chrono::milliseconds(100);
// How long a stop waits for another server to lead.
constexpr io::Duration kHandOverTimeout = std::chrono::seconds(2);

std::string_view rpc_outcome(const cluster::CallResult& result) {
  if (result.kind != cluster::CallResult::Kind::answered) {
    return result.timed_out ? "timeout" : "error";
  }
  if (result.reply.status < 400) {
    return "ok";
  }
  return result.reply.status < 500 ? "rejected" : "failed";
}

std::string_view raft_state_name(const raft::ServerStatus& status) {
  if (status.is_stopped) {
    return "shutdown";
  }
  switch (status.role) {
    case raft::Role::leader:
      return "leader";
    case raft::Role::follower:
      return "follower";
    case raft::Role::pre_candidate:
    case raft::Role::candidate:
      return "candidate";
  }
  return "follower";
}

// The parts of a node in the order in which they are made; each refers only to those before it.
class Node {
 public:
  Node(io::Env& env, const Config& config, const Hooks& hooks) : env_(env), config_(config), hooks_(hooks) {}

  io::Status boot();
  // Serves until `stop` is set or raft ends. Ok after an orderly stop, else why the node could not go on.
  io::Status serve(io::Event& stop);

 private:
  io::Status bind_listeners();
  io::Status read_raft();
  void look_for_cluster();
  io::Status open_raft();
  void make_services();
  void make_controller();
  cluster::NodeStatusFacts own_status();
  cluster::NodeReply ask_for_flip(const cluster::CompleteMoveRequest& request, io::Instant deadline);
  void make_cluster_services();
  void run_cluster_services(io::Scope& scope);
  void reconcile();
  void hand_over_leadership();
  MetricsSnapshot snapshot() const;

  io::Env& env_;
  const Config& config_;
  const Hooks& hooks_;
  const io::Instant started_at_ = env_.now();
  bool is_joining_ = config_.is_join_only();  // it does not bootstrap; also when its probe says that a cluster exists
  io::Instant serving_since_{};

  std::unique_ptr<io::DirectoryLock> data_lock_;
  Metrics metrics_;
  std::unique_ptr<metastore::FsmHome> fsm_home_;
  metastore::Fsm* fsm_ = nullptr;  // its home's
  std::unique_ptr<raft::RaftServer> raft_;
  std::unique_ptr<metastore::Replica> replica_;
  std::unique_ptr<RaftProposer> proposer_;
  std::unique_ptr<cluster::ClusterGate> gate_;
  std::unique_ptr<metastore::Ownership> ownership_;
  std::unique_ptr<cluster::NodeClientPool> clients_;
  std::unique_ptr<cluster::Forwarder> forwarder_;
  std::unique_ptr<cluster::RaftServers> servers_;
  std::unique_ptr<cluster::StatusClient> statuses_;
  std::unique_ptr<cluster::Controller> controller_;
  std::unique_ptr<cluster::Mover> mover_;
  std::unique_ptr<cluster::AdminService> admin_;
  std::unique_ptr<topics::Manager> manager_;
  topics::CreateGate create_gate_;
  std::unique_ptr<cluster::Registry> registry_;
  std::unique_ptr<cluster::JoinService> join_service_;
  std::unique_ptr<cluster::ForgetService> forget_service_;
  std::unique_ptr<cluster::Joiner> joiner_;
  std::unique_ptr<cluster::Heartbeater> heartbeater_;
  std::unique_ptr<cluster::NodeService> service_;
  std::unique_ptr<cluster::LeaderConfirm> confirm_;
  std::unique_ptr<cluster::NodeServer> node_server_;
  std::unique_ptr<cluster::ClusterListener> cluster_listener_;
  std::unique_ptr<Readiness> readiness_;
  std::unique_ptr<api::Api> api_;
  std::unique_ptr<api::HttpServer> http_;
};

// ---- Boot ----------------------------------------------------------------------------------------------------------------------

io::Status Node::boot() {
  env_.log.info("narad serve starting", {{"addr", config_.http.addr},
                                         {"cluster_addr", config_.cluster.addr},
                                         {"data_dir", config_.storage.data_dir},
                                         {"version", kVersion}});
  // 1. The data directory is ours alone before any byte of it is read or written.
  io::Result<std::unique_ptr<io::DirectoryLock>> lock = claim_data_directory(env_.disk);
  if (!lock.ok()) {
    return lock.error();
  }
  data_lock_ = std::move(*lock);
  // 2. The ports, before the stores: a port in use is refused with nothing touched. Nothing is answered yet; connections wait.
  io::Status status = bind_listeners();
  // 3. Raft's stores are read before the metastore is opened, which changes files: damage in them is refused with nothing changed.
  if (status.ok()) {
    status = read_raft();
  }
  // 4. A node that could bootstrap and has nothing asks its peers first whether a cluster exists: its volume may have been wiped.
  // Meanwhile it answers them that it has no configuration, and nothing else.
  if (status.ok()) {
    look_for_cluster();
  }
  // 5. What raft holds is compared with the metastore, which is looked at only, and what to do is decided (raft/restart.h): a refusal
  // leaves everything as it was found. Only then the metastore is opened, before raft goes on: its applied index says where the replay
  // of the log begins.
  if (status.ok()) {
    status = open_raft();
  }
  // 6. What serves, before anybody can ask: first the gate that holds creations back on every transport (create_gate_ is armed as it is
  // made), then whatever a peer or a client may reach.
  if (status.ok()) {
    make_services();
  }
  return status;
}

io::Status Node::bind_listeners() {
  http_ = std::make_unique<api::HttpServer>(env_, http_settings(config_),
                                            [this](const api::HttpRequest& request) { return api_->handle(request); });
  io::Status status = http_->listen(config_.http.addr);
  if (!status.ok()) {
    return io::fail(status.error().kind, "http.addr (" + config_.http.addr + "): " + status.error().message);
  }
  cluster_listener_ = std::make_unique<cluster::ClusterListener>(
      env_,
      [this](std::unique_ptr<io::Stream> stream, std::string first) { node_server_->serve(std::move(stream), std::move(first)); },
      [this](std::unique_ptr<io::Stream> stream, std::string first) {
        if (raft_->is_running()) {  // not while the node probes: its log does not exist yet
          raft_->serve(std::move(stream), std::move(first));
        }
      });
  status = cluster_listener_->listen(config_.cluster.addr);
  if (!status.ok()) {
    return io::fail(status.error().kind, "cluster.addr (" + config_.cluster.addr + "): " + status.error().message);
  }
  return {};
}

io::Status Node::read_raft() {
  raft_ = std::make_unique<raft::RaftServer>(env_, raft_options(config_), hooks_.raft_observer);
  io::Status read = raft_->read();
  if (!read.ok()) {
    return io::fail(read.error().kind, "raft: " + read.error().message);
  }
  return {};
}

// What a peer is told while this node probes.
cluster::NodeReply answer_while_probing(std::string_view payload) {
  if (static_cast<cluster::Op>(payload.front()) != cluster::Op::join_cluster) {
    return cluster::error_reply(503, "this node is starting");
  }
  return cluster::decide_join(cluster::decode_join_cluster(payload), cluster::JoinFacts{}).reply;
}

void Node::look_for_cluster() {
  fsm_home_ = std::make_unique<metastore::FsmHome>(env_, fsm_settings(config_));
  if (is_joining_) {
    env_.log.info("node is not an initial member; will join the existing cluster instead of bootstrapping",
                  {{"node", config_.cluster.node_id}});
    return;
  }
  const cluster::JoinerSettings settings = joiner_settings(config_);
  if (settings.peers.empty() || !raft_->is_blank()) {
    return;
  }
  // Only an empty volume joins by itself. Metadata without raft's state may be the cluster's last copy: the restart table refuses the start.
  const io::Result<raft::StateMachineFacts> facts = fsm_home_->look();
  if (!facts.ok() || facts->holds_anything) {
    SOMETIMES("cluster: a node that has lost raft's state alone does not ask for a cluster");
    return;
  }
  cluster::NodeClientPool clients(env_, {});
  node_server_ = std::make_unique<cluster::NodeServer>(env_, answer_while_probing);
  io::with_scope([&](io::Scope& scope) {
    clients.run(scope);
    cluster_listener_->run(scope);
    is_joining_ = cluster::probe_for_cluster(env_, clients, settings);
    scope.cancel();
  });
  if (is_joining_) {
    env_.log.warn("initial member has no raft state but a configured cluster answered; joining it instead of bootstrapping",
                  {{"node", config_.cluster.node_id}});
    raft_->join_instead();
  }
}

io::Status Node::open_raft() {
  io::Status opened = raft_->open(*fsm_home_);
  if (opened.ok()) {
    fsm_ = &fsm_home_->fsm();
    return {};
  }
  const std::optional<raft::RestartDecision>& decision = raft_->decision();
  const bool is_refused = decision && decision->action == raft::RestartDecision::Action::refuse;
  const bool is_named = opened.error().message.starts_with("metastore: ");
  const bool is_metastore = is_refused && decision->row != raft::RestartRow::no_term_record;
  const std::string prefix = is_named ? "" : is_metastore ? "metastore: " : "raft: ";
  return io::fail(opened.error().kind, prefix + opened.error().message);
}

void Node::make_services() {
  replica_ = std::make_unique<metastore::Replica>(env_, *raft_, *fsm_);
  proposer_ = std::make_unique<RaftProposer>(*raft_, *replica_);
  gate_ = std::make_unique<cluster::ClusterGate>(env_, *fsm_, *raft_, gate_self(config_));
  ownership_ = std::make_unique<metastore::Ownership>(*replica_, *fsm_);
  clients_ = std::make_unique<cluster::NodeClientPool>(
      env_, cluster::NodeClientSettings{}, [this](uint8_t op, const cluster::CallResult& result, io::Duration took) {
        metrics_.rpc_request(cluster::op_name(op), rpc_outcome(result), took);
      });
  forwarder_ = std::make_unique<cluster::Forwarder>(env_, *raft_, *clients_);
  make_cluster_services();
  make_controller();
  manager_ = std::make_unique<topics::Manager>(topics::Manager::Parts{env_, *fsm_, *proposer_, *gate_, controller_->assigner(),
                                                                      topic_limits(config_), ownership_.get(), &create_gate_});
  service_ = std::make_unique<cluster::NodeService>(
      env_, *manager_, *raft_, *replica_, *admin_,
      cluster::ClusterServices{join_service_.get(), registry_.get(), forget_service_.get(), release_of(config_).frames});
  confirm_ = std::make_unique<cluster::LeaderConfirm>(env_, *replica_, *fsm_, *raft_, *clients_);
  node_server_ = std::make_unique<cluster::NodeServer>(
      env_, [this](std::string_view payload) { return service_->answer(payload); },
      [this](std::string_view payload) { return service_->answer_at_once(payload); });
  readiness_ = std::make_unique<Readiness>(*raft_, *replica_);
  api_ = std::make_unique<api::Api>(api::Api::Parts{
      env_, *manager_, topic_limits(config_), *raft_, *replica_, *forwarder_, *admin_,
      [this](std::string_view id) { return forget_service_->answer(cluster::encode(cluster::ForgetServerRequest{std::string(id)})); },
      *readiness_, metrics_,
      [this] { return metrics_.text(snapshot()); }});
}

// The controller, which acts while this node leads; the destination's side of moves, which any node may be; and the operator's view of both.
void Node::make_controller() {
  const auto last_change = [this] {
    const metastore::DomainVersions& versions = fsm_->versions();
    return std::max(versions.latest(metastore::Domain::topics), versions.latest(metastore::Domain::assignments));
  };
  servers_ = std::make_unique<cluster::RaftServers>(env_, *raft_, config_.cluster.node_id);
  statuses_ = std::make_unique<cluster::StatusClient>(env_, *clients_, *servers_, [this] { return own_status(); });
  controller_ = std::make_unique<cluster::Controller>(cluster::Controller::Parts{
      env_, *fsm_, *proposer_, *gate_, *servers_,
      [this](const metastore::Member& member, io::Instant deadline) { return statuses_->ask_backlog(member, deadline); },
      [this](std::string_view id) { return registry_->newest_given(id); }, last_change});
  mover_ = std::make_unique<cluster::Mover>(cluster::Mover::Parts{
      env_, *fsm_, config_.cluster.node_id, [this] { return replica_->has_caught_up(); },
      [this] { return fsm_->versions().latest(metastore::Domain::assignments); },
      [this](const cluster::CompleteMoveRequest& request, io::Instant deadline) { return ask_for_flip(request, deadline); }});
  admin_ = std::make_unique<cluster::AdminService>(cluster::AdminService::Parts{
      env_, *fsm_, *proposer_, *servers_, controller_->moves(), controller_->decommission(), *statuses_,
      [this] { return raft_->leader().id; }, [this] { return own_status(); }});
}

cluster::NodeStatusFacts Node::own_status() {
  cluster::NodeStatusFacts facts;
  facts.node = config_.cluster.node_id;
  const io::Result<std::optional<metastore::Member>> record =
      metastore::get_member(*fsm_, config_.cluster.node_id, env_.after(cluster::kStatusTimeout));
  facts.is_draining = record.ok() && record->has_value() && (*record)->draining;
  facts.moves = mover_->moves();
  return facts;
}

cluster::NodeReply Node::ask_for_flip(const cluster::CompleteMoveRequest& request, io::Instant deadline) {
  if (!raft_->is_leader()) {
    return forwarder_->write(cluster::encode(request));
  }
  Reply reply = admin_->complete_move_here(request.topic, request.partition, request.expected_owner, request.target, deadline);
  return {static_cast<uint16_t>(reply.status), "application/json", std::move(reply.body)};
}

void Node::make_cluster_services() {
  const Config::Tuning::Release release = release_of(config_);
  registry_ = std::make_unique<cluster::Registry>(env_, *fsm_, *proposer_);
  join_service_ = std::make_unique<cluster::JoinService>(env_, *raft_, *replica_, *fsm_, *proposer_, release.newest_type);
  forget_service_ = std::make_unique<cluster::ForgetService>(env_, *raft_, *replica_, *fsm_);
  cluster::JoinerSettings joining = joiner_settings(config_);
  joining.is_joining = is_joining_;
  joiner_ = std::make_unique<cluster::Joiner>(env_, *raft_, *replica_, *clients_, std::move(joining));
  heartbeater_ = std::make_unique<cluster::Heartbeater>(
      env_, *raft_, *clients_, [this](const cluster::RegisterMemberRequest& request) { return registry_->register_member(request); },
      member_of(config_, http_->address()), release.frames);
}

// ---- Serving -------------------------------------------------------------------------------------------------------------------

io::Status Node::serve(io::Event& stop) {
  io::Condition changed;
  bool raft_ended = false;
  io::Status watched;  // the metastore, beside what raft hands to it
  io::with_scope([&](io::Scope& scope) {
    scope.spawn("raft", [&] {
      raft_->run();
      raft_ended = true;
      changed.notify_all();
    });
    scope.spawn("node/metastore", [&] {
      watched = fsm_->watch();
      // Without a state machine nothing more is promised to anybody: no vote, no acknowledgement, no leadership to hand over.
      raft_->stop();
      changed.notify_all();
    });
    scope.spawn("node/stop", [&] {
      stop.wait();
      changed.notify_all();
    });
    clients_->run(scope);
    NARAD_CHECK(!create_gate_.is_open(), "creations are held back before anybody can ask for one");
    scope.spawn("controller/run", [&] { controller_->run(); });
    scope.spawn("node/mover", [&] { mover_->run(); });
    cluster_listener_->run(scope);
    http_->run(scope);
    run_cluster_services(scope);
    serving_since_ = env_.now();
    env_.log.info("http listening", {{"addr", http_->address()}, {"cluster_addr", cluster_listener_->address()}});
    if (hooks_.started) {
      hooks_.started(NodeView{*fsm_, *raft_, *replica_, *confirm_, *proposer_, *gate_, scope, http_->address(),
                              cluster_listener_->address()});
    }
    while (!raft_ended && !stop.is_set() && watched.ok()) {
      changed.wait();
    }
    readiness_->mark_leaving();
    // The order of a stop: leadership, while connections still stand, so that what clients write meanwhile goes on at the next leader;
    // then requests in flight; then the node is no longer ready; the metastore last.
    if (watched.ok()) {
      hand_over_leadership();
    }
    // Requests in flight end while raft still runs; after a failure of raft they end by its answers.
    const size_t cut_off = http_->drain(env_.after(config_.http.shutdown_grace));
    if (cut_off > 0) {
      env_.log.warn("requests were cut off by the stop", {{"requests", cut_off}});
    }
    readiness_->mark_stopping();
    raft_->stop();
    while (!raft_ended) {
      changed.wait();
    }
    scope.cancel();
  });
  if (hooks_.stopping) {
    hooks_.stopping();
  }
  fsm_->close();
  const std::optional<io::Error>& failure = raft_->failure();
  if (failure.has_value()) {
    return io::fail(failure->kind, "raft: " + failure->message);
  }
  if (!watched.ok()) {
    return watched;
  }
  env_.log.info("narad serve stopped");
  return {};
}

void Node::run_cluster_services(io::Scope& scope) {
  scope.spawn("node/join", [this] { joiner_->run(); });
  scope.spawn("node/heartbeat", [this] { heartbeater_->run(); });
  scope.spawn("node/reconcile", [this] { reconcile(); });
}

// Brings what lies on this node's disk in line with the metadata, once a start, and only on a replica that is proven current: what it
// does not hold may be newer than it. Creations wait until that has ended, one way or the other; the node is ready after that, and once
// it has been admitted. (Nothing lies on the disk yet that could be swept.)
void Node::reconcile() {
  // A node that joins has no cluster's word on anything yet, and may have to ask for admission for long.
  while (is_joining_ && raft_->leader().address.empty()) {
    io::sleep_for(kPoll);
  }
  if (!replica_->wait_until_caught_up(env_.after(kReconcileWait))) {
    SOMETIMES("boot: the startup sweep is left out, the replica has not caught up in time");
    env_.log.warn("skipping startup orphan sweep: metastore not caught up within timeout; node stays not ready until it is");
  }
  create_gate_.open();
  replica_->wait_until_caught_up();
  while (!raft_->is_admitted()) {
    io::sleep_for(kPoll);
  }
  readiness_->mark_started();
  env_.log.info("node is ready", {{"node", config_.cluster.node_id}, {"applied_index", raft_->applied_index()}});
}

void Node::hand_over_leadership() {
  if (!raft_->is_leader() || raft_->status().voters < 2) {
    return;
  }
  const io::Instant begun = env_.now();
  const raft::Transferred transferred = raft_->transfer_leadership(raft::ServerId(), env_.after(kHandOverTimeout));
  const auto took_ms = (env_.now() - begun) / std::chrono::milliseconds(1);
  if (transferred.ok()) {
    env_.log.info("leadership transferred before shutdown", {{"to", transferred.to}, {"took", std::to_string(took_ms) + "ms"}});
  } else {
    env_.log.warn("leadership transfer on shutdown failed; peers will elect a leader after their heartbeat timeout",
                  {{"to", transferred.to}, {"reason", transferred.reason}});
  }
}

MetricsSnapshot Node::snapshot() const {
  const auto seconds = [](io::Duration duration) { return std::chrono::duration<double>(duration).count(); };
  const raft::ServerStatus raft = raft_->status();
  const raft::ServerCounters& counters = raft_->counters();
  const metastore::FsmStats& stats = fsm_->stats();
  const bool leads = raft.role == raft::Role::leader;
  MetricsSnapshot s;
  s.raft_state = raft_state_name(raft);
  s.raft_term = raft.term;
  s.raft_last_log_index = raft.last;
  s.raft_commit_index = raft.commit;
  s.raft_applied_index = raft.applied;
  s.raft_fsm_pending = raft.apply_backlog;
  s.raft_leader = raft.leader.id;
  s.raft_durable_index = raft.durable;
  s.raft_elections_total = counters.elections;
  s.raft_configuration_changes_total = counters.configuration_changes;
  s.raft_entries_appended_total = counters.entries_appended;
  s.raft_messages_sent_total = counters.messages_sent;
  s.raft_messages_received_total = counters.messages_received;
  s.raft_messages_dropped_total = counters.messages_dropped;
  s.raft_votes_refused = counters.votes_refused;
  s.raft_proposals_refused = counters.proposals_refused;
  s.raft_changes_refused = counters.changes_refused;
  s.raft_transfers_refused = counters.transfers_refused;
  s.raft_connections_refused = counters.connections_refused;
  s.raft_messages_refused = counters.messages_refused;
  s.raft_images_refused = counters.images_refused;
  s.raft_reads_refused = counters.reads_refused;
  s.raft_has_leader = leads || !raft.leader.id.empty();
  s.raft_last_contact_seconds = leads ? 0 : seconds(env_.now() - raft.leader_contact.value_or(started_at_));
  s.raft_voters = raft.voters;
  s.raft_nonvoters = raft.non_voters;
  s.raft_log_syncs_total = counters.log_syncs;
  s.raft_hard_state_syncs_total = counters.hard_state_syncs;
  s.raft_leader_changes_total = counters.leader_changes;
  s.raft_log_first_index = raft.log_base + 1;
  s.raft_snapshot_index = raft.snapshot;
  s.raft_snapshots_taken_total = counters.snapshots_taken;
  s.raft_snapshots_sent_total = counters.snapshots_sent;
  s.raft_snapshots_not_sent_total = counters.snapshots_not_sent;
  s.raft_snapshots_received_total = counters.snapshots_received;
  s.raft_snapshots_installed_total = counters.snapshots_installed;
  s.raft_transfers_total = counters.transfers_made;
  s.raft_transfers_failed_total = counters.transfers_failed;
  s.raft_disk_full = raft.is_disk_full;
  s.raft_rebuilding = raft.is_rebuilding;
  for (const raft::PeerStatus& peer : raft.peers) {
    if (!leads) break;
    const io::Duration silence = peer.last_contact ? env_.now() - *peer.last_contact : env_.now() - started_at_;
    s.raft_peers.push_back({peer.id, peer.match, seconds(silence), peer.state == raft::Progress::State::replicate,
                            peer.state == raft::Progress::State::snapshot, peer.is_connected});
  }
  s.dead_marking_refused = controller_->dead_marking_refused();
  s.colocated_child_partitions = controller_->moves().colocated();
  for (const auto& [node, blocked] : controller_->decommission().blocked()) {
    s.decommission_blocked.push_back({node, std::string(cluster::code_of(blocked.reason))});
  }
  s.moves_blocked_source_dead = controller_->moves().blocked(cluster::MoveBlock::source_dead);
  s.moves_blocked_target_dead = controller_->moves().blocked(cluster::MoveBlock::target_dead);
  s.moves_inflight = mover_->moves().size();
  s.moves_completed_total = mover_->completed();
  s.metastore_snapshot_bytes = raft.snapshot_bytes;
  s.metastore_snapshot_duration_seconds = seconds(raft.snapshot_took);
  s.metastore_snapshot_failures_total = counters.snapshots_failed;
  s.metastore_fsm_bytes = stats.fsm_bytes;
  s.metastore_applied_index = fsm_->applied_index();
  s.metastore_errors_storage = stats.errors_storage;
  s.metastore_errors_unknown_entry_type = stats.errors_unknown_entry_type;
  s.metastore_errors_undecodable = stats.errors_undecodable;
  s.metastore_errors_newer_database = stats.errors_newer_database;
  s.metastore_apply_stalled = stats.is_stalled;
  s.metastore_apply_stopped = stats.is_stopped;
  s.member_heartbeat_failures = heartbeater_->failures();
  s.member_heartbeat_last_success_seconds = heartbeater_->last_success_at();
  s.http_requests_in_flight = http_->requests_in_flight();
  s.boot_duration_seconds = seconds(serving_since_ - started_at_);
  return s;
}

}  // namespace

int run_node(io::Env& env, const Config& config, const Hooks& hooks, io::Event& stop, std::string* reason) {
  Node node(env, config, hooks);
  io::Status status = node.boot();
  if (status.ok()) {
    status = node.serve(stop);
    if (!status.ok()) {
      env.log.error("narad serve stopping: this node cannot go on", {{"error", status.error().message}});
    }
  }
  if (reason != nullptr && !status.ok()) {
    *reason = status.error().message;
  }
  return status.ok() ? 0 : 1;
}

}  // namespace engine
