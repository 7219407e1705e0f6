#include "engine/metastore/fsm.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/metastore/answer.h"
#include "engine/metastore/database.h"
#include "io/sim/machine.h"
#include "io/sim/switches.h"
#include "io/sim/volume.h"
#include "io/sim/world.h"
#include "tests/support/images.h"
#include "tests/support/topics.h"

namespace {

using namespace engine::metastore;
using namespace std::chrono_literals;
using io::sim::DiskOp;
using io::sim::FaultAction;
using io::sim::ScriptedFault;
using tests::create_entry;
using tests::delete_entry;
using tests::make_entry;
using tests::update_entry;

constexpr char kDatabase[] = "fsm.db/000001/";

io::sim::MachineSettings named(std::string name) {
  io::sim::MachineSettings settings;
  settings.name = std::move(name);
  return settings;
}

struct FsmTest : testing::Test {
  io::sim::Switchboard board;
  io::sim::SwitchboardGuard guard{&board};
  io::sim::World world{7};
  io::sim::Machine& machine = world.add_machine(named("n1"));

  // One life of a process that runs `body`; true when it ran to its end.
  bool live(const std::function<void(io::Env&)>& body, io::Duration at_most = 600s) {
    bool ended = false;
    machine.start([&](io::Env& env) {
      body(env);
      ended = true;
      return 0;
    });
    world.run_while([&] { return machine.process() != nullptr; }, world.now() + at_most);
    if (machine.process() != nullptr) {
      machine.kill();
      world.run_for(1ms);
    }
    EXPECT_TRUE(world.violations().empty());
    return ended;
  }

  // A life with an open metastore.
  bool with_fsm(const std::function<void(io::Env&, Fsm&)>& body, FsmSettings settings = {}) {
    return live([&](io::Env& env) {
      io::Result<std::unique_ptr<Fsm>> fsm = Fsm::open(env, settings);
      ASSERT_TRUE(fsm.ok()) << fsm.error().to_text();
      body(env, **fsm);
    });
  }

  size_t lines(io::LogLevel level, std::string_view text) {
    size_t count = 0;
    for (const auto& line : last_log) {
      count += line.level == level && line.text.starts_with(text) ? 1 : 0;
    }
    return count;
  }
  // To be called within a life.
  void keep_log() { last_log = machine.process()->log_lines(); }
  std::deque<io::sim::LogLine> last_log;
};

std::vector<Code> codes(const io::Result<std::vector<std::string>>& answers) {
  std::vector<Code> found;
  for (const std::string& bytes : *answers) {
    std::optional<Answer> answer = decode_answer(bytes);
    found.push_back(answer ? answer->code : Code::undecodable);
  }
  return found;
}

std::vector<std::string> names(Fsm& fsm, std::string_view after = "", size_t limit = 1000) {
  std::vector<std::string> found;
  auto listed = fsm.list_topics(after, limit);
  EXPECT_TRUE(listed.ok());
  for (const auto& topic : *listed) {
    found.push_back(topic->name);
  }
  return found;
}

TEST_F(FsmTest, ANewDirectoryHoldsNothing) {
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) {
    EXPECT_EQ(fsm.applied_index(), 0u);
    EXPECT_EQ(fsm.digest(), 0u);
    EXPECT_EQ(*fsm.get_topic("orders"), nullptr);
    EXPECT_TRUE(names(fsm).empty());
  }));
}

TEST_F(FsmTest, AnAnsweredWriteIsVisible) {
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) {
    auto answers = fsm.apply({create_entry(1, "orders"), create_entry(3, "orders"), create_entry(4, "Orders")});
    ASSERT_TRUE(answers.ok());
    EXPECT_EQ(codes(answers), (std::vector<Code>{Code::ok, Code::already_exists, Code::ok}));
    EXPECT_EQ(fsm.applied_index(), 4u);
    ASSERT_NE(*fsm.get_topic("orders"), nullptr);
    EXPECT_EQ((*fsm.get_topic("orders"))->partitions, 3);
    EXPECT_EQ(*fsm.names_like("oRDERS"), (std::vector<std::string>{"Orders", "orders"}));
    ASSERT_TRUE(fsm.apply({update_entry(5, "orders", 9)}).ok());
    EXPECT_EQ((*fsm.get_topic("orders"))->partitions, 9) << "a cached record is dropped when it changes";
    ASSERT_TRUE(fsm.apply({delete_entry(6, "orders")}).ok());
    EXPECT_EQ(*fsm.get_topic("orders"), nullptr);
    EXPECT_EQ(*fsm.names_like("orders"), std::vector<std::string>{"Orders"});
  }));
}

TEST_F(FsmTest, ListsInNameOrderFromStrictlyAfter) {
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) {
    ASSERT_TRUE(fsm.apply({create_entry(1, "b"), create_entry(2, "a"), create_entry(3, "ab"), create_entry(4, "B")}).ok());
    EXPECT_EQ(names(fsm), (std::vector<std::string>{"B", "a", "ab", "b"}));
    EXPECT_EQ(names(fsm, "a"), (std::vector<std::string>{"ab", "b"}));
    EXPECT_EQ(names(fsm, "B", 2), (std::vector<std::string>{"a", "ab"}));
    EXPECT_TRUE(names(fsm, "b").empty());
  }));
}

TEST_F(FsmTest, ARestartKeepsEverythingAndSkipsWhatItHolds) {
  FsmState before;
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    ASSERT_TRUE(fsm.apply({create_entry(1, "a"), create_entry(2, "b"), delete_entry(3, "b"), delete_entry(4, "b")}).ok());
    before = fsm.state();
  }));
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    EXPECT_EQ(fsm.state(), before);
    auto again = fsm.apply({delete_entry(4, "b"), create_entry(5, "c")});
    ASSERT_TRUE(again.ok());
    EXPECT_EQ((*again)[0], "");
    EXPECT_EQ(decode_answer((*again)[1])->code, Code::ok);
    EXPECT_EQ(names(fsm), (std::vector<std::string>{"a", "c"}));
    auto audit = fsm.audit();
    ASSERT_TRUE(audit.ok());
    EXPECT_EQ(audit->digest_of_rows, audit->stored.digest);
  }));
}

TEST_F(FsmTest, APowerLossLosesOnlyATail) {
  std::vector<uint64_t> digests{0};
  machine.start([&](io::Env& env) {
    auto fsm = Fsm::open(env, {.flush_bytes = 2000});
    for (raft::Index index = 1; index <= 40; ++index) {
      EXPECT_TRUE((*fsm)->apply({create_entry(index, "t" + std::to_string(index))}).ok());
      digests.push_back((*fsm)->digest());
    }
    io::sleep_for(1h);
    return 0;
  });
  world.run_for(10s);
  ASSERT_EQ(digests.size(), 41u);
  machine.power_loss();
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    EXPECT_GT(fsm.applied_index(), 0u) << "what was flushed is durable";
    ASSERT_LE(fsm.applied_index(), 40u);
    EXPECT_EQ(fsm.digest(), digests[fsm.applied_index()]);
    EXPECT_EQ(fsm.audit()->digest_of_rows, fsm.digest());
    EXPECT_EQ(names(fsm).size(), fsm.applied_index());
  }));
}

TEST_F(FsmTest, AnUndecodableEntryIsCountedAndLogged) {
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    std::string cut = encode_create_topic(tests::make_topic("a"));
    cut.resize(cut.size() / 2);
    auto answers = fsm.apply({make_entry(1, "no command"), make_entry(2, cut)});
    ASSERT_TRUE(answers.ok());
    EXPECT_EQ(codes(answers), (std::vector<Code>{Code::undecodable, Code::undecodable}));
    EXPECT_EQ(fsm.applied_index(), 2u);
    EXPECT_EQ(fsm.digest(), 0u);
    EXPECT_EQ(fsm.stats().errors_undecodable, 2u);
    keep_log();
  }));
  EXPECT_EQ(lines(io::LogLevel::error, "metastore: consumed a raft entry it cannot decode"), 2u);
}

TEST_F(FsmTest, AnUnknownEntryTypeStopsItAfterWhatCameBefore) {
  std::string unknown = encode_create_topic(tests::make_topic("b"));
  unknown[6] = 1;  // type 257
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    auto answers = fsm.apply({create_entry(1, "a"), make_entry(2, unknown), create_entry(3, "c")});
    ASSERT_FALSE(answers.ok());
    EXPECT_NE(answers.error().message.find("raft entry at index 2 has entry type 257, which this build (narad) does not know (it "
                                           "applies entry types 1 to 37)"),
              std::string::npos)
        << answers.error().message;
    EXPECT_TRUE(fsm.is_stopped());
    EXPECT_EQ(fsm.stats().errors_unknown_entry_type, 1u);
    EXPECT_EQ(fsm.applied_index(), 1u);
    EXPECT_EQ(names(fsm), std::vector<std::string>{"a"});
    EXPECT_FALSE(fsm.apply({create_entry(3, "c")}).ok());
    keep_log();
  }));
  EXPECT_EQ(lines(io::LogLevel::error, "metastore: stopped applying raft entries; this node leaves raft and exits"), 1u);
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) { EXPECT_EQ(fsm.applied_index(), 1u) << "the entry is not counted"; }));
}

TEST_F(FsmTest, ADatabaseOfANewerReleaseIsRefusedAndLeftUntouched) {
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) { ASSERT_TRUE(fsm.apply({create_entry(1, "a"), delete_entry(2, "a")}).ok()); }));
  const uint64_t mutations = machine.volume().mutations();
  EXPECT_TRUE(live([](io::Env& env) {
    auto refused = Fsm::open(env, {.build = "narad 0.9", .newest_type = 2});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, io::ErrorKind::invalid);
    EXPECT_EQ(refused.error().message,
              "fsm: fsm.db holds raft entry type 3, written by a newer Narad release than this build (narad 0.9, "
              "which knows entry types up to 2); run that release or newer");
  }));
  EXPECT_EQ(machine.volume().mutations(), mutations);
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) { EXPECT_EQ(fsm.applied_index(), 2u); }));
}

TEST_F(FsmTest, AMissingActiveFileBesideADatabaseIsRefused) {
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) { ASSERT_TRUE(fsm.apply({create_entry(1, "a")}).ok()); }));
  EXPECT_TRUE(live([](io::Env& env) {
    ASSERT_TRUE(env.disk.remove("fsm.db/ACTIVE").ok());
    auto refused = Fsm::open(env, {});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, io::ErrorKind::invalid);
    EXPECT_NE(refused.error().message.find("fsm.db/ACTIVE is missing"), std::string::npos);
  }));
}

TEST_F(FsmTest, ADamagedDatabaseIsRefusedWithItsPath) {
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) { ASSERT_TRUE(fsm.apply({create_entry(1, "a")}).ok()); }));
  EXPECT_TRUE(live([](io::Env& env) {
    auto current = env.disk.open(std::string(kDatabase) + "CURRENT", io::OpenMode::read_write);
    ASSERT_TRUE((*current)->write(0, "garbage").ok());
    current->reset();
    auto refused = Fsm::open(env, {});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, io::ErrorKind::corrupt) << refused.error().to_text();
    EXPECT_NE(refused.error().message.find("fsm.db/000001"), std::string::npos);
  }));
}

TEST_F(FsmTest, ReadsNeverGoBackWhileEntriesAreApplied) {
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) { ASSERT_TRUE(fsm.apply({create_entry(1, "a"), create_entry(2, "b")}).ok()); }));
  // The second life finds both records in a table that is not cached.
  EXPECT_TRUE(with_fsm(
      [](io::Env&, Fsm& fsm) {
        bool is_writing = true;
        int32_t newest_read = 0;
        int reads = 0;
        auto read = [&](const Topic& topic, int32_t newest_before) {
          EXPECT_GE(topic.partitions, newest_before);
          newest_read = std::max(newest_read, topic.partitions);
          ++reads;
        };
        io::with_scope([&](io::Scope& scope) {
          for (int reader = 0; reader < 4; ++reader) {
            scope.spawn("reader", [&, reader] {
              while (is_writing) {
                const int32_t newest_before = newest_read;
                if (reader % 2 == 0) {
                  read(**fsm.get_topic("a"), newest_before);
                } else {
                  read(*fsm.list_topics("", 1)->at(0), newest_before);
                }
                io::sleep_for(1us * (reader + 1));
              }
            });
          }
          for (int32_t i = 3; i < 200; ++i) {
            ASSERT_TRUE(fsm.apply({update_entry(static_cast<raft::Index>(i), "a", i)}).ok());
            EXPECT_EQ((*fsm.get_topic("a"))->partitions, i) << "an answered write is visible";
          }
          is_writing = false;
        });
        EXPECT_GT(reads, 200);
      },
      {.flush_bytes = 4000}));
}

// ---- A volume of its own ---------------------------------------------------------------------------------------------------

// A disk on which fsm.db is where a volume is mounted.
class Mounted final : public io::Disk {
 public:
  explicit Mounted(io::Disk& disk) : disk_(disk) {}
  io::Status rename(std::string_view from, std::string_view to, io::Instant deadline) override {
    const bool is_volume = from == "fsm.db" || to == "fsm.db";
    return is_volume ? io::Status(io::fail(io::ErrorKind::busy, "fsm.db: a volume")) : disk_.rename(from, to, deadline);
  }
  io::Result<std::unique_ptr<io::File>> open(std::string_view path, io::OpenMode mode, io::Instant deadline) override {
    return disk_.open(path, mode, deadline);
  }
  io::Status make_directory(std::string_view path, io::Instant deadline) override { return disk_.make_directory(path, deadline); }
  io::Status remove(std::string_view path, io::Instant deadline) override { return disk_.remove(path, deadline); }
  io::Result<std::vector<std::string>> list(std::string_view path, io::Instant deadline) override { return disk_.list(path, deadline); }
  io::Result<io::FileInfo> stat(std::string_view path, io::Instant deadline) override { return disk_.stat(path, deadline); }
  io::Status sync_directory(std::string_view path, io::Instant deadline) override { return disk_.sync_directory(path, deadline); }
  io::Result<uint64_t> free_space(io::Instant deadline) override { return disk_.free_space(deadline); }
  io::Result<std::unique_ptr<io::DirectoryLock>> lock(std::string_view path, io::Instant deadline) override {
    return disk_.lock(path, deadline);
  }

 private:
  io::Disk& disk_;
};

TEST_F(FsmTest, ADatabaseOnAVolumeOfItsOwnIsSetAsideWithinIt) {
  auto on_volume = [this](const std::function<void(io::Env&)>& body) {
    EXPECT_TRUE(live([&](io::Env& real) {
      Mounted disk(real.disk);
      io::Env env{real.clock, real.random, disk, real.net, real.store_lane, real.pool, real.kv, real.log};
      body(env);
    }));
    world.run_for(1s);
  };
  auto with_open = [&](const std::function<void(Fsm&)>& body) {
    on_volume([&](io::Env& env) {
      auto fsm = Fsm::open(env, {});
      ASSERT_TRUE(fsm.ok()) << fsm.error().to_text();
      body(**fsm);
      (*fsm)->close();
    });
  };
  auto databases = [this] {
    std::set<std::string> found;
    for (const std::string& path : machine.volume().tree().files()) {
      if (path.starts_with("fsm.db/0")) found.insert(path.substr(0, 13));
    }
    return found;
  };
  on_volume([](io::Env& env) { EXPECT_FALSE(Fsm::set_aside(env)->has_value()) << "an empty volume has nothing to set aside"; });
  std::string image;
  with_open([&](Fsm& fsm) {
    EXPECT_TRUE(fsm.apply({create_entry(1, "a")}).ok());
    tests::MemorySink sink;
    EXPECT_TRUE(fsm.write_image(sink, 1).ok());
    image = sink.image;
  });
  // Twice: what was set aside first goes when the next is.
  for (const char* const stale : {"fsm.db/000001", "fsm.db/000003"}) {
    on_volume([&](io::Env& env) {
      const auto moved = Fsm::set_aside(env);
      ASSERT_TRUE(moved.ok()) << moved.error().to_text();
      EXPECT_EQ(*moved, stale);
      EXPECT_FALSE(Fsm::look(env)->holds_anything);
      EXPECT_FALSE(Fsm::set_aside(env)->has_value()) << "and a second time, as after a crash";
    });
    with_open([&](Fsm& fsm) {
      EXPECT_EQ(fsm.applied_index(), 0u);
      EXPECT_TRUE(names(fsm).empty());
      tests::MemorySource source(image);
      EXPECT_TRUE(fsm.install_image(source, 1).ok());
    });
    with_open([&](Fsm& fsm) { EXPECT_EQ(names(fsm), std::vector<std::string>{"a"}); });
    EXPECT_TRUE(databases().contains(stale)) << "kept for the operator";
    EXPECT_EQ(databases().size(), 2u);
  }
  machine.volume().tree().erase("fsm.db/ACTIVE.stale");
  with_open([&](Fsm& fsm) { EXPECT_EQ(names(fsm), std::vector<std::string>{"a"}); });
  EXPECT_EQ(databases().size(), 1u) << "and removed once the operator is done with it";
}

TEST_F(FsmTest, ADatabaseIsSetAsideWithinItsVolumeInOneStepWhateverEndsIt) {
  for (const FaultAction action : {FaultAction::kill, FaultAction::power_loss, FaultAction::error}) {
    for (uint64_t nth = 1; nth <= 4; ++nth) {
      SCOPED_TRACE(std::to_string(static_cast<int>(action)) + " at " + std::to_string(nth));
      machine.volume().wipe();
      EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) {
        EXPECT_TRUE(fsm.apply({create_entry(1, "a")}).ok());
        EXPECT_TRUE(fsm.flush().ok());
        fsm.close();
      }));
      world.run_for(1s);
      auto set_aside = [this] {
        return live([](io::Env& real) {
          Mounted disk(real.disk);
          io::Env env{real.clock, real.random, disk, real.net, real.store_lane, real.pool, real.kv, real.log};
          if (!Fsm::set_aside(env).ok()) return;
          auto fsm = Fsm::open(env, {});
          if (fsm.ok()) (*fsm)->close();
        });
      };
      machine.volume().script({.action = action, .op = std::nullopt, .prefix = "fsm.db/", .nth = nth});
      (void)set_aside();
      machine.volume().clear_scripted();
      world.run_for(1s);
      EXPECT_TRUE(live([](io::Env& env) {
        const auto held = Fsm::look(env);
        ASSERT_TRUE(held.ok()) << held.error().to_text();
        EXPECT_TRUE(!held->holds_anything || held->meta.state.applied_index == 1u);
      }));
      world.run_for(1s);
      EXPECT_TRUE(set_aside());
      world.run_for(1s);
      EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) { EXPECT_EQ(fsm.applied_index(), 0u); }));
      world.run_for(1s);
    }
  }
}

// ---- When the disk refuses -------------------------------------------------------------------------------------------------

TEST_F(FsmTest, ARefusedWriteIsRetriedAndItsAnswersAreKept) {
  EXPECT_TRUE(with_fsm([&](io::Env& env, Fsm& fsm) {
    ASSERT_TRUE(fsm.apply({create_entry(1, "a")}).ok());
    machine.volume().script({.action = FaultAction::no_space, .op = DiskOp::write, .prefix = kDatabase});
    io::Instant began = env.now();
    auto answers = fsm.apply({create_entry(2, "b"), create_entry(3, "b")});
    ASSERT_TRUE(answers.ok());
    EXPECT_EQ(codes(answers), (std::vector<Code>{Code::ok, Code::already_exists}));
    EXPECT_GE(env.now() - began, 100ms);
    EXPECT_EQ(fsm.applied_index(), 3u);
    EXPECT_EQ(fsm.stats().errors_storage, 1u);
    EXPECT_FALSE(fsm.stats().is_stalled);
    EXPECT_EQ(names(fsm), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(fsm.audit()->digest_of_rows, fsm.digest());
    keep_log();
  }));
  EXPECT_EQ(lines(io::LogLevel::warn, "metastore: could not write raft entry; retrying"), 1u);
  EXPECT_EQ(lines(io::LogLevel::info, "metastore: wrote raft entry on retry"), 1u);
}

TEST_F(FsmTest, ReadsDuringARetryAreBusyAtMost) {
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    ASSERT_TRUE(fsm.apply({create_entry(1, "a")}).ok());
    io::with_scope([&](io::Scope& scope) {
      machine.volume().set_capacity(machine.volume().used());
      scope.spawn("reader", [&] {
        for (int i = 0; i < 200; ++i) {
          auto listed = fsm.list_topics("", 10);
          if (listed.ok()) {
            EXPECT_EQ(listed->size(), i < 100 || fsm.applied_index() == 1 ? 1u : 2u);
          } else {
            EXPECT_EQ(listed.error().kind, io::ErrorKind::busy);
          }
          io::sleep_for(50ms);
          if (i == 100) {
            machine.volume().set_capacity(1u << 30);
          }
        }
      });
      auto answers = fsm.apply({create_entry(2, "b")});
      ASSERT_TRUE(answers.ok()) << answers.error().to_text();
    });
    EXPECT_EQ(names(fsm), (std::vector<std::string>{"a", "b"}));
  }));
}

// Between opening a database anew and knowing what it holds, a flush that was under way looks again (seed 284).
TEST_F(FsmTest, AFlushOfMoreThanAReopenedDatabaseHoldsIsPutOff) {
  EXPECT_TRUE(with_fsm([&](io::Env& env, Fsm&) {
    Database::Settings settings;
    settings.may_create = true;
    Database reopened(env.kv, "reopened", settings);
    (void)env.store_lane.run([&] {
      EXPECT_TRUE(reopened.open().ok());
      EXPECT_TRUE(reopened.flush_towards(7).status.is(io::ErrorKind::busy));
      reopened.close();
    });
  }));
}

// As when the node is told to stop meanwhile.
TEST_F(FsmTest, ACancelledRetryLeavesAMetastoreThatIsClosedAndSaysSo) {
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    ASSERT_TRUE(fsm.apply({create_entry(1, "a")}).ok());
    machine.volume().set_capacity(machine.volume().used());
    io::with_scope([&](io::Scope& scope) {
      scope.spawn("raft", [&] { (void)fsm.apply({create_entry(2, "b")}); });
      io::sleep_for(10s);
      scope.cancel();
    });
    EXPECT_TRUE(fsm.get_topic("a").is(io::ErrorKind::busy));
    EXPECT_TRUE(fsm.check_background().ok());
    EXPECT_FALSE(fsm.apply({create_entry(2, "b")}).ok());
  }));
  machine.volume().set_capacity(1u << 30);
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    EXPECT_EQ(fsm.applied_index(), 1u);
    EXPECT_TRUE(fsm.apply({create_entry(2, "b")}).ok());
  }));
}

TEST_F(FsmTest, ADiskThatStaysFullStopsItWithinThirtySeconds) {
  EXPECT_TRUE(with_fsm([&](io::Env& env, Fsm& fsm) {
    ASSERT_TRUE(fsm.apply({create_entry(1, "a")}).ok());
    machine.volume().set_capacity(machine.volume().used());
    io::Instant began = env.now();
    auto answers = fsm.apply({create_entry(2, "b")});
    ASSERT_FALSE(answers.ok());
    EXPECT_LE(env.now() - began, 31s);
    EXPECT_GE(env.now() - began, 20s);
    EXPECT_TRUE(fsm.is_stopped());
    EXPECT_EQ(fsm.applied_index(), 1u);
    EXPECT_NE(answers.error().message.find("could not write raft entry at index 2 (entry type 1) to fsm.db after retrying for"),
              std::string::npos)
        << answers.error().message;
    keep_log();
  }));
  EXPECT_EQ(lines(io::LogLevel::error, "metastore: stopped applying raft entries"), 1u);
  EXPECT_EQ(lines(io::LogLevel::warn, "metastore: could not write raft entry; retrying"), 1u) << "once an entry";
  machine.volume().set_capacity(1u << 30);
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    EXPECT_EQ(fsm.applied_index(), 1u);
    EXPECT_TRUE(fsm.apply({create_entry(2, "b")}).ok()) << "once there is room, the entry applies";
  }));
}

TEST_F(FsmTest, AFailedSyncStopsItAtOnce) {
  EXPECT_TRUE(with_fsm(
      [&](io::Env& env, Fsm& fsm) {
        machine.volume().script({.action = FaultAction::error, .op = DiskOp::sync, .prefix = kDatabase});
        io::Instant began = env.now();
        raft::Index index = 0;
        while (fsm.apply({create_entry(index + 1, "t" + std::to_string(index + 1))}).ok()) {
          ASSERT_LT(++index, 100u) << "the flush is due long before";
        }
        EXPECT_TRUE(fsm.is_stopped());
        EXPECT_LT(env.now() - began, 5s);
        EXPECT_EQ(fsm.applied_index(), index);
        keep_log();
      },
      {.flush_bytes = 2000}));
  EXPECT_EQ(lines(io::LogLevel::warn, "metastore: could not write raft entry; retrying"), 0u);
}

TEST_F(FsmTest, ASyncThatFailsWhileItIsOpenedAnewStopsItAtOnceToo) {
  EXPECT_TRUE(with_fsm([&](io::Env& env, Fsm& fsm) {
    ASSERT_TRUE(fsm.apply({create_entry(1, "a")}).ok());
    machine.volume().script({.action = FaultAction::no_space, .op = DiskOp::write, .prefix = kDatabase});
    machine.volume().script({.action = FaultAction::error, .op = DiskOp::sync, .prefix = kDatabase});
    const io::Instant began = env.now();
    const auto answers = fsm.apply({create_entry(2, "b")});
    ASSERT_FALSE(answers.ok()) << "what a failed sync has lost nobody knows: it is not tried again";
    EXPECT_EQ(machine.volume().scripted_left(), 0u);
    EXPECT_LT(env.now() - began, 1s);
    EXPECT_TRUE(fsm.is_stopped());
    EXPECT_EQ(fsm.stats().errors_storage, 2u);
    keep_log();
  }));
  EXPECT_EQ(lines(io::LogLevel::warn, "metastore: could not write raft entry; retrying"), 1u);
  EXPECT_EQ(lines(io::LogLevel::error, "metastore: stopped applying raft entries; this node leaves raft and exits"), 1u);
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) {
    EXPECT_EQ(fsm.applied_index(), 1u);
    EXPECT_TRUE(fsm.apply({create_entry(2, "b")}).ok());
  }));
}

TEST_F(FsmTest, ARefusedBatchIsNamedByItsFirstEntryThatIsNotApplied) {
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    ASSERT_TRUE(fsm.apply({create_entry(1, "a"), create_entry(2, "b")}).ok());
    machine.volume().set_capacity(machine.volume().used());
    // The first is applied already; the second that counts is of type 3, the last of type 2.
    const auto answers = fsm.apply({create_entry(2, "b"), delete_entry(4, "a"), update_entry(5, "b", 9)});
    ASSERT_FALSE(answers.ok());
    EXPECT_NE(answers.error().message.find("could not write raft entry at index 4 (entry type 3) to fsm.db"), std::string::npos)
        << answers.error().message;
    keep_log();
  }));
  int named = 0;
  for (const auto& line : last_log) {
    if (!line.text.starts_with("metastore: could not write raft entry") && !line.text.starts_with("metastore: stopped applying")) continue;
    ++named;
    EXPECT_NE(line.text.find("index=4"), std::string::npos) << line.text;
    EXPECT_NE(line.text.find("entry_type=3"), std::string::npos) << line.text;
  }
  EXPECT_EQ(named, 2);
}

TEST_F(FsmTest, AReleaseWithoutItsIndexOnTheDiskKnowsByTheRowsWhetherARefusedWriteIsThere) {
  for (const FaultAction action : {FaultAction::no_space, FaultAction::error}) {
    for (uint64_t nth = 1; nth <= 3; ++nth) {
      EXPECT_TRUE(with_fsm(
          [&](io::Env&, Fsm& fsm) {
            const raft::Index base = fsm.applied_index();
            ASSERT_TRUE(fsm.apply({create_entry(base + 1, "a"), create_entry(base + 2, "a")}).ok());
            machine.volume().script({.action = action, .op = DiskOp::write, .prefix = kDatabase, .nth = nth});
            for (raft::Index index = base + 3; index <= base + 9; index += 2) {
              const auto answers = fsm.apply({create_entry(index, "t" + std::to_string(index)), create_entry(index + 1, "a")});
              ASSERT_TRUE(answers.ok()) << answers.error().to_text();
              EXPECT_EQ(codes(answers), (std::vector<Code>{Code::ok, Code::already_exists}));
            }
          },
          {.writes_meta = false}));
      world.run_for(1s);
      machine.volume().clear_scripted();
      machine.volume().wipe();
    }
  }
}

TEST_F(FsmTest, AFlushThatFindsNoRoomIsMadeGood) {
  EXPECT_TRUE(with_fsm(
      [&](io::Env&, Fsm& fsm) {
        machine.volume().script(
            {.action = FaultAction::no_space, .op = DiskOp::create, .prefix = kDatabase, .nth = 2});
        for (raft::Index index = 1; index <= 60; ++index) {
          ASSERT_TRUE(fsm.apply({create_entry(index, "t" + std::to_string(index))}).ok());
        }
        EXPECT_EQ(machine.volume().scripted_left(), 0u);
        EXPECT_EQ(names(fsm).size(), 60u);
        EXPECT_EQ(fsm.audit()->digest_of_rows, fsm.digest());
      },
      {.flush_bytes = 2000}));
}

TEST_F(FsmTest, ADatabaseThatLostAppliedEntriesWhileAWriteWasSortedOutStopsIt) {
  EXPECT_TRUE(with_fsm([&](io::Env& env, Fsm& fsm) {
    for (raft::Index index = 1; index <= 3; ++index) {
      ASSERT_TRUE(fsm.apply({create_entry(index, "t" + std::to_string(index))}).ok());
    }
    machine.volume().script({.action = FaultAction::no_space, .op = DiskOp::write, .prefix = kDatabase});
    const io::Instant began = env.now();
    io::with_scope([&](io::Scope& scope) {
      // Between the failed write and the reopening, the write-ahead log loses all that it held.
      scope.spawn("loss", [&] {
        io::sleep_for(50ms);
        const auto listed = env.disk.list("fsm.db/000001");
        for (const std::string& name : *listed) {
          if (!name.ends_with(".log")) continue;
          auto file = env.disk.open(kDatabase + name, io::OpenMode::read_write);
          ASSERT_TRUE(file.ok()) << file.error().to_text();
          ASSERT_TRUE((*file)->truncate(0).ok());
        }
      });
      auto answers = fsm.apply({create_entry(4, "t4")});
      ASSERT_FALSE(answers.ok()) << "nothing is applied on top of a hole";
      EXPECT_NE(answers.error().message.find("the reopened database is at index 0, behind index 3 that it had applied"),
                std::string::npos)
          << answers.error().message;
    });
    EXPECT_EQ(machine.volume().scripted_left(), 0u);
    EXPECT_LT(env.now() - began, 1s) << "it is not tried for half a minute";
    EXPECT_TRUE(fsm.is_stopped());
    EXPECT_FALSE(fsm.apply({create_entry(4, "t4")}).ok());
    keep_log();
  }));
  EXPECT_GT(board.probes["metastore: a reopened database had lost entries"], 0u);
  EXPECT_EQ(lines(io::LogLevel::error, "metastore: stopped applying raft entries; this node leaves raft and exits"), 1u);
  EXPECT_TRUE(with_fsm([](io::Env&, Fsm& fsm) {
    EXPECT_EQ(fsm.applied_index(), 0u) << "the next start says how far it is, and is given the rest again";
    for (raft::Index index = 1; index <= 4; ++index) {
      ASSERT_TRUE(fsm.apply({create_entry(index, "t" + std::to_string(index))}).ok());
    }
    EXPECT_EQ(names(fsm), (std::vector<std::string>{"t1", "t2", "t3", "t4"}));
    EXPECT_EQ(fsm.audit()->digest_of_rows, fsm.digest());
  }));
}

// ---- Flushes in the background ---------------------------------------------------------------------------------------------

// Runs RocksDB's background jobs when the test says so, as a slow disk would.
class SlowHost final : public io::KvHost {
 public:
  explicit SlowHost(io::KvHost& host) : host_(host) {}
  rocksdb::Env* env() override { return host_.env(); }
  std::string path(std::string_view relative) override { return host_.path(relative); }
  void pump() override {
    if (!is_held) host_.pump();
  }

  bool is_held = false;

 private:
  io::KvHost& host_;
};

TEST_F(FsmTest, OneFlushRunsAtATimeAndWhatCameMeanwhileIsFlushedByTheNext) {
  EXPECT_TRUE(live([&](io::Env& env) {
    SlowHost host(env.kv);
    Database database(host, "flushed",
                      {.newest_type = 3, .flush_bytes = 2000, .build = "narad", .block_cache_bytes = 1u << 20, .store = {}, .cluster = {}});
    raft::Index next = 1;
    // Applies `count` entries, each a batch; on the lane.
    auto apply = [&](int count) {
      auto applied = env.store_lane.run([&] {
        for (int i = 0; i < count; ++i, ++next) {
          const BatchOutcome outcome = database.apply({create_entry(next, "t" + std::to_string(next))});
          if (outcome.kind != BatchOutcome::Kind::written) return false;
        }
        return true;
      });
      return applied.ok() && *applied;
    };
    auto durable = [&] { return *env.store_lane.run([&] { return database.durable_index(); }); };
    auto opened = env.store_lane.run([&] { return database.open(); });
    ASSERT_TRUE(opened.ok() && opened->ok());
    host.is_held = true;
    const char* const kProbe = "metastore: a flush is due while one is under way";
    for (int i = 0; i < 200 && board.probes[kProbe] == 0; ++i) ASSERT_TRUE(apply(1));
    ASSERT_EQ(board.probes[kProbe], 1u);
    EXPECT_EQ(durable(), 0u) << "nothing is said to be durable before its flush has ended";
    ASSERT_TRUE(apply(20)) << "entries are applied meanwhile";
    const raft::Index applied = next - 1;
    EXPECT_EQ(durable(), 0u);

    host.is_held = false;
    ASSERT_TRUE(apply(1));  // the background runs: this batch finds the first flush ended and begins the one that was due
    const raft::Index first = durable();
    EXPECT_GT(first, 0u);
    ASSERT_TRUE(apply(1));
    EXPECT_GE(durable(), applied) << "what came during the first flush is not forgotten";
    const raft::Index known_durable = durable();
    (void)env.store_lane.run([&] { database.close(); });

    // What is said to be durable is in the tables: it is there without the write-ahead log.
    const auto listed = env.disk.list("flushed");
    for (const std::string& name : *listed) {
      if (!name.ends_with(".log")) continue;
      ASSERT_TRUE(env.disk.remove("flushed/" + name).ok());
    }
    Database again(env.kv, "flushed", {.newest_type = 3, .flush_bytes = 2000, .build = "narad", .block_cache_bytes = 1u << 20, .store = {}, .cluster = {}});
    auto reopened = env.store_lane.run([&] { return again.open(); });
    ASSERT_TRUE(reopened.ok() && reopened->ok());
    EXPECT_GE(again.state().applied_index, known_durable);
    (void)env.store_lane.run([&] { again.close(); });
  }));
}

// ---- The defence -----------------------------------------------------------------------------------------------------------

TEST_F(FsmTest, WithTheIndexApartAKillLosesEffectsAndTheDigestShowsIt) {
  board.off.insert(io::Defence::index_apart_from_effects);
  uint64_t digest_of_one = 0;
  live([&](io::Env& env) {
    auto fsm = Fsm::open(env, {});
    ASSERT_TRUE((*fsm)->apply({create_entry(1, "a")}).ok());
    digest_of_one = (*fsm)->digest();
    // The write after the next is the effects'.
    machine.volume().script({.action = FaultAction::kill, .op = DiskOp::write, .prefix = kDatabase, .nth = 2});
    (void)(*fsm)->apply({create_entry(2, "b")});
  });
  EXPECT_TRUE(with_fsm([&](io::Env&, Fsm& fsm) {
    EXPECT_EQ(fsm.applied_index(), 2u);
    if (fsm.digest() == digest_of_one) {
      EXPECT_EQ(names(fsm), std::vector<std::string>{"a"});
    }
  }));
}

}  // namespace
