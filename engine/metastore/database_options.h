// How fsm.db's database is opened, in production and in the simulator alike.
//
// The choices that matter, and why (design/feasibility.md sections 1, 3 and 4):
//  - one file opener, no subcompactions, no statistics dumps, no resume, our own silent info log: nothing runs by itself, so two
//    runs of one seed do the same;
//  - a memtable far larger than what we let it grow to: flushes come from bytes that we count, never from RocksDB's memory use;
//  - no stalls: a write that would wait for a background job fails with Incomplete instead (waiting would hang where the jobs are
//    pumped), and triggers are so high that it does not come to that;
//  - recovery stops at the first torn record of RocksDB's log and flushes what it found;
//  - tables' filters and indexes live in the block cache, so memory stays bounded: the block cache and the memtable. Blocks are
//    large enough that the index of 1 GiB is a few MiB.
#pragma once

#include <rocksdb/cache.h>
#include <rocksdb/options.h>

#include <cstdint>
#include <memory>

namespace engine::metastore {

inline constexpr size_t kBlockCacheBytes = 16u << 20;
// Of a database that an image is being put into: a second cache of the full size would be there for a moment only.
inline constexpr size_t kBlockCacheBytesWhileFilled = 1u << 20;
inline constexpr size_t kMemtableBytesMax = 256u << 20;

std::shared_ptr<rocksdb::Cache> block_cache(size_t bytes);

// For an existing database, or with `create` for a new one.
rocksdb::Options database_options(rocksdb::Env* env, bool create, std::shared_ptr<rocksdb::Cache> cache);

// What every write uses: RocksDB's log, no sync, no waiting.
rocksdb::WriteOptions write_options();

}  // namespace engine::metastore
