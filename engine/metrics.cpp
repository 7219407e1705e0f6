#include "engine/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace engine {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

const prometheus::Histogram::BucketBoundaries& latency_buckets() {
  static const prometheus::Histogram::BucketBoundaries kBuckets = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                                   0.25,   0.5,   1,      2.5,   5,    10};
  return kBuckets;
}

double to_seconds(io::Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string_view known_method(std::string_view method) {
  for (const std::string_view known : {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}) {
    if (method == known) {
      return known;
    }
  }
  return "OTHER";
}

bool by_labels(const ClientMetric& a, const ClientMetric& b) {
  return std::lexicographical_compare(a.label.begin(), a.label.end(), b.label.begin(), b.label.end(),
                                      [](const ClientMetric::Label& x, const ClientMetric::Label& y) {
                                        return std::tie(x.name, x.value) < std::tie(y.name, y.value);
                                      });
}

// Families made at scrape time from plain values.
class Sheet {
 public:
  explicit Sheet(std::vector<MetricFamily>& families) : families_(families) {}

  void gauge(const char* name, const char* help, double value) { family(name, help, MetricType::Gauge, {{{}, value}}); }
  void counter(const char* name, const char* help, double value) {
    family(name, help, MetricType::Counter, {{{}, value}});
  }

  struct Value {
    std::vector<ClientMetric::Label> labels;
    double value;
  };
  void family(const char* name, const char* help, MetricType type, const std::vector<Value>& values) {
    MetricFamily family;
    family.name = name;
    family.help = help;
    family.type = type;
    for (const Value& value : values) {
      ClientMetric metric;
      metric.label = value.labels;
      (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value.value;
      family.metric.push_back(std::move(metric));
    }
    families_.push_back(std::move(family));
  }

 private:
  std::vector<MetricFamily>& families_;
};

double flag(bool value) { return value ? 1 : 0; }
double number(uint64_t value) { return static_cast<double>(value); }

void add_raft(Sheet& sheet, const MetricsSnapshot& s) {
  std::vector<Sheet::Value> states;
  for (const char* state : {"candidate", "follower", "leader", "shutdown"}) {
    states.push_back({{{"state", state}}, flag(s.raft_state == state)});
  }
  sheet.family("narad_raft_state", "1 for the current raft state", MetricType::Gauge, states);
  sheet.gauge("narad_raft_term", "current raft term", number(s.raft_term));
  sheet.gauge("narad_raft_last_log_index", "index of the last raft log entry", number(s.raft_last_log_index));
  sheet.gauge("narad_raft_commit_index", "raft commit index", number(s.raft_commit_index));
  sheet.gauge("narad_raft_applied_index", "raft index handed to the state machine", number(s.raft_applied_index));
  sheet.gauge("narad_raft_fsm_pending", "committed entries waiting for the state machine", number(s.raft_fsm_pending));
  sheet.gauge("narad_raft_has_leader", "1 when a leader is known, this node included", flag(s.raft_has_leader));
  sheet.gauge("narad_raft_last_contact_seconds", "time since contact with the leader; 0 on the leader",
              s.raft_last_contact_seconds);
  sheet.gauge("narad_raft_voters", "voters of the latest known configuration", number(s.raft_voters));
  sheet.gauge("narad_raft_nonvoters", "non-voters of the latest known configuration", number(s.raft_nonvoters));
  sheet.counter("narad_raft_log_syncs_total", "data syncs of the raft log", number(s.raft_log_syncs_total));
  sheet.counter("narad_raft_hard_state_syncs_total", "data syncs of term and vote", number(s.raft_hard_state_syncs_total));
  std::vector<Sheet::Value> leader;
  if (!s.raft_leader.empty()) {
    leader.push_back({{{"leader", s.raft_leader}}, 1});
  }
  sheet.family("narad_raft_leader_info", "1 under the name of the leader that this node knows", MetricType::Gauge, leader);
  sheet.gauge("narad_raft_durable_index", "raft log durable on this node up to here", number(s.raft_durable_index));
  sheet.counter("narad_raft_elections_total", "campaigns of this node for a term", number(s.raft_elections_total));
  sheet.counter("narad_raft_configuration_changes_total", "configurations appended by this node as leader",
                number(s.raft_configuration_changes_total));
  sheet.counter("narad_raft_entries_appended_total", "entries written to the raft log", number(s.raft_entries_appended_total));
  sheet.counter("narad_raft_messages_sent_total", "messages given to the connections to other servers",
                number(s.raft_messages_sent_total));
  sheet.counter("narad_raft_messages_received_total", "messages of other servers", number(s.raft_messages_received_total));
  sheet.counter("narad_raft_messages_dropped_total", "messages that never left: no connection, or its queue was full",
                number(s.raft_messages_dropped_total));
  sheet.family("narad_raft_refused_total", "what this node did not grant; the log has the reasons", MetricType::Counter,
               {{{{"what", "configuration_change"}}, number(s.raft_changes_refused)},
                {{{"what", "connection"}}, number(s.raft_connections_refused)},
                {{{"what", "image"}}, number(s.raft_images_refused)},
                {{{"what", "message"}}, number(s.raft_messages_refused)},
                {{{"what", "proposal"}}, number(s.raft_proposals_refused)},
                {{{"what", "read"}}, number(s.raft_reads_refused)},
                {{{"what", "transfer"}}, number(s.raft_transfers_refused)},
                {{{"what", "vote"}}, number(s.raft_votes_refused)}});
  sheet.counter("narad_raft_leader_changes_total", "changes of the followed leader", number(s.raft_leader_changes_total));
  sheet.gauge("narad_raft_log_first_index", "first entry that the raft log still holds", number(s.raft_log_first_index));
  sheet.gauge("narad_raft_snapshot_index", "index of the newest snapshot; 0: none", number(s.raft_snapshot_index));
  sheet.counter("narad_raft_snapshots_taken_total", "snapshots taken", number(s.raft_snapshots_taken_total));
  sheet.counter("narad_raft_snapshots_sent_total", "snapshots sent whole to another server", number(s.raft_snapshots_sent_total));
  sheet.counter("narad_raft_snapshots_not_sent_total", "snapshots whose sending was given up", number(s.raft_snapshots_not_sent_total));
  sheet.counter("narad_raft_snapshots_received_total", "snapshots received whole", number(s.raft_snapshots_received_total));
  sheet.counter("narad_raft_snapshots_installed_total", "received snapshots installed", number(s.raft_snapshots_installed_total));
  sheet.counter("narad_raft_transfers_total", "hand-overs of leadership that another server took", number(s.raft_transfers_total));
  sheet.counter("narad_raft_transfers_failed_total", "hand-overs of leadership that came to nothing",
                number(s.raft_transfers_failed_total));
  sheet.gauge("narad_raft_disk_full", "1 while the raft log waits for room", flag(s.raft_disk_full));
  sheet.gauge("narad_raft_rebuilding", "1 while this node gives no vote until a leader has brought it up to date", flag(s.raft_rebuilding));
}

// What a leader knows of the others.
// The controller's own, and the moves that come to this node.
void add_controller(Sheet& sheet, const MetricsSnapshot& s) {
  sheet.gauge("narad_dead_marking_refused", "voters that the last pass refused to mark dead; leader only", number(s.dead_marking_refused));
  sheet.gauge("narad_colocated_child_partitions", "partitions of children on the owner of their parent's; leader only",
              number(s.colocated_child_partitions));
  std::vector<Sheet::Value> blocked;
  for (const MetricsSnapshot::DecommissionBlocked& one : s.decommission_blocked) {
    blocked.push_back({{{"node", one.node}, {"reason", one.reason}}, 1});
  }
  sheet.family("narad_decommission_blocked", "1 for what keeps a draining node; leader only", MetricType::Gauge, blocked);
  sheet.gauge("narad_moves_inflight", "moves under way to this node", number(s.moves_inflight));
  sheet.family("narad_moves_total", "moves that came to this node", MetricType::Counter,
               {{{{"outcome", "completed"}}, number(s.moves_completed_total)}});
  sheet.family("narad_moves_blocked", "moves that cannot go on; leader only", MetricType::Gauge,
               {{{{"reason", "copy_unverifiable"}}, 0},
                {{{"reason", "source_dead_copy_behind"}}, 0},
                {{{"reason", "source_dead"}}, number(s.moves_blocked_source_dead)},
                {{{"reason", "target_dead"}}, number(s.moves_blocked_target_dead)}});
}

void add_raft_peers(Sheet& sheet, const MetricsSnapshot& s) {
  std::vector<Sheet::Value> match, contact, replicating, snapshot, connected;
  for (const MetricsSnapshot::RaftPeer& peer : s.raft_peers) {
    match.push_back({{{"peer", peer.id}}, number(peer.match)});
    contact.push_back({{{"peer", peer.id}}, peer.last_contact_seconds});
    replicating.push_back({{{"peer", peer.id}}, flag(peer.is_replicating)});
    snapshot.push_back({{{"peer", peer.id}}, flag(peer.is_sent_snapshot)});
    connected.push_back({{{"peer", peer.id}}, flag(peer.is_connected)});
  }
  sheet.family("narad_raft_peer_match_index", "last index known to be durable at the peer", MetricType::Gauge, match);
  sheet.family("narad_raft_peer_last_contact_seconds", "time since the peer's newest answer", MetricType::Gauge, contact);
  sheet.family("narad_raft_peer_replicating", "1 while entries are streamed to the peer", MetricType::Gauge, replicating);
  sheet.family("narad_raft_peer_connected", "1 while this node's connection to the peer stands", MetricType::Gauge, connected);
  sheet.family("narad_raft_peer_snapshot", "1 while the peer is sent a snapshot", MetricType::Gauge, snapshot);
}

void add_metastore(Sheet& sheet, const MetricsSnapshot& s) {
  sheet.gauge("narad_metastore_fsm_bytes", "size of the metadata database", number(s.metastore_fsm_bytes));
  sheet.gauge("narad_metastore_applied_index", "raft index in the metadata database", number(s.metastore_applied_index));
  sheet.family("narad_metastore_apply_errors_total", "entries that could not be applied as they should", MetricType::Counter,
               {{{{"kind", "newer_database"}}, number(s.metastore_errors_newer_database)},
                {{{"kind", "storage"}}, number(s.metastore_errors_storage)},
                {{{"kind", "undecodable"}}, number(s.metastore_errors_undecodable)},
                {{{"kind", "unknown_entry_type"}}, number(s.metastore_errors_unknown_entry_type)}});
  sheet.gauge("narad_metastore_apply_stalled", "1 while a write is retried", flag(s.metastore_apply_stalled));
  sheet.gauge("narad_metastore_snapshot_bytes", "size of the newest snapshot", number(s.metastore_snapshot_bytes));
  sheet.gauge("narad_metastore_snapshot_duration_seconds", "time that the newest snapshot took", s.metastore_snapshot_duration_seconds);
  sheet.counter("narad_metastore_snapshot_failures_total", "snapshots that could not be taken",
                number(s.metastore_snapshot_failures_total));
  sheet.gauge("narad_metastore_apply_stopped", "1 once the node has stopped applying", flag(s.metastore_apply_stopped));
}

}  // namespace

struct Metrics::Impl {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& http_requests = prometheus::BuildCounter()
                                                               .Name("narad_http_requests_total")
                                                               .Help("HTTP requests answered")
                                                               .Register(registry);
  prometheus::Family<prometheus::Histogram>& http_seconds = prometheus::BuildHistogram()
                                                                .Name("narad_http_request_duration_seconds")
                                                                .Help("time to answer an HTTP request")
                                                                .Register(registry);
  prometheus::Family<prometheus::Counter>& http_in = prometheus::BuildCounter()
                                                         .Name("narad_http_request_bytes_in_total")
                                                         .Help("bytes of HTTP request bodies")
                                                         .Register(registry);
  prometheus::Family<prometheus::Counter>& http_out = prometheus::BuildCounter()
                                                          .Name("narad_http_response_bytes_out_total")
                                                          .Help("bytes of HTTP response bodies")
                                                          .Register(registry);
  prometheus::Family<prometheus::Counter>& rpc_requests = prometheus::BuildCounter()
                                                              .Name("narad_cluster_rpc_requests_total")
                                                              .Help("calls to other nodes")
                                                              .Register(registry);
  prometheus::Family<prometheus::Histogram>& rpc_seconds = prometheus::BuildHistogram()
                                                               .Name("narad_cluster_rpc_request_seconds")
                                                               .Help("time of calls to other nodes")
                                                               .Register(registry);

  // The label sets met so far; few, and looked up on every request.
  struct Http {
    prometheus::Counter* requests;
    prometheus::Histogram* seconds;
    prometheus::Counter* in;
    prometheus::Counter* out;
  };
  std::map<std::tuple<std::string_view, std::string_view, int>, Http> http;

  Http& find_http(const HttpLabels& labels) {
    const std::string_view method = known_method(labels.method);
    const auto key = std::make_tuple(labels.route, method, labels.status);
    const auto known = http.find(key);
    if (known != http.end()) {
      return known->second;
    }
    const std::map<std::string, std::string> all = {{"route", std::string(labels.route)},
                                                    {"method", std::string(method)},
                                                    {"status", std::to_string(labels.status)}};
    const std::map<std::string, std::string> route = {{"route", std::string(labels.route)}};
    const Http made{&http_requests.Add(all), &http_seconds.Add(all, latency_buckets()), &http_in.Add(route),
                    &http_out.Add(route)};
    return http.emplace(key, made).first->second;
  }
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}

Metrics::~Metrics() = default;

void Metrics::http_request(const HttpLabels& labels, io::Duration took, uint64_t bytes_in, uint64_t bytes_out) {
  const Impl::Http& metrics = impl_->find_http(labels);
  metrics.requests->Increment();
  metrics.seconds->Observe(to_seconds(took));
  metrics.in->Increment(number(bytes_in));
  metrics.out->Increment(number(bytes_out));
}

void Metrics::rpc_request(std::string_view op, std::string_view outcome, io::Duration took) {
  impl_->rpc_requests.Add({{"op", std::string(op)}, {"outcome", std::string(outcome)}}).Increment();
  impl_->rpc_seconds.Add({{"op", std::string(op)}}, latency_buckets()).Observe(to_seconds(took));
}

std::string Metrics::text(const MetricsSnapshot& snapshot) const {
  std::vector<MetricFamily> families = impl_->registry.Collect();
  Sheet sheet(families);
  add_raft(sheet, snapshot);
  add_raft_peers(sheet, snapshot);
  add_metastore(sheet, snapshot);
  add_controller(sheet, snapshot);
  sheet.gauge("narad_member_heartbeat_failures", "failed heartbeats of this node in a row", number(snapshot.member_heartbeat_failures));
  sheet.gauge("narad_member_heartbeat_last_success_timestamp_seconds", "when a heartbeat of this node was last taken; 0: not yet",
              static_cast<double>(snapshot.member_heartbeat_last_success_seconds));
  sheet.gauge("narad_http_requests_in_flight", "HTTP requests being answered", number(snapshot.http_requests_in_flight));
  sheet.gauge("narad_boot_duration_seconds", "from the start to serving", snapshot.boot_duration_seconds);
  std::sort(families.begin(), families.end(), [](const MetricFamily& a, const MetricFamily& b) { return a.name < b.name; });
  for (MetricFamily& family : families) {
    std::sort(family.metric.begin(), family.metric.end(), by_labels);
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace engine
