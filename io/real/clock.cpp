#include "io/real/clock.h"

#include "io/check.h"

namespace io::real {

namespace {

Duration read_clock(clockid_t source) {
  timespec at{};
  NARAD_CHECK(clock_gettime(source, &at) == 0, "a clock that was there is gone");
  return std::chrono::seconds(at.tv_sec) + Duration(at.tv_nsec);
}

}  // namespace

BootClock::BootClock() {
  timespec at{};
  source_ = clock_gettime(CLOCK_BOOTTIME, &at) == 0 ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
}

Instant BootClock::now() { return Instant(read_clock(source_)); }

WallTime BootClock::wall() { return WallTime(read_clock(CLOCK_REALTIME)); }

}  // namespace io::real
