// The node's metrics, as Prometheus text. One registry a node: nothing here is global to the process.
//
// Counters and histograms of events are kept here; what other parts know already (raft's state, the metastore's counters) is
// handed in at scrape time, so that a scrape waits for nobody. prometheus-cpp stays behind this header.
// Names and labels: narad/config-cli-metrics.md section 4.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/time.h"

namespace engine {

// What is read at the moment of a scrape.
struct MetricsSnapshot {
  std::string_view raft_state;  // follower, candidate, leader, shutdown
  uint64_t raft_term = 0;
  uint64_t raft_last_log_index = 0;
  uint64_t raft_commit_index = 0;
  uint64_t raft_applied_index = 0;
  uint64_t raft_fsm_pending = 0;
  bool raft_has_leader = false;
  std::string raft_leader;  // its id; empty: none known
  double raft_last_contact_seconds = 0;
  uint64_t raft_voters = 0;
  uint64_t raft_nonvoters = 0;
  uint64_t raft_log_syncs_total = 0;
  uint64_t raft_hard_state_syncs_total = 0;
  uint64_t raft_leader_changes_total = 0;
  uint64_t raft_elections_total = 0;
  uint64_t raft_configuration_changes_total = 0;
  uint64_t raft_durable_index = 0;
  uint64_t raft_entries_appended_total = 0;
  uint64_t raft_messages_sent_total = 0;
  uint64_t raft_messages_received_total = 0;
  uint64_t raft_messages_dropped_total = 0;
  // Not granted, with reasons in the log.
  uint64_t raft_votes_refused = 0;
  uint64_t raft_proposals_refused = 0;
  uint64_t raft_changes_refused = 0;
  uint64_t raft_transfers_refused = 0;
  uint64_t raft_connections_refused = 0;
  uint64_t raft_messages_refused = 0;
  uint64_t raft_images_refused = 0;
  uint64_t raft_reads_refused = 0;
  uint64_t raft_log_first_index = 0;
  uint64_t raft_snapshot_index = 0;
  uint64_t raft_snapshots_taken_total = 0;
  uint64_t raft_snapshots_sent_total = 0;
  uint64_t raft_snapshots_not_sent_total = 0;
  uint64_t raft_snapshots_received_total = 0;
  uint64_t raft_snapshots_installed_total = 0;
  uint64_t raft_transfers_total = 0;
  uint64_t raft_transfers_failed_total = 0;
  bool raft_disk_full = false;
  bool raft_rebuilding = false;
  // On the leader: the other servers, by id; empty elsewhere.
  struct RaftPeer {
    std::string id;
    uint64_t match = 0;
    double last_contact_seconds = 0;
    bool is_replicating = false;
    bool is_sent_snapshot = false;
    bool is_connected = false;
  };
  std::vector<RaftPeer> raft_peers;
  uint64_t metastore_snapshot_bytes = 0;
  double metastore_snapshot_duration_seconds = 0;
  uint64_t metastore_snapshot_failures_total = 0;
  uint64_t metastore_fsm_bytes = 0;
  uint64_t metastore_applied_index = 0;
  uint64_t metastore_errors_storage = 0;
  uint64_t metastore_errors_unknown_entry_type = 0;
  uint64_t metastore_errors_undecodable = 0;
  uint64_t metastore_errors_newer_database = 0;
  bool metastore_apply_stalled = false;
  bool metastore_apply_stopped = false;
  uint64_t member_heartbeat_failures = 0;           // in a row
  int64_t member_heartbeat_last_success_seconds = 0;  // Unix; 0: none yet
  // Of the controller; zero and empty on a node that does not lead.
  uint64_t dead_marking_refused = 0;
  uint64_t colocated_child_partitions = 0;
  struct DecommissionBlocked {
    std::string node;
    std::string reason;
  };
  std::vector<DecommissionBlocked> decommission_blocked;
  uint64_t moves_blocked_source_dead = 0;
  uint64_t moves_blocked_target_dead = 0;
  // Of this node as a destination.
  uint64_t moves_inflight = 0;
  uint64_t moves_completed_total = 0;
  uint64_t http_requests_in_flight = 0;
  double boot_duration_seconds = 0;
};

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  struct HttpLabels {
    std::string_view route;   // a route's name, valid for the registry's life, or "unmatched"
    std::string_view method;  // as sent; what is no method of HTTP is counted as OTHER
    int status = 0;
  };
  void http_request(const HttpLabels& labels, io::Duration took, uint64_t bytes_in, uint64_t bytes_out);
  // A call to another node, counted by its caller. outcome: ok, rejected, failed, timeout, error.
  void rpc_request(std::string_view op, std::string_view outcome, io::Duration took);

  // The exposition text, families and label sets in a fixed order.
  std::string text(const MetricsSnapshot& snapshot) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace engine
