// Stories of members, told with whole nodes in the simulated world: silence, clocks that disagree, joiners of older releases, a node
// that asks for its own removal. How clusters form and grow: membership_test.cpp.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "engine/cluster/cluster_frames.h"
#include "engine/cluster/forward.h"
#include "tests/support/member_world.h"

namespace engine::cluster {
namespace {

using namespace std::chrono_literals;
using metastore::Member;
using metastore::MemberStatus;

struct CrowdedDoor : tests::MemberWorld {};

TEST_F(CrowdedDoor, ARequestWhoseTurnDoesNotComeInTimeIsAnsweredAndAskedAgain) {
  start_first();
  const size_t leader = await_leader();
  // No change of the configuration is committed: an admission holds the door until it gives up, a little later than who waits behind it,
  // since its barrier takes its time as well.
  for (size_t i = 0; i < 3; ++i) {
    if (i != leader) nodes[i].machine->volume().stall();
  }
  world.network().set_latency({{{1'000'000, 150ms, 151ms}}});
  std::vector<CallResult> answers;
  nodes[leader].machine->process()->spawn("joiners", [&] {
    io::Env& env = nodes[leader].machine->process()->env();
    io::with_scope([&](io::Scope& scope) {
      for (const char* id : {"n7", "n8"}) {
        scope.spawn("joiner", [&, id] {
          NodeClientPool pool(env, {});
          io::with_scope([&](io::Scope& own) {
            pool.run(own);
            const JoinClusterRequest request{id, std::string(id) + ":7943", true, metastore::kNewestEntryType};
            answers.push_back(pool.call(nodes[leader].config.cluster.addr, encode(request), env.after(30s)));
            own.cancel();
          });
        });
      }
    });
  });
  ASSERT_TRUE(world.run_while([&] { return answers.empty(); }, world.now() + 20s));
  EXPECT_EQ(answers[0].reply.status, 503);
  EXPECT_EQ(count_lines(leader, "join cluster: admission failed"), 0u) << "it was answered while the first still had its turn";
  ASSERT_TRUE(world.run_while([&] { return answers.size() < 2; }, world.now() + 20s));
  EXPECT_EQ(count_lines(leader, "join cluster: admission failed"), 1u);
  for (size_t i = 0; i < 3; ++i) nodes[i].machine->volume().release();
}

struct MembershipScenario : tests::MemberWorld {
  std::string id(size_t i) const { return nodes[i].config.cluster.node_id; }
  // All five, as voters on record.
  void start_five() {
    start_first();
    start(3);
    start(4);
    ASSERT_TRUE(eventually([&] { return is_voter(3) && is_voter(4); }, 90s));
    ASSERT_TRUE(eventually([&] { return members().size() == 5; }, 10s));
  }
  // A fourth one beside the three, as a voter on record.
  void start_four() {
    start_first();
    start(3);
    ASSERT_TRUE(eventually([&] { return is_voter(3); }, 60s));
    ASSERT_TRUE(eventually([&] { return members().size() == 4; }, 10s));
  }
  std::map<std::string, Member> members() {
    std::map<std::string, Member> found;
    on_leader([&](NodeView& view, io::Env&) {
      const auto records = metastore::list_members(view.fsm);
      ASSERT_TRUE(records.ok());
      for (const Member& record : *records) found.emplace(record.id, record);
    });
    return found;
  }
  std::string dead() {
    std::string ids;
    for (const auto& [id, record] : members()) ids += record.status == MemberStatus::dead ? id + " " : "";
    return ids;
  }
  void hand_leadership_to(size_t next) {
    on_leader([&](NodeView& view, io::Env& env) { EXPECT_TRUE(view.raft.transfer_leadership(id(next), env.after(5s)).ok()); });
    ASSERT_TRUE(eventually([&] { return leader() == next; }, 10s));
  }
  // Its request for its own removal is answered in good time.
  void expect_soon(size_t asked, const std::string& what, int status) {
    const io::Instant begun = world.now();
    const api::HttpResponse answer = ask(asked, "POST", "/v1/cluster/members/" + id(asked) + "/" + what);
    EXPECT_EQ(answer.status, status) << answer.body;
    EXPECT_LE(world.now() - begun, kReadYourWriteWait + 1s) << "on the leader's word, whatever its own replica holds";
  }
  // It starts with what it has, again and again, and is kept out.
  void expect_kept_out(size_t i) {
    for (int life = 0; life < 2; ++life) {
      SCOPED_TRACE(life);
      kill(i);
      start(i);
      world.run_for(40s);
      EXPECT_FALSE(is_server(i));
      EXPECT_FALSE(members().contains(id(i)));
      EXPECT_NE(ask(i, "GET", "/readyz").status, 200);
    }
  }
};

// ---- Silence -----------------------------------------------------------------------------------------------------------------

// Scenario HB-01, with whole nodes: the leader dies without a word; one member hears nothing of the next one for 25 s.
TEST_F(MembershipScenario, ANewLeaderMarksNobodyDeadBeforeItHasCountedAFullSilenceItself) {
  start_five();
  world.run_for(20s);
  const size_t old = await_leader();
  const size_t late = (old + 1) % 5;
  // 1.
  for (size_t i = 0; i < 5; ++i) {
    if (i != late) world.network().cut_both(*nodes[late].machine, *nodes[i].machine);
  }
  world.run_for(8s);
  ASSERT_EQ(await_leader(), old) << "its records grow old before it dies";
  nodes[old].machine->power_loss();
  nodes[old].view.reset();
  const size_t next = await_leader();
  const io::Instant begun = world.now();
  // 2. The first ticks see records that are older than the silence of a dead member.
  world.run_for(25s);
  EXPECT_EQ(dead(), "");
  world.network().heal_all();
  EXPECT_TRUE(eventually([&] { return !dead().empty(); }, 20s));
  EXPECT_EQ(dead(), id(old) + " ");
  EXPECT_GE(world.now() - begun, 30s);
  world.run_for(1min);
  EXPECT_EQ(await_leader(), next);
  EXPECT_EQ(dead(), id(old) + " ");
}

// ---- Clocks ------------------------------------------------------------------------------------------------------------------

// Scenario CK-03.
TEST_F(MembershipScenario, MembersWhoseClocksAreMinutesOffAreJudgedByTheLeadersOwnCountAlone) {
  start_five();
  const size_t first = await_leader();
  const size_t ahead = (first + 1) % 5;
  const size_t behind = (first + 2) % 5;
  const size_t third = (first + 3) % 5;
  const size_t silent = (first + 4) % 5;
  // 1. A member's clock is ten minutes ahead, another's is as much behind: nobody is dead for it, and who falls silent is.
  nodes[ahead].machine->clock().jump_wall(10min);
  nodes[behind].machine->clock().jump_wall(-10min);
  world.run_for(90s);
  ASSERT_EQ(await_leader(), first);
  EXPECT_EQ(dead(), "");
  const auto before = members();
  const int64_t clock = io::to_unix_seconds(nodes[first].machine->clock().wall());
  for (const auto& [id, record] : before) {
    EXPECT_GE(record.last_heartbeat, clock - 6) << id;
    EXPECT_LE(record.last_heartbeat, clock + 1) << id << ": by the leader's clock";
  }
  // 2. The next leader's clock is a third one, and older than every stamp there is.
  nodes[third].machine->clock().jump_wall(-20min);
  hand_leadership_to(third);
  world.run_for(90s);
  ASSERT_EQ(await_leader(), third);
  EXPECT_EQ(dead(), "");
  for (const auto& [id, record] : members()) {
    EXPECT_GT(record.last_heartbeat, before.at(id).last_heartbeat) << id << ": the newer heartbeat is the later one in the log";
    EXPECT_LT(record.last_heartbeat, before.at(id).last_heartbeat + 60) << id << ": counted, no calendar";
  }
  kill(silent);
  world.run_for(28s);
  EXPECT_EQ(dead(), "");
  EXPECT_TRUE(eventually([&] { return dead() == id(silent) + " "; }, 15s)) << dead();
  start(silent);
  EXPECT_TRUE(eventually([&] { return dead().empty(); }, 10s)) << dead();
  // And one whose clock is ahead of all of them.
  hand_leadership_to(ahead);
  world.run_for(90s);
  ASSERT_EQ(await_leader(), ahead);
  EXPECT_EQ(dead(), "");
}

// ---- Removal -----------------------------------------------------------------------------------------------------------------

// Scenario MB-15, both steps: D asks at itself to be taken out of the servers, an entry that never reaches it; then it starts again.
TEST_F(MembershipScenario, ANodeThatForwardsItsOwnRemovalIsAnsweredOnTheLeadersWordAndStaysOut) {
  start_four();
  world.run_for(13s);
  ASSERT_NE(await_leader(), 3u);
  commit(metastore::RemoveMember{"n4", 1});
  expect_soon(3, "forget", 200);
  EXPECT_FALSE(is_server(3));
  EXPECT_NE(nodes[3].view->raft.core().configuration().find("n4"), nullptr) << "it does not hold the entry that it waits for";
  expect_kept_out(3);
}

// Scenario MB-15, both steps, by way of a decommission.
TEST_F(MembershipScenario, ANodeThatForwardsItsOwnDecommissionIsRemovedAndStaysOutUntilAnOperatorGivesItAnEmptyVolume) {
  start_four();
  world.run_for(13s);
  ASSERT_NE(await_leader(), 3u);
  expect_soon(3, "decommission", 204);
  ASSERT_TRUE(eventually([&] { return !is_server(3) && !members().contains("n4"); }, 40s));
  expect_kept_out(3);
  kill(3);
  nodes[3].machine->volume().wipe();
  start(3);
  EXPECT_TRUE(eventually([&] { return is_ready(3) && is_voter(3); }, 60s));
}

// ---- Older joiners -----------------------------------------------------------------------------------------------------------

// Scenario UG-06, with a report (n4) and, the variant, without one (n5): by the records alone both might come in.
TEST_F(MembershipScenario, AJoinerOlderThanWhatTheClusterHasAppliedIsRefusedKeepsAskingAndNeverBootstraps) {
  const Config::Tuning::Release reporting{"3.0.9", metastore::kEveryReleaseEntryType, true, false, {}};
  const Config::Tuning::Release silent{"3.0.1", metastore::kEveryReleaseEntryType, true, false, {false, false, false, false, 32}};
  start_first();
  ASSERT_TRUE(eventually([&] { return members().size() == 3; }, 10s));
  commit(metastore::DeleteUserReleasing{"nobody"});
  // A member that was rolled back reports less than that: by it the joiners are not older than every member.
  commit(metastore::RegisterMember{{"n9", "n9:7942", "n9:7943", MemberStatus::alive, 1, false, "3.0.9", metastore::kEveryReleaseEntryType}});
  for (const size_t i : {size_t{3}, size_t{4}}) {
    nodes[i].config.cluster.initial_members.clear();  // it may bootstrap
    nodes[i].config.tuning.release = i == 3 ? reporting : silent;
    start(i);
  }
  for (int minute = 0; minute < 3; ++minute) {
    SCOPED_TRACE(minute);
    const auto asked = [&](size_t i) { return count_lines(await_leader(), "id=" + id(i)); };
    const size_t lines_before[] = {asked(3), asked(4)};
    world.run_for(1min + 1s);
    for (const size_t i : {size_t{3}, size_t{4}}) {
      ASSERT_TRUE(is_live(i));
      EXPECT_FALSE(is_server(i));
      EXPECT_TRUE(nodes[i].view->raft.core().configuration().servers.empty()) << "it makes no cluster of its own";
      EXPECT_EQ(nodes[i].view->raft.core().term(), 0u);
      EXPECT_NE(ask(i, "GET", "/readyz").status, 200);
      EXPECT_GT(asked(i), lines_before[i - 3]) << "it keeps asking";
      EXPECT_EQ(count_lines(i, "it applies Raft entry types up to 22, and the cluster has applied entry type 32"), 1u);
    }
  }
  const CallResult refused = rpc(await_leader(), encode(JoinClusterRequest{"n4", "n4:7943", std::nullopt, std::nullopt}));
  EXPECT_EQ(refused.reply.status, 409);
  EXPECT_TRUE(refused.reply.body.ends_with(",\"code\":\"older_release\"}\n")) << refused.reply.body;
  // Once it runs a release that applies what was applied, it is let in.
  kill(3);
  nodes[3].config.tuning.release = {};
  start(3);
  EXPECT_TRUE(eventually([&] { return is_server(3); }, 20s));
}

}  // namespace
}  // namespace engine::cluster
