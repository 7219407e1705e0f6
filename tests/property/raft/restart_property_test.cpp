// The restart table over facts of every kind: one row each, and what an outcome leaves is whole.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

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

// ---- The table, as it was asked for ------------------------------------------------------------------------------------------
// Written from the specification's table and from nothing else: one line a row, in its order, without a word in common with the code.

struct Told {
  explicit Told(const RestartFacts& f)
      : held(f.state_machine),
        none(f.log_last == 0 && !f.snapshot),
        snapshot(f.snapshot ? f.snapshot->index : 0),
        // A log that has another term at the snapshot's index counts as one that ends there: what it holds behind it was never committed.
        log_last(f.snapshot && f.log_term_at_snapshot && *f.log_term_at_snapshot != f.snapshot->term && snapshot > f.log_base ? snapshot
                                                                                                                          : f.log_last),
        // Below a log's begin everything is committed in the term that is on record there: a snapshot of another term is no part of it.
        meets(f.snapshot && snapshot >= f.log_base &&
              !(snapshot == f.log_base && f.log_term_at_snapshot && *f.log_term_at_snapshot != f.snapshot->term)),
        ends(std::max(log_last, snapshot)),
        begins(meets && log_last <= snapshot && (log_last < snapshot || log_last != f.log_last) ? snapshot : f.log_base),
        there(snapshot != 0 && held.index == snapshot ? std::optional<Term>(f.snapshot->term) : f.log_term_at_index) {}

  const StateMachineFacts& held;
  bool none;
  Index snapshot;
  Index log_last;
  bool meets;
  Index ends;
  Index begins;
  std::optional<Term> there;  // the term that raft's state gives the state machine's index
};

struct Line {
  Row row;
  bool (*matches)(const RestartFacts& f, const Told& t);
  Action (*joining)(const RestartFacts& f, const Told& t);
  Action other;
};

template <Action action>
Action always(const RestartFacts&, const Told&) {
  return action;
}

const Line kTable[] = {
    {Row::newer_release,
     [](const RestartFacts& f, const Told& t) {
       return t.held.newest_type > f.build.newest_type || (f.snapshot && f.snapshot->newest_type > f.build.newest_type);
     },
     always<Action::refuse>, Action::refuse},
    {Row::no_term_record, [](const RestartFacts& f, const Told& t) { return !t.none && !f.has_term_record; }, always<Action::refuse>,
     Action::refuse},
    // Acknowledged once, and reached by nothing that is left: anything else.
    {Row::hole, [](const RestartFacts& f, const Told& t) { return f.damaged_snapshot > t.ends; }, always<Action::reset>, Action::refuse},
    {Row::empty, [](const RestartFacts&, const Told& t) { return !t.held.holds_anything && t.none; }, always<Action::start>, Action::start},
    {Row::no_raft_state, [](const RestartFacts&, const Told& t) { return t.none; }, always<Action::set_aside>, Action::refuse},
    {Row::foreign,
     [](const RestartFacts& f, const Told& t) {
       return t.held.holds_anything &&
              ((t.held.store.is_known() && f.store.is_known() && t.held.store != f.store) ||
               (t.held.cluster.is_known() && f.cluster.is_known() && t.held.cluster != f.cluster) ||
               (t.held.is_trusted && t.held.term != 0 && t.there && *t.there != t.held.term));
     },
     always<Action::reset>, Action::refuse},
    {Row::ahead, [](const RestartFacts&, const Told& t) { return t.held.is_trusted && t.held.index > t.ends; },
     [](const RestartFacts& f, const Told& t) {
       return t.meets ? Action::restore : f.log_base == 0 ? Action::set_aside : Action::reset;
     },
     Action::refuse},
    {Row::held,
     [](const RestartFacts&, const Told& t) { return t.held.is_trusted && t.held.index >= t.snapshot && t.held.index >= t.begins; },
     always<Action::keep>, Action::keep},
    {Row::behind, [](const RestartFacts&, const Told& t) { return t.meets; }, always<Action::restore>, Action::restore},
    {Row::replayed,
     [](const RestartFacts& f, const Told& t) { return !t.held.holds_anything && !f.snapshot && f.log_base == 0; },
     always<Action::keep>, Action::keep},
    {Row::rebuilt, [](const RestartFacts& f, const Told& t) { return !t.held.is_trusted && !f.snapshot && f.log_base == 0; },
     always<Action::set_aside>, Action::set_aside},
    {Row::replayed_onto,
     [](const RestartFacts& f, const Told& t) {
       return t.held.holds_anything && !t.held.is_trusted && !f.snapshot && f.damaged_snapshot == 0;
     },
     always<Action::rebase>, Action::rebase},
    {Row::hole, [](const RestartFacts&, const Told&) { return true; }, always<Action::reset>, Action::refuse},
};

RC_GTEST_PROP(RestartTable, IsTheOneThatWasAskedForJoiningOrNot, ()) {
  RestartFacts facts = draw_facts();
  const Told told(facts);
  const Line* line = kTable;
  while (!line->matches(facts, told)) ++line;
  for (const bool is_joining : {false, true}) {
    facts.is_joining = is_joining;
    const RestartDecision decision = decide_restart(facts);
    RC_ASSERT(std::string(to_string(decision.row)) == to_string(line->row));
    RC_ASSERT(static_cast<int>(decision.action) == static_cast<int>(is_joining ? line->joining(facts, told) : line->other));
  }
  RC_TAG(std::string(to_string(line->row)));
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
