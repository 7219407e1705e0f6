// Fills a new database with an image's rows, on the store lane. The rows come in key order, so they go into tables of their own
// (no memtable, no log, no compaction), each finished, synced and moved into the database before the next: what is in memory is one
// table's index and filter, whatever the size of the image.
//
// Left to others: the image's checks (image.h), the database's own row and its life (database.h), which database is the live one
// (active_file.h).
#pragma once

#include <rocksdb/options.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "io/kv_host.h"
#include "io/result.h"

namespace rocksdb {
class SstFileWriter;
}

namespace engine::metastore {

class Database;

// A table is finished once it holds this much, or this many rows (its filter costs memory by the row until then).
inline constexpr uint64_t kImageTableBytes = 16u << 20;
inline constexpr uint64_t kImageTableRows = 64u << 10;

class ImageInstaller {
 public:
  // `database` is open and empty. `is_checked` false (a defect: see io/defence.h): rows that have no place
  // are left out without a word.
  ImageInstaller(io::KvHost& kv, std::shared_ptr<Database> database, bool is_checked);
  ~ImageInstaller();
  ImageInstaller(const ImageInstaller&) = delete;
  ImageInstaller& operator=(const ImageInstaller&) = delete;

  // The rows of one block of the image (ImageReader::next_block).
  io::Status add(std::string_view block);
  // After the last block: all rows are in the database, and durable.
  io::Status finish();
  // Lets go of everything, wherever it stands.
  void give_up();

 private:
  io::Status begin_table();
  io::Status finish_table();

  io::KvHost& kv_;
  std::shared_ptr<Database> database_;
  const bool is_checked_;
  const rocksdb::Options options_;
  std::unique_ptr<rocksdb::SstFileWriter> table_;  // being filled
  std::string table_path_;
  uint64_t tables_ = 0;
  uint64_t rows_in_table_ = 0;
};

}  // namespace engine::metastore
