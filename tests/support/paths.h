// Where a test finds the tree it was built from and the programs built beside it.
//
// Only paths.cpp carries the absolute paths, so that every other test compiles to the same object in every checkout.
#pragma once

#include <string>

namespace tests {

// The root of the source tree, without a trailing slash.
std::string source_dir();

// The build directory of this preset (build/<preset>), without a trailing slash.
std::string build_dir();

// The narad program under test: $NARAD_BIN when set, else build_dir()/narad.
std::string narad_program();

// The narad-chaos program under test: $NARAD_CHAOS_BIN when set, else build_dir()/narad-chaos.
std::string chaos_program();

}  // namespace tests
