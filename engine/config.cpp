#include "engine/config.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <variant>

namespace engine {

namespace {

using nlohmann::json;

io::Error refuse(const std::string& text) { return io::fail(io::ErrorKind::invalid, "config: config: " + text); }

// ---- The table -----------------------------------------------------------------------------------------------------------------

// Where a value goes; the alternative says how it is written: text, "10s", an integer, true/false, a level, a format, peers.
using Target = std::variant<std::string*, io::Duration*, uint64_t*, int64_t*, bool*, io::LogLevel*, LogFormat*, std::vector<Peer>*>;

struct Row {
  Setting setting;
  std::function<Target(Config&)> target;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {{"http.addr", "NARAD_HTTP_ADDR", "--addr", true, "host:port of the HTTP API"},
       [](Config& c) { return Target(&c.http.addr); }},
      {{"http.read_timeout", "NARAD_HTTP_READ_TIMEOUT", "", true, "a whole request, from its first byte"},
       [](Config& c) { return Target(&c.http.read_timeout); }},
      {{"http.write_timeout", "NARAD_HTTP_WRITE_TIMEOUT", "", true, "a whole response"},
       [](Config& c) { return Target(&c.http.write_timeout); }},
      {{"http.idle_timeout", "NARAD_HTTP_IDLE_TIMEOUT", "", true, "between requests of one connection"},
       [](Config& c) { return Target(&c.http.idle_timeout); }},
      {{"http.shutdown_grace", "NARAD_HTTP_SHUTDOWN_GRACE", "", true, "how long a stop waits for requests in flight"},
       [](Config& c) { return Target(&c.http.shutdown_grace); }},
      {{"http.max_header_bytes", "NARAD_HTTP_MAX_HEADER_BYTES", "", true, "request line and headers, at least 4096"},
       [](Config& c) { return Target(&c.http.max_header_bytes); }},
      {{"http.max_connections", "NARAD_HTTP_MAX_CONNECTIONS", "", true, "open connections; 0: no cap"},
       [](Config& c) { return Target(&c.http.max_connections); }},
      {{"cluster.node_id", "NARAD_NODE_ID", "--node-id", true, "this node's name; default: the host name"},
       [](Config& c) { return Target(&c.cluster.node_id); }},
      {{"cluster.addr", "NARAD_CLUSTER_ADDR", "--cluster-addr", true, "host:port of the cluster listener"},
       [](Config& c) { return Target(&c.cluster.addr); }},
      {{"cluster.peers", "NARAD_CLUSTER_PEERS", "--peers", true, "id@host:port,... of every first member, three or more"},
       [](Config& c) { return Target(&c.cluster.peers); }},
      {{"cluster.initial_members", "NARAD_CLUSTER_INITIAL_MEMBERS", "", true,
        "id,id,... of the nodes that may bootstrap the cluster; every other one joins it; default: every node may"},
       [](Config& c) { return Target(&c.cluster.initial_members); }},
      {{"cluster.advertise_addr", "NARAD_CLUSTER_ADVERTISE_ADDR", "", true,
        "host:port where the other nodes reach the cluster listener; required on a node that cluster.peers does not name"},
       [](Config& c) { return Target(&c.cluster.advertise_addr); }},
      {{"cluster.raft_heartbeat_interval", "NARAD_CLUSTER_RAFT_HEARTBEAT_INTERVAL", "", true, "between a leader's heartbeats"},
       [](Config& c) { return Target(&c.cluster.raft_heartbeat_interval); }},
      {{"cluster.raft_election_timeout_min", "NARAD_CLUSTER_RAFT_ELECTION_TIMEOUT_MIN", "", true,
        "shortest silence before a follower campaigns"},
       [](Config& c) { return Target(&c.cluster.raft_election_timeout_min); }},
      {{"cluster.raft_election_timeout_max", "NARAD_CLUSTER_RAFT_ELECTION_TIMEOUT_MAX", "", true,
        "longest silence before a follower campaigns"},
       [](Config& c) { return Target(&c.cluster.raft_election_timeout_max); }},
      {{"cluster.raft_disk_stall_timeout", "NARAD_CLUSTER_RAFT_DISK_STALL_TIMEOUT", "", true,
        "a leader whose disk or applies hang this long no longer leads"},
       [](Config& c) { return Target(&c.cluster.raft_disk_stall_timeout); }},
      {{"cluster.raft_snapshot_threshold", "NARAD_CLUSTER_RAFT_SNAPSHOT_THRESHOLD", "", true,
        "entries applied since the last snapshot that make the next one due"},
       [](Config& c) { return Target(&c.cluster.raft_snapshot_threshold); }},
      {{"cluster.raft_snapshot_interval", "NARAD_CLUSTER_RAFT_SNAPSHOT_INTERVAL", "", true,
        "how often that is looked at; drawn up to twice as long"},
       [](Config& c) { return Target(&c.cluster.raft_snapshot_interval); }},
      {{"cluster.raft_trailing_logs", "NARAD_CLUSTER_RAFT_TRAILING_LOGS", "", true,
        "entries that stay in the log below the older kept snapshot"},
       [](Config& c) { return Target(&c.cluster.raft_trailing_logs); }},
      {{"storage.data_dir", "NARAD_DATA_DIR", "--data-dir", true, "the node's data directory"},
       [](Config& c) { return Target(&c.storage.data_dir); }},
      {{"topic.default_partitions", "NARAD_TOPIC_DEFAULT_PARTITIONS", "", true, "3 to topic.max_partitions"},
       [](Config& c) { return Target(&c.topic.default_partitions); }},
      {{"topic.max_partitions", "NARAD_TOPIC_MAX_PARTITIONS", "", true, "most partitions of a topic"},
       [](Config& c) { return Target(&c.topic.max_partitions); }},
      {{"topic.default_retention_age_ms", "NARAD_TOPIC_DEFAULT_RETENTION_AGE_MS", "", true, "0 (for ever) or at least 3600000"},
       [](Config& c) { return Target(&c.topic.default_retention_age_ms); }},
      {{"topic.default_visibility_timeout_ms", "NARAD_TOPIC_DEFAULT_VISIBILITY_TIMEOUT_MS", "", true,
        "above 0, at most the default retention"},
       [](Config& c) { return Target(&c.topic.default_visibility_timeout_ms); }},
      {{"topic.default_max_in_flight_per_partition", "NARAD_TOPIC_DEFAULT_MAX_IN_FLIGHT_PER_PARTITION", "", true, "above 0"},
       [](Config& c) { return Target(&c.topic.default_max_in_flight_per_partition); }},
      {{"topic.default_max_acked_ahead_per_partition", "NARAD_TOPIC_DEFAULT_MAX_ACKED_AHEAD_PER_PARTITION", "", true, "above 0"},
       [](Config& c) { return Target(&c.topic.default_max_acked_ahead_per_partition); }},
      {{"log.level", "NARAD_LOG_LEVEL", "--log-level", true, "debug, info, warn or error"},
       [](Config& c) { return Target(&c.log.level); }},
      {{"log.format", "NARAD_LOG_FORMAT", "--log-format", true, "json or text"},
       [](Config& c) { return Target(&c.log.format); }},
      {{"insecure", "", "--insecure", false, "allow listeners that other machines can reach, without authentication"},
       [](Config& c) { return Target(&c.insecure); }},
      {{"io", "", "--io", false, "auto, uring or epoll"}, [](Config& c) { return Target(&c.io); }},
  };
  return kRows;
}

const Row* find_row(std::string_view key) {
  for (const Row& row : rows()) {
    if (row.setting.key == key) {
      return &row;
    }
  }
  return nullptr;
}

// ---- Values --------------------------------------------------------------------------------------------------------------------

template <typename Integer>
bool parse_integer(std::string_view text, Integer& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
  }
  while (!text.empty() && text.back() == ' ') {
    text.remove_suffix(1);
  }
  return text;
}

// "id@host:port,id@host:port"; nothing when a part has no @.
bool parse_peers(std::string_view text, std::vector<Peer>& peers) {
  peers.clear();
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view part = trim(text.substr(0, comma));
    const size_t at = part.find('@');
    if (at == std::string_view::npos || at == 0 || at + 1 == part.size()) {
      return false;
    }
    peers.push_back({std::string(part.substr(0, at)), std::string(part.substr(at + 1))});
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return true;
}

// What is wrong with `text` for this target, empty when it was taken.
struct TakeText {
  std::string_view text;

  std::string operator()(std::string* target) const {
    *target = std::string(text);
    return {};
  }
  std::string operator()(io::Duration* target) const {
    io::Result<io::Duration> parsed = parse_duration(text);
    if (!parsed.ok()) {
      return parsed.error().message;
    }
    *target = *parsed;
    return {};
  }
  std::string operator()(uint64_t* target) const {
    return parse_integer(text, *target) ? "" : "\"" + std::string(text) + "\" is not a whole number of 0 or more";
  }
  std::string operator()(int64_t* target) const {
    return parse_integer(text, *target) ? "" : "\"" + std::string(text) + "\" is not a whole number";
  }
  std::string operator()(bool* target) const {
    if (text == "true" || text == "1") {
      *target = true;
    } else if (text == "false" || text == "0") {
      *target = false;
    } else {
      return "\"" + std::string(text) + "\" is neither true nor false";
    }
    return {};
  }
  std::string operator()(io::LogLevel* target) const {
    for (io::LogLevel level : {io::LogLevel::debug, io::LogLevel::info, io::LogLevel::warn, io::LogLevel::error}) {
      if (text == io::to_string(level)) {
        *target = level;
        return {};
      }
    }
    return "\"" + std::string(text) + "\" is none of debug, info, warn, error";
  }
  std::string operator()(LogFormat* target) const {
    if (text != "json" && text != "text") {
      return "\"" + std::string(text) + "\" is neither json nor text";
    }
    *target = text == "json" ? LogFormat::json : LogFormat::text;
    return {};
  }
  std::string operator()(std::vector<Peer>* target) const {
    return parse_peers(text, *target) ? "" : "\"" + std::string(text) + "\" is not a list of id@host:port";
  }
};

bool is_number(const Target& target) {
  return std::holds_alternative<uint64_t*>(target) || std::holds_alternative<int64_t*>(target);
}

// {"id": ..., "addr": ...} and nothing else.
std::string take_json_peers(const json& value, std::vector<Peer>& peers) {
  if (!value.is_array()) {
    return "must be a list of {\"id\", \"addr\"}";
  }
  peers.clear();
  for (const json& item : value) {
    if (!item.is_object() || item.size() != 2 || !item.contains("id") || !item.contains("addr") || !item["id"].is_string() ||
        !item["addr"].is_string()) {
      return "must be a list of {\"id\", \"addr\"}";
    }
    peers.push_back({item["id"].get<std::string>(), item["addr"].get<std::string>()});
  }
  return {};
}

std::string take_json(const json& value, const Target& target) {
  if (auto* const* peers = std::get_if<std::vector<Peer>*>(&target)) {
    return take_json_peers(value, **peers);
  }
  if (std::holds_alternative<bool*>(target)) {
    if (!value.is_boolean()) {
      return "must be true or false";
    }
    *std::get<bool*>(target) = value.get<bool>();
    return {};
  }
  if (is_number(target)) {
    if (!value.is_number_integer()) {
      return "must be a whole number";
    }
    return std::visit(TakeText{value.dump()}, target);
  }
  if (!value.is_string()) {
    return std::holds_alternative<io::Duration*>(target) ? "must be a duration such as \"10s\"" : "must be a text";
  }
  return std::visit(TakeText{value.get<std::string>()}, target);
}

// ---- The file ------------------------------------------------------------------------------------------------------------------

// Keys that an operator may know from elsewhere and that are nobody's to set.
bool is_internal(std::string_view key) {
  static constexpr std::string_view kInternal[] = {"storage.fsync_mode", "storage.fsync_interval_ms",
                                                   "storage.flush_interval_ms", "storage.segment_bytes"};
  return std::find(std::begin(kInternal), std::end(kInternal), key) != std::end(kInternal);
}

bool is_group(std::string_view key) {
  return std::any_of(rows().begin(), rows().end(), [&](const Row& row) {
    return row.setting.in_file && row.setting.key.size() > key.size() && row.setting.key.starts_with(key) &&
           row.setting.key[key.size()] == '.';
  });
}

io::Status take_object(const json& object, const std::string& prefix, Config& config) {
  for (const auto& [name, value] : object.items()) {
    const std::string key = prefix + name;
    if (is_internal(key)) {
      return refuse("load file: " + key + " is an internal setting and cannot be configured");
    }
    const Row* row = find_row(key);
    if (row != nullptr && row->setting.in_file) {
      const std::string wrong = take_json(value, row->target(config));
      if (!wrong.empty()) {
        return refuse("load file: " + key + " " + wrong);
      }
      continue;
    }
    if (!is_group(key)) {
      return refuse("load file: json: unknown field \"" + key + "\"");
    }
    if (!value.is_object()) {
      return refuse("load file: " + key + " must be an object");
    }
    io::Status taken = take_object(value, key + ".", config);
    if (!taken.ok()) {
      return taken;
    }
  }
  return {};
}

io::Status take_file(const ConfigSources& sources, Config& config) {
  const json document = json::parse(sources.file_text, nullptr, false);
  if (document.is_discarded()) {
    return refuse("load file: " + sources.file_name + " is not valid JSON");
  }
  if (!document.is_object()) {
    return refuse("load file: " + sources.file_name + " does not hold a JSON object");
  }
  return take_object(document, "", config);
}

// ---- Rules ---------------------------------------------------------------------------------------------------------------------

io::Status check_address(std::string_view key, const std::string& address, bool must_be_loopback) {
  const io::Result<HostPort> parsed = parse_address(address);
  if (!parsed.ok()) {
    return refuse(std::string(key) + ": " + parsed.error().message);
  }
  if (must_be_loopback && !is_loopback_host(parsed->host)) {
    return refuse(std::string(key) + " (" + address +
                  ") can be reached from other machines, and this release has no authentication: anybody could change the "
                  "cluster's metadata; use a loopback address, or --insecure on a network that you trust");
  }
  return {};
}

io::Status check_peers(const Config& config) {
  const std::vector<Peer>& peers = config.cluster.peers;
  if (!config.cluster.advertise_addr.empty()) {
    if (io::Status address = check_address("cluster.advertise_addr", config.cluster.advertise_addr, false); !address.ok()) {
      return address;
    }
  }
  if (peers.empty()) {
    return {};
  }
  if (peers.size() < 3) {
    return refuse("cluster.peers must name at least 3 nodes when set (it names " + std::to_string(peers.size()) + ")");
  }
  std::set<std::string> ids;
  std::set<std::string> addresses;
  for (const Peer& peer : peers) {
    io::Status address = check_address("cluster.peers", peer.addr, false);
    if (!address.ok()) {
      return address;
    }
    if (!ids.insert(peer.id).second) {
      return refuse("cluster.peers names \"" + peer.id + "\" twice");
    }
    if (!addresses.insert(peer.addr).second) {
      return refuse("cluster.peers gives " + peer.addr + " to two nodes");
    }
  }
  if (!ids.contains(config.cluster.node_id) && config.cluster.advertise_addr.empty()) {
    return refuse("cluster.peers does not name this node (cluster.node_id is \"" + config.cluster.node_id +
                  "\"), so cluster.advertise_addr must say where the others reach it");
  }
  return {};
}

io::Status check_topic_defaults(const Config::Topic& topic) {
  if (topic.max_partitions < 3) {
    return refuse("topic.max_partitions must be >= 3");
  }
  if (topic.default_partitions < 3 || topic.default_partitions > topic.max_partitions) {
    return refuse("topic.default_partitions must be between 3 and topic.max_partitions (" +
                  std::to_string(topic.max_partitions) + ")");
  }
  if (topic.default_retention_age_ms != 0 && topic.default_retention_age_ms < 3'600'000) {
    return refuse("topic.default_retention_age_ms must be 0 or >= 3600000");
  }
  if (topic.default_visibility_timeout_ms <= 0) {
    return refuse("topic.default_visibility_timeout_ms must be > 0");
  }
  if (topic.default_retention_age_ms != 0 && topic.default_visibility_timeout_ms > topic.default_retention_age_ms) {
    return refuse("topic.default_visibility_timeout_ms must be <= topic.default_retention_age_ms");
  }
  if (topic.default_max_in_flight_per_partition <= 0) {
    return refuse("topic.default_max_in_flight_per_partition must be > 0");
  }
  if (topic.default_max_acked_ahead_per_partition <= 0) {
    return refuse("topic.default_max_acked_ahead_per_partition must be > 0");
  }
  return {};
}

constexpr io::Duration kSnapshotIntervalMin = std::chrono::milliseconds(5);

io::Status check_times(const Config& config) {
  const std::pair<std::string_view, io::Duration> positive[] = {
      {"http.read_timeout", config.http.read_timeout},
      {"http.write_timeout", config.http.write_timeout},
      {"http.idle_timeout", config.http.idle_timeout},
      {"cluster.raft_heartbeat_interval", config.cluster.raft_heartbeat_interval},
      {"cluster.raft_election_timeout_min", config.cluster.raft_election_timeout_min},
      {"cluster.raft_disk_stall_timeout", config.cluster.raft_disk_stall_timeout},
  };
  for (const auto& [key, value] : positive) {
    if (value <= io::Duration::zero()) {
      return refuse(std::string(key) + " must be > 0");
    }
  }
  if (config.http.shutdown_grace < io::Duration::zero()) {
    return refuse("http.shutdown_grace must be >= 0");
  }
  if (config.cluster.raft_election_timeout_min < 2 * config.cluster.raft_heartbeat_interval) {
    return refuse("cluster.raft_election_timeout_min (" + format_duration(config.cluster.raft_election_timeout_min) +
                  ") must be at least twice cluster.raft_heartbeat_interval (" +
                  format_duration(config.cluster.raft_heartbeat_interval) + ")");
  }
  if (config.cluster.raft_election_timeout_max <= config.cluster.raft_election_timeout_min) {
    return refuse("cluster.raft_election_timeout_max must be > cluster.raft_election_timeout_min");
  }
  if (config.cluster.raft_snapshot_threshold == 0) {
    return refuse("cluster.raft_snapshot_threshold must be > 0");
  }
  if (config.cluster.raft_snapshot_interval < kSnapshotIntervalMin) {
    return refuse("cluster.raft_snapshot_interval must be at least " + format_duration(kSnapshotIntervalMin));
  }
  return {};
}

// "--port n" and "--cluster-port n" keep the host.
io::Status take_port(std::string_view key, const std::string& text, std::string& address) {
  uint16_t port = 0;
  if (!parse_integer(text, port)) {
    return refuse(std::string(key) + ": \"" + text + "\" is not a port");
  }
  const size_t colon = address.rfind(':');
  address = address.substr(0, colon) + ":" + std::to_string(port);
  return {};
}

io::Status take_flags(const std::map<std::string, std::string>& flags, Config& config) {
  for (const auto& [key, text] : flags) {
    if (key == "http.port" || key == "cluster.port") {
      continue;
    }
    const Row* row = find_row(key);
    if (row == nullptr) {
      return refuse("unknown flag for \"" + key + "\"");
    }
    const std::string wrong = std::visit(TakeText{text}, row->target(config));
    if (!wrong.empty()) {
      return refuse(key + " (" + std::string(row->setting.flag) + "): " + wrong);
    }
  }
  const auto http_port = flags.find("http.port");
  if (http_port != flags.end()) {
    io::Status taken = take_port("http.addr (--port)", http_port->second, config.http.addr);
    if (!taken.ok()) {
      return taken;
    }
  }
  const auto cluster_port = flags.find("cluster.port");
  if (cluster_port != flags.end()) {
    return take_port("cluster.addr (--cluster-port)", cluster_port->second, config.cluster.addr);
  }
  return {};
}

}  // namespace

// ---- Public --------------------------------------------------------------------------------------------------------------------

bool Config::is_initial_member(std::string_view id) const {
  std::string_view rest = cluster.initial_members;
  bool is_named = rest.empty();
  while (!rest.empty() && !is_named) {
    const size_t comma = std::min(rest.find(','), rest.size());
    is_named = rest.substr(0, comma) == id;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return is_named;
}

bool Config::is_join_only() const {
  const auto is_self = [this](const Peer& peer) { return peer.id == cluster.node_id; };
  const bool is_peer = cluster.peers.empty() || std::any_of(cluster.peers.begin(), cluster.peers.end(), is_self);
  return !is_peer || !is_initial_member(cluster.node_id);
}

std::vector<Peer> Config::first_members() const {
  if (is_join_only()) {
    return {};
  }
  if (cluster.peers.empty()) {
    return {{cluster.node_id, advertised_cluster_addr()}};
  }
  std::vector<Peer> members;
  for (const Peer& peer : cluster.peers) {
    if (is_initial_member(peer.id)) {
      members.push_back(peer);
    }
  }
  return members;
}

std::string Config::advertised_http_addr(std::string_view bound_address) const {
  const std::string& cluster_addr = advertised_cluster_addr();
  return cluster_addr.substr(0, cluster_addr.rfind(':')) + std::string(bound_address.substr(bound_address.rfind(':')));
}

const std::string& Config::advertised_cluster_addr() const {
  if (!cluster.advertise_addr.empty()) {
    return cluster.advertise_addr;
  }
  for (const Peer& peer : cluster.peers) {
    if (peer.id == cluster.node_id) {
      return peer.addr;
    }
  }
  return cluster.addr;
}

const std::vector<Setting>& settings() {
  static const std::vector<Setting> kSettings = [] {
    std::vector<Setting> all;
    for (const Row& row : rows()) {
      all.push_back(row.setting);
    }
    return all;
  }();
  return kSettings;
}

io::Status validate(const Config& config) {
  if (config.cluster.node_id.empty() || config.cluster.node_id.size() > 200) {
    return refuse("cluster.node_id must have 1 to 200 bytes");
  }
  if (config.storage.data_dir.empty()) {
    return refuse("storage.data_dir must not be empty");
  }
  io::Status status = check_address("http.addr", config.http.addr, !config.insecure);
  if (status.ok()) {
    status = check_address("cluster.addr", config.cluster.addr, !config.insecure);
  }
  if (status.ok() && config.http.addr == config.cluster.addr && parse_address(config.http.addr)->port != 0) {
    status = refuse("http.addr and cluster.addr must differ (both are " + config.http.addr + ")");
  }
  if (status.ok() && config.http.max_header_bytes < 4096) {
    status = refuse("http.max_header_bytes must be >= 4096");
  }
  if (status.ok() && config.http.max_header_bytes > (16u << 20)) {
    status = refuse("http.max_header_bytes must be <= 16777216");
  }
  if (status.ok() && config.io != "auto" && config.io != "uring" && config.io != "epoll") {
    status = refuse("io (--io): \"" + config.io + "\" is none of auto, uring, epoll");
  }
  if (status.ok()) {
    status = check_times(config);
  }
  if (status.ok()) {
    status = check_topic_defaults(config.topic);
  }
  return status.ok() ? check_peers(config) : status;
}

io::Result<Config> load_config(const ConfigSources& sources) {
  Config config;
  if (!sources.file_name.empty()) {
    io::Status taken = take_file(sources, config);
    if (!taken.ok()) {
      return taken.error();
    }
  }
  for (const Row& row : rows()) {
    const auto set = sources.environment.find(std::string(row.setting.environment));
    if (row.setting.environment.empty() || set == sources.environment.end() || set->second.empty()) {
      continue;
    }
    const std::string wrong = std::visit(TakeText{set->second}, row.target(config));
    if (!wrong.empty()) {
      return refuse(std::string(row.setting.key) + " (" + std::string(row.setting.environment) + "): " + wrong);
    }
  }
  io::Status status = take_flags(sources.flags, config);
  if (config.cluster.node_id.empty()) {
    config.cluster.node_id = sources.default_node_id;
  }
  if (status.ok()) {
    status = validate(config);
  }
  if (!status.ok()) {
    return status.error();
  }
  return config;
}

io::Result<io::Duration> parse_duration(std::string_view text) {
  const io::Error wrong =
      io::fail(io::ErrorKind::invalid, "\"" + std::string(text) + "\" is not a duration with a unit, such as \"10s\"");
  if (text == "0") {
    return io::Duration::zero();
  }
  std::string_view rest = text;
  __int128 total = 0;
  if (rest.empty()) {
    return wrong;
  }
  while (!rest.empty()) {
    const size_t digits = std::min(rest.find_first_not_of("0123456789."), rest.size());
    const std::string_view number = rest.substr(0, digits);
    rest.remove_prefix(digits);
    const size_t letters = std::min(rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), rest.size());
    const std::string_view unit = rest.substr(0, letters);
    rest.remove_prefix(letters);
    int64_t unit_ns = 0;
    for (const auto& [name, ns] : {std::pair<std::string_view, int64_t>{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000},
                                   {"s", 1'000'000'000}, {"m", 60'000'000'000}, {"h", 3'600'000'000'000}}) {
      if (unit == name) {
        unit_ns = ns;
      }
    }
    const size_t point = number.find('.');
    const std::string_view whole = number.substr(0, point);
    const std::string_view fraction = point == std::string_view::npos ? std::string_view() : number.substr(point + 1);
    uint64_t whole_value = 0;
    if (unit_ns == 0 || whole.empty() || !parse_integer(whole, whole_value) || (point != std::string_view::npos && fraction.empty()) ||
        fraction.find('.') != std::string_view::npos || fraction.size() > 9) {
      return wrong;
    }
    total += static_cast<__int128>(whole_value) * unit_ns;
    int64_t place = unit_ns;
    for (const char digit : fraction) {
      place /= 10;
      total += place * (digit - '0');
    }
    if (total > std::numeric_limits<int64_t>::max() / 4) {
      return io::fail(io::ErrorKind::invalid, "\"" + std::string(text) + "\" is too long a duration");
    }
  }
  return io::Duration(static_cast<int64_t>(total));
}

std::string format_duration(io::Duration duration) {
  int64_t ns = duration.count();
  if (ns == 0) {
    return "0s";
  }
  std::string out = ns < 0 ? "-" : "";
  ns = ns < 0 ? -ns : ns;
  for (const auto& [name, unit] : {std::pair<const char*, int64_t>{"h", 3'600'000'000'000}, {"m", 60'000'000'000},
                                   {"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}}) {
    if (ns >= unit) {
      out += std::to_string(ns / unit) + name;
      ns %= unit;
    }
  }
  return out;
}

io::Result<HostPort> parse_address(std::string_view text) {
  const io::Error wrong = io::fail(io::ErrorKind::invalid, "\"" + std::string(text) + "\" is not an address (host:port)");
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return wrong;
  }
  HostPort address;
  std::string_view host = text.substr(0, colon);
  if (!parse_integer(text.substr(colon + 1), address.port)) {
    return wrong;
  }
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong;
  }
  if (host.find_first_of(" \t/@[]") != std::string_view::npos || host.size() > 253) {
    return wrong;
  }
  address.host = std::string(host);
  return address;
}

bool is_loopback_host(std::string_view host) {
  if (host == "localhost" || host == "::1") {
    return true;
  }
  // Four numbers, the first of which is 127.
  int parts = 0;
  bool first_is_127 = false;
  while (true) {
    const size_t point = host.find('.');
    uint8_t number = 0;
    if (!parse_integer(host.substr(0, point), number)) {
      return false;
    }
    first_is_127 = parts == 0 ? number == 127 : first_is_127;
    ++parts;
    if (point == std::string_view::npos) {
      return parts == 4 && first_is_127;
    }
    host.remove_prefix(point + 1);
  }
}

}  // namespace engine
