// errno values as the errors of the contract.
#pragma once

#include <string>
#include <string_view>

#include "io/result.h"

namespace io::real {

// The kernel's own words in lower case: "no space left on device".
std::string errno_text(int error);
// "<object>: <text>", with the kind that callers branch on.
Error error_from_errno(int error, std::string_view object);

}  // namespace io::real
