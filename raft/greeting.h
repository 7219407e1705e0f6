// Opening a raft connection: dialling, the greeting, and reading whole frames.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "io/env.h"
#include "io/net.h"
#include "raft/wire.h"

namespace raft {

struct Greeted {
  std::unique_ptr<io::Stream> stream;
  wire::FrameReader frames;  // what was read beyond the greeting
};

// Connects to `address`, says `hello` and waits for the Welcome. `denied` when the other side refuses, with its reason. Waits.
io::Result<Greeted> dial(io::Env& env, const std::string& address, const wire::Hello& hello, io::Instant deadline);

// The next frame of the stream, of at most `limit` bytes. `io` when the stream ends, `corrupt` when it is no frame, `timed_out`.
// Waits.
io::Result<wire::Frame> next_frame(io::Stream& stream, wire::FrameReader& frames, std::size_t limit, io::Instant deadline);

}  // namespace raft
