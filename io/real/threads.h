// A few threads that run work first in, first out. They are made when first needed, up to a limit, and end with the
// object. The queue's bound is its callers': a file has one operation under way at a time, a lane as many as its fibers
// await.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace io::real {

class Threads {
 public:
  // `name` (15 bytes at most) is what debuggers show; `threads_max` > 0. One thread keeps the order of starting.
  Threads(std::string name, size_t threads_max);
  // Runs what is still queued, then waits for the threads.
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // From any thread; never waits. An exception that leaves `work` is a bug and ends the process.
  void start(std::function<void()> work);

 private:
  void serve();

  const std::string name_;
  const size_t threads_max_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::function<void()>> queue_;
  size_t idle_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace io::real
