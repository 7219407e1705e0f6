// Where blocking or long work runs, off the loop.
//
// Env::store_lane is one thread, first in first out: every RocksDB write, flush, image and install of a node. Env::pool is a
// few threads for long computations (password hashes, checksums of big inputs). In the simulator a call executes at one instant
// and completes later by seed: other fibers may see its effects before its answer.
//
// Work owns what it touches: it never sees fibers, events or the loop's data, it must not wait for the loop, and it runs to its
// end even when the fiber that asked has been cancelled.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "io/completion.h"
#include "io/result.h"

namespace io {

class Executor {
 public:
  virtual ~Executor() = default;

  // Queues `work`; completes on the loop after it has run. Never waits.
  virtual Completion<void> start(std::function<void()> work) = 0;

  // Runs `work` there and returns its value. `timed_out` when the deadline passed first (the work still runs to its end).
  // Throws Cancelled.
  template <typename Work>
  auto run(Work work, Instant deadline = kNever) -> Result<std::invoke_result_t<Work>> {
    using Value = std::invoke_result_t<Work>;
    if constexpr (std::is_void_v<Value>) {
      return start(std::function<void()>(std::move(work))).await(deadline);
    } else {
      auto value = std::make_shared<std::optional<Value>>();
      Status ended = start([value, work = std::move(work)]() mutable { value->emplace(work()); }).await(deadline);
      if (!ended.ok()) {
        return ended.error();
      }
      return std::move(**value);
    }
  }
};

}  // namespace io
