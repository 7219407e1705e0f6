// Byte streams between nodes and to clients. Addresses are "host:port" texts; port 0 asks for a free one.
//
// A stream carries bytes in order both ways. One fiber may read while another writes. The far side's process ending closes the
// stream; its machine losing power does not: only a deadline notices. Errors: io (reset, refused), timed_out, not_found (the
// host does not resolve), busy (the port is in use), denied, invalid.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "io/fiber.h"
#include "io/result.h"

namespace io {

class Stream {
 public:
  virtual ~Stream() = default;  // closes both ways at once; unsent bytes may be lost

  // At least one byte and at most `max` (> 0); empty when the far side has ended its direction. A deadline that passes leaves
  // the stream usable and loses nothing.
  virtual Result<std::string> read(size_t max, Instant deadline = kNever) = 0;
  // Returns when all of `data` has been taken over for sending; waits while the far side does not read (backpressure). After an
  // error, cancellation or timeout part of it may have been sent, so the stream is closed for writing.
  virtual Status write(std::string data, Instant deadline = kNever) = 0;
  // Half-close: the far side reads the end of the stream, and may still send.
  virtual Status shutdown_write() = 0;
  // Wakes a waiting reader and writer with `io`; later calls fail.
  virtual void close() = 0;
  virtual std::string peer_address() const = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;  // stops listening
  virtual Result<std::unique_ptr<Stream>> accept(Instant deadline = kNever) = 0;
  // The bound address, with the port that was given.
  virtual std::string address() const = 0;
};

class Net {
 public:
  virtual ~Net() = default;
  virtual Result<std::unique_ptr<Listener>> listen(std::string_view address) = 0;
  virtual Result<std::unique_ptr<Stream>> connect(std::string_view address, Instant deadline = kNever) = 0;
};

}  // namespace io
