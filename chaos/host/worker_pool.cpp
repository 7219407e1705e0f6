#include "chaos/host/worker_pool.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "io/check.h"

namespace chaos {
namespace {

using Clock = std::chrono::steady_clock;

bool write_all(int fd, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(fd, at, size);
    if (written <= 0) {
      if (written < 0 && errno == EINTR) {
        continue;
      }
      return false;
    }
    at += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

bool read_all(int fd, void* data, size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::read(fd, at, size);
    if (got <= 0) {
      if (got < 0 && errno == EINTR) {
        continue;
      }
      return false;
    }
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

bool send_text(int fd, const std::string& text) {
  const uint64_t size = text.size();
  return write_all(fd, &size, sizeof size) && write_all(fd, text.data(), text.size());
}

std::optional<std::string> receive_text(int fd) {
  uint64_t size = 0;
  if (!read_all(fd, &size, sizeof size)) {
    return std::nullopt;
  }
  std::string text(size, '\0');
  return read_all(fd, text.data(), size) ? std::optional<std::string>(std::move(text)) : std::nullopt;
}

uint64_t cpu_us() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1'000;
}

struct Worker {
  pid_t pid = -1;
  int to = -1;
  int from = -1;
  int errors = -1;  // a memory file that is the worker's stderr
  std::optional<Piece> piece;
  Clock::time_point began;
};

[[noreturn]] void serve(int from, int to, const std::function<std::string(const std::string&)>& work) {
  while (const auto request = receive_text(from)) {
    const uint64_t before = cpu_us();
    const std::string response = work(*request);
    const uint64_t used = cpu_us() - before;
    if (!write_all(to, &used, sizeof used) || !send_text(to, response)) {
      break;
    }
  }
  ::_exit(0);
}

class Pool {
 public:
  Pool(const PoolSettings& settings, const std::function<std::string(const std::string&)>& work)
      : settings_(settings), work_(work), workers_(static_cast<size_t>(std::max(settings.jobs, 1))) {}

  ~Pool() {
    for (Worker& worker : workers_) {
      stop(worker);
    }
  }

  bool run(const std::function<std::optional<Piece>()>& next, const std::function<bool(const PieceResult&)>& done) {
    bool has_more = true;
    while (true) {
      for (Worker& worker : workers_) {
        if (has_more && !worker.piece) {
          std::optional<Piece> piece = next();
          has_more = piece.has_value();
          if (piece) {
            give(worker, std::move(*piece));
          }
        }
      }
      std::vector<pollfd> waits;
      std::vector<Worker*> waiting;
      for (Worker& worker : workers_) {
        if (worker.piece) {
          waits.push_back({worker.from, POLLIN, 0});
          waiting.push_back(&worker);
        }
      }
      if (waits.empty()) {
        return true;
      }
      ::poll(waits.data(), waits.size(), 1'000);
      for (size_t i = 0; i < waits.size(); ++i) {
        const auto result = take(*waiting[i], waits[i].revents != 0);
        if (result && !done(*result)) {
          return false;
        }
      }
    }
  }

 private:
  void start(Worker& worker) {
    int down[2];
    int up[2];
    worker.errors = ::memfd_create("worker-errors", MFD_CLOEXEC);
    NARAD_CHECK(::pipe(down) == 0 && ::pipe(up) == 0 && worker.errors >= 0, "no pipes for a worker");
    worker.pid = ::fork();
    NARAD_CHECK(worker.pid >= 0, "no process for a worker");
    if (worker.pid == 0) {
      for (const Worker& other : workers_) {
        if (&other != &worker && other.pid > 0) {
          ::close(other.to);
          ::close(other.from);
        }
      }
      ::close(down[1]);
      ::close(up[0]);
      ::dup2(worker.errors, STDERR_FILENO);
      serve(down[0], up[1], work_);
    }
    ::close(down[0]);
    ::close(up[1]);
    worker.to = down[1];
    worker.from = up[0];
  }

  // Ends the worker and says how it went.
  std::string stop(Worker& worker) {
    if (worker.pid <= 0) {
      return "";
    }
    ::close(worker.to);
    if (worker.piece) {
      ::kill(worker.pid, SIGKILL);
    }
    return reap(worker);
  }

  std::string reap(Worker& worker) {
    int status = 0;
    while (::waitpid(worker.pid, &status, 0) < 0 && errno == EINTR) {
    }
    std::string how = WIFSIGNALED(status) ? "ended by signal " + std::to_string(WTERMSIG(status))
                                          : "exited with " + std::to_string(WEXITSTATUS(status));
    const off_t size = ::lseek(worker.errors, 0, SEEK_END);
    const off_t begin = std::max<off_t>(0, size - 4'000);
    std::string tail(static_cast<size_t>(std::max<off_t>(size, 0) - begin), '\0');
    if (::pread(worker.errors, tail.data(), tail.size(), begin) > 0) {
      how += ": " + tail;
    }
    ::close(worker.from);
    ::close(worker.errors);
    worker = Worker{};
    return how;
  }

  void give(Worker& worker, Piece piece) {
    if (worker.pid <= 0) {
      start(worker);
    }
    worker.piece = std::move(piece);
    worker.began = Clock::now();
    send_text(worker.to, worker.piece->request);  // a worker that died meanwhile shows when its answer is read
  }

  std::optional<PieceResult> take(Worker& worker, bool is_readable) {
    PieceResult result;
    if (is_readable) {
      uint64_t used = 0;
      std::optional<std::string> response;
      if (read_all(worker.from, &used, sizeof used)) {
        response = receive_text(worker.from);
      }
      result.piece = *worker.piece;
      if (response) {
        result.response = std::move(*response);
        result.cpu_us = used;
        worker.piece.reset();
      } else {
        ::close(worker.to);
        result.fault = reap(worker);
      }
      return result;
    }
    if (Clock::now() - worker.began > settings_.piece_limit) {
      result.piece = *worker.piece;
      result.fault = "stopped after " + std::to_string(settings_.piece_limit.count()) + " s of real time; " + stop(worker);
      return result;
    }
    return std::nullopt;
  }

  const PoolSettings& settings_;
  const std::function<std::string(const std::string&)>& work_;
  std::vector<Worker> workers_;
};

}  // namespace

bool run_pieces(const PoolSettings& settings, const std::function<std::string(const std::string& request)>& work,
                const std::function<std::optional<Piece>()>& next, const std::function<bool(const PieceResult&)>& done) {
  ::signal(SIGPIPE, SIG_IGN);
  return Pool(settings, work).run(next, done);
}

std::optional<std::string> run_fresh(const std::vector<std::string>& arguments) {
  int out[2];
  if (::pipe(out) != 0) {
    return std::nullopt;
  }
  const pid_t pid = ::fork();
  if (pid < 0) {
    return std::nullopt;
  }
  if (pid == 0) {
    ::dup2(out[1], STDOUT_FILENO);
    ::close(out[0]);
    ::close(out[1]);
    ::setenv("MALLOC_PERTURB_", "165", 1);
    std::vector<char*> argv{const_cast<char*>("narad-chaos")};
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
  }
  ::close(out[1]);
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t got = ::read(out[0], buffer, sizeof buffer);
    if (got > 0) {
      text.append(buffer, static_cast<size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      break;
    }
  }
  ::close(out[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) != 127 ? std::optional<std::string>(std::move(text)) : std::nullopt;
}

}  // namespace chaos
