#include "io/sim/rocksdb_host.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

#include "io/probe.h"
#include "io/sim/rocksdb_fs.h"
#include "io/sim/world.h"
#include "rocksdb/env.h"
#include "rocksdb/system_clock.h"

// Part of Debian's shared library (it is built without NDEBUG) but of no installed header.
namespace rocksdb {
class SyncPoint {
 public:
  static SyncPoint* GetInstance();
  void SetCallBack(const std::string& point, const std::function<void(void*)>& callback);
  void EnableProcessing();
};
}  // namespace rocksdb

namespace io::sim {

namespace {

// RocksDB's one timer thread waits on the real clock. This sync point keeps it from being started.
void remove_timer_thread() {
  static const bool once = [] {
    rocksdb::SyncPoint* points = rocksdb::SyncPoint::GetInstance();
    points->SetCallBack("DBImpl::StartPeriodicTaskScheduler:DisableScheduler",
                        [](void* disable) { *static_cast<bool*>(disable) = true; });
    points->EnableProcessing();
    return true;
  }();
  (void)once;
}

class SystemClock final : public rocksdb::SystemClock {
 public:
  SystemClock(Incarnation& process, const bool& is_pumping) : process_(process), is_pumping_(&is_pumping) {}
  const char* Name() const override { return "SimulatedClock"; }
  uint64_t NowNanos() override { return static_cast<uint64_t>(to_ns(process_.machine().clock().now())); }
  uint64_t NowMicros() override { return NowNanos() / 1000; }
  void SleepForMicroseconds(int micros) override {
    // A background job that pauses after a failure holds a thread of its own, not the lane that pumps it here.
    if (!*is_pumping_) {
      process_.machine().world().charge(std::chrono::microseconds(micros));
    }
  }
  rocksdb::Status GetCurrentTime(int64_t* seconds) override {
    *seconds = to_unix_seconds(process_.machine().clock().wall());
    return rocksdb::Status::OK();
  }
  std::string TimeToString(uint64_t seconds) override { return std::to_string(seconds); }

 private:
  Incarnation& process_;
  const bool* is_pumping_;
};

// How often one pump runs jobs of one kind. A compaction that fails for want of room queues itself again at once, and no time
// passes while it is pumped: what is left over waits for the next pump, as it would for its thread.
constexpr int kRunsOfOneKindMax = 4;

}  // namespace

class RocksdbEnv final : public rocksdb::EnvWrapper {
 public:
  RocksdbEnv(Incarnation& process, std::shared_ptr<rocksdb::FileSystem> files)
      : EnvWrapper(rocksdb::NewCompositeEnv(files)),
        process_(process),
        draws_(process.machine().world().stream("rocksdb jobs", process.trace_id())) {
    file_system_ = std::move(files);
    system_clock_ = std::make_shared<SystemClock>(process, is_pumping_);
  }
  const char* Name() const override { return "SimulatedEnv"; }

  // The wrapped environment would answer these from the machine's own clock.
  uint64_t NowMicros() override { return system_clock_->NowMicros(); }
  uint64_t NowNanos() override { return system_clock_->NowNanos(); }
  uint64_t NowCPUNanos() override { return system_clock_->NowNanos(); }
  void SleepForMicroseconds(int micros) override { system_clock_->SleepForMicroseconds(micros); }
  rocksdb::Status GetCurrentTime(int64_t* seconds) override { return system_clock_->GetCurrentTime(seconds); }
  std::string TimeToString(uint64_t seconds) override { return system_clock_->TimeToString(seconds); }

  // Jobs run in a drawn order, each queued by RocksDB for a thread of its own.
  void pump() {
    is_pumping_ = true;
    std::vector<std::pair<void (*)(void*), int>> runs;
    std::vector<Job> left_over;
    while (!jobs_.empty()) {
      const auto at = jobs_.begin() + static_cast<ptrdiff_t>(jobs_.size() == 1 ? 0 : draws_.below(jobs_.size()));
      const Job job = *at;
      jobs_.erase(at);
      auto kind = std::find_if(runs.begin(), runs.end(), [&job](const auto& run) { return run.first == job.run; });
      if (kind == runs.end()) {
        kind = runs.insert(runs.end(), {job.run, 0});
      }
      if (++kind->second > kRunsOfOneKindMax) {
        SOMETIMES("simulator: a job of RocksDB's waits for the next pump");
        left_over.push_back(job);
        continue;
      }
      job.run(job.argument);
    }
    jobs_ = std::move(left_over);
    is_pumping_ = false;
  }

  void Schedule(void (*run)(void*), void* argument, Priority priority, void* tag, void (*unschedule)(void*)) override {
    jobs_.push_back({run, argument, priority, tag, unschedule});
  }
  int UnSchedule(void* tag, Priority priority) override {
    int count = 0;
    for (size_t i = 0; i < jobs_.size();) {
      if (jobs_[i].tag != tag || jobs_[i].priority != priority) {
        ++i;
        continue;
      }
      const Job job = jobs_[i];
      jobs_.erase(jobs_.begin() + static_cast<ptrdiff_t>(i));
      if (job.unschedule != nullptr) {
        job.unschedule(job.argument);
      }
      ++count;
    }
    return count;
  }
  void StartThread(void (*)(void*), void*) override { NARAD_CHECK(false, "RocksDB asked for a thread of its own"); }
  void WaitForJoin() override {}
  unsigned int GetThreadPoolQueueLen(Priority priority) const override {
    return static_cast<unsigned int>(
        std::count_if(jobs_.begin(), jobs_.end(), [priority](const Job& job) { return job.priority == priority; }));
  }
  void SetBackgroundThreads(int, Priority) override {}
  int GetBackgroundThreads(Priority priority) override { return priority == BOTTOM ? 0 : 1; }
  void IncBackgroundThreadsIfNeeded(int, Priority) override {}
  void LowerThreadPoolIOPriority(Priority) override {}
  void LowerThreadPoolCPUPriority(Priority) override {}
  rocksdb::Status LowerThreadPoolCPUPriority(Priority, rocksdb::CpuPriority) override { return rocksdb::Status::OK(); }
  uint64_t GetThreadID() const override { return 1; }

  rocksdb::Status GetHostName(char* name, uint64_t length) override {
    std::snprintf(name, length, "%s", process_.machine().name().c_str());
    return rocksdb::Status::OK();
  }
  std::string GenerateUniqueId() override {
    char text[40];
    std::snprintf(text, sizeof text, "%016llx-%016llx", static_cast<unsigned long long>(draws_.next()),
                  static_cast<unsigned long long>(draws_.next()));
    return text;
  }

 private:
  struct Job {
    void (*run)(void*);
    void* argument;
    Priority priority;
    void* tag;
    void (*unschedule)(void*);
  };
  Incarnation& process_;
  RandomStream draws_;
  bool is_pumping_ = false;
  std::vector<Job> jobs_;
};

RocksdbHost::RocksdbHost(Incarnation& process) : process_(process) {}

RocksdbHost::~RocksdbHost() = default;

// Made at the first use: most processes of a world have no database.
rocksdb::Env* RocksdbHost::env() {
  if (env_ == nullptr) {
    remove_timer_thread();
    env_ = std::make_unique<RocksdbEnv>(process_, make_rocksdb_file_system(process_));
  }
  return env_.get();
}

void RocksdbHost::pump() {
  if (env_ != nullptr) {
    env_->pump();
  }
}

uint64_t RocksdbHost::next_unique() {
  return mix(mix(process_.machine().world().seed(), process_.trace_id()), ++unique_drawn_);
}

}  // namespace io::sim
