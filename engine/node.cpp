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
#include "engine/cluster/forward.h"
#include "engine/cluster/leader_confirm.h"
#include "engine/cluster/listener.h"
#include "engine/cluster/mover.h"
#include "engine/cluster/node_client.h"
#include "engine/cluster/node_server.h"
#include "engine/cluster/node_service.h"
#include "engine/cluster/servers.h"
#include "engine/cluster/status_client.h"
#include "engine/data_dir.h"
#include "engine/metastore/fsm_home.h"
#include "engine/metastore/records_reader.h"
#include "engine/metastore/replica.h"
#include "engine/metrics.h"
#include "engine/raft_proposer.h"
#include "engine/readiness.h"
#include "engine/topics/manager.h"
#include "engine/version.h"
#include "io/check.h"
#include "raft/server.h"

namespace engine {

namespace {

// How long a stop waits for another server to lead.
constexpr io::Duration kHandOverTimeout = std::chrono::seconds(2);

raft::ServerOptions raft_options(const Config& config) {
  raft::ServerOptions options;
  options.id = config.cluster.node_id;
  options.address = config.advertised_cluster_addr();
  std::vector<std::pair<raft::ServerId, std::string>> members;
  for (const Peer& peer : config.cluster.peers) {
    if (config.is_initial_member(peer.id)) {
      members.emplace_back(peer.id, peer.addr);
    }
  }
  if (members.empty()) {
    members.emplace_back(config.cluster.node_id, config.cluster.addr);
  }
  options.is_joining = config.is_join_only();
  if (!options.is_joining) {
    options.bootstrap = raft::bootstrap_configuration(std::move(members));
  }
  options.core.heartbeat_interval = config.cluster.raft_heartbeat_interval;
  options.core.election_timeout_min = config.cluster.raft_election_timeout_min;
  options.core.election_timeout_max = config.cluster.raft_election_timeout_max;
  options.core.append_entries_max = config.tuning.append_entries_max;
  options.core.stall_bound = config.cluster.raft_disk_stall_timeout;
  options.core.tail_bytes_max = config.tuning.raft_tail_bytes;
  options.core.unapplied_bytes_max = config.tuning.raft_unapplied_bytes;
  options.core.applying_bytes_max = config.tuning.raft_applying_bytes;
  options.link.queue_bytes_max = config.tuning.raft_link_queue_bytes;
  options.log.segment_bytes = config.tuning.raft_segment_bytes;
  options.log.tail_bytes_max = config.tuning.raft_tail_bytes;
  options.snapshots.threshold = config.cluster.raft_snapshot_threshold;
  options.snapshots.interval = config.cluster.raft_snapshot_interval;
  options.snapshots.trailing = config.cluster.raft_trailing_logs;
  options.snapshots.store.chunk_bytes = config.tuning.snapshot_chunk_bytes;
  return options;
}

// This node as the gate counts it: by its own build.
cluster::GateSelf gate_self(const Config& config) {
  const Config::Tuning::Release& release = config.tuning.release;
  if (release.name.empty()) {
    return {config.cluster.node_id, std::string(kVersion), metastore::kNewestEntryType};
  }
  return {config.cluster.node_id, release.name, release.newest_type};
}

api::HttpServerSettings http_settings(const Config& config) {
  api::HttpServerSettings settings;
  settings.limits.header_bytes = static_cast<uint32_t>(config.http.max_header_bytes);
  settings.read_timeout = config.http.read_timeout;
  settings.write_timeout = config.http.write_timeout;
  settings.idle_timeout = config.http.idle_timeout;
  settings.max_connections = config.http.max_connections;
  return settings;
}

topics::Limits topic_limits(const Config& config) {
  topics::Limits limits;
  limits.default_partitions = config.topic.default_partitions;
  limits.max_partitions = config.topic.max_partitions;
  limits.default_retention_ms = config.topic.default_retention_age_ms;
  limits.default_visibility_timeout_ms = config.topic.default_visibility_timeout_ms;
  limits.default_max_in_flight = config.topic.default_max_in_flight_per_partition;
  limits.default_max_acked_ahead = config.topic.default_max_acked_ahead_per_partition;
  return limits;
}

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
  io::Status open_raft();
  void make_services();
  void make_controller();
  cluster::NodeStatusFacts own_status();
  cluster::NodeReply ask_for_flip(const cluster::CompleteMoveRequest& request, io::Instant deadline);
  void hand_over_leadership();
  MetricsSnapshot snapshot() const;

  io::Env& env_;
  const Config& config_;
  const Hooks& hooks_;
  const io::Instant started_at_ = env_.now();
  io::Instant serving_since_{};

  std::unique_ptr<io::DirectoryLock> data_lock_;
  Metrics metrics_;
  std::unique_ptr<metastore::FsmHome> fsm_home_;
  metastore::Fsm* fsm_ = nullptr;  // its home's
  std::unique_ptr<raft::RaftServer> raft_;
  std::unique_ptr<metastore::Replica> replica_;
  std::unique_ptr<RaftProposer> proposer_;
  std::unique_ptr<cluster::ClusterGate> gate_;
  std::unique_ptr<topics::Manager> manager_;
  std::unique_ptr<cluster::NodeClientPool> clients_;
  std::unique_ptr<cluster::Forwarder> forwarder_;
  std::unique_ptr<cluster::RaftServers> servers_;
  std::unique_ptr<cluster::StatusClient> statuses_;
  std::unique_ptr<cluster::Controller> controller_;
  std::unique_ptr<cluster::Mover> mover_;
  std::unique_ptr<cluster::AdminService> admin_;
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
  // 4. What raft holds is compared with the metastore, which is looked at only, and what to do is decided (raft/restart.h): a refusal
  // leaves everything as it was found. Only then the metastore is opened, before raft goes on: its applied index says where the replay
  // of the log begins.
  if (status.ok()) {
    status = open_raft();
  }
  // 5. What serves, before anybody can ask.
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
      [this](std::unique_ptr<io::Stream> stream, std::string first) { raft_->serve(std::move(stream), std::move(first)); });
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

io::Status Node::open_raft() {
  metastore::FsmSettings settings;
  settings.build = std::string(kVersion);
  settings.flush_bytes = config_.tuning.fsm_flush_bytes;
  if (const Config::Tuning::Release& release = config_.tuning.release; !release.name.empty()) {
    settings.build = release.name;
    settings.newest_type = release.newest_type;
    settings.skips_unknown = release.skips_unknown;
    settings.writes_meta = release.writes_meta;
  }
  fsm_home_ = std::make_unique<metastore::FsmHome>(env_, std::move(settings));
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
  manager_ = std::make_unique<topics::Manager>(env_, *fsm_, *proposer_, topic_limits(config_));
  clients_ = std::make_unique<cluster::NodeClientPool>(
      env_, cluster::NodeClientSettings{}, [this](uint8_t op, const cluster::CallResult& result, io::Duration took) {
        metrics_.rpc_request(cluster::op_name(op), rpc_outcome(result), took);
      });
  forwarder_ = std::make_unique<cluster::Forwarder>(env_, *raft_, *clients_);
  make_controller();
  service_ = std::make_unique<cluster::NodeService>(env_, *manager_, *raft_, *replica_, *admin_);
  confirm_ = std::make_unique<cluster::LeaderConfirm>(env_, *replica_, *fsm_, *raft_, *clients_);
  node_server_ = std::make_unique<cluster::NodeServer>(
      env_, [this](std::string_view payload) { return service_->answer(payload); },
      [this](std::string_view payload) { return service_->answer_at_once(payload); });
  readiness_ = std::make_unique<Readiness>(*raft_, *replica_);
  api_ = std::make_unique<api::Api>(api::Api::Parts{env_, *manager_, topic_limits(config_), *raft_, *forwarder_, *readiness_,
                                                    metrics_, [this] { return metrics_.text(snapshot()); }});
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
      [this](const metastore::Member& member, io::Instant deadline) { return statuses_->ask_backlog(member, deadline); }, last_change});
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
    scope.spawn("controller/run", [&] { controller_->run(); });
    scope.spawn("node/mover", [&] { mover_->run(); });
    cluster_listener_->run(scope);
    http_->run(scope);
    scope.spawn("node/ready", [&] {
      replica_->wait_until_caught_up();
      env_.log.info("node is ready", {{"node", config_.cluster.node_id}, {"applied_index", raft_->applied_index()}});
    });
    readiness_->mark_started();
    serving_since_ = env_.now();
    env_.log.info("http listening", {{"addr", http_->address()}, {"cluster_addr", cluster_listener_->address()}});
    if (hooks_.started) {
      hooks_.started(NodeView{*fsm_, *raft_, *replica_, *confirm_, *proposer_, *gate_, scope, http_->address(),
                              cluster_listener_->address()});
    }
    while (!raft_ended && !stop.is_set() && watched.ok()) {
      changed.wait();
    }
    readiness_->mark_stopping();
    // Leadership first, while connections still stand: what clients write meanwhile goes on at the next leader.
    if (watched.ok()) {
      hand_over_leadership();
    }
    // Requests in flight end while raft still runs; after a failure of raft they end by its answers.
    const size_t cut_off = http_->drain(env_.after(config_.http.shutdown_grace));
    if (cut_off > 0) {
      env_.log.warn("requests were cut off by the stop", {{"requests", cut_off}});
    }
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
