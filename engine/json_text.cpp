#include "engine/json_text.h"

#include <cstdint>

namespace engine {

namespace {

// Length of the well-formed UTF-8 sequence at the front of `text`; 0 when there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  size_t length = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xbf;
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    low = lead == 0xe0 ? 0xa0 : 0x80;
    high = lead == 0xed ? 0x9f : 0xbf;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    low = lead == 0xf0 ? 0x90 : 0x80;
    high = lead == 0xf4 ? 0x8f : 0xbf;
  }
  if (length == 0 || text.size() < length || byte(1) < low || byte(1) > high) {
    return 0;
  }
  for (size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) {
      return 0;
    }
  }
  return length;
}

}  // namespace

std::string json_quoted(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(text.size() + 2);
  out.push_back('"');
  while (!text.empty()) {
    const char c = text.front();
    const auto code = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out.append("\\n");
    } else if (code < 0x20 || code == 0x7f) {
      out.append("\\u00");
      out.push_back(kHex[code >> 4]);
      out.push_back(kHex[code & 15]);
    } else {
      const size_t length = utf8_length(text);
      if (length == 0) {
        out.append("\xef\xbf\xbd");
      } else {
        out.append(text.substr(0, length));
        text.remove_prefix(length - 1);
      }
    }
    text.remove_prefix(1);
  }
  out.push_back('"');
  return out;
}

}  // namespace engine
