// Randomness as the node sees it: named streams, each a pure function of (seed, domain, entity, position).
//
// A draw never depends on the order in which other streams are drawn, so adding or removing one decision leaves every other
// decision of a run as it was. In production the seed is entropy; in the simulator it is the run's seed. Integer arithmetic
// only: no floating point reaches an effect.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "io/time.h"

namespace io {

// 64-bit mix of (a, b); the building block of every draw here (finaliser of SplitMix64).
uint64_t mix(uint64_t a, uint64_t b);
// Stable 64-bit hash of bytes (FNV-1a, then mixed): the same on every machine, build and run.
uint64_t stable_hash(std::string_view bytes);

// One stream. A value: copying it forks the same future.
class RandomStream {
 public:
  explicit RandomStream(uint64_t key) : key_(key) {}

  uint64_t next();                             // any 64-bit value
  uint64_t below(uint64_t bound);              // 0..bound-1, unbiased; bound > 0
  int64_t between(int64_t low, int64_t high);  // low..high, both included
  Duration between(Duration low, Duration high);
  bool chance_ppm(uint32_t parts_per_million);  // true with that chance, 0..1,000,000

  // Fisher-Yates in place.
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[below(i)]);
    }
  }

 private:
  uint64_t key_;
  uint64_t position_ = 0;
};

// Where streams come from. `domain` names the kind of decision ("election timeout"), `entity` whose it is.
// Asking twice for one (domain, entity) from one Random gives two streams that go on from each other's start, never the same
// draws again: the per-entity counter lives here.
class Random {
 public:
  virtual ~Random() = default;
  virtual RandomStream stream(std::string_view domain, uint64_t entity) = 0;
  RandomStream stream(std::string_view domain, std::string_view entity) { return stream(domain, stable_hash(entity)); }
};

// A Random whose every stream follows from one seed.
class SeededRandom : public Random {
 public:
  explicit SeededRandom(uint64_t seed) : seed_(seed) {}
  using Random::stream;
  RandomStream stream(std::string_view domain, uint64_t entity) override;

 private:
  uint64_t seed_;
  // How often each (domain, entity) was asked for: a sorted vector of (key, count), small.
  std::vector<std::pair<uint64_t, uint64_t>> asked_;
};

}  // namespace io
