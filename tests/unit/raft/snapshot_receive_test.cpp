// Snapshots taken from another server: chunk by chunk, over lost connections and restarts, checked before they count.
#include <gtest/gtest.h>

#include "raft/log_store.h"
#include "raft/snapshot_store.h"
#include "raft/stable_store.h"
#include "tests/support/snapshots.h"

namespace {

using raft::Index;
using raft::SnapshotChunk;
using raft::SnapshotInfo;
using raft::SnapshotStore;
using tests::chunks_of;
using tests::DiskWorld;
using tests::image;
using tests::info_of;
using tests::label;
using tests::open_snapshots;
using tests::OpenedSnapshots;
using tests::read_snapshot;
using tests::write_snapshot;

const std::string kWhole = image(900, 5000);
const SnapshotInfo kInfo = info_of(900, kWhole);
const std::string kReceiving = "raft/snapshots/receiving";

// Goes on with the transfer until `chunks_max` more have come. True when the snapshot was published.
io::Result<bool> transfer(SnapshotStore& store, std::size_t chunks_max = 1000, bool is_published = true) {
  auto receiver = store.receive(kInfo);
  if (!receiver.ok()) return receiver.error();
  for (const SnapshotChunk& chunk : chunks_of(kInfo, kWhole)) {
    if (chunk.offset < (*receiver)->next_offset()) continue;
    if (chunks_max-- == 0) return false;
    if (io::Status taken = (*receiver)->append(chunk); !taken.ok()) return taken.error();
  }
  if (!is_published) return false;
  if (io::Status sealed = (*receiver)->seal(); !sealed.ok()) return sealed.error();
  auto reader = (*receiver)->image();
  if (!reader.ok()) return reader.error();
  std::string whole;
  for (;;) {
    auto piece = (*reader)->read(1000);
    if (!piece.ok()) return piece.error();
    if (piece->empty()) break;
    whole += *piece;
  }
  EXPECT_EQ(whole, kWhole);
  if (io::Status published = (*receiver)->publish(); !published.ok()) return published.error();
  return true;
}

TEST(SnapshotReceive, TakesChunksInOrderAndPublishesTheWhole) {
  DiskWorld disk(1);
  disk.run([](io::Env& env) {
    OpenedSnapshots opened = open_snapshots(env);
    ASSERT_TRUE(write_snapshot(*opened.store, 100, 2000).ok());
    auto published = transfer(*opened.store);
    ASSERT_TRUE(published.ok()) << published.error().to_text();
    EXPECT_EQ(*read_snapshot(*opened.store, kInfo.label), kWhole);
    EXPECT_EQ(opened.store->compaction_floor(), 100u);
    EXPECT_TRUE(opened.store->receive(kInfo).is(io::ErrorKind::exists));
    // What a snapshot made here holds and what was received is the same to the next server.
    ASSERT_TRUE(write_snapshot(*opened.store, 901, 5000).ok());
    auto again = opened.store->read(kInfo.label);
    EXPECT_EQ((*again)->info(), kInfo);
  });
  disk.machine.power_loss();
  disk.run([](io::Env& env) {
    OpenedSnapshots opened = open_snapshots(env);
    EXPECT_EQ(*read_snapshot(*opened.store, kInfo.label), kWhole);
  });
  EXPECT_EQ(disk.image().files.count(kReceiving), 0u);
}

TEST(SnapshotReceive, RefusesWhatIsOutOfTurnDamagedOrOfTheWrongSizeAndGoesOn) {
  DiskWorld disk(2);
  disk.run([](io::Env& env) {
    OpenedSnapshots opened = open_snapshots(env);
    auto receiver = opened.store->receive(kInfo);
    ASSERT_TRUE(receiver.ok());
    EXPECT_TRUE(opened.store->receive(kInfo).is(io::ErrorKind::busy));
    const auto chunks = chunks_of(kInfo, kWhole);
    EXPECT_TRUE((*receiver)->append(chunks[1]).is(io::ErrorKind::invalid));
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      SnapshotChunk flipped = chunks[i];
      flipped.bytes[i] = static_cast<char>(flipped.bytes[i] ^ 16);
      EXPECT_TRUE((*receiver)->append(flipped).is(io::ErrorKind::corrupt));
      SnapshotChunk shorter = chunks[i];
      shorter.bytes.pop_back();
      shorter.crc = io::crc32c(shorter.bytes);
      EXPECT_TRUE((*receiver)->append(shorter).is(io::ErrorKind::invalid));
      EXPECT_EQ((*receiver)->next_offset(), i * 512);
      ASSERT_TRUE((*receiver)->append(chunks[i]).ok());
      EXPECT_TRUE((*receiver)->append(chunks[i]).is(io::ErrorKind::invalid));  // once more
    }
    ASSERT_TRUE((*receiver)->is_complete());
    ASSERT_TRUE((*receiver)->seal().ok());
    ASSERT_TRUE((*receiver)->publish().ok());
    EXPECT_EQ(*read_snapshot(*opened.store, kInfo.label), kWhole);
  });
}

TEST(SnapshotReceive, RefusesAnImageThatIsNotWhatWasAnnounced) {
  DiskWorld disk(3);
  disk.run([&](io::Env& env) {
    OpenedSnapshots opened = open_snapshots(env);
    const uint64_t used = disk.volume().used();
    SnapshotInfo lied = kInfo;
    lied.digest ^= 1;
    auto receiver = opened.store->receive(lied);
    ASSERT_TRUE(receiver.ok());
    for (const SnapshotChunk& chunk : chunks_of(kInfo, kWhole)) ASSERT_TRUE((*receiver)->append(chunk).ok());
    EXPECT_TRUE((*receiver)->seal().is(io::ErrorKind::corrupt));
    EXPECT_EQ(disk.volume().used(), used);
    EXPECT_TRUE(opened.store->kept().empty());
    receiver->reset();
    SnapshotInfo absurd = kInfo;
    absurd.chunk_bytes = 2 << 20;
    EXPECT_TRUE(opened.store->receive(absurd).is(io::ErrorKind::invalid));
    absurd.chunk_bytes = 1 << 20;
    absurd.bytes = ~uint64_t{0};
    EXPECT_TRUE(opened.store->receive(absurd).is(io::ErrorKind::invalid));
  });
}

TEST(SnapshotReceive, ABitFlippedOnTheWayToTheDiskIsFoundBeforeItIsPublished) {
  for (uint64_t nth = 1; nth <= 12; ++nth) {
    for (const auto action : {io::sim::FaultAction::bit_flip, io::sim::FaultAction::misdirect}) {
      SCOPED_TRACE(nth);
      DiskWorld disk(70 + nth);
      disk.run([&](io::Env& env) {
        OpenedSnapshots opened = open_snapshots(env);
        disk.volume().script({action, io::sim::DiskOp::write, "raft/snapshots", nth});
        auto published = transfer(*opened.store);
        if (published.ok()) {
          EXPECT_EQ(*read_snapshot(*opened.store, kInfo.label), kWhole);
        } else {
          EXPECT_TRUE(published.is(io::ErrorKind::corrupt));
          EXPECT_TRUE(opened.store->kept().empty());
          EXPECT_TRUE(*transfer(*opened.store));
        }
      });
    }
  }
}

// Scenario SI-06, and a leader that offers another image after all.
TEST(SnapshotReceive, GoesOnWhereALostConnectionOrALifeEnded) {
  for (std::size_t stop = 0; stop <= 10; ++stop) {
    for (const int end : {0, 1, 2}) {
      SCOPED_TRACE(stop * 10 + static_cast<std::size_t>(end));
      DiskWorld disk(100 + stop);
      const auto rest = [&](io::Env& env, SnapshotStore& store) {
        (void)env;
        auto receiver = store.receive(kInfo);
        ASSERT_TRUE(receiver.ok());
        if (end < 2) {
          EXPECT_EQ((*receiver)->next_offset(), std::min<uint64_t>(stop * 512, 5000));
        }
        EXPECT_LE((*receiver)->next_offset(), std::min<uint64_t>(stop * 512, 5000));
        receiver->reset();
        EXPECT_TRUE(*transfer(store));
      };
      disk.run([&](io::Env& env) {
        OpenedSnapshots opened = open_snapshots(env);
        ASSERT_TRUE(transfer(*opened.store, stop, false).ok());
        if (end == 0) rest(env, *opened.store);
      });
      if (end == 0) continue;
      if (end == 2) disk.machine.power_loss();
      disk.run([&](io::Env& env) {
        OpenedSnapshots opened = open_snapshots(env);
        rest(env, *opened.store);
      });
    }
  }
  DiskWorld disk(99);
  disk.run([&](io::Env& env) {
    OpenedSnapshots opened = open_snapshots(env);
    ASSERT_TRUE(transfer(*opened.store, 4, false).ok());
    const std::string other = image(950, 3000);
    auto receiver = opened.store->receive(info_of(950, other));
    ASSERT_TRUE(receiver.ok());
    EXPECT_EQ((*receiver)->next_offset(), 0u);
    receiver->reset();
    // A snapshot of its own has overtaken the transfer.
    ASSERT_TRUE(write_snapshot(*opened.store, 2000, 10).ok());
    EXPECT_EQ(disk.image().files.count(kReceiving), 0u);
  });
}

// Scenario PT-09 over a life: pages that a failed sync left behind for clean do not count in the next one.
TEST(SnapshotReceive, WhatAFailedSyncLeftIsWrittenAgain) {
  for (uint64_t nth = 1; nth <= 3; ++nth) {
    SCOPED_TRACE(nth);
    DiskWorld disk(40 + nth);
    disk.volume().script({io::sim::FaultAction::error, io::sim::DiskOp::sync, kReceiving, nth});
    // The process dies before it can remove the file.
    disk.volume().script({io::sim::FaultAction::kill, io::sim::DiskOp::remove, kReceiving, 2});
    disk.run([&](io::Env& env) {
      OpenedSnapshots opened = open_snapshots(env);
      (void)transfer(*opened.store);
    });
    disk.volume().clear_scripted();
    disk.run([&](io::Env& env) {
      OpenedSnapshots opened = open_snapshots(env);
      EXPECT_TRUE(*transfer(*opened.store));
    });
    disk.machine.power_loss();
    disk.run([&](io::Env& env) {
      OpenedSnapshots opened = open_snapshots(env);
      ASSERT_EQ(opened.store->kept().size(), 1u);
      EXPECT_EQ(*read_snapshot(*opened.store, kInfo.label), kWhole);
    });
  }
}

// The install's part on the disk: receive, publish, reset the log. Scenarios PT-02, PT-03, SI-09.
struct Install {
  std::string stable;       // raft/stable before it began
  bool is_received = false;
  bool is_reset = false;
};

void install(io::Env& env, DiskWorld& disk, Install& seen) {
  auto stable = raft::StableStore::open(env.disk, tests::kStore);
  if (!stable.ok() || !(*stable)->confirm(std::nullopt).ok()) return;
  raft::LogStore::Contents contents;
  auto log = raft::LogStore::open(env.disk, tests::kStore, {.segment_bytes = 4096}, contents);
  ASSERT_TRUE(log.ok()) << log.error().to_text();
  OpenedSnapshots opened = open_snapshots(env);
  if (opened.store == nullptr) return;
  const bool has_snapshot = !opened.store->kept().empty();
  // I10, whatever the moment of the crash: no hole between snapshot and log.
  ASSERT_LE(contents.base_index, has_snapshot ? opened.store->kept().front().label.index : 0);
  EXPECT_TRUE(opened.store->damaged().empty());
  if (seen.is_received) {
    ASSERT_TRUE(has_snapshot);
  }
  if (seen.is_reset) {
    EXPECT_EQ(contents.base_index, 900u);
  }
  if (!opened.status.ok() || !(*log)->confirm().ok()) return;
  if (contents.last_index == 0) {
    for (Index i = 1; i <= 12; ++i) {
      if (!(*log)->append(std::vector<raft::Entry>{tests::entry(1, i, std::string(700, 'x'))}).ok()) return;
    }
  }
  if ((*stable)->record().hard_state.term == 0 && !(*stable)->save({9, "a"}, {}, (*log)->last_batch()).ok()) return;
  seen.stable = disk.bytes("raft/stable");
  if (!has_snapshot) {
    if (!transfer(*opened.store).ok()) return;
  }
  seen.is_received = true;
  if ((*log)->term(900) != kInfo.label.term) {
    if (!(*log)->reset(900, kInfo.label.term).ok()) return;
  }
  seen.is_reset = true;
  EXPECT_EQ(disk.bytes("raft/stable"), seen.stable);
}

void sweep(io::sim::FaultAction action) {
  bool has_struck = true;
  uint64_t nth = 1;
  for (; has_struck; ++nth) {
    SCOPED_TRACE(nth);
    ASSERT_LT(nth, 400u);
    DiskWorld disk(nth + 5000);
    Install seen;
    disk.volume().script({action, std::nullopt, "raft", nth});
    disk.run([&](io::Env& env) { install(env, disk, seen); });
    has_struck = disk.volume().scripted_left() == 0;
    disk.volume().clear_scripted();
    disk.run([&](io::Env& env) { install(env, disk, seen); });
    EXPECT_TRUE(seen.is_reset);
    disk.machine.power_loss();
    disk.run([&](io::Env& env) {
      OpenedSnapshots opened = open_snapshots(env);
      ASSERT_EQ(opened.store->kept().size(), 1u);
      EXPECT_EQ(*read_snapshot(*opened.store, kInfo.label), kWhole);
      raft::LogStore::Contents contents;
      auto log = raft::LogStore::open(env.disk, tests::kStore, {.segment_bytes = 4096}, contents);
      ASSERT_TRUE(log.ok());
      EXPECT_EQ(contents.base_index, 900u);
      EXPECT_EQ(contents.base_term, kInfo.label.term);
      EXPECT_EQ(contents.last_index, 900u);
      auto stable = raft::StableStore::open(env.disk, tests::kStore);
      ASSERT_TRUE(stable.ok());
      EXPECT_EQ((*stable)->record().hard_state, (raft::HardState{9, "a"}));
    });
    EXPECT_EQ(disk.image().files.count(kReceiving), 0u);
  }
  EXPECT_GT(nth, 60u);
}

// Scenarios PT-02 and PT-03.
TEST(SnapshotReceive, AnInstallSurvivesAKillAtEveryDiskOperation) { sweep(io::sim::FaultAction::kill); }
TEST(SnapshotReceive, AnInstallSurvivesALossOfPowerAtEveryDiskOperation) { sweep(io::sim::FaultAction::power_loss); }
// Scenario SI-09.
TEST(SnapshotReceive, AnInstallSurvivesAnErrorAtEveryDiskOperation) { sweep(io::sim::FaultAction::error); }
TEST(SnapshotReceive, AnInstallSurvivesAFullDiskAtEveryDiskOperation) { sweep(io::sim::FaultAction::no_space); }

}  // namespace
