// CRC-32C (Castagnoli): finds accidental damage to stored bytes. No defence against anybody who wants to deceive.
//
// The processor's own instruction where it has one (SSE 4.2), tables elsewhere; both give the same values, chosen at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace io {

// The checksum of `bytes` appended to what `before` is the checksum of; 0 begins anew.
// crc32c("123456789") is 0xe3069283.
uint32_t crc32c(std::string_view bytes, uint32_t before = 0);

// A start value that stands for two numbers, so that bytes are valid only in their own place: what was written for another
// (a, b) does not pass.
uint32_t crc32c_salt(uint64_t a, uint64_t b);

// The table-driven form, for processors without the instruction and for tests.
uint32_t crc32c_portable(std::string_view bytes, uint32_t before = 0);

}  // namespace io
