// The metrics of raft and of the metastore under the names, kinds and labels that operators know.

#include "engine/metrics.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

namespace engine {
namespace {

MetricsSnapshot numbered() {
  MetricsSnapshot s;
  s.raft_state = "follower";
  s.raft_term = 3;
  s.raft_last_log_index = 104;
  s.raft_commit_index = 103;
  s.raft_applied_index = 102;
  s.raft_fsm_pending = 1;
  s.raft_has_leader = true;
  s.raft_last_contact_seconds = 0.25;
  s.raft_voters = 5;
  s.raft_nonvoters = 2;
  s.raft_leader = "n3";
  s.raft_durable_index = 105;
  s.raft_elections_total = 12;
  s.raft_configuration_changes_total = 13;
  s.raft_entries_appended_total = 14;
  s.raft_messages_sent_total = 15;
  s.raft_messages_received_total = 16;
  s.raft_messages_dropped_total = 17;
  s.raft_votes_refused = 18;
  s.raft_proposals_refused = 19;
  s.raft_changes_refused = 20;
  s.raft_transfers_refused = 21;
  s.raft_connections_refused = 22;
  s.raft_messages_refused = 122;
  s.raft_images_refused = 123;
  s.raft_reads_refused = 124;
  s.raft_snapshots_not_sent_total = 23;
  s.raft_snapshots_received_total = 24;
  s.raft_rebuilding = true;
  s.raft_peers.push_back({"n2", 90, 0.5, true, false, true});
  s.metastore_fsm_bytes = 4096;
  s.metastore_applied_index = 101;
  s.metastore_errors_storage = 7;
  s.metastore_errors_unknown_entry_type = 8;
  s.metastore_errors_undecodable = 9;
  s.metastore_errors_newer_database = 10;
  s.metastore_apply_stalled = true;
  s.metastore_apply_stopped = false;
  s.metastore_snapshot_bytes = 2048;
  s.metastore_snapshot_duration_seconds = 1.5;
  s.metastore_snapshot_failures_total = 11;
  return s;
}

// narad/config-cli-metrics.md section 4. Not here: narad_raft_tls_cert_not_after_seconds, which is absent without TLS.
TEST(Metrics, RaftAndMetastoreAreShownUnderTheNamesThatAreDocumented) {
  const struct {
    const char* name;
    const char* type;
    const char* sample;
  } kExpected[] = {
      {"narad_raft_state", "gauge", "narad_raft_state{state=\"candidate\"} 0"},
      {"narad_raft_state", "gauge", "narad_raft_state{state=\"follower\"} 1"},
      {"narad_raft_state", "gauge", "narad_raft_state{state=\"leader\"} 0"},
      {"narad_raft_state", "gauge", "narad_raft_state{state=\"shutdown\"} 0"},
      {"narad_raft_term", "gauge", "narad_raft_term 3"},
      {"narad_raft_last_log_index", "gauge", "narad_raft_last_log_index 104"},
      {"narad_raft_commit_index", "gauge", "narad_raft_commit_index 103"},
      {"narad_raft_applied_index", "gauge", "narad_raft_applied_index 102"},
      {"narad_raft_fsm_pending", "gauge", "narad_raft_fsm_pending 1"},
      {"narad_raft_has_leader", "gauge", "narad_raft_has_leader 1"},
      {"narad_raft_last_contact_seconds", "gauge", "narad_raft_last_contact_seconds 0.25"},
      {"narad_raft_voters", "gauge", "narad_raft_voters 5"},
      {"narad_raft_nonvoters", "gauge", "narad_raft_nonvoters 2"},
      {"narad_raft_leader_info", "gauge", "narad_raft_leader_info{leader=\"n3\"} 1"},
      {"narad_raft_durable_index", "gauge", "narad_raft_durable_index 105"},
      {"narad_raft_elections_total", "counter", "narad_raft_elections_total 12"},
      {"narad_raft_configuration_changes_total", "counter", "narad_raft_configuration_changes_total 13"},
      {"narad_raft_entries_appended_total", "counter", "narad_raft_entries_appended_total 14"},
      {"narad_raft_messages_sent_total", "counter", "narad_raft_messages_sent_total 15"},
      {"narad_raft_messages_received_total", "counter", "narad_raft_messages_received_total 16"},
      {"narad_raft_messages_dropped_total", "counter", "narad_raft_messages_dropped_total 17"},
      {"narad_raft_refused_total", "counter", "narad_raft_refused_total{what=\"vote\"} 18"},
      {"narad_raft_refused_total", "counter", "narad_raft_refused_total{what=\"proposal\"} 19"},
      {"narad_raft_refused_total", "counter", "narad_raft_refused_total{what=\"configuration_change\"} 20"},
      {"narad_raft_refused_total", "counter", "narad_raft_refused_total{what=\"transfer\"} 21"},
      {"narad_raft_refused_total", "counter", "narad_raft_refused_total{what=\"connection\"} 22"},
      {"narad_raft_refused_total", "counter", "narad_raft_refused_total{what=\"message\"} 122"},
      {"narad_raft_refused_total", "counter", "narad_raft_refused_total{what=\"image\"} 123"},
      {"narad_raft_refused_total", "counter", "narad_raft_refused_total{what=\"read\"} 124"},
      {"narad_raft_snapshots_not_sent_total", "counter", "narad_raft_snapshots_not_sent_total 23"},
      {"narad_raft_snapshots_received_total", "counter", "narad_raft_snapshots_received_total 24"},
      {"narad_raft_rebuilding", "gauge", "narad_raft_rebuilding 1"},
      {"narad_raft_peer_match_index", "gauge", "narad_raft_peer_match_index{peer=\"n2\"} 90"},
      {"narad_raft_peer_last_contact_seconds", "gauge", "narad_raft_peer_last_contact_seconds{peer=\"n2\"} 0.5"},
      {"narad_raft_peer_replicating", "gauge", "narad_raft_peer_replicating{peer=\"n2\"} 1"},
      {"narad_raft_peer_snapshot", "gauge", "narad_raft_peer_snapshot{peer=\"n2\"} 0"},
      {"narad_raft_peer_connected", "gauge", "narad_raft_peer_connected{peer=\"n2\"} 1"},
      {"narad_metastore_fsm_bytes", "gauge", "narad_metastore_fsm_bytes 4096"},
      {"narad_metastore_applied_index", "gauge", "narad_metastore_applied_index 101"},
      {"narad_metastore_apply_errors_total", "counter", "narad_metastore_apply_errors_total{kind=\"storage\"} 7"},
      {"narad_metastore_apply_errors_total", "counter", "narad_metastore_apply_errors_total{kind=\"unknown_entry_type\"} 8"},
      {"narad_metastore_apply_errors_total", "counter", "narad_metastore_apply_errors_total{kind=\"undecodable\"} 9"},
      {"narad_metastore_apply_errors_total", "counter", "narad_metastore_apply_errors_total{kind=\"newer_database\"} 10"},
      {"narad_metastore_apply_stalled", "gauge", "narad_metastore_apply_stalled 1"},
      {"narad_metastore_apply_stopped", "gauge", "narad_metastore_apply_stopped 0"},
      {"narad_metastore_snapshot_bytes", "gauge", "narad_metastore_snapshot_bytes 2048"},
      {"narad_metastore_snapshot_duration_seconds", "gauge", "narad_metastore_snapshot_duration_seconds 1.5"},
      {"narad_metastore_snapshot_failures_total", "counter", "narad_metastore_snapshot_failures_total 11"},
  };
  std::set<std::string> lines;
  std::istringstream text(Metrics().text(numbered()));
  for (std::string line; std::getline(text, line);) {
    lines.insert(line);
  }
  for (const auto& each : kExpected) {
    EXPECT_TRUE(lines.contains(std::string("# TYPE ") + each.name + " " + each.type)) << each.name;
    EXPECT_TRUE(lines.contains(each.sample)) << each.sample;
  }
}

TEST(Metrics, EveryStateOfRaftIsOneOfTheFour) {
  for (const char* state : {"candidate", "follower", "leader", "shutdown"}) {
    MetricsSnapshot s;
    s.raft_state = state;
    const std::string text = Metrics().text(s);
    EXPECT_NE(text.find(std::string("narad_raft_state{state=\"") + state + "\"} 1"), std::string::npos) << state;
  }
}

TEST(Metrics, ShowTheControllerAndTheMovesOfThisNode) {
  MetricsSnapshot snapshot = numbered();
  snapshot.dead_marking_refused = 2;
  snapshot.colocated_child_partitions = 3;
  snapshot.decommission_blocked = {{"n4", "owner_dead"}};
  snapshot.moves_blocked_source_dead = 5;
  snapshot.moves_blocked_target_dead = 6;
  snapshot.moves_inflight = 7;
  snapshot.moves_completed_total = 8;
  const std::string text = Metrics().text(snapshot);
  for (const char* line : {"narad_dead_marking_refused 2\n", "narad_colocated_child_partitions 3\n",
                           "narad_decommission_blocked{node=\"n4\",reason=\"owner_dead\"} 1\n", "narad_moves_inflight 7\n",
                           "narad_moves_total{outcome=\"completed\"} 8\n", "narad_moves_blocked{reason=\"source_dead\"} 5\n",
                           "narad_moves_blocked{reason=\"target_dead\"} 6\n", "narad_moves_blocked{reason=\"copy_unverifiable\"} 0\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace engine
