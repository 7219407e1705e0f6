#include "io/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace io {

namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected

using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    }
    tables[0][byte] = value;
  }
  for (size_t t = 1; t < tables.size(); ++t) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t value = tables[t - 1][byte];
      tables[t][byte] = (value >> 8) ^ tables[0][value & 255];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

uint64_t load64(const char* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t crc32c_hardware(std::string_view bytes, uint32_t before) {
  uint64_t state = ~before;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    state = _mm_crc32_u64(state, load64(at));
  }
  uint32_t narrow = static_cast<uint32_t>(state);
  for (; left > 0; ++at, --left) {
    narrow = _mm_crc32_u8(narrow, static_cast<uint8_t>(*at));
  }
  return ~narrow;
}
#endif

}  // namespace

// Eight bytes a step ("slicing by eight"), little endian.
uint32_t crc32c_portable(std::string_view bytes, uint32_t before) {
  uint32_t state = ~before;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    const uint64_t word = load64(at) ^ state;
    state = 0;
    for (size_t i = 0; i < 8; ++i) {
      state ^= kTables[7 - i][(word >> (8 * i)) & 255];
    }
  }
  for (; left > 0; ++at, --left) {
    state = (state >> 8) ^ kTables[0][(state ^ static_cast<uint8_t>(*at)) & 255];
  }
  return ~state;
}

uint32_t crc32c(std::string_view bytes, uint32_t before) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) {
    return crc32c_hardware(bytes, before);
  }
#endif
  return crc32c_portable(bytes, before);
}

uint32_t crc32c_salt(uint64_t a, uint64_t b) {
  char words[16];
  std::memcpy(words, &a, 8);
  std::memcpy(words + 8, &b, 8);
  return crc32c(std::string_view(words, sizeof words));
}

}  // namespace io
