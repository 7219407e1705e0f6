// The one order of everything the cluster decided, gathered from what each node applies, and compared across nodes and lives:
// an index has one entry and one answer, and equal applied indexes have equal state digests. Both are those of the same entries
// evaluated once, in memory (replica.h).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/time.h"
#include "engine/metastore/envelope.h"
#include "raft/types.h"
#include "sim/replica.h"
#include "sim/topic_model.h"
#include "sim/violation.h"

namespace sim {

class LogBook {
 public:
  struct Line {
    raft::Term term = 0;
    raft::EntryType type = raft::EntryType::noop;
    uint64_t content = 0;  // hash of the payload
    uint64_t answer = 0;   // hash of the state machine's answer
    int node = 0;          // who applied it first ...
    io::Instant at{};      // ... and when
    std::optional<ChangeKind> change;  // what it did, when it is one of the clients' commands and was not refused
    std::string name;
  };

  // Node `node` in its life `life` has applied `entry` and the state machine answered `answer`. `change`: the decoded command,
  // if it is one; `refused`: the state machine refused it. Returns what is wrong, if anything.
  std::optional<Violation> applied(int node, uint64_t life, const raft::Entry& entry, const std::string& answer, bool refused,
                                   const std::optional<Change>& change, io::Instant now);
  // The state machine of `node` stands at `index` with this digest.
  std::optional<Violation> digest(int node, Index index, uint64_t digest, io::Instant now);
  // A new life of `node` begins with its state machine at `index`. A life that ended between applying an entry and telling of it
  // leaves lines that nobody has told of: they are taken from the node's own log, entry by entry.
  void restarted(int node, uint64_t life, Index index);
  // An image replaced the state of `node` in its life `life`: it holds everything up to `index`.
  std::optional<Violation> installed(int node, uint64_t life, Index index, io::Instant now);
  // The image in a snapshot of `node` labelled `label` says that it holds everything up to `index`, with this digest.
  std::optional<Violation> labelled(int node, Index label, Index index, uint64_t digest, io::Instant now) const;
  void applied_unseen(int node, const raft::Entry& entry, const std::optional<Change>& change, io::Instant now);

  Index last_index() const { return lines_.size(); }
  // 1 <= index <= last_index(); lines below the first one seen have term 0.
  const Line& line(Index index) const { return lines_[index - 1]; }
  // What `node`'s state machine has applied, as far as it told.
  Index applied_index(int node) const;
  const TopicModel& model() const { return model_; }
  const Replica& replica() const { return replica_; }

 private:
  struct Position {
    uint64_t life = 0;
    Index applied = 0;
  };
  std::optional<Violation> check_order(int node, uint64_t life, Index index, io::Instant now);

  std::deque<Line> lines_;
  std::map<int, Position> positions_;
  bool has_children(const Change& change) const;
  // What an entry came to, into the model; `change` only of one that was not refused. What is wrong, if anything.
  std::optional<std::string> take(const raft::Entry& entry, const Replica::Applied& applied, const std::optional<Change>& change, Line& line);
  void note_link(const raft::Entry& entry, const Replica::Applied& applied);

  TopicModel model_;
  Replica replica_{engine::metastore::kHypotheticalEntryType};
};

}  // namespace sim
