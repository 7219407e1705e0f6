// What RocksDB is opened with.

#include "engine/metastore/database_options.h"

#include <gtest/gtest.h>
#include <rocksdb/cache.h>

#include <cstdint>
#include <memory>
#include <string>

#include "io/random.h"

namespace {

constexpr size_t kBlock = 100'000;
constexpr size_t kBlocks = 12;
constexpr size_t kHeld = 10;

std::string key_of(uint64_t salt, size_t block) {
  std::string key;
  for (const uint64_t half : {io::mix(salt, block), io::mix(block, salt)}) {
    for (int byte = 0; byte < 8; ++byte) key.push_back(static_cast<char>(half >> (8 * byte) & 0xff));
  }
  return key;
}

// RocksDB draws a part of its keys from how many databases the process has opened; two runs of one seed in one process differed by it
// (seed 1150).
TEST(BlockCache, AFullCacheGivesUpTheOldestBlocksWhateverTheirKeysAre) {
  for (uint64_t salt = 1; salt <= 20; ++salt) {
    SCOPED_TRACE(salt);
    const std::shared_ptr<rocksdb::Cache> cache = engine::metastore::block_cache(kHeld * kBlock + kBlock / 2);
    int content = 0;
    for (size_t block = 0; block < kBlocks; ++block) {
      ASSERT_TRUE(cache->Insert(key_of(salt, block), &content, kBlock, [](const rocksdb::Slice&, void*) {}).ok());
    }
    for (size_t block = 0; block < kBlocks; ++block) {
      rocksdb::Cache::Handle* found = cache->Lookup(key_of(salt, block));
      EXPECT_EQ(found != nullptr, block >= kBlocks - kHeld) << block;
      if (found != nullptr) cache->Release(found);
    }
    EXPECT_EQ(cache->GetUsage(), kHeld * kBlock) << "a block counts as large as it is";
  }
}

}  // namespace
