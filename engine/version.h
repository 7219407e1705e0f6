// What this program calls itself: in `narad version`, log lines and refusals.
#pragma once

#include <string_view>

namespace engine {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace engine
