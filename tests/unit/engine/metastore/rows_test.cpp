#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "engine/metastore/domain_versions.h"
#include "engine/metastore/record_cache.h"
#include "engine/metastore/transaction.h"
#include "tests/support/topics.h"

namespace {

using namespace engine::metastore;

TEST(WriteSet, AnEntrySeesItsOwnWritesAndADroppedOneLeavesNothing) {
  MemoryRows rows;
  WriteSet set(rows, 0);
  set.put(Bucket::topics, "a", "1");
  EXPECT_EQ(set.get(Bucket::topics, "a"), "1");
  set.erase(Bucket::topics, "a");
  EXPECT_EQ(set.get(Bucket::topics, "a"), std::nullopt);
  set.put(Bucket::topics, "a", "2");
  set.drop_entry();
  EXPECT_EQ(set.get(Bucket::topics, "a"), std::nullopt);
  EXPECT_FALSE(set.has_changes());
  EXPECT_EQ(set.digest(), 0u);
}

TEST(WriteSet, ALaterEntrySeesWhatEarlierOnesKept) {
  MemoryRows rows;
  WriteSet set(rows, 0);
  set.put(Bucket::topics, "a", "1");
  set.keep_entry();
  EXPECT_EQ(set.get(Bucket::topics, "a"), "1");
  set.erase(Bucket::topics, "a");
  set.keep_entry();
  EXPECT_EQ(set.get(Bucket::topics, "a"), std::nullopt);
  EXPECT_EQ(set.digest(), 0u) << "rows that came and went leave no trace";
  EXPECT_FALSE(set.has_changes());
}

TEST(WriteSet, TheDigestIsTheSumOverTheRowsHoweverTheyCameAbout) {
  MemoryRows one;
  WriteSet first(one, 0);
  first.put(Bucket::topics, "a", "1");
  first.put(Bucket::topics, "b", "2");
  first.keep_entry();
  one.take(first);
  WriteSet second(one, one.digest());
  second.put(Bucket::topics, "a", "3");
  second.keep_entry();
  one.take(second);

  MemoryRows other;
  WriteSet set(other, 0);
  set.put(Bucket::topics, "b", "2");
  set.put(Bucket::topics, "a", "3");
  set.keep_entry();
  other.take(set);
  EXPECT_EQ(one.digest(), other.digest());
  EXPECT_EQ(one.digest(), row_hash("topics/a", "3") + row_hash("topics/b", "2"));
}

TEST(WriteSet, RowHashesTellKeysAndValuesApart) {
  EXPECT_NE(row_hash("a", "bc"), row_hash("ab", "c"));
  EXPECT_NE(row_hash("a", std::string("b\0", 2)), row_hash("a", "b"));
  EXPECT_NE(row_hash("a", ""), row_hash("", "a"));
}

TEST(Buckets, NoTwoShareAKeyAndEachEndsBeforeTheNext) {
  EXPECT_EQ(row_key(Bucket::topics, "a/b"), "topics/a/b");
  EXPECT_LT(row_key(Bucket::topics, "\xff\xff"), end_of(Bucket::topics));
  EXPECT_LT(end_of(Bucket::topic_names), row_key(Bucket::topics, ""));
}

TEST(DomainVersions, OnlyWhatChangedMoves) {
  DomainVersions versions;
  uint64_t a = versions.keyed(Domain::topics, "a");
  uint64_t b = versions.keyed(Domain::topics, "b");
  uint64_t schema = versions.keyed(Domain::schemas, "a");
  versions.apply({{Domain::topics, "a", false}});
  EXPECT_GT(versions.keyed(Domain::topics, "a"), a);
  EXPECT_EQ(versions.keyed(Domain::topics, "b"), b);
  EXPECT_EQ(versions.keyed(Domain::schemas, "a"), schema);
  EXPECT_EQ(versions.latest(Domain::topics), versions.keyed(Domain::topics, "a"));
  EXPECT_EQ(versions.metadata(), 1u);
  versions.apply({{Domain::users, "", false}});
  EXPECT_GT(versions.latest(Domain::users), versions.latest(Domain::topics));
}

TEST(DomainVersions, RetiredNamesDoNotStayForEverAndStillReadAsNewer) {
  DomainVersions versions;
  versions.apply({{Domain::topics, "kept", false}});
  uint64_t kept = versions.keyed(Domain::topics, "kept");
  std::vector<uint64_t> seen;
  for (size_t i = 0; i < 3 * kRetiredMax; ++i) {
    std::string name = "t" + std::to_string(i);
    versions.apply({{Domain::topics, name, false}});
    seen.push_back(versions.keyed(Domain::topics, name));
    versions.apply({{Domain::topics, name, true}});
    EXPECT_GT(versions.keyed(Domain::topics, name), seen.back());
    EXPECT_LE(versions.cells(), kRetiredMax + 2);
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    EXPECT_GT(versions.keyed(Domain::topics, "t" + std::to_string(i)), seen[i]);
  }
  EXPECT_EQ(versions.keyed(Domain::topics, "kept"), kept);
}

TEST(DomainVersions, CellsStayBoundedHoweverManyNamesThereAreAndAllStillReadAsNewer) {
  DomainVersions versions;
  std::vector<uint64_t> seen;
  std::optional<VersionCell> watched;
  for (size_t i = 0; i < 2 * kCellsMax + 10; ++i) {
    const std::string name = "t" + std::to_string(i);
    versions.apply({{Domain::topics, name, false}});
    if (i == 5) watched = versions.watch(Domain::topics, name);
    seen.push_back(versions.keyed(Domain::topics, name));
    ASSERT_LE(versions.cells(), kCellsMax);
  }
  EXPECT_GT(watched->value(), seen[5]) << "what was read under it is read again: no later change would reach this cell";
  EXPECT_EQ(versions.watch(Domain::topics, "t5").value(), versions.keyed(Domain::topics, "t5"));
  for (size_t i = 0; i < seen.size(); ++i) ASSERT_GE(versions.keyed(Domain::topics, "t" + std::to_string(i)), seen[i]);
  EXPECT_GT(versions.keyed(Domain::topics, "t0"), seen[0]);
}

TEST(DomainVersions, ANameThatComesBackIsNotRetired) {
  DomainVersions versions;
  versions.apply({{Domain::topics, "a", true}});
  versions.apply({{Domain::topics, "a", false}});
  uint64_t version = versions.keyed(Domain::topics, "a");
  for (size_t i = 0; i < 2 * kRetiredMax; ++i) {
    versions.apply({{Domain::topics, "t" + std::to_string(i), true}});
  }
  EXPECT_EQ(versions.keyed(Domain::topics, "a"), version);
}

TEST(DomainVersions, AWatchedCellMovesWithItsNameAlone) {
  DomainVersions versions;
  VersionCell a = versions.watch(Domain::topics, "a");
  VersionCell schema = versions.watch(Domain::schemas, "a");
  const uint64_t seen = a.value();
  const uint64_t seen_schema = schema.value();
  EXPECT_EQ(seen, versions.keyed(Domain::topics, "a"));
  versions.apply({{Domain::topics, "b", false}});
  EXPECT_EQ(a.value(), seen);
  versions.apply({{Domain::topics, "a", false}});
  EXPECT_GT(a.value(), seen);
  EXPECT_EQ(a.value(), versions.keyed(Domain::topics, "a"));
  EXPECT_EQ(schema.value(), seen_schema);
}

TEST(DomainVersions, AWatcherSeesThatItsNameWasDropped) {
  DomainVersions versions;
  versions.apply({{Domain::topics, "a", true}});
  VersionCell retired = versions.watch(Domain::topics, "a");
  VersionCell live = versions.watch(Domain::topics, "live");
  const uint64_t seen = retired.value();
  const uint64_t seen_live = live.value();
  for (size_t i = 0; i < kRetiredMax; ++i) {
    EXPECT_EQ(retired.value(), seen) << "not dropped before there are more than " << kRetiredMax;
    versions.apply({{Domain::topics, "t" + std::to_string(i), true}});
  }
  EXPECT_GT(retired.value(), seen);
  EXPECT_EQ(live.value(), seen_live);
  EXPECT_EQ(versions.cells(), 1u);
  versions.raise_all();
  EXPECT_GT(live.value(), seen_live);
  EXPECT_EQ(versions.cells(), 0u);
}

TEST(DomainVersions, RaiseAllMovesEverything) {
  DomainVersions versions;
  versions.apply({{Domain::topics, "a", false}});
  uint64_t a = versions.keyed(Domain::topics, "a");
  uint64_t b = versions.keyed(Domain::schemas, "b");
  versions.raise_all();
  EXPECT_GT(versions.keyed(Domain::topics, "a"), a);
  EXPECT_GT(versions.keyed(Domain::schemas, "b"), b);
}

TEST(RecordCache, HoldsNoMoreThanItsBoundAndLetsTheLeastUsedGo) {
  RecordCache cache(2);
  auto record = [](std::string name) { return std::make_shared<const Topic>(tests::make_topic(std::move(name))); };
  cache.insert(record("a"));
  cache.insert(record("b"));
  EXPECT_NE(cache.find("a"), nullptr);
  cache.insert(record("c"));
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(cache.find("b"), nullptr);
  EXPECT_NE(cache.find("a"), nullptr);
  cache.insert(record("a"));
  EXPECT_EQ(cache.size(), 2u);
  cache.drop("a");
  EXPECT_EQ(cache.find("a"), nullptr);
}

}  // namespace
