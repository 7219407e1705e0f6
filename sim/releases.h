// The releases that a world mixes: what of their ways a cluster of several can tell.
//
// Every node runs this build's code; a release is a constructor value of it (engine::Config::Tuning::Release). 3.0.1 passes over
// entry types that it does not know and keeps no index that a later release would trust; the others stop, and keep one. "next" is a
// release to come, with one entry type more.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/config.h"

namespace sim {

using Release = engine::Config::Tuning::Release;

// From the oldest on.
std::span<const Release> releases();
// Null when no release has that name.
const Release* find_release(std::string_view name);
// This build's.
const Release& own_release();

// A command of the type that only "next" knows; `number` tells one from another.
std::string hypothetical_command(uint64_t number);

}  // namespace sim
