#include "engine/metastore/frozen_database.h"

#include <rocksdb/env.h>

#include "engine/metastore/database.h"
#include "engine/metastore/database_options.h"

namespace engine::metastore {

io::Result<std::unique_ptr<FrozenDatabase>> FrozenDatabase::open(io::KvHost& kv, const std::string& directory) {
  const std::string path = kv.path(directory);
  if (!kv.env()->FileExists(path + "/CURRENT").ok()) {
    return io::fail(io::ErrorKind::corrupt, directory + ": there is no database, although ACTIVE names it");
  }
  rocksdb::DB* raw = nullptr;
  const rocksdb::Options options = database_options(kv.env(), false, block_cache(kBlockCacheBytesWhileFilled));
  const rocksdb::Status opened = rocksdb::DB::OpenForReadOnly(options, path, &raw);
  std::unique_ptr<rocksdb::DB> db(raw);
  if (!opened.ok()) {
    return database_error(opened, directory);
  }
  return std::unique_ptr<FrozenDatabase>(new FrozenDatabase(std::move(db), directory));
}

io::Result<FrozenDatabase::Rows> FrozenDatabase::rows_after(const std::string& after, size_t limit) const {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> rows(db_->NewIterator(options));
  Rows found;
  for (rows->Seek(after + '\0'); rows->Valid() && found.size() < limit; rows->Next()) {
    found.emplace_back(rows->key().ToString(), rows->value().ToString());
  }
  if (!rows->status().ok()) {
    return database_error(rows->status(), directory_);
  }
  return found;
}

}  // namespace engine::metastore
