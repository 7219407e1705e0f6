// The log store on the production backend: appends of small batches beside the raw device, and the opening of a warm log.
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/raft/parts.h"
#include "bench/support/machine.h"
#include "bench/support/process.h"
#include "bench/support/report.h"
#include "io/real/host.h"
#include "raft/log_store.h"

namespace bench {

namespace {

constexpr raft::StoreId kStore{7, 9};
constexpr std::size_t kPayloadBytes = 256;
constexpr std::size_t kWarmPayloadBytes = 4096;

void must(const io::Status& status, const char* what) {
  if (!status.ok()) throw std::runtime_error(std::string(what) + ": " + status.error().to_text());
}

// Runs `body` in a fiber of a host of its own; what it throws is thrown again here.
void on_host(const RaftOptions& options, const std::string& directory, const std::function<void(io::Env&)>& body) {
  io::real::HostSettings settings;
  settings.data_dir = directory;
  settings.io = *io::real::parse_io_choice(options.io);
  settings.log.level = io::LogLevel::error;
  settings.handle_signals = false;
  std::string failure;
  const int code = io::real::run_host(settings, [&](io::Env& env, io::Event&) {
    try {
      body(env);
    } catch (const std::runtime_error& error) {
      failure = error.what();
      return 1;
    }
    return 0;
  });
  if (code != 0) throw std::runtime_error(failure.empty() ? "the host ended with an error" : failure);
}

std::unique_ptr<raft::LogStore> open(io::Env& env, raft::LogStore::Contents& contents) {
  must(env.disk.make_directory("raft"), "raft/");
  auto log = raft::LogStore::open(env.disk, kStore, raft::LogSettings(), contents);
  if (!log.ok()) throw std::runtime_error(log.error().to_text());
  return std::move(*log);
}

// Prepares segments as the server does, in a fiber beside the one that appends.
class Preparer {
 public:
  Preparer(io::Scope& scope, raft::LogStore& log) : log_(log), task_(scope.spawn("bench/segments", [this] { run(); })) {}
  void look() {
    if (log_.wants_segment()) wanted_.notify_one();
  }
  void end() {
    is_ending_ = true;
    wanted_.notify_one();
    task_.join();
  }

 private:
  void run() {
    while (!is_ending_) {
      if (log_.wants_segment()) {
        must(log_.prepare_segment(), "a segment");
      } else {
        wanted_.wait();
      }
    }
  }
  raft::LogStore& log_;
  bool is_ending_ = false;
  io::Condition wanted_;
  io::Task task_;
};

std::vector<raft::Entry> batch_behind(const raft::LogStore& log, std::size_t entries, const raft::Payload& payload) {
  std::vector<raft::Entry> batch;
  for (std::size_t i = 0; i < entries; ++i) {
    batch.push_back(raft::Entry{1, log.last_index() + 1 + i, raft::EntryType::command, payload});
  }
  return batch;
}

void measure_appends(io::Env& env, raft::LogStore& log, std::size_t batch, double seconds) {
  const raft::Payload payload = std::make_shared<const std::string>(kPayloadBytes, 'x');
  std::vector<std::int64_t> times_ns;
  const std::uint64_t syncs_before = log.syncs();
  io::Instant now = env.now();
  const io::Instant begin = now;
  const io::Instant end = begin + std::chrono::duration_cast<io::Duration>(std::chrono::duration<double>(seconds));
  io::with_scope([&](io::Scope& scope) {
    Preparer preparer(scope, log);
    while (now < end) {
      must(log.append(batch_behind(log, batch, payload)), "an append");
      preparer.look();
      const io::Instant done = env.now();
      times_ns.push_back((done - now).count());
      now = done;
    }
    preparer.end();
  });
  const auto batches = static_cast<double>(times_ns.size());
  const std::string name = "log_batch_" + std::to_string(batch);
  report("raft", name, 0, "entries", "1/s", batches * static_cast<double>(batch) * 1e9 / static_cast<double>((now - begin).count()));
  report("raft", name, 0, "append_p50", "us", static_cast<double>(quantile(times_ns, 500)) / 1e3);
  report("raft", name, 0, "append_p99", "us", static_cast<double>(quantile(times_ns, 990)) / 1e3);
  report("raft", name, 0, "data_syncs_per_batch", "1", static_cast<double>(log.syncs() - syncs_before) / batches);
}

void write_log(const RaftOptions& options, const std::string& directory) {
  on_host(options, directory, [&](io::Env& env) {
    raft::LogStore::Contents contents;
    auto log = open(env, contents);
    must(log->confirm(), "confirm");
    const raft::Payload payload = std::make_shared<const std::string>(kWarmPayloadBytes, 'x');
    for (std::uint64_t bytes = 0; bytes < options.log_bytes; bytes += 256 * kWarmPayloadBytes) {
      must(log->append(batch_behind(*log, 256, payload)), "an append");
    }
  });
}

}  // namespace

void measure_log(const RaftOptions& options) {
  const ScratchDirectory scratch(options.directory);
  const SyncLimit limit = measure_sync(scratch.path(), 1, options.seconds);
  report("raft", "machine", 0, "fdatasync_one_writer_p50", "us", static_cast<double>(limit.p50_ns) / 1e3);
  report("raft", "machine", 0, "fdatasync_one_writer_p99", "us", static_cast<double>(limit.p99_ns) / 1e3);
  report("raft", "machine", 0, "fdatasync_one_writer", "1/s", limit.syncs_per_s);
  on_host(options, scratch.path() + "/log", [&](io::Env& env) {
    raft::LogStore::Contents contents;
    auto log = open(env, contents);
    must(log->confirm(), "confirm");
    must(log->prepare_segment(), "a segment");
    for (const std::size_t batch : {std::size_t{1}, std::size_t{8}, std::size_t{64}}) {
      measure_appends(env, *log, batch, options.seconds);
    }
  });
}

void measure_warm_open(const RaftOptions& options) {
  const ScratchDirectory scratch(options.directory);
  write_log(options, scratch.path());
  // Read once more than it is timed: what was just written may still be on its way to the disk.
  for (const bool is_timed : {false, true}) {
    on_host(options, scratch.path(), [&](io::Env& env) {
      const io::Instant begin = env.now();
      raft::LogStore::Contents contents;
      auto log = open(env, contents);
      const double seconds = static_cast<double>((env.now() - begin).count()) / 1e9;
      if (!is_timed) return;
      report("raft", "warm_log", 0, "disk_bytes", "bytes", static_cast<double>(log->disk_bytes()));
      report("raft", "warm_log", 0, "entries", "1", static_cast<double>(contents.last_index));
      report("raft", "warm_log", 0, "open", "s", seconds);
    });
  }
}

}  // namespace bench
