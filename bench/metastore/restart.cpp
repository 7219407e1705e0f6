// kill -9 of the node's program over the large metastore, and the start after it.
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/metastore/node.h"
#include "bench/metastore/parts.h"
#include "bench/support/load.h"
#include "bench/support/machine.h"
#include "bench/support/process.h"
#include "bench/support/report.h"
#include "engine/metastore/fsm.h"
#include "engine/metastore/replica.h"
#include "io/check.h"
#include "io/fiber.h"
#include "raft/server.h"

namespace bench {

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kClients = 64;
constexpr double kWriteSeconds = 2;
constexpr std::chrono::seconds kReadyFor(120);

struct Started {
  std::unique_ptr<Process> process;
  int port = 0;
  double seconds = 0;      // until /readyz answered 200
  double cpu_seconds = 0;  // of the node until then
};

Started start(const MetastoreOptions& options, const std::string& data_dir) {
  Started node;
  node.port = free_port();
  const std::string cluster = "127.0.0.1:" + std::to_string(free_port());
  const auto began = SteadyClock::now();
  node.process = std::make_unique<Process>(
      std::vector<std::string>{"/usr/bin/env", "NARAD_NODE_ID=n0", "NARAD_LOG_LEVEL=info",
                               "NARAD_HTTP_ADDR=127.0.0.1:" + std::to_string(node.port), "NARAD_CLUSTER_ADDR=" + cluster,
                               "NARAD_DATA_DIR=" + data_dir, options.program, "serve"},
      data_dir + "-log");
  int status = 0;
  while (fetch(node.port, "GET", "/readyz", "", &status), status != 200) {
    if (!node.process->is_running()) throw std::runtime_error("the node ended; see " + data_dir + "-log");
    if (SteadyClock::now() - began > kReadyFor) throw std::runtime_error("the node does not become ready");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  node.seconds = std::chrono::duration<double>(SteadyClock::now() - began).count();
  node.cpu_seconds = static_cast<double>(node.process->cpu_us()) / 1e6;
  return node;
}

void report_start(const std::string& name, const Started& node) {
  report("metastore", name, 0, "ready", "s", node.seconds);
  report("metastore", name, 0, "ready_cpu", "s", node.cpu_seconds);
}

// What raft hands to the state machine in the start after a kill, less what the database did not hold: entries applied again.
void count_applied_again(const std::string& data_dir) {
  const engine::Config config = node_config(data_dir);
  run_apart(data_dir, [&](io::Env& env) {
    io::Result<engine::metastore::FsmHeld> held = engine::metastore::Fsm::look(env);
    NARAD_CHECK(held.ok() && held->is_trusted, "the killed node's database is trusted");
    const raft::Index had = held->meta.state.applied_index;
    return with_node(env, config, [&](const engine::NodeView& node) {
      while (!node.raft.is_leader() || node.raft.status().apply_backlog > 0) io::sleep_for(std::chrono::milliseconds(5));
      const raft::Index now = node.raft.applied_index();
      report("metastore", "restart", 0, "held", "entries", static_cast<double>(had));
      report("metastore", "restart", 0, "behind_what_it_held", "entries", static_cast<double>(now - had));
      report("metastore", "restart", 0, "applied_again", "entries",
             static_cast<double>(node.raft.counters().entries_applied) - static_cast<double>(now - had));
    });
  });
}

}  // namespace

void measure_restart(const MetastoreOptions& options, const std::string& data_dir) {
  const SyncLimit sync = measure_sync(options.directory, 1, 1);
  report("metastore", "machine", 0, "sync_p50", "ms", static_cast<double>(sync.p50_ns) / 1e6);
  {
    const ScratchDirectory scratch(options.directory);
    report_start("start-empty", start(options, scratch.path() + "/data"));
  }
  uint64_t next = 0;
  const Protocol writes = http_protocol([](uint64_t) { return "/v1/topics"; }, [](uint64_t n) {
    return "{\"name\":\"small-" + std::to_string(n) + "\",\"partitions\":3}";
  });
  Started node = start(options, data_dir);
  report_start("start", node);
  for (int restart = 0; restart < options.restarts; ++restart) {
    (void)run_load(node.port, kClients, kWriteSeconds, writes, next);
    node.process.reset();  // kill -9
    node = start(options, data_dir);
    report_start("restart", node);
    report("metastore", "restart", 0, "memory", "MiB", static_cast<double>(node.process->resident_bytes()) / (1 << 20));
  }
  (void)run_load(node.port, kClients, kWriteSeconds, writes, next);
  node.process.reset();
  count_applied_again(data_dir);
}

}  // namespace bench
