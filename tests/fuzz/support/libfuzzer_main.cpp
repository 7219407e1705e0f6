// libFuzzer's doors into a target, for the preset that links libFuzzer's main.
#include <sanitizer/allocator_interface.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "io/check.h"
#include "tests/fuzz/support/fuzz.h"

namespace {

void allocated(const volatile void*, std::size_t bytes) { fuzz::count_allocation(bytes); }
void ignore_free(const volatile void*) {}

void write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const std::string& seed : fuzz::seeds()) {
    std::ofstream file(folder / ("seed-" + std::to_string(++number)), std::ios::binary);
    file.write(seed.data(), static_cast<std::streamsize>(seed.size()));
    NARAD_CHECK(file.good(), "a seed is written");
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc == 3 && std::strcmp((*argv)[1], "--seeds") == 0) {
    write_seeds((*argv)[2]);
    std::exit(0);
  }
  NARAD_CHECK(__sanitizer_install_malloc_and_free_hooks(allocated, ignore_free) != 0, "allocations can be counted");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::run_one(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
