// The machine's clocks. now() is time since boot, suspended time included (CLOCK_BOOTTIME; CLOCK_MONOTONIC where that
// is missing), so a lease does not live through a night in a laptop's bag. wall() is the calendar clock.
#pragma once

#include <time.h>

#include "io/time.h"

namespace io::real {

class BootClock final : public Clock {
 public:
  BootClock();
  Instant now() override;
  WallTime wall() override;

 private:
  clockid_t source_;
};

}  // namespace io::real
