// The trace of a run: one line of meaning for each thing that happened, folded into a running 64-bit hash. Two runs
// with the same hash did the same; the text of a line is made only when somebody listens.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

namespace io::sim {

enum class TraceKind : uint8_t {
  slice,        // a fiber ran: its name; which of how many runnable ones was drawn
  timer,        // deadlines passed
  lane,         // work ran on the store lane or the pool: operations of RocksDB it made, cost
  disk,         // a file operation landed: kind and path; offset, length, hash of the bytes or of the result
  kv,           // RocksDB's file operation: kind and name; offset, length
  net_open,     // a connection attempt, its answer, an accept
  net_send,     // bytes were handed over: connection and direction, length, hash
  net_deliver,  // bytes arrived
  net_end,      // end of stream, reset
  process,      // started, exited, killed, power lost, frozen
  fault,        // a fault struck, or was switched on or off
  log,          // a log line: its text
  world,        // an event of the plan or the checks ran
};

const char* to_string(TraceKind kind);

// Eight bytes a step; the same on every machine of the same byte order (the project supports little-endian ones).
inline uint64_t content_hash(std::string_view bytes) {
  uint64_t hash = 0x9e3779b97f4a7c15ULL ^ bytes.size();
  const char* at = bytes.data();
  size_t left = bytes.size();
  auto step = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32;
  };
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    step(word);
  }
  if (left > 0) {
    uint64_t word = 0;
    std::memcpy(&word, at, left);
    step(word);
  }
  return hash;
}

class Trace {
 public:
  // One readable line an event, without line end. Null: none are made.
  using Sink = std::function<void(std::string_view line)>;

  uint64_t hash() const { return hash_; }
  uint64_t records() const { return records_; }
  bool listened() const { return static_cast<bool>(sink_); }
  void set_sink(Sink sink) { sink_ = std::move(sink); }

  // Log lines are shown and not hashed: which of them are made is the reader's choice. `who` is machine and incarnation
  // in one number, `who_name` its readable form.
  void record(TraceKind kind, int64_t at_ns, uint64_t who, std::string_view who_name, std::string_view what, uint64_t a,
              uint64_t b, uint64_t c) {
    if (kind != TraceKind::log) {
      fold_record(kind, at_ns, who, what, a, b, c);
    }
    if (sink_) [[unlikely]] {
      print(kind, at_ns, who_name, what, a, b, c);
    }
  }

 private:
  void fold_record(TraceKind kind, int64_t at_ns, uint64_t who, std::string_view what, uint64_t a, uint64_t b,
                   uint64_t c) {
    ++records_;
    fold(static_cast<uint64_t>(at_ns));
    fold(who << 8 | static_cast<uint64_t>(kind));
    fold(content_hash(what));
    fold(a);
    fold(b);
    fold(c);
  }
  void fold(uint64_t word) {
    hash_ = (hash_ ^ word) * 0x9fb21c651e98df25ULL;
    hash_ ^= hash_ >> 29;
  }
  void print(TraceKind kind, int64_t at_ns, std::string_view who_name, std::string_view what, uint64_t a, uint64_t b,
             uint64_t c) const;

  uint64_t hash_ = 0x243f6a8885a308d3ULL;
  uint64_t records_ = 0;
  Sink sink_;
};

}  // namespace io::sim
