#include "io/sim/clock.h"

#include "io/check.h"
#include "io/sim/world.h"

namespace io::sim {

namespace {

constexpr int64_t kMillion = 1'000'000;

}  // namespace

MachineClock::MachineClock(const World& world, const MachineSettings& settings)
    : world_(world),
      base_virtual_(world.now()),
      base_local_(settings.clock_offset),
      wall_offset_(settings.wall_at_start.time_since_epoch() - settings.clock_offset) {
  NARAD_CHECK(settings.clock_offset >= Duration::zero(), "a monotonic clock starts at zero or later");
  set_drift_ppm(settings.clock_drift_ppm);
}

Duration MachineClock::elapsed_local(Duration elapsed) const {
  return drift_ppm_ == 0 ? elapsed
                         : Duration(static_cast<int64_t>(static_cast<__int128>(elapsed.count()) *
                                                         (kMillion + drift_ppm_) / kMillion));
}

Instant MachineClock::now() { return base_local_ + elapsed_local(world_.now() - base_virtual_); }

WallTime MachineClock::wall() { return WallTime(now().time_since_epoch() + wall_offset_); }

void MachineClock::set_drift_ppm(int64_t ppm) {
  NARAD_CHECK(ppm >= -100'000 && ppm <= 100'000, "a clock this wrong is a stopped one");
  base_local_ = now();
  base_virtual_ = world_.now();
  drift_ppm_ = ppm;
}

Instant MachineClock::virtual_time_of(Instant local) const {
  if (local == kNever || local <= base_local_) {
    return local == kNever ? kNever : base_virtual_;
  }
  const __int128 ahead = (local - base_local_).count();
  const __int128 rate = kMillion + drift_ppm_;
  // Rounded up: then the clock reads `local` or later.
  const __int128 elapsed = drift_ppm_ == 0 ? ahead : (ahead * kMillion + rate - 1) / rate;
  const __int128 at = elapsed + base_virtual_.time_since_epoch().count();
  return at >= kNever.time_since_epoch().count() ? kNever : Instant(Duration(static_cast<int64_t>(at)));
}

}  // namespace io::sim
