// What a snapshot file of a node says about itself, read off the simulated disk without the node's knowing.
#pragma once

#include <optional>
#include <string_view>

#include "engine/metastore/apply.h"

namespace sim {

// The state that the image in a snapshot file claims to hold; nothing when the file is not a complete snapshot with a readable begin.
std::optional<engine::metastore::FsmState> read_image_head(std::string_view file);

}  // namespace sim
