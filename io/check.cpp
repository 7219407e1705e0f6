#include "io/check.h"

#include <cstdio>
#include <cstdlib>

namespace io {

void check_failed(const char* condition, const char* file, int line, std::string_view message) {
  std::fprintf(stderr, "check failed: %s at %s:%d: %.*s\n", condition, file, line, static_cast<int>(message.size()),
               message.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace io
