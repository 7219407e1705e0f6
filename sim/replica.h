// The state that the log's entries make, kept beside the nodes: every entry is evaluated once, from an empty state on, over rows
// in memory. No disk, no crash, no snapshot and no restart touches it, so a node whose answers or digest differ has applied something
// twice, not at all, or in part.
//
// It runs the node's own handlers: what an entry should mean is checked elsewhere (TopicModel here, the model tests of the
// metastore).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/metastore/apply.h"
#include "engine/metastore/topic.h"
#include "raft/types.h"

namespace sim {

class Replica {
 public:
  // `newest_type`: of the release that evaluates; an entry of a newer type changes nothing here.
  explicit Replica(uint32_t newest_type) : newest_type_(newest_type) {}

  struct Applied {
    std::string answer;
    // Topics that the entry made, changed or removed, with their records as stored; nothing for a removed one.
    std::vector<std::pair<std::string, std::optional<engine::metastore::Topic>>> topics;
    // Names whose schemas the entry changed: how many there are now, and the latest.
    struct Schemas {
      std::string topic;
      int64_t versions = 0;
      std::string latest;
    };
    std::vector<Schemas> schemas;
  };
  // Entries come in order, from index 1 on.
  Applied apply(const raft::Entry& entry);
  raft::Index last_index() const { return digests_.size(); }
  // The digest of the state after `index` (0: the empty state); index <= last_index().
  uint64_t digest_at(raft::Index index) const { return index == 0 ? 0 : digests_[index - 1]; }
  const engine::metastore::MemoryRows& rows() const { return rows_; }

 private:
  const uint32_t newest_type_;
  engine::metastore::MemoryRows rows_;
  engine::metastore::FsmState state_;
  std::deque<uint64_t> digests_;
};

}  // namespace sim
