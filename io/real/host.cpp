#include "io/real/host.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "io/real/disk.h"
#include "io/real/entropy.h"
#include "io/real/executor.h"
#include "io/real/kv_host.h"
#include "io/real/net.h"
#include "io/real/signals.h"

namespace io::real {

namespace {

constexpr size_t kPoolThreads = 2;

// Every connection is a descriptor, and the usual soft limit of 1,024 is below what a node serves.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

// What the allocator keeps of freed memory, bounded: its thresholds stay where they are put instead of growing with the largest
// buffer seen (up to 32 MiB), so a large buffer goes back when it is freed and leaves no hole, and the few threads that allocate
// share two arenas. Without this an image that passes through a node costs it tens of megabytes for good (bench/raft, snapshot).
void bound_free_memory() {
  mallopt(M_MMAP_THRESHOLD, 512 << 10);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
  mallopt(M_ARENA_MAX, 2);
}

}  // namespace

// In the order of making: what is below uses what is above, and ends first.
struct Host::Parts {
  Parts(const HostSettings& settings, std::unique_ptr<Loop> the_loop)
      : loop(std::move(the_loop)),
        log(make_stderr_log(settings.log, loop->clock())),
        random(entropy_seed()),
        kv(settings.data_dir),
        net(make_tcp_net(*loop)),
        store_lane(*loop, "narad-store", 1),
        pool(*loop, "narad-pool", kPoolThreads) {}

  std::unique_ptr<Loop> loop;
  std::unique_ptr<Log> log;
  SeededRandom random;
  PosixKvHost kv;
  std::unique_ptr<Net> net;
  std::unique_ptr<Disk> disk;
  ThreadExecutor store_lane;
  ThreadExecutor pool;
  std::optional<Env> env;
  bool handle_signals = true;
  Duration drain_patience{};
};

Host::Host(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Host::~Host() = default;

io::Env& Host::env() { return *parts_->env; }

Loop& Host::loop() { return *parts_->loop; }

Result<std::unique_ptr<Host>> Host::make(HostSettings settings) {
  raise_descriptor_limit();
  bound_free_memory();
  Result<std::unique_ptr<Loop>> loop = Loop::make({settings.io, settings.before_file_operation});
  if (!loop.ok()) {
    return loop.error();
  }
  auto parts = std::make_unique<Parts>(settings, std::move(*loop));
  Result<std::unique_ptr<Disk>> disk = open_data_directory(*parts->loop, settings.data_dir);
  if (!disk.ok()) {
    return disk.error();
  }
  parts->disk = std::move(*disk);
  parts->handle_signals = settings.handle_signals;
  parts->drain_patience = settings.drain_patience;
  parts->env.emplace(Env{parts->loop->clock(), parts->random, *parts->disk, *parts->net, parts->store_lane, parts->pool,
                         parts->kv, *parts->log});
  const Loop& made = *parts->loop;
  if (!made.fallback_reason().empty()) {
    // Asked for by name, its absence is worth a warning.
    const LogLevel level = settings.io == IoChoice::uring ? LogLevel::warn : LogLevel::info;
    if (parts->log->enabled(level)) {
      parts->log->write(level, "io: the kernel refuses io_uring; using epoll and file threads",
                        {{"io", made.io_name()},
                         {"asked", to_string(settings.io)},
                         {"reason", made.fallback_reason()}});
    }
  } else {
    parts->log->info("io: loop ready", {{"io", made.io_name()}, {"asked", to_string(settings.io)}});
  }
  return std::unique_ptr<Host>(new Host(std::move(parts)));
}

int Host::run(const MainFiber& main_fiber) {
  Event stop;
  std::optional<StopSignals> signals;
  if (parts_->handle_signals) {
    signals.emplace(*parts_->loop, stop);
  }
  int code = 0;
  parts_->loop->run("main", [&] { code = main_fiber(env(), stop); });
  if (!parts_->loop->drain(parts_->drain_patience)) {
    parts_->log->error("io: file operations hang; ending the process without them", {{"exit_code", code}});
    std::fflush(nullptr);
    _exit(code);
  }
  return code;
}

int run_host(HostSettings settings, const MainFiber& main_fiber) {
  const LogSettings log_settings = settings.log;
  Result<std::unique_ptr<Host>> host = Host::make(std::move(settings));
  if (!host.ok()) {
    BootClock clock;
    make_stderr_log(log_settings, clock)->error("narad cannot start", {{"error", host.error().message}});
    return 1;
  }
  return (*host)->run(main_fiber);
}

}  // namespace io::real
