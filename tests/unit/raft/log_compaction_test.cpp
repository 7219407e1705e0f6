// Forgetting a prefix of the log, beginning it anew behind a snapshot, reusing segments, and reading beside all that.
#include <gtest/gtest.h>

#include "io/fiber.h"
#include "io/sim/switches.h"
#include "raft/log_format.h"
#include "raft/log_store.h"
#include "raft/stable_store.h"
#include "tests/support/disk_world.h"

namespace {

using raft::Entry;
using raft::Index;
using raft::LogSettings;
using raft::LogStore;
using raft::Term;
using tests::DiskWorld;
using tests::entry;
using tests::kStore;
using tests::to_text;

const LogSettings kSmall{.segment_bytes = 4096, .fill_step_bytes = 4096, .batch_bytes_max = 1 << 20};

// What the log ought to hold: everything since it last began anew, and how far it may have forgotten.
struct Model {
  Index base = 0;
  Term base_term = 0;
  std::vector<Entry> entries;
  Index compacted = 0;

  Index last() const { return base + entries.size(); }
  Term term(Index index) const { return index == base ? base_term : entries[index - base - 1].term; }
  std::vector<Entry> after(Index index) const {
    return {entries.begin() + static_cast<std::ptrdiff_t>(index - base), entries.end()};
  }
  void append(const std::vector<Entry>& batch) {
    entries.resize(batch.front().index - 1 - base);
    entries.insert(entries.end(), batch.begin(), batch.end());
  }
};

struct Opened {
  io::Status status;
  LogStore::Contents contents;
  std::unique_ptr<LogStore> log;
};

Opened open(io::Env& env, const LogSettings& settings = kSmall, bool is_confirmed = true) {
  Opened opened;
  NARAD_CHECK(env.disk.make_directory("raft").ok() && env.disk.sync_directory("").ok(), "raft/ is durable");
  auto log = LogStore::open(env.disk, kStore, settings, opened.contents);
  if (!log.ok()) {
    opened.status = log.error();
    return opened;
  }
  opened.log = std::move(*log);
  if (is_confirmed) opened.status = opened.log->confirm();
  return opened;
}

Opened look(DiskWorld& disk, const LogSettings& settings = kSmall, bool is_confirmed = true) {
  Opened found;
  disk.run([&](io::Env& env) {
    found = open(env, settings, is_confirmed);
    found.log.reset();
  });
  return found;
}

bool is_right(const LogStore::Contents& found, const Model& model) {
  return found.base_index >= model.base && found.base_index <= std::max(model.compacted, model.base) &&
         found.last_index == model.last() && found.base_term == model.term(found.base_index) &&
         to_text(found.entries) == to_text(model.after(found.base_index));
}

std::string describe(const LogStore::Contents& found, const Model& model) {
  return "found " + std::to_string(found.base_index) + "/" + std::to_string(found.base_term) + " " + to_text(found.entries) +
         "\nmodel " + std::to_string(model.base) + ".." + std::to_string(model.compacted) + " " + to_text(model.entries);
}

void append_ones(LogStore& log, Model& model, Index count, Term term = 1, std::size_t bytes = 900) {
  for (Index i = 0; i < count; ++i) {
    const std::vector<Entry> batch{entry(term, model.last() + 1, std::string(bytes, static_cast<char>('a' + model.last() % 26)))};
    ASSERT_TRUE(log.append(batch).ok());
    model.append(batch);
  }
}

std::size_t count_files(const DiskWorld& disk, std::string_view suffix) {
  std::size_t count = 0;
  for (const auto& [path, content] : const_cast<DiskWorld&>(disk).image().files) count += path.ends_with(suffix);
  return count;
}

TEST(LogCompaction, ForgetsWholeSegmentsBelowTheGivenIndexAndTellsWhereTheLogBegins) {
  DiskWorld disk(1);
  Model model;
  disk.run([&](io::Env& env) {
    Opened opened = open(env);
    append_ones(*opened.log, model, 40);
    for (const Index up_to : {3, 10, 11, 25}) {
      ASSERT_TRUE(opened.log->compact(up_to).ok());
      EXPECT_LE(opened.log->first_index(), up_to + 1);
      EXPECT_GT(opened.log->first_index() + 4, up_to + 1);  // no more than a segment stays
      EXPECT_EQ(opened.log->last_index(), 40u);
    }
    model.compacted = opened.log->first_index() - 1;
    EXPECT_GT(model.compacted, 20u);
  });
  const Opened found = look(disk);
  ASSERT_TRUE(found.status.ok()) << found.status.error().to_text();
  EXPECT_EQ(found.contents.base_index, model.compacted);
  EXPECT_TRUE(is_right(found.contents, model)) << describe(found.contents, model);
  EXPECT_EQ(count_files(disk, ".spare"), 0u);
}

TEST(LogCompaction, KeepsTheSegmentInUse) {
  DiskWorld disk(2);
  Model model;
  disk.run([&](io::Env& env) {
    Opened opened = open(env);
    append_ones(*opened.log, model, 10);
    ASSERT_TRUE(opened.log->compact(10).ok());
    model.compacted = opened.log->first_index() - 1;
    EXPECT_LT(model.compacted, 10u);
    append_ones(*opened.log, model, 3);
  });
  const Opened found = look(disk);
  EXPECT_TRUE(is_right(found.contents, model)) << describe(found.contents, model);
}

TEST(LogCompaction, AnswersNotFoundForWhatIsForgottenAndTermsForWhatIsNot) {
  DiskWorld disk(3);
  Model model;
  disk.run([&](io::Env& env) {
    Opened opened = open(env);
    append_ones(*opened.log, model, 20, 1);
    append_ones(*opened.log, model, 20, 4);
    ASSERT_TRUE(opened.log->compact(30).ok());
    const Index first = opened.log->first_index();
    EXPECT_TRUE(opened.log->read(first - 1, 40, 1000).is(io::ErrorKind::not_found));
    EXPECT_TRUE(opened.log->read(41, 41, 1000).is(io::ErrorKind::not_found));
    EXPECT_EQ(opened.log->read(40, 90, 100'000)->size(), 1u);
    EXPECT_FALSE(opened.log->term(first - 2).has_value());
    for (Index i = first - 1; i <= 40; ++i) EXPECT_EQ(opened.log->term(i), model.term(i));
    EXPECT_FALSE(opened.log->term(41).has_value());
    auto all = opened.log->read(first, 40, 1 << 20);
    ASSERT_TRUE(all.ok());
    EXPECT_EQ(to_text(*all), to_text(model.after(first - 1)));
  });
}

// Scenario PT-04.
TEST(LogCompaction, DoesNotBeginWhereALaterCutReachesBelow) {
  DiskWorld disk(4);
  Model model;
  disk.run([&](io::Env& env) {
    Opened opened = open(env);
    append_ones(*opened.log, model, 14);
    // Cuts back over two segments, then goes on: some of the segments begin above entries that replaced theirs.
    const std::vector<Entry> batch{entry(2, 6, std::string(900, 'n'))};
    ASSERT_TRUE(opened.log->append(batch).ok());
    model.append(batch);
    append_ones(*opened.log, model, 12, 2);
  });
  const Index last = model.last();
  const auto image = disk.image();
  for (Index up_to = 0; up_to <= last; ++up_to) {
    SCOPED_TRACE(up_to);
    disk.restore(image);
    disk.run([&](io::Env& env) {
      Opened opened = open(env);
      ASSERT_TRUE(opened.log->compact(up_to).ok());
      model.compacted = opened.log->first_index() - 1;
      EXPECT_LE(model.compacted, up_to);
      auto all = opened.log->read(opened.log->first_index(), last, 1 << 20);
      ASSERT_TRUE(all.ok());
      EXPECT_EQ(to_text(*all), to_text(model.after(model.compacted)));
    });
    const Opened found = look(disk);
    ASSERT_TRUE(found.status.ok()) << found.status.error().to_text();
    EXPECT_TRUE(is_right(found.contents, model)) << describe(found.contents, model);
  }
}

TEST(LogCompaction, IsCarriedOnWhenACrashLeavesSegmentsThatDoNotStandByThemselves) {
  io::sim::Switchboard board;
  const io::sim::SwitchboardGuard guard(&board);
  for (const auto action : {io::sim::FaultAction::kill, io::sim::FaultAction::power_loss}) {
    bool has_struck = true;
    for (uint64_t nth = 1; has_struck; ++nth) {
      SCOPED_TRACE(nth);
      DiskWorld disk(600 + nth);
      Model model;
      disk.run([&](io::Env& env) {
        Opened opened = open(env);
        append_ones(*opened.log, model, 18);
        const std::vector<Entry> batch{entry(2, 3, std::string(900, 'n'))};
        ASSERT_TRUE(opened.log->append(batch).ok());
        model.append(batch);
        append_ones(*opened.log, model, 9, 2);
        model.compacted = 8;
        disk.volume().script({action, std::nullopt, "raft/log", nth});
        (void)opened.log->compact(8);
      });
      has_struck = disk.volume().scripted_left() == 0;
      disk.volume().clear_scripted();
      for (int life = 0; life < 2; ++life) {
        const Opened found = look(disk);
        ASSERT_TRUE(found.status.ok()) << found.status.error().to_text();
        EXPECT_TRUE(is_right(found.contents, model)) << describe(found.contents, model);
        disk.machine.power_loss();
      }
    }
  }
  EXPECT_GT(board.probes["raft log: interrupted compaction carried on"], 0u);
}

TEST(LogCompaction, ReusesABoundedNumberOfSegmentsAndNothingOldPassesInThem) {
  io::sim::Switchboard board;
  const io::sim::SwitchboardGuard guard(&board);
  DiskWorld disk(5);
  Model model;
  for (int life = 0; life < 4; ++life) {
    disk.run([&](io::Env& env) {
      Opened opened = open(env);
      ASSERT_TRUE(opened.status.ok());
      EXPECT_TRUE(is_right(opened.contents, model)) << describe(opened.contents, model);
      for (int round = 0; round < 12; ++round) {
        append_ones(*opened.log, model, 5 + static_cast<Index>(round % 3), 1, 300 + 97 * static_cast<std::size_t>(round % 6));
        ASSERT_TRUE(opened.log->prepare_segment().ok());
        const Index up_to = model.last() - 4;
        ASSERT_TRUE(opened.log->compact(up_to).ok());
        model.compacted = opened.log->first_index() - 1;
        EXPECT_LE(count_files(disk, ".spare"), kSmall.spares_max);
        EXPECT_LE(opened.log->disk_bytes(), 7 * kSmall.segment_bytes);
        EXPECT_LE(count_files(disk, ".log") + count_files(disk, ".spare"), 7u);
      }
    });
    disk.machine.power_loss();
  }
  EXPECT_GT(board.probes["raft log: segment recycled"], 0u);
}

TEST(LogCompaction, WaitsForNobodyWhoReadsWhatIsToGo) {
  DiskWorld disk(6);
  Model model;
  disk.run([&](io::Env& env) {
    Opened opened = open(env);
    append_ones(*opened.log, model, 30);
    LogStore& log = *opened.log;
    int begun = 0;
    int reads = 0;
    io::with_scope([&](io::Scope& scope) {
      for (const Index first : {1, 2, 9, 17}) {
        scope.spawn("read", [&, first] {
          ++begun;
          auto read = log.read(first, 30, 1 << 20);
          ASSERT_TRUE(read.ok()) << read.error().to_text();
          EXPECT_EQ(to_text(*read), to_text(model.after(first - 1)));
          ++reads;
        });
      }
      while (begun < 4) io::yield();
      ASSERT_TRUE(log.compact(25).ok());
      // Gone for whoever asks now, though the files wait for their readers.
      EXPECT_TRUE(log.read(5, 30, 1 << 20).is(io::ErrorKind::not_found));
    });
    EXPECT_EQ(reads, 4);
    ASSERT_TRUE(log.compact(25).ok());
    EXPECT_LE(count_files(disk, ".log"), 3u);
    model.compacted = log.first_index() - 1;
  });
  const Opened found = look(disk);
  EXPECT_TRUE(is_right(found.contents, model)) << describe(found.contents, model);
}

TEST(LogCompaction, OpensWithABoundedTailAndAllTermsAndConfigurations) {
  DiskWorld disk(7);
  Model model;
  disk.run([&](io::Env& env) {
    Opened opened = open(env);
    append_ones(*opened.log, model, 10, 2);
    std::vector<Entry> batch{entry(2, 11, "old")};
    batch[0].type = raft::EntryType::configuration;
    ASSERT_TRUE(opened.log->append(batch).ok());
    batch[0] = entry(3, 11, "configuration");
    batch[0].type = raft::EntryType::configuration;
    ASSERT_TRUE(opened.log->append(batch).ok());
    model.append(batch);
    append_ones(*opened.log, model, 30, 5);
  });
  for (const uint64_t tail : {1, 939, 940, 941, 2500, 20'000, 1 << 20}) {
    SCOPED_TRACE(tail);
    LogSettings settings = kSmall;
    settings.tail_bytes_max = tail;
    const Opened found = look(disk, settings);
    ASSERT_TRUE(found.status.ok());
    EXPECT_EQ(found.contents.last_index, 41u);
    const std::size_t held = found.contents.entries.size();
    EXPECT_EQ(held, tail >= 1 << 20 ? 41u : std::max<uint64_t>(1, tail / 940));
    EXPECT_EQ(to_text(found.contents.entries), to_text(model.after(41 - held)));
    ASSERT_EQ(found.contents.terms.size(), 3u);
    EXPECT_EQ(found.contents.terms[1].first, 11u);
    EXPECT_EQ(found.contents.terms[1].term, 3u);
    EXPECT_EQ(found.contents.terms[2].first, 12u);
    EXPECT_EQ(found.contents.last_term(), 5u);
    ASSERT_EQ(found.contents.configurations.size(), 1u);
    EXPECT_EQ(found.contents.configurations[0].index, 11u);
    EXPECT_EQ(found.contents.configurations[0].bytes(), "configuration");
  }
}

TEST(LogCompaction, ReadsBackWhatStandsInSmallAndLargeBatches) {
  DiskWorld disk(8);
  Model model;
  disk.run([&](io::Env& env) {
    Opened opened = open(env, LogSettings{.segment_bytes = 1 << 20});
    for (Index i = 0; i < 60; ++i) {
      std::vector<Entry> batch;
      const Index count = i % 9 == 8 ? 300 : 1 + i % 3;
      for (Index j = 0; j < count; ++j) {
        batch.push_back(entry(1, model.last() + 1 + j, std::string(200 + 700 * (i % 4), static_cast<char>('a' + j % 26))));
      }
      ASSERT_TRUE(opened.log->append(batch).ok());
      model.append(batch);
    }
    for (Index first = 1; first <= model.last(); first += 41) {
      std::vector<Entry> all;
      while (all.size() < model.last() - first + 1) {
        auto read = opened.log->read(first + all.size(), model.last(), 50'000);
        ASSERT_TRUE(read.ok());
        all.insert(all.end(), read->begin(), read->end());
      }
      ASSERT_EQ(to_text(all), to_text(model.after(first - 1)));
    }
  });
}

// ---- Reset -----------------------------------------------------------------------------------------------------------------------

TEST(LogReset, NothingOlderComesBack) {
  for (const bool has_more : {false, true}) {
    DiskWorld disk(20);
    Model model;
    disk.run([&](io::Env& env) {
      Opened opened = open(env);
      append_ones(*opened.log, model, 12);
      ASSERT_TRUE(opened.log->reset(700, 6).ok());
      EXPECT_EQ(opened.log->first_index(), 701u);
      EXPECT_EQ(opened.log->last_index(), 700u);
      EXPECT_EQ(opened.log->term(700), 6u);
      model = Model{700, 6, {}, 700};
      if (has_more) append_ones(*opened.log, model, 9, 7);
    });
    for (int life = 0; life < 3; ++life) {
      disk.machine.power_loss();
      const Opened found = look(disk);
      ASSERT_TRUE(found.status.ok()) << found.status.error().to_text();
      EXPECT_TRUE(is_right(found.contents, model)) << describe(found.contents, model);
    }
    disk.run([&](io::Env& env) {
      Opened opened = open(env);
      append_ones(*opened.log, model, 9, 8);
      ASSERT_TRUE(opened.log->compact(model.last()).ok());
      model.compacted = opened.log->first_index() - 1;
    });
    const Opened found = look(disk);
    EXPECT_TRUE(is_right(found.contents, model)) << describe(found.contents, model);
  }
}

// The numbers of batches go on, so that the stable store's record of the newest one still tells whether some are missing.
TEST(LogReset, BatchNumbersGoOnAndTheStableRecordStays) {
  DiskWorld disk(21);
  std::string stable;
  disk.run([&](io::Env& env) {
    auto store = raft::StableStore::open(env.disk, kStore);
    ASSERT_TRUE(store.ok() && (*store)->confirm(std::nullopt).ok());
    ASSERT_TRUE((*store)->save({9, "a"}, {}, 0).ok());
    stable = disk.bytes("raft/stable");
    Opened opened = open(env);
    Model model;
    append_ones(*opened.log, model, 5);
    const uint64_t before = opened.log->last_batch();
    ASSERT_TRUE(opened.log->reset(30, 2).ok());
    EXPECT_EQ(opened.log->last_batch(), before);
    ASSERT_TRUE(opened.log->append(std::vector<Entry>{entry(3, 31, "x")}).ok());
    EXPECT_EQ(opened.log->last_batch(), before + 1);
    EXPECT_EQ(disk.bytes("raft/stable"), stable);
  });
}

// ---- Crashes and refusals at every step ------------------------------------------------------------------------------------------

// Appends, cuts, rolls, compactions and resets. `done` is what has returned, `trying` what the step under way would leave. A full
// disk is tried again; any other failure ends the life.
void history(io::Env& env, Model& done, Model& trying) {
  Opened opened = open(env);
  if (!opened.status.ok()) return;
  done.base = opened.contents.base_index;
  done.base_term = opened.contents.base_term;
  done.entries = opened.contents.entries;
  done.compacted = done.base;
  trying = done;
  LogStore& log = *opened.log;
  raft::Term term = opened.contents.last_term();
  const auto carry_out = [&](auto&& step) {
    io::Status status = step();
    for (int i = 0; i < 3 && status.is(io::ErrorKind::no_space); ++i) status = step();
    if (status.ok()) done = trying;
    return status.ok();
  };
  for (Index step = 1; step <= 14; ++step) {
    ++term;
    if (step == 9) {
      term += 20;
      trying = Model{done.last() + 5, term, {}, done.last() + 5};
      if (!carry_out([&] { return log.reset(trying.base, trying.base_term); })) return;
    }
    std::vector<Entry> batch;
    const Index first = step % 4 == 0 && done.entries.size() > 2 ? done.last() - 1 : done.last() + 1;
    for (Index i = 0; i < step % 3 + 2; ++i) {
      batch.push_back(entry(term, first + i, std::string(300 + step * 61 % 700, static_cast<char>('a' + step))));
    }
    trying = done;
    trying.append(batch);
    if (!carry_out([&] { return log.append(batch); })) return;
    if (step % 2 == 0 && !carry_out([&] { return log.prepare_segment(); })) return;
    if (step % 3 == 0) {
      const Index up_to = done.last() > 5 ? std::max(done.last() - 5, done.base) : done.base;
      trying.compacted = std::max(done.compacted, up_to);
      // As much as it may have forgotten, whether it returned or not.
      done.compacted = trying.compacted;
      if (!carry_out([&] { return log.compact(up_to); })) return;
    }
  }
}

void sweep(io::sim::FaultAction action, bool is_twice) {
  bool has_struck = true;
  uint64_t nth = 1;
  for (; has_struck; ++nth) {
    SCOPED_TRACE(nth);
    ASSERT_LT(nth, 600u);
    DiskWorld disk(nth + 1000);
    Model done;
    Model trying;
    disk.volume().script({action, std::nullopt, "raft/log", nth});
    disk.run([&](io::Env& env) { history(env, done, trying); });
    has_struck = disk.volume().scripted_left() == 0;
    disk.volume().clear_scripted();
    if (is_twice) {
      disk.volume().script({action, std::nullopt, "raft/log", nth % 7 + 1});
      look(disk);
      disk.volume().clear_scripted();
    }
    const Opened found = look(disk);
    ASSERT_TRUE(found.status.ok()) << found.status.error().to_text();
    EXPECT_TRUE(is_right(found.contents, done) || is_right(found.contents, trying))
        << describe(found.contents, done) << "\n" << describe(found.contents, trying);
    disk.machine.power_loss();
    const Opened again = look(disk);
    ASSERT_TRUE(again.status.ok()) << again.status.error().to_text();
    EXPECT_EQ(to_text(again.contents.entries), to_text(found.contents.entries));
    EXPECT_EQ(again.contents.base_index, found.contents.base_index);
    EXPECT_EQ(count_files(disk, ".spare"), 0u);
    disk.run([&](io::Env& env) { history(env, done, trying); });
    const Opened last = look(disk);
    EXPECT_TRUE(is_right(last.contents, done)) << describe(last.contents, done);
  }
  EXPECT_GT(nth, 60u);
}

TEST(LogCompaction, SurvivesAKillAtEveryDiskOperation) { sweep(io::sim::FaultAction::kill, false); }
TEST(LogCompaction, SurvivesALossOfPowerAtEveryDiskOperation) { sweep(io::sim::FaultAction::power_loss, false); }
TEST(LogCompaction, SurvivesASecondKillWhileItOpens) { sweep(io::sim::FaultAction::kill, true); }
TEST(LogCompaction, SurvivesASecondLossOfPowerWhileItOpens) { sweep(io::sim::FaultAction::power_loss, true); }
TEST(LogCompaction, SurvivesAnErrorAtEveryDiskOperation) { sweep(io::sim::FaultAction::error, false); }
TEST(LogCompaction, GoesOnAfterAFullDiskAtEveryDiskOperation) { sweep(io::sim::FaultAction::no_space, false); }

// ---- Damage ------------------------------------------------------------------------------------------------------------------------

TEST(LogCompaction, RefusesAFlippedBitInARecycledSegment) {
  io::sim::Switchboard board;
  const io::sim::SwitchboardGuard guard(&board);
  DiskWorld disk(30);
  Model model;
  disk.run([&](io::Env& env) {
    Opened opened = open(env);
    append_ones(*opened.log, model, 20, 1, 500);
    ASSERT_TRUE(opened.log->compact(15).ok());
    append_ones(*opened.log, model, 10, 1, 500);
  });
  ASSERT_GT(board.probes["raft log: segment recycled"], 0u);
  // The first batches of the newest segment but one are old bytes' neighbours, and named as synced.
  std::vector<std::string> paths;
  for (const auto& [name, content] : disk.image().files) {
    if (name.ends_with(".log")) paths.push_back(name);
  }
  ASSERT_GE(paths.size(), 3u);
  const std::string target = paths[paths.size() - 2];
  for (uint64_t at = 0; at < 1000; at += 7) {
    SCOPED_TRACE(at);
    ASSERT_TRUE(disk.volume().flip_bit(target, at, static_cast<int>(at % 8)));
    const Opened refused = look(disk, kSmall, false);
    EXPECT_TRUE(refused.status.is(io::ErrorKind::corrupt));
    if (!refused.status.ok()) {
      EXPECT_NE(refused.status.error().message.find(target + ": damaged at offset "), std::string::npos)
          << refused.status.error().message;
    }
    ASSERT_TRUE(disk.volume().flip_bit(target, at, static_cast<int>(at % 8)));
  }
}

TEST(LogCompaction, FindsAMisdirectedWriteOnceMoreIsWrittenBehindIt) {
  for (uint64_t nth = 1; nth <= 12; ++nth) {
    SCOPED_TRACE(nth);
    DiskWorld disk(400 + nth);
    Model model;
    disk.run([&](io::Env& env) {
      Opened opened = open(env);
      append_ones(*opened.log, model, 6, 1, 700);
      ASSERT_TRUE(opened.log->compact(4).ok());
      disk.volume().script({io::sim::FaultAction::misdirect, io::sim::DiskOp::write, "raft/log", nth});
      append_ones(*opened.log, model, 14, 1, 700);
    });
    const Opened found = look(disk, kSmall, false);
    model.compacted = 4;
    EXPECT_TRUE(found.status.is(io::ErrorKind::corrupt) || is_right(found.contents, model)) << describe(found.contents, model);
  }
}

}  // namespace
