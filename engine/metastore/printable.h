// Text that may stand in logs and answers as it is.
#pragma once

#include <cstddef>
#include <string_view>

namespace engine::metastore {

// Well-formed UTF-8 (RFC 3629) without control characters.
bool is_printable(std::string_view text);

// Length of the UTF-8 sequence at the front of `text`; 0 when it is none.
size_t utf8_length(std::string_view text);

}  // namespace engine::metastore
