// Where failing runs leave their plans, and the line that replays one.
#pragma once

#include <string>

#include "chaos/plan.h"

namespace chaos {

inline constexpr const char* kPlanDirectory = "chaos-out";

// Writes the plan to `directory`/seed-<seed>.plan, over an older one; the directory is made if it is missing (not its parents).
// Returns "replay: <program> replay <file>", which replays the run as it stands, its defects included. When the file cannot be
// written the line names seed and defects instead and says why: a plan drawn from its seed replays by them as well.
std::string store_for_replay(const std::string& directory, const std::string& program, const Plan& plan);

}  // namespace chaos
