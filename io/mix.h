// The bit mixer under every draw (io/random.h) and every hash that is kept: fixed for good, the same on every machine and build.
#pragma once

#include <cstdint>

namespace io {

// The finaliser of SplitMix64.
inline uint64_t finalise(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

// mix() of io/random.h where the call would cost more than the work.
inline uint64_t mix_inline(uint64_t a, uint64_t b) {
  return finalise(finalise(a + 0x9e3779b97f4a7c15ULL) ^ (b + 0x9e3779b97f4a7c15ULL));
}

}  // namespace io
