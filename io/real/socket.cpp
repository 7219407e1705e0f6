#include "io/real/socket.h"

#include <sys/socket.h>

namespace io::real {

// Watched from the first wait on: a short exchange never pays for it. Being watched reports what is ready at that
// moment, so nothing between the system call and here is missed.
void Socket::arm() {
  if (armed_) {
    return;
  }
  int error = 0;
  armed_ = loop_.poller().watch(*this, descriptor(), &error);
  if (!armed_) {
    on_ready(true, true, true);  // no room to watch it: the caller's next system call looks again
    loop_.pace();
  }
}

bool Socket::wait_readable(Instant deadline) {
  arm();
  if (readable || !is_open()) {
    return true;
  }
  return readers_.wait(deadline) || readable || !is_open();
}

bool Socket::wait_writable(Instant deadline) {
  arm();
  if (writable || !is_open()) {
    return true;
  }
  return writers_.wait(deadline) || writable || !is_open();
}

void Socket::close() {
  if (!is_open()) {
    return;
  }
  if (armed_) {
    // The kernel may hold a watched socket a moment longer than its descriptor; what the far side (or the port) sees
    // must not wait for that.
    ::shutdown(descriptor(), SHUT_RDWR);
    loop_.poller().unwatch(*this, descriptor());
    armed_ = false;
  }
  descriptor_.reset();
  readers_.notify_all();
  writers_.notify_all();
}

void Socket::on_ready(bool can_read, bool can_write, bool has_ended) {
  ended_ = ended_ || has_ended;
  if (can_read) {
    readable = true;
    readers_.notify_all();
  }
  if (can_write) {
    writable = true;
    writers_.notify_all();
  }
}

}  // namespace io::real
