// A RunResult as text, for the pipe between a sweep and its workers: one "key value" a line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chaos/run.h"

namespace chaos {

std::string print_result(const RunResult& result);
// Nothing for text that print_result did not write.
std::optional<RunResult> parse_result(std::string_view text);

}  // namespace chaos
