#include "tests/fuzz/support/fuzz.h"

#include <sanitizer/allocator_interface.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "io/check.h"

namespace fuzz {

namespace {

std::uint64_t g_allocated_bytes = 0;

void count_allocation(const volatile void*, std::size_t bytes) { g_allocated_bytes += bytes; }
void ignore_free(const volatile void*) {}

void write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const std::string& seed : seeds()) {
    std::ofstream file(folder / ("seed-" + std::to_string(++number)), std::ios::binary);
    file.write(seed.data(), static_cast<std::streamsize>(seed.size()));
    NARAD_CHECK(file.good(), "a seed is written");
  }
}

}  // namespace

Aligned::Aligned(std::string_view bytes) {
  // The end of the allocation is the end of the bytes; malloc's own alignment covers the beginning.
  memory_ = static_cast<char*>(std::malloc(bytes.empty() ? 1 : bytes.size()));
  NARAD_CHECK(memory_ != nullptr && reinterpret_cast<std::uintptr_t>(memory_) % 8 == 0, "malloc aligns");
  if (!bytes.empty()) std::memcpy(memory_, bytes.data(), bytes.size());
  view_ = std::string_view(memory_, bytes.size());
}

Aligned::~Aligned() { std::free(memory_); }

AllocationBound::AllocationBound(std::uint64_t bytes_max) : bytes_max_(bytes_max), before_(g_allocated_bytes) {}

AllocationBound::~AllocationBound() {
  NARAD_CHECK(g_allocated_bytes - before_ <= bytes_max_, "an input makes its decoder allocate out of proportion");
}

}  // namespace fuzz

// libFuzzer's three doors.

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc == 3 && std::strcmp((*argv)[1], "--seeds") == 0) {
    fuzz::write_seeds((*argv)[2]);
    std::exit(0);
  }
  NARAD_CHECK(__sanitizer_install_malloc_and_free_hooks(fuzz::count_allocation, fuzz::ignore_free) != 0,
              "allocations can be counted");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::run_one(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
