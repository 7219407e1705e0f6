// Creates: one entry where every member applies it, else three that leave nothing half done; placement; the rights of who asks.

#include <gtest/gtest.h>

#include "engine/metastore/records_reader.h"
#include "tests/support/manager_world.h"

namespace {

using namespace engine;
using namespace engine::topics;
using namespace std::chrono_literals;
using metastore::Code;
using Outcome = Proposed::Outcome;
using tests::error_of;
using Types = std::vector<uint32_t>;

constexpr const char* kSchema = R"({"type":"object"})";

struct CreateTest : tests::ManagerWorld {
  std::string schema_of(const std::string& topic, int64_t version = 1) {
    return store.rows.read("schemas/" + topic + ":" + std::to_string(version)).value_or("");
  }
  Reply create_child(const std::string& name, const std::string& parent, const std::string& more = "") {
    return create_as("{\"name\":\"" + name + "\",\"parent\":\"" + parent + "\"" + more + "}");
  }
};

TEST_F(CreateTest, OneEntryHoldsRecordSchemaAndLink) {
  run([&] {
    create_as(R"({"name":"p","partitions":5,"schema":{"type":"object"}})");
    EXPECT_EQ(proposed(), (Types{23}));
    EXPECT_EQ(schema_of("p"), kSchema);
    Reply reply = create_child("c", "p", R"(,"fanout_delay_ms":7)");
    EXPECT_EQ(reply.status, 201);
    EXPECT_EQ(proposed(), (Types{23}));
    auto topic = parse_topic_json(reply.body);
    ASSERT_TRUE(topic.has_value());
    EXPECT_EQ(*topic, stored("c")) << "the answer is what is stored";
    EXPECT_EQ(topic->partitions, 5) << "as many as the parent has";
    EXPECT_EQ(topic->role, metastore::Role::child);
    EXPECT_EQ(topic->parent, "p");
    EXPECT_EQ(topic->fanout_delay_ms, 7);
    EXPECT_EQ(topic->attach_epoch.size(), 16u);
    EXPECT_EQ(topic->attach_offsets, (std::vector<int64_t>{0, 0, 0, 0, 0}));
    EXPECT_EQ(stored("p").children, (std::vector<std::string>{"c"}));
    EXPECT_EQ(schema_of("c"), kSchema) << "a child without a schema adopts the parent's";
  });
}

TEST_F(CreateTest, TheEntriesOfEveryReleaseCarryTheSame) {
  gate.newest = 22;
  run([&] {
    create_as(R"({"name":"p","schema":{"type":"object","title":"t"}})");
    EXPECT_EQ(proposed(), (Types{1, 4}));
    // Equal in value, not in bytes, which the older entry compares.
    Reply reply = create_child("c", "p", R"(,"schema":{"title":"t","type":"object"})");
    EXPECT_EQ(reply.status, 201);
    EXPECT_EQ(proposed(), (Types{1, 4, 13}));
    EXPECT_EQ(*parse_topic_json(reply.body), stored("c"));
    EXPECT_EQ(schema_of("c"), schema_of("p"));
    EXPECT_EQ(create_child("d", "p").status, 201);
    EXPECT_EQ(proposed(), (Types{1, 13}));
    EXPECT_EQ(schema_of("d"), schema_of("p"));
  });
}

TEST_F(CreateTest, WhatTheStoredStateForbidsIsRefusedBeforeAnythingIsProposed) {
  for (const uint32_t newest : {22u, 32u}) {
    SCOPED_TRACE(newest);
    store = {};
    gate.newest = newest;
    run([&] {
      create_as(R"({"name":"short","retention_ms":3600000})");
      create_as(R"({"name":"p","schema":{"type":"object"}})");
      create_child("c", "p");
      proposed();
      const struct {
        std::string name, parent, more, error;
        int status;
      } kRows[] = {
          {"x", "missing", "", "topic not found", 404},
          {"x", "c", "", "fan-out role conflict: topic c is a child", 409},
          {"x", "short", R"(,"fanout_delay_ms":1)", "delay exceeds what the parent's retention can buffer: topic short", 409},
          {"x", "p", R"(,"schema":{"type":"array"})", "child schema incompatible with parent: version 1 of topic x", 409},
          {"P", "p", "", "topic already exists: p (names must differ in more than letter case)", 409},
          {"c", "p", "", "topic already exists: c", 409},
      };
      for (const auto& row : kRows) {
        const Reply reply = create_child(row.name, row.parent, row.more);
        EXPECT_EQ(reply.status, row.status) << row.error;
        EXPECT_EQ(error_of(reply), row.error);
      }
      EXPECT_EQ(proposed(), Types{});
      EXPECT_TRUE(placer.placed.empty() || placer.placed.back().first == "c");
    });
  }
}

// Scenario PL-03: the older entries, with leadership lost or the rest refused after each of them.
TEST_F(CreateTest, HalfACreateIsTakenBackWhenTheRestIsCertainlyNotComing) {
  gate.newest = 22;
  run([&] {
    create_as(R"({"name":"p","schema":{"type":"object"}})");
    for (const uint32_t failing : {4u, 13u}) {
      SCOPED_TRACE(failing);
      proposed();
      store.fate = [&](uint32_t type) { return type == failing ? Outcome::refused : Outcome::applied; };
      const Reply reply = create_child("c", "p", R"(,"schema":{"type":"object"})");
      EXPECT_EQ(reply.status, 503);
      EXPECT_TRUE(is_unavailable(reply.status, reply.body)) << "nothing is left of it: it may be tried again";
      EXPECT_EQ(proposed().back(), 3u);
      EXPECT_FALSE(store.rows.read("topics/c"));
      EXPECT_EQ(schema_of("c"), "");
    }
    store.fate = nullptr;
    store.outcome = Outcome::applied;
    EXPECT_EQ(create_child("c", "p").status, 201) << "the name is free";
  });
}

// Scenario CL-04: what may still come is not undone.
TEST_F(CreateTest, HalfACreateOfUnknownOutcomeIsLeftAlone) {
  gate.newest = 22;
  run([&] {
    create("p");
    proposed();
    store.fate = [&](uint32_t type) { return type == 13 ? Outcome::unknown : Outcome::applied; };
    const Reply reply = create_child("c", "p");
    EXPECT_EQ(reply.status, 503);
    EXPECT_NE(error_of(reply).find(kOutcomeUnknownText), std::string::npos);
    EXPECT_EQ(proposed(), (Types{1, 13})) << "no delete behind an entry that may still be applied";
  });
}

TEST_F(CreateTest, WhatCannotBeTakenBackIsAnUnknownOutcome) {
  gate.newest = 22;
  run([&] {
    create("p");
    store.fate = [&](uint32_t type) { return type == 1 ? Outcome::applied : Outcome::not_leader; };
    const Reply reply = create_child("c", "p");
    EXPECT_EQ(reply.status, 503);
    EXPECT_FALSE(is_unavailable(reply.status, reply.body)) << "the record is there: it is not to be tried again unseen";
    EXPECT_TRUE(store.rows.read("topics/c").has_value());
  });
}

TEST_F(CreateTest, OnlyItsOwnIncarnationIsTakenBack) {
  gate.newest = 22;
  run([&] {
    create("p");
    store.fate = [&](uint32_t type) { return type == 13 ? Outcome::refused : Outcome::applied; };
    store.before_propose = [&] {
      if (store.proposed_types.back() == 13) {
        apply(metastore::DeleteTopic{"c"});
        apply(metastore::CreateTopic{tests::make_topic("c")});
      }
    };
    EXPECT_EQ(create_child("c", "p").status, 503);
    EXPECT_EQ(stored("c").id, tests::make_topic("c").id) << "somebody else's topic of that name stays";
  });
}

TEST_F(CreateTest, AParentThatChangedMeanwhileIsReadAgainOnce) {
  run([&] {
    create("p");
    int times = 0;
    int incarnations = 0;
    store.before_propose = [&] {
      if (times-- > 0) {
        auto other = tests::make_topic("p", 4);
        other.id = "000000000000000" + std::to_string(++incarnations);
        apply(metastore::DeleteTopic{"p"});
        apply(metastore::CreateTopic{other});
      }
    };
    times = 1;
    EXPECT_EQ(create_child("c", "p").status, 201);
    EXPECT_EQ(stored("c").partitions, 4) << "judged by the parent as it is now";
    times = 2;
    const Reply twice = create_child("d", "p");
    EXPECT_EQ(twice.status, 409);
    EXPECT_EQ(error_of(twice), "topic changed since it was read");
    EXPECT_FALSE(store.rows.read("topics/d"));
  });
}

// ---- Placement -------------------------------------------------------------------------------------------------------------

TEST_F(CreateTest, PartitionsArePlacedOnceTheRecordStands) {
  run([&] {
    create("a");
    EXPECT_EQ(placer.asked, 1);
    ASSERT_EQ(placer.placed.size(), 1u);
    EXPECT_EQ(placer.placed[0], (std::pair<std::string, PlacementCause>("a", PlacementCause::created)));
    alter("a", R"({"retention_ms":0})");
    EXPECT_EQ(placer.asked, 1) << "nothing to place";
    alter("a", R"({"partitions":6})");
    ASSERT_EQ(placer.placed.size(), 2u);
    EXPECT_EQ(placer.placed[1].second, PlacementCause::grown);
  });
}

TEST_F(CreateTest, WhileEveryLiveNodeIsDrainingNothingIsWritten) {
  placer.refusal = error_reply(503, "every live node is being decommissioned");
  run([&] {
    store.apply(metastore::encode_create_topic(tests::make_topic("a")));
    EXPECT_EQ(create("b").status, 503);
    EXPECT_EQ(alter("a", R"({"retention_ms":0,"partitions":6})").status, 503);
    EXPECT_EQ(create("a").status, 409) << "what is refused in any case needs no place";
    EXPECT_EQ(proposed(), Types{});
    EXPECT_TRUE(placer.placed.empty());
    EXPECT_EQ(alter("a", R"({"retention_ms":0})").status, 200);
  });
}

TEST_F(CreateTest, WhatChangedWhileTheClusterFormedIsSeen) {
  run([&] {
    placer.while_waiting = [&] { apply(metastore::CreateTopic{tests::make_topic("a")}); };
    EXPECT_EQ(create("a").status, 409);
    EXPECT_EQ(proposed(), Types{});
    placer.while_waiting = [&] { apply(metastore::UpdateTopic{tests::make_topic("a", 9)}); };
    EXPECT_EQ(alter("a", R"({"partitions":6})").status, 400);
    EXPECT_EQ(proposed(), Types{});
  });
}

// ---- Rights ----------------------------------------------------------------------------------------------------------------

TEST_F(CreateTest, AnActorNeedsAGrantAndOwnsWhatItCreates) {
  run([&] {
    apply(metastore::CreateUser{tests::make_user("eve", {{"create", {"orders-*", "x"}}})});
    apply(metastore::CreateUser{tests::make_user("adam", {{"admin", {}}})});
    create("other");
    actor = "eve";
    EXPECT_EQ(create("orders-1").status, 201);
    EXPECT_EQ(stored("orders-1").owner, "eve");
    const Reply denied = create("order");
    EXPECT_EQ(denied.status, 403);
    EXPECT_EQ(error_of(denied), "forbidden: no grant on this topic");
    EXPECT_EQ(create_child("x", "other").status, 403) << "a parent of somebody else";
    EXPECT_EQ(create_child("x", "orders-1").status, 201);
    for (const Reply& reply : {alter("other", R"({"retention_ms":0})"), remove("other"), attach("orders-1", "other")}) {
      EXPECT_EQ(reply.status, 403);
      EXPECT_EQ(error_of(reply), "forbidden: only the topic owner or an admin may modify this topic");
    }
    EXPECT_EQ(alter("orders-1", R"({"retention_ms":0})").status, 200);
    actor = "nobody";
    EXPECT_EQ(create("x2").status, 403);
    EXPECT_EQ(detach("orders-1", "x").status, 403);
    actor = "adam";
    EXPECT_EQ(attach("orders-1", "other").status, 200);
    EXPECT_EQ(remove("other").status, 204);
    actor = "eve";
    apply(metastore::SetUserGrants{"eve", {}, 0});
    EXPECT_EQ(create("orders-2").status, 403);
    EXPECT_EQ(detach("orders-1", "x").status, 204) << "owner of one end";
  });
}

TEST_F(CreateTest, ARefusalOfRightsRestsOnABarrierWithinTheRequest) {
  run([&] {
    create("a");
    apply(metastore::CreateUser{tests::make_user("eve")});
    actor = "eve";
    store.during_barrier = [&] { apply(metastore::SetUserGrants{"eve", {{"admin", {}}}, 0}); };
    EXPECT_EQ(remove("a").status, 204);
  });
}

}  // namespace
