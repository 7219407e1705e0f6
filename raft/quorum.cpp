#include "raft/quorum.h"

#include <algorithm>
#include <functional>

namespace raft {

namespace {

template <class Number>
Number quorum_value_of(std::span<Number> values) {
  if (values.empty()) return 0;
  // More than half of n: n/2 + 1 values, so the one at n/2 when the greatest stands first.
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end(), std::greater<>());
  return *middle;
}

}  // namespace

std::uint64_t quorum_value(std::span<std::uint64_t> values) { return quorum_value_of(values); }

std::int64_t quorum_value(std::span<std::int64_t> values) { return quorum_value_of(values); }

Ballot::Ballot(ElectionKind kind, Term term, const Configuration& configuration) : kind_(kind), term_(term) {
  for (const Server& server : configuration.servers) {
    if (server.voter) voters_.push_back(Voter{server.id, server.store, {}, false, false});
  }
}

bool Ballot::record(ElectionKind kind, Term term, const ServerId& from, const StoreId& store, bool granted) {
  if (kind != kind_ || term != term_) return false;
  for (Voter& voter : voters_) {
    if (voter.id != from) continue;
    if (voter.answered) return false;
    if (voter.recorded.is_known() && voter.recorded != store) return false;
    voter.answered = true;
    voter.granted = granted;
    voter.heard = store;
    return true;
  }
  return false;
}

ElectionResult Ballot::result() const {
  const std::size_t quorum = voters_.size() / 2 + 1;
  std::size_t granted = 0;
  std::size_t refused = 0;
  for (const Voter& voter : voters_) {
    if (!voter.answered) continue;
    ++(voter.granted ? granted : refused);
  }
  if (granted >= quorum) return ElectionResult::won;
  // Even if everyone still silent granted, it would not do.
  if (voters_.size() - refused < quorum) return ElectionResult::lost;
  return ElectionResult::pending;
}

}  // namespace raft
