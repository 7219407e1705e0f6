// A nonblocking socket and what the poller has said about it: the common part of streams, listeners and attempts to
// connect.
#pragma once

#include "io/fiber.h"
#include "io/real/descriptor.h"
#include "io/real/loop.h"

namespace io::real {

class Socket final : public Watch {
 public:
  Socket(Loop& loop, Descriptor descriptor) : loop_(loop), descriptor_(std::move(descriptor)) {}
  ~Socket() { close(); }

  int descriptor() const { return descriptor_.get(); }
  bool is_open() const { return descriptor_.valid(); }
  Loop& loop() { return loop_; }

  // Whether the next system call is worth trying. Cleared by the caller when the kernel answered EAGAIN or moved less
  // than it was asked to; set again by news.
  bool readable = true;
  bool writable = true;
  // The far side has ended its direction or the connection broke: a short read no longer means that more would be news.
  bool ended() const { return ended_; }

  // Return true when there is news (or the socket was closed), false when the deadline passed first. Throw Cancelled.
  bool wait_readable(Instant deadline);
  bool wait_writable(Instant deadline);

  // Wakes who waits; the descriptor is gone.
  void close();

  void on_ready(bool can_read, bool can_write, bool has_ended) override;

 private:
  void arm();

  Loop& loop_;
  Descriptor descriptor_;
  bool armed_ = false;
  bool ended_ = false;
  Condition readers_;
  Condition writers_;
};

}  // namespace io::real
