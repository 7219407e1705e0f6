// Checks that stay on in every build. A failed check is a bug of ours, never bad input: it prints one line that names the
// condition, the place and a message, and aborts the process (in the simulator the run is reported as a harness fault).
#pragma once

#include <string_view>

namespace io {

[[noreturn]] void check_failed(const char* condition, const char* file, int line, std::string_view message);

}  // namespace io

#define NARAD_CHECK(condition, message)                                       \
  do {                                                                        \
    if (__builtin_expect(!(condition), 0)) {                                  \
      ::io::check_failed(#condition, __FILE__, __LINE__, (message));          \
    }                                                                         \
  } while (false)
