// Raft by its parts: the core alone, the log store beside the raw device, a warm start, elections and transfers of three real
// processes, snapshots between them. See bench/README.md.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/raft/parts.h"

int main(int argc, char** argv) {
  bench::RaftOptions options;
  std::vector<std::string> parts{"core", "log", "open", "failover", "snapshot"};
  CLI::App app("The parts of raft: core, log store, warm start, elections and transfers, snapshots");
  app.add_option("--program", options.program, "the narad program")->capture_default_str();
  app.add_option("--dir", options.directory, "where data directories are made")->capture_default_str();
  app.add_option("--io", options.io, "io backend: auto, uring or epoll")->capture_default_str();
  app.add_option("--seconds", options.seconds, "length of each measurement of the core and the log store")->capture_default_str();
  app.add_option("--trials", options.trials, "elections and transfers")->capture_default_str();
  app.add_option("--log-bytes", options.log_bytes, "size of the log that is opened warm")->capture_default_str();
  app.add_option("--snapshot-megabytes", options.snapshot_megabytes, "size of the metastore whose image is sent")->capture_default_str();
  app.add_option("--snapshot-interval", options.snapshot_interval_s, "seconds between looks whether a snapshot is due")
      ->capture_default_str();
  app.add_option("--parts", parts, "which parts: core, log, open, failover, snapshot")->delimiter(',')->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto wanted = [&](const char* part) { return std::find(parts.begin(), parts.end(), part) != parts.end(); };
  try {
    if (wanted("core")) bench::measure_core(options);
    if (wanted("log")) bench::measure_log(options);
    if (wanted("open")) bench::measure_warm_open(options);
    if (wanted("failover")) bench::measure_failover(options);
    if (wanted("snapshot")) bench::measure_snapshot(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench/raft: %s\n", error.what());
    return 1;
  }
  return 0;
}
