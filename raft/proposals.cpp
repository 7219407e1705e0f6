#include "raft/proposals.h"

#include <utility>

#include "io/check.h"
#include "io/probe.h"

namespace raft {

namespace {

void end_wait(ProposalWait& wait, ProposalWait::End end) {
  NARAD_CHECK(wait.end == ProposalWait::End::pending, "a proposal ends once");
  wait.end = end;
  wait.done.set();
}

}  // namespace

std::shared_ptr<ProposalWait> ProposalTable::add(Term term, Index index) {
  NARAD_CHECK(term > 0 && index > 0, "a proposal has a term and an index");
  auto wait = std::make_shared<ProposalWait>();
  wait->term = term;
  wait->index = index;
  waits_.emplace_hint(waits_.end(), index, wait);
  return wait;
}

void ProposalTable::remove(const std::shared_ptr<ProposalWait>& wait) {
  const auto [begin, end] = waits_.equal_range(wait->index);
  for (auto at = begin; at != end; ++at) {
    if (at->second == wait) {
      waits_.erase(at);
      return;
    }
  }
}

void ProposalTable::applied(const Entry& entry, std::string&& answer) {
  while (!waits_.empty() && waits_.begin()->first <= entry.index) {
    NARAD_CHECK(waits_.begin()->first == entry.index, "entries are applied one index after the other");
    const std::shared_ptr<ProposalWait> wait = std::move(waits_.begin()->second);
    waits_.erase(waits_.begin());
    if (wait->term == entry.term) {
      wait->answer = std::move(answer);
      end_wait(*wait, ProposalWait::End::applied);
    } else {
      SOMETIMES("raft: another entry was committed in a proposal's place");
      end_wait(*wait, ProposalWait::End::superseded);
    }
  }
}

void ProposalTable::covered(Index index) {
  while (!waits_.empty() && waits_.begin()->first <= index) {
    SOMETIMES("raft: an image covers a proposal in flight");
    end_wait(*waits_.begin()->second, ProposalWait::End::unknown);
    waits_.erase(waits_.begin());
  }
}

void ProposalTable::end_older(Term term, ProposalWait::End end) {
  for (auto at = waits_.begin(); at != waits_.end();) {
    if (at->second->term >= term) {
      ++at;
      continue;
    }
    end_wait(*at->second, end);
    at = waits_.erase(at);
  }
}

void ProposalTable::end_all(ProposalWait::End end) {
  for (auto& [index, wait] : waits_) end_wait(*wait, end);
  waits_.clear();
}

}  // namespace raft
