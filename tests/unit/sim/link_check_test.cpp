// Links and schemas against the log: each rule fires on a made-up history that breaks it, and stays silent on the good one beside it.

#include <gtest/gtest.h>

#include "engine/metastore/commands.h"
#include "sim/call_check.h"
#include "sim/world.h"
#include "tests/support/topics.h"

namespace sim {
namespace {

namespace ms = engine::metastore;
using std::chrono::seconds;

io::Instant at(int64_t s) { return io::Instant(seconds(s)); }

class LinkCheckTest : public ::testing::Test {
 protected:
  // The next entry takes effect, or is refused, at second `when`.
  template <typename Command>
  Index entry(const Command& command, int64_t when) {
    const Index index = book.last_index() + 1;
    const raft::Entry e = tests::make_entry(index, ms::encode_command(command));
    const std::string answer = sound.apply(e).answer;
    const bool refused = !ms::decode_answer(answer)->ok();
    const auto wrong = book.applied(0, 1, e, answer, refused, decode_change(e), at(when));
    EXPECT_FALSE(wrong.has_value()) << wrong->sentence;
    return index;
  }
  Index create(const std::string& name, uint64_t call, int64_t when) {
    ms::Topic topic = tests::make_topic(name);
    topic.id = "id-" + name + std::to_string(call);
    topic.retention_ms = kTagBase + static_cast<int64_t>(call);
    return entry(ms::CreateTopic{topic}, when);
  }
  Index attach(const std::string& parent, const std::string& child, int64_t when) {
    return entry(ms::AttachChild{parent, child, "e", 0, {}}, when);
  }
  static std::string schema(uint64_t call) { return "{\"maxLength\":" + std::to_string(kTagBase + static_cast<int64_t>(call)) + "}"; }

  static Call call(uint64_t id, CallKind kind, std::string name, int64_t asked, int64_t answered, int status, std::string child = "") {
    Call c;
    c.id = id;
    c.kind = kind;
    c.name = std::move(name);
    c.child = std::move(child);
    c.life = 1;
    c.same_life = true;
    c.asked = at(asked);
    c.answered = at(answered);
    c.status = status;
    c.outcome = status < 300 ? Outcome::ok : status < 500 ? Outcome::refused : Outcome::unknown;
    c.applied_after = 1'000;
    return c;
  }
  // An attach as it is acknowledged.
  Call attached(uint64_t id, const std::string& parent, const std::string& child, int64_t asked, int64_t answered) {
    Call c = call(id, CallKind::attach, parent, asked, answered, 200, child);
    c.topic = Topic{};
    c.topic->children = {child};
    return c;
  }
  std::string rule(const Call& c, bool early = false) {
    const auto wrong = check.judge(c, early);
    return wrong ? wrong->rule : "";
  }

  LogBook book;
  Replica sound{ms::kNewestEntryType};  // answers as a sound node does
  CallCheck check{book};
};

TEST_F(LinkCheckTest, EachAcknowledgedLinkNeedsAnEntryOfItsOwn) {
  create("p", 1, 1);
  create("c", 2, 2);
  attach("p", "c", 5);
  EXPECT_EQ(rule(attached(3, "p", "c", 4, 6)), "");
  EXPECT_EQ(check.acked(), 3u);
  EXPECT_EQ(rule(attached(4, "p", "c", 4, 6)), "an acknowledged write is in the log") << "one entry, two answers";
  entry(ms::DetachChild{"p", "c"}, 8);
  EXPECT_EQ(rule(call(5, CallKind::detach, "p", 9, 10, 204, "c")), "an acknowledged write is in the log") << "before it was asked for";
  EXPECT_EQ(rule(call(6, CallKind::detach, "p", 7, 10, 204, "c")), "");
  attach("p", "c", 12);
  Call late = attached(7, "p", "c", 11, 13);
  late.applied_after = 4;
  EXPECT_EQ(rule(late), "a read after a write sees it");
  Call unnamed = attached(8, "p", "c", 11, 13);
  unnamed.topic->children.clear();
  EXPECT_EQ(rule(unnamed), "an acknowledged write is in the log") << "its answer does not show the child";
}

TEST_F(LinkCheckTest, TheEntriesThatCarryIncarnationsCountAlike) {
  create("p", 1, 1);
  create("c", 2, 2);
  entry(ms::AttachChildIf{{"p", "c", "e", 0, {}}, "id-p1", "id-c2"}, 5);
  EXPECT_EQ(rule(attached(3, "p", "c", 4, 6)), "");
  entry(ms::DetachChildIf{"p", "c", "id-p1", "id-other"}, 8);
  EXPECT_EQ(rule(call(4, CallKind::detach, "p", 7, 9, 204, "c")), "an acknowledged write is in the log") << "it was refused";
  entry(ms::DetachChildIf{"p", "c", "id-p1", "id-c2"}, 11);
  EXPECT_EQ(rule(call(5, CallKind::detach, "p", 10, 12, 204, "c")), "");
}

TEST_F(LinkCheckTest, ARefusedLinkMustHaveBeenImpossible) {
  create("p", 1, 1);
  create("c", 2, 2);
  create("free", 3, 3);
  attach("p", "c", 4);
  const auto refused = [&](CallKind kind, const char* parent, const char* child, int status) {
    Call c = call(9, kind, parent, 5, 6, status, child);
    c.acked_before = 4;
    return rule(c);
  };
  EXPECT_EQ(refused(CallKind::attach, "p", "c", 409), "");
  EXPECT_EQ(refused(CallKind::attach, "c", "free", 409), "") << "a child has no children";
  EXPECT_EQ(refused(CallKind::attach, "free", "p", 409), "") << "a parent is no child";
  EXPECT_EQ(refused(CallKind::attach, "p", "free", 409), "a refusal is true at some index");
  EXPECT_EQ(refused(CallKind::attach, "p", "missing", 404), "");
  EXPECT_EQ(refused(CallKind::attach, "p", "free", 404), "a refusal is true at some index");
  EXPECT_EQ(refused(CallKind::detach, "p", "free", 404), "");
  EXPECT_EQ(refused(CallKind::detach, "p", "c", 404), "a refusal is true at some index");
}

TEST_F(LinkCheckTest, ACreateIsLinkedAsItWasAskedFor) {
  create("p", 1, 1);
  ms::Topic record = tests::make_topic("c");
  record.id = "c1";
  record.retention_ms = kTagBase + 2;
  entry(ms::CreateTopicLinked{record, "", ms::ParentLink{"p", "id-p1", "e", 0, {}}}, 5);
  Call good = call(2, CallKind::create, "c", 4, 6, 201);
  good.parent = "p";
  good.topic = *book.model().now("c");
  EXPECT_EQ(good.topic->parent, "p");
  Call alone = good;
  alone.topic->parent = "";
  EXPECT_EQ(rule(alone), "an acknowledged write is in the log");
  EXPECT_EQ(rule(good), "");
}

TEST_F(LinkCheckTest, ARefusedCreateLeavesNothing) {
  create("p", 1, 1);
  create("c", 2, 2);
  Call refused = call(2, CallKind::create, "c", 1, 3, 409);
  refused.parent = "p";
  EXPECT_EQ(rule(refused), "a refused write has no effect");
  entry(ms::DeleteTopic{"c"}, 3);
  create("c", 7, 4);
  EXPECT_EQ(rule(refused), "") << "taken back, and another stands in its place";
}

TEST_F(LinkCheckTest, ASchemaIsTheCallsOwn) {
  create("a", 1, 1);
  entry(ms::PutSchema{"a", 1, schema(2)}, 5);
  EXPECT_EQ(rule(call(2, CallKind::put_schema, "a", 4, 6, 200)), "");
  EXPECT_EQ(rule(call(3, CallKind::put_schema, "a", 4, 6, 200)), "an acknowledged write is in the log");
  entry(ms::PutSchema{"a", 2, schema(9)}, 7);
  Call narrower = call(5, CallKind::put_schema, "a", 8, 9, 400);
  narrower.acked_before = 3;
  EXPECT_EQ(rule(narrower), "") << "the topic accepts more already";
  Call wider = call(10, CallKind::put_schema, "a", 8, 9, 400);
  wider.acked_before = 3;
  EXPECT_EQ(rule(wider), "a refusal is true at some index");
  Call managed = call(11, CallKind::put_schema, "a", 8, 9, 409);
  managed.acked_before = 3;
  EXPECT_EQ(rule(managed), "a refusal is true at some index") << "it is nobody's child";
}

TEST_F(LinkCheckTest, SchemasAndChildrenAreShownAsTheyWere) {
  create("p", 1, 1);
  create("c", 2, 2);
  entry(ms::PutSchema{"p", 1, schema(3)}, 3);
  attach("p", "c", 4);
  Call shown = call(4, CallKind::schemas, "c", 5, 6, 200);
  shown.applied_before = shown.applied_after = 4;
  shown.schemas = Schemas{1, kTagBase + 3};
  EXPECT_EQ(rule(shown), "") << "a child adopts its parent's";
  shown.schemas = Schemas{0, 0};
  EXPECT_EQ(rule(shown), "a read shows a state that was");
  Call children = call(5, CallKind::children, "p", 5, 6, 200);
  children.applied_before = children.applied_after = 4;
  children.parent_id = "id-p1";
  EXPECT_EQ(rule(children), "a read shows a state that was") << "a child is missing";
  Topic child;
  child.name = "c";
  children.topics = {child};
  EXPECT_EQ(rule(children), "");
  children.topics[0].fanout_delay_ms = 7;
  EXPECT_EQ(rule(children), "a read shows a state that was");
  children.topics[0].fanout_delay_ms = 0;
  children.parent_id = "another";
  EXPECT_EQ(rule(children), "a read shows a state that was");
}

TEST_F(LinkCheckTest, AnUpdateMakesOfATopicWhatTheModelMakesOfIt) {
  create("a", 1, 1);
  const Index index = book.last_index() + 1;
  ms::Topic record = tests::make_topic("a");
  record.id = "id-a1";
  const raft::Entry e = tests::make_entry(index, ms::encode_command(ms::UpdateTopicIf{record, "another"}));
  const std::string answer = sound.apply(e).answer;
  EXPECT_FALSE(ms::decode_answer(answer)->ok());
  const auto wrong = book.applied(0, 1, e, ms::encode_answer({}), false, decode_change(e), at(2));
  EXPECT_TRUE(wrong.has_value()) << "done for another incarnation";
}

}  // namespace
}  // namespace sim
