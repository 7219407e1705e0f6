// The destination's side of a move, on every node: finds the partitions that are to come here and asks the leader for the flip.
//
// A node that is the destination proposes nothing itself, whoever leads: the flip goes to the leader (CompleteMove), whose state machine
// compares owner and destination with what this node saw, so it counts once however often it is asked for (scenario PL-01). An answer
// that leaves the outcome open is asked again at the next look; a refusal ends the matter, since the row is another one by then.
//
// While the source is dead its data is on its disk only, and the move waits for it. Partitions hold no data before the data plane
// exists, so with a live source there is nothing to copy first.
//
// Nothing is believed of the rows before this replica has once caught up. Source: narad/lifecycle.md section 13.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/cluster/admin_json.h"
#include "engine/cluster/move_frames.h"
#include "engine/metastore/reader.h"
#include "engine/metastore/records.h"
#include "io/env.h"

namespace engine::cluster {

inline constexpr io::Duration kMoverTick = std::chrono::seconds(1);
// However little has changed.
inline constexpr io::Duration kMoverFullPass = std::chrono::seconds(30);

class Mover {
 public:
  struct Parts {
    io::Env& env;
    metastore::Reader& reader;
    std::string self;
    std::function<bool()> knows_owners;    // the replica has caught up once
    std::function<uint64_t()> last_change;  // of any assignment; equal values: nothing has moved
    // The leader's answer, wherever it is.
    std::function<NodeReply(const CompleteMoveRequest& request, io::Instant deadline)> ask_leader;
  };
  explicit Mover(Parts parts) : parts_(std::move(parts)) {}

  // Until cancelled. Fiber only; throws Cancelled.
  void run();
  // One look. Fiber only; throws Cancelled.
  void look();

  // Those under way to this node.
  std::vector<NodeStatusFacts::Move> moves() const;
  uint64_t completed() const { return completed_; }

 private:
  using Place = std::pair<std::string, int32_t>;
  bool is_worth_a_look() const;
  io::Status find();
  bool is_source_alive(const std::string& id);
  void work(NodeStatusFacts::Move& move);

  Parts parts_;
  std::map<Place, NodeStatusFacts::Move> moves_;
  uint64_t seen_change_ = 0;
  bool has_looked_ = false;
  io::Instant looked_at_{};
  uint64_t completed_ = 0;
};

}  // namespace engine::cluster
