// Scenarios of applying: what a replica does with an entry that its disk refuses, that its release does not know, that changes nothing,
// that two writers race for or that is too large; each step by step, on servers with the production stores.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <optional>
#include <string>
#include <vector>

#include "engine/metastore/apply_schemas.h"
#include "engine/metastore/kept_rows.h"
#include "engine/metastore/replica.h"
#include "io/sim/switches.h"
#include "tests/support/any_command.h"
#include "tests/support/entry_log.h"
#include "tests/support/metastore_world.h"
#include "tests/support/topics.h"

namespace {

using namespace engine::metastore;
using namespace std::chrono_literals;
using io::sim::DiskOp;
using io::sim::FaultAction;
using tests::make_topic;
using tests::MetastoreWorld;

class ApplyScenario : public testing::Test {
 protected:
  static CreateTopic create(int i) { return {make_topic("t" + std::to_string(i))}; }
  static size_t other_than(size_t i) { return (i + 1) % 3; }
  static void refuse_writes(MetastoreWorld& cluster, size_t i) {
    cluster.volume(i).set_rates({{.prefix = "fsm.db/", .write_error_ppm = 1'000'000}});
  }
  static void refuse_room(MetastoreWorld& cluster, size_t i) {
    cluster.volume(i).set_rates({{.prefix = "fsm.db/", .no_space_ppm = 1'000'000}});
  }
  static Currency currency(MetastoreWorld& cluster, size_t i) {
    return Replica(cluster[i].machine->process()->env(), *cluster[i].server, *cluster[i].fsm).currency();
  }
  static std::optional<io::Status> barrier(MetastoreWorld& cluster, size_t i) {
    return cluster.on(i, [&cluster, i] {
      return Replica(cluster[i].machine->process()->env(), *cluster[i].server, *cluster[i].fsm).barrier(io::kNever);
    });
  }
  static std::optional<Code> code(const std::optional<Answer>& answer) {
    return answer ? std::optional(answer->code) : std::nullopt;
  }

  io::sim::Switchboard board;
  io::sim::SwitchboardGuard guard{&board};
};

// ---- The disk refuses ----------------------------------------------------------------------------------------------------------

// Scenario AP-01.
TEST_F(ApplyScenario, AnEntryThatOneNodesDiskRefusesStopsThatNodeThereAndARestartAppliesIt) {
  MetastoreWorld cluster(101);
  const size_t leader = cluster.lead();
  const size_t f = other_than(leader);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(cluster.writes(create(i)));
  ASSERT_TRUE(cluster.all_level());
  // Once: it is tried again, and goes on.
  cluster.volume(f).script({.action = FaultAction::error, .op = DiskOp::write, .prefix = "fsm.db/"});
  for (int i = 10; i < 15; ++i) ASSERT_TRUE(cluster.writes(create(i)));
  ASSERT_TRUE(cluster.all_level());
  EXPECT_EQ(cluster.volume(f).scripted_left(), 0u);
  // And again and again.
  const raft::Index before = cluster[f].fsm->applied_index();
  refuse_writes(cluster, f);
  for (int i = 15; i < 20; ++i) ASSERT_TRUE(cluster.writes(create(i))) << "the others go on";
  const io::Instant refused = cluster.world.now();
  ASSERT_TRUE(cluster.await_end(f, 60s));
  EXPECT_LE(cluster.world.now() - refused, 31s);
  EXPECT_EQ(cluster[f].exit_code, 1);
  EXPECT_NE(cluster[f].failure.find("could not write raft entry at index " + std::to_string(before + 1)), std::string::npos)
      << cluster[f].failure;
  EXPECT_EQ(cluster[f].digests.rbegin()->first, before) << "nothing after it was applied";
  cluster.volume(f).set_rates({});
  cluster.start(f);
  ASSERT_TRUE(cluster.all_level());
  EXPECT_TRUE(cluster.all_agree());
  EXPECT_TRUE(cluster[f].answers.contains(before + 1)) << "the restart has applied it";
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(cluster.has_topic(f, "t" + std::to_string(i)));
}

// Scenario AP-09.
TEST_F(ApplyScenario, AFullDiskIsSatOutForTwentySecondsAndAfterSixtyARestartGoesOnAtTheSameEntry) {
  MetastoreWorld cluster(109);
  const size_t leader = cluster.lead();
  const size_t f = other_than(leader);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(cluster.writes(create(i)));
  ASSERT_TRUE(cluster.all_level());

  refuse_room(cluster, f);
  for (int i = 5; i < 10; ++i) ASSERT_TRUE(cluster.writes(create(i)));
  cluster.world.run_for(20s);
  ASSERT_TRUE(cluster.is_up(f));
  EXPECT_LT(cluster[f].fsm->applied_index(), cluster[leader].fsm->applied_index());
  cluster.volume(f).set_rates({});
  ASSERT_TRUE(cluster.all_level(10s)) << "it goes on by itself";

  // The whole disk: its log takes nothing either, and nothing is acknowledged that is not there.
  const uint64_t capacity = cluster.volume(f).capacity();
  cluster.volume(f).set_capacity(cluster.volume(f).used());
  for (int i = 10; i < 200; ++i) ASSERT_TRUE(cluster.writes(create(i)));
  cluster.world.run_for(20s);
  cluster.volume(f).set_capacity(capacity);
  ASSERT_TRUE(cluster.is_up(f)) << cluster[f].failure;
  ASSERT_TRUE(cluster.all_level(10s));

  const raft::Index before = cluster[f].fsm->applied_index();
  refuse_room(cluster, f);
  for (int i = 200; i < 205; ++i) ASSERT_TRUE(cluster.writes(create(i)));
  cluster.world.run_for(60s);
  ASSERT_FALSE(cluster.is_up(f)) << "neither dead nor alive";
  EXPECT_EQ(cluster[f].exit_code, 1);
  EXPECT_EQ(cluster[f].digests.rbegin()->first, before);
  cluster.volume(f).set_rates({});
  cluster.start(f);
  ASSERT_TRUE(cluster.all_level());
  EXPECT_TRUE(cluster[f].answers.contains(before + 1)) << "the entry that was refused";
  EXPECT_TRUE(cluster.all_agree());
}

// ---- What a replica does not know, and what it must not ask ---------------------------------------------------------------------

// Scenario AP-02.
TEST_F(ApplyScenario, ALeaderThatDoesNotKnowAnEntrysTypeLeavesRaftAndTheOthersGoOnWithoutIt) {
  MetastoreWorld cluster(102);
  cluster[0].settings.newest_type = 32;  // a release before the remotes
  cluster.lead();
  ASSERT_TRUE(cluster.make_leader(0));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(cluster.writes(create(i)));
  ASSERT_TRUE(cluster.all_level());
  const raft::Index before = cluster[0].fsm->applied_index();

  const auto call = cluster.begin_propose(0, encode_command(DeleteRemote{.name = "east", .force = false, .actor = "", .request_id = ""}));
  ASSERT_TRUE(cluster.await_end(0, 5s)) << "it goes at once";
  EXPECT_EQ(cluster[0].exit_code, 1);
  EXPECT_NE(cluster[0].failure.find("has entry type 37, which this build (narad test) does not know"), std::string::npos)
      << cluster[0].failure;
  EXPECT_TRUE(call->has_value() && !(*call)->ok()) << "nobody is told that it was applied";
  EXPECT_EQ(cluster[0].digests.rbegin()->first, before);
  for (int second = 0; second < 60; ++second) {
    ASSERT_TRUE(cluster.writes(create(100 + second)));
    EXPECT_NE(cluster.leader(), 0);
    cluster.world.run_for(1s);
  }

  // Started again it finds the same entry, and neither counts nor passes it over.
  cluster.start(0);
  ASSERT_TRUE(cluster.await_end(0, 30s));
  EXPECT_EQ(cluster[0].exit_code, 1);
  EXPECT_EQ(cluster[0].digests.rbegin()->first, before);
  // The right release applies it.
  cluster[0].settings.newest_type = kNewestEntryType;
  cluster.start(0);
  ASSERT_TRUE(cluster.all_level());
  EXPECT_TRUE(cluster.all_agree());
}

// Scenario AP-03.
TEST_F(ApplyScenario, AnswersAndDigestsAreEqualWhateverAReplicasSettingsClockAndLivesAre) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    MetastoreWorld cluster(1030 + seed);
    cluster[0].settings.flush_bytes = 600;
    cluster[1].settings.flush_bytes = 8u << 20;
    cluster[1].machine->clock().set_drift_ppm(-90);
    cluster[1].machine->clock().jump_wall(std::chrono::hours(24 * 365));
    cluster[2].machine->set_slow_percent(300);
    cluster[1].settings.build = "narad of another build";
    // The bounds of raft's stores and the room on the disk are each one's own too.
    for (size_t i = 0; i < 3; ++i) {
      cluster.options.log.segment_bytes = 4096u << i;
      cluster.options.snapshots.threshold = std::vector<raft::Index>{1'000'000, 7, 40}[i];
      cluster.options.snapshots.store.chunk_bytes = 1024u << i;
      cluster.start(i);
    }
    ASSERT_GE(cluster.await_leader(), 0);
    cluster.world.run_for(500ms);
    ASSERT_TRUE(cluster.make_leader(0));
    for (uint64_t nth = 1; nth <= 3; ++nth) {
      cluster.volume(1).script({.action = io::sim::FaultAction::no_space, .op = io::sim::DiskOp::write, .prefix = "fsm.db/", .nth = 30 * nth});
    }
    const rc::Random random(seed);
    const auto commands = rc::gen::resize(60, rc::gen::container<tests::Commands>(250, tests::any_command()))(random).value();
    size_t done = 0;
    for (const Command& command : commands) {
      if (++done == commands.size() / 2) {
        cluster[2].machine->power_loss();
        cluster.world.run_for(1s);
        cluster.start(2);
      }
      if (done % 50 == 0) cluster[2].machine->clock().jump_wall(-std::chrono::hours(12));
      const auto call = cluster.begin_propose(0, encode_command(command));
      ASSERT_TRUE(cluster.run_until([&] { return call->has_value(); }, 10s));
      ASSERT_TRUE((*call)->ok()) << (*call)->reason;
    }
    ASSERT_TRUE(cluster.all_level());
    EXPECT_EQ(cluster[0].answers.size(), commands.size());
    EXPECT_GT(cluster[2].answers.size(), commands.size() / 3);
    EXPECT_EQ(cluster.volume(1).scripted_left(), 0u);
    EXPECT_TRUE(cluster.all_agree());
  }
}

// Scenario AP-04.
TEST_F(ApplyScenario, AnIdleClusterIsCaughtUpAndPassesBarriersWhateverTheKindOfItsLastEntry) {
  MetastoreWorld cluster(104);
  const size_t leader = cluster.lead();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(cluster.writes(create(i)));
  ASSERT_TRUE(cluster.all_level());
  const raft::Index applied = cluster[leader].fsm->applied_index();
  const size_t next = other_than(leader);
  ASSERT_TRUE(cluster.make_leader(next));
  cluster.world.run_for(2s);
  const auto expect_caught_up = [&] {
    const int now = cluster.await_leader();
    ASSERT_GE(now, 0);
    cluster.world.run_for(1s);
    for (size_t i = 0; i < 3; ++i) {
      SCOPED_TRACE(i);
      EXPECT_EQ(cluster[i].fsm->applied_index(), applied) << "an entry without a command is none of its business";
      EXPECT_GT(cluster[i].server->core().commit_index(), applied);
      EXPECT_EQ(currency(cluster, i), Currency::caught_up);
      const auto waited = cluster.on(i, [&cluster, i] {
        raft::RaftServer& server = *cluster[i].server;
        return server.wait_applied(server.core().commit_index(), cluster[i].machine->process()->env().after(3s));
      });
      EXPECT_EQ(waited, true);
    }
    const io::Instant begun = cluster.world.now();
    const auto passed = barrier(cluster, static_cast<size_t>(now));
    ASSERT_TRUE(passed.has_value());
    EXPECT_TRUE(passed->ok());
    EXPECT_LT(cluster.world.now() - begun, 1s);
  };
  expect_caught_up();
  const size_t follower = other_than(next);
  cluster.kill(follower);
  cluster.start(follower);
  cluster.world.run_for(2s);
  expect_caught_up();
  for (size_t i = 0; i < 3; ++i) cluster.kill(i);
  cluster.start_all();
  expect_caught_up();
}

// Scenario RS-07.
TEST_F(ApplyScenario, WhatWasRefusedBeforeARestartStaysRefusedThoughItWouldNowSucceed) {
  MetastoreWorld cluster(207);
  cluster.lead();
  const auto schema = [](const char* topic, int64_t version) { return PutSchema{topic, version, R"({"type":"object"})"}; };
  ASSERT_TRUE(cluster.writes(CreateTopic{make_topic("parent")}));
  ASSERT_TRUE(cluster.writes(CreateTopic{make_topic("child")}));
  ASSERT_TRUE(cluster.writes(schema("child", 1)));
  const auto refused = cluster.write(AttachChild{"parent", "child", "e1", 0, {}});
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->code, Code::fanout_schema_mismatch);
  ASSERT_TRUE(cluster.writes(schema("parent", 1))) << "the two now have the same";
  ASSERT_TRUE(cluster.all_level());
  const uint64_t digest = cluster[0].fsm->digest();
  const auto row = cluster.row(0, Bucket::topics, "child");

  for (size_t i = 0; i < 3; ++i) cluster.kill(i);
  cluster.start_all();
  ASSERT_GE(cluster.await_leader(), 0);
  ASSERT_TRUE(cluster.all_level());
  for (size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(cluster[i].row, raft::RestartRow::held);
    EXPECT_EQ(cluster[i].server->status().log_base, 0u) << "the whole log is handed out again";
    EXPECT_EQ(cluster[i].server->status().snapshot, 0u);
    EXPECT_EQ(cluster[i].fsm->digest(), digest);
    EXPECT_EQ(cluster.row(i, Bucket::topics, "child"), row);
  }
  EXPECT_EQ(code(cluster.write(AttachChild{"parent", "child", "e2", 0, {}})), Code::ok) << "an entry of now is judged by now";
}

// ---- Races and sizes -------------------------------------------------------------------------------------------------------------

// Scenario SX-01.
TEST_F(ApplyScenario, TwoLeadersCannotGiveOneSchemaVersionToTwoTexts) {
  MetastoreWorld cluster(301);
  const size_t a = cluster.lead();
  ASSERT_TRUE(cluster.writes(CreateTopic{make_topic("orders")}));
  ASSERT_TRUE(cluster.all_level());
  // A does not know yet that it is deposed when it takes s1; B gives the same version to s2.
  const std::string id = make_topic("orders").id;
  const PutSchemaIf s1{"orders", 1, R"({"title":"s1"})", id};
  const PutSchemaIf s2{"orders", 1, R"({"title":"s2"})", id};
  cluster.cut_off(a);
  const auto at_a = cluster.begin_propose(a, encode_command(s1));
  cluster.world.run_for(1ms);
  EXPECT_TRUE(cluster[a].server->is_leader());
  ASSERT_TRUE(cluster.run_until([&] { return cluster.leader() >= 0 && cluster.leader() != static_cast<int>(a); }, 10s));
  EXPECT_EQ(code(cluster.write(s2)), Code::ok);
  cluster.world.network().heal_all();
  ASSERT_TRUE(cluster.run_until([&] { return at_a->has_value(); }, 10s));
  EXPECT_FALSE((*at_a)->ok());
  // The loser asks again, is told, reads, and tries once more.
  EXPECT_EQ(code(cluster.write(s1)), Code::already_exists);
  const size_t b = static_cast<size_t>(cluster.await_leader());
  const auto head = decode_schema_head(cluster.row(b, Bucket::schema_heads, "orders").value_or(""));
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->versions, 1);
  EXPECT_EQ(code(cluster.write(PutSchemaIf{"orders", head->versions + 1, s1.schema, id})), Code::ok);
  // Two at one leader at once: one of them.
  const auto one = cluster.begin_propose(b, encode_command(PutSchemaIf{"orders", 3, R"({"title":"s3"})", id}));
  const auto other = cluster.begin_propose(b, encode_command(PutSchemaIf{"orders", 3, R"({"title":"s4"})", id}));
  ASSERT_TRUE(cluster.run_until([&] { return one->has_value() && other->has_value(); }, 10s));
  ASSERT_TRUE((*one)->ok() && (*other)->ok());
  EXPECT_NE(decode_answer((*one)->answer)->code == Code::ok, decode_answer((*other)->answer)->code == Code::ok);
  EXPECT_EQ(code(cluster.write(PutSchemaIf{"orders", 5, R"({"title":"s5"})", id})), Code::invalid_argument) << "none is left out";
  ASSERT_TRUE(cluster.all_level());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(cluster.row(i, Bucket::schemas, schema_key("orders", 1)), s2.schema);
    EXPECT_EQ(cluster.row(i, Bucket::schemas, schema_key("orders", 2)), s1.schema);
    EXPECT_TRUE(cluster.row(i, Bucket::schemas, schema_key("orders", 3)).has_value());
    EXPECT_FALSE(cluster.row(i, Bucket::schemas, schema_key("orders", 4)).has_value());
  }
}

// Scenario SX-03.
TEST_F(ApplyScenario, OneSchemaRegisteredAgainAndAgainInAnySpellingIsOneVersion) {
  MetastoreWorld cluster(303);
  const size_t leader = cluster.lead();
  ASSERT_TRUE(cluster.writes(CreateTopic{make_topic("orders")}));
  ASSERT_TRUE(cluster.writes(CreateTopic{make_topic("copy")}));
  const std::string id = make_topic("orders").id;
  const std::vector<std::string> spellings = {R"({"type":"object","maximum":10})", R"({ "maximum" : 10, "type" : "object" })",
                                              "{\n  \"type\": \"object\",\n  \"maximum\": 1.0e1\n}"};
  // From three clients at once, each of whom has read that there is none yet.
  std::vector<std::shared_ptr<std::optional<raft::Proposed>>> calls;
  for (const std::string& text : spellings) {
    calls.push_back(cluster.begin_propose(leader, encode_command(PutSchemaIf{"orders", 1, text, id})));
  }
  int taken = 0;
  for (const auto& call : calls) {
    ASSERT_TRUE(cluster.run_until([&] { return call->has_value(); }, 10s));
    ASSERT_TRUE((*call)->ok());
    const Code found = decode_answer((*call)->answer)->code;
    EXPECT_TRUE(found == Code::ok || found == Code::already_exists);
    taken += found == Code::ok ? 1 : 0;
  }
  EXPECT_EQ(taken, 1);
  // The answer is lost: the leader that took it dies, and the client asks the next one for the same.
  cluster.kill(leader);
  EXPECT_EQ(code(cluster.write(PutSchemaIf{"orders", 1, spellings[1], id})), Code::already_exists);
  cluster.start(leader);
  ASSERT_TRUE(cluster.all_level());
  const auto head = decode_schema_head(cluster.row(leader, Bucket::schema_heads, "orders").value_or(""));
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->versions, 1);
  // Where two histories are compared, another spelling is the same value.
  ASSERT_TRUE(cluster.writes(PutSchemaIf{"copy", 1, spellings[2], id}));
  EXPECT_EQ(code(cluster.write(AttachChildIf{{"orders", "copy", "e1", 0, {}}, id, id})), Code::ok);
  ASSERT_TRUE(cluster.all_level());
  EXPECT_EQ(decode_schema_head(cluster.row(leader, Bucket::schema_heads, "copy").value_or(""))->versions, 1);
}

// Scenario SX-05.
TEST_F(ApplyScenario, AnEntryOfAnySizeIsTakenAndAppliedOrRefusedBeforeItIsProposedAndTheLeaderStays) {
  MetastoreWorld cluster(305);
  cluster.options.log.segment_bytes = 1 << 20;
  cluster.options.log.fill_step_bytes = 256 << 10;
  for (auto& node : cluster.nodes) node->settings.flush_bytes = 1 << 20;
  const size_t leader = cluster.lead();
  ASSERT_TRUE(cluster.writes(CreateTopic{make_topic("big")}));
  ASSERT_TRUE(cluster.writes(CreateTopic{make_topic("parent")}));
  ASSERT_TRUE(cluster.writes(CreateTopic{make_topic("child")}));
  const std::string id = make_topic("big").id;
  const raft::Term term = cluster[leader].server->core().term();
  const uint64_t limit = cluster.options.core.payload_bytes_max;
  const size_t around = encode_command(PutSchema{"big", 1, std::string(1000, ' ')}).size() - 1000;

  const auto over = cluster.on(leader, [&] {
    return cluster[leader].server->propose(encode_command(PutSchema{"big", 1, std::string(limit - around + 8, ' ')}),
                                           cluster[leader].machine->process()->env().after(5s));
  });
  ASSERT_TRUE(over.has_value());
  EXPECT_EQ(over->outcome, raft::Outcome::too_large);
  EXPECT_EQ(code(cluster.write(PutSchemaIf{"big", 1, std::string(limit - around - 100, ' '), id})), Code::schema_history_full)
      << "it is sent and stored, and every replica says no";
  EXPECT_EQ(code(cluster.write(PutSchema{"big", 1, std::string(limit - around - 100, ' ')})), Code::ok) << "a release before had no such bound";
  ASSERT_TRUE(cluster.all_level());

  // A short entry that writes much: a history of a thousand versions, 4 MiB less a little, is copied to a child.
  for (int64_t version = 1; version <= kSchemaVersionsMax; ++version) {
    ASSERT_EQ(code(cluster.write(PutSchemaIf{"parent", version, std::string(4100, '1'), id})), Code::ok) << version;
  }
  EXPECT_EQ(code(cluster.write(PutSchemaIf{"parent", kSchemaVersionsMax + 1, "1", id})), Code::schema_history_full);
  EXPECT_EQ(code(cluster.write(AttachChildIf{{"parent", "child", "e1", 0, {}}, id, id})), Code::ok);
  ASSERT_TRUE(cluster.all_level());
  EXPECT_EQ(decode_schema_head(cluster.row(leader, Bucket::schema_heads, "child").value_or(""))->versions, kSchemaVersionsMax);
  EXPECT_EQ(cluster.leader(), static_cast<int>(leader));
  EXPECT_EQ(cluster[leader].server->core().term(), term) << "nobody resigned";
}

}  // namespace
