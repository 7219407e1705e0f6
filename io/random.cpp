#include "io/random.h"

#include <algorithm>

#include "io/check.h"
#include "io/mix.h"

namespace io {

uint64_t mix(uint64_t a, uint64_t b) { return mix_inline(a, b); }

uint64_t stable_hash(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return finalise(hash);
}

uint64_t RandomStream::next() { return mix(key_, position_++); }

uint64_t RandomStream::below(uint64_t bound) {
  NARAD_CHECK(bound > 0, "a draw below zero");
  // Reject the short last interval, so that every value is equally likely.
  const uint64_t limit = UINT64_MAX - (UINT64_MAX % bound + 1) % bound;
  uint64_t value = next();
  while (value > limit) {
    value = next();
  }
  return value % bound;
}

int64_t RandomStream::between(int64_t low, int64_t high) {
  NARAD_CHECK(low <= high, "an empty range to draw from");
  const uint64_t width = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  if (width == UINT64_MAX) {
    return static_cast<int64_t>(next());
  }
  return static_cast<int64_t>(static_cast<uint64_t>(low) + below(width + 1));
}

Duration RandomStream::between(Duration low, Duration high) { return Duration(between(low.count(), high.count())); }

bool RandomStream::chance_ppm(uint32_t parts_per_million) { return below(1'000'000) < parts_per_million; }

RandomStream SeededRandom::stream(std::string_view domain, uint64_t entity) {
  const uint64_t key = mix(mix(seed_, stable_hash(domain)), entity);
  auto at = std::lower_bound(asked_.begin(), asked_.end(), std::make_pair(key, uint64_t{0}));
  if (at == asked_.end() || at->first != key) {
    at = asked_.insert(at, {key, 0});
  }
  return RandomStream(mix(key, at->second++));
}

}  // namespace io
