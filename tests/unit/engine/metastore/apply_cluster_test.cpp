// Every check of the entry types of assignments, members and users (5 to 12, 15 to 22, 29 to 32), as a table.

#include <string>
#include <vector>

#include "tests/support/apply_table.h"

namespace {

using namespace engine::metastore;
using tests::Case;
using tests::Change;
using tests::assignments_moved;
using tests::gone;
using tests::is;
using tests::join;
using tests::make_topic;
using tests::moved;
using tests::tombstone_is;
using tests::with;

constexpr const char* kId = "00112233445566aa";  // of make_topic

// ---- Assignments -----------------------------------------------------------------------------------------------------------

std::vector<Case> assignment_cases() {
  const CreateTopic t{make_topic("t", 3)};
  const Assignment held{"t", 1, "n1", ""};
  const Assignment moving{"t", 1, "n1", "n2"};
  const Assignment done{"t", 1, "n2", ""};
  const AssignPartition has{held};
  const AssignPartition has_move{moving};
  const Answer no_row{Code::not_found, "partition 1 of topic t"};
  const Answer another{Code::invalid_argument, "the move of partition 1 of topic t is another one"};
  return {
      // 5
      {"AssignPutsARowThoughThereIsNoTopic", {}, has, {}, {is(held)}, {assignments_moved("t")}},
      {"AssignReplacesOwnerAndTarget", {has_move}, AssignPartition{done}, {}, {is(done)}, {assignments_moved("t")}},
      {"AssignTakesAnyPartition", {t}, AssignPartition{{"t", -7, "n1", ""}}, {}, {is(Assignment{"t", -7, "n1", ""})},
       {assignments_moved("t")}},
      {"AssignKeepsNamesWithColonsApart", {AssignPartition{{"a:1", 2, "x", ""}}}, AssignPartition{{"a", 1, "y", ""}}, {},
       {is(Assignment{"a", 1, "y", ""})}, {assignments_moved("a")}},
      // 15
      {"TargetOfAMissingRowIsRefused", {t}, SetMoveTarget{"t", 1, "n2"}, no_row, {}, {}},
      {"TargetIsSet", {has}, SetMoveTarget{"t", 1, "n2"}, {}, {is(moving)}, {assignments_moved("t")}},
      {"TargetIsCleared", {has_move}, SetMoveTarget{"t", 1, ""}, {}, {is(held)}, {assignments_moved("t")}},
      {"TheSameTargetChangesNothing", {has_move}, SetMoveTarget{"t", 1, "n2"}, {}, {}, {}},
      // 16
      {"CompletionOfAMissingRowIsRefused", {}, CompleteMove{"t", 1, "n1", "n2"}, no_row, {}, {}},
      {"CompletionMakesTheTargetTheOwner", {has_move}, CompleteMove{"t", 1, "n1", "n2"}, {}, {is(done)}, {assignments_moved("t")}},
      {"CompletionOfADoneMoveChangesNothing", {AssignPartition{done}}, CompleteMove{"t", 1, "n1", "n2"}, {}, {}, {}},
      {"CompletionForAnotherOwnerIsRefused", {has_move}, CompleteMove{"t", 1, "n3", "n2"}, another, {}, {}},
      {"CompletionForAnotherTargetIsRefused", {has_move}, CompleteMove{"t", 1, "n1", "n3"}, another, {}, {}},
      {"CompletionWithoutAMoveIsRefused", {has}, CompleteMove{"t", 1, "n1", "n2"}, another, {}, {}},
      {"CompletionWhileTheTargetOwnsAndMovesOnIsRefused", {AssignPartition{{"t", 1, "n2", "n3"}}}, CompleteMove{"t", 1, "n1", "n2"},
       another, {}, {}},
      // 17
      {"AbortOfAMissingRowIsRefused", {}, AbortMove{"t", 1, "n2"}, no_row, {}, {}},
      {"AbortClearsTheTarget", {has_move}, AbortMove{"t", 1, "n2"}, {}, {is(held)}, {assignments_moved("t")}},
      {"AbortOfAnotherMoveChangesNothing", {has_move}, AbortMove{"t", 1, "n3"}, {}, {}, {}},
      {"AbortOfNoMoveChangesNothing", {has}, AbortMove{"t", 1, ""}, {}, {}, {}},
      // 29
      {"PlacementOfAMissingTopicIsRefused", {}, PlacePartition{"t", 1, "n1", kId}, {Code::not_found, "topic t"}, {}, {}},
      {"PlacementForAnotherIncarnationIsRefused", {t}, PlacePartition{"t", 9, "", "other"}, {Code::topic_changed, "topic t"}, {}, {}},
      {"PlacementBelowTheRangeIsRefused", {t}, PlacePartition{"t", -1, "n1", kId},
       {Code::invalid_argument, "no partition -1 of topic t"}, {}, {}},
      {"PlacementBehindTheRangeIsRefused", {t}, PlacePartition{"t", 3, "", kId}, {Code::invalid_argument, "no partition 3 of topic t"},
       {}, {}},
      {"PlacementWithoutAnOwnerIsRefused", {t, has}, PlacePartition{"t", 1, "", kId},
       {Code::invalid_argument, "partition 1 of topic t without an owner"}, {}, {}},
      {"PlacementOnARemovedMemberIsRefused", {t, has, RemoveMember{"n1", 5}}, PlacePartition{"t", 1, "n1", kId},
       {Code::invalid_argument, "member n1 was removed from the cluster"}, {}, {}},
      {"PlacementOfAPlacedPartitionIsRefused", {t, has}, PlacePartition{"t", 1, "n2", kId},
       {Code::partition_assigned, "partition 1 of topic t"}, {}, {}},
      {"PlacementPutsTheRow", {t}, PlacePartition{"t", 1, "n1", kId}, {}, {is(held)}, {assignments_moved("t")}},
      {"PlacementTakesTheLastPartition", {t, has}, PlacePartition{"t", 2, "n1", kId}, {}, {is(Assignment{"t", 2, "n1", ""})},
       {assignments_moved("t")}},
      // 30
      {"PruneOfAMissingRowIsRefused", {t}, PruneAssignment{"t", 1}, no_row, {}, {}},
      {"PruneOfALiveRowIsRefused", {t, has}, PruneAssignment{"t", 1}, {Code::assignment_live, "partition 1 of topic t"}, {}, {}},
      {"PruneOfAGoneTopicRetiresItsCell", {has}, PruneAssignment{"t", 1}, {}, {gone(Bucket::assignments, "t:1")},
       {{Domain::assignments, "t", true}}},
      {"PruneBehindTheRangeMovesTheCell", {t, AssignPartition{{"t", 3, "n1", ""}}}, PruneAssignment{"t", 3}, {},
       {gone(Bucket::assignments, "t:3")}, {assignments_moved("t")}},
      {"PruneBelowTheRangeMovesTheCell", {t, AssignPartition{{"t", -1, "n1", ""}}}, PruneAssignment{"t", -1}, {},
       {gone(Bucket::assignments, "t:-1")}, {assignments_moved("t")}},
  };
}

// ---- Members ---------------------------------------------------------------------------------------------------------------

Member make_member(std::string id) { return {std::move(id), "h:7942", "h:7943", MemberStatus::alive, 100, false, "3.2.0", 37}; }

std::vector<Case> member_cases() {
  const Member n = make_member("n");
  const Member late = with<Member>(n, [](Member& member) { member.last_heartbeat = 105; });
  const Member draining = with<Member>(n, [](Member& member) { member.draining = true; });
  const Member dead = with<Member>(n, [](Member& member) { member.status = MemberStatus::dead; });
  auto changed = [&](auto change) { return with<Member>(n, change); };
  const Member elsewhere = changed([](Member& member) { member.addr = "other:1"; });
  const Member behind = changed([](Member& member) { member.cluster_addr = "other:2"; });
  const Member older = changed([](Member& member) {
    member.build = "3.1.0";
    member.entry_types = 32;
  });
  const Bump routing = moved(Domain::routing_members);
  const RegisterMember has{n};
  const Answer missing{Code::not_found, "member n"};
  return {
      // 6
      {"RegisterPutsANewMember", {}, RegisterMember{draining}, {}, {is(draining)}, {routing}},
      {"RegisterOfARemovedMemberIsRefused", {RemoveMember{"n", 7}}, has, {Code::member_removed, "member n"}, {}, {}},
      {"RegisterAgainMovesNothing", {has}, RegisterMember{late}, {}, {is(late)}, {}},
      {"RegisterKeepsTheDrainingFlag", {has, SetMemberDraining{"n", true}}, has, {}, {is(draining)}, {}},
      {"RegisterDoesNotSetTheDrainingFlag", {has}, RegisterMember{draining}, {}, {}, {}},
      {"RegisterWithAnotherReportMovesNothing", {has}, RegisterMember{older}, {}, {is(older)}, {}},
      {"RegisterAtAnotherAddressMovesRouting", {has}, RegisterMember{elsewhere}, {}, {is(elsewhere)}, {routing}},
      {"RegisterAtAnotherClusterAddressMovesRouting", {has}, RegisterMember{behind}, {}, {is(behind)}, {routing}},
      {"RegisterOfADeadMemberMovesRouting", {RegisterMember{dead}}, has, {}, {is(n)}, {routing}},
      // 7
      {"HeartbeatOfAMissingMemberIsRefused", {}, HeartbeatMember{"n", 105}, missing, {}, {}},
      {"HeartbeatIsStamped", {has}, HeartbeatMember{"n", 105}, {}, {is(late)}, {}},
      {"HeartbeatMayGoBack", {RegisterMember{late}}, HeartbeatMember{"n", 100}, {}, {is(n)}, {}},
      // 8
      {"DeadMarkOfAMissingMemberIsRefused", {}, MarkMemberDead{"n"}, missing, {}, {}},
      {"DeadMarkMovesRouting", {has}, MarkMemberDead{"n"}, {}, {is(dead)}, {routing}},
      {"DeadMarkOfADeadMemberMovesNothing", {RegisterMember{dead}}, MarkMemberDead{"n"}, {}, {}, {}},
      // 18
      {"DrainingOfAMissingMemberIsRefused", {}, SetMemberDraining{"n", true}, missing, {}, {}},
      {"DrainingIsSet", {has}, SetMemberDraining{"n", true}, {}, {is(draining)}, {}},
      {"DrainingIsCleared", {RegisterMember{draining}}, SetMemberDraining{"n", false}, {}, {is(n)}, {}},
      // 19
      {"RemovalLeavesATombstone", {has}, RemoveMember{"n", 7}, {}, {gone(Bucket::members, "n"), tombstone_is("n", 7)}, {routing}},
      {"RemovalOfAMissingMemberLeavesATombstone", {}, RemoveMember{"n", 7}, {}, {tombstone_is("n", 7)}, {}},
      {"RemovalAgainRenewsTheTombstone", {RemoveMember{"n", 7}}, RemoveMember{"n", 9}, {}, {tombstone_is("n", 9)}, {}},
      // 20
      {"ReadmissionDropsTheTombstone", {RemoveMember{"n", 7}}, ReadmitMember{"n", 8}, {}, {gone(Bucket::removed_members, "n")}, {}},
      {"ReadmissionWithoutATombstoneIsTaken", {has}, ReadmitMember{"n", 8}, {}, {}, {}},
      // 31
      {"ObservedDeadMarkOfAMissingMemberIsRefused", {}, MarkMemberDeadIf{"n", 100}, missing, {}, {}},
      {"ObservedDeadMarkBehindANewerHeartbeatIsRefused", {has}, MarkMemberDeadIf{"n", 99},
       {Code::member_heartbeat_newer, "member n"}, {}, {}},
      {"ObservedDeadMarkMovesRouting", {has}, MarkMemberDeadIf{"n", 100}, {}, {is(dead)}, {routing}},
      {"ObservedDeadMarkOfADeadMemberMovesNothing", {RegisterMember{dead}}, MarkMemberDeadIf{"n", 101}, {}, {}, {}},
  };
}

// ---- Users -----------------------------------------------------------------------------------------------------------------

std::vector<Case> user_cases() {
  const User ann{"ann", "hash", {{"produce", {"orders", "logs-*"}}, {"consume", {"*"}}}, false, 10, 20};
  const User root = with<User>(ann, [](User& user) { user.root = true; });
  const User other{"ann", "hash2", {{"admin", {}}}, true, 11, 21};
  const User after_update = with<User>(other, [](User& user) { user.root = false; });
  const User root_after_update = with<User>(other, [&](User& user) { user.grants = ann.grants; });
  const std::vector<Grant> grants{{"create", {"x*"}}};
  auto with_grants = [&](User user) {
    user.grants = grants;
    user.updated_at_ms = 30;
    return user;
  };
  auto with_password = [](User user) {
    user.password_hash = std::string("new\0hash", 8);
    user.updated_at_ms = 30;
    return user;
  };
  auto owned = [](std::string name, std::string owner) {
    return with<Topic>(make_topic(std::move(name)), [&](Topic& topic) { topic.owner = std::move(owner); });
  };
  const Bump users = moved(Domain::users);
  const CreateUser has{ann};
  const SeedRootUser has_root{ann};
  const SetUserPassword password{"ann", std::string("new\0hash", 8), 30};
  const Answer missing{Code::not_found, "user ann"};
  const Answer is_protected{Code::root_protected, "user ann"};
  const Answer exists{Code::already_exists, "user ann"};
  return {
      // 9
      {"CreateUserNeverMakesRoot", {}, CreateUser{root}, {}, {is(ann)}, {users}},
      {"CreateUserOfAnExistingNameIsRefused", {has}, CreateUser{other}, exists, {}, {}},
      // 10
      {"UpdateUserOfAMissingNameIsRefused", {}, UpdateUser{ann}, missing, {}, {}},
      {"UpdateUserReplacesButDoesNotMakeRoot", {has}, UpdateUser{other}, {}, {is(after_update)}, {users}},
      {"UpdateUserKeepsRootAndItsGrants", {has_root}, UpdateUser{with<User>(other, [](User& user) { user.root = false; })}, {},
       {is(root_after_update)}, {users}},
      // 11
      {"DeleteUserOfAMissingNameIsRefused", {}, DeleteUser{"ann"}, missing, {}, {}},
      {"DeleteUserOfRootIsRefused", {has_root}, DeleteUser{"ann"}, is_protected, {}, {}},
      {"DeleteUserLeavesItsTopicsAlone", {has, CreateTopic{owned("t", "ann")}}, DeleteUser{"ann"}, {}, {gone(Bucket::users, "ann")},
       {users}},
      // 12
      {"SeedMakesRoot", {}, has_root, {}, {is(root)}, {users}},
      {"SeedOfAnExistingNameIsRefused", {has}, has_root, exists, {}, {}},
      // 21
      {"PasswordOfAMissingNameIsRefused", {}, password, missing, {}, {}},
      {"PasswordIsSet", {has}, password, {}, {is(with_password(ann))}, {users}},
      {"PasswordOfRootIsSet", {has_root}, password, {}, {is(with_password(root))}, {users}},
      // 22
      {"GrantsOfAMissingNameAreRefused", {}, SetUserGrants{"ann", grants, 30}, missing, {}, {}},
      {"GrantsOfRootAreRefused", {has_root}, SetUserGrants{"ann", grants, 30}, is_protected, {}, {}},
      {"GrantsAreReplaced", {has}, SetUserGrants{"ann", grants, 30}, {}, {is(with_grants(ann))}, {users}},
      {"GrantsAreCleared", {has}, SetUserGrants{"ann", {}, 20}, {}, {is(with<User>(ann, [](User& user) { user.grants.clear(); }))},
       {users}},
      // 32
      {"ReleasingDeleteOfAMissingNameIsRefused", {CreateTopic{owned("t", "ann")}}, DeleteUserReleasing{"ann"}, missing, {}, {}},
      {"ReleasingDeleteOfRootIsRefused", {has_root, CreateTopic{owned("t", "ann")}}, DeleteUserReleasing{"ann"}, is_protected, {}, {}},
      {"ReleasingDeleteClearsTheOwnerOfEveryTopic",
       {has, CreateTopic{owned("a", "ann")}, CreateTopic{owned("b", "bob")}, CreateTopic{owned("c", "ann")},
        CreateTopic{owned("d", "ann")}, DeleteTopic{"c"}, UpdateTopic{owned("b", "ann")}, UpdateTopic{owned("d", "bob")}},
       DeleteUserReleasing{"ann"}, {}, {gone(Bucket::users, "ann"), is(owned("a", "")), is(owned("b", ""))},
       {users, moved("b"), moved("a")}},
      {"ReleasingDeleteWithoutTopicsIsADelete", {has}, DeleteUserReleasing{"ann"}, {}, {gone(Bucket::users, "ann")}, {users}},
  };
}

struct ApplyCluster : tests::ApplyTable {};

TEST_P(ApplyCluster, AnswersAndChangesAsTheTableSays) { run(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Assignments, ApplyCluster, testing::ValuesIn(assignment_cases()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Members, ApplyCluster, testing::ValuesIn(member_cases()), [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Users, ApplyCluster, testing::ValuesIn(user_cases()), [](const auto& info) { return info.param.name; });

// ---- Rows that are kept ----------------------------------------------------------------------------------------------------

TEST(PlacedPartitions, AreRunsWithoutGapsHoweverTheyComeAndGo) {
  MemoryRows rows;
  WriteSet set(rows, 0);
  for (int32_t partition : {5, 3, 4, 0, INT32_MAX, INT32_MIN, 9, 3}) {
    add_placed(set, "t", partition);
  }
  EXPECT_EQ(placed_partitions(set, "t"), (std::vector<int32_t>{INT32_MIN, 0, 3, 4, 5, 9, INT32_MAX}));
  for (int32_t partition : {4, 7, 0, INT32_MAX}) {
    drop_placed(set, "t", partition);
  }
  EXPECT_EQ(placed_partitions(set, "t"), (std::vector<int32_t>{INT32_MIN, 3, 5, 9}));
  for (int32_t partition : {INT32_MIN, 3, 5, 9}) {
    drop_placed(set, "t", partition);
  }
  EXPECT_EQ(set.get(Bucket::placed_partitions, "t"), std::nullopt) << "a list that comes to nothing has no row";
}

TEST(OwnedTopics, ManyComeAndGoInAnyOrder) {
  tests::AppliedRows applied;
  auto owned = [](int number) {
    return with<Topic>(make_topic("t" + std::to_string(number)), [](Topic& topic) { topic.owner = "ann"; });
  };
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(applied.answer_of(CreateTopic{owned(i)}).ok());
  }
  for (int i = 0; i < 100; i += 3) {
    ASSERT_TRUE(applied.answer_of(DeleteTopic{"t" + std::to_string((i * 7) % 100)}).ok());
  }
  EXPECT_EQ(tests::wrong_kept_rows(applied.rows.rows()), "");
  WriteSet set(applied.rows, 0);
  EXPECT_EQ(owned_topics(set, "ann").size(), 66u);
  EXPECT_EQ(owned_topics(set, "bob").size(), 0u);
  EXPECT_EQ(owned_topics(set, "").size(), 0u);
}

}  // namespace
