// The main of a target in a build without libFuzzer: runs each of its seeds, each cut short at every one of its first bytes, and each
// with every one of these bytes changed. Allocations are not counted here. The same inputs in every run.
#include <algorithm>
#include <cstdio>

#include "tests/fuzz/support/fuzz.h"

int main() {
  constexpr std::size_t kPlacesMax = 64;
  int inputs = 0;
  for (const std::string& seed : fuzz::seeds()) {
    fuzz::run_one(seed);
    ++inputs;
    for (std::size_t at = 0; at < std::min(seed.size(), kPlacesMax); ++at) {
      std::string changed = seed;
      changed[at] = static_cast<char>(changed[at] ^ 0x81);
      fuzz::run_one(changed);
      fuzz::run_one(std::string_view(seed).substr(0, at));
      inputs += 2;
    }
  }
  std::printf("%d inputs\n", inputs);
  return inputs > 0 ? 0 : 1;
}
