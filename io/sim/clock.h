// A machine's two clocks over virtual time: drift moves both, jumps move the calendar alone.
#pragma once

#include "io/sim/settings.h"
#include "io/time.h"

namespace io::sim {

class World;

class MachineClock final : public Clock {
 public:
  MachineClock(const World& world, const MachineSettings& settings);

  // Monotonic: never steps back, even when the drift changes.
  Instant now() override;
  WallTime wall() override;

  // From now on both clocks run `ppm` fast (slow when negative); |ppm| <= 100,000. Deadlines already armed keep the
  // moment that the old drift gave them.
  void set_drift_ppm(int64_t ppm);
  int64_t drift_ppm() const { return drift_ppm_; }
  // Moves the calendar clock by `by`, either way.
  void jump_wall(Duration by) { wall_offset_ += by; }

  // The first virtual instant at which now() reads `local` or later; kNever stays kNever.
  Instant virtual_time_of(Instant local) const;

 private:
  Duration elapsed_local(Duration elapsed_virtual) const;

  const World& world_;
  int64_t drift_ppm_ = 0;
  Instant base_virtual_{};  // where the present drift began
  Instant base_local_{};
  Duration wall_offset_{0};  // calendar minus monotonic
};

}  // namespace io::sim
