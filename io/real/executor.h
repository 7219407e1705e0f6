// io::Executor on threads of this process. One thread makes a lane: what is started runs in that order, and so do the
// ends.
#pragma once

#include <string>

#include "io/executor.h"
#include "io/real/loop.h"
#include "io/real/threads.h"

namespace io::real {

class ThreadExecutor final : public Executor {
 public:
  // `loop` outlives it. Its end waits for what was started.
  ThreadExecutor(Loop& loop, std::string name, size_t threads) : loop_(loop), threads_(std::move(name), threads) {}

  Completion<void> start(std::function<void()> work) override {
    Completion<void> completion;
    threads_.start([&loop = loop_, completion, work = std::move(work)]() mutable {
      work();
      work = nullptr;  // what it captured dies here; the completion dies on the loop
      loop.post([completion = std::move(completion)] { completion.complete({}); });
    });
    return completion;
  }

 private:
  Loop& loop_;
  Threads threads_;
};

}  // namespace io::real
