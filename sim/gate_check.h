// The rule of upgrades, held against every entry that a leader appends: its type was reported, at that moment, by every server of the newest
// configuration and by every member on record, the leader counted by its own build (engine/cluster/entry_gate.h).
//
// It reads the log alone: who reported what comes from the committed entries in their order, who belongs to the cluster from the
// configuration in force at the entry. "That moment" is the leader's: the gate sees what its replica has applied.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "raft/configuration.h"
#include "raft/types.h"

namespace sim {

class GateCheck {
 public:
  // A committed entry, each once and in order.
  void committed(const raft::Entry& entry);

  // Whether the member has ever reported types up to `type` or beyond, or has used its own build's as a leader: taken back to a release
  // below that, it is past the boundary, and may stop.
  bool has_reported(const std::string& id, uint32_t type) const;
  // Its last report; 0: it has no record.
  uint32_t types_of(const std::string& id) const;

  // Leader `leader`, whose build applies types up to `own`, has appended `entry` while its replica stood somewhere from index
  // `applied_from` (the leader's first entry of its term at least: a gate looks at no older replica) to `applied_to`, with `newest` in
  // force. What is wrong; nothing: the gate might let it pass.
  std::optional<std::string> appended(const std::string& leader, uint32_t own, raft::Index applied_from, raft::Index applied_to,
                                      const raft::Configuration& newest, const raft::Entry& entry);

 private:
  // What a member had reported from an index on; 0: it has no record.
  using Reports = std::vector<std::pair<raft::Index, uint32_t>>;

  uint32_t types_of(const std::string& id, raft::Index applied) const;
  std::optional<std::string> holder(uint32_t type, const std::string& leader, uint32_t own, raft::Index applied,
                                    const raft::Configuration& newest) const;
  void note(raft::Index index, const std::string& id, uint32_t types);

  std::map<std::string, Reports> reports_;
  std::map<std::string, uint32_t> used_;  // by leaders, of their own builds
  std::map<std::string, bool> removed_;  // true: its tombstone stands
};

}  // namespace sim
