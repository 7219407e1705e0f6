// The controller: what the raft leader does for the cluster beside answering requests. Every node runs one; it acts while its node leads.
//
// It begins with its term: a barrier, tried again until it succeeds or the term has passed (a leader without a controller would be the
// worse: scenario HB-04), then a look at everything, then a pass every kControllerTick: assignments, heartbeats, rebalance,
// decommissions. Beside that it watches the members every kMembershipWatch: when one turns alive, assignment and rebalance run outside
// the tick, once every voter is alive or kArrivalWait after the latest arrival. Orphan rows are pruned on takeover and every sixth tick.
//
// It ends with its term: its fibers are cancelled, and whatever they still propose is of that term or is not proposed
// (cluster/term_write.h), so a deposed leader's timers do nothing (scenario HB-02), and silence of members is counted anew by each leader,
// by its own monotonic clock (cluster/dead_marking.h, scenario HB-01).
//
// Every planning pass holds one lock and passes a barrier first: it plans by a state that holds whatever was committed before. The barrier
// is no promise for later, so each step looks again at what it touches (assigner.h, moves.h, decommission.h).
//
// Source: spec "Leader and controller"; narad/lifecycle.md sections 5, 6, 12 and 13.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/cluster/assigner.h"
#include "engine/cluster/dead_marking.h"
#include "engine/cluster/decommission.h"
#include "engine/cluster/moves.h"
#include "engine/cluster/servers.h"

namespace engine::cluster {

inline constexpr io::Duration kControllerTick = std::chrono::seconds(10);
inline constexpr io::Duration kMembershipWatch = std::chrono::milliseconds(250);
inline constexpr io::Duration kArrivalWait = std::chrono::seconds(1);
inline constexpr uint64_t kPruneEveryTicks = 6;
// How soon a node that has been elected begins, and one that was deposed has stopped.
inline constexpr io::Duration kLeadershipPoll = std::chrono::milliseconds(100);
// Between two tries of a leader's first barrier.
inline constexpr io::Duration kTakeoverRetry = std::chrono::milliseconds(250);

class Controller {
 public:
  struct Parts {
    io::Env& env;
    metastore::Reader& reader;
    Proposer& proposer;
    EntryGate& gate;
    Servers& servers;
    std::function<NodeBacklog(const metastore::Member& member, io::Instant deadline)> ask_backlog;
    // The newest heartbeat of a member that this leader has stamped, on record or on its way there; 0 for none. It must not wait.
    std::function<int64_t(std::string_view id)> newest_heartbeat;
    // The last movement of topics or assignments; equal values: neither has changed.
    std::function<uint64_t()> last_change;
  };
  // Keeps references.
  explicit Controller(Parts parts);

  // Until cancelled. Fiber only; throws Cancelled.
  void run();

  Assigner& assigner() { return assigner_; }
  Moves& moves() { return moves_; }
  Decommission& decommission() { return decommission_; }
  // The term that it acts in; 0: it does not.
  raft::Term acting_term() const { return acting_term_; }
  // Voters that the last pass refused to mark dead; 0 on a node that does not lead.
  size_t dead_marking_refused() const { return marking_.refused(); }

 private:
  // Whom the membership watch saw alive, and what it still owes them.
  struct Arrivals {
    std::vector<std::string> alive;     // at the last look; nobody before the first
    std::optional<io::Instant> latest;  // arrival that no pass has followed yet
    io::Instant not_before{};           // of the next pass, after one that left something
  };
  // What a pass went by: while it stays the same there is nothing new to plan.
  struct Ground {
    uint64_t change = 0;
    std::vector<std::tuple<std::string, metastore::MemberStatus, bool>> members;  // with: is draining
    friend bool operator==(const Ground&, const Ground&) = default;
  };

  void lead(raft::Term term);
  bool take_over(raft::Term term);
  void stop_leading();
  void tick_loop(raft::Term term);
  void tick(raft::Term term, uint64_t number);
  void watch_loop(raft::Term term);
  io::Instant watch(raft::Term term);
  void follow_arrivals(raft::Term term);
  bool are_voters_alive(const std::vector<metastore::Member>& members) const;

  // A pass: the lock, the barrier, then `body`. False when something kept it from being carried out.
  bool plan(raft::Term term, const std::function<bool(io::Instant deadline)>& body);
  bool plan_by_picture(raft::Term term, const std::function<bool(const Picture&, io::Instant deadline)>& body);
  std::optional<Ground> ground();
  bool assign(raft::Term term);
  bool prune(raft::Term term);
  bool mark_dead(raft::Term term);
  bool rebalance(raft::Term term);
  bool decommission(raft::Term term);
  void propose_mark(const DeadMark& mark, raft::Term term, io::Instant deadline);

  Parts parts_;
  Assigner assigner_;
  Moves moves_;
  Decommission decommission_;
  DeadMarking marking_;
  Arrivals arrivals_;
  // What the last complete pass of each kind went by; nothing: the next one is due in any case.
  std::optional<Ground> assigned_;
  std::optional<Ground> rebalanced_;
  std::optional<uint64_t> pruned_;
  io::Mutex planning_;
  raft::Term acting_term_ = 0;
};

}  // namespace engine::cluster
