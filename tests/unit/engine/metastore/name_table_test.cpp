#include "engine/metastore/name_table.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/metastore/record_cache.h"
#include "engine/metastore/row_cache.h"
#include "engine/metastore/transaction.h"
#include "io/random.h"

namespace engine::metastore {
namespace {

std::string name_of(uint64_t number) { return "orders-" + std::to_string(number); }

std::shared_ptr<const Topic> record(const std::string& name) {
  Topic topic;
  topic.name = name;
  return std::make_shared<const Topic>(std::move(topic));
}

TEST(NameTable, HoldsWhatAnOrderedMapWouldAndLeavesItWhereItIs) {
  io::RandomStream random(7);
  NameTable<uint64_t> table;
  std::map<std::string, uint64_t> expected;
  std::map<std::string, const void*> places;
  for (int step = 0; step < 20'000; ++step) {
    const std::string name = name_of(random.below(500));
    switch (random.below(5)) {
      case 0:
      case 1: {
        auto& node = table.add(name);
        EXPECT_EQ(node.value, expected.contains(name) ? expected[name] : 0) << "a new value where there was none";
        node.value = expected[name] = random.next();
        const auto [place, is_new] = places.emplace(name, &node);
        EXPECT_EQ(place->second, &node) << name;
        break;
      }
      case 2:
      case 3:
        EXPECT_EQ(table.erase(name), expected.erase(name) > 0);
        places.erase(name);
        break;
      default: {
        const auto* found = table.find(name);
        ASSERT_EQ(found != nullptr, expected.contains(name)) << name;
        if (found != nullptr) {
          EXPECT_EQ(found->value, expected[name]);
          EXPECT_EQ(found->name, name);
        }
      }
    }
    ASSERT_EQ(table.size(), expected.size());
  }
}

TEST(NameTable, EraseIfAsksOnceOfEachAndTheRestIsStillFound) {
  NameTable<uint64_t> table;
  for (uint64_t i = 0; i < 3000; ++i) table.add(name_of(i)).value = i;
  uint64_t asked = 0;
  table.erase_if([&](const auto& node) {
    ++asked;
    return node.value % 3 != 0;
  });
  EXPECT_EQ(asked, 3000u);
  EXPECT_EQ(table.size(), 1000u);
  for (uint64_t i = 0; i < 3000; ++i) {
    const auto* found = table.find(name_of(i));
    ASSERT_EQ(found != nullptr, i % 3 == 0) << i;
  }
  table.clear();
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.find(name_of(0)), nullptr);
  EXPECT_EQ(table.add(name_of(0)).value, 0u);
}

TEST(NameTable, NamesThatDifferInTheirPaddingOnlyAreDifferent) {
  NameTable<int> table;
  table.add("a").value = 1;
  table.add(std::string_view("a\0", 2)).value = 2;
  table.add("").value = 3;
  EXPECT_EQ(table.find("a")->value, 1);
  EXPECT_EQ(table.find(std::string_view("a\0", 2))->value, 2);
  EXPECT_EQ(table.find("")->value, 3);
}

TEST(RecordCache, TheLeastRecentlyUsedRecordMakesRoom) {
  RecordCache cache(3);
  for (const char* name : {"a", "b", "c"}) cache.insert(record(name));
  EXPECT_NE(cache.find("a"), nullptr);
  cache.insert(record("d"));
  EXPECT_EQ(cache.find("b"), nullptr) << "it was used least recently";
  EXPECT_NE(cache.find("a"), nullptr);
  EXPECT_NE(cache.find("c"), nullptr);
  EXPECT_NE(cache.find("d"), nullptr);
  EXPECT_EQ(cache.size(), 3u);
}

TEST(RecordCache, AnInsertReplacesAndADropLeavesTheOthers) {
  RecordCache cache(3);
  for (const char* name : {"a", "b", "c"}) cache.insert(record(name));
  const auto newer = record("b");
  cache.insert(newer);
  EXPECT_EQ(cache.find("b"), newer);
  EXPECT_EQ(cache.size(), 3u);
  cache.drop("b");
  cache.drop("absent");
  EXPECT_EQ(cache.find("b"), nullptr);
  cache.drop("c");
  cache.drop("a");
  EXPECT_EQ(cache.size(), 0u);
  for (const char* name : {"d", "e", "f", "g"}) cache.insert(record(name));
  EXPECT_EQ(cache.find("d"), nullptr);
  EXPECT_NE(cache.find("g"), nullptr);
  cache.clear();
  EXPECT_EQ(cache.find("g"), nullptr);
}

// Counts what it is asked.
class CountingRows final : public RowSource {
 public:
  std::optional<std::string> read(const std::string& row_key) override {
    ++reads;
    return rows.read(row_key);
  }
  MemoryRows rows;
  int reads = 0;
};

TEST(RowCache, RowsOfAWrittenBatchAreNotAskedOfTheSourceAgain) {
  CountingRows source;
  RowCache cache;
  {
    WriteSet batch(source, 0, &cache);
    EXPECT_EQ(batch.get(Bucket::topics, "absent"), std::nullopt);
    batch.put(Bucket::topics, "a", "one");
    batch.put(Bucket::topics, "gone", "one");
    batch.keep_entry();
    batch.put(Bucket::topics, "refused", "one");
    batch.drop_entry();
    batch.erase(Bucket::topics, "gone");
    batch.keep_entry();
    source.rows.take(batch);
    batch.settle();
  }
  const int reads = source.reads;
  WriteSet next(source, source.rows.digest(), &cache);
  EXPECT_EQ(next.get(Bucket::topics, "a"), "one");
  for (const char* name : {"absent", "gone", "refused"}) EXPECT_EQ(next.get(Bucket::topics, name), std::nullopt) << name;
  EXPECT_EQ(source.reads, reads);
  EXPECT_FALSE(next.has_changes());
  next.erase(Bucket::topics, "gone");
  next.erase(Bucket::topics, "a");
  next.keep_entry();
  source.rows.take(next);
  EXPECT_TRUE(source.rows.rows().empty()) << "an erased row that the batch before had written";
}

TEST(RowCache, AClearedCacheAsksTheSource) {
  CountingRows source;
  RowCache cache;
  WriteSet failed(source, 0, &cache);
  failed.put(Bucket::topics, "a", "never written");
  failed.keep_entry();
  failed.settle();
  cache.clear();
  WriteSet next(source, 0, &cache);
  EXPECT_EQ(next.get(Bucket::topics, "a"), std::nullopt);
}

TEST(RowCache, WhatIsNotAskedForGoesAndTheRestStays) {
  CountingRows source;
  RowCache cache;
  uint64_t digest = 0;
  const int batches = 40;
  for (int batch = 0; batch < batches; ++batch) {
    WriteSet set(source, digest, &cache);
    for (uint64_t i = 0; i < 1000; ++i) set.put(Bucket::topics, name_of(batch * 1000 + i), std::string(100, 'x'));
    set.put(Bucket::counters, "all", std::to_string(batch));
    set.keep_entry();
    source.rows.take(set);
    digest = set.digest();
    set.settle();
  }
  source.reads = 0;
  WriteSet last(source, digest, &cache);
  EXPECT_EQ(last.get(Bucket::counters, "all"), std::to_string(batches - 1));
  EXPECT_EQ(last.get(Bucket::topics, name_of(1000 * (batches - 1))), std::string(100, 'x'));
  EXPECT_EQ(source.reads, 0);
  EXPECT_EQ(last.get(Bucket::topics, name_of(0)), std::string(100, 'x'));
  EXPECT_EQ(source.reads, 1) << "a generation that was not asked for has gone";
}

}  // namespace
}  // namespace engine::metastore
