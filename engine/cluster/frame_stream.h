// Frames read off a byte stream, for both ends of the node protocol.
#pragma once

#include <optional>
#include <string>

#include "engine/cluster/node_frames.h"
#include "io/net.h"

namespace engine::cluster {

struct Frame {
  FrameHeader header;
  std::string payload;
};

// Memory follows what has arrived, never what a header announces: a hostile length costs nothing until its bytes come.
class FrameReader {
 public:
  // `first_bytes`: what has been read off the stream already.
  FrameReader(io::Stream& stream, std::string first_bytes) : stream_(stream), buffer_(std::move(first_bytes)) {}

  // The next frame; nullopt when the far side ended its direction between frames. `corrupt` for bytes that are no frame or for
  // an end within one; else what the stream says. `timed_out` loses nothing: ask again.
  io::Result<std::optional<Frame>> next(io::Instant deadline);

 private:
  // Moves the unread rest to the front once the read part has grown.
  void compact();

  io::Stream& stream_;
  std::string buffer_;
  size_t begin_ = 0;  // of what is unread in buffer_
};

}  // namespace engine::cluster
