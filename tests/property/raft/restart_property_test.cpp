// The restart table over facts of every kind: one row each, and what an outcome leaves is whole.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "raft/restart.h"

namespace {

using namespace raft;
using Action = RestartDecision::Action;
using Row = RestartRow;

// Small numbers, so that everything meets everything.
RestartFacts draw_facts() {
  RestartFacts facts;
  facts.build = {"narad", 5, "fsm.db", "raft"};
  facts.has_term_record = *rc::gen::weightedElement<int>({{9, 1}, {1, 0}}) == 1;
  facts.store = StoreId{1, *rc::gen::inRange<std::uint64_t>(1, 3)};
  facts.cluster = ClusterId{*rc::gen::weightedElement<std::uint64_t>({{1, 0}, {4, 1}, {1, 2}}), 0};
  facts.log_base = *rc::gen::weightedOneOf<Index>({{1, rc::gen::just<Index>(0)}, {1, rc::gen::inRange<Index>(0, 7)}});
  facts.log_last = facts.log_base + *rc::gen::inRange<Index>(0, 7);
  if (*rc::gen::arbitrary<bool>()) {
    facts.snapshot = RestartFacts::Snapshot{*rc::gen::inRange<Index>(1, 12), *rc::gen::inRange<Term>(1, 3),
                                            *rc::gen::weightedElement<std::uint32_t>({{9, 5}, {1, 6}})};
    const Index index = facts.snapshot->index;
    if (index >= facts.log_base && index <= facts.log_last && facts.log_last > 0) {
      facts.log_term_at_snapshot = *rc::gen::inRange<Term>(1, 3);
    }
  }
  facts.damaged_snapshot = *rc::gen::weightedOneOf<Index>({{2, rc::gen::just<Index>(0)}, {1, rc::gen::inRange<Index>(1, 16)}});
  facts.is_joining = *rc::gen::arbitrary<bool>();
  StateMachineFacts& held = facts.state_machine;
  held.holds_anything = *rc::gen::weightedElement<int>({{3, 1}, {1, 0}}) == 1;
  if (held.holds_anything) {
    held.index = *rc::gen::inRange<Index>(0, 14);
    held.term = *rc::gen::inRange<Term>(0, 3);
    held.is_trusted = held.index > 0 && *rc::gen::arbitrary<bool>();
    held.newest_type = *rc::gen::weightedElement<std::uint32_t>({{9, 5}, {1, 6}});
    held.store = StoreId{1, *rc::gen::weightedElement<std::uint64_t>({{4, facts.store.low}, {1, 1}, {1, 2}})};
    held.cluster = ClusterId{*rc::gen::weightedElement<std::uint64_t>({{1, 0}, {4, 1}}), 0};
    if (held.index >= facts.log_base && held.index <= facts.log_last && held.index > 0) {
      facts.log_term_at_index = *rc::gen::inRange<Term>(1, 3);
    }
  }
  return facts;
}

bool is_refusal_only(Row row) { return row == Row::newer_release || row == Row::no_term_record; }

RC_GTEST_PROP(RestartTable, EveryStartIsOneRowAndLeavesNoHoleAndDropsNothingThatIsCommitted, ()) {
  const RestartFacts facts = draw_facts();
  const StateMachineFacts& held = facts.state_machine;
  const RestartDecision decision = decide_restart(facts);
  RC_TAG(std::string(to_string(decision.row)));
  RC_ASSERT(decision.row >= Row::newer_release && decision.row <= Row::hole);
  const RestartDecision again = decide_restart(facts);
  RC_ASSERT(again.row == decision.row && again.action == decision.action && again.reason == decision.reason);
  RC_ASSERT((decision.action == Action::refuse) == (!decision.reason.empty() && decision.action != Action::set_aside &&
                                                    decision.action != Action::reset));
  if (is_refusal_only(decision.row)) RC_ASSERT(decision.action == Action::refuse);
  if (decision.action == Action::refuse) return;

  // What the server has after the outcome: a state machine at `index`, a log after `base` up to `last`.
  const Index snapshot = facts.snapshot ? facts.snapshot->index : 0;
  Index base = facts.log_base;
  Index last = facts.log_last;
  if (decision.resets_log) base = last = snapshot;
  Index index = held.is_trusted ? held.index : 0;
  switch (decision.action) {
    case Action::start:
      RC_ASSERT(!held.holds_anything && last == 0 && snapshot == 0);
      index = 0;
      break;
    case Action::keep: RC_ASSERT(held.is_trusted || !held.holds_anything); break;
    case Action::rebase: index = base; break;
    case Action::restore: index = snapshot; break;
    case Action::set_aside: index = 0; break;
    case Action::reset:
      index = base = last = 0;
      break;
    case Action::refuse: break;
  }
  // No hole: replay begins right behind the state machine, and the log reaches it.
  RC_ASSERT(index >= base);
  RC_ASSERT(index <= last);
  // An untrusted index is never gone by.
  if (held.holds_anything && !held.is_trusted) RC_ASSERT(decision.action != Action::keep);
  // Nothing is set aside or reset that is whole, trusted and its own.
  if (facts.is_joining) {
    // Its cluster has what it lacks; it says so by a reset, or by a log that ends early.
    return;
  }
  // What may be committed and known here alone: what the snapshot holds, what a trusted state machine of its own has applied, and every
  // entry of the log, unless the committed snapshot contradicts it or reaches beyond its end.
  RC_ASSERT(decision.action != Action::reset);
  RC_ASSERT(last >= facts.damaged_snapshot);
  RC_ASSERT(last >= snapshot || snapshot < facts.log_base);
  if (held.is_trusted) RC_ASSERT(last >= held.index);
  if (!decision.resets_log) RC_ASSERT(last == facts.log_last);
  if (decision.resets_log) {
    RC_ASSERT(facts.log_last < snapshot || *facts.log_term_at_snapshot != facts.snapshot->term);
  }
  // What lies below the log's base is in the state machine.
  if (decision.action == Action::set_aside) RC_ASSERT(base == 0);
}

}  // namespace
