#include "sim/replica.h"

#include "io/check.h"

namespace sim {

std::string Replica::apply(const raft::Entry& entry) {
  NARAD_CHECK(entry.index == last_index() + 1, "the replica takes every entry, in order");
  engine::metastore::Evaluation result = engine::metastore::evaluate(rows_, state_, {entry}, newest_type_);
  if (result.unknown) {
    digests_.push_back(state_.digest);
    return "";
  }
  rows_.take(result.rows);
  state_ = result.state;
  digests_.push_back(state_.digest);
  NARAD_CHECK(result.answers.size() == 1, "an entry has one answer");
  return result.answers.front();
}

}  // namespace sim
