// The node's settings: one table of keys (file key, environment name, flag, default, rule) and the values it fills.
//
// Precedence: default < JSON file < environment < flags. The file is strict: an unknown key at any level, a wrong type, a
// number without a unit where a duration is due, or anything after the object refuses it. The whole configuration is validated
// before anything is opened; every refusal names the setting and reads "config: config: ..." (the program puts "narad: " before).
//
// Nothing here reads the environment or a file: the program hands both in. Source: narad/config-cli-metrics.md 1 and 2.
//
// A departure: until authentication exists, both listeners default to 127.0.0.1, and an address that is not the loopback's is
// refused unless `insecure` is set.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cluster/frame_fields.h"
#include "io/log.h"
#include "io/result.h"
#include "io/time.h"

namespace engine {

// A member of the first configuration, as every node is given it.
struct Peer {
  std::string id;
  std::string addr;  // host:port of its cluster listener

  friend bool operator==(const Peer&, const Peer&) = default;
};

enum class LogFormat { json, text };

struct Config {
  struct Http {
    std::string addr = "127.0.0.1:7942";
    io::Duration read_timeout = std::chrono::seconds(10);   // a whole request, from its first byte
    io::Duration write_timeout = std::chrono::seconds(30);  // a whole response
    io::Duration idle_timeout = std::chrono::seconds(60);   // between requests of one connection
    io::Duration shutdown_grace = std::chrono::seconds(10);
    uint64_t max_header_bytes = 65536;
    uint64_t max_connections = 4096;  // 0: no cap
  } http;

  struct Cluster {
    std::string node_id;
    std::string addr = "127.0.0.1:7943";
    std::vector<Peer> peers;                                         // empty: a single node; else this node is among them
    std::string initial_members;                                     // "id,id,...": who may bootstrap; empty: every node
    std::string advertise_addr;                                      // where others reach cluster.addr; empty: as peers says
    io::Duration raft_heartbeat_interval = std::chrono::milliseconds(50);
    io::Duration raft_election_timeout_min = std::chrono::milliseconds(400);
    io::Duration raft_election_timeout_max = std::chrono::milliseconds(700);
    io::Duration raft_disk_stall_timeout = std::chrono::seconds(2);
    uint64_t raft_snapshot_threshold = 8192;                                  // entries since the last snapshot
    io::Duration raft_snapshot_interval = std::chrono::seconds(120);          // looked at every one to two of these
    uint64_t raft_trailing_logs = 10240;                                      // entries kept below a snapshot
  } cluster;

  struct Storage {
    std::string data_dir = "data";  // the program's business: the node sees it as Env::disk
  } storage;

  struct Topic {
    int64_t default_partitions = 3;
    int64_t max_partitions = 108;
    int64_t default_retention_age_ms = 604'800'000;  // 0: for ever
    int64_t default_visibility_timeout_ms = 30'000;
    int64_t default_max_in_flight_per_partition = 1024;
    int64_t default_max_acked_ahead_per_partition = 1024;
  } topic;

  struct Logging {
    io::LogLevel level = io::LogLevel::info;
    LogFormat format = LogFormat::json;
  } log;

  // No settings: what the simulator varies to reach rare paths. Production keeps these values.
  struct Tuning {
    uint32_t append_entries_max = 4096;         // raft::Settings::append_entries_max
    uint64_t raft_segment_bytes = 16u << 20;    // raft::LogSettings::segment_bytes
    uint64_t fsm_flush_bytes = 8u << 20;        // metastore::FsmSettings::flush_bytes
    uint32_t snapshot_chunk_bytes = 256u << 10;  // raft::SnapshotSettings::chunk_bytes
    uint64_t raft_tail_bytes = 16u << 20;       // raft::LogSettings::tail_bytes_max and raft::Settings::tail_bytes_max
    uint64_t raft_unapplied_bytes = 64u << 20;  // raft::Settings::unapplied_bytes_max
    uint64_t raft_applying_bytes = 4u << 20;    // raft::Settings::applying_bytes_max
    uint64_t raft_link_queue_bytes = 8u << 20;  // raft::LinkSettings::queue_bytes_max
    // Which release this node is (metastore::FsmSettings): its name in log lines, and its ways with the metastore. Empty: this build.
    struct Release {
      std::string name;
      uint32_t newest_type = 0;
      bool skips_unknown = false;
      bool writes_meta = true;
      cluster::FrameFields frames;  // what it knows of the node protocol
    } release;
  } tuning;

  bool insecure = false;    // flag --insecure only
  std::string io = "auto";  // flag --io only: auto, uring, epoll

  // The address of this node's cluster listener as the others dial it: cluster.advertise_addr, else its entry in peers, else
  // cluster.addr.
  const std::string& advertised_cluster_addr() const;
  // The address of its HTTP listener for the others: the host of the above, the port that is bound.
  std::string advertised_http_addr(std::string_view bound_address) const;
  // This node never bootstraps a cluster: initial_members names others only, or peers does.
  bool is_join_only() const;
  // Whether a node of this id may bootstrap.
  bool is_initial_member(std::string_view id) const;
  // Who bootstraps: those of peers that initial_members names, where it names any; without peers this node alone. Empty on a node that is
  // join-only.
  std::vector<Peer> first_members() const;
};

// Where settings come from, least first.
struct ConfigSources {
  std::string file_name;                           // for error texts; empty: no file was given
  std::string file_text;                           // the JSON text of the file
  std::map<std::string, std::string> environment;  // every NARAD_* name that is set; others are ignored
  std::map<std::string, std::string> flags;        // by key as below ("http.addr"; also "http.port"), as typed
  std::string default_node_id;                     // the host name: used when nothing sets cluster.node_id
};

// The validated configuration, or `invalid` with a text that names the setting.
io::Result<Config> load_config(const ConfigSources& sources);

// The rules alone, for a Config made by hand (the simulator, tests). Ok, or `invalid`.
io::Status validate(const Config& config);

// One row of the table of settings.
struct Setting {
  std::string_view key;          // "http.addr": the path in the file and the name in error texts
  std::string_view environment;  // "NARAD_HTTP_ADDR"; empty: none
  std::string_view flag;         // "--addr"; empty: none
  bool in_file;                  // whether the file may hold it
  std::string_view help;         // one line
};
const std::vector<Setting>& settings();

// "10s", "1m30s", "250ms", "1.5h": what a duration setting takes (units ns, us, ms, s, m, h). `invalid` otherwise, and for a
// bare number other than 0.
io::Result<io::Duration> parse_duration(std::string_view text);
// The shortest such text: "1m30s", "250ms", "0s".
std::string format_duration(io::Duration duration);

// "host:port" with a port of 0..65535; the host may be empty or bracketed. Used for every address setting.
struct HostPort {
  std::string host;
  uint16_t port = 0;
};
io::Result<HostPort> parse_address(std::string_view text);
// 127.0.0.0/8, ::1 or "localhost".
bool is_loopback_host(std::string_view host);

}  // namespace engine
