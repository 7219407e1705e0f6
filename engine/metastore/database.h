// One database of fsm.db, as the store lane uses it: opened, written batch by batch, read, flushed, its image taken, filled from an
// image, closed. Plain blocking code without fibers; everything here but View::find_cached is for the lane alone.
//
// A failed write leaves an outcome that only a reopened database tells: after one, reopen() before anything else. What RocksDB
// reports of failed background flushes comes with the next write, or with check_background().
#pragma once

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/write_batch.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/metastore/apply.h"
#include "engine/metastore/fsm_meta.h"
#include "engine/metastore/image_writer.h"
#include "engine/metastore/row_cache.h"
#include "engine/metastore/transaction.h"
#include "io/kv_host.h"
#include "io/result.h"
#include "raft/types.h"

namespace engine::metastore {

io::Error database_error(const rocksdb::Status& status, std::string_view what);
// Whether an error that database_error() made is that of a failed sync (and not of a full disk): what was written before may be lost, and
// trying again says nothing about it.
bool is_failed_sync(const io::Error& error);

// What RocksDB itself counts of its memory, bytes.
struct StoreMemory {
  uint64_t block_cache = 0;    // blocks of rows, and the tables' indexes and filters
  uint64_t table_readers = 0;  // what open tables hold outside the cache
  uint64_t memtables = 0;      // the active one and those that are being flushed
  uint64_t total() const { return block_cache + table_readers + memtables; }
};

// The database at the end of one batch. Holds back nothing but a snapshot; must be gone before the database is closed.
class View {
 public:
  explicit View(std::shared_ptr<rocksdb::DB> db) : db_(std::move(db)), snapshot_(db_->GetSnapshot()) {}
  ~View() { db_->ReleaseSnapshot(snapshot_); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  enum class Found { present, absent, not_cached, failed };
  // Answers from memory alone, without any file operation: this one may be called on the loop.
  Found find_cached(const std::string& row_key, std::string& value) const;

  // The rest may read files: on the lane only. Each says how it ended beside what it found.
  struct Lookup {
    io::Status status;
    std::optional<std::string> value;  // nullopt: no such row
  };
  Lookup find(const std::string& row_key) const;
  struct Rows {
    io::Status status;
    std::vector<std::pair<std::string, std::string>> rows;
  };
  // Up to `limit` rows with begin <= key < end, in key order.
  Rows scan(const std::string& begin, const std::string& end, size_t limit) const;
  // Sum of the hashes of all rows but fsm_meta's.
  struct Sum {
    io::Status status;
    uint64_t digest = 0;
  };
  Sum digest() const;
  // Over all rows, beside the cache. Must be gone before the view.
  std::unique_ptr<rocksdb::Iterator> iterate() const;

 private:
  rocksdb::ReadOptions read_options() const;

  std::shared_ptr<rocksdb::DB> db_;
  const rocksdb::Snapshot* snapshot_;
};

// What became of a batch of entries.
struct BatchOutcome {
  enum class Kind {
    written,        // every entry up to `unknown`, or all
    stalled,        // nothing was written: RocksDB asks to wait
    write_failed,   // unknown: reopen
    sync_failed,    // never to be retried
    read_failed,    // nothing was written
  };
  Kind kind = Kind::written;
  std::optional<io::Error> error;  // of what was not written

  FsmState state;  // after the batch
  std::vector<std::string> answers;
  std::vector<std::vector<Bump>> bumps;
  std::vector<Undecodable> undecodable;
  std::optional<UnknownEntry> unknown;
  std::shared_ptr<const View> view;
  uint64_t fsm_bytes = 0;
  raft::Index durable_index = 0;
};

class Database {
 public:
  struct Settings {
    uint32_t newest_type = 0;
    uint64_t flush_bytes = 0;
    std::string build;
    size_t block_cache_bytes = 0;
    bool may_create = true;   // where there is no database; else that is `corrupt`
    bool skips_unknown = false;  // an older release's way: an entry type it does not know is passed over
    bool writes_meta = true;     // false: an older release's way: the row that says how far it is stays as it is
    raft::StoreId store;      // of the data directory, for that row
    raft::ClusterId cluster;  // zero: not known yet
  };
  // What opening is for.
  enum class As {
    held,      // its index counts: the row's mark must be that of what is found, else `corrupt`
    replaced,  // an image is to take its place: its index counts for nothing, and it is left as untrusted as it was
  };
  // `directory`: under the data directory, without a trailing '/'. `kv` outlives the database.
  Database(io::KvHost& kv, std::string directory, Settings settings);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Opens the database, or makes it where there is none. Whether it may be opened at all look() tells. Errors as Fsm::open.
  io::Status open(As as = As::held);
  void close();
  bool is_open() const { return db_ != nullptr; }
  const std::string& directory() const { return directory_; }

  const FsmState& state() const { return state_; }
  std::shared_ptr<const View> view() const { return std::make_shared<const View>(db_); }
  uint64_t fsm_bytes() const;
  StoreMemory memory() const;
  // Of the open database, from now on; while nothing opens it.
  void set_block_cache_bytes(size_t bytes);

  // Declares the rows, whoever wrote them, to be the effects of everything up to `index`: sums their hashes and writes that, durably.
  io::Status rebase(raft::Index index, raft::Term term);
  // For a release that does not write the row: after reopening, goes on as that one of the states, tried in order, whose rows are the ones
  // that were found. `corrupt` when none is.
  io::Status recall(const std::vector<FsmState>& states);
  // From now on the row names this cluster.
  void set_cluster(const raft::ClusterId& cluster) { settings_.cluster = cluster; }

  // Evaluates the entries and writes effects and state as one batch.
  BatchOutcome apply(const std::vector<raft::Entry>& entries);

  // The two halves of a batch whose index is written apart from its effects (a defect: see io/defence.h). begin_apart writes
  // the index; unless that fails, finish_apart must follow and writes the effects.
  BatchOutcome begin_apart(const std::vector<raft::Entry>& entries);
  BatchOutcome finish_apart();

  // Whether RocksDB's background has failed since the last call, so that it takes no writes any more: then as a failed write. Else
  // `written`, and without a view where there is nothing new. Short; to be asked now and then.
  BatchOutcome check_background();

  // ---- What a power loss leaves --------------------------------------------------------------------------------------------
  // The index up to which everything is in synced tables: all of it when the database was opened, then the index at which the last
  // finished flush began.
  raft::Index durable_index() const { return durable_index_; }
  struct FlushStep {
    io::Status status;
    raft::Index durable_index = 0;
  };
  // Looks how far a flush has come and begins one when `index` needs it. To be called again, after a while, until durable_index
  // is at least `index` or it fails. Runs in RocksDB's background: this call is short.
  FlushStep flush_towards(raft::Index index);

  // ---- Images --------------------------------------------------------------------------------------------------------------
  // Begins an image of `view`, whose rows come to `state`; one at a time. close() gives it up.
  void begin_image(std::shared_ptr<const View> view, const FsmState& state);
  // Its next piece; `busy` when the database was closed meanwhile.
  ImageWriter::Piece next_image_piece();
  void end_image() { image_.reset(); }

  // Moves a finished table of rows that this database does not hold into it, durably. `table` names its path and the first and last
  // key in it.
  io::Status ingest(const rocksdb::ExternalSstFileInfo& table);
  // Writes the state that the ingested rows come to, durably.
  io::Status adopt(const FsmState& state);

  // What the database in `directory` holds, and whether its index is that of its content; without changing a byte.
  static io::Result<FsmHeld> look(io::KvHost& kv, const std::string& directory);

 private:
  struct Prepared;

  io::Status begin_life(As as);
  // The row after a batch of `operations` that this one ends.
  std::string meta_row(const FsmState& state, size_t operations) const;
  void put_meta(rocksdb::WriteBatch& batch, const FsmState& state) const;
  io::Status write_durably(const FsmState& state);
  bool prepare(const std::vector<raft::Entry>& entries, Prepared& prepared);
  // False when it failed, with the outcome's kind and error set.
  bool write(rocksdb::WriteBatch& batch, BatchOutcome& outcome);
  void finish(BatchOutcome& outcome);
  void flush_when_due();
  void begin_flush();
  bool is_flushing() const;
  uint64_t background_errors() const;
  void note_flush();

  io::KvHost& kv_;
  const std::string directory_;
  Settings settings_;
  size_t block_cache_bytes_;
  std::shared_ptr<rocksdb::Cache> cache_;
  std::shared_ptr<rocksdb::DB> db_;
  FsmState state_;
  RowCache rows_;  // of db_
  uint64_t manifest_ = 0;  // of this life
  uint64_t unflushed_bytes_ = 0;
  raft::Index durable_index_ = 0;
  raft::Index flushing_to_ = 0;        // what the flush under way will have made durable; 0: none, or it has failed
  uint64_t errors_before_flush_ = 0;
  uint64_t errors_seen_ = 0;           // of the background, in this opening
  bool is_flush_refused_ = false;      // one that could not even begin, since check_background()
  std::unique_ptr<ImageWriter> image_;
  std::unique_ptr<Prepared> apart_;
};

}  // namespace engine::metastore
