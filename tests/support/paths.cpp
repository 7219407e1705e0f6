#include "tests/support/paths.h"

#include <cstdlib>

namespace tests {
namespace {

std::string from_environment(const char* name, std::string otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::string(value) : std::move(otherwise);
}

}  // namespace

std::string source_dir() { return NARAD_SOURCE_DIR; }

std::string build_dir() { return NARAD_BUILD_DIR; }

std::string narad_program() { return from_environment("NARAD_BIN", build_dir() + "/narad"); }

std::string chaos_program() { return from_environment("NARAD_CHAOS_BIN", build_dir() + "/narad-chaos"); }

}  // namespace tests
