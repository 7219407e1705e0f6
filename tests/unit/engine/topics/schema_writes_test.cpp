// Schemas through the manager: versions, base versions, budgets, children's copies, and what GET shows of them.

#include <gtest/gtest.h>

#include "engine/metastore/apply_schemas.h"
#include "tests/support/manager_world.h"

namespace {

using namespace engine;
using namespace engine::topics;
using metastore::Code;
using Outcome = Proposed::Outcome;
using tests::error_of;
using Types = std::vector<uint32_t>;

struct SchemaWritesTest : tests::ManagerWorld, testing::WithParamInterface<uint32_t> {
  SchemaWritesTest() { gate.newest = GetParam(); }
  Types put() const { return gate.newest > 22 ? Types{26} : Types{4}; }
  Reply schemas(const std::string& name) { return manager->schemas(name, io::kNever); }
};

INSTANTIATE_TEST_SUITE_P(Releases, SchemaWritesTest, testing::Values(22u, 32u));

TEST_P(SchemaWritesTest, EachWideningIsAVersionAndEqualValuesAreNone) {
  run([&] {
    create("a");
    EXPECT_EQ(schemas("a").body, "{\"topic\":\"a\",\"version\":0,\"versions\":[]}\n");
    EXPECT_EQ(json::parse(get("a").body)->find("schema_version")->integer, 0);
    EXPECT_EQ(json::parse(get("a").body)->find("schema"), nullptr);
    proposed();
    EXPECT_EQ(alter("a", R"({"schema":{"type":"object","minProperties":2}})").status, 200);
    EXPECT_EQ(proposed(), put());
    EXPECT_EQ(alter("a", R"({"schema":{"minProperties":2.0,"type":"object"}})").status, 200) << "the same value";
    EXPECT_EQ(alter("a", R"({"schema":{"type":"object","minProperties":2,"title":"t"}})").status, 200) << "annotations alone";
    EXPECT_EQ(proposed(), Types{});
    EXPECT_EQ(alter("a", R"({"schema":{"type":"object"}})").status, 200);
    EXPECT_EQ(proposed(), put());
    const Reply narrower = alter("a", R"({"schema":{"type":"object","minProperties":1}})");
    EXPECT_EQ(narrower.status, 400);
    EXPECT_EQ(error_of(narrower),
              "invalid argument: schema: it accepts less than version 2: #: minProperties must not accept less than before");
    EXPECT_EQ(proposed(), Types{});
    EXPECT_EQ(schemas("a").body,
              "{\"topic\":\"a\",\"version\":2,\"versions\":[{\"version\":1,\"schema\":{\"type\":\"object\",\"minProperties\":2}},"
              "{\"version\":2,\"schema\":{\"type\":\"object\"}}]}\n");
    EXPECT_EQ(json::parse(get("a").body)->find("schema_version")->integer, 2);
    EXPECT_EQ(json::parse(get("a").body)->find("schema")->find("type")->text, "object");
    EXPECT_EQ(schemas("b").status, 404);
  });
}

TEST_P(SchemaWritesTest, ABaseVersionMustBeTheLatest) {
  run([&] {
    create("a");
    EXPECT_EQ(alter("a", R"({"schema":{"type":"object"},"schema_base_version":0})").status, 200);
    proposed();
    const Reply stale = alter("a", R"({"schema":{},"schema_base_version":0})");
    EXPECT_EQ(stale.status, 409);
    EXPECT_EQ(error_of(stale), "schema version conflict: the topic's schema is at version 1, not 0");
    EXPECT_EQ(alter("a", R"({"retention_ms":0,"schema":{},"schema_base_version":2})").status, 409);
    EXPECT_EQ(proposed(), Types{}) << "nothing of a request that is refused";
    EXPECT_EQ(alter("a", R"({"schema":{},"schema_base_version":1})").status, 200);
    EXPECT_EQ(proposed(), put());
  });
}

TEST_P(SchemaWritesTest, RecordAndSchemaAreTwoEntries) {
  run([&] {
    create("a");
    proposed();
    const Reply reply = alter("a", R"({"retention_ms":0,"partitions":5,"schema":true})");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(*parse_topic_json(reply.body), [&] {
      auto topic = stored("a");
      topic.role = metastore::Role::standalone;
      return topic;
    }());
    EXPECT_EQ(proposed(), gate.newest > 22 ? (Types{24, 26}) : (Types{2, 4}));
    store.fate = [](uint32_t type) { return type == 4 || type == 26 ? Outcome::unknown : Outcome::applied; };
    EXPECT_EQ(alter("a", R"({"retention_ms":3600000,"schema":{}})").status, 503) << "{} accepts what true accepts, but is another value";
    EXPECT_EQ(stored("a").retention_ms, 3600000);
  });
}

TEST_P(SchemaWritesTest, ARecordWhoseSchemaFoundNoLeaderIsNotCalledUnchanged) {
  run([&] {
    create("a");
    store.fate = [](uint32_t type) { return type == 4 || type == 26 ? Outcome::not_leader : Outcome::applied; };
    const Reply reply = alter("a", R"({"partitions":5,"schema":true})");
    EXPECT_EQ(reply.status, 503);
    EXPECT_NE(reply.body.find(engine::kOutcomeUnknownText), std::string::npos) << reply.body;
    EXPECT_FALSE(engine::is_unavailable(reply.status, reply.body)) << "whoever forwards it would ask for the five partitions again";
    EXPECT_EQ(stored("a").partitions, 5);
    const Reply untouched = alter("a", R"({"schema":true})");
    EXPECT_TRUE(engine::is_unavailable(untouched.status, untouched.body)) << untouched.body;
  });
}

TEST_P(SchemaWritesTest, ChildrenFollowTheirParentAndAreNotWrittenThemselves) {
  run([&] {
    create("p");
    create("c");
    attach("p", "c");
    EXPECT_EQ(alter("p", R"({"schema":{"type":"object"}})").status, 200);
    EXPECT_EQ(json::parse(schemas("c").body)->find("version")->integer, 1);
    proposed();
    const Reply managed = alter("c", R"({"schema":{}})");
    EXPECT_EQ(managed.status, 409);
    EXPECT_EQ(error_of(managed), "schema is parent-managed while attached to a fan-out parent: topic c");
    EXPECT_EQ(proposed(), Types{});
  });
}

TEST_P(SchemaWritesTest, BudgetsAreCheckedBeforeAnythingIsProposed) {
  run([&] {
    create("a");
    // 16 versions of 250 KiB each fit into 4 MiB, and the 17th does not.
    std::string reply;
    int versions = 0;
    for (int i = 0; i < 17; ++i) {
      std::string values = "1";
      for (int value = 2; value <= i + 2; ++value) {
        values += "," + std::to_string(value);
      }
      const std::string body = "{\"schema\":{\"enum\":[" + values + "],\"title\":\"" + std::string(250 << 10, 't') + "\"}}";
      proposed();
      const Reply answer = alter("a", body);
      versions += answer.status == 200 ? 1 : 0;
      reply = answer.status == 200 ? "" : error_of(answer);
    }
    EXPECT_EQ(versions, 16);
    EXPECT_TRUE(reply.starts_with("schema history is full: ")) << reply;
    EXPECT_EQ(proposed(), Types{});
  });
}

TEST_P(SchemaWritesTest, AVersionThatAnotherLeaderTookIsReadAgain) {
  run([&] {
    create("a");
    bool is_first = true;
    store.before_propose = [&] {
      if (std::exchange(is_first, false)) {
        apply(metastore::PutSchema{"a", 1, R"({"type":"object"})"});
      }
    };
    EXPECT_EQ(alter("a", R"({"schema":{}})").status, 200);
    EXPECT_EQ(json::parse(schemas("a").body)->find("version")->integer, 2);
    is_first = true;
    store.before_propose = [&] {
      if (std::exchange(is_first, false)) {
        apply(metastore::PutSchema{"a", 3, "true"});
      }
    };
    EXPECT_EQ(alter("a", R"({"schema":{"$comment":"x"}})").status, 200) << "judged by the version that is there now";
  });
}

}  // namespace
