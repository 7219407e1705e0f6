#include "engine/cluster/controller.h"

#include <gtest/gtest.h>

#include "tests/support/controller_parts.h"

namespace engine::cluster {
namespace {

using namespace std::chrono_literals;
using metastore::MemberStatus;
using tests::make_dead;
using tests::make_draining;
using tests::make_member;
using tests::make_row;

struct ControllerTest : testing::Test, tests::ControllerParts {
  std::unique_ptr<Controller> controller;
  NodeBacklog backlog{NodeBacklog::Kind::told, 0, 0, ""};
  uint64_t change = 0;
  int64_t heartbeat_on_its_way = 0;

  ControllerTest() { servers.have({"n1", "n2", "n3"}); }

  // A controller beside `body`, which runs while it does.
  void test(const std::function<void()>& body) {
    EXPECT_TRUE(run([&](io::Env& given) {
      controller = std::make_unique<Controller>(Controller::Parts{given, store, store, gate, servers,
                                                                  [this](const metastore::Member&, io::Instant) { return backlog; },
                                                                  [this](std::string_view) { return heartbeat_on_its_way; },
                                                                  [this] { return ++change; }});
      io::with_scope([&](io::Scope& scope) {
        scope.spawn("controller/run", [&] { controller->run(); });
        body();
        scope.cancel();
      });
      controller.reset();
    }));
  }
  // n1 leads and is alive by itself; the others say so as a node does.
  void beat(const std::string& id) {
    metastore::Member record = find_member(id).value_or(make_member(id));
    ++record.last_heartbeat;
    record.status = MemberStatus::alive;
    store.apply(metastore::encode_command(metastore::RegisterMember{record}));
  }
  void beat_for(io::Duration how_long, std::vector<std::string> ids) {
    for (const io::Instant end = env->after(how_long); env->now() < end; io::sleep_for(1s)) {
      for (const std::string& id : ids) beat(id);
    }
  }
  bool is_dead(const std::string& id) { return find_member(id)->status == MemberStatus::dead; }
  bool within(io::Duration bound, const std::function<bool()>& done) {
    for (const io::Instant end = env->after(bound); env->now() < end; io::sleep_for(10ms)) {
      if (done()) return true;
    }
    return done();
  }
};

TEST_F(ControllerTest, ATopicIsPlacedWithinAboutASecondOfTheFirstMember) {
  topic("t");
  test([&] {
    io::sleep_for(3s);
    EXPECT_EQ(owners("t"), "- - -");
    member(make_member("n2"));
    const io::Instant first = env->now();
    EXPECT_TRUE(within(1500ms, [&] { return owners("t") == "n2 n2 n2"; })) << owners("t");
    EXPECT_GE(env->now() - first, kArrivalWait) << "the other voters had their second";
  });
}

TEST_F(ControllerTest, APassFollowsAnArrivalAtOnceWhenEveryVoterIsAlive) {
  topic("t");
  test([&] {
    io::sleep_for(3s);
    member(make_member("n1"));
    io::sleep_for(300ms);
    member(make_member("n2"));
    io::sleep_for(300ms);
    EXPECT_EQ(owners("t"), "- - -");
    member(make_member("n3"));
    EXPECT_TRUE(within(kMembershipWatch + 50ms, [&] { return owners("t") == "n1 n2 n3"; })) << owners("t");
  });
}

// Scenario PL-08, step 1: created at the very begin; members register at 0.3 s, at 0.6 s and never.
TEST_F(ControllerTest, ACreateBeforeAnyMemberIsSpreadOverThoseThatRegisterWithinASecond) {
  test([&] {
    topic("t");
    controller->assigner().place("t", topics::PlacementCause::created, io::kNever);
    io::sleep_for(300ms);
    member(make_member("n1"));
    io::sleep_for(300ms);
    member(make_member("n2"));
    const io::Instant last = env->now();
    io::sleep_for(kArrivalWait - 100ms);
    EXPECT_EQ(owners("t"), "- - -") << "not everything on the first one";
    EXPECT_TRUE(within(1500ms - (env->now() - last), [&] { return owners("t") == "n1 n2 n1"; })) << owners("t");
  });
}

// Scenario PL-08, step 2: the leader dies at 0.5 s; a voter never comes.
TEST_F(ControllerTest, ACreateBeforeAnyMemberIsPlacedByTheNextLeaderAndAVoterThatNeverComesCostsOneWait) {
  test([&] {
    EXPECT_EQ(controller->assigner().ready_to_place(io::kNever), std::nullopt) << "it succeeds";
    topic("t");
    controller->assigner().place("t", topics::PlacementCause::created, io::kNever);
    const io::Instant begun = env->now();
    io::sleep_for(300ms);
    member(make_member("n1"));
    io::sleep_for(200ms);
    store.leads = false;
    io::sleep_for(100ms);
    member(make_member("n2"));
    io::sleep_for(300ms);
    store.leads = true;
    store.current_term = 2;
    EXPECT_TRUE(within(1500ms, [&] { return owners("t") == "n1 n2 n1"; })) << owners("t");
    // n3 never comes: what is left of the two seconds is waited once.
    EXPECT_EQ(controller->assigner().ready_to_place(io::kNever), std::nullopt);
    EXPECT_LE(env->now() - begun, 900ms + kMembershipWatch + kFormingWait) << "from when this leader first saw it";
    const io::Instant next = env->now();
    EXPECT_EQ(controller->assigner().ready_to_place(io::kNever), std::nullopt);
    EXPECT_EQ(env->now(), next);
    topic("u");
    controller->assigner().place("u", topics::PlacementCause::created, io::kNever);
    EXPECT_EQ(owners("u"), "n1 n2 n1") << "spread over those that are there";
  });
}

TEST_F(ControllerTest, AMemberThatReturnsIsFollowedByAPassOutsideTheTick) {
  for (const char* id : {"n1", "n2"}) member(make_member(id));
  member(make_dead("n3"));
  test([&] {
    io::sleep_for(2s);
    topic("t");  // behind the back of the manager: nobody has placed it
    io::sleep_for(2s);
    EXPECT_EQ(owners("t"), "- - -");
    member(make_member("n3"));
    EXPECT_TRUE(within(300ms, [&] { return owners("t") == "n1 n2 n3"; }));
  });
}

TEST_F(ControllerTest, WhatACreateLeftIsPlacedWithoutWaitingForTheTick) {
  for (const char* id : {"n1", "n2", "n3"}) member(make_member(id));
  test([&] {
    io::sleep_for(2s);
    topic("t");
    store.outcome = Proposed::Outcome::refused;
    controller->assigner().place("t", topics::PlacementCause::created, io::kNever);
    EXPECT_EQ(owners("t"), "- - -");
    store.outcome = Proposed::Outcome::applied;
    EXPECT_TRUE(within(1500ms, [&] { return owners("t") == "n1 n2 n3"; }));
  });
}

TEST_F(ControllerTest, TheTickPlacesWhatNobodyToldItOf) {
  for (const char* id : {"n1", "n2", "n3"}) member(make_member(id));
  test([&] {
    io::sleep_for(2s);
    topic("t");
    EXPECT_TRUE(within(kControllerTick, [&] { return owners("t") == "n1 n2 n3"; }));
  });
}

TEST_F(ControllerTest, OrphansArePrunedOnTakeoverAndEverySixthTick) {
  row(make_row("gone", 0, "n1"));
  test([&] {
    EXPECT_TRUE(within(1s, [&] { return owners("gone", 1) == "-"; }));
    row(make_row("gone", 0, "n1"));
    io::sleep_for(5 * kControllerTick);
    EXPECT_EQ(owners("gone", 1), "n1");
    EXPECT_TRUE(within(kControllerTick + 1s, [&] { return owners("gone", 1) == "-"; }));
  });
}

TEST_F(ControllerTest, EveryPassHasItsBarrier) {
  for (const char* id : {"n1", "n2", "n3"}) member(make_member(id));
  test([&] {
    io::sleep_for(2s);
    store.barrier_status = io::fail(io::ErrorKind::busy, "no quorum");
    topic("t");
    row(make_row("gone", 0, "n1"));
    const int before = store.proposals;
    io::sleep_for(2min);
    EXPECT_EQ(store.proposals, before) << "without a barrier nothing is planned";
    store.barrier_status = {};
    EXPECT_TRUE(within(kControllerTick + 1s, [&] { return owners("t") == "n1 n2 n3"; }));
  });
}

// Scenario HB-04: what a leader begins with fails half way.
TEST_F(ControllerTest, ALeaderWhoseFirstBarrierFailsTriesAgainAndActsOnlyThen) {
  topic("t");
  member(make_member("n1"));
  store.barrier_status = io::fail(io::ErrorKind::busy, "injected");
  test([&] {
    io::sleep_for(5s);
    EXPECT_EQ(controller->acting_term(), 0u);
    EXPECT_EQ(store.proposals, 0);
    store.barrier_status = {};
    EXPECT_TRUE(within(kTakeoverRetry + 50ms, [&] { return controller->acting_term() == 1; }));
    EXPECT_TRUE(within(2s, [&] { return owners("t") == "n1 n1 n1"; }));
    // Deposed, the one that acted has stopped before another term's begins; the injected error meets that one's start too.
    store.barrier_status = io::fail(io::ErrorKind::busy, "injected");
    store.leads = false;
    EXPECT_TRUE(within(kLeadershipPoll + 20ms, [&] { return controller->acting_term() == 0; }));
    store.leads = true;
    store.current_term = 4;
    io::sleep_for(3s);
    EXPECT_EQ(controller->acting_term(), 0u);
    store.barrier_status = {};
    EXPECT_TRUE(within(1s, [&] { return controller->acting_term() == 4; }));
  });
}

TEST_F(ControllerTest, ANodeThatDoesNotLeadDoesNothing) {
  store.leads = false;
  topic("t");
  member(make_member("n1"));
  row(make_row("gone", 0, "n1"));
  test([&] {
    io::sleep_for(2min);
    EXPECT_EQ(store.proposals, 0);
    EXPECT_EQ(store.barriers, 0);
  });
}

// ---- Heartbeats -----------------------------------------------------------------------------------------------------------------

TEST_F(ControllerTest, ASilentMemberIsMarkedDeadAndItsPartitionsStay) {
  for (const char* id : {"n1", "n2", "n3"}) member(make_member(id));
  topic("t");
  test([&] {
    beat_for(20s, {"n1", "n2", "n3"});
    EXPECT_EQ(owners("t"), "n1 n2 n3");
    beat_for(kDeadAfter - 1s, {"n1", "n2"});
    EXPECT_FALSE(is_dead("n3"));
    beat_for(kControllerTick + 2s, {"n1", "n2"});
    EXPECT_TRUE(is_dead("n3"));
    beat_for(1min, {"n1", "n2"});
    EXPECT_EQ(owners("t"), "n1 n2 n3");
    EXPECT_EQ(controller->dead_marking_refused(), 0u);
  });
}

// Scenario HB-01: the new leader's records are the old one's, and old.
TEST_F(ControllerTest, ANewLeaderCountsSilenceFromItsOwnBegin) {
  for (const char* id : {"n1", "n2", "n3", "n4"}) member(make_member(id));  // n4 does not vote
  test([&] {
    // The old leader is silent. This one's first tick sees records of 35 s ago; n2 learns of it soon, n3 and n4 after 25 s.
    store.leads = false;
    io::sleep_for(35s);
    store.leads = true;
    store.current_term = 2;
    beat_for(5s, {"n1"});
    beat_for(20s, {"n1", "n2"});
    EXPECT_FALSE(is_dead("n2") || is_dead("n3") || is_dead("n4"));
    beat_for(1min, {"n1", "n2", "n3", "n4"});
    EXPECT_FALSE(is_dead("n2") || is_dead("n3") || is_dead("n4"));
  });
}

// Scenario HB-01: silence counts only while this node leads, whatever it had counted as a leader before.
TEST_F(ControllerTest, ALeaderThatReturnsCountsAFullSilenceAnew) {
  for (const char* id : {"n1", "n2", "n3"}) member(make_member(id));
  test([&] {
    beat_for(20s, {"n1", "n2"});  // 20 s of silence of n3 are counted
    store.leads = false;          // nobody leads for 8 s: no heartbeat commits, so no stamp tells that n3 lives
    io::sleep_for(8s);
    store.leads = true;
    store.current_term = 9;
    beat_for(kDeadAfter - 1s, {"n1", "n2"});
    EXPECT_FALSE(is_dead("n3")) << "20 s and 29 s are no 30 s of one leader";
    beat_for(kControllerTick + 2s, {"n1", "n2"});
    EXPECT_TRUE(is_dead("n3"));
  });
}

// Scenario HB-02: the leader is cut off and deposed while it counts a member's silence; the member sends to the next one.
TEST_F(ControllerTest, ADeposedLeadersJudgementIsNotCommitted) {
  for (const char* id : {"n1", "n2", "n3"}) member(make_member(id));
  test([&] {
    beat_for(20s, {"n1", "n2"});  // 20 s of silence of n3 are counted
    store.leads = false;          // cut off for 40 s; n3's heartbeats go to the other leader
    beat_for(40s, {"n2", "n3"});
    EXPECT_FALSE(is_dead("n3"));
    // It regains leadership: nothing of what it had counted is left.
    store.leads = true;
    store.current_term = 9;
    beat_for(kDeadAfter - 1s, {"n1", "n2"});
    EXPECT_FALSE(is_dead("n3"));
    beat("n3");
    beat_for(20s, {"n1", "n2", "n3"});
    // A mark on its way when a newer heartbeat commits is refused.
    beat_for(kDeadAfter - 1s, {"n1", "n2"});
    store.before_propose = [&] { beat("n3"); };
    beat_for(kControllerTick + 2s, {"n1", "n2"});
    store.before_propose = nullptr;
    EXPECT_FALSE(is_dead("n3"));
  });
}

TEST_F(ControllerTest, TheBreakerKeepsTheQuorumsVotersAlive) {
  for (const char* id : {"n1", "n2", "n3"}) member(make_member(id));
  test([&] {
    beat_for(1min, {"n1"});
    EXPECT_FALSE(is_dead("n2") || is_dead("n3"));
    EXPECT_EQ(controller->dead_marking_refused(), 2u);
    store.leads = false;
    io::sleep_for(1s);
    EXPECT_EQ(controller->dead_marking_refused(), 0u) << "a node that does not lead refuses nothing";
  });
}

TEST_F(ControllerTest, TheOlderMarkLooksOnceMore) {
  gate.newest = 22;
  for (const char* id : {"n1", "n2", "n3"}) member(make_member(id));
  test([&] {
    beat_for(kDeadAfter - 1s, {"n1", "n2"});
    gate.before_judge = [&] { beat("n3"); };
    beat_for(15s, {"n1", "n2"});
    EXPECT_FALSE(is_dead("n3"));
    gate.before_judge = nullptr;
    beat_for(45s, {"n1", "n2"});
    EXPECT_TRUE(is_dead("n3"));
  });
}

// The heartbeat is in the log and not applied: the mark would come behind it, and undo it.
TEST_F(ControllerTest, TheOlderMarkIsDroppedWhileAHeartbeatIsOnItsWay) {
  gate.newest = 22;
  for (const char* id : {"n1", "n2", "n3"}) member(make_member(id));
  test([&] {
    heartbeat_on_its_way = find_member("n3")->last_heartbeat + 1;
    beat_for(45s, {"n1", "n2"});
    EXPECT_FALSE(is_dead("n3"));
    heartbeat_on_its_way = find_member("n3")->last_heartbeat;
    beat_for(45s, {"n1", "n2"});
    EXPECT_TRUE(is_dead("n3"));
  });
}

// ---- Moves and members that leave --------------------------------------------------------------------------------------------------

TEST_F(ControllerTest, AMemberThatArrivesIsGivenItsShare) {
  for (const char* id : {"n1", "n2"}) member(make_member(id));
  topic("t", 4);
  test([&] {
    io::sleep_for(2s);
    EXPECT_EQ(owners("t", 4), "n1 n2 n1 n2");
    member(make_member("n3"));
    EXPECT_TRUE(within(1500ms, [&] { return owners("t", 4).find('>') != std::string::npos; }));
    EXPECT_EQ(owners("t", 4), "n1 n2>n3 n1 n2") << "one of four is a share";
  });
}

TEST_F(ControllerTest, AMemberThatDrainsLosesItsPartitionsLeavesRaftAndLeavesATombstone) {
  for (const char* id : {"n1", "n2", "n3", "n4"}) member(make_member(id));
  servers.have({"n1", "n2", "n3", "n4"});
  topic("t", 4);
  test([&] {
    const std::vector<std::string> all{"n1", "n2", "n3", "n4"};
    beat_for(12s, all);
    EXPECT_EQ(owners("t", 4), "n1 n2 n3 n4");
    EXPECT_EQ(controller->decommission().request("n4", false, io::kNever).status, 204);
    EXPECT_EQ(controller->decommission().request("n4", false, io::kNever).status, 204) << "it drains already";
    beat_for(12s, all);
    EXPECT_EQ(owners("t", 4), "n1 n2 n3 n4>n1");
    EXPECT_TRUE(servers.removed.empty());
    EXPECT_EQ(controller->moves().complete("t", 3, "n4", "n1", io::kNever).status, 204);
    backlog.dispatch_backlog = 5;
    beat_for(12s, all);
    EXPECT_EQ(controller->decommission().blocked().at("n4").reason, DecommissionReason::dispatch_backlog);
    backlog = {NodeBacklog::Kind::unavailable, 0, 0, "silent"};
    beat_for(12s, all);
    EXPECT_EQ(controller->decommission().blocked().at("n4").reason, DecommissionReason::node_status_unavailable);
    EXPECT_TRUE(servers.removed.empty());
    backlog = {NodeBacklog::Kind::unsupported, 0, 0, ""};
    beat_for(12s, {"n1", "n2", "n3"});
    EXPECT_EQ(servers.removed, std::vector<std::string>{"n4"});
    EXPECT_EQ(find_member("n4"), std::nullopt);
    EXPECT_TRUE(*metastore::get_tombstone(store, "n4"));
    EXPECT_TRUE(controller->decommission().blocked().empty());
  });
}

TEST_F(ControllerTest, ARemovalThatHasBegunIsNotTakenBack) {
  for (const char* id : {"n1", "n2", "n3"}) member(make_member(id));
  member(make_draining("n4"));
  servers.have({"n1", "n2", "n3", "n4"});
  test([&] {
    io::with_scope([&](io::Scope& scope) {
      std::optional<int> cancelled;
      servers.during_remove = [&] {
        servers.during_remove = nullptr;
        scope.spawn("operator", [&] { cancelled = controller->decommission().request("n4", true, io::kNever).status; });
        io::sleep_for(500ms);
        EXPECT_EQ(cancelled, std::nullopt) << "it waits for what the removal comes to";
      };
      beat_for(25s, {"n1", "n2", "n3", "n4"});
      EXPECT_EQ(servers.removed, std::vector<std::string>{"n4"});
      EXPECT_EQ(cancelled, 404) << "204 would be a promise that is not kept";
    });
  });
}

TEST_F(ControllerTest, OfTwoDecommissionsAtOnceTheGuardsSeeBoth) {
  for (const char* id : {"n1", "n2", "n3", "n4"}) member(make_member(id));
  servers.have({"n1", "n2", "n3", "n4"});
  test([&] {
    std::vector<int> statuses;
    io::with_scope([&](io::Scope& scope) {
      for (const char* id : {"n3", "n4"}) {
        scope.spawn("operator", [&, id] { statuses.push_back(controller->decommission().request(id, false, io::kNever).status); });
      }
    });
    EXPECT_EQ(statuses, (std::vector<int>{204, 409})) << "three voters must be left";
  });
}

TEST_F(ControllerTest, ANewLeaderFinishesARemovalThatItsPredecessorBegan) {
  for (const char* id : {"n1", "n2", "n3"}) member(make_member(id));
  member(make_draining("n4"));  // out of raft, and its record still there
  backlog = {NodeBacklog::Kind::unavailable, 0, 0, "it is gone"};
  test([&] {
    EXPECT_TRUE(within(2s, [&] { return !find_member("n4").has_value(); }));
    EXPECT_TRUE(*metastore::get_tombstone(store, "n4"));
  });
}

TEST_F(ControllerTest, ADrainingLeaderHandsOverAndDoesNotRemoveItself) {
  servers.have({"n1", "n2", "n3", "n4"});
  for (const char* id : {"n2", "n3", "n4"}) member(make_member(id));
  member(make_draining("n1"));
  servers.hand_over_status = io::fail(io::ErrorKind::busy, "nobody is caught up");
  test([&] {
    io::sleep_for(2s);
    EXPECT_EQ(servers.hand_overs, 1);
    EXPECT_EQ(controller->decommission().blocked().at("n1").reason, DecommissionReason::leader_transfer);
    EXPECT_TRUE(servers.removed.empty());
  });
}

TEST_F(ControllerTest, ADecommissionIsRefusedWithItsReasonsAndCanBeTakenBack) {
  for (const char* id : {"n1", "n2", "n3"}) member(make_member(id));
  test([&] {
    io::sleep_for(1s);
    const Reply refused = controller->decommission().request("n2", false, io::kNever);
    EXPECT_EQ(refused.status, 409);
    EXPECT_TRUE(refused.body.starts_with(R"({"error":"decommission of n2 refused: it would leave 2 raft voters)")) << refused.body;
    EXPECT_NE(refused.body.find(R"("reasons":[{"code":"below_min_voters","message":)"), std::string::npos) << refused.body;
    EXPECT_FALSE(find_member("n2")->draining);
    EXPECT_EQ(controller->decommission().request("n9", false, io::kNever).status, 404);
    store.apply(metastore::encode_command(metastore::SetMemberDraining{"n3", true}));
    EXPECT_EQ(controller->decommission().request("n3", true, io::kNever).status, 204);
    EXPECT_FALSE(find_member("n3")->draining);
    store.barrier_status = io::fail(io::ErrorKind::busy, "no quorum");
    EXPECT_EQ(controller->decommission().request("n3", false, io::kNever).status, 503);
  });
}

}  // namespace
}  // namespace engine::cluster
