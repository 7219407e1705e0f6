// The model: what a name was after every index.

#include <gtest/gtest.h>

#include "sim/topic_model.h"

namespace sim {
namespace {

Topic topic(std::string name, std::string id, int64_t retention) {
  Topic t;
  t.name = std::move(name);
  t.id = std::move(id);
  t.partitions = 3;
  t.retention_ms = retention;
  return t;
}

TEST(TopicModel, KeepsEveryVersionOfAName) {
  TopicModel model;
  EXPECT_EQ(model.apply(2, {ChangeKind::create, topic("a", "x1", kTagBase + 1)}), Verdict::done);
  EXPECT_EQ(model.apply(4, {ChangeKind::update, topic("a", "other", kTagBase + 2)}), Verdict::done);
  EXPECT_EQ(model.apply(7, {ChangeKind::remove, topic("a", "", 0)}), Verdict::done);
  EXPECT_EQ(model.at("a", 1), nullptr);
  EXPECT_EQ(model.at("a", 3)->retention_ms, kTagBase + 1);
  EXPECT_EQ(model.at("a", 6)->retention_ms, kTagBase + 2);
  EXPECT_EQ(model.at("a", 6)->id, "x1") << "an update keeps the incarnation";
  EXPECT_EQ(model.at("a", 7), nullptr);
  EXPECT_EQ(model.now("a"), nullptr);
  EXPECT_EQ(model.moments("a", 2, 6), (std::vector<Index>{2, 4}));
  EXPECT_EQ(model.moments("b", 2, 6), (std::vector<Index>{2}));
  EXPECT_EQ(model.deletions("a", 0, 9), (std::vector<Index>{7}));
  EXPECT_EQ(model.created_at("x1"), Index{2});
  EXPECT_EQ(model.effect_of(2), Index{4});
  EXPECT_EQ(model.effect_of(3), std::nullopt);
}

TEST(TopicModel, RefusesWhatTheStateMachineRefuses) {
  TopicModel model;
  EXPECT_EQ(model.apply(1, {ChangeKind::update, topic("a", "x", 0)}), Verdict::not_found);
  EXPECT_EQ(model.apply(2, {ChangeKind::remove, topic("a", "x", 0)}), Verdict::not_found);
  EXPECT_EQ(model.apply(3, {ChangeKind::create, topic("a", "x", 0)}), Verdict::done);
  EXPECT_EQ(model.apply(4, {ChangeKind::create, topic("a", "y", 0)}), Verdict::already_exists);
  EXPECT_EQ(model.now("a")->id, "x");
}

// Types 23 to 25.
TEST(TopicModel, RefusesAnotherIncarnationAndASecondSpelling) {
  TopicModel model;
  const auto checked = [](ChangeKind kind, Topic topic, std::optional<std::string> id = std::nullopt) {
    return Change{kind, std::move(topic), true, std::move(id)};
  };
  EXPECT_EQ(model.apply(1, checked(ChangeKind::create, topic("Orders", "x", 1))), Verdict::done);
  EXPECT_EQ(model.apply(2, checked(ChangeKind::create, topic("orders", "y", 2))), Verdict::already_exists);
  EXPECT_EQ(model.judge({ChangeKind::create, topic("orders", "y", 2)}), Verdict::done) << "type 1 does not look";
  EXPECT_EQ(model.apply(3, checked(ChangeKind::update, topic("Orders", "x", 3), "y")), Verdict::changed);
  Topic fewer = topic("Orders", "x", 3);
  fewer.partitions = 2;
  EXPECT_EQ(model.apply(4, checked(ChangeKind::update, fewer, "x")), Verdict::changed);
  EXPECT_EQ(model.apply(5, checked(ChangeKind::update, topic("Orders", "x", 3), "x")), Verdict::done);
  EXPECT_EQ(model.apply(6, checked(ChangeKind::remove, topic("Orders", "", 0), "y")), Verdict::changed);
  EXPECT_EQ(model.apply(7, checked(ChangeKind::remove, topic("Orders", "", 0), "x")), Verdict::done);
  EXPECT_EQ(model.apply(8, checked(ChangeKind::remove, topic("Orders", "", 0), "x")), Verdict::not_found);
}

TEST(TopicModel, KeepsLinksAndSchemasByIndex) {
  TopicModel model;
  model.note_link(3, "p", "c", true);
  model.note_link(5, "p", "c", false);
  EXPECT_EQ(model.links("p", "c", true), (std::vector<Index>{3}));
  EXPECT_EQ(model.links("p", "c", false), (std::vector<Index>{5}));
  EXPECT_TRUE(model.links("c", "p", true).empty());
  model.note_schemas(4, "a", {1, 7});
  model.note_schemas(6, "a", {2, 9});
  EXPECT_EQ(model.schemas_at("a", 3), Schemas{});
  EXPECT_EQ(model.schemas_at("a", 5), (Schemas{1, 7}));
  EXPECT_EQ(model.schemas_at("a", 6), (Schemas{2, 9}));
  EXPECT_EQ(model.schema_moments("a", 4, 9), (std::vector<Index>{4, 6}));
}

TEST(TopicModel, FindsANameThatDiffersInCaseAlone) {
  TopicModel model;
  model.apply(1, {ChangeKind::create, topic("Orders", "x", 0)});
  model.apply(2, {ChangeKind::remove, topic("Orders", "", 0)});
  EXPECT_EQ(model.clash_at("orders", 1), "Orders");
  EXPECT_EQ(model.clash_at("orders", 2), "");
  EXPECT_EQ(model.clash_at("order", 1), "");
}

TEST(TopicModel, ListsInOrderFromATokenOn) {
  TopicModel model;
  Index index = 0;
  for (const char* name : {"c", "a", "b", "d"}) {
    model.apply(++index, {ChangeKind::create, topic(name, name, 0)});
  }
  const auto page = model.list(3, "a", 5);
  ASSERT_EQ(page.size(), 2u);
  EXPECT_EQ(page[0]->name, "b");
  EXPECT_EQ(page[1]->name, "c");
  EXPECT_EQ(model.list(4, "", 2).size(), 2u);
  EXPECT_EQ(model.count_now(), 4u);
}

}  // namespace
}  // namespace sim
