// What every fuzz target is made of. A target is one file tests/fuzz/<name>.cpp that defines two functions: seeds(), valid inputs
// to begin with, and run_one(), which feeds one input to the code under test and aborts (NARAD_CHECK) when a promise is
// broken. libFuzzer drives it, watched by AddressSanitizer and UndefinedBehaviorSanitizer.
//
//   build/fuzz/<name> --seeds DIR     writes the seeds into DIR and ends
//   build/fuzz/<name> FILE            runs one input
//   build/fuzz/<name> DIR             goes on from the corpus in DIR until a promise is broken (libFuzzer's own options apply)
//
// Other builds run the seeds and little changes of them as part of `make test` (seeds_main.cpp).
//
// run_one() must not keep anything from one input to the next: a stored input alone has to show the failure again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fuzz {

// ---- The target's part ----------------------------------------------------------------------------------------------------

std::vector<std::string> seeds();
void run_one(std::string_view input);

// ---- Help for it ----------------------------------------------------------------------------------------------------------

// Reads an input from the front. Past the end everything is zero and empty, so any bytes are an input.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t byte() {
    const std::string_view one = take(1);
    return one.empty() ? 0 : static_cast<std::uint8_t>(one[0]);
  }
  std::uint16_t two_bytes() {
    const std::uint16_t low = byte();
    return static_cast<std::uint16_t>(low | byte() << 8);
  }
  std::string_view take(std::size_t bytes) {
    const std::string_view front = rest_.substr(0, bytes);
    rest_.remove_prefix(front.size());
    return front;
  }
  std::string_view rest() { return take(rest_.size()); }
  bool is_empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

// Bytes at an address that is a multiple of 8 and that end where an allocation ends, so that reading past them is seen.
class Aligned {
 public:
  explicit Aligned(std::string_view bytes);
  ~Aligned();
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;

  std::string_view view() const { return view_; }

 private:
  char* memory_ = nullptr;
  std::string_view view_;
};

// Counts towards every AllocationBound; called by the build that can count.
void count_allocation(std::size_t bytes);

// Aborts at its end when more than `bytes_max` bytes were allocated in between, counting all of them and not only those in use:
// a decoder must not be made to allocate without bound by a few bytes of input.
class AllocationBound {
 public:
  explicit AllocationBound(std::uint64_t bytes_max);
  ~AllocationBound();
  AllocationBound(const AllocationBound&) = delete;
  AllocationBound& operator=(const AllocationBound&) = delete;

 private:
  std::uint64_t bytes_max_;
  std::uint64_t before_;
};

}  // namespace fuzz
