#include "engine/node_settings.h"

#include <utility>

#include "engine/metastore/envelope.h"
#include "engine/version.h"

namespace engine {

Config::Tuning::Release release_of(const Config& config) {
  if (!config.tuning.release.name.empty()) {
    return config.tuning.release;
  }
  Config::Tuning::Release own = config.tuning.release;
  own.name = std::string(kVersion);
  own.newest_type = metastore::kNewestEntryType;
  return own;
}

raft::ServerOptions raft_options(const Config& config) {
  raft::ServerOptions options;
  options.id = config.cluster.node_id;
  options.address = config.advertised_cluster_addr();
  options.is_joining = config.is_join_only();
  if (!options.is_joining) {
    std::vector<std::pair<raft::ServerId, std::string>> members;
    for (const Peer& peer : config.first_members()) {
      members.emplace_back(peer.id, peer.addr);
    }
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

metastore::FsmSettings fsm_settings(const Config& config) {
  const Config::Tuning::Release release = release_of(config);
  metastore::FsmSettings settings;
  settings.build = release.name;
  settings.flush_bytes = config.tuning.fsm_flush_bytes;
  settings.newest_type = release.newest_type;
  settings.skips_unknown = release.skips_unknown;
  settings.writes_meta = release.writes_meta;
  return settings;
}

cluster::GateSelf gate_self(const Config& config) {
  const Config::Tuning::Release release = release_of(config);
  return {config.cluster.node_id, release.name, release.newest_type};
}

cluster::JoinerSettings joiner_settings(const Config& config) {
  const Config::Tuning::Release release = release_of(config);
  cluster::JoinerSettings settings;
  settings.id = config.cluster.node_id;
  settings.cluster_addr = config.advertised_cluster_addr();
  for (const Peer& peer : config.cluster.peers) {
    if (peer.id != config.cluster.node_id) {
      settings.peers.push_back(peer.addr);
    }
  }
  settings.entry_types = release.newest_type;
  settings.fields = release.frames;
  settings.is_joining = config.is_join_only();
  return settings;
}

cluster::RegisterMemberRequest member_of(const Config& config, std::string_view http_address) {
  const Config::Tuning::Release release = release_of(config);
  cluster::RegisterMemberRequest member;
  member.id = config.cluster.node_id;
  member.addr = config.advertised_http_addr(http_address);
  member.cluster_addr = config.advertised_cluster_addr();
  member.release = cluster::RegisterMemberRequest::Release{release.name, release.newest_type};
  return member;
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

}  // namespace engine
