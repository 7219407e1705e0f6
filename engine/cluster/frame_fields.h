// What of the node protocol a release knows, as data: this build knows all of it; the simulator gives a node the ways of an older one.
#pragma once

#include <cstdint>

namespace engine::cluster {

struct FrameFields {
  // Optional trailing fields that the release sends, and understands.
  bool build = true;        // RegisterMember's build and entry_types
  bool fresh = true;        // JoinCluster's
  bool entry_types = true;  // JoinCluster's; not without fresh
  bool actor = true;        // of topic writes
  // Requests with a higher number are "unsupported" to it.
  uint8_t newest_op = 255;
};

}  // namespace engine::cluster
