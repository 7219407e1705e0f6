#include "engine/cluster/assigner.h"

#include <gtest/gtest.h>

#include "tests/support/controller_parts.h"

namespace engine::cluster {
namespace {

using namespace std::chrono_literals;
using tests::make_dead;
using tests::make_draining;
using tests::make_member;
using tests::make_row;
using topics::PlacementCause;

struct AssignerTest : testing::Test, tests::ControllerParts {
  std::unique_ptr<Assigner> assigner;

  void test(const std::function<void()>& body) {
    servers.have({"n1", "n2", "n3"});
    EXPECT_TRUE(run([&](io::Env& given) {
      assigner = std::make_unique<Assigner>(Assigner::Parts{given, store, store, gate, [this] { return servers.voters(); }});
      body();
      assigner.reset();
    }));
  }
  void place(const std::string& name) { assigner->place(name, PlacementCause::created, io::kNever); }
  Assigner::Swept sweep() { return *assigner->sweep(*read_picture(store, io::kNever), store.current_term, io::kNever); }
  size_t prune() { return assigner->prune(*read_picture(store, io::kNever), store.current_term, io::kNever); }
  void all_members() {
    for (const char* id : {"n1", "n2", "n3"}) member(make_member(id));
  }
};

TEST_F(AssignerTest, PlacesWhatHasNoOwnerAndNothingElse) {
  test([&] {
    all_members();
    topic("t", 4);
    row(make_row("t", 1, "gone"));
    place("t");
    EXPECT_EQ(owners("t", 4), "n1 gone n3 n1");
    EXPECT_FALSE(assigner->has_left_over());
    const int proposals = store.proposals;
    place("t");
    EXPECT_EQ(store.proposals, proposals);
  });
}

TEST_F(AssignerTest, WithoutALiveMemberTheRestIsLeftToTheSweep) {
  test([&] {
    topic("t");
    member(make_dead("n1"));
    place("t");
    EXPECT_EQ(owners("t"), "- - -");
    EXPECT_TRUE(assigner->has_left_over());
    EXPECT_EQ(sweep().left, 3u);
    member(make_member("n2"));
    EXPECT_EQ(sweep().placed, 3u);
    EXPECT_EQ(owners("t"), "n2 n2 n2");
    EXPECT_FALSE(assigner->has_left_over());
  });
}

TEST_F(AssignerTest, PlacesParentsBeforeTheirChildrenAndChildrenElsewhere) {
  test([&] {
    all_members();
    topic("a-child", 3, "parent");
    topic("parent");
    place("a-child");
    EXPECT_EQ(owners("a-child"), "- - -") << "its parent is not placed yet";
    EXPECT_TRUE(assigner->has_left_over());
    EXPECT_EQ(sweep().placed, 6u);
    EXPECT_EQ(owners("parent"), "n1 n2 n3");
    EXPECT_EQ(owners("a-child"), "n2 n3 n1");
  });
}

// Scenario PL-06: a plan that was made before somebody else placed the topic.
TEST_F(AssignerTest, APlacementOfAnOldPlanIsRefusedWhereThereIsAnOwner) {
  test([&] {
    all_members();
    topic("s", 6);
    // This leader looks and is paused; another one leads, and places every partition elsewhere; then this one leads again.
    const Picture old = *read_picture(store, io::kNever);
    store.current_term = 2;
    for (int32_t p = 0; p < 6; ++p) row(make_row("s", p, "n9"));
    store.current_term = 3;
    const int before = store.proposals;
    EXPECT_FALSE(assigner->sweep(old, 1, io::kNever).ok()) << "the pass goes on in its own term, which has passed";
    EXPECT_EQ(assigner->sweep(old, 3, io::kNever)->placed, 0u) << "and would find the owners if it were of this one";
    EXPECT_EQ(store.proposals, before);
    EXPECT_EQ(owners("s", 6), "n9 n9 n9 n9 n9 n9");
    topic("t");
    // The plan is made; while it is proposed, another leader's placement commits first.
    store.before_propose = [&] {
      store.before_propose = nullptr;
      for (int32_t p = 0; p < 3; ++p) row(make_row("t", p, "n9"));
    };
    place("t");
    EXPECT_EQ(owners("t"), "n9 n9 n9");
    EXPECT_FALSE(assigner->has_left_over()) << "every partition has an owner";
  });
}

TEST_F(AssignerTest, TheOlderEntryIsProposedOnlyForWhatIsStillNobodys) {
  gate.newest = 22;
  test([&] {
    all_members();
    topic("t");
    gate.before_judge = [&] {
      gate.before_judge = nullptr;
      row(make_row("t", 0, "n9"));
    };
    place("t");
    EXPECT_EQ(owners("t"), "n9 n2 n3");
    topic("u");
    gate.before_judge = [&] {
      gate.before_judge = nullptr;
      store.apply(metastore::encode_delete_topic("u"));
    };
    place("u");
    EXPECT_EQ(owners("u"), "- - -") << "no row is made for a topic that is gone";
  });
}

TEST_F(AssignerTest, AGateThatCannotLookIsNoReasonForTheOlderEntry) {
  gate.newest = 22;
  gate.holder = "";
  test([&] {
    all_members();
    topic("t");
    place("t");
    EXPECT_EQ(owners("t"), "- - -");
    EXPECT_TRUE(assigner->has_left_over());
  });
}

TEST_F(AssignerTest, NothingIsProposedOnceTheTermHasPassed) {
  test([&] {
    all_members();
    topic("t");
    const Picture picture = *read_picture(store, io::kNever);
    gate.before_judge = [&] { store.current_term = 2; };
    const int before = store.proposals;
    EXPECT_EQ(assigner->sweep(picture, 1, io::kNever)->placed, 0u);
    EXPECT_EQ(store.proposals, before);
  });
}

TEST_F(AssignerTest, ABarrierGoesBeforeTheFirstPlacementOfATermAndAfterAnUnknownOutcome) {
  test([&] {
    all_members();
    topic("t");
    place("t");
    EXPECT_EQ(store.barriers, 1);
    topic("u");
    store.outcome = Proposed::Outcome::unknown;
    place("u");
    EXPECT_EQ(store.barriers, 1);
    EXPECT_TRUE(assigner->has_left_over());
    store.outcome = Proposed::Outcome::applied;
    place("u");
    EXPECT_EQ(store.barriers, 2) << "what is unknown may show only behind a barrier";
    EXPECT_EQ(owners("u"), "n1 n2 n3");
    store.current_term = 7;
    topic("v");
    place("v");
    EXPECT_EQ(store.barriers, 3);
    store.barrier_status = io::fail(io::ErrorKind::busy, "no quorum");
    store.current_term = 8;
    topic("w");
    place("w");
    EXPECT_EQ(owners("w"), "- - -");
  });
}

// Scenario PL-06, its variant: a create and a sweep on one leader at the same time.
TEST_F(AssignerTest, ACreateAndASweepTakeTurns) {
  for (const uint32_t newest : {22u, 37u}) {
    gate.newest = newest;
    test([&] {
      all_members();
      const std::string name = "t" + std::to_string(newest);
      topic(name, 20);
      store.delay = 10ms;
      const Picture picture = *read_picture(store, io::kNever);
      const int before = store.proposals;
      io::with_scope([&](io::Scope& scope) {
        scope.spawn("create", [&] { place(name); });
        scope.spawn("sweep", [&] { EXPECT_TRUE(assigner->sweep(picture, 1, io::kNever).ok()); });
        scope.spawn("sweep", [&] { EXPECT_TRUE(assigner->sweep(picture, 1, io::kNever).ok()); });
      });
      EXPECT_EQ(store.proposals - before, 20) << "each partition was placed once";
      store.delay = 0ms;
    });
  }
}

// ---- The forming cluster ----------------------------------------------------------------------------------------------------

TEST_F(AssignerTest, AFormingClusterIsOneInWhichSomeVotersHaveARecordAndOthersHaveNone) {
  EXPECT_FALSE(is_forming({"n1", "n2"}, {}));
  EXPECT_TRUE(is_forming({"n1", "n2"}, {make_member("n1")}));
  EXPECT_TRUE(is_forming({"n1", "n2"}, {make_dead("n1")}));
  EXPECT_FALSE(is_forming({"n1", "n2"}, {make_member("n1"), make_dead("n2")}));
  EXPECT_FALSE(is_forming({"n1"}, {make_member("n7")})) << "no voter has one";
}

TEST_F(AssignerTest, TheWaitForAFormingClusterIsAtMostTwoSecondsAndCountedOnce) {
  test([&] {
    member(make_member("n1"));
    const io::Instant begun = env->now();
    EXPECT_EQ(assigner->ready_to_place(io::kNever), std::nullopt);
    EXPECT_EQ(env->now() - begun, 2s);
    EXPECT_EQ(assigner->ready_to_place(io::kNever), std::nullopt);
    EXPECT_EQ(env->now() - begun, 2s) << "the next create does not wait";
    // Formed, and forming once more: counted anew.
    member(make_member("n2"));
    member(make_member("n3"));
    EXPECT_EQ(assigner->ready_to_place(io::kNever), std::nullopt);
    servers.have({"n1", "n2", "n3", "n4"});
    EXPECT_EQ(assigner->ready_to_place(io::kNever), std::nullopt);
    EXPECT_EQ(env->now() - begun, 4s);
  });
}

TEST_F(AssignerTest, TheWaitEndsWhenTheLastVoterRegistersOrTheDeadlinePasses) {
  test([&] {
    member(make_member("n1"));
    member(make_member("n2"));
    const io::Instant begun = env->now();
    EXPECT_EQ(assigner->ready_to_place(env->after(300ms)), std::nullopt);
    EXPECT_EQ(env->now() - begun, 300ms);
    io::with_scope([&](io::Scope& scope) {
      scope.spawn("register", [&] {
        io::sleep_for(200ms);
        member(make_member("n3"));
      });
      EXPECT_EQ(assigner->ready_to_place(io::kNever), std::nullopt);
    });
    EXPECT_LE(env->now() - begun, 500ms + kFormingPoll);
  });
}

TEST_F(AssignerTest, AClusterWithoutMembersIsNotWaitedFor) {
  test([&] {
    const io::Instant begun = env->now();
    EXPECT_EQ(assigner->ready_to_place(io::kNever), std::nullopt);
    EXPECT_EQ(env->now(), begun);
  });
}

TEST_F(AssignerTest, NothingIsWrittenWhileEveryLiveNodeDrains) {
  test([&] {
    member(make_draining("n1"));
    member(make_dead("n2"));
    const std::optional<Reply> refusal = assigner->ready_to_place(io::kNever);
    ASSERT_TRUE(refusal.has_value());
    EXPECT_EQ(refusal->status, 503);
  });
}

// ---- Orphans ----------------------------------------------------------------------------------------------------------------

TEST_F(AssignerTest, PrunesRowsThatBelongToNoPartitionAndNoLiveOnes) {
  test([&] {
    topic("t");
    row(make_row("t", 0, "n1"));
    row(make_row("t", 3, "n1"));
    row(make_row("gone", 0, "n2"));
    EXPECT_EQ(prune(), 2u);
    EXPECT_EQ(owners("t", 4), "n1 - - -");
    EXPECT_EQ(owners("gone", 1), "-");
    EXPECT_EQ(prune(), 0u);
  });
}

TEST_F(AssignerTest, AnOrphanIsLeftWhileTheGateHoldsThePruneBack) {
  gate.newest = 22;
  test([&] {
    row(make_row("gone", 0, "n2"));
    const int before = store.proposals;
    EXPECT_EQ(prune(), 0u);
    EXPECT_EQ(prune(), 0u);
    EXPECT_EQ(store.proposals, before);
    EXPECT_EQ(owners("gone", 1), "n2");
    gate.newest = 32;
    EXPECT_EQ(prune(), 1u);
  });
}

// ---- The lock ---------------------------------------------------------------------------------------------------------------

TEST_F(AssignerTest, TheLockLetsTopicsGoSideBySideAndTheSweepAlone) {
  test([&] {
    using Scope = AssignmentLock::Scope;
    AssignmentLock lock;
    const auto soon = [&] { return env->after(10ms); };
    {
      const AssignmentLock::Hold one(lock, Scope::one_topic, soon());
      const AssignmentLock::Hold other(lock, Scope::one_topic, soon());
      EXPECT_TRUE(one.is_held() && other.is_held());
      EXPECT_FALSE(AssignmentLock::Hold(lock, Scope::any_topic, soon()).is_held());
      EXPECT_TRUE(AssignmentLock::Hold(lock, Scope::one_topic, soon()).is_held()) << "who gave up holds nobody up";
    }
    const AssignmentLock::Hold all(lock, Scope::any_topic, soon());
    EXPECT_TRUE(all.is_held());
    EXPECT_FALSE(AssignmentLock::Hold(lock, Scope::one_topic, soon()).is_held());
    EXPECT_FALSE(AssignmentLock::Hold(lock, Scope::any_topic, soon()).is_held());
  });
}

TEST_F(AssignerTest, AStreamOfCreatesDoesNotKeepTheSweepOut) {
  test([&] {
    using Scope = AssignmentLock::Scope;
    AssignmentLock lock;
    std::string order;
    io::with_scope([&](io::Scope& scope) {
      const auto hold = [&](Scope kind, io::Duration begin, const char* name) {
        scope.spawn(name, [&lock, &order, kind, begin, name] {
          io::sleep_for(begin);
          const AssignmentLock::Hold held(lock, kind, io::kNever);
          order += name;
          io::sleep_for(10ms);
        });
      };
      hold(Scope::one_topic, 0ms, "a");
      hold(Scope::any_topic, 2ms, "S");
      hold(Scope::one_topic, 4ms, "b");
    });
    EXPECT_EQ(order, "aSb");
  });
}

}  // namespace
}  // namespace engine::cluster
