// Arithmetic over a quorum: which index a majority has reached, and the ballot of one election.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "raft/configuration.h"
#include "raft/types.h"

namespace raft {

// The greatest value that more than half of `values` have reached: the (n/2 + 1)-th greatest. Reorders `values`.
// Empty: 0, the value nobody has to prove.
std::uint64_t quorum_value(std::span<std::uint64_t> values);
std::int64_t quorum_value(std::span<std::int64_t> values);

enum class ElectionKind : std::uint8_t { pre_vote, vote };
enum class ElectionResult : std::uint8_t { pending, won, lost };

// The answers of one election: a set of voters, taken from the configuration in force when it began. An answer counts
// only for the election it was given in (kind and term), once for each voter, and only from the voter's own store.
class Ballot {
 public:
  Ballot() = default;
  Ballot(ElectionKind kind, Term term, const Configuration& configuration);

  ElectionKind kind() const { return kind_; }
  Term term() const { return term_; }

  // Records an answer. A voter's first answer stands; strangers, other stores, other terms and kinds are not counted.
  // Returns whether it was counted.
  bool record(ElectionKind kind, Term term, const ServerId& from, const StoreId& store, bool granted);
  ElectionResult result() const;

  struct Voter {
    ServerId id;
    StoreId recorded;  // in the configuration; zero: any counts
    StoreId heard;     // of the answer
    bool answered = false;
    bool granted = false;
  };
  std::span<const Voter> voters() const { return voters_; }

 private:
  ElectionKind kind_ = ElectionKind::pre_vote;
  Term term_ = 0;
  std::vector<Voter> voters_;
};

}  // namespace raft
