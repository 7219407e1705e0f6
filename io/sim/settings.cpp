#include "io/sim/settings.h"

#include "io/check.h"

namespace io::sim {

// One draw: its high half picks the row, its low half the place within.
Duration LatencyTable::draw(RandomStream& stream) const {
  if (rows.empty()) {
    return Duration::zero();
  }
  uint64_t total = 0;
  for (const Row& row : rows) {
    total += row.weight;
  }
  NARAD_CHECK(total > 0, "a latency table without weight");
  const uint64_t value = stream.next();
  uint64_t at = (value >> 32) * total >> 32;
  for (const Row& row : rows) {
    if (at < row.weight) {
      const uint64_t width = static_cast<uint64_t>((row.high - row.low).count()) + 1;
      return row.low + Duration(static_cast<int64_t>((value & 0xffffffffULL) * width >> 32));
    }
    at -= row.weight;
  }
  return rows.back().high;
}

}  // namespace io::sim
