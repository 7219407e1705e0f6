#include "tests/fuzz/support/fuzz.h"

#include <cstdlib>
#include <cstring>

#include "io/check.h"

namespace fuzz {

namespace {

std::uint64_t g_allocated_bytes = 0;

}  // namespace

Aligned::Aligned(std::string_view bytes) {
  // The end of the allocation is the end of the bytes; malloc's own alignment covers the beginning.
  memory_ = static_cast<char*>(std::malloc(bytes.empty() ? 1 : bytes.size()));
  NARAD_CHECK(memory_ != nullptr && reinterpret_cast<std::uintptr_t>(memory_) % 8 == 0, "malloc aligns");
  if (!bytes.empty()) std::memcpy(memory_, bytes.data(), bytes.size());
  view_ = std::string_view(memory_, bytes.size());
}

Aligned::~Aligned() { std::free(memory_); }

void count_allocation(std::size_t bytes) { g_allocated_bytes += bytes; }

AllocationBound::AllocationBound(std::uint64_t bytes_max) : bytes_max_(bytes_max), before_(g_allocated_bytes) {}

AllocationBound::~AllocationBound() {
  NARAD_CHECK(g_allocated_bytes - before_ <= bytes_max_, "an input makes its decoder allocate out of proportion");
}

}  // namespace fuzz
