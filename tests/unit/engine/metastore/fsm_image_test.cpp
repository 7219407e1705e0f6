// Images of a metastore: written while it goes on, checked, installed in place of what was there.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/metastore/answer.h"
#include "engine/metastore/envelope.h"
#include "engine/metastore/fsm.h"
#include "engine/metastore/image.h"
#include "io/crc32c.h"
#include "io/sim/machine.h"
#include "io/sim/switches.h"
#include "io/sim/volume.h"
#include "io/sim/world.h"
#include "raft/bytes.h"
#include "tests/support/images.h"
#include "tests/support/topics.h"

namespace {

using namespace engine::metastore;
using namespace std::chrono_literals;
using io::sim::DiskOp;
using io::sim::FaultAction;
using tests::create_entry;
using tests::delete_entry;
using tests::MemorySink;
using tests::MemorySource;
using tests::update_entry;

io::sim::MachineSettings named(std::string name) {
  io::sim::MachineSettings settings;
  settings.name = std::move(name);
  return settings;
}

struct FsmImageTest : testing::Test {
  io::sim::Switchboard board;
  io::sim::SwitchboardGuard guard{&board};
  io::sim::World world{11};
  io::sim::Machine& machine = world.add_machine(named("n1"));
  io::sim::Machine& other = world.add_machine(named("n2"));

  // A life with an open metastore on `where`.
  bool with_fsm_on(io::sim::Machine& where, const std::function<void(io::Env&, Fsm&)>& body, FsmSettings settings = {}) {
    bool ended = false;
    where.start([&](io::Env& env) {
      io::Result<std::unique_ptr<Fsm>> fsm = Fsm::open(env, settings);
      EXPECT_TRUE(fsm.ok()) << fsm.error().to_text();
      if (fsm.ok()) {
        body(env, **fsm);
        (*fsm)->close();
      }
      ended = fsm.ok();
      return 0;
    });
    world.run_while([&] { return where.process() != nullptr; }, world.now() + 600s);
    if (where.process() != nullptr) {
      where.kill();
      world.run_for(1ms);
      ended = false;
    }
    EXPECT_TRUE(world.violations().empty());
    return ended;
  }
  bool with_fsm(const std::function<void(io::Env&, Fsm&)>& body, FsmSettings settings = {}) {
    return with_fsm_on(machine, body, settings);
  }
  std::vector<std::string> files(io::Env& env) { return *env.disk.list("fsm.db"); }

  // The image of a metastore that holds `count` topics "m<i>" up to index 1000 + count; made on the other machine.
  std::string image_of(int count) {
    MemorySink sink;
    other.volume().wipe();
    EXPECT_TRUE(with_fsm_on(other, [&](io::Env&, Fsm& fsm) {
      for (int i = 1; i <= count; ++i) {
        ASSERT_TRUE(fsm.apply({create_entry(1000 + static_cast<raft::Index>(i), "m" + std::to_string(i))}).ok());
      }
      digest = fsm.digest();
      auto label = fsm.write_image(sink, 1000 + static_cast<raft::Index>(count));
      ASSERT_TRUE(label.ok()) << label.error().to_text();
      EXPECT_EQ(*label, 1000u + static_cast<raft::Index>(count));
    }));
    return sink.image;
  }
  uint64_t digest = 0;  // of the last image_of()
};

std::vector<std::string> names(Fsm& fsm) {
  std::vector<std::string> found;
  auto listed = fsm.list_topics("", 1000);
  EXPECT_TRUE(listed.ok());
  for (const auto& topic : *listed) {
    found.push_back(topic->name);
  }
  return found;
}

// ---- Write -----------------------------------------------------------------------------------------------------------------

TEST_F(FsmImageTest, AnImageHoldsTheStateOfTheCallWhateverIsAppliedMeanwhile) {
  MemorySink sink;
  uint64_t digest_at_call = 0;
  EXPECT_TRUE(with_fsm(
      [&](io::Env&, Fsm& fsm) {
        raft::Index index = 0;
        while (index < 2000) {
          std::vector<raft::Entry> batch;
          for (int i = 0; i < 100; ++i) {
            ++index;
            batch.push_back(create_entry(index, "t" + std::to_string(index)));
          }
          ASSERT_TRUE(fsm.apply(batch).ok());
        }
        digest_at_call = fsm.digest();
        size_t applied_meanwhile = 0;
        sink.before_write = [&] {
          io::sleep_for(3ms);
          return io::Status();
        };
        bool is_writing = true;
        io::with_scope([&](io::Scope& scope) {
          scope.spawn("applies", [&] {
            io::sleep_for(1ms);
            while (is_writing) {
              ++index;
              ASSERT_TRUE(fsm.apply({delete_entry(index, "t" + std::to_string(index - 2000))}).ok());
              ++applied_meanwhile;
            }
          });
          auto label = fsm.write_image(sink, 2000);
          is_writing = false;
          ASSERT_TRUE(label.ok()) << label.error().to_text();
          EXPECT_EQ(*label, 2000u);
        });
        EXPECT_GT(applied_meanwhile, 10u);
        EXPECT_EQ(fsm.audit()->digest_of_rows, fsm.digest());
      },
      {.flush_bytes = 100'000}));
  EXPECT_GT(sink.pieces, 1u);
  EXPECT_TRUE(with_fsm_on(other, [&](io::Env&, Fsm& fsm) {
    MemorySource source(sink.image);
    EXPECT_TRUE(fsm.check_image(source, 2000).ok());
    MemorySource again(sink.image);
    ASSERT_TRUE(fsm.install_image(again, 2000).ok());
    EXPECT_EQ(fsm.digest(), digest_at_call);
    EXPECT_EQ(fsm.audit()->digest_of_rows, digest_at_call);
    EXPECT_EQ(fsm.applied_index(), 2000u);
    EXPECT_EQ(fsm.durable_index(), 2000u);
  }));
}

TEST_F(FsmImageTest, RefusedEntriesCountInTheLabel) {
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) {
    MemorySink sink;
    EXPECT_TRUE(fsm.write_image(sink, 10).is(io::ErrorKind::invalid)) << "nothing is applied";
    ASSERT_TRUE(fsm.apply({create_entry(1, "a")}).ok());
    for (raft::Index index = 2; index <= 60; ++index) {
      ASSERT_TRUE(fsm.apply({create_entry(index, "a")}).ok());
    }
    auto label = fsm.write_image(sink, 60);
    ASSERT_TRUE(label.ok());
    EXPECT_EQ(*label, 60u);
  }));
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) { EXPECT_EQ(fsm.applied_index(), 60u); }));
}

TEST_F(FsmImageTest, AnErrorOfTheSinkEndsTheImageAndNothingElse) {
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) {
    ASSERT_TRUE(fsm.apply({create_entry(1, "a")}).ok());
    MemorySink full;
    full.before_write = [] { return io::Status(io::fail(io::ErrorKind::no_space, "snapshot")); };
    EXPECT_TRUE(fsm.write_image(full, 1).is(io::ErrorKind::no_space));
    ASSERT_TRUE(fsm.apply({create_entry(2, "b")}).ok());
    MemorySink sink;
    auto label = fsm.write_image(sink, 2);
    ASSERT_TRUE(label.ok());
    EXPECT_EQ(*label, 2u);
  }));
}

TEST_F(FsmImageTest, AWriterIsToldWhenTheDatabaseIsReopened) {
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    raft::Index index = 0;
    while (index < 4000) {
      ++index;
      ASSERT_TRUE(fsm.apply({create_entry(index, "t" + std::to_string(index))}).ok());
    }
    MemorySink slow;
    slow.before_write = [] {
      io::sleep_for(10s);
      return io::Status();
    };
    io::with_scope([&](io::Scope& scope) {
      scope.spawn("writer", [&] { EXPECT_TRUE(fsm.write_image(slow, 4000).is(io::ErrorKind::busy)); });
      io::sleep_for(1s);
      machine.volume().script({.action = FaultAction::no_space, .op = DiskOp::write, .prefix = "fsm.db/"});
      ASSERT_TRUE(fsm.apply({create_entry(index + 1, "more")}).ok());
    });
    MemorySink sink;
    EXPECT_TRUE(fsm.write_image(sink, 5000).ok());
  }));
}

TEST_F(FsmImageTest, ACancelledWriterLeavesNothingBehind) {
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    ASSERT_TRUE(fsm.apply({create_entry(1, "a")}).ok());
    MemorySink slow;
    slow.before_write = [] {
      io::sleep_for(1h);
      return io::Status();
    };
    io::with_scope([&](io::Scope& scope) {
      scope.spawn("writer", [&] { (void)fsm.write_image(slow, 1); });
      io::sleep_for(1s);
      scope.cancel();
    });
    MemorySink sink;
    EXPECT_TRUE(fsm.write_image(sink, 1).ok());
  }));
}

// ---- Check -----------------------------------------------------------------------------------------------------------------

TEST_F(FsmImageTest, ADamagedOrWronglyLabelledImageIsRefusedAndChangesNothing) {
  const std::string image = image_of(20);
  EXPECT_TRUE(with_fsm([&](io::Env& env, Fsm& fsm) {
    ASSERT_TRUE(fsm.apply({create_entry(1, "mine")}).ok());
    const FsmState before = fsm.state();
    const std::vector<std::string> files_before = files(env);
    auto refused = [&](const std::string& bytes, raft::Index label, io::ErrorKind kind) {
      MemorySource checked(bytes);
      EXPECT_TRUE(fsm.check_image(checked, label).is(kind));
      MemorySource installed(bytes);
      EXPECT_TRUE(fsm.install_image(installed, label).is(kind));
      EXPECT_EQ(fsm.state(), before);
      EXPECT_EQ(files(env), files_before) << "nothing is left beside the live database";
      EXPECT_FALSE(fsm.is_stopped());
    };
    refused(image, 1019, io::ErrorKind::corrupt);
    refused(image.substr(0, image.size() - 1), 1020, io::ErrorKind::corrupt);
    for (size_t byte : {size_t{3}, size_t{20}, image.size() / 2, image.size() - 2}) {
      std::string flipped = image;
      flipped[byte] = static_cast<char>(flipped[byte] ^ 4);
      refused(flipped, 1020, io::ErrorKind::corrupt);
    }
    MemorySource broken(image);
    broken.before_read = [&] { return broken.at > 1500 ? io::Status(io::fail(io::ErrorKind::io, "read")) : io::Status(); };
    EXPECT_TRUE(fsm.install_image(broken, 1020).is(io::ErrorKind::io));
    EXPECT_EQ(names(fsm), std::vector<std::string>{"mine"});
    ASSERT_TRUE(fsm.apply({create_entry(2, "more")}).ok()) << "it goes on";
  }));
}

TEST_F(FsmImageTest, AnImageOfANewerReleaseStopsTheNode) {
  const std::string image = image_of(2);
  for (const bool is_installed : {false, true}) {
    EXPECT_TRUE(with_fsm(
        [&](io::Env& env, Fsm& fsm) {
          const std::vector<std::string> files_before = files(env);
          MemorySource source(image);
          const io::Status refused = is_installed ? fsm.install_image(source, 1002) : fsm.check_image(source, 1002);
          ASSERT_TRUE(refused.is(io::ErrorKind::invalid));
          EXPECT_TRUE(refused.error().message.starts_with("metastore: stopped applying raft entries: the raft snapshot holds raft entry "
                                                          "type 1, written by a newer Narad release"))
              << refused.error().message;
          EXPECT_TRUE(fsm.is_stopped());
          EXPECT_EQ(fsm.stats().errors_newer_database, 1u);
          EXPECT_EQ(fsm.applied_index(), 0u);
          EXPECT_EQ(files(env), files_before);
          EXPECT_FALSE(fsm.apply({create_entry(1, "a")}).ok());
        },
        {.newest_type = 0}));
  }
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    MemorySource source(image);
    EXPECT_TRUE(fsm.install_image(source, 1002).ok()) << "the right release takes it";
  }));
}

// From every release to every other: what each writes, and what each makes of it.
TEST_F(FsmImageTest, ImagesCrossReleases) {
  const FsmSettings kReleases[] = {
      {.build = "3.0.1", .newest_type = kEveryReleaseEntryType, .skips_unknown = true, .writes_meta = false},
      {.build = "3.1.0", .newest_type = kNewestEntryTypeOf31},
      {.build = "3.2.0", .newest_type = kNewestEntryType},
      {.build = "next", .newest_type = kHypotheticalEntryType}};
  for (const FsmSettings& from : kReleases) {
    MemorySink sink;
    other.volume().wipe();
    uint64_t written = 0;
    EXPECT_TRUE(with_fsm_on(other, [&](io::Env&, Fsm& fsm) {
      ASSERT_TRUE(fsm.apply({create_entry(7, "a"), create_entry(8, "b"), create_entry(9, "a")}).ok());
      written = fsm.digest();
      const auto label = fsm.write_image(sink, 9);
      ASSERT_TRUE(label.ok()) << label.error().to_text();
      EXPECT_EQ(*label, 9u);
    }, from));
    MemorySource head(sink.image);
    ImageReader reader(head);
    ASSERT_TRUE(reader.read_head(kHypotheticalEntryType).ok());
    EXPECT_EQ(reader.state().applied_index, from.writes_meta ? 9u : 0u);
    for (const FsmSettings& to : kReleases) {
      SCOPED_TRACE(from.build + " to " + to.build);
      machine.volume().wipe();
      EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
        ASSERT_TRUE(fsm.apply({create_entry(1, "old")}).ok());
        MemorySource checked(sink.image);
        EXPECT_TRUE(fsm.check_image(checked, 9).ok());
        MemorySource mislabelled(sink.image);
        EXPECT_EQ(fsm.check_image(mislabelled, 8).ok(), !from.writes_meta) << "only an index of its own can contradict the label";
        MemorySource source(sink.image);
        const io::Status installed = fsm.install_image(source, 9);
        ASSERT_TRUE(installed.ok()) << installed.error().to_text();
        EXPECT_EQ(fsm.applied_index(), 9u);
        EXPECT_EQ(fsm.digest(), written);
        EXPECT_EQ(fsm.audit()->digest_of_rows, written);
        EXPECT_EQ(names(fsm), (std::vector<std::string>{"a", "b"}));
        ASSERT_TRUE(fsm.apply({create_entry(9, "c"), create_entry(10, "d")}).ok());
        EXPECT_EQ(names(fsm), (std::vector<std::string>{"a", "b", "d"})) << "what it holds is not applied again";
      }, to));
    }
  }
}

TEST_F(FsmImageTest, AnImageOfANewerFormatIsRefusedAndChangesNothing) {
  const std::string image = image_of(20);
  // The head as a later release would write it: another format, sealed by its checksum; perhaps with fields that are not known here.
  auto of_format = [&](uint32_t format, uint32_t more_fields) {
    constexpr size_t kHead = 8 + 4 + 4 + 28;
    std::string head = image.substr(0, kHead) + std::string(more_fields, '?');
    raft::put<uint32_t>(head, 8, format);
    raft::put<uint32_t>(head, 12, 28 + more_fields);
    const uint32_t checksum = io::crc32c(head);
    head.resize(head.size() + sizeof checksum);
    raft::put(head, head.size() - sizeof checksum, checksum);
    return head + image.substr(kHead + sizeof checksum);
  };
  ASSERT_EQ(of_format(kImageFormat, 0), image) << "this is where the format stands";
  EXPECT_TRUE(with_fsm([&](io::Env& env, Fsm& fsm) {
    ASSERT_TRUE(fsm.apply({create_entry(1, "mine")}).ok());
    const FsmState before = fsm.state();
    const std::vector<std::string> files_before = files(env);
    for (const std::string& newer : {of_format(kImageFormat + 1, 0), of_format(kImageFormat + 1, 12), of_format(900, 4068)}) {
      MemorySource checked(newer);
      EXPECT_TRUE(fsm.check_image(checked, 1020).is(io::ErrorKind::invalid)) << "it is not taken for damage";
      MemorySource installed(newer);
      io::Status refused = fsm.install_image(installed, 1020);
      ASSERT_TRUE(refused.is(io::ErrorKind::invalid));
      EXPECT_NE(refused.error().message.find("written by a newer Narad release than this build, which reads formats up to 1"),
                std::string::npos)
          << refused.error().message;
      EXPECT_EQ(fsm.state(), before);
      EXPECT_EQ(files(env), files_before) << "nothing is left beside the live database";
      EXPECT_FALSE(fsm.is_stopped());
    }
    // A number that a flipped bit made is damage, not a newer release.
    std::string flipped = image;
    flipped[8] = static_cast<char>(flipped[8] ^ 2);
    MemorySource damaged(flipped);
    EXPECT_TRUE(fsm.check_image(damaged, 1020).is(io::ErrorKind::corrupt));
    EXPECT_EQ(names(fsm), std::vector<std::string>{"mine"});
    ASSERT_TRUE(fsm.apply({create_entry(2, "more")}).ok()) << "it goes on";
  }));
  EXPECT_GT(board.probes["metastore: an image of a newer format is refused"], 0u);
}

// ---- Install ---------------------------------------------------------------------------------------------------------------

// Scenario SI-01.
TEST_F(FsmImageTest, AnInstallReplacesAndNeverMerges) {
  const std::string image = image_of(3);
  EXPECT_TRUE(with_fsm([&](io::Env& env, Fsm& fsm) {
    // Deleted on the leader before its snapshot: m9 and the old m1 must not come back.
    ASSERT_TRUE(fsm.apply({create_entry(1, "m9"), create_entry(2, "m1"), update_entry(3, "m1", 9)}).ok());
    EXPECT_EQ((*fsm.get_topic("m1"))->partitions, 9);
    EXPECT_NE(*fsm.get_topic("m9"), nullptr);
    const uint64_t version = fsm.versions().keyed(Domain::topics, "m1");
    MemorySource source(image);
    ASSERT_TRUE(fsm.install_image(source, 1003).ok());
    EXPECT_EQ(fsm.applied_index(), 1003u);
    EXPECT_EQ(fsm.durable_index(), 1003u);
    EXPECT_EQ(fsm.digest(), digest);
    EXPECT_EQ(fsm.audit()->digest_of_rows, digest);
    EXPECT_EQ(names(fsm), (std::vector<std::string>{"m1", "m2", "m3"}));
    EXPECT_EQ((*fsm.get_topic("m1"))->partitions, 3) << "no cached record survives";
    EXPECT_EQ(*fsm.get_topic("m9"), nullptr);
    EXPECT_TRUE(fsm.names_like("M9")->empty());
    EXPECT_GT(fsm.versions().keyed(Domain::topics, "m1"), version);
    EXPECT_EQ(files(env), (std::vector<std::string>{"000002", "ACTIVE"})) << "the old database is gone";
    ASSERT_TRUE(fsm.apply({create_entry(1004, "next"), delete_entry(1005, "m2")}).ok());
  }));
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    EXPECT_EQ(fsm.applied_index(), 1005u);
    EXPECT_EQ(names(fsm), (std::vector<std::string>{"m1", "m3", "next"}));
    EXPECT_EQ(fsm.audit()->digest_of_rows, fsm.digest());
    MemorySink sink;
    auto label = fsm.write_image(sink, 1005);
    ASSERT_TRUE(label.ok());
    EXPECT_EQ(*label, 1005u) << "an installed state is imaged like any other";
  }));
}

TEST_F(FsmImageTest, AnInstalledStateSurvivesAPowerLossAtOnce) {
  const std::string image = image_of(50);
  machine.start([&](io::Env& env) {
    auto fsm = Fsm::open(env, {});
    MemorySource source(image);
    EXPECT_TRUE((*fsm)->install_image(source, 1050).ok());
    EXPECT_EQ((*fsm)->durable_index(), 1050u);
    machine.volume().script({.action = FaultAction::power_loss, .op = std::nullopt, .prefix = ""});
    (void)(*fsm)->apply({create_entry(1051, "lost")});
    io::sleep_for(1h);
    return 0;
  });
  world.run_while([&] { return machine.process() != nullptr; }, world.now() + 60s);
  EXPECT_EQ(machine.process(), nullptr);
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    EXPECT_GE(fsm.applied_index(), 1050u);
    if (fsm.applied_index() == 1050) {
      EXPECT_EQ(fsm.digest(), digest);
    }
    EXPECT_EQ(fsm.audit()->digest_of_rows, fsm.digest());
  }));
}

TEST_F(FsmImageTest, ReadersOfTheOldStateEndInPeace) {
  const std::string image = image_of(10);
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) {
    for (raft::Index index = 1; index <= 10; ++index) {
      ASSERT_TRUE(fsm.apply({create_entry(index, "m" + std::to_string(index)), update_entry(index + 20, "m1", 7)}).ok() ||
                  index > 1);
    }
  }));
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    bool is_over = false;
    int reads = 0;
    io::with_scope([&](io::Scope& scope) {
      for (int reader = 0; reader < 4; ++reader) {
        scope.spawn("reader", [&, reader] {
          while (!is_over) {
            const bool is_new = fsm.applied_index() == 1010;
            if (reader % 2 == 0) {
              auto topic = fsm.get_topic("m" + std::to_string(1 + reads % 10));
              ASSERT_TRUE(topic.ok()) << topic.error().to_text();
              if (is_new) {
                EXPECT_EQ((*topic)->partitions, 3);
              }
            } else {
              EXPECT_TRUE(fsm.list_topics("", 10).ok());
            }
            ++reads;
            io::sleep_for(3us * (reader + 1));
          }
        });
      }
      for (int round = 0; round < 3; ++round) {
        MemorySource source(image);
        source.before_read = [] {
          io::sleep_for(20us);
          return io::Status();
        };
        ASSERT_TRUE(fsm.install_image(source, 1010).ok());
      }
      is_over = true;
    });
    EXPECT_GT(reads, 50);
  }));
}

TEST_F(FsmImageTest, AnInstallEndsAnImageThatIsBeingWritten) {
  const std::string image = image_of(10);
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    for (raft::Index index = 1; index <= 3000; ++index) {
      ASSERT_TRUE(fsm.apply({create_entry(index, "t" + std::to_string(index))}).ok());
    }
    MemorySink slow;
    slow.before_write = [] {
      io::sleep_for(10s);
      return io::Status();
    };
    io::with_scope([&](io::Scope& scope) {
      scope.spawn("writer", [&] { EXPECT_TRUE(fsm.write_image(slow, 3000).is(io::ErrorKind::busy)); });
      io::sleep_for(1s);
      MemorySource source(image);
      ASSERT_TRUE(fsm.install_image(source, 1010).ok());
    });
    EXPECT_EQ(fsm.digest(), digest);
  }));
}

TEST_F(FsmImageTest, ACancelledInstallLeavesTheOldState) {
  const std::string image = image_of(10);
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    ASSERT_TRUE(fsm.apply({create_entry(1, "mine")}).ok());
    io::with_scope([&](io::Scope& scope) {
      scope.spawn("installer", [&] {
        MemorySource source(image, 500);
        source.before_read = [&source] {
          if (source.at > 1000) io::sleep_for(1h);
          return io::Status();
        };
        (void)fsm.install_image(source, 1010);
      });
      io::sleep_for(1s);
      scope.cancel();
    });
    EXPECT_FALSE(fsm.is_stopped());
    EXPECT_EQ(names(fsm), std::vector<std::string>{"mine"});
    MemorySource source(image);
    ASSERT_TRUE(fsm.install_image(source, 1010).ok()) << "what the first left over is in nobody's way";
    EXPECT_EQ(fsm.digest(), digest);
  }));
}

TEST_F(FsmImageTest, ALiveDatabaseThatIsGoneIsNotMadeAnew) {
  const std::string image = image_of(3);
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    MemorySource source(image);
    ASSERT_TRUE(fsm.install_image(source, 1003).ok());
  }));
  machine.start([&](io::Env& env) {
    EXPECT_TRUE(env.disk.remove("fsm.db/000002/CURRENT").ok());
    auto refused = Fsm::open(env, {});
    EXPECT_TRUE(refused.is(io::ErrorKind::corrupt));
    return 0;
  });
  world.run_for(10s);
}

// ---- Durable index ---------------------------------------------------------------------------------------------------------

TEST_F(FsmImageTest, WhatIsDurableSurvivesAPowerLossAndAFlushRaisesIt) {
  raft::Index durable = 0;
  machine.start([&](io::Env& env) {
    auto fsm = Fsm::open(env, {.flush_bytes = 4000});
    for (raft::Index index = 1; index <= 103; ++index) {
      EXPECT_TRUE((*fsm)->apply({create_entry(index, "t" + std::to_string(index))}).ok());
      EXPECT_LE((*fsm)->durable_index(), index);
    }
    EXPECT_GT((*fsm)->durable_index(), 50u) << "it rises by itself";
    EXPECT_LT((*fsm)->durable_index(), 103u);
    EXPECT_TRUE((*fsm)->flush().ok());
    durable = (*fsm)->durable_index();
    EXPECT_EQ(durable, 103u);
    EXPECT_TRUE((*fsm)->apply({create_entry(104, "lost")}).ok());
    io::sleep_for(1h);
    return 0;
  });
  world.run_for(60s);
  machine.power_loss();
  world.run_for(1ms);
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    EXPECT_GE(fsm.applied_index(), durable);
    EXPECT_EQ(fsm.durable_index(), fsm.applied_index()) << "opening makes durable what was found";
  }));
}

TEST_F(FsmImageTest, WhatAnOpenFoundIsDurable) {
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) {
    ASSERT_TRUE(fsm.apply({create_entry(1, "a"), create_entry(2, "b")}).ok());
    EXPECT_EQ(fsm.durable_index(), 0u);
  }));
  machine.start([&](io::Env& env) {
    auto fsm = Fsm::open(env, {});
    EXPECT_EQ((*fsm)->durable_index(), 2u);
    io::sleep_for(1h);
    return 0;
  });
  world.run_for(1s);
  machine.power_loss();
  world.run_for(1ms);
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) { EXPECT_EQ(fsm.applied_index(), 2u); }));
}

TEST_F(FsmImageTest, AFlushThatFindsNoRoomFailsAndLaterWorks) {
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    ASSERT_TRUE(fsm.apply({create_entry(1, "a")}).ok());
    machine.volume().script({.action = FaultAction::no_space, .op = DiskOp::create, .prefix = "fsm.db/"});
    EXPECT_FALSE(fsm.flush().ok());
    EXPECT_EQ(fsm.durable_index(), 0u);
    EXPECT_FALSE(fsm.is_stopped());
    ASSERT_TRUE(fsm.apply({create_entry(2, "b")}).ok());
    ASSERT_TRUE(fsm.flush().ok());
    EXPECT_EQ(fsm.durable_index(), 2u);
  }));
}

// ---- Look ------------------------------------------------------------------------------------------------------------------

TEST_F(FsmImageTest, ALookTellsWhatIsThereAndChangesNothing) {
  auto peek = [&](raft::Index index) {
    const uint64_t mutations = machine.volume().mutations();
    machine.start([&](io::Env& env) {
      auto held = Fsm::look(env);
      EXPECT_TRUE(held.ok()) << held.error().to_text();
      EXPECT_EQ(held->meta.state.applied_index, index);
      EXPECT_EQ(held->is_trusted, index > 0);
      EXPECT_EQ(held->holds_anything, index > 0);
      return 0;
    });
    world.run_while([&] { return machine.process() != nullptr; }, world.now() + 60s);
    EXPECT_EQ(machine.volume().mutations(), mutations);
  };
  peek(0);
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) { ASSERT_TRUE(fsm.apply({create_entry(1, "a"), create_entry(2, "b")}).ok()); }));
  peek(2);
}

// ---- The defences ----------------------------------------------------------------------------------------------------------

// Scenario SC-01.
TEST_F(FsmImageTest, NoImageWhileTheDatabaseIsAheadOfTheReplay) {
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) {
    ASSERT_TRUE(fsm.apply({create_entry(1343, "a"), create_entry(1344, "b")}).ok());
    MemorySink sink;
    EXPECT_TRUE(fsm.write_image(sink, 1343).is(io::ErrorKind::busy));
    EXPECT_TRUE(sink.image.empty());
    EXPECT_EQ(*fsm.write_image(sink, 1344), 1344u);
  }));
}

TEST_F(FsmImageTest, WithSnapshotsWhileAheadTheReceiverAppliesAnEntryTwice) {
  board.off.insert(io::Defence::snapshot_while_ahead);
  MemorySink sink;
  uint64_t true_digest = 0;
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    ASSERT_TRUE(fsm.apply({create_entry(1343, "a"), create_entry(1344, "b"), delete_entry(1345, "a")}).ok());
    EXPECT_EQ(*fsm.write_image(sink, 1343), 1343u);
    ASSERT_TRUE(fsm.apply({create_entry(1346, "a")}).ok());
    true_digest = fsm.digest();
  }));
  EXPECT_TRUE(with_fsm_on(other, [&](io::Env&, Fsm& fsm) {
    MemorySource source(sink.image);
    ASSERT_TRUE(fsm.install_image(source, 1343).ok());
    auto answers = fsm.apply({create_entry(1344, "b"), delete_entry(1345, "a")});
    ASSERT_TRUE(answers.ok());
    EXPECT_NE(decode_answer((*answers)[0])->code, Code::ok) << "the other nodes answered ok";
    EXPECT_NE(decode_answer((*answers)[1])->code, Code::ok);
  }));
}

TEST_F(FsmImageTest, WithRestoresUncheckedADamagedImageIsTheStateAfterwards) {
  const std::string image = image_of(20);
  std::string damaged = image;
  const size_t at = damaged.rfind("m7");
  ASSERT_NE(at, std::string::npos);
  damaged[at + 1] = 'x';
  for (bool is_off : {false, true}) {
    if (is_off) {
      board.off.insert(io::Defence::restore_unchecked);
    }
    machine.volume().wipe();
    EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
      ASSERT_TRUE(fsm.apply({create_entry(1, "mine")}).ok());
      MemorySource checked(damaged);
      EXPECT_EQ(fsm.check_image(checked, 1020).ok(), is_off);
      MemorySource installed(damaged);
      EXPECT_TRUE(fsm.install_image(installed, 1020).is(io::ErrorKind::corrupt));
    }));
    EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
      auto audit = fsm.audit();
      EXPECT_EQ(audit->digest_of_rows == audit->stored.digest, !is_off);
      EXPECT_EQ(fsm.applied_index(), is_off ? 1020u : 1u);
    }));
  }
}

}  // namespace
