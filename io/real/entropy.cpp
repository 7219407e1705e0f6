#include "io/real/entropy.h"

#include <sys/random.h>

#include <cerrno>

#include "io/check.h"

namespace io::real {

uint64_t entropy_seed() {
  uint64_t seed = 0;
  ssize_t got = 0;
  do {
    got = getrandom(&seed, sizeof seed, 0);
  } while (got < 0 && errno == EINTR);
  NARAD_CHECK(got == sizeof seed, "the kernel gives entropy");
  return seed;
}

}  // namespace io::real
