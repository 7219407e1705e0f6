// What a program's main function needs to run a node on this machine: it makes the loop, the data directory, the
// network, the executors, the log and the signal handling, runs the node's main fiber and gives its exit code back.
//
//   return io::real::run_host(settings, [&](io::Env& env, io::Event& stop) { return engine::run_node(...); });
//
// SIGINT and SIGTERM set `stop`; a second one ends the process at once with 128 + its number. SIGPIPE is ignored.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "io/env.h"
#include "io/real/log.h"
#include "io/real/loop.h"

namespace io::real {

struct HostSettings {
  std::string data_dir;  // made when absent, with its parents; relative to the working directory or absolute
  IoChoice io = IoChoice::automatic;
  LogSettings log;
  bool handle_signals = true;  // off: `stop` is the caller's to set, and signals keep their meaning
  // How long run() waits at its end for file operations still under way.
  Duration drain_patience = 10s;
  // Passed to the loop (LoopSettings); tests only.
  std::function<void(std::string_view operation, std::string_view path)> before_file_operation;
};

using MainFiber = std::function<int(io::Env& env, io::Event& stop)>;

// Everything behind one Env. On the thread that runs it.
class Host {
 public:
  // Also raises the process's limit of open descriptors as far as it may. Errors name the data directory: `invalid` (it
  // is a file), `denied` (not writable), `io`. Locking it is the node's own business (Disk::lock).
  static Result<std::unique_ptr<Host>> make(HostSettings settings);
  ~Host();

  // Runs `main_fiber` to its end. Then waits for file operations still under way; where the disk hangs longer than
  // drain_patience, says so and ends the process with the same code.
  int run(const MainFiber& main_fiber);

  io::Env& env();
  Loop& loop();

 private:
  struct Parts;
  explicit Host(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// Host::make and run; a failure to make it is logged as an error and answered by 1.
int run_host(HostSettings settings, const MainFiber& main_fiber);

}  // namespace io::real
