#include "engine/cluster/moves.h"

#include <gtest/gtest.h>

#include "engine/cluster/mover.h"
#include "tests/support/controller_parts.h"

namespace engine::cluster {
namespace {

using namespace std::chrono_literals;
using tests::make_dead;
using tests::make_draining;
using tests::make_member;
using tests::make_row;

struct MovesTest : testing::Test, tests::ControllerParts {
  std::unique_ptr<Assigner> assigner;
  std::unique_ptr<Moves> moves;

  void test(const std::function<void()>& body) {
    servers.have({"n1", "n2", "n3"});
    EXPECT_TRUE(run([&](io::Env& given) {
      assigner = std::make_unique<Assigner>(Assigner::Parts{given, store, store, gate, [this] { return servers.voters(); }});
      moves = std::make_unique<Moves>(Moves::Parts{given, store, store, *assigner, servers});
      body();
      moves.reset();
      assigner.reset();
    }));
  }
  Picture picture() { return *read_picture(store, io::kNever); }
  size_t start() { return moves->start(picture(), store.current_term, io::kNever); }
  void settle() { moves->settle(picture(), store.current_term, io::kNever); }
  // A topic with all of its partitions on n1.
  void on_n1(const std::string& name, int32_t partitions) {
    topic(name, partitions);
    for (int32_t p = 0; p < partitions; ++p) row(make_row(name, p, "n1"));
  }
};

TEST_F(MovesTest, SetsTheDestinationsThatThePlanNames) {
  test([&] {
    member(make_member("n1"));
    member(make_member("n2"));
    on_n1("t", 4);
    EXPECT_EQ(start(), 2u);
    EXPECT_EQ(owners("t", 4), "n1>n2 n1>n2 n1 n1");
    EXPECT_EQ(start(), 0u) << "they count at their destination";
  });
}

TEST_F(MovesTest, ADestinationIsSetOnlyOnARowThatIsAsPlannedAndOnAMemberThatTakesPartitions) {
  test([&] {
    member(make_member("n1"));
    member(make_member("n2"));
    on_n1("t", 2);
    const Picture old = picture();
    store.apply(metastore::encode_command(metastore::SetMemberDraining{"n2", true}));
    EXPECT_EQ(moves->start(old, 1, io::kNever), 0u);
    store.apply(metastore::encode_command(metastore::SetMemberDraining{"n2", false}));
    row(make_row("t", 0, "n3"));
    EXPECT_EQ(moves->start(old, 1, io::kNever), 0u);
    EXPECT_EQ(moves->start(picture(), 2, io::kNever), 0u) << "of another term";
    EXPECT_EQ(owners("t", 2), "n3 n1");
  });
}

TEST_F(MovesTest, ADeadOwnersPartitionStays) {
  test([&] {
    member(make_dead("n1"));
    member(make_member("n2"));
    member(make_member("n3"));
    on_n1("t", 6);
    EXPECT_EQ(start(), 0u);
    EXPECT_EQ(owners("t", 6), "n1 n1 n1 n1 n1 n1");
  });
}

TEST_F(MovesTest, AFlipCountsOnceAndOnlyForTheMoveThatWasSeen) {
  test([&] {
    member(make_member("n1"));
    topic("t", 2);
    row(make_row("t", 0, "n1", "n2"));
    row(make_row("t", 1, "n1", "n2"));
    EXPECT_EQ(moves->complete("t", 0, "n1", "n3", io::kNever).status, 409);
    EXPECT_EQ(moves->complete("t", 0, "n9", "n2", io::kNever).status, 409);
    EXPECT_EQ(moves->complete("t", 0, "n1", "n2", io::kNever).status, 204);
    EXPECT_EQ(moves->complete("t", 0, "n1", "n2", io::kNever).status, 204) << "it is so already";
    EXPECT_EQ(moves->complete("t", 7, "n1", "n2", io::kNever).status, 404);
    EXPECT_EQ(owners("t", 2), "n2 n1>n2");
    store.outcome = Proposed::Outcome::unknown;
    const Reply unknown = moves->complete("t", 1, "n1", "n2", io::kNever);
    EXPECT_EQ(unknown.status, 503);
    EXPECT_NE(unknown.body.find(kOutcomeUnknownText), std::string::npos);
    store.leads = false;
    EXPECT_EQ(moves->complete("t", 1, "n1", "n2", io::kNever).status, 503);
  });
}

TEST_F(MovesTest, AbortNamesWhatItEndsAndRefusesWhatItDoesNotSee) {
  test([&] {
    topic("t", 3);
    row(make_row("t", 0, "n1", "n2"));
    row(make_row("t", 1, "n1", "n3"));
    row(make_row("t", 2, "n1"));
    metastore::Assignment before;
    EXPECT_EQ(moves->abort("t", 0, "n3", io::kNever).status, 409);
    EXPECT_EQ(moves->abort("t", 0, "n2", io::kNever, &before).status, 204);
    EXPECT_EQ(before, make_row("t", 0, "n1", "n2"));
    EXPECT_EQ(moves->abort("t", 1, "", io::kNever).status, 204) << "whichever there is";
    EXPECT_EQ(moves->abort("t", 2, "", io::kNever).status, 409);
    EXPECT_EQ(moves->abort("t", 9, "", io::kNever).status, 404);
    EXPECT_EQ(owners("t"), "n1 n1 n1");
    store.barrier_status = io::fail(io::ErrorKind::busy, "no quorum");
    EXPECT_EQ(moves->abort("t", 2, "", io::kNever).status, 503);
  });
}

TEST_F(MovesTest, ADestinationThatWillNotComeIsCleared) {
  test([&] {
    for (const char* id : {"n1", "n2", "n3"}) member(make_member(id));
    member(make_dead("dead"));
    member(make_draining("outside"));
    servers.servers.push_back({"dead", "dead:7943", true, false});
    topic("t", 4);
    row(make_row("t", 0, "n1", "stranger"));
    row(make_row("t", 1, "n1", "outside"));
    row(make_row("t", 2, "n1", "dead"));
    row(make_row("t", 3, "n1", "n2"));
    settle();
    EXPECT_EQ(owners("t", 4), "n1 n1 n1>dead n1>n2") << "gone, and out of raft while it drains";
    EXPECT_EQ(moves->blocked(MoveBlock::target_dead), 1u);
    io::sleep_for(kTargetDeadMax - 1s);
    settle();
    EXPECT_EQ(owners("t", 4), "n1 n1 n1>dead n1>n2");
    io::sleep_for(1s);
    settle();
    EXPECT_EQ(owners("t", 4), "n1 n1 n1 n1>n2");
    settle();
    EXPECT_EQ(moves->blocked(MoveBlock::target_dead), 0u);
  });
}

TEST_F(MovesTest, HowLongADestinationIsDeadIsCountedWhileThisNodeLeads) {
  test([&] {
    member(make_member("n1"));
    member(make_dead("n2"));
    topic("t", 1);
    row(make_row("t", 0, "n1", "n2"));
    settle();
    io::sleep_for(1min);
    moves->stop_leading();
    settle();
    io::sleep_for(90s);
    settle();
    EXPECT_EQ(owners("t", 1), "n1>n2");
  });
}

TEST_F(MovesTest, AMoveIsBlockedBySourceOrDestinationAndSaysWhich) {
  test([&] {
    member(make_member("n1"));
    member(make_dead("n2"));
    const Picture now = picture();
    EXPECT_EQ(block_of(make_row("t", 0, "n2", "n1"), now), MoveBlock::source_dead);
    EXPECT_EQ(block_of(make_row("t", 0, "n1", "n2"), now), MoveBlock::target_dead);
    EXPECT_EQ(block_of(make_row("t", 0, "n1", "n7"), now), MoveBlock::target_not_member);
    EXPECT_EQ(block_of(make_row("t", 0, "n1", "n1"), now), MoveBlock::none);
    EXPECT_EQ(to_string(MoveBlock::source_dead), "source_dead");
    EXPECT_EQ(to_string(MoveBlock::target_dead), "target_dead");
    EXPECT_EQ(to_string(MoveBlock::target_not_member), "target_not_member");
  });
}

// Scenario PL-05: the topic is deleted while a partition of it moves, then the leader changes.
TEST_F(MovesTest, ATopicThatIsDeletedWhileItMovesLeavesNothingBehind) {
  test([&] {
    member(make_member("n1"));
    member(make_member("n2"));
    on_n1("t", 4);
    on_n1("z", 2);
    topic("u", 4);
    for (int32_t p = 0; p < 4; ++p) row(make_row("u", p, "n2"));
    EXPECT_EQ(start(), 1u);
    store.apply(metastore::encode_command(metastore::SetMoveTarget{"t", 0, "n2"}));
    store.apply(metastore::encode_delete_topic("u"));
    const Picture old = picture();
    store.apply(metastore::encode_delete_topic("t"));
    store.current_term = 2;
    moves->stop_leading();
    EXPECT_EQ(moves->complete("t", 0, "n1", "n2", io::kNever).status, 404) << "the late flip";
    moves->settle(old, 2, io::kNever);
    moves->settle(picture(), 2, io::kNever);
    EXPECT_EQ(owners("t", 4), "- - - -") << "no row is made again";
    EXPECT_TRUE(orphans_of(picture()).empty());
    EXPECT_EQ(start(), 1u);
    EXPECT_EQ(owners("z", 2), "n1>n2 n1") << "other work goes on";
  });
}

// ---- The destination's side ----------------------------------------------------------------------------------------------------

struct MoverTest : MovesTest {
  std::unique_ptr<Mover> mover;
  std::vector<CompleteMoveRequest> asked;
  uint64_t change = 1;
  bool knows_owners = true;
  uint16_t status = 0;  // 0: the leader's own

  void test_mover(const std::function<void()>& body) {
    test([&] {
      mover = std::make_unique<Mover>(Mover::Parts{*env, store, "n2", [this] { return knows_owners; }, [this] { return change; },
                                                   [this](const CompleteMoveRequest& request, io::Instant deadline) {
                                                     asked.push_back(request);
                                                     if (status != 0) return NodeReply{status, "", ""};
                                                     const Reply reply = moves->complete(request.topic, request.partition,
                                                                                         request.expected_owner, request.target, deadline);
                                                     return NodeReply{static_cast<uint16_t>(reply.status), "", reply.body};
                                                   }});
      body();
      mover.reset();
    });
  }
};

// Scenario PL-01: the node to which the partition moves is a follower; the flip is the leader's to write.
TEST_F(MoverTest, TheDestinationAsksTheLeaderAndTheFlipHappensOnce) {
  test_mover([&] {
    member(make_member("n1"));
    topic("t", 2);
    row(make_row("t", 0, "n1", "n2"));
    row(make_row("t", 1, "n1", "n3"));
    status = 503;
    mover->look();
    ASSERT_EQ(asked.size(), 1u);
    EXPECT_EQ(asked[0].expected_owner, "n1");
    EXPECT_EQ(asked[0].target, "n2");
    EXPECT_EQ(mover->moves().at(0).attempts, 1u);
    EXPECT_EQ(mover->moves().at(0).phase, "flip_pending");
    status = 0;
    mover->look();
    EXPECT_EQ(owners("t", 2), "n2 n1>n3");
    EXPECT_EQ(mover->completed(), 1u);
    mover->look();
    mover->look();
    EXPECT_EQ(asked.size(), 2u) << "it does not ask for what has happened";
    EXPECT_TRUE(mover->moves().empty());
  });
}

TEST_F(MoverTest, WaitsForADeadSource) {
  test_mover([&] {
    member(make_dead("n1"));
    topic("t", 1);
    row(make_row("t", 0, "n1", "n2"));
    mover->look();
    EXPECT_TRUE(asked.empty());
    EXPECT_EQ(mover->moves().at(0).phase, "waiting_for_source");
    member(make_member("n1"));
    mover->look();
    EXPECT_EQ(owners("t", 1), "n2");
  });
}

TEST_F(MoverTest, BelievesNoRowBeforeTheReplicaHasCaughtUp) {
  test_mover([&] {
    member(make_member("n1"));
    topic("t", 1);
    row(make_row("t", 0, "n1", "n2"));
    knows_owners = false;
    mover->look();
    EXPECT_TRUE(asked.empty());
  });
}

TEST_F(MoverTest, LooksAgainWhenARowHasChangedOrAfterHalfAMinute) {
  test_mover([&] {
    member(make_member("n1"));
    mover->look();
    topic("t", 2);
    row(make_row("t", 0, "n1", "n2"));
    mover->look();
    EXPECT_TRUE(asked.empty()) << "nothing has moved, as far as it was told";
    ++change;
    mover->look();
    EXPECT_EQ(asked.size(), 1u);
    mover->look();
    row(make_row("t", 1, "n1", "n2"));
    io::sleep_for(kMoverFullPass);
    mover->look();
    EXPECT_EQ(asked.size(), 2u);
  });
}

}  // namespace
}  // namespace engine::cluster
