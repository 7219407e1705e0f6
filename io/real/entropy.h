// The production seed of io::Random.
#pragma once

#include <cstdint>

namespace io::real {

// 64 bits from the kernel's generator; waits for it at early boot.
uint64_t entropy_seed();

}  // namespace io::real
