// Every check of entry types 1 to 3, as a table: what stands in the rows, the entry, the answer, the rows and versions after it.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/metastore/apply.h"
#include "engine/metastore/envelope.h"
#include "engine/metastore/kept_rows.h"
#include "tests/support/topics.h"

namespace {

using namespace engine::metastore;
using tests::make_topic;

constexpr int64_t kHourMs = 3'600'000;
constexpr int64_t kDayMs = 24 * kHourMs;

Topic with(Topic topic, const std::function<void(Topic&)>& change) {
  change(topic);
  return topic;
}

Topic child_of(const std::string& parent, const std::string& name, int64_t delay_ms = 0) {
  return with(make_topic(name), [&](Topic& topic) {
    topic.role = Role::child;
    topic.parent = parent;
    topic.attach_epoch = "e1";
    topic.fanout_delay_ms = delay_ms;
    topic.attach_offsets = {1, 2, 3};
  });
}

Topic stub_of(const std::string& parent, const std::string& name) {
  return with(child_of(parent, name), [](Topic& topic) {
    topic.remote = RemoteLink{};
    topic.remote->name = "far";
    topic.remote->topic = "orders";
    topic.remote->lanes = 1;
    topic.remote->skip[2] = {5, 9};
  });
}

Topic parent_of(const std::string& name, std::vector<std::string> children, int64_t retention_ms = 7 * kDayMs) {
  return with(make_topic(name), [&](Topic& topic) {
    topic.role = Role::parent;
    topic.children = std::move(children);
    topic.retention_ms = retention_ms;
  });
}

Topic standalone(const std::string& name) {
  return with(make_topic(name), [](Topic& topic) { topic.role = Role::standalone; });
}

struct Case {
  std::string name;
  std::vector<Topic> before;  // created by type 1, which takes any record as given
  std::string command;
  Answer answer;
  std::vector<Topic> after;
  std::vector<Bump> bumps;
};

void PrintTo(const Case& row, std::ostream* out) { *out << row.name; }

Bump moved(std::string name) { return {Domain::topics, std::move(name), false}; }

std::vector<Bump> retired(const std::string& name) {
  return {{Domain::topics, name, true}, {Domain::assignments, name, true}, {Domain::schemas, name, true}};
}

std::vector<Bump> join(std::vector<Bump> first, const std::vector<Bump>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<Case> cases() {
  const Topic a = make_topic("a");
  const Topic changed_a = with(a, [](Topic& topic) {
    topic.retention_ms = 0;
    topic.partitions = 5;
    topic.owner = "ann";
  });
  const Topic claims_links = with(changed_a, [](Topic& topic) {
    topic.id = "ffffffffffffffff";
    topic.role = Role::parent;
    topic.children = {"x"};
    topic.parent = "p";
    topic.attach_epoch = "e9";
    topic.fanout_delay_ms = 1;
    topic.attach_offsets = {7};
    topic.remote = RemoteLink{};
  });
  auto shorter = [](Topic topic, int64_t retention_ms) {
    topic.retention_ms = retention_ms;
    return topic;
  };
  const Topic p = parent_of("p", {"c"});
  const Topic c = child_of("p", "c", 2 * kHourMs);
  const Topic far = parent_of("p", {"s"});
  const Topic s = stub_of("p", "s");
  const Topic low = parent_of("p", {"s"}, 2 * kHourMs);

  return {
      // type 1
      {"CreatePutsTheRecordAsGiven", {}, encode_create_topic(claims_links), {}, {claims_links}, {moved("a")}},
      {"CreateOfAnExistingNameIsRefused", {a}, encode_create_topic(changed_a), {Code::already_exists, "topic a"}, {a}, {}},
      {"CreateDoesNotMindLetterCase", {a}, encode_create_topic(make_topic("A")), {}, {make_topic("A"), a}, {moved("A")}},
      // type 2
      {"UpdateOfAMissingTopicIsRefused", {}, encode_update_topic(a), {Code::not_found, "topic a"}, {}, {}},
      {"UpdateOverwritesTheConfiguration", {a}, encode_update_topic(changed_a), {}, {changed_a}, {moved("a")}},
      {"UpdateKeepsIdentityAndLinks", {a}, encode_update_topic(claims_links), {}, {changed_a}, {moved("a")}},
      {"UpdateMayShrinkPartitions", {changed_a}, encode_update_topic(a), {}, {a}, {moved("a")}},
      {"UpdateOfAStubIsRefused", {far, s}, encode_update_topic(shorter(s, 1)), {Code::remote_stub_immutable, "topic s"}, {far, s}, {}},
      {"UpdateOfAStubWithItselfIsTaken", {far, s}, encode_update_topic(s), {}, {far, s}, {moved("s")}},
      {"UpdateKeepsWhatADelayedChildNeeds", {p, c}, encode_update_topic(shorter(p, 3 * kHourMs)), {}, {c, shorter(p, 3 * kHourMs)},
       {moved("p")}},
      {"UpdateBelowWhatADelayedChildNeedsIsRefused", {p, c}, encode_update_topic(shorter(p, 3 * kHourMs - 1)),
       {Code::fanout_delay_too_long, "child c"}, {c, p}, {}},
      {"UpdateToForEverFitsEveryDelay", {p, c}, encode_update_topic(shorter(p, 0)), {}, {c, shorter(p, 0)}, {moved("p")}},
      {"UpdateSkipsAMissingChild", {p}, encode_update_topic(shorter(p, kHourMs)), {}, {shorter(p, kHourMs)}, {moved("p")}},
      {"UpdateMayShrinkToADayWithARemoteChild", {far, s}, encode_update_topic(shorter(far, kDayMs)), {}, {shorter(far, kDayMs), s},
       {moved("p")}},
      {"UpdateBelowADayWithARemoteChildIsRefused", {far, s}, encode_update_topic(shorter(far, kDayMs - 1)),
       {Code::remote_retention_floor, "topic p"}, {far, s}, {}},
      {"UpdateFromForEverBelowADayIsAShrink", {shorter(far, 0), s}, encode_update_topic(shorter(far, kDayMs - 1)),
       {Code::remote_retention_floor, "topic p"}, {shorter(far, 0), s}, {}},
      {"UpdateOfALowRetentionMayGrow", {low, s}, encode_update_topic(shorter(low, 3 * kHourMs)), {}, {shorter(low, 3 * kHourMs), s},
       {moved("p")}},
      {"UpdateOfALowRetentionMayNotShrink", {low, s}, encode_update_topic(shorter(low, kHourMs)),
       {Code::remote_retention_floor, "topic p"}, {low, s}, {}},
      {"UpdateSurvivesAnAbsurdDelay", {p, child_of("p", "c", INT64_MAX)}, encode_update_topic(shorter(p, INT64_MAX)),
       {Code::fanout_delay_too_long, "child c"}, {child_of("p", "c", INT64_MAX), p}, {}},
      // type 3
      {"DeleteOfAMissingTopicIsRefused", {}, encode_delete_topic("a"), {Code::not_found, "topic a"}, {}, {}},
      {"DeleteRemovesTheRecord", {a, make_topic("b")}, encode_delete_topic("a"), {}, {make_topic("b")}, retired("a")},
      {"DeleteTellsLetterCaseApart", {a, make_topic("A")}, encode_delete_topic("A"), {}, {a}, retired("A")},
      {"DeleteOfAParentFreesItsChildren", {p, c}, encode_delete_topic("p"), {}, {standalone("c")}, join({moved("c")}, retired("p"))},
      {"DeleteOfAParentTakesItsStubsAlong", {far, s}, encode_delete_topic("p"), {}, {}, join(retired("s"), retired("p"))},
      {"DeleteOfAParentSkipsMissingChildren", {p}, encode_delete_topic("p"), {}, {}, retired("p")},
      {"DeleteOfAParentSparesChildrenOfOthers", {p, child_of("q", "c")}, encode_delete_topic("p"), {}, {child_of("q", "c")},
       retired("p")},
      {"DeleteOfAChildLeavesTheParentsList", {parent_of("p", {"b", "c"}), c}, encode_delete_topic("c"), {}, {parent_of("p", {"b"})},
       join({moved("p")}, retired("c"))},
      {"DeleteOfTheLastChildEndsTheRole", {p, c}, encode_delete_topic("c"), {}, {standalone("p")}, join({moved("p")}, retired("c"))},
      {"DeleteOfAChildSkipsAMissingParent", {c}, encode_delete_topic("c"), {}, {}, retired("c")},
      {"DeleteOfATopicLinkedToItselfWorks", {with(p, [](Topic& topic) { topic.children = {"p"}; topic.parent = "p"; })},
       encode_delete_topic("p"), {}, {}, retired("p")},
  };
}

struct ApplyTopics : testing::TestWithParam<Case> {
  MemoryRows rows;
  FsmState state;
  raft::Index last = 0;

  Evaluation apply(const std::string& command) {
    Evaluation run = evaluate(rows, state, {tests::make_entry(++last, command, 3)}, kNewestEntryType);
    rows.take(run.rows);
    state = run.state;
    return run;
  }

  std::vector<Topic> topics() const {
    std::vector<Topic> found;
    for (const auto& [key, value] : rows.rows()) {
      if (key.starts_with("topics/")) {
        found.push_back(*decode_topic(value));
      }
    }
    return found;
  }

  // Every topic, and nothing else, stands under its folded name.
  void expect_names_on_record() const {
    std::map<std::string, std::vector<std::string>> expected;
    for (const Topic& topic : topics()) {
      expected[row_key(Bucket::topic_names, fold_name(topic.name))].push_back(topic.name);
    }
    std::map<std::string, std::vector<std::string>> found;
    for (const auto& [key, value] : rows.rows()) {
      if (key.starts_with("topic_names/")) {
        found[key] = decode_names(value);
      }
    }
    EXPECT_EQ(found, expected);
  }
};

TEST_P(ApplyTopics, AnswersAndChangesAsTheTableSays) {
  const Case& row = GetParam();
  for (const Topic& topic : row.before) {
    ASSERT_EQ(apply(encode_create_topic(topic)).answers, std::vector<std::string>{encode_answer({})});
  }
  const auto before = topics();
  Evaluation run = apply(row.command);
  ASSERT_EQ(run.answers.size(), 1u);
  EXPECT_EQ(decode_answer(run.answers[0]), row.answer) << decode_answer(run.answers[0])->text();
  EXPECT_EQ(topics(), row.after);
  expect_names_on_record();
  EXPECT_EQ(run.bumps, row.answer.ok() ? std::vector<std::vector<Bump>>{row.bumps} : std::vector<std::vector<Bump>>());
  EXPECT_EQ(run.rows.has_changes(), before != row.after) << "what is put as it was is no change";
  EXPECT_EQ(run.state.applied_index, last) << "a refused entry is counted";
  EXPECT_EQ(run.state.applied_term, 3u);
}

INSTANTIATE_TEST_SUITE_P(Types1To3, ApplyTopics, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST(Evaluate, SkipsWhatTheStateHolds) {
  MemoryRows rows;
  FsmState state{.applied_index = 5, .applied_term = 2, .newest_type = 3, .digest = 0};
  Evaluation run = evaluate(rows, state, {tests::create_entry(4, "a"), tests::create_entry(5, "b")}, kNewestEntryType);
  EXPECT_EQ(run.answers, (std::vector<std::string>{"", ""}));
  EXPECT_EQ(run.state, state);
  EXPECT_FALSE(run.rows.has_changes());
}

TEST(Evaluate, EntriesWithoutACommandMoveNothing) {
  MemoryRows rows;
  raft::Entry noop{1, 1, raft::EntryType::noop, nullptr};
  Evaluation run = evaluate(rows, {}, {noop, tests::create_entry(2, "a")}, kNewestEntryType);
  EXPECT_EQ(run.answers[0], "");
  EXPECT_EQ(run.state.applied_index, 2u);
}

TEST(Evaluate, EndsBeforeAnUnknownTypeAndKeepsWhatCameBefore) {
  MemoryRows rows;
  Evaluation run = evaluate(rows, {}, {tests::create_entry(1, "a"), tests::delete_entry(2, "a"), tests::create_entry(3, "b")}, 2);
  ASSERT_TRUE(run.unknown.has_value());
  EXPECT_EQ(run.unknown->index, 2u);
  EXPECT_EQ(run.unknown->type, 3u);
  EXPECT_EQ(run.answers.size(), 1u);
  EXPECT_EQ(run.state.applied_index, 1u);
  EXPECT_EQ(run.state.newest_type, 1u);
}

TEST(Evaluate, TheNewestTypeCountsRefusedEntries) {
  MemoryRows rows;
  Evaluation run = evaluate(rows, {}, {tests::delete_entry(1, "a"), tests::create_entry(2, "a")}, kNewestEntryType);
  EXPECT_EQ(run.state.newest_type, 3u);
}

}  // namespace
