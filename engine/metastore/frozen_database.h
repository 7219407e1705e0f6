// The live database of fsm.db, opened for reading alone: for tools that look at the directory of a node that does not run. Nothing
// in the directory changes; what stands in RocksDB's log is read too, without being recovered into tables.
//
// Plain blocking code, for the store lane.
#pragma once

#include <rocksdb/db.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/metastore/apply.h"
#include "io/kv_host.h"
#include "io/result.h"

namespace engine::metastore {

class FrozenDatabase {
 public:
  // `directory`: under the data directory ("fsm.db/000001"). Errors as Fsm::open; `corrupt` where there is no database.
  static io::Result<std::unique_ptr<FrozenDatabase>> open(io::KvHost& kv, const std::string& directory);

  // Up to `limit` rows whose keys are greater than `after`, in key order, fsm_meta's among them.
  using Rows = std::vector<std::pair<std::string, std::string>>;
  io::Result<Rows> rows_after(const std::string& after, size_t limit) const;

 private:
  FrozenDatabase(std::unique_ptr<rocksdb::DB> db, std::string directory)
      : db_(std::move(db)), directory_(std::move(directory)) {}

  std::unique_ptr<rocksdb::DB> db_;
  const std::string directory_;
};

}  // namespace engine::metastore
