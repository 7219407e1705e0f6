#include "raft/log_store.h"

#include <gtest/gtest.h>

#include "io/crc32c.h"
#include "raft/bytes.h"
#include "raft/log_format.h"
#include "tests/support/disk_world.h"

namespace {

using raft::Entry;
using raft::Index;
using raft::LogSettings;
using raft::LogStore;
using tests::DiskWorld;
using tests::entry;
using tests::kStore;
using tests::to_text;

const LogSettings kSmall{.segment_bytes = 4096, .fill_step_bytes = 4096, .batch_bytes_max = 1 << 20};
const std::string kFirst = raft::log_format::segment_path(1);

struct Opened {
  io::Status status;
  std::vector<Entry> entries;
  std::unique_ptr<LogStore> log;
};

Opened open(io::Env& env, const LogSettings& settings = kSmall, bool is_confirmed = true) {
  Opened opened;
  // The stable store's part, in a server.
  NARAD_CHECK(env.disk.make_directory("raft").ok() && env.disk.sync_directory("").ok(), "raft/ is durable");
  LogStore::Contents contents;
  auto log = LogStore::open(env.disk, kStore, settings, contents);
  if (!log.ok()) {
    opened.status = log.error();
    return opened;
  }
  opened.log = std::move(*log);
  opened.entries = std::move(contents.entries);
  if (is_confirmed) opened.status = opened.log->confirm();
  return opened;
}

// What the next life finds; empty entries and a failed status when it refuses.
Opened look(DiskWorld& disk, const LogSettings& settings = kSmall, bool is_confirmed = true) {
  Opened found;
  disk.run([&](io::Env& env) {
    found = open(env, settings, is_confirmed);
    found.log.reset();
  });
  return found;
}

void append(LogStore& log, const std::vector<Entry>& entries) { ASSERT_TRUE(log.append(entries).ok()); }

// Three batches: 1..2, 3, 4..5 of term 1.
void write_three_batches(DiskWorld& disk) {
  disk.run([](io::Env& env) {
    Opened opened = open(env);
    ASSERT_TRUE(opened.status.ok());
    append(*opened.log, {entry(1, 1, "one"), entry(1, 2, "")});
    append(*opened.log, {entry(1, 3, "three")});
    append(*opened.log, {entry(1, 4, "four"), entry(1, 5, "five")});
  });
}
const char* const kThreeBatches = "1:one/3 1:/0 1:three/5 1:four/4 1:five/4 ";
const char* const kTwoBatches = "1:one/3 1:/0 1:three/5 ";

std::vector<uint64_t> batch_offsets(const std::string& bytes, uint64_t generation = 1) {
  std::vector<uint64_t> offsets;
  for (auto at = raft::log_format::find_batch(bytes, generation, raft::log_format::kSegmentHeaderBytes); at;
       at = raft::log_format::find_batch(bytes, generation, *at + 8)) {
    offsets.push_back(*at);
  }
  return offsets;
}

uint64_t end_of_batch(const std::string& bytes, uint64_t offset) {
  return raft::log_format::batch_end(offset, *raft::log_format::parse_batch_header(bytes, 1, offset));
}

TEST(LogStore, FindsWhatWasAppended) {
  DiskWorld disk(1);
  write_three_batches(disk);
  for (int life = 0; life < 3; ++life) EXPECT_EQ(to_text(look(disk).entries), kThreeBatches);
}

TEST(LogStore, KeepsTypesTermsAndBytes) {
  DiskWorld disk(2);
  Entry configuration = entry(3, 2, std::string("\0\xff\n", 3));
  configuration.type = raft::EntryType::configuration;
  disk.run([&](io::Env& env) {
    Opened opened = open(env);
    append(*opened.log, {entry(2, 1, ""), configuration, entry(3, 3, std::string(9000, 'x'))});
  });
  const Opened found = look(disk);
  ASSERT_EQ(found.entries.size(), 3u);
  EXPECT_TRUE(raft::same_entry(found.entries[1], configuration));
  EXPECT_EQ(found.entries[2].bytes(), std::string(9000, 'x'));
}

TEST(LogStore, CutsATornTailAtEveryByteOfTheLastBatch) {
  DiskWorld disk(3);
  write_three_batches(disk);
  const std::string whole = disk.bytes(kFirst);
  const auto offsets = batch_offsets(whole);
  ASSERT_EQ(offsets.size(), 3u);
  const uint64_t end = end_of_batch(whole, offsets[2]);
  const auto image = disk.image();
  for (uint64_t cut = offsets[2]; cut < end; ++cut) {
    SCOPED_TRACE(cut);
    std::string torn = whole;
    std::fill(torn.begin() + static_cast<std::ptrdiff_t>(cut), torn.begin() + static_cast<std::ptrdiff_t>(end), '\0');
    disk.restore(image);
    disk.volume().tree().put_file(kFirst, torn);
    const Opened found = look(disk);
    ASSERT_TRUE(found.status.ok()) << found.status.error().to_text();
    EXPECT_EQ(to_text(found.entries), torn == whole ? kThreeBatches : kTwoBatches);
    // What is written in its place stands, and nothing of the torn write comes back behind it.
    disk.run([&](io::Env& env) {
      Opened opened = open(env);
      append(*opened.log, {entry(2, opened.log->last_index() + 1, "n")});
    });
    const std::string expected = std::string(torn == whole ? kThreeBatches : kTwoBatches) + "2:n/1 ";
    EXPECT_EQ(to_text(look(disk).entries), expected);
  }
}

// Scenario PT-07.
TEST(LogStore, RefusesAFlippedBitAtEveryPlaceOfASyncedBatchAndChangesNothing) {
  DiskWorld disk(4);
  write_three_batches(disk);
  const std::string whole = disk.bytes(kFirst);
  const auto offsets = batch_offsets(whole);
  ASSERT_EQ(offsets.size(), 3u);
  for (uint64_t at = 0; at < offsets[2]; ++at) {
    SCOPED_TRACE(at);
    ASSERT_TRUE(disk.volume().flip_bit(kFirst, at, static_cast<int>(at % 8)));
    const auto before = disk.image();
    const Opened found = look(disk, kSmall, false);
    ASSERT_TRUE(found.status.is(io::ErrorKind::corrupt));
    const uint64_t named = at < offsets[0] ? 0 : at < offsets[1] ? offsets[0] : offsets[1];
    EXPECT_NE(found.status.error().message.find(kFirst + ": damaged at offset " + std::to_string(named) + " (index "),
              std::string::npos)
        << found.status.error().message;
    EXPECT_EQ(disk.image().files, before.files);
    ASSERT_TRUE(disk.volume().flip_bit(kFirst, at, static_cast<int>(at % 8)));
  }
  EXPECT_EQ(to_text(look(disk).entries), kThreeBatches);
}

// Scenario PT-07.
TEST(LogStore, RefusesDamageInAnOlderSegment) {
  DiskWorld disk(5);
  disk.run([](io::Env& env) {
    Opened opened = open(env);
    for (Index i = 1; i <= 12; ++i) append(*opened.log, {entry(1, i, std::string(1000, 'x'))});
  });
  const Opened found = look(disk);
  ASSERT_EQ(found.entries.size(), 12u);
  const std::string whole = disk.bytes(kFirst);
  // The last batch of the first segment has nothing behind it in its own file.
  const uint64_t at = batch_offsets(whole).back() + 70;
  ASSERT_TRUE(disk.volume().flip_bit(kFirst, at, 3));
  const Opened refused = look(disk, kSmall, false);
  ASSERT_TRUE(refused.status.is(io::ErrorKind::corrupt));
  EXPECT_NE(refused.status.error().message.find(kFirst), std::string::npos) << refused.status.error().message;
}

TEST(LogStore, RefusesAMissingSegmentWhileAnOlderOneIsThere) {
  DiskWorld disk(6);
  disk.run([](io::Env& env) {
    Opened opened = open(env);
    for (Index i = 1; i <= 12; ++i) append(*opened.log, {entry(1, i, std::string(1000, 'x'))});
  });
  for (const uint64_t generation : {2, 3}) {
    const std::string path = raft::log_format::segment_path(generation);
    const auto image = disk.image();
    disk.volume().tree().erase(path);
    const Opened refused = look(disk, kSmall, false);
    ASSERT_TRUE(refused.status.is(io::ErrorKind::corrupt));
    EXPECT_NE(refused.status.error().message.find(path), std::string::npos) << refused.status.error().message;
    disk.restore(image);
  }
}

TEST(LogStore, RefusesASegmentThatWasCutShort) {
  DiskWorld disk(7);
  write_three_batches(disk);
  disk.volume().tree().put_file(kFirst, disk.bytes(kFirst).substr(0, 700));
  EXPECT_TRUE(look(disk, kSmall, false).status.is(io::ErrorKind::corrupt));
}

TEST(LogStore, RefusesAnotherVolumesSegment) {
  DiskWorld disk(8);
  write_three_batches(disk);
  disk.run([](io::Env& env) {
    LogStore::Contents contents;
    auto log = LogStore::open(env.disk, raft::StoreId{1, 1}, kSmall, contents);
    ASSERT_TRUE(log.is(io::ErrorKind::corrupt));
    EXPECT_NE(log.error().message.find("belongs to store"), std::string::npos);
  });
}

TEST(LogStore, RefusesANewerFormatByName) {
  DiskWorld disk(9);
  write_three_batches(disk);
  std::string bytes = disk.bytes(kFirst);
  raft::log_format::SegmentHeader header;
  ASSERT_EQ(raft::log_format::parse(bytes, 1, header), raft::log_format::HeaderState::valid);
  // A segment of version 2, as a later release would seal it.
  bytes.replace(0, raft::log_format::kSegmentHeaderBytes, raft::log_format::encode(header, 2));
  disk.volume().tree().put_file(kFirst, bytes);
  const Opened refused = look(disk, kSmall, false);
  ASSERT_TRUE(refused.status.is(io::ErrorKind::invalid));
  EXPECT_NE(refused.status.error().message.find("newer release"), std::string::npos);
}

// Whole in itself, and the next by its number: but it was not written where it stands.
TEST(LogStore, RefusesABatchThatNamesAnotherPlaceAsSynced) {
  DiskWorld disk(11);
  write_three_batches(disk);
  const std::string whole = disk.bytes(kFirst);
  const auto offsets = batch_offsets(whole);
  ASSERT_EQ(offsets.size(), 3u);
  auto header = raft::log_format::parse_batch_header(whole, 1, offsets[2]);
  ASSERT_TRUE(header);
  ASSERT_EQ(header->frontier, offsets[2]);
  header->frontier = offsets[1];
  std::string forged;
  raft::log_format::encode_batch(std::vector<Entry>{entry(1, 4, "forged"), entry(1, 5, "forged")}, *header, 1, offsets[2], forged);
  std::string bytes = whole;
  bytes.replace(offsets[2], forged.size(), forged);
  disk.volume().tree().put_file(kFirst, bytes);
  const Opened refused = look(disk, kSmall, false);
  ASSERT_TRUE(refused.status.is(io::ErrorKind::corrupt));
  const std::string named = kFirst + ": damaged at offset " + std::to_string(offsets[2]) + " (index 4)";
  EXPECT_NE(refused.status.error().message.find(named), std::string::npos) << refused.status.error().message;
  EXPECT_NE(refused.status.error().message.find("the end of the one before"), std::string::npos);
}

// What follows such a number would begin again at 0, and be taken for older than what is there.
TEST(LogStore, TakesNoNumberForItsOwnThatItCannotCountOnFrom) {
  DiskWorld disk(13);
  write_three_batches(disk);
  const std::string whole = disk.bytes(kFirst);
  const auto offsets = batch_offsets(whole);
  ASSERT_EQ(offsets.size(), 3u);
  for (const auto field : {&raft::log_format::BatchHeader::epoch, &raft::log_format::BatchHeader::stable_record}) {
    auto header = raft::log_format::parse_batch_header(whole, 1, offsets[2]);
    ASSERT_TRUE(header);
    (*header).*field = ~std::uint64_t{0};
    std::string forged;
    raft::log_format::encode_batch(std::vector<Entry>{entry(1, 4, "four"), entry(1, 5, "five")}, *header, 1, offsets[2], forged);
    std::string bytes = whole;
    bytes.replace(offsets[2], forged.size(), forged);
    disk.volume().tree().put_file(kFirst, bytes);
    EXPECT_EQ(to_text(look(disk, kSmall, false).entries), kTwoBatches);
    EXPECT_EQ(to_text(look(disk).entries), kTwoBatches);
    disk.run([&](io::Env& env) {
      Opened opened = open(env);
      append(*opened.log, {entry(2, opened.log->last_index() + 1, "n")});
    });
    EXPECT_EQ(to_text(look(disk).entries), std::string(kTwoBatches) + "2:n/1 ");
    disk.volume().tree().put_file(kFirst, whole);
  }
}

// The batch behind it would stand at a place where none is looked for.
TEST(LogStore, TakesNoBatchWhoseEndIsNoPlaceForAnother) {
  DiskWorld disk(14);
  disk.run([](io::Env& env) {
    Opened opened = open(env);
    append(*opened.log, {entry(1, 1, "one")});
    append(*opened.log, {entry(1, 2, "two")});
  });
  const std::string whole = disk.bytes(kFirst);
  const auto offsets = batch_offsets(whole);
  ASSERT_EQ(offsets.size(), 2u);
  const uint64_t at = offsets[1];
  const auto header = raft::log_format::parse_batch_header(whole, 1, at);
  ASSERT_TRUE(header);
  // Three bytes of what pads the batch are left out, and every checksum says so.
  std::string bytes = whole;
  const uint64_t body = at + raft::log_format::kBatchHeaderBytes;
  const uint32_t length = header->body_bytes - 3;
  ASSERT_EQ(bytes.substr(body + length, 3), std::string(3, '\0'));
  raft::put(bytes, at + 8, length);
  raft::put(bytes, at + 12, io::crc32c(std::string_view(bytes).substr(body, length), io::crc32c_salt(1, header->first)));
  const std::string_view fields = std::string_view(bytes).substr(at + 8, raft::log_format::kBatchHeaderBytes - 8);
  raft::put(bytes, at + 4, io::crc32c(fields, io::crc32c_salt(1, at)));
  EXPECT_FALSE(raft::log_format::parse_batch_header(bytes, 1, at));
  disk.volume().tree().put_file(kFirst, bytes);
  EXPECT_EQ(to_text(look(disk, kSmall, false).entries), "1:one/3 ");
  EXPECT_EQ(to_text(look(disk).entries), "1:one/3 ");
}

// Else the log would end before that segment, and be begun anew without its entries.
TEST(LogStore, RefusesASegmentOlderThanTheOneItContinues) {
  DiskWorld disk(12);
  disk.run([](io::Env& env) {
    Opened opened = open(env);
    for (Index i = 1; i <= 6; ++i) append(*opened.log, {entry(1, i, std::string(900, 'x'))});
  });
  std::string bytes = disk.bytes(kFirst);
  const uint64_t at = batch_offsets(bytes).back();
  auto header = raft::log_format::parse_batch_header(bytes, 1, at);
  ASSERT_TRUE(header);
  header->epoch += 100;
  std::string forged;
  raft::log_format::encode_batch(std::vector<Entry>{entry(1, header->first, std::string(900, 'x'))}, *header, 1, at, forged);
  bytes.replace(at, forged.size(), forged);
  disk.volume().tree().put_file(kFirst, bytes);
  const Opened refused = look(disk, kSmall, false);
  ASSERT_TRUE(refused.status.is(io::ErrorKind::corrupt));
  const std::string second = raft::log_format::segment_path(2);
  EXPECT_NE(refused.status.error().message.find(second + ": damaged at offset 512 (index "), std::string::npos)
      << refused.status.error().message;
}

// Scenarios PT-04 and LR-13.
TEST(LogStore, RefusesTermsThatFall) {
  DiskWorld disk(1);
  disk.run([](io::Env& env) {
    Opened opened = open(env);
    append(*opened.log, {entry(2, 1, "two")});
    append(*opened.log, {entry(1, 2, "one")});
  });
  const Opened found = look(disk);
  ASSERT_TRUE(found.status.is(io::ErrorKind::corrupt));
  EXPECT_NE(found.status.error().message.find(kFirst + ": damaged at offset "), std::string::npos) << found.status.error().message;
  EXPECT_NE(found.status.error().message.find("term 1 follows term 2"), std::string::npos) << found.status.error().message;
}

// Scenario PT-04.
TEST(LogStore, EntriesThatWereCutDoNotComeBack) {
  DiskWorld disk(10);
  disk.run([](io::Env& env) {
    Opened opened = open(env);
    append(*opened.log, {entry(1, 1, "a"), entry(1, 2, "b")});
    append(*opened.log, {entry(1, 3, "c"), entry(1, 4, "d"), entry(1, 5, "e")});
    append(*opened.log, {entry(2, 3, "x"), entry(2, 4, "y")});
  });
  EXPECT_EQ(to_text(look(disk).entries), "1:a/1 1:b/1 2:x/1 2:y/1 ");
  disk.run([](io::Env& env) {
    Opened opened = open(env);
    append(*opened.log, {entry(3, 2, "z")});
  });
  EXPECT_EQ(to_text(look(disk).entries), "1:a/1 3:z/1 ");
}

TEST(LogStore, RollsOverSegmentsAndTakesBatchesLargerThanOne) {
  DiskWorld disk(11);
  std::vector<Entry> all;
  disk.run([&](io::Env& env) {
    Opened opened = open(env);
    for (Index i = 1; i <= 40; ++i) {
      all.push_back(entry(i / 7, i, std::string(i % 11 == 0 ? 20'000 : i * 37 % 900, static_cast<char>('a' + i % 26))));
      append(*opened.log, {all.back()});
      if (i % 3 == 0) {
        ASSERT_TRUE(opened.log->prepare_segment().ok());
      }
    }
  });
  EXPECT_EQ(to_text(look(disk).entries), to_text(all));
  EXPECT_GT(disk.image().files.size(), 8u);
  // A cut that reaches back over several segments.
  disk.run([&](io::Env& env) {
    Opened opened = open(env);
    append(*opened.log, {entry(9, 5, "five")});
  });
  all.resize(4);
  all.push_back(entry(9, 5, "five"));
  EXPECT_EQ(to_text(look(disk).entries), to_text(all));
}

TEST(LogStore, WritesOneSyncABatch) {
  DiskWorld disk(12);
  disk.run([](io::Env& env) {
    Opened opened = open(env, LogSettings{});
    ASSERT_TRUE(opened.log->prepare_segment().ok());
    const uint64_t before = opened.log->syncs();
    for (Index i = 0; i < 10; ++i) {
      std::vector<Entry> batch;
      for (Index j = 1; j <= 64; ++j) batch.push_back(entry(1, i * 64 + j, std::string(300, 'x')));
      append(*opened.log, batch);
    }
    EXPECT_EQ(opened.log->syncs() - before, 10u);
  });
}

TEST(LogStore, ReadsAnyRangeBack) {
  DiskWorld disk(13);
  disk.run([](io::Env& env) {
    Opened opened = open(env);
    std::vector<Entry> all;
    for (Index i = 1; i <= 30; i += 3) {
      std::vector<Entry> batch;
      for (Index j = i; j < i + 3; ++j) batch.push_back(entry(1, j, std::to_string(j) + std::string(300, '.')));
      append(*opened.log, batch);
    }
    append(*opened.log, {entry(2, 20, "twenty"), entry(2, 21, "twenty-one")});
    EXPECT_EQ(opened.log->last_index(), 21u);
    for (Index first = 1; first <= 21; ++first) {
      for (Index last = first; last <= 21; ++last) {
        auto read = opened.log->read(first, last, 1 << 20);
        ASSERT_TRUE(read.ok());
        ASSERT_EQ(read->size(), last - first + 1);
        EXPECT_EQ(read->front().index, first);
        EXPECT_EQ(read->back().term, last >= 20 ? 2u : 1u);
      }
    }
    auto bounded = opened.log->read(1, 21, 500);
    ASSERT_TRUE(bounded.ok());
    EXPECT_EQ(bounded->size(), 1u);
  });
}

TEST(LogStore, FullDiskFailsTheAppendAndLeavesTheLogUsable) {
  DiskWorld disk(14);
  const uint64_t capacity = disk.volume().capacity();
  disk.run([&](io::Env& env) {
    Opened opened = open(env);
    append(*opened.log, {entry(1, 1, "a")});
    disk.volume().set_capacity(disk.volume().used());
    const std::vector<Entry> large{entry(1, 2, std::string(5000, 'x'))};
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(opened.log->append(large).is(io::ErrorKind::no_space));
    append(*opened.log, {entry(1, 2, "b")});  // fits what is there
    disk.volume().set_capacity(capacity);
    append(*opened.log, {entry(1, 3, std::string(5000, 'x'))});
  });
  EXPECT_EQ(to_text(look(disk).entries), "1:a/1 1:b/1 1:xxxxxxxxxxxx/5000 ");
}

// A start repeats the last batch, which may need a segment of its own: the log's own spares are room enough for it.
TEST(LogStore, AFullDiskDoesNotRefuseAStartThatItsOwnSparesHaveRoomFor) {
  DiskWorld disk(16);
  disk.run([&](io::Env& env) {
    Opened opened = open(env);
    for (Index i = 1; i <= 40; ++i) append(*opened.log, {entry(1, i, std::string(1000, 'x'))});
    ASSERT_TRUE(opened.log->compact(35).ok());
    opened.log.reset();
  });
  ASSERT_TRUE([&] {
    for (const std::string& path : disk.volume().tree().files()) {
      if (raft::log_format::is_spare(path)) return true;
    }
    return false;
  }());
  disk.volume().set_capacity(disk.volume().used());
  for (int lives = 0; lives < 3; ++lives) {
    const Opened found = look(disk);
    EXPECT_TRUE(found.status.ok()) << found.status.error().to_text();
    EXPECT_EQ(found.entries.back().index, 40u);
  }
}

// Scenarios PT-06 and PT-09.
TEST(LogStore, FailedSyncEndsTheStoreForGood) {
  DiskWorld disk(15);
  disk.run([&](io::Env& env) {
    Opened opened = open(env);
    append(*opened.log, {entry(1, 1, "a")});
    disk.volume().script({io::sim::FaultAction::error, io::sim::DiskOp::sync, "raft/log", 1});
    EXPECT_TRUE(opened.log->append(std::vector<Entry>{entry(1, 2, "b")}).is(io::ErrorKind::io));
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(opened.log->append(std::vector<Entry>{entry(1, 2, "b")}).ok());
    EXPECT_FALSE(opened.log->prepare_segment().ok());
  });
}

// Scenario PT-09, over a restart: what the next life finds in the page cache counts only once it is on the disk.
TEST(LogStore, EntriesFoundAfterAFailedSyncSurviveTheLossOfPower) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    DiskWorld disk(seed);
    const bool is_first_batch = seed % 3 == 0;
    disk.run([&](io::Env& env) {
      Opened opened = open(env);
      if (!is_first_batch) append(*opened.log, {entry(1, 1, "a")});
      if (!is_first_batch) append(*opened.log, {entry(1, 2, "b")});
      ASSERT_TRUE(opened.log->prepare_segment().ok());
      disk.volume().script({io::sim::FaultAction::error, io::sim::DiskOp::sync, "raft/log", 1});
      std::vector<Entry> batch{entry(1, is_first_batch ? 1 : 3, std::string(seed * 40, 'c'))};
      EXPECT_FALSE(opened.log->append(batch).ok());
    });
    const Opened found = look(disk);
    ASSERT_TRUE(found.status.ok()) << found.status.error().to_text();
    disk.machine.power_loss();
    const Opened again = look(disk);
    ASSERT_TRUE(again.status.ok()) << again.status.error().to_text();
    EXPECT_EQ(to_text(again.entries), to_text(found.entries));
  }
}

// A little history with rolls and cuts. Records in `done` what the log holds once each append has returned.
void history(io::Env& env, std::vector<Entry>& done, std::vector<Entry>& trying) {
  Opened opened = open(env);
  if (!opened.status.ok()) return;
  done = trying = opened.entries;
  const raft::Term before = done.empty() ? 0 : done.back().term;
  for (Index step = 1; step <= 12; ++step) {
    std::vector<Entry> batch;
    const Index first = step % 4 == 0 && done.size() > 2 ? done.size() - 1 : done.size() + 1;
    for (Index i = 0; i < step % 3 + 1; ++i) {
      batch.push_back(entry(before + step, first + i, std::string(step * 61 % 700, static_cast<char>('a' + step))));
    }
    trying = done;
    trying.resize(first - 1);
    trying.insert(trying.end(), batch.begin(), batch.end());
    if (!opened.log->append(batch).ok()) return;
    done = trying;
    if (step % 2 == 0 && !opened.log->prepare_segment().ok()) return;
  }
}

void sweep(io::sim::FaultAction action, bool is_twice) {
  bool has_struck = true;
  for (uint64_t nth = 1; has_struck; ++nth) {
    SCOPED_TRACE(nth);
    ASSERT_LT(nth, 400u);
    DiskWorld disk(nth + 1000);
    std::vector<Entry> done;
    std::vector<Entry> trying;
    disk.volume().script({action, std::nullopt, "raft/log", nth});
    const bool ended = disk.run([&](io::Env& env) { history(env, done, trying); });
    has_struck = disk.volume().scripted_left() == 0;
    EXPECT_EQ(ended, !has_struck);
    disk.volume().clear_scripted();
    if (is_twice) {
      // The life after it is struck too, while it opens.
      disk.volume().script({action, std::nullopt, "raft/log", nth % 7 + 1});
      look(disk);
      disk.volume().clear_scripted();
    }
    const Opened found = look(disk);
    ASSERT_TRUE(found.status.ok()) << found.status.error().to_text();
    const std::string text = to_text(found.entries);
    EXPECT_TRUE(text == to_text(done) || text == to_text(trying)) << text << "\n" << to_text(done) << "\n" << to_text(trying);
    disk.machine.power_loss();
    EXPECT_EQ(to_text(look(disk).entries), text);
    // And it goes on.
    disk.run([&](io::Env& env) { history(env, done, trying); });
    EXPECT_EQ(to_text(look(disk).entries), to_text(done));
  }
}

TEST(LogStore, SurvivesAKillAtEveryDiskOperation) { sweep(io::sim::FaultAction::kill, false); }
TEST(LogStore, SurvivesALossOfPowerAtEveryDiskOperation) { sweep(io::sim::FaultAction::power_loss, false); }
TEST(LogStore, SurvivesASecondKillWhileItOpens) { sweep(io::sim::FaultAction::kill, true); }
TEST(LogStore, SurvivesASecondLossOfPowerWhileItOpens) { sweep(io::sim::FaultAction::power_loss, true); }

}  // namespace
