// Which part of a node's work a disk operation belongs to, so that a fault can strike in the middle of a compaction, a snapshot or an
// install, wherever that work happens to be in the run. Told from the operation, its path, and what the node is doing.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/world.h"

namespace chaos {

enum class Work {
  append,      // the raft log grows: entries, new segments
  compaction,  // the raft log's beginning goes
  snapshot,    // an image of the node's own is written, and older ones go
  install,     // an image of the leader's is received and takes the state machine's place
  vote,        // raft's record of term and vote
  apply,       // the metastore's own files, and its flushes
  start,       // everything before the node has started
};

inline constexpr std::array kWorks{Work::append, Work::compaction, Work::snapshot, Work::install, Work::vote, Work::apply, Work::start};

// "append", as plans say.
std::string_view work_name(Work work);
std::optional<Work> work_by_name(std::string_view name);

// The probe of a fault that has struck in such work: "simulator: a process ends in a compaction of the log". `fault` as plans name it.
std::string struck_probe(std::string_view fault, Work work);
// All of them, for the list of floors.
std::vector<std::string> struck_probes();

// Follows the operations of one node.
class DiskWork {
 public:
  // The world must outlive this, and this every run of the world.
  DiskWork(const sim::World& world, int node) : world_(world), node_(node) {}

  // An operation that changes the disk is about to land.
  void observe(io::sim::DiskOp op, std::string_view path);
  // What one belongs to that begins or lands now; nothing for one that is none of these.
  std::optional<Work> work_of(io::sim::DiskOp op, std::string_view path) const;

 private:
  const sim::World& world_;
  int node_;
  bool is_compacting_ = false;  // the last change of the log's files took from it
  bool is_receiving_ = false;   // the last write below the snapshots was to a received one
};

}  // namespace chaos
