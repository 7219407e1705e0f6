// Where the partitions of a topic go, as the topic manager needs it: on the leader, around a create or a partition increase.
//
// The manager calls ready_to_place() before it proposes the record and place() once the record is applied here, both while it holds the
// topic's name. Neither decides whether the write succeeds but in one case: a cluster whose live nodes are all being decommissioned
// takes no new partitions, and the request is refused before anything is written.
//
// Implemented by cluster/assigner.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/topics/reply.h"
#include "io/time.h"

namespace engine::topics {

enum class PlacementCause : uint8_t { created, grown };

class Placer {
 public:
  virtual ~Placer() = default;

  // While the cluster forms (some voters have a member record, others have none) waits for the rest: 2 s at most, counted from when a
  // forming cluster was first seen, so that a voter that never registers costs one wait and not one a request. Then: nullopt when the
  // record may be written (also when no member is alive: its partitions are placed later), or the 503 that says why not. Does not
  // go beyond `deadline`. Fiber only; throws Cancelled.
  virtual std::optional<Reply> ready_to_place(io::Instant deadline) = 0;

  // Places every partition of `topic` that has no owner on record, under the assignment lock, which the controller's sweep takes too;
  // never one that has. What cannot be placed now (no member is alive, the parent's partition is not placed yet, leadership went)
  // is logged and left to the sweep: the record stands, so there is nothing to answer. Fiber only; throws Cancelled.
  virtual void place(std::string_view topic, PlacementCause cause, io::Instant deadline) = 0;
};

}  // namespace engine::topics
