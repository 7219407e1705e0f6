#include "bench/metastore/node.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "bench/support/process.h"
#include "io/real/host.h"

namespace bench {

engine::Config node_config(const std::string& data_dir) {
  engine::Config config;
  config.http.addr = "127.0.0.1:" + std::to_string(free_port());
  config.cluster.addr = "127.0.0.1:" + std::to_string(free_port());
  config.cluster.node_id = "n0";
  config.storage.data_dir = data_dir;
  return config;
}

void run_apart(const std::string& data_dir, const std::function<int(io::Env& env)>& work) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    io::real::HostSettings settings;
    settings.data_dir = data_dir;
    settings.log.level = io::LogLevel::error;
    settings.handle_signals = false;
    const int ended = io::real::run_host(settings, [&](io::Env& env, io::Event&) { return work(env); });
    std::fflush(stdout);
    std::_Exit(ended);
  }
  int ended = 0;
  if (child < 0 || waitpid(child, &ended, 0) != child || ended != 0) {
    throw std::runtime_error("a process over " + data_dir + " did not do its work");
  }
}

int with_node(io::Env& env, const engine::Config& config, const std::function<void(const engine::NodeView& node)>& work) {
  io::Event stop;
  engine::Hooks hooks;
  hooks.started = [&](const engine::NodeView& node) {
    node.scope.spawn("bench", [&work, &stop, node] {
      work(node);
      stop.set();
    });
  };
  std::string reason;
  const int ended = engine::run_node(env, config, hooks, stop, &reason);
  if (ended != 0) {
    std::fprintf(stderr, "bench/metastore: the node ended: %s\n", reason.c_str());
  }
  return ended;
}

}  // namespace bench
