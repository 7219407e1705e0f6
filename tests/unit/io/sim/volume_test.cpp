#include "io/sim/volume.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "io/sim/world.h"

namespace {

using namespace io;
using namespace io::sim;

MachineSettings named(std::string name) {
  MachineSettings settings;
  settings.name = std::move(name);
  return settings;
}

template <typename T>
std::string shown(const Result<T>& result) {
  return result.ok() ? "ok" : std::string(to_string(result.error().kind));
}

struct VolumeTest : testing::Test {
  World world{5};
  Machine& machine = world.add_machine(named("a"));
  Volume& volume = machine.volume();
  std::vector<std::string> story;

  void tell(std::string what) { story.push_back(std::move(what)); }
  // Runs `body` as a process to its end, or for an hour.
  void run(std::function<void(Env&)> body) {
    machine.start([body](Env& env) {
      body(env);
      return 0;
    });
    world.run_while([this] { return machine.process() != nullptr; }, world.now() + 1h);
  }
};

TEST_F(VolumeTest, FilesBehaveAsTheContractSays) {
  run([&](Env& env) {
    EXPECT_TRUE(env.disk.open("missing", OpenMode::read).is(ErrorKind::not_found));
    EXPECT_TRUE(env.disk.open("../up", OpenMode::create).is(ErrorKind::invalid));
    EXPECT_TRUE(env.disk.open("no/dir", OpenMode::create).is(ErrorKind::not_found));
    EXPECT_TRUE(env.disk.make_directory("d/e").ok());
    EXPECT_TRUE(env.disk.make_directory("d/e").ok());
    auto file = std::move(*env.disk.open("d/e/f", OpenMode::create_new));
    EXPECT_TRUE(env.disk.open("d/e/f", OpenMode::create_new).is(ErrorKind::exists));
    EXPECT_TRUE(file->write(3, "abc").ok());
    EXPECT_EQ(file->read(0, 100).value(), std::string("\0\0\0abc", 6));
    EXPECT_EQ(file->read(6, 1).value(), "");
    EXPECT_TRUE(file->fill_zero(6, 10).ok());
    EXPECT_EQ(file->size().value(), 16u);
    EXPECT_TRUE(file->truncate(4).ok());
    EXPECT_EQ(file->read(0, 100).value(), std::string("\0\0\0a", 4));
    EXPECT_TRUE(env.disk.rename("d/e/f", "d/g").ok());
    EXPECT_EQ(env.disk.list("d").value(), (std::vector<std::string>{"e", "g"}));
    EXPECT_TRUE(env.disk.remove("d").is(ErrorKind::exists));
    EXPECT_TRUE(env.disk.remove("d/e").ok());
    EXPECT_EQ(env.disk.stat("d/g")->size, 4u);
    EXPECT_TRUE(env.disk.stat("d")->is_directory);
    EXPECT_TRUE((*env.disk.open("d/g", OpenMode::read))->write(0, "x").is(ErrorKind::invalid));
    tell("done");
  });
  EXPECT_EQ(story, std::vector<std::string>{"done"});
  EXPECT_EQ(volume.used(), 4u);
}

TEST_F(VolumeTest, AKillKeepsThePageCache) {
  run([&](Env& env) {
    auto file = std::move(*env.disk.open("f", OpenMode::create));
    EXPECT_TRUE(file->write(0, "not synced").ok());
    machine.kill();
  });
  EXPECT_EQ(volume.tree().content("f"), "not synced");
}

// What must, and what may, be left after a power loss, over many seeds.
TEST(VolumeCrash, SyncedBytesAndNamesSurviveAndOthersMayNot) {
  int unsynced_lost = 0;
  int unsynced_torn = 0;
  int name_lost = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    World world(seed);
    Machine& machine = world.add_machine(named("a"));
    machine.start([&](Env& env) {
      auto file = std::move(*env.disk.open("f", OpenMode::create));
      EXPECT_TRUE(file->write(0, std::string(1000, 's')).ok());
      EXPECT_TRUE(file->sync().ok());
      EXPECT_TRUE(env.disk.sync_directory("").ok());
      EXPECT_TRUE(file->write(500, std::string(1000, 'u')).ok());
      auto other = std::move(*env.disk.open("g", OpenMode::create));
      EXPECT_TRUE(other->write_and_sync(0, "x").ok());
      machine.power_loss();
      return 0;
    });
    world.run_for(1s);
    const std::string left = machine.volume().tree().content("f").value_or("");
    ASSERT_GE(left.size(), 1000u) << seed;
    EXPECT_EQ(left.substr(0, 500), std::string(500, 's')) << seed;
    const size_t landed = left.find_last_of('u') == std::string::npos ? 0 : left.find_last_of('u') + 1 - 500;
    EXPECT_EQ(left.substr(500, landed), std::string(landed, 'u')) << "an ordered file keeps a prefix of its write";
    unsynced_lost += landed == 0;
    unsynced_torn += landed > 0 && landed < 1000;
    name_lost += !machine.volume().tree().exists("g");
  }
  EXPECT_GT(unsynced_lost, 20);
  EXPECT_GT(unsynced_torn, 20);
  EXPECT_GT(name_lost, 20);
  EXPECT_LT(name_lost, 180);
}

TEST(VolumeCrash, ScatteredFilesKeepAnySectors) {
  int holes = 0;
  int flips = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    World world(seed);
    MachineSettings settings = named("a");
    settings.scattered_prefixes = {"raft/"};
    settings.unsynced_bit_flip_ppm = 50'000;
    Machine& machine = world.add_machine(settings);
    machine.start([&](Env& env) {
      EXPECT_TRUE(env.disk.make_directory("raft").ok());
      auto file = std::move(*env.disk.open("raft/log", OpenMode::create));
      EXPECT_TRUE(file->fill_zero(0, 8192).ok());
      EXPECT_TRUE(file->sync().ok());
      EXPECT_TRUE(env.disk.sync_directory("raft").ok());
      EXPECT_TRUE(env.disk.sync_directory("").ok());
      EXPECT_TRUE(file->write(0, std::string(2048, 'x')).ok());
      EXPECT_TRUE(file->write(4096, std::string(2048, 'x')).ok());
      machine.power_loss();
      return 0;
    });
    world.run_for(1s);
    const std::string left = machine.volume().tree().content("raft/log").value();
    ASSERT_EQ(left.size(), 8192u);
    holes += left[4096] == 'x' && left[0] != 'x';
    for (char c : left) {
      flips += c != 'x' && c != '\0';
    }
    EXPECT_EQ(left.substr(2048, 2048), std::string(2048, '\0'));
  }
  EXPECT_GT(holes, 10);
  EXPECT_GT(flips, 5);
}

TEST(VolumeCrash, ARenameIsDurableAfterItsDirectoryIsSynced) {
  int old_seen = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    World world(seed);
    Machine& machine = world.add_machine(named("a"));
    machine.volume().tree().put_file("state", "old");
    const bool synced = seed % 2 == 0;
    machine.start([&](Env& env) {
      auto file = std::move(*env.disk.open("state.tmp", OpenMode::create));
      EXPECT_TRUE(file->write_and_sync(0, "new").ok());
      EXPECT_TRUE(env.disk.rename("state.tmp", "state").ok());
      if (synced) {
        EXPECT_TRUE(env.disk.sync_directory("").ok());
      }
      machine.power_loss();
      return 0;
    });
    world.run_for(1s);
    const std::string left = machine.volume().tree().content("state").value();
    EXPECT_TRUE(left == "new" || (left == "old" && !synced)) << seed << " " << left;
    old_seen += left == "old";
  }
  EXPECT_GT(old_seen, 10);
}

TEST(VolumeCrash, PendingChangesOfNamesSurviveAsAPrefix) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    World world(seed);
    Machine& machine = world.add_machine(named("a"));
    machine.start([&](Env& env) {
      for (char name = 'a'; name <= 'h'; ++name) {
        EXPECT_TRUE(env.disk.open(std::string(1, name), OpenMode::create).ok());
      }
      machine.power_loss();
      return 0;
    });
    world.run_for(1s);
    std::string names;
    for (const std::string& name : machine.volume().tree().files()) {
      names += name;
    }
    EXPECT_TRUE(std::string_view("abcdefgh").starts_with(names)) << names;
  }
}

TEST_F(VolumeTest, AFullDiskRefusesAndRoomComesBack) {
  volume.set_capacity(1000);
  run([&](Env& env) {
    auto file = std::move(*env.disk.open("f", OpenMode::create));
    EXPECT_TRUE(file->write(0, std::string(900, 'x')).ok());
    EXPECT_EQ(env.disk.free_space().value(), 100u);
    EXPECT_TRUE(file->write(900, std::string(200, 'x')).is(ErrorKind::no_space));
    EXPECT_TRUE(file->write(0, std::string(900, 'y')).ok()) << "overwriting needs no room";
    volume.set_capacity(2000);
    EXPECT_TRUE(file->write(900, std::string(200, 'x')).ok());
    tell("done");
  });
  EXPECT_EQ(story, std::vector<std::string>{"done"});
}

TEST_F(VolumeTest, AFailedSyncClosesTheHandleAndItsPagesNeverReachTheDisk) {
  run([&](Env& env) {
    auto file = std::move(*env.disk.open("f", OpenMode::create));
    EXPECT_TRUE(file->write_and_sync(0, "aaaa").ok());
    EXPECT_TRUE(env.disk.sync_directory("").ok());
    EXPECT_TRUE(file->write(0, "bb").ok());
    volume.script({FaultAction::error, DiskOp::sync, "", 1});
    EXPECT_TRUE(file->sync().is(ErrorKind::io));
    EXPECT_TRUE(file->refuses_use());
    EXPECT_TRUE(file->write(0, "x").is(ErrorKind::invalid));
    auto again = std::move(*env.disk.open("f", OpenMode::read_write));
    EXPECT_EQ(again->read(0, 4).value(), "bbaa") << "the page cache still shows it";
    EXPECT_TRUE(again->write_and_sync(2, "cc").ok());
    tell("done");
  });
  EXPECT_EQ(story, std::vector<std::string>{"done"});
  EXPECT_EQ(volume.tree().durable_content("f"), "aacc");
  machine.power_loss();
  EXPECT_EQ(volume.tree().content("f"), "aacc");
}

TEST_F(VolumeTest, AStalledDiskHangsUntilItIsReleased) {
  run([&](Env& env) {
    auto file = std::move(*env.disk.open("f", OpenMode::create));
    volume.stall();
    EXPECT_TRUE(file->write(0, "x", env.after(1s)).is(ErrorKind::timed_out));
    EXPECT_TRUE(file->refuses_use());
    world.after(10s, [&] { volume.release(); });
    const Instant before = env.now();
    EXPECT_TRUE(env.disk.list("").ok());
    EXPECT_GE(env.now() - before, 10s);
    tell("done");
  });
  EXPECT_EQ(story, std::vector<std::string>{"done"});
}

TEST(VolumeLate, AnOrphanedWriteLandsLateOrNeverAndTheFileIsBusyMeanwhile) {
  int busy = 0;
  int landed = 0;
  int never = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    World world(seed);
    Machine& machine = world.add_machine(named("a"));
    machine.start([&](Env& env) {
      auto file = std::move(*env.disk.open("f", OpenMode::create));
      with_scope([&](Scope& scope) {
        Task writer = scope.spawn("writer", [&] { (void)file->write(0, "late"); });
        yield();
        writer.cancel();
      });
      file.reset();
      auto again = env.disk.open("f", OpenMode::read_write);
      while (again.is(ErrorKind::busy)) {
        ++busy;
        sleep_for(10ms);
        again = env.disk.open("f", OpenMode::read_write);
      }
      EXPECT_TRUE(again.ok());
      const std::string found = (*again)->read(0, 4).value();
      landed += found == "late";
      never += found.empty();
      sleep_for(10s);
      EXPECT_EQ((*again)->read(0, 4).value(), found) << "nothing lands once the file could be opened";
      return 0;
    });
    world.run_for(1min);
    EXPECT_EQ(machine.process(), nullptr);
  }
  EXPECT_GT(busy, 5);
  EXPECT_GT(landed, 5);
  EXPECT_GT(never, 5);
}

TEST_F(VolumeTest, AWriteThatTimedOutMakesTheFileBusyUntilItLands) {
  WorldSettings settings;
  run([&](Env& env) {
    auto file = std::move(*env.disk.open("f", OpenMode::create));
    volume.script({FaultAction::stall, DiskOp::write, "f", 1});
    EXPECT_TRUE(file->write(0, "x", env.after(1s)).is(ErrorKind::timed_out));
    EXPECT_TRUE(env.disk.open("f", OpenMode::read_write).is(ErrorKind::busy));
    volume.release();
    sleep_for(1s);
    auto again = env.disk.open("f", OpenMode::read_write);
    EXPECT_EQ((*again)->read(0, 4).value(), "x");
    tell("done");
  });
  EXPECT_EQ(story, std::vector<std::string>{"done"});
}

TEST_F(VolumeTest, ScriptedFaultsStrikeTheNthOperationOfTheirKindAndPath) {
  run([&](Env& env) {
    auto f = std::move(*env.disk.open("f", OpenMode::create));
    auto g = std::move(*env.disk.open("g", OpenMode::create));
    volume.script({FaultAction::error, DiskOp::write, "g", 2});
    EXPECT_TRUE(f->write(0, "x").ok());
    EXPECT_TRUE(g->write(0, "x").ok());
    EXPECT_TRUE(f->write(0, "x").ok());
    EXPECT_TRUE(g->write(0, "x").is(ErrorKind::io));
    EXPECT_TRUE(g->write(0, "x").ok());
    volume.script({FaultAction::bit_flip, DiskOp::write, "f", 1});
    EXPECT_TRUE(f->write(0, "zzzzzzzz").ok());
    EXPECT_NE(f->read(0, 8).value(), "zzzzzzzz");
    tell("done");
  });
  EXPECT_EQ(story, std::vector<std::string>{"done"});
  EXPECT_EQ(volume.scripted_left(), 0u);
}

TEST_F(VolumeTest, ALockIsHeldUntilItIsGivenUpOrItsProcessEnds) {
  run([&](Env& env) {
    auto lock = std::move(*env.disk.lock("LOCK"));
    EXPECT_TRUE(env.disk.lock("LOCK").is(ErrorKind::busy));
    lock.reset();
    auto again = env.disk.lock("LOCK");
    EXPECT_TRUE(again.ok());
    machine.kill();
  });
  run([&](Env& env) { tell(shown(env.disk.lock("LOCK"))); });
  EXPECT_EQ(story, std::vector<std::string>{"ok"});
}

// At each operation that changes the disk, one run ends there, by kill or power loss; the file is replaced whole or not
// at all.
TEST(VolumeSweep, AnAtomicReplaceHoldsAtEveryOperation) {
  auto replace = [](Env& env) {
    auto file = env.disk.open("state.tmp", OpenMode::create);
    if (!file.ok() || !(*file)->truncate(0).ok() || !(*file)->write(0, std::string(3000, 'n')).ok() ||
        !(*file)->sync().ok() || !env.disk.rename("state.tmp", "state").ok() || !env.disk.sync_directory("").ok()) {
      return 1;
    }
    return 0;
  };
  int ended = 0;
  for (uint64_t nth = 1; nth <= 8; ++nth) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      World world(seed);
      Machine& machine = world.add_machine(named("a"));
      machine.volume().tree().put_file("state", "old");
      machine.volume().script({seed % 2 == 0 ? FaultAction::kill : FaultAction::power_loss, std::nullopt, "", nth});
      Incarnation& first = machine.start(replace);
      world.run_for(1s);
      ASSERT_FALSE(first.live());
      ended += first.ending() != Ending::exited;
      const std::string left = machine.volume().tree().content("state").value_or("missing");
      EXPECT_TRUE(left == "old" || left == std::string(3000, 'n')) << nth << " " << seed;
      machine.volume().clear_scripted();
      Incarnation& second = machine.start(replace);
      world.run_for(1s);
      EXPECT_EQ(second.exit_code(), 0);
      EXPECT_EQ(machine.volume().tree().content("state").value(), std::string(3000, 'n'));
    }
  }
  EXPECT_EQ(ended, 6 * 20) << "six operations change the disk";
}

TEST_F(VolumeTest, AnOlderImageOfADirectoryCanBeBroughtBack) {
  volume.tree().put_file("raft/a", "1");
  volume.tree().put_file("raft/below/d", "1");
  const FileTree::Image image = volume.copy("raft");
  run([&](Env& env) {
    auto file = std::move(*env.disk.open("raft/a", OpenMode::read_write));
    EXPECT_TRUE(file->write_and_sync(0, "2").ok());
    EXPECT_TRUE(env.disk.open("raft/b", OpenMode::create).ok());
    EXPECT_TRUE(env.disk.open("c", OpenMode::create).ok());
  });
  volume.restore("raft", image);
  machine.power_loss();
  EXPECT_EQ(volume.tree().content("raft/below/d"), "1") << "what was brought back is durable";
  EXPECT_FALSE(volume.tree().exists("raft/b"));
  EXPECT_EQ(volume.tree().content("raft/a"), "1");
  EXPECT_TRUE(volume.flip_bit("raft/a", 0, 1));
  EXPECT_EQ(volume.tree().content("raft/a"), "3");
  volume.wipe();
  EXPECT_TRUE(volume.tree().files().empty());
  EXPECT_EQ(volume.used(), 0u);
}

TEST_F(VolumeTest, RatesStrikeAShareOfTheOperationsBelowTheirPrefix) {
  FaultRates rates;
  rates.prefix = "f";
  rates.write_error_ppm = 100'000;
  rates.read_error_ppm = 300'000;
  volume.set_rates({rates});
  int failed_writes = 0;
  int failed_reads = 0;
  run([&](Env& env) {
    auto file = env.disk.open("f", OpenMode::create);
    while (!file.ok()) {
      file = env.disk.open("f", OpenMode::create);
    }
    auto other = std::move(*env.disk.open("g", OpenMode::create));
    for (int i = 0; i < 500; ++i) {
      failed_writes += (*file)->write(0, "x").is(ErrorKind::io);
      failed_reads += (*file)->read(0, 1).is(ErrorKind::io);
      EXPECT_TRUE(other->write(0, "x").ok());
    }
  });
  EXPECT_GT(failed_writes, 25);
  EXPECT_LT(failed_writes, 100);
  EXPECT_GT(failed_reads, 100);
  EXPECT_LT(failed_reads, 200);
}

TEST_F(VolumeTest, AMisdirectedWriteReportsSuccessAndStandsElsewhere) {
  run([&](Env& env) {
    auto file = std::move(*env.disk.open("f", OpenMode::create));
    EXPECT_TRUE(file->fill_zero(0, 1 << 20).ok());
    volume.script({FaultAction::misdirect, DiskOp::write, "f", 1});
    EXPECT_TRUE(file->write(4096, "needle").ok());
  });
  const std::string content = volume.tree().content("f").value();
  EXPECT_EQ(content.size(), size_t{1} << 20);
  const size_t found = content.find("needle");
  ASSERT_NE(found, std::string::npos);
  EXPECT_EQ(found % 512, 0u);
  EXPECT_NE(found, 4096u);
}

TEST_F(VolumeTest, ASlowOperationTakesLongerAndSucceeds) {
  run([&](Env& env) {
    auto file = std::move(*env.disk.open("f", OpenMode::create));
    volume.script({FaultAction::slow, DiskOp::write, "f", 1});
    const Instant before = env.now();
    EXPECT_TRUE(file->write(0, "x").ok());
    EXPECT_GE(env.now() - before, 5ms);
    tell("done");
  });
  EXPECT_EQ(story, std::vector<std::string>{"done"});
}

TEST_F(VolumeTest, TheObserverSeesWhatIsAboutToChange) {
  volume.set_observer([&](DiskOp op, std::string_view path) {
    tell(std::string(to_string(op)) + " " + std::string(path) + (volume.tree().exists(path) ? " there" : " not there"));
  });
  run([&](Env& env) {
    EXPECT_TRUE(env.disk.open("f", OpenMode::create).ok());
    EXPECT_TRUE(env.disk.remove("f").ok());
  });
  EXPECT_EQ(story, (std::vector<std::string>{"create f not there", "remove f there"}));
}

}  // namespace
