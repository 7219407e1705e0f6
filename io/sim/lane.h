// The store lane and the pool of a simulated process. A call executes at one instant, when its turn comes, and is
// answered when its modelled cost has passed: other fibers may see its effects first. Until then it holds its place in
// the lane.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "io/executor.h"
#include "io/random.h"
#include "io/time.h"

namespace io::sim {

class Incarnation;

class Lane final : public Executor {
 public:
  // `width` calls run side by side, > 0; each computes for a time drawn between `cpu_low` and `cpu_high`.
  Lane(Incarnation& process, std::string name, size_t width, Duration cpu_low, Duration cpu_high);

  Completion<void> start(std::function<void()> work) override;
  // Calls queued and running.
  size_t depth() const { return waiting_.size() + busy_; }

 private:
  struct Call {
    std::function<void()> work;
    Completion<void> done;
  };
  void begin_next();
  void run();
  void answer(const Completion<void>& done);

  Incarnation& process_;
  std::string name_;
  size_t width_;
  Duration cpu_low_;
  Duration cpu_high_;
  RandomStream draws_;
  std::deque<Call> waiting_;
  size_t busy_ = 0;       // begun and not yet answered
  size_t scheduled_ = 0;  // of the waiting: an event will run them
};

}  // namespace io::sim
