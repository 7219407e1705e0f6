#include "sim/call_check.h"

#include <algorithm>

namespace sim {
namespace {

constexpr const char* kInTheLog = "an acknowledged write is in the log";
constexpr const char* kOnce = "a write takes effect once";
constexpr const char* kNoMore = "a write does what it asks and no more";
constexpr const char* kNoEffect = "a refused write has no effect";
constexpr const char* kTrueRefusal = "a refusal is true at some index";
constexpr const char* kStateThatWas = "a read shows a state that was";
constexpr const char* kReadYourWrite = "a read after a write sees it";
constexpr const char* kNotFoundAtLeader = "404 rests on the leader's applied index";

Violation violation(const char* rule, const Call& call, std::string what) {
  return Violation{rule, to_text(call) + " " + std::move(what), call.answered, 0};
}

std::string range(Index low, Index high) { return "indexes " + std::to_string(low) + ".." + std::to_string(high); }

// What a patch answered, against the version that its last entry made.
bool same_but_for_unshown(const Topic& shown, const Topic& stored) { return shown == stored; }

}  // namespace

std::optional<Violation> CallCheck::judge(const Call& call, bool may_answer_early) {
  ++judged_;
  last_acked_ = 0;
  std::optional<Violation> wrong;
  if (call.outcome == Outcome::ok) {
    switch (call.kind) {
      case CallKind::create: wrong = judge_create(call); break;
      case CallKind::patch: wrong = judge_patch(call); break;
      case CallKind::remove: wrong = judge_remove(call, may_answer_early); break;
      case CallKind::read: wrong = judge_read(call); break;
      case CallKind::list: wrong = judge_list(call); break;
    }
  } else if (call.outcome == Outcome::refused) {
    wrong = call.kind == CallKind::read ? judge_read(call) : judge_refusal(call);
  }
  if (wrong || last_acked_ == 0) {
    return wrong;
  }
  acked_ = std::max(acked_, last_acked_);
  if (!may_answer_early && call.same_life && call.applied_after < last_acked_) {
    return violation(kReadYourWrite, call,
                     "was acknowledged for index " + std::to_string(last_acked_) + " by a node that had applied only " +
                         std::to_string(call.applied_after) + " and had no reason to answer early");
  }
  return std::nullopt;
}

std::optional<Violation> CallCheck::acknowledged(const Call& call, Index index) {
  const LogBook::Line& line = book_.line(index);
  if (line.at < call.asked || line.at > call.answered) {
    return violation(kInTheLog, call,
                     "was acknowledged, but its entry at index " + std::to_string(index) + " took effect outside of the call");
  }
  if (!claimed_.insert(index).second) {
    return violation(kOnce, call, "was acknowledged for index " + std::to_string(index) + ", which answered another call");
  }
  last_acked_ = index;
  return std::nullopt;
}

std::optional<Violation> CallCheck::judge_effect(const Call& call, Index index) const {
  const TopicModel& model = book_.model();
  const auto broken = [&](std::string what) {
    return Violation{kNoMore, to_text(call) + " took effect at index " + std::to_string(index) + " and " + std::move(what),
                     book_.line(index).at, 0};
  };
  if (call.kind == CallKind::create) {
    const std::string clash = model.clash_at(call.name, index - 1);
    return clash.empty() ? std::nullopt : std::optional(broken("made a second spelling of " + clash));
  }
  const Topic* before = model.at(call.name, index - 1);
  const Topic* after = model.at(call.name, index);
  if (call.kind != CallKind::patch || before == nullptr || after == nullptr) {
    return std::nullopt;
  }
  Topic expected = *before;
  expected.retention_ms = call.tag();
  expected.partitions = call.partitions != 0 ? call.partitions : expected.partitions;
  expected.max_in_flight_per_partition = call.max_in_flight != 0 ? call.max_in_flight : expected.max_in_flight_per_partition;
  if (*after == expected) {
    return std::nullopt;
  }
  return broken("made " + to_text(*after) + " of " + to_text(*before));
}

std::optional<Violation> CallCheck::judge_create(const Call& call) {
  if (!call.topic) {
    return violation(kInTheLog, call, "was acknowledged without a topic");
  }
  const auto index = book_.model().created_at(call.topic->id);
  const Topic* stored = index ? book_.model().at(call.name, *index) : nullptr;
  if (stored == nullptr || *stored != *call.topic || stored->retention_ms != call.tag()) {
    return violation(kInTheLog, call, "was acknowledged as " + to_text(*call.topic) + ", but no entry created that" +
                                          (stored == nullptr ? "" : "; the log has " + to_text(*stored)));
  }
  return acknowledged(call, *index);
}

std::optional<Violation> CallCheck::judge_patch(const Call& call) {
  if (!call.topic) {
    return violation(kInTheLog, call, "was acknowledged without a topic");
  }
  // Its groups are applied one after another; the first carries the tag, the last one is what the answer shows.
  const auto first = book_.model().effect_of(call.id);
  if (!first) {
    return violation(kInTheLog, call, "was acknowledged, but no entry carries its retention of " + std::to_string(call.tag()));
  }
  const std::vector<Index> moments = book_.model().moments(call.name, *first, book_.last_index());
  for (const Index moment : moments) {
    const Topic* stored = book_.model().at(call.name, moment);
    if (stored != nullptr && same_but_for_unshown(*call.topic, *stored)) {
      return acknowledged(call, moment);
    }
  }
  return violation(kInTheLog, call, "was acknowledged as " + to_text(*call.topic) + ", which the topic never was from index " +
                                        std::to_string(*first) + " on");
}

// Any deletion of the topic within the call's time may be this call's; one that the answering node had not applied only if it had a
// reason to answer early.
std::optional<Violation> CallCheck::judge_remove(const Call& call, bool may_answer_early) {
  std::vector<Index> within;
  for (const Index index : book_.model().deletions(call.name, 0, book_.last_index())) {
    const LogBook::Line& line = book_.line(index);
    if (line.at >= call.asked && line.at <= call.answered) {
      within.push_back(index);
    }
  }
  const bool must_have_applied = !may_answer_early && call.same_life;
  std::vector<Index> candidates = within;
  if (must_have_applied) {
    std::erase_if(candidates, [&](Index index) { return index > call.applied_after; });
  }
  if (deletions_.add(candidates)) {
    last_acked_ = candidates.front();
    return std::nullopt;
  }
  if (deletions_.add(within)) {
    return violation(kReadYourWrite, call,
                     "was acknowledged by a node that had applied only " + std::to_string(call.applied_after) +
                         ", up to which no deletion can be this call's, and had no reason to answer early");
  }
  return violation(kInTheLog, call,
                   "was acknowledged, but between asking and answering no entry deleted the topic that did not answer another call");
}

std::optional<Violation> CallCheck::judge_refused_again(const Call& call) const {
  if (call.outcome != Outcome::refused || (call.kind != CallKind::create && call.kind != CallKind::patch)) {
    return std::nullopt;
  }
  if (const auto index = book_.model().effect_of(call.id)) {
    // A patch of several groups may have done the first before the second was refused: only a create is all or nothing.
    if (call.kind == CallKind::create || (call.partitions == 0 && call.max_in_flight == 0)) {
      return violation(kNoEffect, call, "took effect at index " + std::to_string(*index));
    }
  }
  return std::nullopt;
}

std::optional<Violation> CallCheck::judge_refusal(const Call& call) {
  if (auto wrong = judge_refused_again(call)) {
    return wrong;
  }
  const TopicModel& model = book_.model();
  const Index low = call.acked_before;
  const Index high = book_.last_index();
  std::function<bool(Index)> holds;
  if (call.kind == CallKind::create && call.status == 409) {
    // Another spelling of the name may come and go: every change counts.
    holds = [&](Index index) { return !model.clash_at(call.name, index).empty(); };
    for (const Index index : model.moments(low, high)) {
      if (holds(index)) {
        return std::nullopt;
      }
    }
    return violation(kTrueRefusal, call, "was told that the name exists (" + call.error + "), but it did not at " +
                                             range(low, high));
  }
  if ((call.kind == CallKind::patch || call.kind == CallKind::remove) && call.status == 404) {
    holds = [&](Index index) { return model.at(call.name, index) == nullptr; };
  } else if (call.kind == CallKind::patch && call.status == 400 && call.partitions > 0) {
    holds = [&](Index index) {
      const Topic* topic = model.at(call.name, index);
      return topic != nullptr && topic->partitions >= call.partitions;
    };
  } else if (call.kind == CallKind::patch && call.status == 409) {
    // "changed since it was read", twice: at least two changes of the topic within the call.
    if (model.moments(call.name, low, high).size() > 2) {
      return std::nullopt;
    }
    holds = [](Index) { return false; };
  } else {
    return violation(kTrueRefusal, call, "was refused for a reason that this load never gives: " + call.error);
  }
  const auto moments = model.moments(call.name, low, high);
  if (std::any_of(moments.begin(), moments.end(), holds)) {
    return std::nullopt;
  }
  return violation(kTrueRefusal, call, "was refused (" + call.error + "), which was true at none of " + range(low, high));
}

std::optional<Violation> CallCheck::fits_somewhere(const Call& call, const std::vector<Index>& moments, const char* rule,
                                                   const std::string& shown, const std::function<bool(Index)>& fits) const {
  if (std::any_of(moments.begin(), moments.end(), fits)) {
    return std::nullopt;
  }
  return violation(rule, call, "was shown " + shown + "; the node went from index " + std::to_string(call.applied_before) +
                                   " to " + std::to_string(call.applied_after) + " and was so at none of them");
}

std::optional<Violation> CallCheck::judge_read(const Call& call) {
  if (!call.same_life) {
    return std::nullopt;  // it ended while it answered: what it had applied then is not known
  }
  const TopicModel& model = book_.model();
  if (call.status == 404) {
    if (!call.least_leader_applied) {
      return violation(kNotFoundAtLeader, call, "was answered although nobody led");
    }
    const Index low = std::max(call.applied_before, std::min(*call.least_leader_applied, call.applied_after));
    if (call.applied_after < *call.least_leader_applied) {
      return violation(kNotFoundAtLeader, call,
                       "came from a node at index " + std::to_string(call.applied_after) + "; the leader had applied " +
                           std::to_string(*call.least_leader_applied) + " when the call began");
    }
    return fits_somewhere(call, model.moments(call.name, low, call.applied_after), kNotFoundAtLeader, "no such topic",
                          [&](Index index) { return model.at(call.name, index) == nullptr; });
  }
  if (call.outcome == Outcome::refused || !call.topic) {
    return violation(kStateThatWas, call, "was refused for a reason that this load never gives: " + call.error);
  }
  return fits_somewhere(call, model.moments(call.name, call.applied_before, call.applied_after), kStateThatWas,
                        to_text(*call.topic), [&](Index index) {
                          const Topic* topic = model.at(call.name, index);
                          return topic != nullptr && *topic == *call.topic;
                        });
}

std::optional<Violation> CallCheck::judge_list(const Call& call) {
  if (!call.same_life) {
    return std::nullopt;
  }
  const TopicModel& model = book_.model();
  const size_t limit = static_cast<size_t>(call.limit);
  return fits_somewhere(
      call, model.moments(call.applied_before, call.applied_after), kStateThatWas,
      "a page of " + std::to_string(call.topics.size()) + " topics after \"" + call.name + "\"", [&](Index index) {
        const auto expected = model.list(index, call.name, limit + 1);
        const size_t count = std::min(expected.size(), limit);
        if (call.topics.size() != count || call.next_page.empty() != (expected.size() <= limit)) {
          return false;
        }
        for (size_t i = 0; i < count; ++i) {
          if (*expected[i] != call.topics[i]) {
            return false;
          }
        }
        return call.next_page.empty() || call.next_page == call.topics.back().name;
      });
}

}  // namespace sim
