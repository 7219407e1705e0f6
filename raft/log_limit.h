// Keeps a condition that lasts, or a peer that keeps knocking, from filling the log: of lines under one key (a peer, a reason) one is
// admitted an interval, and tells how many were left out since the one before.
//
// Keys are forgotten, the oldest first, above kKeysMax: a stranger who knocks under ever new names costs lines, not memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "io/time.h"

namespace raft {

class LogLimit {
 public:
  static constexpr std::size_t kKeysMax = 64;

  explicit LogLimit(io::Duration interval) : interval_(interval) {}

  // Whether to write a line of `key` now: then how many of its lines were left out since the last one; nothing: leave it out.
  std::optional<std::uint64_t> admit(std::string_view key, io::Instant now);

 private:
  struct Key {
    io::Instant next{};  // when a line is admitted again
    std::uint64_t left_out = 0;
  };

  void forget_oldest();

  io::Duration interval_;
  std::map<std::string, Key, std::less<>> keys_;
};

}  // namespace raft
