// Who waits for which entry. A waiter belongs to one (term, index): it is answered by the entry of that term at that index and by
// no other (scenario CL-03).
//
// A cut of the waiter's entry from this server's log does not settle its fate: another server may still hold it, lead, and
// commit it. Only another entry committed in its place does.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "io/fiber.h"
#include "raft/types.h"

namespace raft {

struct ProposalWait {
  enum class End : std::uint8_t { pending, applied, superseded, unknown, stopped };
  Term term = 0;
  Index index = 0;
  End end = End::pending;
  std::string answer;  // applied
  io::Event done;
};

class ProposalTable {
 public:
  // Registers a waiter. Called between Core::propose() and the next Core::ready(), so before the entry can commit. Several
  // waiters may share an index over time: entries of different terms.
  std::shared_ptr<ProposalWait> add(Term term, Index index);
  // The waiter gave up.
  void remove(const std::shared_ptr<ProposalWait>& wait);

  // `entry` was applied here. Called for every index in order, whatever the entry's type: its own waiter gets `answer`, others
  // at that index learn that they were superseded.
  void applied(const Entry& entry, std::string&& answer);
  // An image that holds everything up to `index` took the entries' place: what became of those waiters' own entries is not known.
  void covered(Index index);
  // Ends, as `end`, every waiter of a term below `term`.
  void end_older(Term term, ProposalWait::End end);
  void end_all(ProposalWait::End end);

  bool empty() const { return waits_.empty(); }
  std::size_t size() const { return waits_.size(); }

 private:
  std::multimap<Index, std::shared_ptr<ProposalWait>> waits_;
};

}  // namespace raft
