// How the fields of a node protocol payload are written and read (narad/node-protocol.md section 3): strings and byte strings are a
// u32 length and the bytes, integers big-endian, a bool one byte. Pure; for the files that know a payload's fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/cluster/node_frames.h"
#include "io/check.h"
#include "io/result.h"

namespace engine::cluster {

template <typename Unsigned>
void append_big_endian(std::string& out, Unsigned value) {
  for (int shift = static_cast<int>(sizeof(Unsigned)) * 8 - 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(static_cast<uint8_t>(value >> shift)));
  }
}

// `bytes` holds at least as many as the value has.
template <typename Unsigned>
Unsigned read_big_endian(std::string_view bytes) {
  Unsigned value = 0;
  for (size_t i = 0; i < sizeof(Unsigned); ++i) {
    value = static_cast<Unsigned>(value << 8 | static_cast<uint8_t>(bytes[i]));
  }
  return value;
}

inline void append_bytes(std::string& out, std::string_view bytes) {
  NARAD_CHECK(bytes.size() <= kFramePayloadBytesMax, "a field longer than a frame");
  append_big_endian(out, static_cast<uint32_t>(bytes.size()));
  out.append(bytes);
}

inline void append_bool(std::string& out, bool value) { out.push_back(value ? '\1' : '\0'); }

inline std::string begin_payload(Op op) { return std::string(1, static_cast<char>(op)); }

// Reads fields off the front; the first failure sticks, and every field after it reads as empty or zero.
class FieldReader {
 public:
  // `payload` begins with the opcode.
  explicit FieldReader(std::string_view payload) : rest_(payload.substr(1)) {}

  std::string bytes(std::string_view name) {
    if (failed()) {
      return {};
    }
    if (rest_.size() < 4) {
      return truncated(name);
    }
    const uint32_t length = read_big_endian<uint32_t>(rest_);
    if (length > rest_.size() - 4) {
      return truncated(name);
    }
    std::string value(rest_.substr(4, length));
    rest_.remove_prefix(4 + length);
    return value;
  }

  template <typename Unsigned>
  Unsigned integer(std::string_view name) {
    if (failed()) {
      return 0;
    }
    if (rest_.size() < sizeof(Unsigned)) {
      truncated(name);
      return 0;
    }
    const auto value = read_big_endian<Unsigned>(rest_);
    rest_.remove_prefix(sizeof(Unsigned));
    return value;
  }
  int32_t i32(std::string_view name) { return static_cast<int32_t>(integer<uint32_t>(name)); }
  int64_t i64(std::string_view name) { return static_cast<int64_t>(integer<uint64_t>(name)); }
  uint32_t u32(std::string_view name) { return integer<uint32_t>(name); }

  bool boolean(std::string_view name) {
    const auto value = integer<uint8_t>(name);
    if (!failed() && value > 1) {
      error_ = "malformed " + std::string(name);
    }
    return value == 1;
  }

  // Nothing of the payload is left: an optional trailing field is absent. Also after a failure.
  bool at_end() const { return failed() || rest_.empty(); }

  std::optional<std::string> optional_bytes(std::string_view name) {
    if (at_end()) {
      return std::nullopt;
    }
    return bytes(name);
  }

  // Ok when every field was there and nothing is behind the last one; else `invalid`.
  io::Status finish() const {
    if (failed()) {
      return io::fail(io::ErrorKind::invalid, error_);
    }
    if (!rest_.empty()) {
      return io::fail(io::ErrorKind::invalid, "trailing node rpc payload data");
    }
    return {};
  }

 private:
  bool failed() const { return !error_.empty(); }
  std::string truncated(std::string_view name) {
    error_ = "truncated " + std::string(name);
    return {};
  }

  std::string_view rest_;
  std::string error_;
};

// `request` when the payload ended where its fields did.
template <typename Request>
io::Result<Request> finish_fields(const FieldReader& reader, Request request) {
  io::Status ended = reader.finish();
  if (!ended.ok()) {
    return ended.error();
  }
  return request;
}

}  // namespace engine::cluster
