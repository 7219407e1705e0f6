#include "engine/metastore/printable.h"

namespace engine::metastore {

size_t utf8_length(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned first = byte(0);
  if (text.empty()) {
    return 0;
  }
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xc2 && first <= 0xdf) {
    return follows(1) ? 2 : 0;
  }
  if (first >= 0xe0 && first <= 0xef) {
    const bool is_shortest = first != 0xe0 || byte(1) >= 0xa0;
    const bool is_surrogate = first == 0xed && byte(1) >= 0xa0;
    return is_shortest && !is_surrogate && follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool in_range = (first != 0xf0 || byte(1) >= 0x90) && (first != 0xf4 || byte(1) <= 0x8f);
    return in_range && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

bool is_printable(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const unsigned char first = static_cast<unsigned char>(text.front());
    // C1 controls are U+0080 to U+009F: c2 80 to c2 9f.
    const bool is_c1 = length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    if (length == 0 || first < 0x20 || first == 0x7f || is_c1) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace engine::metastore
