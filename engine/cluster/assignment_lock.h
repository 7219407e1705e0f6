// The one lock under which partitions are given owners and move targets.
//
// A create or partition increase places its own topic and holds the name of it besides, so these may go on side by side (`one_topic`);
// the controller's passes may touch any topic and exclude everybody (`any_topic`). Whoever waits for `any_topic` is not overtaken by later
// requests for `one_topic`, so a stream of creates does not keep the sweep out.
//
// One loop's, as everything that waits on io/fiber.h.
#pragma once

#include <cstddef>

#include "io/fiber.h"
#include "io/time.h"

namespace engine::cluster {

class AssignmentLock {
 public:
  enum class Scope { one_topic, any_topic };

  // Held from construction to destruction, unless the deadline passed first: ask is_held(). Fiber only; throws Cancelled.
  class Hold {
   public:
    Hold(AssignmentLock& lock, Scope scope, io::Instant deadline);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    bool is_held() const { return is_held_; }

   private:
    AssignmentLock& lock_;
    const Scope scope_;
    bool is_held_ = false;
  };

 private:
  bool is_free_for(Scope scope) const;

  size_t holders_of_one_ = 0;
  bool is_held_for_any_ = false;
  size_t waiting_for_any_ = 0;
  io::Condition freed_;
};

}  // namespace engine::cluster
