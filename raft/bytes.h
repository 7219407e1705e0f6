// Little-endian numbers in byte strings, for the file formats of this folder.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "io/check.h"

namespace raft {

static_assert(std::endian::native == std::endian::little, "the file formats are little endian; other machines need swaps here");

template <typename Number>
void put(std::string& bytes, std::size_t offset, Number value) {
  NARAD_CHECK(offset + sizeof value <= bytes.size(), "a field lies within its block");
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

template <typename Number>
Number get(std::string_view bytes, std::size_t offset) {
  NARAD_CHECK(offset + sizeof(Number) <= bytes.size(), "a field lies within its block");
  Number value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

inline std::uint64_t round_up(std::uint64_t bytes, std::uint64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

inline bool is_all_zero(std::string_view bytes) {
  return bytes.empty() || (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace raft
