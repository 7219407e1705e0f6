// Keeps a stream of bytes at or below a rate, so that a long copy leaves the disk and the network to others.
//
// A bucket that holds a quarter of a second's worth: a stream that has been silent may begin with that much at once. Integers
// only. Used by one fiber.
#pragma once

#include <algorithm>
#include <cstdint>

#include "io/fiber.h"
#include "io/time.h"

namespace raft {

class Pace {
 public:
  // `bytes_per_second`: 0 is no bound.
  Pace(io::Clock& clock, std::uint64_t bytes_per_second) : clock_(clock), bytes_per_second_(bytes_per_second) {}

  // In force from the next pass().
  void set_bytes_per_second(std::uint64_t bytes_per_second) { bytes_per_second_ = bytes_per_second; }
  std::uint64_t bytes_per_second() const { return bytes_per_second_; }

  // Returns once `bytes` more may go: what went before has had its time. Waits. At most 1 GiB a call.
  void pass(std::uint64_t bytes) {
    if (bytes_per_second_ == 0) return;
    const io::Instant earliest = clock_.now() - std::chrono::milliseconds(250);
    due_ = std::max(due_, earliest);
    const io::Instant now = clock_.now();
    if (due_ > now) io::sleep_until(due_);
    due_ += io::Duration(static_cast<std::int64_t>(bytes * 1'000'000'000u / bytes_per_second_));
  }

 private:
  io::Clock& clock_;
  std::uint64_t bytes_per_second_;
  io::Instant due_{};  // when everything that went has had its time
};

}  // namespace raft
