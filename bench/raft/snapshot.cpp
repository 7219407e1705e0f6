// Snapshots between real processes: a follower that was away until the leader's log no longer reaches it is sent an image. What that
// costs either side of memory, what it does to the leader's applies, and how fast it is, beside the machine's own limits.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/raft/parts.h"
#include "bench/raft/snapshot_member.h"
#include "bench/support/machine.h"
#include "bench/support/process.h"
#include "bench/support/report.h"

namespace bench {

namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kSendBytesPerSecond = 64u << 20;  // raft::SnapshotPolicy's

double seconds_since(SteadyClock::time_point begun) { return std::chrono::duration<double>(SteadyClock::now() - begun).count(); }
double to_mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
double above(std::uint64_t now, std::uint64_t before) { return now > before ? to_mebibytes(now - before) : 0; }

void say(const std::string& part, const char* metric, const char* unit, double value) { report("raft", part, 0, metric, unit, value); }

class Group {
 public:
  Group(const RaftOptions& options, const std::string& directory) {
    std::vector<std::pair<std::string, std::string>> all;
    for (int i = 0; i < 3; ++i) all.emplace_back("s" + std::to_string(i + 1), "127.0.0.1:" + std::to_string(free_port()));
    for (const auto& [id, address] : all) members_.push_back(std::make_unique<Member>(options, id, directory + "/" + id, all));
    for (auto& member : members_) {
      member->shared().send_bytes_per_second = kSendBytesPerSecond;
      member->shared().should_run = true;
      member->start();
    }
  }

  Member& operator[](std::size_t i) { return *members_[i]; }

  static void wait(const char* what, const std::function<bool()>& condition, seconds limit) {
    const auto until = SteadyClock::now() + limit;
    while (!condition()) {
      if (SteadyClock::now() > until) throw std::runtime_error(std::string("it took too long: ") + what);
      std::this_thread::sleep_for(milliseconds(2));
    }
  }

  std::size_t await_leader() {
    wait("to elect a leader", [this] { return find_leader() < members_.size(); }, seconds(30));
    std::this_thread::sleep_for(seconds(1));
    const std::size_t leader = find_leader();
    if (leader == members_.size()) throw std::runtime_error("leadership does not last");
    return leader;
  }

  void await_level(std::size_t leader) {
    wait("for the followers", [&] {
      return std::all_of(members_.begin(), members_.end(), [&](auto& member) {
        return member->shared().applied >= members_[leader]->shared().last;
      });
    }, seconds(300));
  }

  void set_load(std::size_t leader, bool is_on, bool reads) {
    members_[leader]->shared().should_write = is_on;
    for (auto& member : members_) member->shared().should_read = reads;
  }

  // Every raft server ends and begins anew over its metastore.
  void restart_servers(std::uint64_t send_bytes_per_second) {
    for (auto& member : members_) member->shared().should_run = false;
    for (auto& member : members_) wait("to stop", [&] { return !member->shared().is_running; }, seconds(60));
    for (auto& member : members_) {
      member->shared().send_bytes_per_second = send_bytes_per_second;
      member->shared().should_run = true;
    }
  }

 private:
  std::size_t find_leader() {
    std::size_t i = 0;
    while (i < members_.size() && !members_[i]->shared().is_leader) ++i;
    return i;
  }

  std::vector<std::unique_ptr<Member>> members_;
};

// A leader whose follower is dead while writes go on past compaction; then the follower comes back and is sent an image.
void measure_dead_follower(Group& group) {
  const std::size_t leader = group.await_leader();
  Member& leading = group[leader];
  Member& dead = group[(leader + 1) % 3];
  std::this_thread::sleep_for(seconds(2));
  const std::uint64_t idle = leading.resident();
  say("dead-follower", "leader_idle", "MiB", to_mebibytes(idle));
  const std::uint64_t last = dead.shared().applied;
  dead.kill();
  group.set_load(leader, true, false);
  const auto begun = SteadyClock::now();
  Group::wait("to compact", [&] { return leading.shared().log_base > last; }, seconds(600));
  say("dead-follower", "writes_until_compaction_passed_it", "", static_cast<double>(leading.shared().written));
  say("dead-follower", "time_until_compaction_passed_it", "s", seconds_since(begun));
  say("dead-follower", "leader_above_idle_while_dead", "MiB", above(leading.peak(), idle));
  dead.shared().snapshots_installed = 0;
  dead.start();
  Group::wait("to install", [&] { return dead.shared().snapshots_installed > 0 && leading.shared().snapshots_sent > 0; }, seconds(300));
  std::this_thread::sleep_for(seconds(2));
  group.set_load(leader, false, false);
  group.await_level(leader);
  say("dead-follower", "size_of_image_sent", "MiB", to_mebibytes(leading.shared().snapshot_bytes));
  say("dead-follower", "leader_above_idle", "MiB", above(leading.peak(), idle));
  say("dead-follower", "leader_peak_of_rocksdb", "MiB", to_mebibytes(leading.shared().rocksdb_bytes_max));
}

void fill(Group& group, const RaftOptions& options) {
  const std::size_t leader = group.await_leader();
  constexpr std::uint64_t kRowBytes = 4096;
  const std::uint64_t rows = (options.snapshot_megabytes << 20) / kRowBytes;
  const auto begun = SteadyClock::now();
  group[leader].shared().row_bytes = kRowBytes;
  group[leader].shared().fill_rows = rows;
  Group::wait("to fill", [&] { return group[leader].shared().fill_rows == 0; }, seconds(1800));
  say("snapshot", "fill", "MB/s", static_cast<double>(rows * kRowBytes) / 1e6 / seconds_since(begun));
  group.await_level(leader);
  for (std::size_t i = 0; i < 3; ++i) group[i].shared().rows_filled = rows;
}

// When the image's stream begins and when its last chunk is there, by the file that it goes into.
struct Stream {
  double began = 0;
  double ended = 0;
};

// A server is away until the log has been compacted past it, comes back, and is sent an image; the processes go on.
void measure_send(Group& group, const std::string& part, std::uint64_t bytes_per_second) {
  if (group[0].shared().send_bytes_per_second != bytes_per_second) group.restart_servers(bytes_per_second);
  const std::size_t leader = group.await_leader();
  Member& leading = group[leader];
  Member& receiving = group[(leader + 1) % 3];
  group.set_load(leader, true, true);
  leading.reset_peak();
  receiving.reset_peak();
  // Caches and memtables of all three as full as an ordinary life makes them.
  const std::uint64_t written = leading.shared().written;
  const std::uint64_t reads = receiving.shared().reads;
  Group::wait("to warm up", [&] { return leading.shared().written > written + 20'000 && receiving.shared().reads > reads + 15'000; },
              seconds(600));
  receiving.shared().is_cut_off = true;
  std::this_thread::sleep_for(seconds(1));
  const std::uint64_t last = receiving.shared().last;
  Group::wait("to compact", [&] { return leading.shared().log_base > last; }, seconds(900));
  // Without an image on its way: a few seconds of the same load.
  leading.shared().should_forget_gap = true;
  std::this_thread::sleep_for(seconds(5));
  say(part, "longest_gap_between_applies_before", "ms", static_cast<double>(leading.shared().longest_gap_ns) / 1e6);
  const std::uint64_t running_sender = leading.peak();
  const std::uint64_t running_receiver = receiving.peak();
  say(part, "sender_running_peak", "MiB", to_mebibytes(running_sender));
  say(part, "receiver_running_peak", "MiB", to_mebibytes(running_receiver));
  const std::uint64_t sent_before = leading.shared().snapshots_sent;
  leading.reset_peak();
  receiving.reset_peak();

  const auto begun = SteadyClock::now();
  const std::string path = receiving.directory() + "/raft/snapshots/receiving";
  const std::uint64_t writes_before = leading.shared().written;
  Stream stream;
  std::uint64_t bytes = 0;
  const std::uint64_t installed_before = receiving.shared().snapshots_installed;
  receiving.shared().is_cut_off = false;
  Group::wait("to send", [&] {
    struct stat file {};
    if (stat(path.c_str(), &file) == 0 && file.st_size > 0 && static_cast<std::uint64_t>(file.st_size) > bytes) {
      if (stream.began == 0) stream.began = seconds_since(begun);
      bytes = static_cast<std::uint64_t>(file.st_size);
      stream.ended = seconds_since(begun);
    }
    return leading.shared().snapshots_sent > sent_before;
  }, seconds(900));
  const double sent = seconds_since(begun);
  const std::uint64_t sender_until_sent = leading.peak();
  const std::uint64_t receiver_until_sent = receiving.peak();
  const auto gap = static_cast<double>(leading.shared().longest_gap_ns) / 1e6;
  Group::wait("to install", [&] { return receiving.shared().snapshots_installed > installed_before; }, seconds(900));
  const double installed = seconds_since(begun);
  const std::uint64_t receiver_until_installed = receiving.peak();
  const double writes = static_cast<double>(leading.shared().written - writes_before) / installed;
  group.set_load(leader, false, false);
  group.await_level(leader);
  say(part, "rate_limit", "MB/s", static_cast<double>(bytes_per_second) / 1e6);
  say(part, "size", "MiB", to_mebibytes(bytes));
  say(part, "rate", "MB/s", static_cast<double>(bytes) / 1e6 / (stream.ended - stream.began));
  say(part, "rate_until_checked_and_in_place", "MB/s", static_cast<double>(bytes) / 1e6 / (sent - stream.began));
  say(part, "rate_of_install", "MB/s", static_cast<double>(bytes) / 1e6 / (installed - sent));
  say(part, "longest_gap_between_applies", "ms", gap);
  say(part, "writes_meanwhile", "1/s", writes);
  say(part, "sender_memory_added_until_sent", "MiB", above(sender_until_sent, running_sender));
  say(part, "sender_memory_added_until_level", "MiB", above(leading.peak(), running_sender));
  say(part, "receiver_memory_added_until_in_place", "MiB", above(receiver_until_sent, running_receiver));
  say(part, "receiver_memory_added_until_installed", "MiB", above(receiver_until_installed, running_receiver));
  say(part, "receiver_memory_added_until_level", "MiB", above(receiving.peak(), running_receiver));
  say(part, "receiver_peak_of_rocksdb", "MiB", to_mebibytes(receiving.shared().rocksdb_bytes_max));
  say(part, "sender_peak_of_rocksdb", "MiB", to_mebibytes(leading.shared().rocksdb_bytes_max));
}

}  // namespace

void measure_snapshot(const RaftOptions& options) {
  const ScratchDirectory scratch(options.directory);
  const std::uint64_t probe_bytes = std::min<std::uint64_t>(options.snapshot_megabytes, 512) << 20;
  const auto limits = [&](const char* when) {
    const std::string part = std::string("machine-") + when;
    say(part, "sequential_write_with_data_syncs", "MB/s", measure_sequential_write(scratch.path(), probe_bytes));
    say(part, "loopback", "MB/s", measure_loopback(probe_bytes));
  };
  limits("before");
  {
    Group group(options, scratch.path());
    measure_dead_follower(group);
    fill(group, options);
    measure_send(group, "snapshot", kSendBytesPerSecond);
    measure_send(group, "snapshot-without-limit", 0);
  }
  limits("after");
}

}  // namespace bench
