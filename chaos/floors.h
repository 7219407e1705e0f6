// How many seeds of a long sweep must reach each probe (io/probe.h). A sweep that passes without having been at the rare
// places says less than it seems to: `narad-chaos sweep --floors` fails when a probe stays below its floor.
//
// Floors are meant for sweeps of kFloorSeeds seeds or more. They are not judged with a defect switched on, which changes what is
// reached. Every probe of the tree stands in the list (tests/unit/chaos/floors_test.cpp compares them): a place that no
// random run is asked to reach has floor 0 and names a test that does reach it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chaos {

inline constexpr uint64_t kFloorSeeds = 5000;
inline constexpr uint64_t kUsualFloor = 10;

struct Floor {
  std::string_view probe;
  uint64_t seeds = kUsualFloor;
  // With floor 0: a test that reaches the place, as "Suite.Name" or as a file of tests/scenario.
  std::string_view elsewhere = "";
};

// Every probe once, in the order of their names.
std::span<const Floor> floors();

// Those that `seeds_by_probe` (how many seeds reached each probe) does not satisfy.
std::vector<Floor> below_floor(const std::map<std::string, uint64_t>& seeds_by_probe);

}  // namespace chaos
