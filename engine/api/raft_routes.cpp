#include "engine/api/raft_routes.h"

#include <optional>
#include <variant>

#include "engine/api/router.h"
#include "engine/topics/json.h"

namespace engine::api {

namespace {

using json::Value;
using json::Writer;

void write_number(Writer& out, std::string_view name, std::uint64_t value) {
  out.key(name).integer(static_cast<std::int64_t>(value));
}

void write_age(Writer& out, std::string_view name, std::optional<io::Instant> when, io::Instant now) {
  out.key(name);
  if (when) {
    out.integer((now - *when) / std::chrono::milliseconds(1));
  } else {
    out.raw("null");
  }
}

std::string_view name_of(raft::Progress::State state) {
  switch (state) {
    case raft::Progress::State::probe:
      return "probe";
    case raft::Progress::State::replicate:
      return "replicate";
    case raft::Progress::State::snapshot:
      return "snapshot";
  }
  return "probe";
}

void write_leader(Writer& out, const raft::LeaderHint& leader) {
  out.key("leader");
  if (leader.id.empty()) {
    out.raw("null");
    return;
  }
  out.begin_object().key("id").string(leader.id).key("address").string(leader.address).end_object();
}

void write_snapshot(Writer& out, const raft::ServerStatus& status) {
  out.key("snapshot");
  if (status.snapshot == 0) {
    out.raw("null");
    return;
  }
  out.begin_object();
  write_number(out, "index", status.snapshot);
  write_number(out, "term", status.snapshot_term);
  write_number(out, "bytes", status.snapshot_bytes);
  write_number(out, "took_ms", static_cast<std::uint64_t>(status.snapshot_took / std::chrono::milliseconds(1)));
  out.end_object();
}

void write_peers(Writer& out, const raft::ServerStatus& status, io::Instant now) {
  out.key("peers").begin_array();
  for (const raft::PeerStatus& peer : status.peers) {
    out.begin_object().key("id").string(peer.id).key("address").string(peer.address);
    out.key("voter").boolean(peer.is_voter).key("connected").boolean(peer.is_connected);
    if (status.role == raft::Role::leader) {
      write_number(out, "match_index", peer.match);
      out.key("state").string(name_of(peer.state));
      write_age(out, "last_contact_ms", peer.last_contact, now);
    }
    out.end_object();
  }
  out.end_array();
}

void write_counters(Writer& out, const raft::ServerCounters& c) {
  const struct {
    const char* name;
    std::uint64_t value;
  } kCounters[] = {
      {"log_syncs", c.log_syncs},
      {"hard_state_syncs", c.hard_state_syncs},
      {"entries_appended", c.entries_appended},
      {"entries_applied", c.entries_applied},
      {"messages_sent", c.messages_sent},
      {"messages_received", c.messages_received},
      {"messages_dropped", c.messages_dropped},
      {"leader_changes", c.leader_changes},
      {"elections", c.elections},
      {"configuration_changes", c.configuration_changes},
      {"votes_refused", c.votes_refused},
      {"proposals_refused", c.proposals_refused},
      {"changes_refused", c.changes_refused},
      {"transfers_refused", c.transfers_refused},
      {"connections_refused", c.connections_refused},
      {"messages_refused", c.messages_refused},
      {"images_refused", c.images_refused},
      {"reads_refused", c.reads_refused},
      {"transfers_made", c.transfers_made},
      {"transfers_failed", c.transfers_failed},
      {"snapshots_taken", c.snapshots_taken},
      {"snapshots_failed", c.snapshots_failed},
      {"snapshots_sent", c.snapshots_sent},
      {"snapshots_not_sent", c.snapshots_not_sent},
      {"snapshots_received", c.snapshots_received},
      {"snapshots_installed", c.snapshots_installed},
  };
  out.key("counters").begin_object();
  for (const auto& counter : kCounters) {
    write_number(out, counter.name, counter.value);
  }
  out.end_object();
}

// The server that an order names, empty for any; or what is wrong with its body.
std::variant<raft::ServerId, HttpResponse> parse_target_server(const std::string& body) {
  if (body.empty()) {
    return raft::ServerId();
  }
  const io::Result<Value> parsed = json::parse(body);
  if (!parsed.ok()) {
    return error_response(400, "invalid request body: " + parsed.error().message);
  }
  if (!parsed->is(Value::Kind::object)) {
    return error_response(400, "invalid request body: it must be a JSON object, not " + std::string(json::name_of(parsed->kind)));
  }
  raft::ServerId to;
  for (const auto& [name, value] : parsed->object) {
    if (name != "to") {
      return error_response(400, "invalid request body: unknown field \"" + name + "\"");
    }
    if (!value.is(Value::Kind::string) || value.text.empty()) {
      return error_response(400, "to must be the id of a voter; leave it out for the most caught-up one");
    }
    to = value.text;
  }
  return to;
}

HttpResponse not_transferred(const raft::Transferred& transferred) {
  switch (transferred.outcome) {
    case raft::Outcome::not_leader:
      return error_response(409, transferred.leader.id.empty()
                                     ? "this node does not lead, and knows no leader"
                                     : "this node does not lead; ask " + transferred.leader.id + " (" + transferred.leader.address + ")");
    case raft::Outcome::refused:
      return error_response(409, "leadership is not handed over: " + transferred.reason);
    case raft::Outcome::stopped:
      return error_response(503, "this node has left raft");
    default:
      return error_response(503, "whether leadership was handed over is not known: " + transferred.reason);
  }
}

}  // namespace

std::string raft_status_json(const raft::ServerStatus& status, const raft::ServerCounters& counters, io::Instant now) {
  Writer out;
  out.begin_object().key("id").string(status.id).key("store").string(status.store.to_string());
  out.key("cluster").string(status.cluster.to_string()).key("role").string(to_string(status.role));
  out.key("is_voter").boolean(status.is_voter);
  write_number(out, "term", status.term);
  write_leader(out, status.leader);
  write_number(out, "commit_index", status.commit);
  write_number(out, "applied_index", status.applied);
  write_number(out, "last_index", status.last);
  write_number(out, "durable_index", status.durable);
  write_number(out, "log_base_index", status.log_base);
  write_snapshot(out, status);
  write_number(out, "voters", status.voters);
  write_number(out, "non_voters", status.non_voters);
  out.key("disk_full").boolean(status.is_disk_full).key("stopped").boolean(status.is_stopped);
  out.key("rebuilding").boolean(status.is_rebuilding);
  write_age(out, "leader_contact_ms", status.leader_contact, now);
  write_peers(out, status, now);
  write_counters(out, counters);
  out.end_object();
  return out.take() + "\n";
}

HttpResponse transfer_leadership(io::Env& env, raft::RaftServer& raft, const std::string& body) {
  const auto target = parse_target_server(body);
  if (const auto* refusal = std::get_if<HttpResponse>(&target)) {
    return *refusal;
  }
  const raft::Transferred transferred =
      raft.transfer_leadership(std::get<raft::ServerId>(target), env.after(kTransferTimeout));
  if (!transferred.ok()) {
    return not_transferred(transferred);
  }
  const raft::ServerStatus status = raft.status();
  Writer out;
  out.begin_object().key("from").string(status.id).key("to").string(transferred.to);
  out.key("leader").string(transferred.leader.id);
  write_number(out, "term", status.term);
  out.end_object();
  return json_response(200, out.take() + "\n");
}

}  // namespace engine::api
