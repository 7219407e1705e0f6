// Every check of the entry types of schemas and fan-out links (4, 13, 14, 23 to 28), as a table.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/metastore/apply_fanout.h"
#include "engine/metastore/apply_schemas.h"
#include "engine/metastore/apply_topics.h"
#include "tests/support/apply_table.h"

namespace {

using namespace engine::metastore;
using tests::assignments_moved;
using tests::Case;
using tests::Change;
using tests::gone;
using tests::is;
using tests::join;
using tests::make_topic;
using tests::moved;
using tests::retired;
using tests::schema_is;
using tests::schemas_moved;
using tests::with;

constexpr int64_t kHourMs = 3'600'000;
constexpr const char* kId = "00112233445566aa";  // of make_topic

Topic standalone(const std::string& name) {
  return with<Topic>(make_topic(name), [](Topic& topic) { topic.role = Role::standalone; });
}

Topic parent_of(const std::string& name, std::vector<std::string> children) {
  return with<Topic>(make_topic(name), [&](Topic& topic) {
    topic.role = Role::parent;
    topic.children = std::move(children);
  });
}

Topic child_of(const std::string& parent, const std::string& name) {
  return with<Topic>(make_topic(name), [&](Topic& topic) {
    topic.role = Role::child;
    topic.parent = parent;
    topic.attach_epoch = "e1";
    topic.fanout_delay_ms = 5000;
    topic.attach_offsets = {1, 2, 3};
  });
}

Topic stub_of(const std::string& parent, const std::string& name) {
  return with<Topic>(child_of(parent, name), [](Topic& topic) {
    topic.remote = RemoteLink{};
    topic.remote->name = "far";
    topic.remote->topic = "orders";
  });
}

Topic with_retention(Topic topic, int64_t retention_ms) {
  topic.retention_ms = retention_ms;
  return topic;
}

const AttachChild kLink{"p", "c", "e1", 5000, {1, 2, 3}};
const CreateTopic kP{make_topic("p")};
const CreateTopic kC{make_topic("c")};

std::vector<std::string> many_children(size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    names.push_back("k" + std::to_string(i));
  }
  return names;
}

// ---- Schemas: 4 and 26 -----------------------------------------------------------------------------------------------------

std::vector<Case> schema_cases(bool is_checked) {
  auto put = [&](std::string topic, int64_t version, std::string text) -> Command {
    if (is_checked) {
      return PutSchemaIf{std::move(topic), version, std::move(text), kId};
    }
    return PutSchema{std::move(topic), version, std::move(text)};
  };
  const Command first = put("p", 1, "true");
  const std::vector<Command> linked{CreateTopic{parent_of("p", {"c", "s", "gone", "c"})}, CreateTopic{child_of("p", "c")},
                                    CreateTopic{stub_of("p", "s")}};
  std::vector<Command> full{kP};
  for (int64_t version = 1; version <= kSchemaVersionsMax; ++version) {
    full.push_back(put("p", version, "1"));
  }
  return {
      {"OfAMissingTopicIsRefused", {}, first, {Code::not_found, "topic p"}, {}, {}},
      {"OfAChildIsRefused", {CreateTopic{child_of("p", "c")}}, put("c", 1, "true"), {Code::fanout_schema_managed, "topic c"}, {}, {}},
      {"FirstIsPut", {kP}, first, {}, {schema_is("p", 1, "true")}, {schemas_moved("p")}},
      {"NextIsPut", {kP, first}, put("p", 2, std::string("\0x", 2)), {}, {schema_is("p", 2, std::string("\0x", 2))},
       {schemas_moved("p")}},
      {"EmptyIsPut", {kP}, put("p", 1, ""), {}, {schema_is("p", 1, "")}, {schemas_moved("p")}},
      {"OfAnExistingVersionIsRefused", {kP, first}, first, {Code::already_exists, "schema version 1 of topic p"}, {}, {}},
      {"ZeroIsRefused", {kP}, put("p", 0, "x"), {Code::already_exists, "schema version 0 of topic p"}, {}, {}},
      {"ThatLeavesAGapIsRefused", {kP, first}, put("p", 3, "x"),
       {Code::invalid_argument, "schema version 3 of topic p does not follow version 1"}, {}, {}},
      {"BehindTheLastIsRefused", full, put("p", kSchemaVersionsMax + 1, "x"),
       {Code::schema_history_full, "topic p has 1000 versions"}, {}, {}},
      {"GoesToLocalChildrenOnceAndToMissingOnesButToNoStub", linked, first, {},
       {schema_is("p", 1, "true"), schema_is("c", 1, "true"), schema_is("gone", 1, "true")},
       {schemas_moved("p"), schemas_moved("c"), schemas_moved("gone")}},
      // A child with other versions than its parent's: only a record as given comes to that.
      {"ThatAChildHasIsRefused", {kC, put("c", 1, "x"), CreateTopic{parent_of("p", {"c"})}}, first,
       {Code::already_exists, "schema version 1 of topic c"}, {}, {}},
      // So does what a missing child was given before it came to be.
      {"ThatLeavesAChildAGapIsRefused", {CreateTopic{parent_of("r", {"q"})}, put("r", 1, "x"), CreateTopic{parent_of("q", {"d"})}},
       put("q", 2, "x"), {Code::invalid_argument, "schema version 2 of topic d does not follow version 0"}, {}, {}},
  };
}

std::vector<Case> checked_schema_cases() {
  const std::string megabyte(1u << 20, ' ');
  std::vector<Command> nearly_full{kP};
  for (int64_t version = 1; version <= 4; ++version) {
    nearly_full.push_back(PutSchema{"p", version, version == 4 ? megabyte.substr(1) : megabyte});
  }
  return {
      {"OfAnotherIncarnationIsRefused", {kP}, PutSchemaIf{"p", 7, "x", "other"}, {Code::topic_changed, "topic p"}, {}, {}},
      {"UpToTheTopicsBudgetIsPut", nearly_full, PutSchemaIf{"p", 5, "1", kId}, {}, {schema_is("p", 5, "1")}, {schemas_moved("p")}},
      {"OverTheTopicsBudgetIsRefused", nearly_full, PutSchemaIf{"p", 5, "12", kId},
       {Code::schema_history_full, "the schemas of topic p would take 4194305 bytes"}, {}, {}},
      {"OverTheBudgetWithoutCheckIsPut", nearly_full, PutSchema{"p", 5, "12"}, {}, {schema_is("p", 5, "12")}, {schemas_moved("p")}},
      {"VersionsComeBeforeBudgets", nearly_full, PutSchemaIf{"p", 4, std::string(99, 'x'), kId},
       {Code::already_exists, "schema version 4 of topic p"}, {}, {}},
  };
}

// ---- Attaching: 13, 27 and 23 ----------------------------------------------------------------------------------------------

// What 13 and 27 refuse alike.
std::vector<Case> attach_cases(bool is_checked) {
  auto attach = [&](AttachChild link) -> Command {
    if (is_checked) {
      return AttachChildIf{std::move(link), kId, kId};
    }
    return link;
  };
  auto delayed = [](int64_t delay_ms) {
    return with<AttachChild>(kLink, [&](AttachChild& link) { link.delay_ms = delay_ms; });
  };
  auto delayed_child = [](int64_t delay_ms) {
    return with<Topic>(child_of("p", "c"), [&](Topic& topic) { topic.fanout_delay_ms = delay_ms; });
  };
  const Topic p = parent_of("p", {"c"});
  const Topic full = parent_of("p", many_children(kChildrenMax));
  const Topic nearly_full = parent_of("p", many_children(kChildrenMax - 1));
  const Topic short_p = with_retention(make_topic("p"), 2 * kHourMs);
  const Answer conflict_self{Code::fanout_role_conflict, "topic p cannot be its own child"};
  return {
      {"ToItselfIsRefused", {kP}, attach({"p", "p", "e1", 0, {}}), conflict_self, {}, {}},
      {"OfAMissingParentIsRefused", {kC}, attach(kLink), {Code::not_found, "topic p"}, {}, {}},
      {"OfAMissingChildIsRefused", {kP}, attach(kLink), {Code::not_found, "topic c"}, {}, {}},
      {"ToAChildIsRefused", {CreateTopic{child_of("c", "p")}, CreateTopic{parent_of("c", {"p"})}}, attach(kLink),
       {Code::fanout_role_conflict, "topic p is a child"}, {}, {}},
      {"OfAParentIsRefused", {kP, CreateTopic{parent_of("c", {"x"})}}, attach(kLink), {Code::fanout_role_conflict, "topic c is a parent"},
       {}, {}},
      {"AgainIsRefused", {kP, kC, kLink}, attach(kLink), {Code::already_exists, "topic c is a child of p"}, {}, {}},
      {"OfAnothersChildIsRefused", {CreateTopic{full}, CreateTopic{child_of("q", "c")}}, attach(kLink),
       {Code::fanout_role_conflict, "topic c is a child of q"}, {}, {}},
      {"ToAFullParentIsRefused", {CreateTopic{full}, kC}, attach(delayed(-1)), {Code::fanout_child_limit, "topic p"}, {}, {}},
      {"ToANearlyFullParentIsTaken", {CreateTopic{nearly_full}, kC}, attach(kLink), {},
       {is(with<Topic>(nearly_full, [](Topic& topic) { topic.children.push_back("c"); })), is(child_of("p", "c"))},
       {moved("p"), moved("c")}},
      {"WithADelayBelowZeroIsRefused", {kP, kC}, attach(delayed(-1)), {Code::fanout_role_conflict, "a delay below 0"}, {}, {}},
      {"WithADelayOverAYearIsRefused", {CreateTopic{with_retention(make_topic("p"), 0)}, kC}, attach(delayed(kAttachDelayMaxMs + 1)),
       {Code::fanout_delay_too_long, "more than a year"}, {}, {}},
      {"WithADelayOfAYearIsTaken", {CreateTopic{with_retention(make_topic("p"), 0)}, kC}, attach(delayed(kAttachDelayMaxMs)), {},
       {is(with_retention(p, 0)), is(delayed_child(kAttachDelayMaxMs))}, {moved("p"), moved("c")}},
      {"WithADelayThatRetentionCannotHoldIsRefused", {CreateTopic{short_p}, kC}, attach(delayed(kHourMs + 1)),
       {Code::fanout_delay_too_long, "topic p"}, {}, {}},
      {"WithTheLongestDelayThatRetentionHoldsIsTaken", {CreateTopic{short_p}, kC}, attach(delayed(kHourMs)), {},
       {is(with_retention(p, 2 * kHourMs)), is(delayed_child(kHourMs))}, {moved("p"), moved("c")}},
      {"LinksBothRecords", {kP, kC}, attach(kLink), {}, {is(p), is(child_of("p", "c"))}, {moved("p"), moved("c")}},
      {"AppendsToTheChildrensList", {CreateTopic{parent_of("p", {"z"})}, CreateTopic{standalone("c")}}, attach(kLink), {},
       {is(parent_of("p", {"z", "c"})), is(child_of("p", "c"))}, {moved("p"), moved("c")}},
      {"AdoptsTheParentsSchemas", {kP, kC, PutSchema{"p", 1, "1"}, PutSchema{"p", 2, "2"}}, attach(kLink), {},
       {is(p), is(child_of("p", "c")), schema_is("c", 1, "1"), schema_is("c", 2, "2")}, {moved("p"), moved("c"), schemas_moved("c")}},
      {"OfAChildWithSchemasToAParentWithoutIsRefused", {kP, kC, PutSchema{"c", 1, "1"}}, attach(kLink),
       {Code::fanout_schema_mismatch, "topic p has 0 versions, topic c has 1"}, {}, {}},
      {"WithAnotherNumberOfVersionsIsRefused", {kP, kC, PutSchema{"c", 1, "1"}, PutSchema{"p", 1, "1"}, PutSchema{"p", 2, "1"}},
       attach(kLink), {Code::fanout_schema_mismatch, "topic p has 2 versions, topic c has 1"}, {}, {}},
      {"WithEqualSchemasIsTaken", {kP, kC, PutSchema{"c", 1, "no json"}, PutSchema{"p", 1, "no json"}}, attach(kLink), {},
       {is(p), is(child_of("p", "c"))}, {moved("p"), moved("c")}},
      {"WithAnotherSchemaIsRefused", {kP, kC, PutSchema{"c", 1, "1"}, PutSchema{"p", 1, "2"}}, attach(kLink),
       {Code::fanout_schema_mismatch, "version 1 of topic c"}, {}, {}},
  };
}

std::vector<Case> attach_by_value_cases() {
  const std::vector<Command> alike{kP, kC, PutSchema{"p", 1, R"({"a":1.0,"b":[true]})"}, PutSchema{"c", 1, R"({ "b": [true], "a": 1 })"}};
  const AttachChildIf checked{kLink, kId, kId};
  const std::vector<Change> linked{is(parent_of("p", {"c"})), is(child_of("p", "c"))};
  const std::vector<Command> over_budget{kP, kC, PutSchema{"p", 1, std::string(kTopicSchemaBytesMax + 1, ' ')}};
  return {
      {"BytesAreComparedByType13", alike, kLink, {Code::fanout_schema_mismatch, "version 1 of topic c"}, {}, {}},
      {"ValuesAreComparedByType27", alike, checked, {}, linked, {moved("p"), moved("c")}},
      {"AdoptionOverTheBudgetIsTakenByType13", over_budget, kLink, {},
       join(linked, {schema_is("c", 1, std::string(kTopicSchemaBytesMax + 1, ' '))}), {moved("p"), moved("c"), schemas_moved("c")}},
      {"AdoptionOverTheBudgetIsRefusedByType27", over_budget, checked,
       {Code::schema_history_full, "the schemas of topic c would take 4194305 bytes"}, {}, {}},
      {"AnotherParentIsRefused", {kP}, AttachChildIf{kLink, "other", "other"}, {Code::topic_changed, "topic p"}, {}, {}},
      {"AnotherChildIsRefused", {kP, kC}, AttachChildIf{with<AttachChild>(kLink, [](AttachChild& link) { link.delay_ms = -1; }), kId, "other"},
       {Code::topic_changed, "topic c"}, {}, {}},
  };
}

std::vector<Case> detach_cases(bool is_checked) {
  auto detach = [&](std::string parent, std::string child) -> Command {
    if (is_checked) {
      return DetachChildIf{std::move(parent), std::move(child), kId, kId};
    }
    return DetachChild{std::move(parent), std::move(child)};
  };
  const std::vector<Command> linked{kP, kC, kLink};
  const std::vector<Command> two{CreateTopic{parent_of("p", {"b", "c"})}, CreateTopic{child_of("p", "c")}};
  const std::vector<Command> far{CreateTopic{parent_of("p", {"s"})}, CreateTopic{stub_of("p", "s")}, AssignPartition{{"s", 0, "n1", ""}}};
  std::vector<Case> cases = {
      {"OfAMissingParentIsRefused", {kC}, detach("p", "c"), {Code::not_found, "topic p"}, {}, {}},
      {"OfAMissingChildIsRefused", {kP}, detach("p", "c"), {Code::not_found, "topic c"}, {}, {}},
      {"OfAStandaloneTopicIsRefused", {kP, kC}, detach("p", "c"), {Code::not_found, "topic c is no child of p"}, {}, {}},
      {"OfAnothersChildIsRefused", {kP, CreateTopic{child_of("q", "c")}}, detach("p", "c"), {Code::not_found, "topic c is no child of p"},
       {}, {}},
      {"OfATopicLinkedToItselfIsRefused",
       {CreateTopic{with<Topic>(child_of("c", "c"), [](Topic& topic) { topic.children = {"c"}; })}}, detach("c", "c"),
       {Code::not_found, "topic c is no child of c"}, {}, {}},
      {"OfTheLastChildEndsTheRole", linked, detach("p", "c"), {}, {is(standalone("p")), is(standalone("c"))}, {moved("p"), moved("c")}},
      {"OfOneChildKeepsTheRole", two, detach("p", "c"), {}, {is(parent_of("p", {"b"})), is(standalone("c"))}, {moved("p"), moved("c")}},
      {"KeepsTheSchemas", {kP, kC, PutSchema{"p", 1, "1"}, kLink}, detach("p", "c"), {}, {is(standalone("p")), is(standalone("c"))},
       {moved("p"), moved("c")}},
      {"OfAStubDeletesItWithItsRows", far, detach("p", "s"), {},
       {is(standalone("p")), gone(Bucket::topics, "s"), gone(Bucket::assignments, "s:0")}, join({moved("p")}, retired("s"))},
  };
  if (is_checked) {
    cases.push_back({"OfAnotherParentIsRefused", {kP}, DetachChildIf{"p", "c", "other", kId}, {Code::topic_changed, "topic p"}, {}, {}});
    cases.push_back(
        {"OfAnotherChildIsRefused", linked, DetachChildIf{"p", "c", kId, "other"}, {Code::topic_changed, "topic c"}, {}, {}});
  }
  return cases;
}

// ---- 23, 24, 25 ------------------------------------------------------------------------------------------------------------

std::vector<Case> create_cases() {
  const Topic c = make_topic("c");
  const ParentLink link{"p", kId, "e1", 5000, {1, 2, 3}};
  const CreateTopicLinked plain{c, "", std::nullopt};
  const CreateTopicLinked with_schema{c, "true", std::nullopt};
  const CreateTopicLinked child{c, "", link};
  const CreateTopicLinked child_with_schema{c, R"({"a":1})", link};
  const std::vector<Change> linked{is(parent_of("p", {"c"})), is(child_of("p", "c"))};
  // A parent's missing child gets copies; assignments need no topic.
  const std::vector<Command> leftovers{CreateTopic{parent_of("q", {"c"})}, PutSchema{"q", 1, "a"}, PutSchema{"q", 2, "b"},
                                       AssignPartition{{"c", 0, "n1", ""}}, AssignPartition{{"c", 4, "n1", ""}}};
  const std::vector<Change> dropped{gone(Bucket::schemas, "c:1"), gone(Bucket::schemas, "c:2"), gone(Bucket::assignments, "c:0"),
                                    gone(Bucket::assignments, "c:4")};
  const Topic as_parent = parent_of("c", {"x"});
  return {
      {"WithoutANameIsRefused", {}, CreateTopicLinked{make_topic(""), "", link}, {Code::invalid_argument, "a topic without a name"}, {}, {}},
      {"OfAnExistingNameIsRefused", {kC, CreateTopic{make_topic("C")}}, child, {Code::already_exists, "topic c"}, {}, {}},
      {"OfANameThatDiffersInLetterCaseIsRefused", {CreateTopic{make_topic("C")}}, child, {Code::topic_already_exists, "C"}, {}, {}},
      {"WithASchemaOverTheBudgetIsRefused", {}, CreateTopicLinked{c, std::string(kTopicSchemaBytesMax + 1, ' '), link},
       {Code::schema_history_full, "the schemas of topic c would take 4194305 bytes"}, {}, {}},
      {"UnderAMissingParentIsRefused", {}, child, {Code::not_found, "topic p"}, {}, {}},
      {"UnderItselfIsRefused", {}, CreateTopicLinked{c, "", ParentLink{"c", kId, "e1", 0, {}}}, {Code::not_found, "topic c"}, {}, {}},
      {"UnderAnotherIncarnationIsRefused", {kP}, CreateTopicLinked{c, "", ParentLink{"p", "other", "e1", -1, {}}},
       {Code::topic_changed, "topic p"}, {}, {}},
      {"UnderAChildIsRefused", {CreateTopic{child_of("q", "p")}}, child, {Code::fanout_role_conflict, "topic p is a child"}, {}, {}},
      {"OfAParentUnderAParentIsRefused", {kP}, CreateTopicLinked{as_parent, "", link}, {Code::fanout_role_conflict, "topic c is a parent"},
       {}, {}},
      {"UnderAFullParentIsRefused", {CreateTopic{parent_of("p", many_children(kChildrenMax))}}, child,
       {Code::fanout_child_limit, "topic p"}, {}, {}},
      {"WithADelayThatRetentionCannotHoldIsRefused", {CreateTopic{with_retention(make_topic("p"), kHourMs)}}, child,
       {Code::fanout_delay_too_long, "topic p"}, {}, {}},
      {"WithASchemaUnderAParentWithoutIsRefused", {kP}, child_with_schema,
       {Code::fanout_schema_mismatch, "topic p has 0 versions, topic c has 1"}, {}, {}},
      {"WithAnotherSchemaThanTheParentsIsRefused", {kP, PutSchema{"p", 1, "true"}}, child_with_schema,
       {Code::fanout_schema_mismatch, "version 1 of topic c"}, {}, {}},
      {"ThatAdoptsOverTheBudgetIsRefused", {kP, PutSchema{"p", 1, std::string(kTopicSchemaBytesMax + 1, ' ')}}, child,
       {Code::schema_history_full, "the schemas of topic c would take 4194305 bytes"}, {}, {}},
      {"PutsTheRecordAsGiven", {}, CreateTopicLinked{as_parent, "", std::nullopt}, {}, {is(as_parent)}, {moved("c")}},
      {"PutsTheFirstSchema", {}, with_schema, {}, {is(c), schema_is("c", 1, "true")}, {moved("c"), schemas_moved("c")}},
      {"DropsWhatWasLeftUnderTheName", leftovers, plain, {}, join(dropped, {is(c)}),
       {moved("c"), assignments_moved("c"), schemas_moved("c")}},
      {"ReplacesSchemasLeftUnderTheName", leftovers, with_schema, {},
       {is(c), schema_is("c", 1, "true"), gone(Bucket::schemas, "c:2"), gone(Bucket::assignments, "c:0"), gone(Bucket::assignments, "c:4")},
       {moved("c"), assignments_moved("c"), schemas_moved("c")}},
      {"LinksToTheParent", {kP}, child, {}, linked, {moved("p"), moved("c")}},
      {"AdoptsTheParentsSchemas", {kP, PutSchema{"p", 1, "1"}, PutSchema{"p", 2, "2"}}, child, {},
       join(linked, {schema_is("c", 1, "1"), schema_is("c", 2, "2")}), {moved("p"), moved("c"), schemas_moved("c")}},
      {"LinksByTheValueOfTheSchema", {kP, PutSchema{"p", 1, R"({ "a" : 10e-1 })"}}, child_with_schema, {},
       join(linked, {schema_is("c", 1, R"({"a":1})")}), {moved("p"), moved("c"), schemas_moved("c")}},
  };
}

std::vector<Case> checked_topic_cases() {
  const Topic t = with<Topic>(make_topic("t", 3), [](Topic& topic) { topic.owner = "ann"; });
  const Topic given = with<Topic>(make_topic("t", 5), [](Topic& topic) {
    topic.id = "another";
    topic.owner = "bob";
    topic.created_at = 1;
    topic.visibility_timeout_ms = 1;
    topic.retention_ms = 0;
    topic.max_in_flight_per_partition = 7;
    topic.max_acked_ahead_per_partition = 8;
    topic.role = Role::parent;
    topic.children = {"x"};
  });
  const Topic after = with<Topic>(t, [](Topic& topic) {
    topic.partitions = 5;
    topic.retention_ms = 0;
    topic.max_in_flight_per_partition = 7;
    topic.max_acked_ahead_per_partition = 8;
  });
  const Topic p = parent_of("p", {"c"});
  const Topic far = parent_of("p", {"s"});
  const Topic s = with<Topic>(stub_of("p", "s"), [](Topic& topic) { topic.partitions = 0; });
  const CreateTopic has{t};
  return {
      // 24
      {"UpdateOfAMissingTopicIsRefused", {}, UpdateTopicIf{t, kId}, {Code::not_found, "topic t"}, {}, {}},
      {"UpdateOfAnotherIncarnationIsRefused", {has}, UpdateTopicIf{given, "another"}, {Code::topic_changed, "topic t"}, {}, {}},
      {"UpdateToFewerPartitionsIsRefused", {has}, UpdateTopicIf{make_topic("t", 2), kId}, {Code::topic_changed, "topic t"}, {}, {}},
      {"UpdateKeepsWhatIsNotConfiguration", {has}, UpdateTopicIf{given, kId}, {}, {is(after)}, {moved("t")}},
      {"UpdateBelowWhatADelayedChildNeedsIsRefused", {CreateTopic{p}, CreateTopic{child_of("p", "c")}},
       UpdateTopicIf{with_retention(p, kHourMs), kId}, {Code::fanout_delay_too_long, "child c"}, {}, {}},
      {"UpdateBelowADayWithARemoteChildIsRefused", {CreateTopic{far}, CreateTopic{s}}, UpdateTopicIf{with_retention(far, 23 * kHourMs), kId},
       {Code::remote_retention_floor, "topic p"}, {}, {}},
      {"UpdateOfAStubIsRefused", {CreateTopic{far}, CreateTopic{s}}, UpdateTopicIf{with_retention(s, 5), kId},
       {Code::remote_stub_immutable, "topic s"}, {}, {}},
      {"UpdateOfAStubWithItselfIsTaken", {CreateTopic{far}, CreateTopic{s}}, UpdateTopicIf{s, kId}, {}, {}, {moved("s")}},
      // 25
      {"DeleteOfAMissingTopicIsRefused", {}, DeleteTopicIf{"t", kId}, {Code::not_found, "topic t"}, {}, {}},
      {"DeleteOfAnotherIncarnationIsRefused", {has}, DeleteTopicIf{"t", "other"}, {Code::topic_changed, "topic t"}, {}, {}},
      {"DeleteTakesSchemasAndAssignmentsAlong",
       {has, PutSchema{"t", 1, "1"}, PutSchema{"t", 2, "2"}, AssignPartition{{"t", 0, "n1", ""}}, AssignPartition{{"t", 9, "n1", ""}},
        AssignPartition{{"u", 0, "n1", ""}}},
       DeleteTopicIf{"t", kId}, {},
       {gone(Bucket::topics, "t"), gone(Bucket::schemas, "t:1"), gone(Bucket::schemas, "t:2"), gone(Bucket::assignments, "t:0"),
        gone(Bucket::assignments, "t:9")},
       retired("t")},
      {"DeleteOfAParentFreesItsChildrenAndTakesStubsAlong",
       {CreateTopic{parent_of("p", {"c", "s"})}, CreateTopic{child_of("p", "c")}, CreateTopic{s}, PutSchema{"p", 1, "1"},
        AssignPartition{{"s", 0, "n1", ""}}},
       DeleteTopicIf{"p", kId}, {},
       {gone(Bucket::topics, "p"), gone(Bucket::schemas, "p:1"), is(standalone("c")), gone(Bucket::topics, "s"),
        gone(Bucket::assignments, "s:0")},
       join({moved("c")}, join(retired("s"), retired("p")))},
      {"DeleteOfAChildLeavesTheParentsList", {kP, kC, kLink}, DeleteTopicIf{"c", kId}, {}, {is(standalone("p")), gone(Bucket::topics, "c")},
       join({moved("p")}, retired("c"))},
  };
}

struct ApplyFanout : tests::ApplyTable {};

TEST_P(ApplyFanout, AnswersAndChangesAsTheTableSays) { run(GetParam()); }

constexpr auto kName = [](const testing::TestParamInfo<Case>& info) { return info.param.name; };

// ---- The cluster's budget --------------------------------------------------------------------------------------------------

// Rows in which the schemas of all topics come to `bytes`.
tests::AppliedRows with_schema_bytes(uint64_t bytes) {
  tests::AppliedRows applied;
  WriteSet set(applied.rows, 0);
  set_counter(set, kSchemaBytes, bytes);
  set.keep_entry();
  applied.rows.take(set);
  applied.state.digest = set.digest();
  return applied;
}

TEST(ClusterSchemaBudget, CountsEachChildsCopy) {
  const std::vector<Command> linked{CreateTopic{parent_of("p", {"c", "d", "s"})}, CreateTopic{child_of("p", "c")},
                                    CreateTopic{child_of("p", "d")}, CreateTopic{stub_of("p", "s")}};
  for (const bool fits : {true, false}) {
    tests::AppliedRows applied = with_schema_bytes(kClusterSchemaBytesMax - 30 + (fits ? 0 : 1));
    for (const Command& command : linked) {
      ASSERT_TRUE(applied.answer_of(command).ok());
    }
    const Answer answer = applied.answer_of(PutSchemaIf{"p", 1, "0123456789", kId});
    EXPECT_EQ(answer.code, fits ? Code::ok : Code::schema_history_full);
    EXPECT_EQ(answer.detail, fits ? "" : "the schemas of the cluster would take 268435457 bytes");
    EXPECT_TRUE(applied.answer_of(PutSchema{"p", fits ? 2 : 1, "x"}).ok()) << "type 4 knows no budget";
  }
}

TEST(ClusterSchemaBudget, CountsWhatIsAdoptedAndWhatACreateFrees) {
  for (const bool fits : {true, false}) {
    tests::AppliedRows applied = with_schema_bytes(kClusterSchemaBytesMax - 20 + (fits ? 0 : 1));
    for (const Command& command : std::vector<Command>{kP, kC, PutSchema{"p", 1, "0123456789"}}) {
      ASSERT_TRUE(applied.answer_of(command).ok());
    }
    EXPECT_EQ(applied.answer_of(AttachChildIf{kLink, kId, kId}).code, fits ? Code::ok : Code::schema_history_full);
    EXPECT_EQ(applied.answer_of(CreateTopicLinked{make_topic("n"), "x", std::nullopt}).code,
              fits ? Code::schema_history_full : Code::ok);
    EXPECT_TRUE(applied.answer_of(DeleteTopic{"p"}).ok());
    EXPECT_TRUE(applied.answer_of(CreateTopicLinked{make_topic("m"), "0123456789", std::nullopt}).ok());
  }
}

// ---- Rows that gather what several entries bring ---------------------------------------------------------------------------

// `grows` is sent until it is refused; what it was refused for changes nothing, and the rows can be read and changed as before.
void grow_until_refused(const std::vector<Command>& before, const std::function<Command(int)>& grows, const Command& after) {
  tests::AppliedRows applied;
  for (const Command& command : before) ASSERT_TRUE(applied.answer_of(command).ok());
  Answer answer;
  std::map<std::string, std::string> rows;
  uint64_t digest = 0;
  for (int i = 0; answer.ok() && i < 100; ++i) {
    rows = applied.rows.rows();
    digest = applied.state.digest;
    answer = applied.answer_of(grows(i));
  }
  EXPECT_EQ(answer.code, Code::invalid_argument);
  EXPECT_TRUE(answer.detail.starts_with("a row of ")) << answer.detail;
  EXPECT_EQ(applied.rows.rows(), rows);
  EXPECT_EQ(applied.state.digest, digest);
  EXPECT_EQ(applied.rows.digest(), digest);
  EXPECT_EQ(tests::wrong_kept_rows(rows), "");
  EXPECT_TRUE(applied.answer_of(after).ok());
}

std::string long_name(int i) { return std::string(1'500'000, static_cast<char>('a' + i)); }

TEST(RowBound, AParentsChildren) {
  std::vector<Command> before{kP};
  for (int i = 0; i < 5; ++i) before.emplace_back(CreateTopic{make_topic(long_name(i))});
  grow_until_refused(before, [](int i) { return AttachChild{"p", long_name(i), "e1", 0, {}}; }, DeleteTopic{"p"});
}

TEST(RowBound, AChildWithItsLink) {
  const Topic child = make_topic(long_name(0));
  grow_until_refused({kP, CreateTopic{child}}, [&child](int) {
    return AttachChild{"p", child.name, std::string(1'500'000, 'e'), 0, {}};
  }, AttachChild{"p", child.name, "e1", 0, {}});
}

TEST(RowBound, NamesThatDifferInLetterCaseOnly) {
  const auto named = [](int i) { return with<Topic>(make_topic(long_name(0)), [i](Topic& topic) { topic.name[0] = i == 0 ? 'A' : 'a'; topic.name[1] = i == 1 ? 'A' : 'a'; }); };
  grow_until_refused({}, [&named](int i) { return CreateTopic{named(i)}; }, CreateTopic{make_topic("x")});
}

TEST(RowBound, AnOwnersTopics) {
  const auto owned = [](int i) { return with<Topic>(make_topic(long_name(i)), [](Topic& topic) { topic.owner = "ann"; }); };
  const Topic shortly = with<Topic>(make_topic("x"), [](Topic& topic) { topic.owner = "ann"; });
  grow_until_refused({}, [&owned](int i) { return CreateTopic{owned(i)}; }, CreateTopic{shortly});
}

TEST(RowBound, AUsersPasswordAndGrants) {
  const User user{.username = "ann", .password_hash = "x", .grants = {}};
  grow_until_refused({CreateUser{user}, SetUserPassword{"ann", std::string(3'000'000, 'x'), 1}},
                     [](int) { return SetUserGrants{"ann", {{"create", {std::string(2'000'000, 'y')}}}, 2}; },
                     SetUserGrants{"ann", {{"create", {"a"}}}, 2});
}

TEST(RowBound, ATopicThatIsTooLongFromTheBegin) {
  grow_until_refused({}, [](int) { return CreateTopic{make_topic(std::string(3'000'000, 'a'))}; }, CreateTopic{make_topic("a")});
}

INSTANTIATE_TEST_SUITE_P(Schema, ApplyFanout, testing::ValuesIn(schema_cases(false)), kName);
INSTANTIATE_TEST_SUITE_P(SchemaIf, ApplyFanout, testing::ValuesIn(schema_cases(true)), kName);
INSTANTIATE_TEST_SUITE_P(SchemaBudgets, ApplyFanout, testing::ValuesIn(checked_schema_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Attach, ApplyFanout, testing::ValuesIn(attach_cases(false)), kName);
INSTANTIATE_TEST_SUITE_P(AttachIf, ApplyFanout, testing::ValuesIn(attach_cases(true)), kName);
INSTANTIATE_TEST_SUITE_P(AttachByValue, ApplyFanout, testing::ValuesIn(attach_by_value_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Detach, ApplyFanout, testing::ValuesIn(detach_cases(false)), kName);
INSTANTIATE_TEST_SUITE_P(DetachIf, ApplyFanout, testing::ValuesIn(detach_cases(true)), kName);
INSTANTIATE_TEST_SUITE_P(Create, ApplyFanout, testing::ValuesIn(create_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Checked, ApplyFanout, testing::ValuesIn(checked_topic_cases()), kName);

}  // namespace
