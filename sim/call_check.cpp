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
      case CallKind::attach:
      case CallKind::detach: wrong = judge_link(call, may_answer_early); break;
      case CallKind::children: wrong = judge_children(call); break;
      case CallKind::put_schema: wrong = judge_put_schema(call, may_answer_early); break;
      case CallKind::schemas: wrong = judge_schemas(call); break;
    }
  } else if (call.outcome == Outcome::refused) {
    const bool is_read = call.kind == CallKind::read || call.kind == CallKind::children || call.kind == CallKind::schemas;
    wrong = is_read ? judge_not_found(call) : judge_refusal(call);
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
  if (same_record(*after, expected)) {
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
  if (stored == nullptr || !same_record(*stored, *call.topic) || stored->retention_ms != call.tag()) {
    return violation(kInTheLog, call, "was acknowledged as " + to_text(*call.topic) + ", but no entry created that" +
                                          (stored == nullptr ? "" : "; the log has " + to_text(*stored)));
  }
  // Its schema and its link may be entries of their own, behind the record's; both are there before the answer.
  const std::vector<Index> moments = book_.model().moments(call.name, *index, book_.last_index());
  const auto is_whole = [&](Index moment) {
    const Topic* topic = book_.model().at(call.name, moment);
    return topic != nullptr && topic->id == call.topic->id && topic->parent == call.parent && topic->fanout_delay_ms == call.delay_ms;
  };
  if (call.topic->parent != call.parent || std::none_of(moments.begin(), moments.end(), is_whole)) {
    return violation(kInTheLog, call, "was acknowledged as " + to_text(*call.topic) + ", which is not linked as it was asked for");
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
    if (stored != nullptr && same_record(*call.topic, *stored)) {
      return acknowledged(call, moment);
    }
  }
  return violation(kInTheLog, call, "was acknowledged as " + to_text(*call.topic) + ", which the topic never was from index " +
                                        std::to_string(*first) + " on");
}

std::optional<Violation> CallCheck::claims_one(const Call& call, const std::vector<Index>& indexes, Claims& claims, bool may_answer_early,
                                               const char* what) {
  std::vector<Index> within;
  for (const Index index : indexes) {
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
  if (claims.add(candidates)) {
    last_acked_ = candidates.front();
    return std::nullopt;
  }
  if (claims.add(within)) {
    return violation(kReadYourWrite, call,
                     "was acknowledged by a node that had applied only " + std::to_string(call.applied_after) +
                         ", up to which no entry can be this call's, and had no reason to answer early");
  }
  return violation(kInTheLog, call,
                   "was acknowledged, but between asking and answering no entry " + std::string(what) + " that did not answer another call");
}

// Any deletion of the topic within the call's time may be this call's; one that the answering node had not applied only if it had a
// reason to answer early.
std::optional<Violation> CallCheck::judge_remove(const Call& call, bool may_answer_early) {
  return claims_one(call, book_.model().deletions(call.name, 0, book_.last_index()), deletions_, may_answer_early, "deleted the topic");
}

std::optional<Violation> CallCheck::judge_link(const Call& call, bool may_answer_early) {
  const bool is_attach = call.kind == CallKind::attach;
  if (is_attach && (!call.topic || std::count(call.topic->children.begin(), call.topic->children.end(), call.child) != 1)) {
    return violation(kInTheLog, call, "was acknowledged with a parent that does not name the child");
  }
  return claims_one(call, book_.model().links(call.name, call.child, is_attach), links_, may_answer_early,
                    is_attach ? "linked the two" : "parted the two");
}

// The schema carries the call's tag. One that is the latest already is no version of its own.
std::optional<Violation> CallCheck::judge_put_schema(const Call& call, bool may_answer_early) {
  const TopicModel& model = book_.model();
  for (const Index moment : model.schema_moments(call.name, 0, book_.last_index())) {
    if (moment > 0 && model.schemas_at(call.name, moment).bound == call.tag()) {
      if (!may_answer_early && call.same_life && call.applied_after < moment) {
        return violation(kReadYourWrite, call, "was acknowledged for index " + std::to_string(moment) + " by a node that had applied only " +
                                                   std::to_string(call.applied_after));
      }
      return acknowledged(call, moment);
    }
  }
  return violation(kInTheLog, call, "was acknowledged, but the topic never had that schema");
}

std::optional<Violation> CallCheck::judge_refused_again(const Call& call) const {
  if (call.outcome != Outcome::refused || (call.kind != CallKind::create && call.kind != CallKind::patch)) {
    return std::nullopt;
  }
  if (const auto index = book_.model().effect_of(call.id)) {
    // A patch of several groups may have done the first before the second was refused. Of a create by several entries the first may have
    // been taken back: only what stays is a create.
    const std::vector<Index> gone = book_.model().deletions(call.name, *index, book_.last_index());
    const bool is_taken_back = call.kind == CallKind::create && (!call.parent.empty() || call.has_schema) && !gone.empty();
    if (!is_taken_back && (call.kind == CallKind::create || (call.partitions == 0 && call.max_in_flight == 0))) {
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
  // Another spelling of the name, a parent or a child may come and go: every change counts.
  const std::vector<Index> all = model.moments(low, high);
  std::vector<Index> moments = all;
  for (const std::string* name : {&call.name, &call.parent, &call.child}) {
    const std::vector<Index> schemas = name->empty() ? std::vector<Index>() : model.schema_moments(*name, low, high);
    moments.insert(moments.end(), schemas.begin(), schemas.end());
  }
  if (std::any_of(moments.begin(), moments.end(), [&](Index index) { return is_true(call, index); })) {
    return std::nullopt;
  }
  if (call.status == 409 && call.error.find("changed since it was read") != std::string::npos) {
    // Twice: at least two changes of what it is about within the call.
    size_t changes = 0;
    for (const std::string* name : {&call.name, &call.parent, &call.child}) {
      changes += name->empty() ? 0 : model.moments(*name, low, high).size() - 1 + model.schema_moments(*name, low, high).size() - 1;
    }
    if (changes >= 2) {
      return std::nullopt;
    }
  }
  return violation(kTrueRefusal, call, "was refused (" + call.error + "), which was true at none of " + range(low, high));
}

// Whether the state after `index` forbids what the call asks for, in the way that its answer says.
bool CallCheck::is_true(const Call& call, Index index) const {
  const TopicModel& model = book_.model();
  const Topic* topic = model.at(call.name, index);
  const Topic* parent = call.kind == CallKind::attach ? topic : call.parent.empty() ? nullptr : model.at(call.parent, index);
  const Topic* child = call.child.empty() ? nullptr : model.at(call.child, index);
  // What all schemas of the cluster take together is not kept here.
  if (call.status == 409 && call.error.find("schema history is full") != std::string::npos) {
    return true;
  }
  const bool has_long_delay = call.delay_ms > 0 && parent != nullptr && parent->retention_ms < call.delay_ms + 3'600'000;
  switch (call.kind) {
    case CallKind::create:
      if (call.status == 404) {
        return !call.parent.empty() && parent == nullptr;
      }
      if (call.status != 409) {
        return false;
      }
      // A new topic has one schema, or none and takes the parent's. A client's is never another one's.
      return !model.clash_at(call.name, index).empty() || has_long_delay || (parent != nullptr && !parent->parent.empty()) ||
             (parent != nullptr && call.has_schema);
    case CallKind::patch:
      if (call.status == 404) {
        return topic == nullptr;
      }
      return call.status == 400 && call.partitions > 0 && topic != nullptr && topic->partitions >= call.partitions;
    case CallKind::remove:
      return call.status == 404 && topic == nullptr;
    case CallKind::detach:
      return call.status == 404 && (topic == nullptr || child == nullptr || child->parent != call.name);
    case CallKind::attach: {
      if (call.status == 404) {
        return topic == nullptr || child == nullptr;
      }
      if (call.status != 409 || topic == nullptr || child == nullptr) {
        return false;
      }
      const Schemas parents = model.schemas_at(call.name, index);
      const Schemas childs = model.schemas_at(call.child, index);
      const bool have_other_schemas = childs.versions > 0 && (childs != parents || childs.versions > 1);
      return !topic->parent.empty() || !child->children.empty() || !child->parent.empty() || has_long_delay || have_other_schemas;
    }
    case CallKind::put_schema:
      if (call.status == 404) {
        return topic == nullptr;
      }
      if (call.status == 409) {
        return topic != nullptr && !topic->parent.empty();
      }
      return call.status == 400 && topic != nullptr && model.schemas_at(call.name, index).bound > call.tag();
    default:
      return false;
  }
}

std::optional<Violation> CallCheck::fits_somewhere(const Call& call, const std::vector<Index>& moments, const char* rule,
                                                   const std::string& shown, const std::function<bool(Index)>& fits) const {
  if (std::any_of(moments.begin(), moments.end(), fits)) {
    return std::nullopt;
  }
  return violation(rule, call, "was shown " + shown + "; the node went from index " + std::to_string(call.applied_before) +
                                   " to " + std::to_string(call.applied_after) + " and was so at none of them");
}

std::optional<Violation> CallCheck::judge_not_found(const Call& call) {
  if (!call.same_life) {
    return std::nullopt;  // it ended while it answered: what it had applied then is not known
  }
  if (call.status != 404) {
    return violation(kStateThatWas, call, "was refused for a reason that this load never gives: " + call.error);
  }
  if (!call.least_leader_applied) {
    return violation(kNotFoundAtLeader, call, "was answered although nobody led");
  }
  const TopicModel& model = book_.model();
  const Index low = std::max(call.applied_before, std::min(*call.least_leader_applied, call.applied_after));
  if (call.applied_after < *call.least_leader_applied) {
    return violation(kNotFoundAtLeader, call,
                     "came from a node at index " + std::to_string(call.applied_after) + "; the leader had applied " +
                         std::to_string(*call.least_leader_applied) + " when the call began");
  }
  return fits_somewhere(call, model.moments(call.name, low, call.applied_after), kNotFoundAtLeader, "no such topic",
                        [&](Index index) { return model.at(call.name, index) == nullptr; });
}

std::optional<Violation> CallCheck::judge_read(const Call& call) {
  if (!call.same_life) {
    return std::nullopt;
  }
  const TopicModel& model = book_.model();
  if (!call.topic) {
    return violation(kStateThatWas, call, "came without a topic");
  }
  auto wrong = fits_somewhere(call, model.moments(call.name, call.applied_before, call.applied_after), kStateThatWas,
                              to_text(*call.topic), [&](Index index) {
                                const Topic* topic = model.at(call.name, index);
                                return topic != nullptr && *topic == *call.topic;
                              });
  // Record and schemas are read one after the other: each is as at some moment.
  return wrong ? wrong : judge_schemas(call);
}

std::optional<Violation> CallCheck::judge_schemas(const Call& call) {
  if (!call.same_life || !call.schemas) {
    return std::nullopt;
  }
  const TopicModel& model = book_.model();
  const std::string shown = std::to_string(call.schemas->versions) + " versions of schemas, the latest of " + std::to_string(call.schemas->bound);
  return fits_somewhere(call, model.schema_moments(call.name, call.applied_before, call.applied_after), kStateThatWas, shown, [&](Index index) {
    const Schemas schemas = model.schemas_at(call.name, index);
    // The read of a topic takes the number first: the version is there, or gone with its topic.
    return call.kind == CallKind::read ? schemas.versions == call.schemas->versions : schemas == *call.schemas;
  });
}

// The parent is as at one moment, and then each child is read: one that is not shown has been no child of it at some moment.
std::optional<Violation> CallCheck::judge_children(const Call& call) {
  if (!call.same_life) {
    return std::nullopt;
  }
  const TopicModel& model = book_.model();
  const auto is_shown = [&](const std::string& name) {
    return std::find_if(call.topics.begin(), call.topics.end(), [&](const Topic& topic) { return topic.name == name; });
  };
  const auto was_no_child = [&](const std::string& name) {
    const auto moments = model.moments(name, call.applied_before, call.applied_after);
    return std::any_of(moments.begin(), moments.end(), [&](Index index) {
      const Topic* topic = model.at(name, index);
      return topic == nullptr || topic->parent != call.name;
    });
  };
  const auto had_delay = [&](const Topic& shown) {
    const auto moments = model.moments(shown.name, call.applied_before, call.applied_after);
    return std::any_of(moments.begin(), moments.end(), [&](Index index) {
      const Topic* topic = model.at(shown.name, index);
      return topic != nullptr && topic->parent == call.name && topic->fanout_delay_ms == shown.fanout_delay_ms;
    });
  };
  return fits_somewhere(call, model.moments(call.name, call.applied_before, call.applied_after), kStateThatWas,
                        std::to_string(call.topics.size()) + " children", [&](Index index) {
                          const Topic* parent = model.at(call.name, index);
                          if (parent == nullptr || parent->id != call.parent_id) {
                            return false;
                          }
                          size_t next = 0;
                          for (const std::string& name : parent->children) {
                            const auto shown = is_shown(name);
                            if (shown == call.topics.end() ? !was_no_child(name)
                                                           : static_cast<size_t>(shown - call.topics.begin()) != next++ || !had_delay(*shown)) {
                              return false;
                            }
                          }
                          return next == call.topics.size();
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
