#include "engine/topics/manager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/topics/json.h"
#include "engine/topics/topic_json.h"
#include "tests/support/manager_world.h"

namespace {

using namespace engine;
using namespace engine::topics;
using namespace std::chrono_literals;
using Outcome = Proposed::Outcome;
using tests::error_of;
using ManagerTest = tests::ManagerWorld;

TEST_F(ManagerTest, CreateAnswersTheTopicWithoutARole) {
  run([&] {
    Reply reply = create("orders");
    EXPECT_EQ(reply.status, 201);
    EXPECT_TRUE(reply.body.ends_with("}\n"));
    auto topic = json::parse(reply.body);
    EXPECT_EQ(topic->find("name")->text, "orders");
    EXPECT_EQ(topic->find("partitions")->integer, 3);
    EXPECT_EQ(topic->find("id")->text.size(), 16u);
    EXPECT_EQ(topic->find("id")->text.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_EQ(topic->find("created_at")->integer, io::to_unix_seconds(env->clock.wall()));
    EXPECT_EQ(topic->find("role"), nullptr);
    Reply read = get("orders");
    EXPECT_EQ(read.status, 200);
    EXPECT_EQ(json::parse(read.body)->find("role")->text, "standalone");
    EXPECT_EQ(json::parse(read.body)->find("id")->text, topic->find("id")->text);
  });
}

TEST_F(ManagerTest, EachTopicHasAnIncarnationOfItsOwn) {
  run([&] {
    std::string first = json::parse(create("a").body)->find("id")->text;
    EXPECT_EQ(remove("a").status, 204);
    EXPECT_NE(json::parse(create("a").body)->find("id")->text, first);
  });
}

TEST_F(ManagerTest, CreateRefusesANameInUseInAnyLetterCase) {
  run([&] {
    create("Orders");
    EXPECT_EQ(create("Orders").status, 409);
    EXPECT_EQ(error_of(create("Orders")), "topic already exists: Orders");
    Reply clash = create("oRDERS");
    EXPECT_EQ(clash.status, 409);
    EXPECT_NE(error_of(clash).find("topic already exists: Orders"), std::string::npos) << "it names the other topic";
    EXPECT_EQ(store.proposals, 1);
    EXPECT_EQ(remove("Orders").status, 204);
    EXPECT_EQ(create("oRDERS").status, 201);
  });
}

TEST_F(ManagerTest, ARefusalByTheStateMachineIsAConflict) {
  run([&] {
    store.before_propose = [&] { store.apply(metastore::encode_create_topic(tests::make_topic("a"))); };
    Reply reply = create("a");
    EXPECT_EQ(reply.status, 409);
    EXPECT_EQ(error_of(reply), "topic already exists: a");
    store.before_propose = [&] { store.apply(metastore::encode_delete_topic("a")); };
    EXPECT_EQ(alter("a", R"({"retention_ms":0})").status, 404);
  });
}

TEST_F(ManagerTest, ABadBodyIsJudgedBeforeAnythingElse) {
  store.leads = false;
  run([&] {
    EXPECT_EQ(manager->create("{", {}, io::kNever).status, 400);
    EXPECT_EQ(alter("missing", "{}").status, 400);
    EXPECT_EQ(store.reads, 0);
  });
}

TEST_F(ManagerTest, AlterChangesWhatItNamesAndKeepsTheRest) {
  run([&] {
    create("a");
    Reply reply = alter("a", R"({"retention_ms":0,"max_in_flight_per_partition":5,"partitions":6})");
    EXPECT_EQ(reply.status, 200);
    auto topic = json::parse(reply.body);
    EXPECT_EQ(topic->find("retention_ms")->integer, 0);
    EXPECT_EQ(topic->find("max_in_flight_per_partition")->integer, 5);
    EXPECT_EQ(topic->find("max_acked_ahead_per_partition")->integer, 1024);
    EXPECT_EQ(topic->find("partitions")->integer, 6);
    EXPECT_EQ(topic->find("role")->text, "standalone");
    EXPECT_EQ(store.proposals, 2) << "one entry, so that nobody reads half of a request";
    auto read = json::parse(get("a").body);
    EXPECT_EQ(read->find("retention_ms")->integer, 0);
    EXPECT_EQ(read->find("partition_stats")->array.size(), 6u);
  });
}

TEST_F(ManagerTest, PartitionsOnlyGrow) {
  run([&] {
    manager->create(R"({"name":"a","partitions":5})", {}, io::kNever);
    for (const char* body : {R"({"partitions":5})", R"({"partitions":4})", R"({"retention_ms":0,"partitions":5})"}) {
      Reply reply = alter("a", body);
      EXPECT_EQ(reply.status, 400);
      EXPECT_EQ(error_of(reply), "invalid argument: partitions must be more than the topic has (5)");
    }
    EXPECT_EQ(json::parse(get("a").body)->find("retention_ms")->integer, 604'800'000);
  });
}

TEST_F(ManagerTest, MissingTopicsAre404) {
  run([&] {
    for (const Reply& reply : {get("a"), alter("a", R"({"retention_ms":0})"), remove("a"), manager->get_record("a", io::kNever)}) {
      EXPECT_EQ(reply.status, 404);
      EXPECT_EQ(reply.body, "{\"error\":\"topic not found\"}\n");
    }
    EXPECT_EQ(store.proposals, 0);
  });
}

TEST_F(ManagerTest, DeleteMayNameTheIncarnation) {
  run([&] {
    std::string id = json::parse(create("a").body)->find("id")->text;
    Reply other = manager->remove("a", "0000000000000000", {}, io::kNever);
    EXPECT_EQ(other.status, 409);
    EXPECT_EQ(error_of(other), "topic changed since it was read");
    EXPECT_EQ(manager->remove("a", id, {}, io::kNever).status, 204);
    EXPECT_EQ(manager->remove("a", "", {}, io::kNever).status, 404);
    EXPECT_EQ(manager->remove("a", "", {}, io::kNever).body, "{\"error\":\"topic not found\"}\n");
  });
}

TEST_F(ManagerTest, WithoutLeadershipNothingIsProposed) {
  store.leads = false;
  run([&] {
    store.apply(metastore::encode_create_topic(tests::make_topic("a")));
    for (const Reply& reply : {create("b"), alter("a", R"({"retention_ms":0})"), remove("a")}) {
      EXPECT_EQ(reply.status, 503);
      EXPECT_TRUE(error_of(reply).starts_with(kUnavailableText));
    }
    EXPECT_EQ(store.proposals, 0);
    EXPECT_EQ(get("a").status, 200) << "reads need no leader";
  });
}

TEST_F(ManagerTest, OneBarrierATermComesBeforeItsOwnReplicaIsTrusted) {
  run([&] {
    store.during_barrier = [&] { EXPECT_EQ(store.reads, 0) << "the first read comes after the barrier"; };
    create("a");
    create("b");
    EXPECT_EQ(store.barriers, 1);
    store.during_barrier = nullptr;
    store.current_term = 2;
    remove("a");
    EXPECT_EQ(store.barriers, 2);
    remove("b");
    EXPECT_EQ(store.barriers, 2);
  });
}

TEST_F(ManagerTest, ARefusalRestsOnABarrierWithinTheRequest) {
  run([&] {
    create("a");
    // The replica shows a topic that the cluster deleted meanwhile: the barrier brings the news.
    store.during_barrier = [&] { store.apply(metastore::encode_delete_topic("a")); };
    EXPECT_EQ(create("a").status, 201);
    EXPECT_EQ(store.barriers, 2);
    store.during_barrier = [&] { store.apply(metastore::encode_create_topic(tests::make_topic("b"))); };
    EXPECT_EQ(alter("b", R"({"retention_ms":0})").status, 200);
    EXPECT_EQ(store.barriers, 3);
    store.during_barrier = nullptr;
    store.barrier_status = io::fail(io::ErrorKind::timed_out, "no quorum");
    for (const Reply& reply : {create("a"), alter("c", R"({"retention_ms":0})"), alter("a", R"({"partitions":3})"), remove("c")}) {
      EXPECT_EQ(reply.status, 503) << "what cannot be confirmed is not refused";
    }
  });
}

// The older entries carry no comparison: one that was judged before another leader's changes must not follow them.
TEST_F(ManagerTest, AWriteIsNotProposedInALaterTermThanItWasJudgedIn) {
  gate.newest = 22;
  run([&] {
    create("a");
    create("b");
    ASSERT_EQ(attach("a", "b").status, 200);
    create("c");
    const std::pair<const char*, std::function<Reply()>> writes[] = {
        {"create", [&] { return create("d"); }},        {"alter", [&] { return alter("a", R"({"retention_ms":3600000})"); }},
        {"detach", [&] { return detach("a", "b"); }},    {"attach", [&] { return attach("a", "c"); }},
        {"remove", [&] { return remove("c"); }},
    };
    for (const auto& [what, write] : writes) {
      SCOPED_TRACE(what);
      const int proposed = store.proposals;
      store.during_read = [&] {
        ++store.current_term;  // deposed, and elected again
        store.during_read = nullptr;
      };
      const Reply reply = write();
      EXPECT_EQ(reply.status, 503) << reply.body;
      EXPECT_TRUE(engine::is_unavailable(reply.status, reply.body)) << reply.body;
      EXPECT_EQ(store.proposals, proposed);
      EXPECT_LT(write().status, 300) << "judged anew, it is proposed";
    }
  });
}

TEST_F(ManagerTest, AFailedBarrierIsUnavailable) {
  store.barrier_status = io::fail(io::ErrorKind::timed_out, "no quorum");
  run([&] {
    EXPECT_EQ(create("a").status, 503);
    EXPECT_EQ(store.proposals, 0);
    store.barrier_status = {};
    EXPECT_EQ(create("a").status, 201);
  });
}

TEST_F(ManagerTest, LeadershipLostDuringTheBarrierIsNoLeadership) {
  store.during_barrier = [&] { store.current_term = 5; };
  run([&] {
    EXPECT_EQ(create("a").status, 503);
    store.during_barrier = nullptr;
    EXPECT_EQ(create("a").status, 201);
    EXPECT_EQ(store.barriers, 2);
  });
}

TEST_F(ManagerTest, OutcomesOfAProposalHaveTheirStatuses) {
  run([&] {
    store.outcome = Outcome::too_large;
    const Reply long_one = create("a");
    EXPECT_EQ(long_one.status, 413) << "no other leader would take it either: it is not to be tried again";
    EXPECT_EQ(error_of(long_one), "change too large");
    EXPECT_FALSE(is_unavailable(long_one.status, long_one.body));
    for (Outcome outcome : {Outcome::not_leader, Outcome::refused, Outcome::stopped}) {
      store.outcome = outcome;
      Reply reply = create("a");
      EXPECT_EQ(reply.status, 503);
      EXPECT_EQ(error_of(reply), "control plane temporarily unavailable: as the test wants it");
    }
    EXPECT_EQ(store.barriers, 1);
    store.outcome = Outcome::unknown;
    Reply reply = create("a");
    EXPECT_EQ(reply.status, 503);
    EXPECT_EQ(error_of(reply),
              "control plane temporarily unavailable: the change may still be applied, read it back before retrying");
  });
}

TEST_F(ManagerTest, AfterAnUnknownOutcomeTheReplicaIsNotTrustedUntilABarrier) {
  run([&] {
    create("a");
    EXPECT_EQ(store.barriers, 1);
    store.outcome = Outcome::unknown;
    EXPECT_EQ(alter("a", R"({"retention_ms":0})").status, 503);
    store.outcome = Outcome::applied;
    store.during_barrier = [&] {
      metastore::Topic late = *metastore::decode_topic(*store.rows.read("topics/a"));
      late.retention_ms = 0;
      store.apply(metastore::encode_update_topic(late));
    };
    EXPECT_EQ(alter("a", R"({"max_in_flight_per_partition":5})").status, 200);
    EXPECT_EQ(store.barriers, 2);
    EXPECT_EQ(json::parse(get("a").body)->find("retention_ms")->integer, 0) << "the late change is not undone";
  });
}

TEST_F(ManagerTest, ACancelledRequestLeavesItsOutcomeUnknown) {
  run([&] {
    create("a");
    store.delay = 1s;
    io::with_scope([&](io::Scope& scope) {
      io::Task task = scope.spawn("request", [&] { (void)alter("a", R"({"retention_ms":0})"); });
      io::sleep_for(10ms);
      task.cancel();
    });
    store.delay = {};
    EXPECT_EQ(remove("a").status, 204) << "its lock is free";
    EXPECT_EQ(store.barriers, 2);
  });
}

TEST_F(ManagerTest, AReplicaThatCannotBeReadIsUnavailable) {
  store.read_error = io::fail(io::ErrorKind::busy, "closed");
  run([&] {
    EXPECT_EQ(create("a").status, 503);
    EXPECT_EQ(get("a").status, 503);
    EXPECT_EQ(alter("a", R"({"retention_ms":0})").status, 503);
    EXPECT_EQ(manager->list({}, {}, io::kNever).status, 503);
  });
}

TEST_F(ManagerTest, RequestsForOneNameTakeTurnsInAnyLetterCase) {
  store.delay = 100ms;
  run([&] {
    std::vector<int> statuses;
    io::with_scope([&](io::Scope& scope) {
      for (const char* name : {"a", "A", "a", "b"}) {
        scope.spawn("request", [&, name] { statuses.push_back(create(name).status); });
      }
    });
    std::sort(statuses.begin(), statuses.end());
    EXPECT_EQ(statuses, (std::vector<int>{201, 201, 409, 409}));
    EXPECT_EQ(store.proposals, 2) << "the later ones saw the first one's topic";
  });
}

TEST_F(ManagerTest, ALockThatIsNotFreeByTheDeadlineIsUnavailable) {
  store.delay = 10s;
  run([&] {
    io::with_scope([&](io::Scope& scope) {
      scope.spawn("holder", [&] { EXPECT_EQ(create("a").status, 201); });
      io::sleep_for(10ms);
      Reply reply = manager->remove("a", {}, {}, env->after(1s));
      EXPECT_EQ(reply.status, 503);
      EXPECT_EQ(store.proposals, 1);
    });
    EXPECT_EQ(remove("a").status, 204);
  });
}

TEST_F(ManagerTest, AProposalHasFiveSecondsAtMost) {
  run([&] {
    const io::Instant began = env->now();
    create("a");
    EXPECT_GE(store.last_deadline, began + kProposeTimeout);
    EXPECT_LE(store.last_deadline, env->now() + kProposeTimeout);
    const io::Instant deadline = env->after(1s);
    manager->create(R"({"name":"b"})", {}, deadline);
    EXPECT_EQ(store.last_deadline, deadline);
  });
}

TEST_F(ManagerTest, ListWalksPagesInNameOrder) {
  run([&] {
    for (const char* name : {"d", "a", "c", "b", "e"}) {
      create(name);
    }
    std::vector<std::string> seen;
    std::optional<std::string> token;
    std::vector<std::string> tokens;
    do {
      Reply reply = manager->list("2", token, io::kNever);
      ASSERT_EQ(reply.status, 200);
      auto page = parse_topic_list_json(reply.body);
      for (const auto& topic : page->topics) {
        seen.push_back(topic.name);
        EXPECT_EQ(topic.role, metastore::Role::standalone);
      }
      token = page->next_page_token;
      tokens.push_back(*token);
    } while (!token->empty());
    EXPECT_EQ(seen, (std::vector<std::string>{"a", "b", "c", "d", "e"}));
    EXPECT_EQ(tokens, (std::vector<std::string>{"b", "d", ""}));
    EXPECT_EQ(manager->list("5", {}, io::kNever).body.find("\"next_page_token\":\"\"") != std::string::npos, true);
    EXPECT_EQ(manager->list({}, "zz", io::kNever).body, "{\"topics\":[],\"next_page_token\":\"\"}\n");
    EXPECT_EQ(manager->list("0", {}, io::kNever).status, 400);
  });
}

TEST_F(ManagerTest, APartitionIsAskedForByItsNumber) {
  run([&] {
    create("a");
    auto one = json::parse(manager->get("a", "2", io::kNever).body);
    EXPECT_EQ(one->find("partition_stats")->array.size(), 1u);
    for (const char* wrong : {"3", "-1", "x", "1.0", "99999999999"}) {
      EXPECT_EQ(manager->get("a", wrong, io::kNever).status, 400) << wrong;
    }
    EXPECT_EQ(manager->get("b", "x", io::kNever).status, 404);
    EXPECT_EQ(json::parse(manager->get("a", "", io::kNever).body)->find("partition_stats")->array.size(), 3u);
  });
}

TEST_F(ManagerTest, RowsOfPartitionsTellWhoOwnsThemAndWhetherItCanBeAsked) {
  run([&] {
    create("a");
    store.apply(metastore::encode_command(metastore::RegisterMember{tests::make_member("n1")}));
    store.apply(metastore::encode_command(metastore::RegisterMember{tests::make_member("n2", metastore::MemberStatus::dead)}));
    for (const auto& [partition, owner] : {std::pair(0, "n1"), std::pair(1, "n2"), std::pair(5, "n1")}) {
      store.apply(metastore::encode_command(metastore::AssignPartition{{"a", partition, owner, ""}}));
    }
    auto rows = json::parse(get("a").body)->find("partition_stats")->array;
    ASSERT_EQ(rows.size(), 3u) << "a row beyond the topic's partitions is passed over";
    EXPECT_EQ(rows[0].find("owner_node")->text, "n1");
    EXPECT_EQ(rows[0].find("status")->text, "ok");
    EXPECT_EQ(rows[0].find("owner_liveness"), nullptr);
    EXPECT_EQ(rows[1].find("owner_node")->text, "n2");
    EXPECT_EQ(rows[1].find("owner_liveness")->text, "dead");
    EXPECT_EQ(rows[2].find("owner_liveness")->text, "unassigned");
    EXPECT_TRUE(json::parse(get("a").body)->find("partial")->boolean);
    EXPECT_EQ(json::parse(manager->get("a", "0", io::kNever).body)->find("partial"), nullptr);
    store.apply(metastore::encode_command(metastore::AssignPartition{{"a", 0, "n9", ""}}));
    EXPECT_EQ(json::parse(get("a").body)->find("partition_stats")->array[0].find("owner_liveness")->text, "unknown");
  });
}

TEST(StatusOf, FollowsTheTableOfErrors) {
  using metastore::Code;
  EXPECT_EQ(status_of(Code::not_found), 404);
  EXPECT_EQ(status_of(Code::already_exists), 409);
  EXPECT_EQ(status_of(Code::topic_already_exists), 409);
  EXPECT_EQ(status_of(Code::invalid_argument), 400);
  EXPECT_EQ(status_of(Code::topic_changed), 409);
  EXPECT_EQ(status_of(Code::fanout_delay_too_long), 409);
  EXPECT_EQ(status_of(Code::schema_history_full), 409);
  EXPECT_EQ(status_of(Code::member_removed), 410);
  EXPECT_EQ(status_of(Code::root_protected), 403);
}

}  // namespace
