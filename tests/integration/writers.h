// Clients that write all the time while something happens to a cluster.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/cluster.h"

namespace tests {

// Creates topics on whatever node answers, and keeps a ledger of what was acknowledged.
class Writers {
 public:
  Writers(Cluster& cluster, size_t threads) : cluster_(cluster) {
    for (size_t i = 0; i < threads; ++i) {
      threads_.emplace_back([this, i] { write(i); });
    }
  }
  ~Writers() { stop(); }
  void stop() {
    stopping_ = true;
    for (std::thread& thread : threads_) {
      if (thread.joinable()) {
        thread.join();
      }
    }
  }
  std::vector<std::string> acknowledged() {
    std::lock_guard<std::mutex> lock(mutex_);
    return acknowledged_;
  }

 private:
  void write(size_t writer) {
    for (size_t i = 0; !stopping_; ++i) {
      const std::string name = "w" + std::to_string(writer) + "-" + std::to_string(i);
      const auto response = cluster_.node((writer + i) % cluster_.size()).request("POST", "/v1/topics", topic_body(name));
      if (response.has_value() && response->status == 201) {
        std::lock_guard<std::mutex> lock(mutex_);
        acknowledged_.push_back(name);
      } else {
        std::this_thread::sleep_for(5ms);
      }
    }
  }

  Cluster& cluster_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<std::string> acknowledged_;
  std::vector<std::thread> threads_;
};

}  // namespace tests
