// The machine's own stalls, beside what a test measures: a thread that wants to wake every 10 ms, and how late it was. A bound in real time
// is the nodes' own only less what the machine kept from running in the same stretch.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tests {

class Ticker {
 public:
  using Clock = std::chrono::steady_clock;

  Ticker() : thread_([this] { run(); }) {}
  ~Ticker() {
    is_ending_ = true;
    thread_.join();
  }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // For how much of the stretch the thread was due and did not run. From any thread.
  Clock::duration stalled(Clock::time_point from, Clock::time_point to) const {
    const std::scoped_lock lock(mutex_);
    Clock::duration sum = overlap({due_, to}, from, to);  // a stall that has not ended
    for (const Stretch& stall : stalls_) {
      sum += overlap(stall, from, to);
    }
    return sum;
  }
  // The stretch without its stalls.
  Clock::duration awake(Clock::time_point from, Clock::time_point to) const { return to - from - stalled(from, to); }

 private:
  using Stretch = std::pair<Clock::time_point, Clock::time_point>;
  static constexpr std::chrono::milliseconds kTick{10};
  static constexpr std::chrono::milliseconds kWorthKeeping{1};

  static Clock::duration overlap(const Stretch& stall, Clock::time_point from, Clock::time_point to) {
    return std::max(Clock::duration::zero(), std::min(stall.second, to) - std::max(stall.first, from));
  }
  void run() {
    while (!is_ending_) {
      const Clock::time_point due = Clock::now() + kTick;
      {
        const std::scoped_lock lock(mutex_);
        due_ = due;
      }
      std::this_thread::sleep_until(due);
      const Clock::time_point woken = Clock::now();
      if (woken - due >= kWorthKeeping) {
        const std::scoped_lock lock(mutex_);
        stalls_.emplace_back(due, woken);
        due_ = woken;
      }
    }
  }

  mutable std::mutex mutex_;
  Clock::time_point due_ = Clock::now() + kTick;
  std::vector<Stretch> stalls_;
  std::atomic<bool> is_ending_{false};
  std::thread thread_;  // last: it uses the others
};

}  // namespace tests
