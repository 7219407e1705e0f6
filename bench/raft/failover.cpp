// Three real processes under writes: how long until another leads and until writes go on after the leader is killed, the longest
// gap between acknowledged writes when it is asked to stop, and when it is told to hand over, beside the time to the answer. The machine's own stalls, seen by a thread that wants to wake every 10 ms, are
// reported beside both: a gap of that size is nobody's fault.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/raft/parts.h"
#include "bench/support/process.h"
#include "bench/support/report.h"

namespace bench {

namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kServers = 3;
constexpr int kWritersEach = 2;  // at every server

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(SteadyClock::now().time_since_epoch()).count();
}

// How late a thread wakes that sleeps until the next multiple of 10 ms.
class Ticker {
 public:
  Ticker() : thread_([this] { run(); }) {}
  ~Ticker() {
    is_ending_ = true;
    thread_.join();
  }
  // The latenesses since the last call.
  std::vector<std::int64_t> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(late_ns_, {});
  }

 private:
  void run() {
    for (auto due = SteadyClock::now(); !is_ending_;) {
      due += milliseconds(10);
      std::this_thread::sleep_until(due);
      const auto woken = SteadyClock::now();
      const std::scoped_lock lock(mutex_);
      late_ns_.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(woken - due).count());
      due = std::max(due, woken - milliseconds(10));
    }
  }
  std::atomic<bool> is_ending_ = false;
  std::mutex mutex_;
  std::vector<std::int64_t> late_ns_;
  std::thread thread_;
};

// One acknowledged write.
struct Acknowledged {
  std::int64_t sent_ns = 0;
  std::int64_t answered_ns = 0;
};

// Creates topics at one server, one after the other, on one connection; what fails is tried under another name.
class Writer {
 public:
  Writer(int port, std::atomic<std::uint64_t>& next) : port_(port), next_(next), thread_([this] { run(); }) {}
  ~Writer() {
    is_ending_ = true;
    thread_.join();
  }
  std::vector<Acknowledged> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(acknowledged_, {});
  }

 private:
  void run() {
    while (!is_ending_) {
      const std::int64_t sent = now_ns();
      if (write_one()) {
        const std::scoped_lock lock(mutex_);
        acknowledged_.push_back({sent, now_ns()});
      } else {
        std::this_thread::sleep_for(milliseconds(2));
      }
    }
    disconnect();
  }
  void disconnect() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  bool connect_to_server() {
    if (fd_ >= 0) return true;
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    const int on = 1;
    const timeval bound{10, 0};
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port_));
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return true;
    disconnect();
    return false;
  }
  bool write_one() {
    if (!connect_to_server()) return false;
    const std::string body = "{\"name\":\"t" + std::to_string(next_++) + "\",\"partitions\":3}";
    const std::string request = "POST /v1/topics HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    if (send(fd_, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
      disconnect();
      return false;
    }
    std::string answer;
    for (;;) {
      const std::size_t head = answer.find("\r\n\r\n");
      const std::size_t at = answer.find("Content-Length: ");
      if (head != std::string::npos && at < head) {
        const std::size_t whole = head + 4 + static_cast<std::size_t>(std::atoll(answer.c_str() + at + 16));
        if (answer.size() >= whole) break;
      }
      char buffer[4096];
      const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
      if (got <= 0) {
        disconnect();
        return false;
      }
      answer.append(buffer, static_cast<std::size_t>(got));
    }
    if (answer.find("Connection: close") != std::string::npos) disconnect();
    return answer.compare(9, 3, "201") == 0;
  }

  const int port_;
  std::atomic<std::uint64_t>& next_;
  std::atomic<bool> is_ending_ = false;
  int fd_ = -1;
  std::mutex mutex_;
  std::vector<Acknowledged> acknowledged_;
  std::thread thread_;
};

class Cluster {
 public:
  Cluster(const RaftOptions& options, std::string directory) : options_(options), directory_(std::move(directory)) {
    for (int i = 0; i < kServers; ++i) {
      http_ports_.push_back(free_port());
      const int port = free_port();
      cluster_ports_.push_back(port);
      peers_ += (i > 0 ? ",n" : "n") + std::to_string(i) + "@127.0.0.1:" + std::to_string(port);
    }
    processes_.resize(kServers);
    for (int i = 0; i < kServers; ++i) start(i);
  }
  void start(int i) {
    const auto at = static_cast<std::size_t>(i);
    const std::string id = "n" + std::to_string(i);
    processes_[at] = std::make_unique<Process>(
        std::vector<std::string>{"env", "NARAD_NODE_ID=" + id, "NARAD_CLUSTER_PEERS=" + peers_, "NARAD_LOG_LEVEL=info",
                                 "NARAD_HTTP_ADDR=127.0.0.1:" + std::to_string(http_ports_[at]),
                                 "NARAD_CLUSTER_ADDR=127.0.0.1:" + std::to_string(cluster_ports_[at]),
                                 "NARAD_DATA_DIR=" + directory_ + "/" + id, options_.program, "serve", "--io", options_.io},
        directory_ + "/" + id + ".log");
  }
  // Waits until one server leads and all three have applied the same.
  int settle() const {
    for (int attempt = 0; attempt < 600; ++attempt) {
      int leader = -1;
      double lowest = 1e18;
      double highest = 0;
      for (int i = 0; i < kServers; ++i) {
        const std::string text = fetch(http_ports_[static_cast<std::size_t>(i)], "GET", "/metrics", "", nullptr);
        const double applied = metric(text, "narad_raft_applied_index");
        lowest = std::min(lowest, applied);
        highest = std::max(highest, applied);
        if (metric(text, "narad_raft_state{state=\"leader\"}") == 1) leader = i;
      }
      // The servers are asked one after the other, under writes: they are level when none is far behind.
      if (leader >= 0 && lowest > 0 && highest - lowest < 2000) return leader;
      std::this_thread::sleep_for(milliseconds(50));
    }
    throw std::runtime_error("the servers did not come together within 30 seconds");
  }
  void signal_process(int i, int number) const { kill(processes_[static_cast<std::size_t>(i)]->pid(), number); }
  void await_end(int i) {
    const auto& process = processes_[static_cast<std::size_t>(i)];
    for (int attempt = 0; process->is_running(); ++attempt) {
      if (attempt > 3000) throw std::runtime_error("a server did not stop within 30 seconds");
      std::this_thread::sleep_for(milliseconds(10));
    }
  }
  const std::vector<int>& http_ports() const { return http_ports_; }
  // The number of the server that server `i` believes to lead; -1: none.
  int leader_known_to(int i) const {
    const std::string text = fetch(http_ports_[static_cast<std::size_t>(i)], "GET", "/metrics", "", nullptr);
    for (int each = 0; each < kServers; ++each) {
      if (metric(text, "narad_raft_leader_info{leader=\"n" + std::to_string(each) + "\"}") == 1) return each;
    }
    return -1;
  }
  // Has `leader` hand over to whom it likes; returns once it has answered.
  void hand_over(int leader) const {
    int status = 0;
    const std::string answer =
        fetch(http_ports_[static_cast<std::size_t>(leader)], "POST", "/v1/cluster/raft/transfer", "", &status);
    if (status != 200) throw std::runtime_error("a hand-over was answered by " + std::to_string(status) + ": " + answer);
  }

 private:
  static double metric(const std::string& text, const std::string& name) {
    const std::size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? 0 : std::stod(text.substr(at + name.size() + 2));
  }

  const RaftOptions& options_;
  std::string directory_;
  std::string peers_;
  std::vector<int> http_ports_;
  std::vector<int> cluster_ports_;
  std::vector<std::unique_ptr<Process>> processes_;
};

std::vector<Acknowledged> take_all(const std::vector<std::unique_ptr<Writer>>& writers) {
  std::vector<Acknowledged> all;
  for (const auto& writer : writers) {
    const std::vector<Acknowledged> some = writer->take();
    all.insert(all.end(), some.begin(), some.end());
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.answered_ns < b.answered_ns; });
  return all;
}

// From `begin` to the first acknowledgement of a write that was sent behind it.
std::optional<std::int64_t> first_write_after(const std::vector<Acknowledged>& all, std::int64_t begin) {
  for (const Acknowledged& each : all) {
    if (each.sent_ns >= begin) return each.answered_ns - begin;
  }
  return std::nullopt;
}

std::int64_t longest_gap(const std::vector<Acknowledged>& all, std::int64_t from) {
  std::int64_t longest = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].answered_ns >= from) longest = std::max(longest, all[i].answered_ns - all[i - 1].answered_ns);
  }
  return longest;
}

// Asks server `at` whom it follows, every few milliseconds, until that is another than `old`.
class LeaderWatch {
 public:
  LeaderWatch(const Cluster& cluster, int at, int old) : thread_([this, &cluster, at, old] { run(cluster, at, old); }) {}
  ~LeaderWatch() {
    is_ending_ = true;
    thread_.join();
  }
  // When it was seen; nothing: not yet.
  std::optional<std::int64_t> seen_ns() const {
    const std::int64_t seen = seen_ns_;
    return seen == 0 ? std::nullopt : std::optional(seen);
  }

 private:
  void run(const Cluster& cluster, int at, int old) {
    while (!is_ending_) {
      const int now = cluster.leader_known_to(at);
      if (now >= 0 && now != old) {
        seen_ns_ = now_ns();
        return;
      }
      std::this_thread::sleep_for(milliseconds(3));
    }
  }
  std::atomic<bool> is_ending_ = false;
  std::atomic<std::int64_t> seen_ns_ = 0;
  std::thread thread_;
};

void report_times(const std::string& name, const std::string& metric, std::vector<std::int64_t> times) {
  report("raft", name, 0, metric + "_median", "ms", static_cast<double>(quantile(times, 500)) / 1e6);
  report("raft", name, 0, metric + "_p90", "ms", static_cast<double>(quantile(times, 900)) / 1e6);
  report("raft", name, 0, metric + "_worst", "ms", static_cast<double>(quantile(times, 1000)) / 1e6);
}

void report_trials(const std::string& name, std::size_t trials, std::vector<std::int64_t> late) {
  report("raft", name, 0, "trials", "1", static_cast<double>(trials));
  report("raft", name, 0, "ticker_late_p99", "ms", static_cast<double>(quantile(late, 990)) / 1e6);
  report("raft", name, 0, "ticker_late_worst", "ms", static_cast<double>(quantile(late, 1000)) / 1e6);
}

enum class Strike { kill, stop, hand_over };

// What one trial took, by the strike. Nothing: not known yet.
struct Times {
  std::optional<std::int64_t> first_write;  // sent behind the strike
  std::int64_t longest_gap = 0;
  std::optional<std::int64_t> new_leader;  // kill: until a survivor follows another
  std::int64_t answered = 0;               // hand_over: until the leader's 200
};

// One trial under the writers' load: `leader` is struck, and the figures are there once writes have gone on behind it.
Times strike(Cluster& cluster, const std::vector<std::unique_ptr<Writer>>& writers, int leader, Strike kind) {
  Times times;
  const std::int64_t struck = now_ns();
  std::optional<LeaderWatch> watch;
  if (kind == Strike::kill) watch.emplace(cluster, (leader + 1) % kServers, leader);
  if (kind == Strike::hand_over) {
    cluster.hand_over(leader);
    times.answered = now_ns() - struck;
  } else {
    cluster.signal_process(leader, kind == Strike::kill ? SIGKILL : SIGTERM);
  }
  std::vector<Acknowledged> all;
  const auto is_known = [&] { return times.first_write && (!watch || times.new_leader); };
  // Long enough that a gap that begins late is seen too.
  for (int waited = 0; waited < 150 || !is_known(); ++waited) {
    if (waited > 3000) throw std::runtime_error("no write for 30 seconds after the leader was struck");
    std::this_thread::sleep_for(milliseconds(10));
    const std::vector<Acknowledged> more = take_all(writers);
    all.insert(all.end(), more.begin(), more.end());
    times.first_write = first_write_after(all, struck);
    if (watch && watch->seen_ns()) times.new_leader = *watch->seen_ns() - struck;
  }
  times.longest_gap = longest_gap(all, struck);
  return times;
}

// `trials` times: writes go on, the leader is struck and, where it has ended, started again.
std::vector<Times> run_trials(Cluster& cluster, const std::string& name, int trials, Strike kind) {
  std::atomic<std::uint64_t> next = (static_cast<std::uint64_t>(kind) + 1) << 40;
  std::vector<std::unique_ptr<Writer>> writers;
  for (int i = 0; i < kServers * kWritersEach; ++i) {
    writers.push_back(std::make_unique<Writer>(cluster.http_ports()[static_cast<std::size_t>(i % kServers)], next));
  }
  Ticker ticker;
  std::vector<Times> all;
  std::vector<std::int64_t> late;
  for (int trial = 0; trial < trials; ++trial) {
    const int leader = cluster.settle();
    std::this_thread::sleep_for(milliseconds(300));
    if (take_all(writers).empty()) throw std::runtime_error("writes are refused although the servers are level");
    std::this_thread::sleep_for(milliseconds(100));
    ticker.take();
    all.push_back(strike(cluster, writers, leader, kind));
    const std::vector<std::int64_t> ticks = ticker.take();
    late.insert(late.end(), ticks.begin(), ticks.end());
    if (kind == Strike::hand_over) continue;
    cluster.await_end(leader);
    cluster.start(leader);
  }
  report_trials(name, all.size(), std::move(late));
  return all;
}

template <class OfTimes>
std::vector<std::int64_t> each(const std::vector<Times>& all, OfTimes of_times) {
  std::vector<std::int64_t> times;
  for (const Times& one : all) times.push_back(of_times(one));
  return times;
}

}  // namespace

void measure_failover(const RaftOptions& options) {
  const ScratchDirectory scratch(options.directory);
  Cluster cluster(options, scratch.path());
  const auto gap = [](const Times& one) { return one.longest_gap; };
  std::vector<Times> all = run_trials(cluster, "kill_leader", options.trials, Strike::kill);
  report_times("kill_leader", "first_write", each(all, [](const Times& one) { return *one.first_write; }));
  report_times("kill_leader", "new_leader", each(all, [](const Times& one) { return *one.new_leader; }));
  all = run_trials(cluster, "stop_leader", options.trials, Strike::stop);
  report_times("stop_leader", "longest_gap", each(all, gap));
  all = run_trials(cluster, "transfer_leader", options.trials, Strike::hand_over);
  report_times("transfer_leader", "answered", each(all, [](const Times& one) { return one.answered; }));
  report_times("transfer_leader", "longest_gap", each(all, gap));
}

}  // namespace bench
