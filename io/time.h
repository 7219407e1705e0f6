// Time as the node sees it: strong types over nanoseconds, no way to read the machine's clock.
//
// `Instant` is a point of the monotonic clock (boot time in production, virtual time in the simulator): deadlines, timeouts
// and ages use it alone. `WallTime` is a point of the calendar clock: it may jump both ways, so it is only ever shown or
// stored, never compared to decide anything. The two do not mix: the compiler refuses it.
#pragma once

#include <chrono>
#include <cstdint>

namespace io {

using namespace std::chrono_literals;

using Duration = std::chrono::nanoseconds;

// Tags only: neither has now(), which is Clock's alone.
struct MonotonicTag {
  using rep = int64_t;
  using period = std::nano;
  using duration = Duration;
};
struct CalendarTag {
  using rep = int64_t;
  using period = std::nano;
  using duration = Duration;
};

using Instant = std::chrono::time_point<MonotonicTag, Duration>;
using WallTime = std::chrono::time_point<CalendarTag, Duration>;

// A wait with this deadline ends only by its event or by cancellation.
inline constexpr Instant kNever = Instant::max();

// Nanoseconds since the clock's origin; exact.
inline int64_t to_ns(Instant at) { return at.time_since_epoch().count(); }
// Whole seconds and milliseconds since 1970-01-01T00:00:00Z, rounded down.
inline int64_t to_unix_seconds(WallTime at) {
  return std::chrono::floor<std::chrono::seconds>(at.time_since_epoch()).count();
}
inline int64_t to_unix_ms(WallTime at) {
  return std::chrono::floor<std::chrono::milliseconds>(at.time_since_epoch()).count();
}

// The node's two clocks. Owned by the backend; valid as long as its Env.
class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic; never steps back within one process.
  virtual Instant now() = 0;
  // Calendar; may step either way.
  virtual WallTime wall() = 0;
};

}  // namespace io
