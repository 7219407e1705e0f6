// Server processes under measurement: started here, stopped here, their CPU time read from the kernel.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

// A directory of its own below `parent`, removed with everything in it at the end.
class ScratchDirectory {
 public:
  explicit ScratchDirectory(const std::string& parent);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A child process, killed at destruction. Its output goes to `log_path`.
class Process {
 public:
  Process(const std::vector<std::string>& arguments, const std::string& log_path);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;

  bool is_running() const;
  // User and system time so far, microseconds.
  int64_t cpu_us() const;
  // Resident memory now, bytes.
  int64_t resident_bytes() const;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// A TCP port of the loopback address that was free a moment ago.
int free_port();

// One HTTP/1.1 request on a connection of its own; empty when nobody answers within a second. `status` may be null.
std::string fetch(int port, const std::string& method, const std::string& target, const std::string& body, int* status);

}  // namespace bench
