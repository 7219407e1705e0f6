// Real `narad` processes for the integration tests: started on free loopback ports with data directories of their own, watched,
// stopped, killed. Nothing a test starts survives it, whichever way the test ends.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/http_types.h"

namespace tests {

using namespace std::chrono_literals;
using Milliseconds = std::chrono::milliseconds;

// A directory that is gone with its object.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A small file system of its own, mounted below a TempDir or on a directory that there is. Making it needs rights that a test run may
// lack: is_mounted(), and else why_not().
class SmallDisk {
 public:
  explicit SmallDisk(uint64_t bytes, bool read_only = false);
  // Over what `directory` holds; that is seen again once this is gone.
  SmallDisk(uint64_t bytes, std::string directory);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool is_mounted() const { return error_ == 0; }
  std::string why_not() const;
  const std::string& path() const { return path_; }

  // Writes a file that leaves no byte of room, and removes it.
  void fill();
  void make_room();

 private:
  void mount_it(uint64_t bytes, bool read_only);

  TempDir dir_;
  std::string path_;
  int error_ = 0;
};

// A TCP port that nobody uses at the moment.
uint16_t free_port();

// One program, started once.
class Process {
 public:
  // `arguments[0]` is the program. Output of both kinds goes to `log_file`, appended.
  Process(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& environment,
          const std::string& log_file);
  ~Process();  // kills what still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number);
  bool is_running();
  // The exit code (128 + signal when killed by one); nullopt when it still runs after `patience`.
  std::optional<int> wait(Milliseconds patience);

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
};

// A node: its settings, its directory, and at most one process.
class NodeProcess {
 public:
  NodeProcess(std::string id, std::string data_dir, std::string log_file, uint16_t http_port, uint16_t cluster_port);

  const std::string& id() const { return id_; }
  std::string http_address() const { return "127.0.0.1:" + std::to_string(http_port_); }
  std::string cluster_address() const { return "127.0.0.1:" + std::to_string(cluster_port_); }
  const std::string& data_dir() const { return data_dir_; }

  void set_peers(std::string peers) { peers_ = std::move(peers); }
  // A setting of the processes to come, by its environment name.
  void set(const std::string& name, std::string value) { settings_[name] = std::move(value); }
  void start(const std::vector<std::string>& more_flags = {});
  void kill9();
  // SIGTERM; the exit code.
  std::optional<int> stop(Milliseconds patience = 20s);
  std::optional<int> wait(Milliseconds patience) { return process_->wait(patience); }
  bool is_running() { return process_ != nullptr && process_->is_running(); }

  // A request on a connection of its own; nullopt when nothing was answered.
  std::optional<engine::api::HttpResponse> request(std::string method, std::string target, std::string body = {},
                                                   Milliseconds patience = 15s) const;
  // The value of a sample line of /metrics that begins with `name` ("narad_raft_term", labels included).
  std::optional<double> metric(const std::string& name) const;
  bool is_ready() const;
  bool is_leader() const;
  bool wait_ready(Milliseconds patience = 30s) const;
  // Everything its processes have printed so far.
  std::string log() const;

 private:
  std::string id_;
  std::string data_dir_;
  std::string log_file_;
  uint16_t http_port_;
  uint16_t cluster_port_;
  std::string peers_;
  std::map<std::string, std::string> settings_;
  std::unique_ptr<Process> process_;
};

// Polls `condition` until it holds or `patience` is over.
template <typename Condition>
bool eventually(Condition condition, Milliseconds patience = 30s) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) {
      return false;
    }
    struct timespec pause = {0, 10'000'000};
    nanosleep(&pause, nullptr);
  }
  return true;
}

// Sends raw bytes to 127.0.0.1:`port`, optionally ends its direction, and returns what comes back until the far side closes or
// `patience` is over.
std::string talk_raw(uint16_t port, const std::string& bytes, bool end, Milliseconds patience = 15s);

}  // namespace tests
