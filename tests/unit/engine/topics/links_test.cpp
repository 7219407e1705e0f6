// Attach, detach and the list of children, by the newer entries and the older ones.

#include <gtest/gtest.h>

#include "tests/support/manager_world.h"

namespace {

using namespace engine;
using namespace engine::topics;
using namespace std::chrono_literals;
using Outcome = Proposed::Outcome;
using tests::error_of;
using Types = std::vector<uint32_t>;

struct LinksTest : tests::ManagerWorld, testing::WithParamInterface<uint32_t> {
  LinksTest() { gate.newest = GetParam(); }
  bool is_newer() const { return gate.newest > 22; }
};

INSTANTIATE_TEST_SUITE_P(Releases, LinksTest, testing::Values(22u, 32u));

TEST_P(LinksTest, AttachAnswersTheParentAndDetachUndoesIt) {
  run([&] {
    create_as(R"({"name":"p","partitions":4})");
    create("c");
    create("d");
    proposed();
    const Reply attached = attach("p", "c", 5);
    EXPECT_EQ(attached.status, 200);
    EXPECT_EQ(proposed(), is_newer() ? Types{27} : Types{13});
    EXPECT_EQ(*parse_topic_json(attached.body), stored("p"));
    EXPECT_EQ(stored("p").role, metastore::Role::parent);
    EXPECT_EQ(stored("c").parent, "p");
    EXPECT_EQ(stored("c").fanout_delay_ms, 5);
    EXPECT_EQ(stored("c").attach_offsets.size(), 4u);
    const std::string epoch = stored("c").attach_epoch;
    EXPECT_EQ(epoch.size(), 16u);
    EXPECT_EQ(attach("p", "d").status, 200);
    proposed();
    EXPECT_EQ(detach("p", "c").status, 204);
    EXPECT_EQ(proposed(), is_newer() ? Types{28} : Types{14});
    EXPECT_EQ(stored("c").role, metastore::Role::standalone);
    EXPECT_EQ(stored("p").children, (std::vector<std::string>{"d"}));
    EXPECT_EQ(attach("p", "c").status, 200);
    EXPECT_NE(stored("c").attach_epoch, epoch) << "each link has an epoch of its own";
  });
}

TEST_P(LinksTest, WhatTheStoredStateForbidsIsRefusedBeforeAnythingIsProposed) {
  run([&] {
    create_as(R"({"name":"p","schema":{"type":"object"}})");
    create_as(R"({"name":"s","schema":{"type":"array"}})");
    create_as(R"({"name":"short","retention_ms":3600000})");
    create("c");
    create("q");
    create("free");
    attach("p", "c");
    proposed();
    const struct {
      std::string parent, child;
      int64_t delay_ms;
      int status;
      std::string error;
    } kRows[] = {
        {"missing", "free", 0, 404, "topic not found"},
        {"p", "missing", 0, 404, "topic not found"},
        {"p", "", 0, 400, "invalid argument: child must be given"},
        {"p", "p", 0, 400, "invalid argument: a topic cannot be its own child"},
        {"p", "free", -1, 400, "invalid argument: delay_ms must be between 0 and 31536000000"},
        {"p", "c", 0, 409, "already exists: topic c is a child of p"},
        {"q", "c", 0, 409, "fan-out role conflict: topic c is a child of p"},
        {"c", "free", 0, 409, "fan-out role conflict: topic c is a child"},
        {"q", "p", 0, 409, "fan-out role conflict: topic p is a parent"},
        {"p", "s", 0, 409, "child schema incompatible with parent: version 1 of topic s"},
        {"short", "free", 1, 409, "delay exceeds what the parent's retention can buffer: topic short"},
    };
    for (const auto& row : kRows) {
      const Reply reply = attach(row.parent, row.child, row.delay_ms);
      EXPECT_EQ(reply.status, row.status) << row.error;
      EXPECT_EQ(error_of(reply), row.error);
    }
    for (const auto& [parent, child] : {std::pair("p", "q"), std::pair("p", "missing"), std::pair("missing", "c"), std::pair("q", "c")}) {
      const Reply reply = detach(parent, child);
      EXPECT_EQ(reply.status, 404) << parent << " " << child;
      EXPECT_EQ(error_of(reply), "topic not found");
    }
    EXPECT_EQ(proposed(), Types{});
  });
}

TEST_P(LinksTest, AParentHasAHundredAndEightChildrenAtMost) {
  run([&] {
    create("p");
    for (int i = 0; i < 108; ++i) {
      create("c" + std::to_string(i));
      EXPECT_EQ(attach("p", "c" + std::to_string(i)).status, 200);
    }
    create("more");
    proposed();
    EXPECT_EQ(attach("p", "more").status, 409);
    EXPECT_EQ(create_as(R"({"name":"another","parent":"p"})").status, 409);
    EXPECT_EQ(proposed(), Types{});
  });
}

TEST_P(LinksTest, ChildrenAreListedInTheOrderOfAttaching) {
  run([&] {
    create("p");
    EXPECT_EQ(manager->children("p", io::kNever).body, "{\"parent\":\"p\",\"parent_id\":\"" + stored("p").id + "\",\"children\":[]}\n");
    create("b");
    create("a");
    attach("p", "b", 7);
    attach("p", "a");
    const Reply reply = manager->children("p", io::kNever);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "{\"parent\":\"p\",\"parent_id\":\"" + stored("p").id +
                              "\",\"children\":[{\"name\":\"b\",\"delay_ms\":7,\"lag_messages\":0,\"lag_complete\":true},"
                              "{\"name\":\"a\",\"delay_ms\":0,\"lag_messages\":0,\"lag_complete\":true}]}\n");
    EXPECT_EQ(manager->children("x", io::kNever).status, 404);
  });
}

TEST_P(LinksTest, RequestsThatShareATopicTakeTurns) {
  store.delay = 100ms;
  run([&] {
    create("a");
    create("b");
    std::vector<int> statuses;
    io::with_scope([&](io::Scope& scope) {
      // Both ends of each are the other's too: whoever comes first makes the other one impossible, and nobody waits for ever.
      for (const auto& [parent, child] : {std::pair("a", "b"), std::pair("b", "a"), std::pair("a", "b")}) {
        scope.spawn("request", [&, parent, child] { statuses.push_back(attach(parent, child).status); });
      }
    });
    std::sort(statuses.begin(), statuses.end());
    EXPECT_EQ(statuses, (std::vector<int>{200, 409, 409}));
  });
}

TEST_P(LinksTest, ARemoteChildsStubIsLeftToItsOwnRequests) {
  run([&] {
    create_as(R"({"name":"p","retention_ms":0})");
    add_stub("p", "stub");
    proposed();
    EXPECT_EQ(detach("p", "stub").status, 501);
    EXPECT_EQ(remove("stub").status, 501);
    EXPECT_EQ(alter("stub", R"({"retention_ms":0,"partitions":5})").status, 409);
    EXPECT_EQ(proposed(), Types{});
  });
}

struct LinkIncarnationsTest : tests::ManagerWorld {};

TEST_F(LinkIncarnationsTest, AChildThatLeavesWhileTheChildrenAreListedIsNoneOfThem) {
  run([&] {
    for (const char* name : {"p", "stays", "leaves"}) create(name);
    ASSERT_EQ(attach("p", "stays").status, 200);
    ASSERT_EQ(attach("p", "leaves").status, 200);
    int reads = 0;
    store.during_read = [&] {
      if (++reads == 2) apply(metastore::DetachChild{"p", "leaves"});  // the parent has been read
    };
    const Reply listed = manager->children("p", io::kNever);
    EXPECT_NE(listed.body.find("\"stays\""), std::string::npos) << listed.body;
    EXPECT_EQ(listed.body.find("\"leaves\""), std::string::npos) << listed.body;
  });
}

TEST_F(LinkIncarnationsTest, EndsThatChangedMeanwhileAreReadAgainOnce) {
  run([&] {
    create("p");
    create("c");
    int times = 1;
    int incarnations = 0;
    store.before_propose = [&] {
      if (times-- > 0) {
        auto other = tests::make_topic("c");
        other.id = "000000000000000" + std::to_string(++incarnations);
        apply(metastore::DeleteTopic{"c"});
        apply(metastore::CreateTopic{other});
      }
    };
    EXPECT_EQ(attach("p", "c").status, 200);
    EXPECT_EQ(proposed(), (Types{23, 23, 27, 27}));
    times = 2;
    const Reply twice = detach("p", "c");
    EXPECT_EQ(twice.status, 404) << "the new topic of that name is no child";
    times = 2;
    EXPECT_EQ(error_of(attach("p", "c")), "topic changed since it was read");
  });
}

}  // namespace
