#include "raft/stable_store.h"

#include <gtest/gtest.h>

#include "tests/support/disk_world.h"

namespace {

using raft::Configuration;
using raft::HardState;
using raft::StableRecord;
using raft::StableStore;
using tests::DiskWorld;
using tests::kStore;

const Configuration kMembers = raft::bootstrap_configuration({{"n1", "n1:1"}, {"n2", "n2:1"}, {"n3", "n3:1"}});
constexpr raft::ClusterId kCluster{5, 6};

struct Opened {
  io::Status status;
  std::unique_ptr<StableStore> store;
  StableRecord record;
  Configuration bootstrap;
};

Opened open(io::Env& env, const std::optional<Configuration>& bootstrap = kMembers, bool is_confirmed = true) {
  Opened opened;
  auto store = StableStore::open(env.disk, kStore);
  if (!store.ok()) {
    opened.status = store.error();
    return opened;
  }
  if (is_confirmed) opened.status = (*store)->confirm(bootstrap);
  opened.record = (*store)->record();
  opened.bootstrap = (*store)->bootstrap();
  opened.store = std::move(*store);
  return opened;
}

Opened look(DiskWorld& disk, const std::optional<Configuration>& bootstrap = kMembers, bool is_confirmed = true) {
  Opened found;
  disk.run([&](io::Env& env) {
    found = open(env, bootstrap, is_confirmed);
    found.store.reset();
  });
  return found;
}

void save(DiskWorld& disk, const HardState& hard_state, uint64_t log_batch = 0) {
  disk.run([&](io::Env& env) {
    Opened opened = open(env);
    ASSERT_TRUE(opened.status.ok());
    ASSERT_TRUE(opened.store->save(hard_state, kCluster, log_batch).ok());
  });
}

TEST(StableStore, MakesAnIdentityOnceAndKeepsIt) {
  DiskWorld disk(1);
  const Opened first = look(disk);
  ASSERT_TRUE(first.status.ok()) << first.status.error().to_text();
  EXPECT_EQ(first.record.store, kStore);
  EXPECT_EQ(first.record.hard_state, HardState{});
  EXPECT_EQ(first.bootstrap, kMembers);
  const Opened second = look(disk, raft::bootstrap_configuration({{"other", "x:1"}}));
  EXPECT_EQ(second.record.store, kStore);
  EXPECT_EQ(second.bootstrap, kMembers);
}

TEST(StableStore, FindsTermVoteClusterAndLogBatchAgain) {
  DiskWorld disk(2);
  save(disk, {7, "n2"}, 42);
  disk.machine.power_loss();
  const Opened found = look(disk);
  EXPECT_EQ(found.record.hard_state, (HardState{7, "n2"}));
  EXPECT_EQ(found.record.cluster, kCluster);
  EXPECT_EQ(found.record.log_batch, 42u);
}

TEST(StableStore, WithoutAConfigurationTheDirectoryStaysWithoutOneUntilItIsGiven) {
  DiskWorld disk(3);
  EXPECT_TRUE(look(disk, std::nullopt).bootstrap.servers.empty());
  EXPECT_TRUE(look(disk, std::nullopt).bootstrap.servers.empty());
  EXPECT_EQ(look(disk, kMembers).bootstrap, kMembers);
  EXPECT_EQ(look(disk, std::nullopt).bootstrap, kMembers);
}

TEST(StableStore, RefusesALogWithoutARecord) {
  DiskWorld disk(4);
  save(disk, {1, "n1"});
  disk.run([](io::Env& env) {
    raft::LogStore::Contents contents;
    auto log = raft::LogStore::open(env.disk, kStore, raft::LogSettings{.segment_bytes = 4096}, contents);
    ASSERT_TRUE((*log)->confirm().ok());
    ASSERT_TRUE((*log)->append(std::vector{tests::entry(1, 1, "a")}).ok());
  });
  disk.volume().tree().erase("raft/stable");
  disk.volume().tree().erase("raft/bootstrap");
  const auto before = disk.image();
  const Opened refused = look(disk);
  ASSERT_TRUE(refused.status.is(io::ErrorKind::corrupt));
  EXPECT_NE(refused.status.error().message.find("raft/stable"), std::string::npos);
  EXPECT_EQ(disk.image().files, before.files);
}

TEST(StableStore, RefusesABootstrapConfigurationWithoutARecord) {
  DiskWorld disk(5);
  save(disk, {1, "n1"});
  disk.volume().tree().erase("raft/stable");
  EXPECT_TRUE(look(disk).status.is(io::ErrorKind::corrupt));
}

TEST(StableStore, RefusesADamagedBootstrapConfiguration) {
  DiskWorld disk(6);
  save(disk, {1, "n1"});
  const size_t bytes = disk.bytes("raft/bootstrap").size();
  for (size_t at = 0; at < bytes; ++at) {
    disk.volume().flip_bit("raft/bootstrap", at, 2);
    const Opened refused = look(disk, kMembers, false);
    EXPECT_FALSE(refused.status.ok()) << at;
    disk.volume().flip_bit("raft/bootstrap", at, 2);
  }
}

TEST(StableStore, AFlippedBitAnywhereNeverChangesTheVote) {
  DiskWorld disk(7);
  save(disk, {3, "n1"});
  save(disk, {4, ""});
  disk.run([](io::Env& env) {
    Opened opened = open(env);
    ASSERT_TRUE(opened.store->save({4, "n3"}, kCluster, 0).ok());
  });
  const auto image = disk.image();
  for (uint64_t at = 0; at < 16384; at += at % 4096 < 100 ? 1 : 61) {
    disk.restore(image);
    ASSERT_TRUE(disk.volume().flip_bit("raft/stable", at, static_cast<int>(at % 8)));
    const Opened found = look(disk);
    ASSERT_TRUE(found.status.ok()) << at << " " << found.status.error().to_text();
    EXPECT_EQ(found.record.hard_state, (HardState{4, "n3"})) << at;
  }
}

TEST(StableStore, RefusesWhenNoCopyIsWholeAndChangesNothing) {
  DiskWorld disk(8);
  save(disk, {3, "n1"});
  for (uint64_t copy = 0; copy < 4; ++copy) disk.volume().flip_bit("raft/stable", copy * 4096 + 24, 0);
  const auto before = disk.image();
  EXPECT_TRUE(look(disk).status.is(io::ErrorKind::corrupt));
  EXPECT_EQ(disk.image().files, before.files);
}

TEST(StableStore, FailedSyncEndsTheStoreForGood) {
  DiskWorld disk(9);
  disk.run([&](io::Env& env) {
    Opened opened = open(env);
    disk.volume().script({io::sim::FaultAction::error, io::sim::DiskOp::sync, "raft/stable", 1});
    EXPECT_FALSE(opened.store->save({1, "n1"}, kCluster, 0).ok());
    EXPECT_FALSE(opened.store->save({1, "n1"}, kCluster, 0).ok());
    EXPECT_FALSE(opened.store->save({2, "n1"}, kCluster, 0).ok());
  });
}

// Scenario PT-09, over a restart.
TEST(StableStore, VoteFoundAfterAFailedSyncSurvivesTheLossOfPower) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    DiskWorld disk(seed);
    save(disk, {1, "n1"});
    disk.run([&](io::Env& env) {
      Opened opened = open(env);
      disk.volume().script({io::sim::FaultAction::error, io::sim::DiskOp::sync, "raft/stable", 1});
      EXPECT_FALSE(opened.store->save({2, "n2"}, kCluster, 0).ok());
    });
    const Opened found = look(disk);
    ASSERT_TRUE(found.status.ok());
    disk.machine.power_loss();
    EXPECT_EQ(look(disk).record.hard_state, found.record.hard_state);
  }
}

// Saves rising terms; `done` is the newest that was saved.
void history(io::Env& env, HardState& done, HardState& trying) {
  Opened opened = open(env);
  if (!opened.status.ok()) return;
  done = trying = opened.record.hard_state;
  const raft::Term first = done.term + 1;
  for (raft::Term term = first; term < first + 5; ++term) {
    trying = {term, "n" + std::to_string(term % 3)};
    if (!opened.store->save(trying, kCluster, term).ok()) return;
    done = trying;
  }
}

void sweep(io::sim::FaultAction action, bool is_twice) {
  bool has_struck = true;
  for (uint64_t nth = 1; has_struck; ++nth) {
    SCOPED_TRACE(nth);
    ASSERT_LT(nth, 200u);
    DiskWorld disk(nth + 2000);
    HardState done;
    HardState trying;
    // The first start is part of the sweep, then a second life.
    if (nth % 2 == 0) disk.run([&](io::Env& env) { history(env, done, trying); });
    disk.volume().script({action, std::nullopt, "", (nth + 1) / 2});
    disk.run([&](io::Env& env) { history(env, done, trying); });
    has_struck = nth % 2 == 1 || disk.volume().scripted_left() == 0;
    disk.volume().clear_scripted();
    if (is_twice) {
      disk.volume().script({action, std::nullopt, "", nth % 5 + 1});
      look(disk);
      disk.volume().clear_scripted();
    }
    const Opened found = look(disk);
    ASSERT_TRUE(found.status.ok()) << found.status.error().to_text();
    EXPECT_TRUE(found.record.hard_state == done || found.record.hard_state == trying);
    EXPECT_EQ(found.bootstrap, kMembers);
    disk.machine.power_loss();
    EXPECT_EQ(look(disk).record.hard_state, found.record.hard_state);
  }
}

TEST(StableStore, SurvivesAKillAtEveryDiskOperation) { sweep(io::sim::FaultAction::kill, false); }
TEST(StableStore, SurvivesALossOfPowerAtEveryDiskOperation) { sweep(io::sim::FaultAction::power_loss, false); }
TEST(StableStore, SurvivesASecondKillWhileItOpens) { sweep(io::sim::FaultAction::kill, true); }
TEST(StableStore, SurvivesASecondLossOfPowerWhileItOpens) { sweep(io::sim::FaultAction::power_loss, true); }

}  // namespace
