#include "engine/metastore/image_installer.h"

#include <rocksdb/env.h>
#include <rocksdb/sst_file_writer.h>

#include <utility>

#include "engine/metastore/database.h"
#include "engine/metastore/database_options.h"
#include "engine/metastore/image.h"
#include "io/check.h"

namespace engine::metastore {

namespace {

// Written back while the table is filled, each step waiting for the one before: so neither a step nor the sync at the end is long.
constexpr uint64_t kWriteBackBytes = 1u << 20;

rocksdb::EnvOptions env_options(const rocksdb::Options& options) {
  rocksdb::EnvOptions result(options);
  result.bytes_per_sync = kWriteBackBytes;
  result.strict_bytes_per_sync = true;
  return result;
}

}  // namespace

ImageInstaller::ImageInstaller(io::KvHost& kv, std::shared_ptr<Database> database, bool is_checked)
    : kv_(kv), database_(std::move(database)), is_checked_(is_checked), options_(database_options(kv.env(), false, block_cache(0))) {}

ImageInstaller::~ImageInstaller() = default;

void ImageInstaller::give_up() {
  table_.reset();
  database_.reset();
}

io::Status ImageInstaller::begin_table() {
  // A name that RocksDB takes for none of its own.
  table_path_ = kv_.path(database_->directory()) + "/image-" + std::to_string(++tables_) + ".table";
  // Its pages stay cached: they are read again at once, to check what has become of the image.
  constexpr bool kInvalidatePageCache = false;
  table_ = std::make_unique<rocksdb::SstFileWriter>(env_options(options_), options_, nullptr, kInvalidatePageCache);
  rows_in_table_ = 0;
  rocksdb::Status opened = table_->Open(table_path_);
  return opened.ok() ? io::Status() : io::Status(database_error(opened, database_->directory()));
}

io::Status ImageInstaller::finish_table() {
  rocksdb::ExternalSstFileInfo table;
  rocksdb::Status finished = table_->Finish(&table);
  table_.reset();
  if (!finished.ok()) {
    return database_error(finished, database_->directory());
  }
  return database_->ingest(table);
}

io::Status ImageInstaller::add(std::string_view block) {
  ImageRows rows(block);
  while (rows.next()) {
    if (table_ == nullptr) {
      if (io::Status begun = begin_table(); !begun.ok()) {
        return begun;
      }
    }
    rocksdb::Status put = table_->Put(rocksdb::Slice(rows.key), rocksdb::Slice(rows.value));
    if (put.ok()) {
      ++rows_in_table_;
    } else if (is_checked_ || !put.IsInvalidArgument()) {
      return database_error(put, database_->directory());
    }
  }
  NARAD_CHECK(!rows.is_damaged || !is_checked_, "a block that was not checked");
  if (table_ != nullptr && (table_->FileSize() >= kImageTableBytes || rows_in_table_ >= kImageTableRows)) {
    return finish_table();
  }
  return {};
}

io::Status ImageInstaller::finish() {
  if (table_ == nullptr) {
    return {};
  }
  if (rows_in_table_ == 0) {  // only of what could not be checked: RocksDB refuses a table without rows
    table_.reset();
    return {};
  }
  return finish_table();
}

}  // namespace engine::metastore
