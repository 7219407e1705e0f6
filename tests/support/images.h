// Images in memory, for tests: where one is written to and read from.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "io/fiber.h"
#include "raft/state_machine.h"

namespace tests {

class MemorySink final : public raft::ImageSink {
 public:
  io::Status write(std::string bytes) override {
    pieces += 1;
    piece_bytes_max = std::max(piece_bytes_max, bytes.size());
    if (before_write) {
      if (io::Status status = before_write(); !status.ok()) {
        return status;
      }
    }
    image += bytes;
    return {};
  }

  std::function<io::Status()> before_write;  // may wait
  std::string image;
  size_t pieces = 0;
  size_t piece_bytes_max = 0;
};

class MemorySource final : public raft::ImageSource {
 public:
  explicit MemorySource(std::string bytes, size_t piece = 1000) : image(std::move(bytes)), piece_bytes(piece) {}

  io::Result<std::string> read(std::size_t bytes_max) override {
    if (before_read) {
      if (io::Status status = before_read(); !status.ok()) {
        return status.error();
      }
    }
    std::string piece = image.substr(at, std::min(bytes_max, piece_bytes));
    at += piece.size();
    return piece;
  }

  std::function<io::Status()> before_read;  // may wait
  std::string image;
  size_t piece_bytes;
  size_t at = 0;
};

}  // namespace tests
