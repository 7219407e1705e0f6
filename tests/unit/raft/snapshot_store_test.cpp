// Snapshots made here: written, published, kept, damaged, refused. Received ones: snapshot_receive_test.cpp.
#include "raft/snapshot_store.h"

#include <gtest/gtest.h>

#include "io/sim/switches.h"
#include "raft/bytes.h"
#include "tests/support/snapshots.h"

namespace {

using raft::Index;
using raft::SnapshotInfo;
using raft::SnapshotStore;
using tests::DiskWorld;
using tests::image;
using tests::label;
using tests::open_snapshots;
using tests::OpenedSnapshots;
using tests::read_snapshot;
using tests::write_snapshot;

std::string path_of(Index index) { return raft::snapshot_format::path_of(index, label(index).term); }

std::vector<Index> indexes(const SnapshotStore& store) {
  std::vector<Index> found;
  for (const SnapshotInfo& each : store.kept()) found.push_back(each.label.index);
  return found;
}

std::size_t count_files(DiskWorld& disk, std::string_view part) {
  std::size_t count = 0;
  for (const auto& [path, content] : disk.image().files) {
    count += path.starts_with("raft/snapshots/") && path.find(part) != std::string::npos;
  }
  return count;
}

void write_two(DiskWorld& disk) {
  disk.run([](io::Env& env) {
    OpenedSnapshots opened = open_snapshots(env);
    ASSERT_TRUE(write_snapshot(*opened.store, 800, 3000).ok());
    ASSERT_TRUE(write_snapshot(*opened.store, 900, 3333).ok());
  });
}

TEST(SnapshotStore, KeepsTheNewestTwoAndReadsThemBack) {
  DiskWorld disk(1);
  const std::size_t sizes[] = {0, 1, 511, 512, 513, 1024, 20'000};
  disk.run([&](io::Env& env) {
    OpenedSnapshots opened = open_snapshots(env);
    EXPECT_EQ(opened.store->compaction_floor(), 0u);
    Index index = 10;
    for (const std::size_t bytes : sizes) {
      ASSERT_TRUE(write_snapshot(*opened.store, index, bytes, 1 + bytes / 3).ok());
      ASSERT_LE(opened.store->kept().size(), 2u);
      EXPECT_EQ(opened.store->kept()[0].label, label(index));
      EXPECT_EQ(opened.store->kept()[0].bytes, bytes);
      auto whole = read_snapshot(*opened.store, label(index));
      ASSERT_TRUE(whole.ok()) << whole.error().to_text();
      EXPECT_EQ(*whole, image(index, bytes));
      EXPECT_TRUE(opened.store->verify(label(index)).ok());
      index += 10;
    }
    EXPECT_EQ(opened.store->compaction_floor(), 60u);
  });
  disk.machine.power_loss();
  disk.run([&](io::Env& env) {
    OpenedSnapshots opened = open_snapshots(env);
    ASSERT_TRUE(opened.status.ok());
    EXPECT_EQ(indexes(*opened.store), (std::vector<Index>{70, 60}));
    EXPECT_EQ(opened.store->kept()[0].label, label(70));
    EXPECT_EQ(*read_snapshot(*opened.store, label(70)), image(70, 20'000));
    EXPECT_EQ(*read_snapshot(*opened.store, label(60)), image(60, 1024));
  });
  EXPECT_EQ(count_files(disk, ""), 2u);
}

TEST(SnapshotStore, ReadsFromAnyChunkOnAndGoesOnWhenTheSnapshotIsReplaced) {
  DiskWorld disk(2);
  write_two(disk);
  disk.run([](io::Env& env) {
    OpenedSnapshots opened = open_snapshots(env);
    auto reader = opened.store->read(label(800));
    ASSERT_TRUE(reader.ok());
    const std::string whole = image(800, 3000);
    ASSERT_TRUE(write_snapshot(*opened.store, 1000, 100).ok());
    EXPECT_TRUE(opened.store->read(label(800)).is(io::ErrorKind::not_found));
    for (uint64_t offset = 0; offset < 3000; offset += 512) {
      auto chunk = (*reader)->read_chunk(offset);
      ASSERT_TRUE(chunk.ok());
      EXPECT_EQ(chunk->offset, offset);
      EXPECT_EQ(chunk->bytes, whole.substr(offset, 512));
      EXPECT_EQ(chunk->crc, io::crc32c(chunk->bytes));
    }
  });
}

// Scenario SC-08.
TEST(SnapshotStore, ASecondSnapshotAtTheSameIndexIsNotNeeded) {
  DiskWorld disk(3);
  write_two(disk);
  disk.run([](io::Env& env) {
    OpenedSnapshots opened = open_snapshots(env);
    EXPECT_TRUE(write_snapshot(*opened.store, 900, 50).is(io::ErrorKind::exists));
    EXPECT_TRUE(write_snapshot(*opened.store, 850, 50).is(io::ErrorKind::exists));
    EXPECT_EQ(indexes(*opened.store), (std::vector<Index>{900, 800}));
    EXPECT_EQ(*read_snapshot(*opened.store, label(900)), image(900, 3333));
  });
  EXPECT_EQ(count_files(disk, "writing"), 0u);
}

TEST(SnapshotStore, AHeldSnapshotIsSparedUntilItIsReleasedOrThereIsNoRoom) {
  for (const bool has_room : {true, false}) {
    DiskWorld disk(4);
    write_two(disk);
    disk.run([&](io::Env& env) {
      OpenedSnapshots opened = open_snapshots(env);
      SnapshotStore& store = *opened.store;
      store.hold(label(900));
      store.hold(label(900));  // for two servers
      for (const Index index : {1000, 1100, 1200}) ASSERT_TRUE(write_snapshot(store, index, 100).ok());
      EXPECT_EQ(indexes(store), (std::vector<Index>{1200, 1100}));
      EXPECT_EQ(store.compaction_floor(), 1100u) << "the log need not reach back to it";
      EXPECT_EQ(*read_snapshot(store, label(900)), image(900, 3333));
      store.release(label(900));
      EXPECT_TRUE(store.read(label(900)).ok());
      if (has_room) store.release(label(900));
      else store.give_up_held();
      EXPECT_TRUE(store.read(label(900)).is(io::ErrorKind::not_found));
      store.release(label(900));  // once too often, when it was given up before
    });
    EXPECT_EQ(count_files(disk, ""), 2u);
  }
  // What a life leaves so is put away by the next one.
  DiskWorld disk(5);
  write_two(disk);
  disk.run([&](io::Env& env) {
    OpenedSnapshots opened = open_snapshots(env);
    opened.store->hold(label(800));
    ASSERT_TRUE(write_snapshot(*opened.store, 1000, 100).ok());
  });
  EXPECT_EQ(count_files(disk, ""), 3u);
  disk.run([](io::Env& env) { EXPECT_EQ(indexes(*open_snapshots(env).store), (std::vector<Index>{1000, 900})); });
  EXPECT_EQ(count_files(disk, ""), 2u);
}

// Scenario SC-10.
TEST(SnapshotStore, OneWriterAtATime) {
  DiskWorld disk(4);
  disk.run([](io::Env& env) {
    OpenedSnapshots opened = open_snapshots(env);
    auto writer = opened.store->write();
    ASSERT_TRUE(writer.ok());
    EXPECT_TRUE(opened.store->write().is(io::ErrorKind::busy));
    ASSERT_TRUE((*writer)->write("abc").ok());
    writer->reset();  // given up without a word
    ASSERT_TRUE(write_snapshot(*opened.store, 5, 10).ok());
  });
  EXPECT_EQ(count_files(disk, "writing"), 0u);
}

TEST(SnapshotStore, KeepsToTheRateAndLetsOthersGoOn) {
  DiskWorld disk(5);
  disk.run([](io::Env& env) {
    OpenedSnapshots opened = open_snapshots(env);
    int beats = 0;
    io::with_scope([&](io::Scope& scope) {
      io::Task beat = scope.spawn("beat", [&] {
        for (;; ++beats) io::sleep_for(std::chrono::milliseconds(50));
      });
      const io::Instant begin = env.now();
      auto writer = opened.store->write(10'000);
      ASSERT_TRUE(writer.ok());
      ASSERT_TRUE((*writer)->write(image(7, 50'000)).ok());
      ASSERT_TRUE((*writer)->publish(label(7)).ok());
      EXPECT_GE(env.now() - begin, std::chrono::milliseconds(4600));
      EXPECT_LE(env.now() - begin, std::chrono::seconds(6));
      beat.cancel();
    });
    EXPECT_GT(beats, 85);
  });
}

// ---- Damage ------------------------------------------------------------------------------------------------------------------------

TEST(SnapshotStore, DamagedHeadsAndTrailersAreNotListed) {
  DiskWorld disk(10);
  write_two(disk);
  const std::string whole = disk.bytes(path_of(900));
  const uint64_t trailer = raft::snapshot_format::trailer_at(tests::info_of(900, image(900, 3333)));
  const auto before = disk.image();
  for (uint64_t at = 0; at < whole.size(); at = at == 511 ? trailer : at + 1) {
    SCOPED_TRACE(at);
    disk.restore(before);
    ASSERT_TRUE(disk.volume().flip_bit(path_of(900), at, static_cast<int>(at % 8)));
    const auto flipped = disk.image();
    disk.run([&](io::Env& env) {
      OpenedSnapshots opened = open_snapshots(env, tests::kSmallChunks, false);
      ASSERT_TRUE(opened.status.ok()) << opened.status.error().to_text();
      EXPECT_EQ(indexes(*opened.store), std::vector<Index>{800});
      ASSERT_EQ(opened.store->damaged().size(), 1u);
      EXPECT_EQ(opened.store->damaged()[0].path, path_of(900));
      EXPECT_NE(opened.store->damaged()[0].reason.find("damaged at offset"), std::string::npos);
    });
    EXPECT_EQ(disk.image().files, flipped.files);
  }
  for (const std::size_t length : {std::size_t{0}, std::size_t{100}, std::size_t{512}, whole.size() - 1, whole.size() + 1}) {
    SCOPED_TRACE(length);
    disk.restore(before);
    std::string cut = whole;
    cut.resize(length, 'x');
    disk.volume().tree().put_file(path_of(900), cut);
    disk.run([&](io::Env& env) {
      OpenedSnapshots opened = open_snapshots(env, tests::kSmallChunks, false);
      EXPECT_EQ(indexes(*opened.store), std::vector<Index>{800});
      EXPECT_EQ(opened.store->damaged().size(), 1u);
    });
  }
}

TEST(SnapshotStore, AFlippedBitInAChunkIsFoundAndTheOlderOneTakenOnlyIfTheLogReachesBack) {
  DiskWorld disk(11);
  write_two(disk);
  const auto before = disk.image();
  const uint64_t end = raft::snapshot_format::trailer_at(tests::info_of(900, image(900, 3333)));
  for (uint64_t at = 512; at < end; at += 13) {
    SCOPED_TRACE(at);
    disk.restore(before);
    ASSERT_TRUE(disk.volume().flip_bit(path_of(900), at, static_cast<int>(at % 8)));
    disk.run([&](io::Env& env) {
      OpenedSnapshots opened = open_snapshots(env);
      SnapshotStore& store = *opened.store;
      EXPECT_EQ(store.kept().front().label.index, 900u);
      io::Status checked = store.verify(label(900));
      // The zeros at the end of a chunk's head are covered too: every bit is.
      ASSERT_TRUE(checked.is(io::ErrorKind::corrupt));
      EXPECT_NE(checked.error().message.find(path_of(900) + ": damaged at offset "), std::string::npos);
      EXPECT_EQ(indexes(store), std::vector<Index>{800});
      EXPECT_EQ(store.compaction_floor(), 0u);
      ASSERT_EQ(store.damaged().size(), 1u);
      EXPECT_EQ(store.damaged().front().path, path_of(900));
      EXPECT_TRUE(store.verify(label(800)).ok());
      // The next one takes the damaged one's place.
      ASSERT_TRUE(write_snapshot(store, 900, 3333).ok());
      EXPECT_EQ(indexes(store), (std::vector<Index>{900, 800}));
      EXPECT_TRUE(store.verify(label(900)).ok());
      EXPECT_TRUE(store.damaged().empty());
    });
  }
}

TEST(SnapshotStore, ADamagedChunkIsNeitherReadNorSent) {
  DiskWorld disk(12);
  write_two(disk);
  ASSERT_TRUE(disk.volume().flip_bit(path_of(900), 512 + 544 * 2 + 100, 1));
  disk.run([](io::Env& env) {
    OpenedSnapshots opened = open_snapshots(env);
    EXPECT_TRUE(read_snapshot(*opened.store, label(900)).is(io::ErrorKind::corrupt));
    auto reader = opened.store->read(label(900));
    EXPECT_TRUE((*reader)->read_chunk(512).ok());
    EXPECT_TRUE((*reader)->read_chunk(1024).is(io::ErrorKind::corrupt));
  });
}

TEST(SnapshotStore, FindsAMisdirectedWrite) {
  for (uint64_t nth = 1; nth <= 9; ++nth) {
    SCOPED_TRACE(nth);
    DiskWorld disk(200 + nth);
    disk.run([&](io::Env& env) {
      OpenedSnapshots opened = open_snapshots(env);
      ASSERT_TRUE(write_snapshot(*opened.store, 800, 3000).ok());
      disk.volume().script({io::sim::FaultAction::misdirect, io::sim::DiskOp::write, "raft/snapshots", nth});
      ASSERT_TRUE(write_snapshot(*opened.store, 900, 4000).ok());
    });
    disk.run([&](io::Env& env) {
      OpenedSnapshots opened = open_snapshots(env);
      ASSERT_TRUE(opened.status.ok());
      if (opened.store->kept()[0].label.index != 900) return;  // named as damaged already
      auto whole = read_snapshot(*opened.store, label(900));
      EXPECT_TRUE(whole.is(io::ErrorKind::corrupt) || *whole == image(900, 4000));
    });
  }
}

TEST(SnapshotStore, RefusesAnotherVolumesAndANewerFormat) {
  DiskWorld disk(13);
  write_two(disk);
  disk.run([](io::Env& env) {
    auto other = SnapshotStore::open(env.disk, env.clock, raft::StoreId{1, 1}, tests::kSmallChunks);
    ASSERT_TRUE(other.is(io::ErrorKind::corrupt));
    EXPECT_NE(other.error().message.find("belongs to store"), std::string::npos);
  });
  std::string bytes = disk.bytes(path_of(900));
  bytes.replace(0, 512, raft::snapshot_format::encode_header(tests::info_of(900, image(900, 3333)), tests::kStore, 2));
  disk.volume().tree().put_file(path_of(900), bytes);
  disk.run([](io::Env& env) {
    EXPECT_TRUE(open_snapshots(env, tests::kSmallChunks, false).status.is(io::ErrorKind::invalid));
  });
}

// ---- Failures at every step ------------------------------------------------------------------------------------------------------

// Writes snapshots 10, 20, 30, 40; `done` is the last one that returned success, `trying` the one under way.
void history(io::Env& env, Index& done, Index& trying, Index count = 4) {
  OpenedSnapshots opened = open_snapshots(env);
  if (!opened.status.ok()) return;
  for (Index i = 0; i < count; ++i) {
    trying = done + 10;
    if (!write_snapshot(*opened.store, trying, 700 * trying % 3000, 400).ok()) return;
    done = trying;
  }
}

// Every listed snapshot is whole, the acknowledged ones are there, nothing else is left.
void check_after(DiskWorld& disk, Index done, Index trying) {
  disk.run([&](io::Env& env) {
    OpenedSnapshots opened = open_snapshots(env);
    ASSERT_TRUE(opened.status.ok()) << opened.status.error().to_text();
    EXPECT_TRUE(opened.store->damaged().empty());
    const std::vector<Index> found = indexes(*opened.store);
    const Index newest = found.empty() ? 0 : found[0];
    EXPECT_TRUE(newest == done || newest == trying) << newest << " " << done << " " << trying;
    EXPECT_EQ(found.size(), std::min<std::size_t>(2, newest / 10));
    for (const Index index : found) {
      auto whole = read_snapshot(*opened.store, label(index));
      ASSERT_TRUE(whole.ok()) << whole.error().to_text();
      EXPECT_EQ(*whole, image(index, 700 * index % 3000));
    }
  });
  EXPECT_EQ(count_files(disk, "writing"), 0u);
  EXPECT_LE(count_files(disk, ".snapshot"), 2u);
}

void sweep(io::sim::FaultAction action) {
  bool has_struck = true;
  uint64_t nth = 1;
  for (; has_struck; ++nth) {
    SCOPED_TRACE(nth);
    ASSERT_LT(nth, 400u);
    DiskWorld disk(nth + 3000);
    Index done = 0;
    Index trying = 0;
    disk.volume().script({action, std::nullopt, "raft", nth});
    disk.run([&](io::Env& env) { history(env, done, trying); });
    has_struck = disk.volume().scripted_left() == 0;
    disk.volume().clear_scripted();
    disk.machine.kill();
    check_after(disk, done, trying);
    disk.machine.power_loss();
    check_after(disk, done, trying);
    disk.run([&](io::Env& env) {
      OpenedSnapshots opened = open_snapshots(env);
      done = opened.store->kept().empty() ? 0 : opened.store->kept()[0].label.index;
    });
    const Index before = done;
    disk.run([&](io::Env& env) { history(env, done, trying, 1); });
    EXPECT_EQ(done, before + 10);
  }
  EXPECT_GT(nth, 40u);
}

// Scenario SC-09.
TEST(SnapshotStore, SurvivesAKillAtEveryDiskOperation) { sweep(io::sim::FaultAction::kill); }
// Scenario SC-09.
TEST(SnapshotStore, SurvivesALossOfPowerAtEveryDiskOperation) { sweep(io::sim::FaultAction::power_loss); }

TEST(SnapshotStore, SurvivesAnErrorAtEveryDiskOperation) { sweep(io::sim::FaultAction::error); }
TEST(SnapshotStore, SurvivesAFullDiskAtEveryDiskOperation) { sweep(io::sim::FaultAction::no_space); }

// The same process goes on, what was kept stays, the room comes back.
TEST(SnapshotStore, AFailureAtAnyStepLeavesWhatWasAndGivesItsRoomBack) {
  using io::sim::DiskOp;
  for (const auto action : {io::sim::FaultAction::no_space, io::sim::FaultAction::error}) {
    for (const DiskOp op : {DiskOp::create, DiskOp::write, DiskOp::sync, DiskOp::rename, DiskOp::sync_directory}) {
      bool has_struck = true;
      for (uint64_t nth = 1; has_struck; ++nth) {
        SCOPED_TRACE(std::string(to_string(op)) + " " + std::to_string(nth));
        DiskWorld disk(500 + nth);
        write_two(disk);
        disk.run([&](io::Env& env) {
          OpenedSnapshots opened = open_snapshots(env);
          const uint64_t used = disk.volume().used();
          disk.volume().script({action, op, "raft/snapshots", nth});
          const io::Status written = write_snapshot(*opened.store, 1000, 4000);
          has_struck = disk.volume().scripted_left() == 0;
          disk.volume().clear_scripted();
          EXPECT_EQ(written.ok(), !has_struck);
          if (!has_struck) return;
          EXPECT_EQ(indexes(*opened.store), (std::vector<Index>{900, 800}));
          EXPECT_EQ(disk.volume().used(), used);
          EXPECT_EQ(*read_snapshot(*opened.store, label(900)), image(900, 3333));
          EXPECT_TRUE(write_snapshot(*opened.store, 1000, 4000).ok());
          EXPECT_EQ(indexes(*opened.store), (std::vector<Index>{1000, 900}));
        });
        disk.machine.power_loss();
        disk.run([&](io::Env& env) {
          OpenedSnapshots opened = open_snapshots(env);
          EXPECT_EQ(indexes(*opened.store), (std::vector<Index>{1000, 900}));
          EXPECT_TRUE(opened.store->verify(label(1000)).ok());
        });
      }
    }
  }
}

TEST(SnapshotStore, TenIntervalsOnAFullDiskLeaveNothingBehind) {
  DiskWorld disk(15);
  write_two(disk);
  const uint64_t capacity = disk.volume().capacity();
  disk.run([&](io::Env& env) {
    OpenedSnapshots opened = open_snapshots(env);
    const uint64_t used = disk.volume().used();
    disk.volume().set_capacity(used + 6000);
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(write_snapshot(*opened.store, 1000, 20'000).is(io::ErrorKind::no_space));
      EXPECT_EQ(disk.volume().used(), used);
    }
    disk.volume().set_capacity(capacity);
    EXPECT_TRUE(write_snapshot(*opened.store, 1000, 20'000).ok());
  });
}

// The defence snapshot-published-unsynced: without the sync a loss of power leaves half a snapshot under a whole one's name.
TEST(SnapshotStore, ANameStandsOnlyForSyncedBytes) {
  const auto damaged_after_power_loss = [] {
    int damaged = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      DiskWorld disk(seed);
      write_two(disk);
      disk.machine.power_loss();
      disk.run([&](io::Env& env) {
        OpenedSnapshots opened = open_snapshots(env);
        if (!opened.status.ok()) return;
        for (const SnapshotInfo& info : std::vector<SnapshotInfo>(opened.store->kept())) (void)opened.store->verify(info.label);
        damaged += !opened.store->damaged().empty();
      });
    }
    return damaged;
  };
  EXPECT_EQ(damaged_after_power_loss(), 0);
  io::sim::Switchboard board;
  board.off.insert(io::Defence::snapshot_published_unsynced);
  const io::sim::SwitchboardGuard guard(&board);
  EXPECT_GT(damaged_after_power_loss(), 10);
}

}  // namespace
