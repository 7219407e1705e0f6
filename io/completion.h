// The end of an operation that outlives its caller: a backend completes it once, a fiber awaits it. The state, and whatever
// buffers the operation keeps with it, lives until the operation ends even when nobody waits any more.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "io/fiber.h"
#include "io/result.h"

namespace io {

template <typename T>
class Completion {
 public:
  Completion() : state_(std::make_shared<State>()) {}
  // An operation that ended at once.
  static Completion finished(Result<T> result) {
    Completion done;
    done.complete(std::move(result));
    return done;
  }

  // Called by the backend, once, on the loop.
  void complete(Result<T> result) const {
    NARAD_CHECK(!state_->result.has_value(), "an operation completed twice");
    state_->result.emplace(std::move(result));
    state_->done.set();
  }

  bool is_complete() const { return state_->done.is_set(); }

  // The outcome, or `timed_out` when the deadline passed first: the operation then goes on and may still take effect.
  // Throws Cancelled. One fiber awaits one completion, once.
  Result<T> await(Instant deadline = kNever) const {
    if (!state_->done.wait(deadline)) {
      return fail(ErrorKind::timed_out, "the operation did not end by its deadline");
    }
    return std::move(*state_->result);
  }

 private:
  struct State {
    Event done;
    std::optional<Result<T>> result;
  };
  std::shared_ptr<State> state_;
};

}  // namespace io
