#include "engine/metastore/database_options.h"

#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/memory_allocator.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>

#include <limits>
#include <new>
#include <string_view>
#include <utility>

namespace engine::metastore {

namespace {

class SilentLogger final : public rocksdb::Logger {
 public:
  SilentLogger() : Logger(rocksdb::InfoLogLevel::FATAL_LEVEL) {}
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

// RocksDB would start a thread that resumes by itself once it finds room on the disk. We close and reopen instead.
class NoRecoveryByItself final : public rocksdb::EventListener {
 public:
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status, bool* auto_recovery) override {
    *auto_recovery = false;
  }
};

// A batch's rows go into the memtable in key order, bucket by bucket: each is looked for from where the one before it went.
class BucketOfKey final : public rocksdb::SliceTransform {
 public:
  const char* Name() const override { return "narad.bucket"; }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override { return {key.data(), key.ToStringView().find('/') + 1}; }
  bool InDomain(const rocksdb::Slice& key) const override { return key.ToStringView().find('/') != std::string_view::npos; }
};

class ExactMemory final : public rocksdb::MemoryAllocator {
 public:
  const char* Name() const override { return "narad.exact"; }
  void* Allocate(size_t bytes) override { return ::operator new(bytes); }
  void Deallocate(void* memory) override { ::operator delete(memory); }
  size_t UsableSize(void*, size_t bytes) const override { return bytes; }
};

constexpr size_t kBlockBytes = 16u << 10;

rocksdb::BlockBasedTableOptions table_options(std::shared_ptr<rocksdb::Cache> cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = std::move(cache);
  table.block_size = kBlockBytes;
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  constexpr double kFilterBitsPerKey = 10;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kFilterBitsPerKey));
  return table;
}

}  // namespace

// One shard: which of several a block falls into follows from how many databases this process has opened, and with it what a full
// cache gives up. Blocks count as large as they are, whatever the heap made of it, for the same reason.
std::shared_ptr<rocksdb::Cache> block_cache(size_t bytes) {
  rocksdb::LRUCacheOptions options;
  options.capacity = bytes;
  options.num_shard_bits = 0;
  options.metadata_charge_policy = rocksdb::kDontChargeCacheMetadata;
  options.memory_allocator = std::make_shared<ExactMemory>();
  return rocksdb::NewLRUCache(options);
}

rocksdb::Options database_options(rocksdb::Env* env, bool create, std::shared_ptr<rocksdb::Cache> cache) {
  rocksdb::Options options;
  options.env = env;
  options.create_if_missing = create;
  options.error_if_exists = false;
  options.paranoid_checks = true;
  options.info_log = std::make_shared<SilentLogger>();
  options.db_host_id = "narad";
  options.fail_if_options_file_error = false;

  options.max_file_opening_threads = 1;
  options.max_subcompactions = 1;
  options.max_background_jobs = 2;
  options.max_bgerror_resume_count = 0;
  options.listeners.push_back(std::make_shared<NoRecoveryByItself>());
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.skip_stats_update_on_db_open = true;
  options.max_manifest_file_size = std::numeric_limits<uint64_t>::max();  // one a life: fsm_meta.h

  options.write_buffer_size = kMemtableBytesMax;
  // Most of what entries ask for and no batch before has asked is not there: a filter says so without a search. Some ten bits a
  // row of a memtable as large as we let it grow.
  constexpr size_t kMemtableFilterBytes = 64u << 10;
  options.memtable_prefix_bloom_size_ratio = static_cast<double>(kMemtableFilterBytes) / kMemtableBytesMax;
  options.memtable_whole_key_filtering = true;
  options.memtable_insert_with_hint_prefix_extractor = std::make_shared<const BucketOfKey>();
  options.arena_block_size = 64u << 10;
  options.max_write_buffer_number = 16;
  options.level0_file_num_compaction_trigger = 4;
  options.level0_slowdown_writes_trigger = 1 << 20;
  options.level0_stop_writes_trigger = 1 << 20;
  options.soft_pending_compaction_bytes_limit = 0;
  options.hard_pending_compaction_bytes_limit = 0;
  options.target_file_size_base = 16u << 20;
  options.compression = rocksdb::kNoCompression;

  options.enable_pipelined_write = false;
  options.allow_concurrent_memtable_write = false;
  options.atomic_flush = true;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.avoid_flush_during_recovery = false;
  options.manual_wal_flush = false;

  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table_options(std::move(cache))));
  return options;
}

rocksdb::WriteOptions write_options() {
  rocksdb::WriteOptions options;
  options.sync = false;
  options.disableWAL = false;
  options.no_slowdown = true;
  return options;
}

}  // namespace engine::metastore
