#include "engine/cluster/frame_stream.h"

namespace engine::cluster {

namespace {
constexpr size_t kReadBytes = 64 * 1024;
}

void FrameReader::compact() {
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    begin_ = 0;
  } else if (begin_ >= kReadBytes) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
}

io::Result<std::optional<Frame>> FrameReader::next(io::Instant deadline) {
  while (true) {
    const std::string_view unread = std::string_view(buffer_).substr(begin_);
    if (unread.size() >= kFrameHeaderBytes) {
      const io::Result<FrameHeader> header = decode_frame_header(unread);
      if (!header.ok()) {
        return header.error();
      }
      if (unread.size() - kFrameHeaderBytes >= header->payload_bytes) {
        Frame frame{*header, std::string(unread.substr(kFrameHeaderBytes, header->payload_bytes))};
        begin_ += kFrameHeaderBytes + header->payload_bytes;
        compact();
        return std::optional<Frame>(std::move(frame));
      }
    } else if (!kFrameMagic.starts_with(unread.substr(0, kFrameMagic.size())) &&
               unread.substr(0, kFrameMagic.size()) != kFrameMagic) {
      return io::fail(io::ErrorKind::corrupt, "not a node protocol frame");
    }
    io::Result<std::string> bytes = stream_.read(kReadBytes, deadline);
    if (!bytes.ok()) {
      return bytes.error();
    }
    if (bytes->empty()) {
      if (begin_ != buffer_.size()) {
        return io::fail(io::ErrorKind::corrupt, "the connection ended within a frame");
      }
      return std::optional<Frame>();
    }
    if (buffer_.empty()) {
      buffer_ = std::move(*bytes);
    } else {
      buffer_ += *bytes;
    }
  }
}

}  // namespace engine::cluster
