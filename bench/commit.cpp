// The commit path of three real processes on loopback: N clients create topics over HTTP at the leader, through a follower,
// and over the node protocol; beside it, in the same run, the machine's own limits and three etcd processes under the same
// load. See bench/README.md.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/support/load.h"
#include "bench/support/machine.h"
#include "bench/support/process.h"
#include "bench/support/report.h"

namespace {

using bench::report;

struct Options {
  std::string program = "build/release/narad";
  std::string directory = "/var/tmp";
  double seconds = 4;
  std::vector<int> clients{1, 16, 64, 256};
  bool with_narad = true;
  bool with_etcd = true;
  std::string io = "auto";
};

// Three server processes and how to find their leader.
struct Servers {
  std::vector<bench::Process> processes;
  std::vector<int> http_ports;
  std::vector<int> cluster_ports;
  size_t leader = 0;
  size_t follower = 1;

  int64_t cpu_us() const {
    int64_t sum = 0;
    for (const bench::Process& process : processes) {
      sum += process.cpu_us();
    }
    return sum;
  }
};

void find_leader(Servers& servers, const std::function<bool(size_t)>& leads) {
  for (int attempt = 0; attempt < 200; ++attempt) {
    for (size_t i = 0; i < servers.processes.size(); ++i) {
      if (leads(i)) {
        servers.leader = i;
        servers.follower = (i + 1) % servers.processes.size();
        return;
      }
    }
    usleep(100'000);
  }
  throw std::runtime_error("no leader within 20 seconds");
}

// The value of one metric line of the Prometheus text at `port`; 0 when absent.
double metric(int port, const std::string& name) {
  std::istringstream lines(bench::fetch(port, "GET", "/metrics", "", nullptr));
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, name.size() + 1, name + " ") == 0) {
      return std::stod(line.substr(name.size() + 1));
    }
  }
  return 0;
}

Servers start_narad(const Options& options, const std::string& directory) {
  Servers servers;
  std::string peers;
  for (int i = 0; i < 3; ++i) {
    servers.http_ports.push_back(bench::free_port());
    servers.cluster_ports.push_back(bench::free_port());
    peers += (i > 0 ? "," : "") + ("n" + std::to_string(i)) + "@127.0.0.1:" + std::to_string(servers.cluster_ports.back());
  }
  for (size_t i = 0; i < 3; ++i) {
    const std::string id = "n" + std::to_string(i);
    servers.processes.emplace_back(
        std::vector<std::string>{"env", "NARAD_NODE_ID=" + id, "NARAD_CLUSTER_PEERS=" + peers, "NARAD_LOG_LEVEL=warn",
                                 "NARAD_HTTP_ADDR=127.0.0.1:" + std::to_string(servers.http_ports[i]),
                                 "NARAD_CLUSTER_ADDR=127.0.0.1:" + std::to_string(servers.cluster_ports[i]),
                                 "NARAD_DATA_DIR=" + directory + "/" + id, options.program, "serve", "--io", options.io},
        directory + "/" + id + ".log");
  }
  find_leader(servers, [&](size_t i) { return metric(servers.http_ports[i], "narad_raft_state{state=\"leader\"}") == 1; });
  return servers;
}

std::string base64(const std::string& bytes) {
  static const char* const kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0);
    }
    for (size_t j = 0; j < 4; ++j) {
      out.push_back(i + j > bytes.size() ? '=' : kDigits[group >> (18 - 6 * j) & 63]);
    }
  }
  return out;
}

Servers start_etcd(const std::string& directory) {
  Servers servers;
  std::string cluster;
  for (int i = 0; i < 3; ++i) {
    servers.http_ports.push_back(bench::free_port());
    servers.cluster_ports.push_back(bench::free_port());
    cluster += (i > 0 ? ",e" : "e") + std::to_string(i) + "=http://127.0.0.1:" + std::to_string(servers.cluster_ports.back());
  }
  for (size_t i = 0; i < 3; ++i) {
    const std::string id = "e" + std::to_string(i);
    const std::string client = "http://127.0.0.1:" + std::to_string(servers.http_ports[i]);
    const std::string peer = "http://127.0.0.1:" + std::to_string(servers.cluster_ports[i]);
    servers.processes.emplace_back(
        std::vector<std::string>{"etcd", "--name", id, "--data-dir", directory + "/" + id, "--listen-client-urls", client,
                                 "--advertise-client-urls", client, "--listen-peer-urls", peer,
                                 "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster,
                                 "--initial-cluster-state", "new", "--log-level", "error"},
        directory + "/" + id + ".log");
  }
  // The status names the answering member (member_id) and the leader: the leader is the one that names itself.
  auto field = [](const std::string& text, const std::string& name) {
    const size_t at = text.find("\"" + name + "\":\"");
    return at == std::string::npos ? std::string()
                                   : text.substr(at + name.size() + 4, text.find('"', at + name.size() + 4) - at - name.size() - 4);
  };
  find_leader(servers, [&](size_t i) {
    const std::string status = bench::fetch(servers.http_ports[i], "POST", "/v3/maintenance/status", "{}", nullptr);
    return !field(status, "leader").empty() && field(status, "leader") == field(status, "member_id");
  });
  return servers;
}

// Runs one load and prints its figures. `syncs` gives the data syncs of all nodes so far, where the servers count them.
void measure(const std::string& name, const Servers& servers, int port, int clients, const Options& options,
             const bench::Protocol& protocol, uint64_t& next, const std::function<double()>& syncs) {
  const int64_t cpu_before = servers.cpu_us();
  const double syncs_before = syncs ? syncs() : 0;
  bench::LoadResult result = bench::run_load(port, clients, options.seconds, protocol, next);
  const double writes = static_cast<double>(result.accepted);
  if (writes == 0 || result.refused > 0) {
    std::fprintf(stderr, "%s: %llu writes refused, the first with: %s\n", name.c_str(),
                 static_cast<unsigned long long>(result.refused), result.first_refusal.c_str());
  }
  report("commit", name, clients, "writes", "1/s", writes / result.seconds);
  report("commit", name, clients, "p50", "us", static_cast<double>(bench::quantile(result.latencies_ns, 500)) / 1e3);
  report("commit", name, clients, "p99", "us", static_cast<double>(bench::quantile(result.latencies_ns, 990)) / 1e3);
  report("commit", name, clients, "server_cpu_per_write", "us", static_cast<double>(servers.cpu_us() - cpu_before) / writes);
  report("commit", name, clients, "refused", "1", static_cast<double>(result.refused));
  if (syncs) {
    report("commit", name, clients, "data_syncs_per_node_and_write", "1", (syncs() - syncs_before) / 3 / writes);
  }
}

void bench_narad(const Options& options, const std::string& directory) {
  const Servers servers = start_narad(options, directory);
  const auto syncs = [&] {
    double sum = 0;
    for (int port : servers.http_ports) {
      sum += metric(port, "narad_raft_log_syncs_total");
    }
    return sum;
  };
  uint64_t next = 0;
  const auto topic = [](uint64_t n) { return "topic-" + std::to_string(n); };
  const auto body = [topic](uint64_t n) { return "{\"name\":\"" + topic(n) + "\",\"partitions\":3}"; };
  const bench::Protocol http = bench::http_protocol([](uint64_t) { return "/v1/topics"; }, body);
  const bench::Protocol rpc = bench::create_topic_protocol(topic, body);
  for (int clients : options.clients) {
    measure("leader", servers, servers.http_ports[servers.leader], clients, options, http, next, syncs);
    measure("follower", servers, servers.http_ports[servers.follower], clients, options, http, next, syncs);
    measure("node_protocol", servers, servers.cluster_ports[servers.leader], clients, options, rpc, next, syncs);
  }
}

void bench_etcd(const Options& options, const std::string& directory) {
  const Servers servers = start_etcd(directory);
  uint64_t next = 0;
  const std::string value = base64(std::string(200, 'v'));
  const bench::Protocol put = bench::http_protocol(
      [](uint64_t) { return "/v3/kv/put"; },
      [&value](uint64_t n) {
        return "{\"key\":\"" + base64("topic-" + std::to_string(n)) + "\",\"value\":\"" + value + "\"}";
      });
  for (int clients : options.clients) {
    measure("etcd", servers, servers.http_ports[servers.leader], clients, options, put, next, nullptr);
  }
}

void run(const Options& options) {
  const bench::ScratchDirectory scratch(options.directory);
  const bench::SyncLimit limit = bench::measure_sync(scratch.path(), 3, 2);
  const int64_t round_trip_ns = bench::measure_round_trip(20'000);
  report("commit", "machine", 0, "fdatasync_three_writers_p50", "us", static_cast<double>(limit.p50_ns) / 1e3);
  report("commit", "machine", 0, "fdatasync_three_writers_p99", "us", static_cast<double>(limit.p99_ns) / 1e3);
  report("commit", "machine", 0, "loopback_round_trip_p50", "us", static_cast<double>(round_trip_ns) / 1e3);
  if (options.with_narad) {
    bench_narad(options, scratch.path());
  }
  if (options.with_etcd) {
    bench_etcd(options, scratch.path());
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("The commit path of three processes on loopback, beside the machine's limits and etcd");
  app.add_option("--program", options.program, "the narad program")->capture_default_str();
  app.add_option("--dir", options.directory, "where data directories are made")->capture_default_str();
  app.add_option("--seconds", options.seconds, "length of each load")->capture_default_str();
  app.add_option("--clients", options.clients, "numbers of clients")->capture_default_str();
  app.add_option("--io", options.io, "io backend of narad: auto, uring or epoll")->capture_default_str();
  app.add_flag("!--no-narad", options.with_narad, "leave narad out");
  app.add_flag("!--no-etcd", options.with_etcd, "leave etcd out");
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench/commit: %s\n", error.what());
    return 1;
  }
  return 0;
}
