// JSON as text for the few answers that are made by hand: errors, health, single numbers.
#pragma once

#include <string>
#include <string_view>

namespace engine {

// `text` as a JSON string with its quotes: control characters, quotes and backslashes escaped, bytes that are not UTF-8 replaced
// by U+FFFD, so that any input gives valid JSON.
std::string json_quoted(std::string_view text);

}  // namespace engine
