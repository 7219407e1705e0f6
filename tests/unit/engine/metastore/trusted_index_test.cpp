// What tells that the index of fsm.db is that of its content (fsm_meta.h): it holds whatever we do, and nobody else's write passes.

#include <gtest/gtest.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/sst_file_writer.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/metastore/database.h"
#include "engine/metastore/database_options.h"
#include "engine/metastore/fsm.h"
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
using tests::create_entry;
using tests::delete_entry;
using tests::update_entry;

constexpr char kDirectory[] = "fsm.db/000001";
// A flush every few entries, so that tables are merged too.
const FsmSettings kSettings{.flush_bytes = 600, .store = {7, 8}, .cluster = {9, 10}};

TEST(FsmMeta, IsStoredExactly) {
  FsmMeta meta;
  meta.state = FsmState{.applied_index = 1ULL << 60, .applied_term = 77, .newest_type = 37, .digest = UINT64_MAX};
  meta.generation = 1ULL << 50;
  meta.manifest = 123;
  meta.store = {1, 2};
  meta.cluster = {3, 4};
  EXPECT_EQ(decode_meta(encode_meta(meta)), meta);
  EXPECT_FALSE(decode_meta("junk").has_value());
}

struct TrustedIndexTest : testing::Test {
  io::sim::Switchboard board;
  io::sim::SwitchboardGuard guard{&board};
  io::sim::World world{21};
  io::sim::Machine& machine = world.add_machine([] {
    io::sim::MachineSettings settings;
    settings.name = "n1";
    return settings;
  }());

  void live(const std::function<void(io::Env&)>& body) {
    machine.start([&](io::Env& env) {
      body(env);
      return 0;
    });
    world.run_while([&] { return machine.process() != nullptr; }, world.now() + 600s);
    ASSERT_EQ(machine.process(), nullptr);
    EXPECT_TRUE(world.violations().empty());
  }
  void with_fsm(const std::function<void(Fsm&)>& body, OpenAs as = {}) {
    live([&](io::Env& env) {
      auto fsm = Fsm::open(env, kSettings, as);
      ASSERT_TRUE(fsm.ok()) << fsm.error().to_text();
      body(**fsm);
      (*fsm)->close();
    });
  }
  // Entries of all kinds, first + 1 to last.
  void apply(Fsm& fsm, raft::Index first, raft::Index last) {
    for (raft::Index index = first + 1; index <= last; ++index) {
      const std::string name = "topic" + std::to_string(index % 40);
      const raft::Entry entry = index % 5 == 0 ? delete_entry(index, name)
                                : index % 5 == 1 ? update_entry(index, name, 4)
                                                 : create_entry(index, name);
      ASSERT_TRUE(fsm.apply({entry}).ok());
    }
  }
  void fill() {
    with_fsm([&](Fsm& fsm) { apply(fsm, 0, 150); });
  }
  FsmHeld look() {
    FsmHeld held;
    const uint64_t mutations = machine.volume().mutations();
    live([&](io::Env& env) {
      auto found = Fsm::look(env);
      ASSERT_TRUE(found.ok()) << found.error().to_text();
      held = *found;
    });
    EXPECT_EQ(machine.volume().mutations(), mutations) << "looking changes nothing";
    return held;
  }
  // Another program's life with the database, opened for writing.
  void foreign(const std::function<void(io::Env&, rocksdb::DB&, const std::string& path)>& body) {
    live([&](io::Env& env) {
      ASSERT_TRUE(env.store_lane
                      .run([&] {
                        const std::string path = env.kv.path(kDirectory);
                        rocksdb::DB* raw = nullptr;
                        ASSERT_TRUE(rocksdb::DB::Open(database_options(env.kv.env(), false, block_cache(1 << 20)), path, &raw).ok());
                        std::unique_ptr<rocksdb::DB> db(raw);
                        env.kv.pump();
                        body(env, *db, path);
                        env.kv.pump();
                        ASSERT_TRUE(db->Close().ok());
                      })
                      .ok());
    });
  }
  void expect_distrusted(std::string_view why) {
    const FsmHeld held = look();
    EXPECT_TRUE(held.holds_anything);
    EXPECT_FALSE(held.is_trusted);
    EXPECT_NE(held.distrust.find(why), std::string::npos) << held.distrust;
    const uint64_t mutations = machine.volume().mutations();
    live([](io::Env& env) {
      auto refused = Fsm::open(env, kSettings);
      ASSERT_FALSE(refused.ok());
      EXPECT_EQ(refused.error().kind, io::ErrorKind::corrupt);
    });
    EXPECT_EQ(machine.volume().mutations(), mutations) << "a refused database is left as it is";
    board.off.insert(io::Defence::foreign_write_unnoticed);
    EXPECT_TRUE(look().is_trusted) << "that is the defect";
    board.off.clear();
  }
};

constexpr std::string_view kWritten = "it was written to after its index was";
constexpr std::string_view kOtherRows = "its rows are not those that its index was written with";

void ingest(io::Env& env, rocksdb::DB& db, const std::string& path, const std::string& key) {
  const rocksdb::Options options = database_options(env.kv.env(), false, block_cache(1 << 20));
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(options), options);
  ASSERT_TRUE(writer.Open(path + "/foreign.table").ok());
  ASSERT_TRUE(writer.Put(key, "foreign").ok());
  ASSERT_TRUE(writer.Finish().ok());
  rocksdb::IngestExternalFileOptions how;
  how.allow_blocking_flush = false;
  how.move_files = true;
  ASSERT_TRUE(db.IngestExternalFile({path + "/foreign.table"}, how).ok());
}

// ---- It holds --------------------------------------------------------------------------------------------------------------

TEST_F(TrustedIndexTest, ItHoldsOverFlushesMergesAndReopening) {
  raft::Index index = 0;
  const auto tables = [this] {
    std::set<std::string> found;
    for (const std::string& path : machine.volume().tree().files()) {
      if (path.starts_with("fsm.db/") && path.ends_with(".sst")) found.insert(path);
    }
    return found;
  };
  std::set<std::string> seen;
  for (int life = 0; life < 8; ++life) {
    with_fsm([&](Fsm& fsm) {
      EXPECT_EQ(fsm.applied_index(), index);
      apply(fsm, index, index + 60);
      index += 60;
      if (life % 2 == 0) {
        ASSERT_TRUE(fsm.flush().ok());
      }
    });
    seen.merge(tables());
    const FsmHeld held = look();
    EXPECT_TRUE(held.is_trusted) << held.distrust;
    EXPECT_EQ(held.meta.state.applied_index, index);
    EXPECT_EQ(held.meta.store, kSettings.store);
    EXPECT_EQ(held.meta.cluster, kSettings.cluster);
  }
  EXPECT_GT(seen.size(), 4u) << "flushes made tables";
  EXPECT_LT(tables().size(), seen.size()) << "and merges put some of them together";
  EXPECT_EQ(board.probes["metastore: a database that was opened since its index was written is read whole"], 0u);
}

TEST_F(TrustedIndexTest, ItHoldsOverAnInstallAndNamesThisNode) {
  fill();
  with_fsm([&](Fsm& fsm) {
    tests::MemorySink sink;
    ASSERT_TRUE(fsm.write_image(sink, 150).ok());
    apply(fsm, 150, 170);
    tests::MemorySource source(sink.image);
    ASSERT_TRUE(fsm.install_image(source, 150).ok());
    apply(fsm, 150, 160);
  });
  const FsmHeld held = look();
  EXPECT_TRUE(held.is_trusted) << held.distrust;
  EXPECT_EQ(held.meta.state.applied_index, 160u);
  EXPECT_EQ(held.meta.store, kSettings.store);
}

// The end strikes each mutating operation of a life that opens, applies and flushes; also those of opening alone.
void sweep(FaultAction action) {
  bool is_struck = true;
  size_t scans = 0;
  for (uint64_t nth = 1; is_struck; ++nth) {
    io::sim::Switchboard board;
    io::sim::SwitchboardGuard guard(&board);
    io::sim::World world(nth);
    io::sim::MachineSettings settings;
    settings.name = "n1";
    io::sim::Machine& machine = world.add_machine(settings);
    const auto live = [&](const std::function<void(io::Env&)>& body) {
      machine.start([&](io::Env& env) {
        body(env);
        return 0;
      });
      world.run_while([&] { return machine.process() != nullptr; }, world.now() + 60s);
    };
    const auto apply_some = [](io::Env& env, raft::Index first) {
      auto fsm = Fsm::open(env, kSettings);
      for (raft::Index index = first + 1; fsm.ok() && index <= first + 12; ++index) {
        (void)(*fsm)->apply({create_entry(index, "t" + std::to_string(index))});
      }
      if (fsm.ok()) {
        (*fsm)->close();
      }
    };
    live([&](io::Env& env) { apply_some(env, 0); });
    machine.volume().script({.action = action, .op = std::nullopt, .prefix = "", .nth = nth});
    live([&](io::Env& env) { apply_some(env, 12); });
    is_struck = machine.volume().scripted_left() == 0;
    machine.volume().clear_scripted();
    live([&](io::Env& env) {
      auto held = Fsm::look(env);
      ASSERT_TRUE(held.ok()) << held.error().to_text();
      EXPECT_TRUE(held->is_trusted || !held->holds_anything) << "operation " << nth << ": " << held->distrust;
      auto fsm = Fsm::open(env, kSettings);
      ASSERT_TRUE(fsm.ok()) << "operation " << nth << ": " << fsm.error().to_text();
      EXPECT_EQ((*fsm)->audit()->digest_of_rows, (*fsm)->digest());
      (*fsm)->close();
    });
    scans += board.probes["metastore: a database that was opened since its index was written is read whole"];
    ASSERT_LT(nth, 1000u);
  }
  EXPECT_GT(scans, 0u) << "some life ended between opening and its first write";
}

TEST(TrustedIndexSweep, ItHoldsWhereverAKillStrikes) { sweep(FaultAction::kill); }
TEST(TrustedIndexSweep, ItHoldsWhereverThePowerIsLost) { sweep(FaultAction::power_loss); }

TEST_F(TrustedIndexTest, OpeningByAnotherThatChangesNothingIsSeenThroughByTheRows) {
  fill();
  foreign([](io::Env&, rocksdb::DB&, const std::string&) {});
  EXPECT_TRUE(look().is_trusted);
  EXPECT_GT(board.probes["metastore: a database that was opened since its index was written is read whole"], 0u);
  with_fsm([](Fsm& fsm) { EXPECT_EQ(fsm.applied_index(), 150u); });
  board.probes.clear();
  EXPECT_TRUE(look().is_trusted);
  EXPECT_EQ(board.probes["metastore: a database that was opened since its index was written is read whole"], 0u)
      << "a life writes the row anew";
}

// ---- Nobody else's write passes --------------------------------------------------------------------------------------------

TEST_F(TrustedIndexTest, APutIsNoticed) {
  fill();
  foreign([](io::Env&, rocksdb::DB& db, const std::string&) {
    ASSERT_TRUE(db.Put(rocksdb::WriteOptions(), "topics/foreign", "x").ok());
  });
  expect_distrusted(kWritten);
}

TEST_F(TrustedIndexTest, APutOfTheSameValueIsNoticed) {
  fill();
  foreign([](io::Env&, rocksdb::DB& db, const std::string&) {
    std::string row;
    ASSERT_TRUE(db.Get(rocksdb::ReadOptions(), meta_row_key(), &row).ok());
    ASSERT_TRUE(db.Put(rocksdb::WriteOptions(), meta_row_key(), row).ok());
  });
  expect_distrusted(kWritten);
}

TEST_F(TrustedIndexTest, ADeleteIsNoticed) {
  fill();
  foreign([](io::Env&, rocksdb::DB& db, const std::string&) {
    ASSERT_TRUE(db.DeleteRange(rocksdb::WriteOptions(), db.DefaultColumnFamily(), "topics/", "topics0").ok());
  });
  expect_distrusted(kWritten);
}

TEST_F(TrustedIndexTest, ATableIngestedOverRowsIsNoticed) {
  fill();
  foreign([](io::Env& env, rocksdb::DB& db, const std::string& path) { ingest(env, db, path, "topics/topic2"); });
  expect_distrusted("");
}

TEST_F(TrustedIndexTest, ATableIngestedBesideTheRowsIsNoticed) {
  fill();
  foreign([](io::Env& env, rocksdb::DB& db, const std::string& path) {
    const auto before = db.GetLatestSequenceNumber();
    ingest(env, db, path, "users/foreign");
    EXPECT_EQ(db.GetLatestSequenceNumber(), before) << "the sequence number does not tell";
  });
  expect_distrusted(kOtherRows);
}

TEST_F(TrustedIndexTest, DroppedTablesAreNoticed) {
  fill();
  foreign([](io::Env&, rocksdb::DB& db, const std::string&) {
    const auto before = db.GetLatestSequenceNumber();
    std::vector<rocksdb::LiveFileMetaData> files;
    db.GetLiveFilesMetaData(&files);
    ASSERT_TRUE(rocksdb::DeleteFilesInRange(&db, db.DefaultColumnFamily(), nullptr, nullptr).ok());
    std::vector<rocksdb::LiveFileMetaData> left;
    db.GetLiveFilesMetaData(&left);
    ASSERT_LT(left.size(), files.size()) << "a merged table lies below the first level";
    EXPECT_EQ(db.GetLatestSequenceNumber(), before) << "the sequence number does not tell";
  });
  expect_distrusted(kOtherRows);
}

TEST_F(TrustedIndexTest, RowsWithoutAnIndexAreNotTrusted) {
  with_fsm([](Fsm&) {});
  EXPECT_FALSE(look().holds_anything);
  foreign([](io::Env&, rocksdb::DB& db, const std::string&) {
    ASSERT_TRUE(db.Put(rocksdb::WriteOptions(), "topics/foreign", "x").ok());
  });
  const FsmHeld held = look();
  EXPECT_TRUE(held.holds_anything);
  EXPECT_FALSE(held.is_trusted);
  EXPECT_EQ(held.distrust, "it holds rows but no index");
}

// ---- What is done about it -------------------------------------------------------------------------------------------------

TEST_F(TrustedIndexTest, RowsThatAreTakenAsTheyAreAreTrustedFromThenOn) {
  fill();
  foreign([](io::Env&, rocksdb::DB& db, const std::string&) {
    ASSERT_TRUE(db.Put(rocksdb::WriteOptions(), "topics/foreign", "x").ok());
  });
  with_fsm([&](Fsm& fsm) {
    EXPECT_EQ(fsm.applied_index(), 120u);
    EXPECT_EQ(fsm.audit()->digest_of_rows, fsm.digest());
    apply(fsm, 120, 130);
  }, {OpenAs::Kind::rebased, 120, 1});
  const FsmHeld held = look();
  EXPECT_TRUE(held.is_trusted) << held.distrust;
  EXPECT_EQ(held.meta.state.applied_index, 130u);
}

TEST_F(TrustedIndexTest, ADatabaseThatIsToBeReplacedStaysAsLittleTrusted) {
  fill();
  foreign([](io::Env&, rocksdb::DB& db, const std::string&) {
    ASSERT_TRUE(db.Put(rocksdb::WriteOptions(), "topics/foreign", "x").ok());
  });
  with_fsm([](Fsm&) {}, {OpenAs::Kind::replaced});
  expect_distrusted(kWritten);
}

TEST_F(TrustedIndexTest, AReleaseThatWritesNoIndexLeavesOneThatIsNotTrusted) {
  fill();
  live([&](io::Env& env) {
    FsmSettings older = kSettings;
    older.writes_meta = false;
    auto fsm = Fsm::open(env, older);
    ASSERT_TRUE(fsm.ok());
    ASSERT_TRUE((*fsm)->apply({create_entry(151, "by another release")}).ok());
    (*fsm)->close();
  });
  expect_distrusted(kWritten);
}

TEST_F(TrustedIndexTest, ADatabaseIsSetAsideWholeAndANewOneBegins) {
  fill();
  for (raft::Index index : {3, 4}) {
    live([](io::Env& env) {
      auto moved = Fsm::set_aside(env);
      ASSERT_TRUE(moved.ok()) << moved.error().to_text();
      EXPECT_EQ(*moved, "fsm.db.stale");
    });
    EXPECT_FALSE(look().holds_anything);
    with_fsm([&](Fsm& fsm) {
      EXPECT_EQ(fsm.applied_index(), 0u);
      apply(fsm, 0, index);
    });
  }
  live([](io::Env& env) {
    auto names = env.disk.list("fsm.db.stale");
    ASSERT_TRUE(names.ok());
    EXPECT_EQ(names->size(), 2u) << "ACTIVE and a database";
  });
}

// ---- A real second process -------------------------------------------------------------------------------------------------

// A database on the machine's own disk.
class RealHost final : public io::KvHost {
 public:
  explicit RealHost(std::string root) : root_(std::move(root)) {}
  rocksdb::Env* env() override { return rocksdb::Env::Default(); }
  std::string path(std::string_view relative) override { return root_ + "/" + std::string(relative); }
  void pump() override {}

 private:
  std::string root_;
};

constexpr char kForeignVariable[] = "NARAD_TEST_FOREIGN_DATABASE";

// What the second process runs: a plain open and put, with nothing of ours.
TEST(TrustedIndexProcess, DISABLED_OpensAndPuts) {
  const char* path = std::getenv(kForeignVariable);
  ASSERT_NE(path, nullptr);
  rocksdb::DB* raw = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(rocksdb::Options(), path, &raw).ok());
  std::unique_ptr<rocksdb::DB> db(raw);
  ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), "topics/foreign", "x").ok());
}

TEST(TrustedIndexProcess, APutOfAnotherProcessIsNoticed) {
  const std::string root = testing::TempDir() + "trusted_index_" + std::to_string(getpid());
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root);
  RealHost host(root);
  Database::Settings settings;
  settings.newest_type = kNewestEntryType;
  settings.flush_bytes = 1 << 20;
  for (raft::Index index = 1; index <= 3; ++index) {
    Database database(host, "db", settings);
    ASSERT_TRUE(database.open().ok());
    EXPECT_EQ(database.state().applied_index, index - 1);
    EXPECT_EQ(database.apply({create_entry(index, "t" + std::to_string(index))}).kind, BatchOutcome::Kind::written);
    database.close();
    auto held = Database::look(host, "db");
    ASSERT_TRUE(held.ok());
    EXPECT_TRUE(held->is_trusted) << held->distrust;
  }
  ASSERT_EQ(setenv(kForeignVariable, host.path("db").c_str(), 1), 0);
  std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::string filter = "--gtest_filter=TrustedIndexProcess.DISABLED_OpensAndPuts";
  std::string also = "--gtest_also_run_disabled_tests";
  char* arguments[] = {program.data(), filter.data(), also.data(), nullptr};
  pid_t child = 0;
  ASSERT_EQ(posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0) << "the other process could not write";
  auto held = Database::look(host, "db");
  ASSERT_TRUE(held.ok());
  EXPECT_FALSE(held->is_trusted);
  EXPECT_NE(held->distrust.find(kWritten), std::string::npos) << held->distrust;
  Database database(host, "db", settings);
  EXPECT_EQ(database.open().error().kind, io::ErrorKind::corrupt);
  std::filesystem::remove_all(root);
}

}  // namespace
