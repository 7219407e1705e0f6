// The entry-type gate: which entry types a leader may propose while the cluster runs more than one release.
//
// A release stops at an entry that it does not know (3.0 passes over it, which is worse). So a type that is not of every release is
// proposed only when everybody who may ever meet the entry has reported a release that applies it: every server of the newest
// configuration, voter or not, and every member on record, alive, dead or draining. A member that is down counts by what it reported
// last: it comes back with its log. A server without a record has reported nothing yet and holds every such type back. The leader counts
// itself by its own build, whatever its record says. What a type that is held back is replaced by is its proposer's business: the entries
// of every release with checks on the leader, or, since types 33 to 37 have no older form, a 412 that names the holder.
//
// A leader derives the answer anew from its own replica and configuration each time it asks, so nothing has to be activated, and a new
// leader begins with no memory of what the one before it used.
//
// hold_back() is the rule, a pure function. ClusterGate applies it to a node.
// Source: narad/entry-types.md section 11; spec "Upgrades".
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/metastore/envelope.h"
#include "engine/metastore/records.h"
#include "io/env.h"
#include "raft/log_limit.h"
#include "raft/types.h"

namespace raft {
class RaftServer;
}

namespace engine::metastore {
class Reader;
}

namespace engine::cluster {

// ---- The rule --------------------------------------------------------------------------------------------------------------

// The node that asks.
struct GateSelf {
  std::string id;
  std::string build;         // "3.2.0"
  uint32_t newest_type = 0;  // that it applies
};

struct HeldBack {
  std::string id;      // whose release is too old or unknown
  std::string reason;  // one line for people, in the exact words that clients and operators are told
};

// Who holds `type` back: the first in the order of ids; nothing when it may be proposed. `servers`: the ids of the newest configuration
// of the raft log, appended counts, in any order. `members`: every record, in any order. A member that reported no type counts as one
// of 3.0 (kEveryReleaseEntryType), one without a build prints as "unknown build".
std::optional<HeldBack> hold_back(uint32_t type, const std::vector<std::string>& servers, const std::vector<metastore::Member>& members,
                                  const GateSelf& self);

// ---- What proposers ask ----------------------------------------------------------------------------------------------------

struct GateAnswer {
  bool may_use = true;
  std::string holder;  // its id; empty when the type may be used, and when the members could not be read
  std::string reason;  // why not; empty when the type may be used
};

class EntryGate {
 public:
  virtual ~EntryGate() = default;

  // Whether the leader may propose an entry of `type` now. Types of every release (up to 22) always pass, without a wait. For others it
  // may wait for the store lane and, once in a term, until this replica has applied what its log held when it was first asked. The
  // answer holds until the caller next waits: ask, then propose, with nothing between them. Fiber only. Throws Cancelled.
  virtual GateAnswer judge(uint32_t type, io::Instant deadline) = 0;

  GateAnswer judge(metastore::EntryType type, io::Instant deadline) { return judge(static_cast<uint32_t>(type), deadline); }
  bool may_use(metastore::EntryType type, io::Instant deadline) { return judge(type, deadline).may_use; }
};

// ---- A node's --------------------------------------------------------------------------------------------------------------

// By this node's replica and its raft server's newest configuration. A node that does not lead, or whose members cannot be read by the
// deadline, may use no type beyond those of every release.
//
// Log lines (info), of a leader: a type that is held back, at most once a minute and type; the first use of a type in this process.
class ClusterGate final : public EntryGate {
 public:
  // Keeps references to all but `self`. `raft` is open.
  ClusterGate(io::Env& env, metastore::Reader& reader, raft::RaftServer& raft, GateSelf self);

  using EntryGate::judge;
  GateAnswer judge(uint32_t type, io::Instant deadline) override;

 private:
  std::optional<HeldBack> look(uint32_t type, io::Instant deadline);
  io::Result<raft::Term> reach_own_log(io::Instant deadline);
  io::Result<std::vector<metastore::Member>> members(io::Instant deadline);
  void note_held_back(uint32_t type, const HeldBack& held);
  void note_used(uint32_t type);

  io::Env& env_;
  metastore::Reader& reader_;
  raft::RaftServer& raft_;
  const GateSelf self_;
  raft::Term term_ = 0;          // in which it was asked last
  raft::Index must_apply_ = 0;   // what the log held when it was first asked in that term
  std::set<uint32_t> used_;      // types whose first use is in the log
  raft::LogLimit held_back_lines_;
};

}  // namespace engine::cluster
