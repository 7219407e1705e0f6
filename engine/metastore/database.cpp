#include "engine/metastore/database.h"

#include <rocksdb/env.h>
#include <rocksdb/options.h>
#include <rocksdb/perf_level.h>

#include <algorithm>

#include "engine/metastore/database_options.h"
#include "engine/metastore/image.h"
#include "io/check.h"
#include "io/defence.h"
#include "io/probe.h"

namespace engine::metastore {

namespace {

// The rows of an open database; remembers a failed read.
class DatabaseRows final : public RowSource {
 public:
  explicit DatabaseRows(rocksdb::DB& db) : db_(db) {}

  std::optional<std::string> read(const std::string& row_key) override {
    std::string value;
    rocksdb::Status status = db_.Get(rocksdb::ReadOptions(), row_key, &value);
    if (status.ok()) {
      return value;
    }
    if (!status.IsNotFound() && failure_.ok()) {
      failure_ = status;
    }
    return std::nullopt;
  }

  const rocksdb::Status& failure() const { return failure_; }

 private:
  rocksdb::DB& db_;
  rocksdb::Status failure_;
};

// The rows of a larger batch, of long schemas for instance, are not kept for the next ones.
constexpr size_t kKeptBatchBytesMax = 4u << 20;

bool is_there(io::KvHost& kv, const std::string& path) { return kv.env()->FileExists(path + "/CURRENT").ok(); }

// Zero, without marks, where there is none.
io::Result<std::optional<FsmMeta>> read_meta(rocksdb::DB& db, const std::string& directory) {
  std::string bytes;
  rocksdb::Status status = db.Get(rocksdb::ReadOptions(), meta_row_key(), &bytes);
  if (status.IsNotFound()) {
    return std::optional<FsmMeta>();
  }
  if (!status.ok()) {
    return database_error(status, directory);
  }
  std::optional<FsmMeta> stored = decode_meta(bytes);
  if (!stored) {
    return io::fail(io::ErrorKind::corrupt, directory + ": the row that says how far it is cannot be read");
  }
  return stored;
}

// The number of the MANIFEST that CURRENT names.
io::Result<uint64_t> read_manifest(io::KvHost& kv, const std::string& directory) {
  constexpr std::string_view kPrefix = "MANIFEST-";
  std::string text;
  rocksdb::Status read = rocksdb::ReadFileToString(kv.env(), kv.path(directory) + "/CURRENT", &text);
  if (!read.ok()) {
    return database_error(read, directory);
  }
  uint64_t number = 0;
  bool is_number = text.starts_with(kPrefix) && text.ends_with('\n') && text.size() > kPrefix.size() + 1;
  for (size_t i = kPrefix.size(); is_number && i + 1 < text.size(); ++i) {
    is_number = text[i] >= '0' && text[i] <= '9';
    number = number * 10 + static_cast<uint64_t>(text[i] - '0');
  }
  if (!is_number) {
    return io::fail(io::ErrorKind::corrupt, directory + "/CURRENT names no MANIFEST");
  }
  return number;
}

// Any row but the database's own.
io::Result<bool> has_rows(const View& view, const std::string& directory) {
  std::unique_ptr<rocksdb::Iterator> rows = view.iterate();
  bool found = false;
  for (rows->SeekToFirst(); rows->Valid() && !found; rows->Next()) {
    found = is_image_row(rows->key().ToStringView());
  }
  if (!rows->status().ok()) {
    return database_error(rows->status(), directory);
  }
  return found;
}

}  // namespace

io::Error database_error(const rocksdb::Status& status, std::string_view what) {
  io::ErrorKind kind = io::ErrorKind::io;
  if (status.IsNoSpace() || status.subcode() == rocksdb::Status::kNoSpace) {
    kind = io::ErrorKind::no_space;
  } else if (status.IsCorruption()) {
    kind = io::ErrorKind::corrupt;
  } else if (status.IsBusy() || status.IsIncomplete() || status.IsTryAgain()) {
    kind = io::ErrorKind::busy;
  } else if (status.IsInvalidArgument() || status.IsNotSupported()) {
    kind = io::ErrorKind::invalid;
  } else if (status.ToString().find("lock") != std::string::npos) {
    kind = io::ErrorKind::busy;
  }
  return io::fail(kind, std::string(what) + ": " + status.ToString());
}

// RocksDB's status names the call that failed ("While fdatasync: ..."), and no field does.
bool is_failed_sync(const io::Error& error) {
  const auto names = [&error](std::string_view call) { return error.message.find(call) != std::string::npos; };
  return error.kind != io::ErrorKind::no_space && (names("While fsync") || names("While fdatasync"));
}

// ---- View ------------------------------------------------------------------------------------------------------------------

rocksdb::ReadOptions View::read_options() const {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot_;
  return options;
}

View::Found View::find_cached(const std::string& row_key, std::string& value) const {
  rocksdb::ReadOptions options = read_options();
  options.read_tier = rocksdb::kBlockCacheTier;
  rocksdb::Status status = db_->Get(options, row_key, &value);
  if (status.ok()) {
    return Found::present;
  }
  if (status.IsNotFound()) {
    return Found::absent;
  }
  return status.IsIncomplete() ? Found::not_cached : Found::failed;
}

View::Lookup View::find(const std::string& row_key) const {
  Lookup found;
  std::string value;
  rocksdb::Status status = db_->Get(read_options(), row_key, &value);
  if (status.ok()) {
    found.value = std::move(value);
  } else if (!status.IsNotFound()) {
    found.status = database_error(status, "read of " + row_key);
  }
  return found;
}

View::Rows View::scan(const std::string& begin, const std::string& end, size_t limit) const {
  rocksdb::ReadOptions options = read_options();
  rocksdb::Slice upper(end);
  options.iterate_upper_bound = &upper;
  std::unique_ptr<rocksdb::Iterator> rows(db_->NewIterator(options));
  Rows found;
  for (rows->Seek(begin); rows->Valid() && found.rows.size() < limit; rows->Next()) {
    found.rows.emplace_back(rows->key().ToString(), rows->value().ToString());
  }
  if (!rows->status().ok()) {
    found.status = database_error(rows->status(), "scan from " + begin);
  }
  return found;
}

View::Sum View::digest() const {
  std::unique_ptr<rocksdb::Iterator> rows = iterate();
  Sum sum;
  for (rows->SeekToFirst(); rows->Valid(); rows->Next()) {
    if (is_image_row(rows->key().ToStringView())) {
      sum.digest += row_hash(rows->key().ToStringView(), rows->value().ToStringView());
    }
  }
  if (!rows->status().ok()) {
    sum.status = database_error(rows->status(), "scan of all rows");
  }
  return sum;
}

std::unique_ptr<rocksdb::Iterator> View::iterate() const {
  rocksdb::ReadOptions options = read_options();
  options.fill_cache = false;
  return std::unique_ptr<rocksdb::Iterator>(db_->NewIterator(options));
}

// ---- Database: open and close ----------------------------------------------------------------------------------------------

struct Database::Prepared {
  BatchOutcome outcome;
  rocksdb::WriteBatch effects;
};

Database::Database(io::KvHost& kv, std::string directory, Settings settings)
    : kv_(kv), directory_(std::move(directory)), settings_(std::move(settings)), block_cache_bytes_(settings_.block_cache_bytes) {}

// Without the pump and the checks of close(): a killed process's work may be dropped anywhere, its views with it. RocksDB closes
// when the last of them is gone.
Database::~Database() = default;

// Looks without opening for writing, which would already change the directory.
io::Result<FsmHeld> Database::look(io::KvHost& kv, const std::string& directory) {
  const std::string path = kv.path(directory);
  FsmHeld held;
  if (!is_there(kv, path)) {
    return held;
  }
  rocksdb::DB* raw = nullptr;
  rocksdb::Status opened = rocksdb::DB::OpenForReadOnly(database_options(kv.env(), false, block_cache(kBlockCacheBytesWhileFilled)),
                                                        path, &raw);
  std::shared_ptr<rocksdb::DB> db(raw);
  if (!opened.ok()) {
    return database_error(opened, directory);
  }
  io::Result<std::optional<FsmMeta>> meta = read_meta(*db, directory);
  if (!meta.ok()) {
    return meta.error();
  }
  const View view(db);
  io::Result<bool> rows = has_rows(view, directory);
  if (!rows.ok()) {
    return rows.error();
  }
  held.meta = meta->value_or(FsmMeta{});
  held.holds_anything = *rows || held.meta.state.applied_index > 0;
  if (held.meta.state.applied_index == 0) {
    held.distrust = *rows ? "it holds rows but no index" : "";
    return held;
  }
  const uint64_t generation = db->GetLatestSequenceNumber();
  io::Result<uint64_t> manifest = read_manifest(kv, directory);
  if (!manifest.ok()) {
    return manifest.error();
  }
  if (held.meta.generation != generation) {
    held.distrust = "it was written to after its index was (write " + std::to_string(generation) + ", its index stands at " +
                    std::to_string(held.meta.generation) + ")";
  } else if (held.meta.manifest != *manifest) {
    SOMETIMES("metastore: a database that was opened since its index was written is read whole");
    const View::Sum sum = view.digest();
    if (!sum.status.ok()) {
      return sum.status.error();
    }
    held.distrust = sum.digest == held.meta.state.digest ? "" : "its rows are not those that its index was written with";
  }
  if (!io::defence(io::Defence::foreign_write_unnoticed)) {
    held.distrust.clear();
  }
  held.is_trusted = held.distrust.empty();
  return held;
}

io::Status Database::open(As as) {
  NARAD_CHECK(db_ == nullptr, "a database opened twice");
  std::string path = kv_.path(directory_);
  const bool exists = is_there(kv_, path);
  if (!exists && !settings_.may_create) {
    return io::fail(io::ErrorKind::corrupt, directory_ + ": there is no database, although ACTIVE names it");
  }
  rocksdb::DB* raw = nullptr;
  cache_ = block_cache(block_cache_bytes_);  // nothing of an earlier opening is believed
  rocksdb::Status opened = rocksdb::DB::Open(database_options(kv_.env(), !exists, cache_), path, &raw);
  std::shared_ptr<rocksdb::DB> db(raw);
  if (!opened.ok()) {
    return database_error(opened, directory_);
  }
  db_ = std::move(db);
  kv_.pump();
  io::Status begun = begin_life(as);
  if (!begun.ok()) {
    close();
  }
  return begun;
}

io::Status Database::begin_life(As as) {
  io::Result<uint64_t> manifest = read_manifest(kv_, directory_);
  if (!manifest.ok()) {
    return manifest.error();
  }
  manifest_ = *manifest;
  io::Result<std::optional<FsmMeta>> meta = read_meta(*db_, directory_);
  if (!meta.ok()) {
    return meta.error();
  }
  unflushed_bytes_ = 0;
  flushing_to_ = 0;
  errors_seen_ = 0;
  is_flush_refused_ = false;
  state_ = meta->value_or(FsmMeta{}).state;
  // Opening has written everything that RocksDB's log held into synced tables.
  durable_index_ = state_.applied_index;
  if (!*meta || as == As::replaced || !settings_.writes_meta) {
    return {};
  }
  if ((*meta)->generation != db_->GetLatestSequenceNumber() && io::defence(io::Defence::foreign_write_unnoticed)) {
    return io::fail(io::ErrorKind::corrupt, directory_ + ": its index is not that of its content");
  }
  // Anew, under this life's MANIFEST. Should it be lost with the power, the next start reads every row.
  rocksdb::WriteBatch batch;
  batch.Put(meta_row_key(), meta_row(state_, 1));
  rocksdb::Status written = db_->Write(write_options(), &batch);
  kv_.pump();
  return written.ok() ? io::Status() : io::Status(database_error(written, directory_));
}

io::Status Database::rebase(raft::Index index, raft::Term term) {
  NARAD_CHECK(db_ != nullptr, "a closed database is rebased");
  const View::Sum sum = View(db_).digest();
  if (!sum.status.ok()) {
    return sum.status;
  }
  FsmState state = state_;
  state.applied_index = index;
  state.applied_term = term;
  state.digest = sum.digest;
  return write_durably(state);
}

io::Status Database::recall(const std::vector<FsmState>& states) {
  NARAD_CHECK(db_ != nullptr, "a closed database recalls nothing");
  const View::Sum sum = View(db_).digest();
  if (!sum.status.ok()) {
    return sum.status;
  }
  const auto found = std::find_if(states.begin(), states.end(), [&sum](const FsmState& state) { return state.digest == sum.digest; });
  if (found == states.end()) {
    return io::fail(io::ErrorKind::corrupt, directory_ + ": the reopened database does not hold the rows that it had");
  }
  state_ = *found;
  durable_index_ = state_.applied_index;
  return {};
}

std::string Database::meta_row(const FsmState& state, size_t operations) const {
  FsmMeta meta;
  meta.state = state;
  meta.generation = db_->GetLatestSequenceNumber() + operations;
  meta.manifest = manifest_;
  meta.store = settings_.store;
  meta.cluster = settings_.cluster;
  return encode_meta(meta);
}

void Database::close() {
  apart_.reset();
  image_.reset();
  rows_.clear();
  if (db_ == nullptr) {
    return;
  }
  kv_.pump();
  NARAD_CHECK(db_.use_count() == 1, "a view outlived its database");
  // What it says is of no use: everything written is in raft's log too.
  (void)db_->Close();
  db_.reset();
}

uint64_t Database::fsm_bytes() const {
  uint64_t tables = 0;
  if (db_ == nullptr || !db_->GetIntProperty(rocksdb::DB::Properties::kTotalSstFilesSize, &tables)) {
    return 0;
  }
  return tables + unflushed_bytes_;
}

StoreMemory Database::memory() const {
  StoreMemory memory;
  if (db_ == nullptr) {
    return memory;
  }
  const bool is_known = db_->GetIntProperty(rocksdb::DB::Properties::kBlockCacheUsage, &memory.block_cache) &&
                        db_->GetIntProperty(rocksdb::DB::Properties::kEstimateTableReadersMem, &memory.table_readers) &&
                        db_->GetIntProperty(rocksdb::DB::Properties::kSizeAllMemTables, &memory.memtables);
  NARAD_CHECK(is_known, "RocksDB counts its memory");
  return memory;
}

void Database::set_block_cache_bytes(size_t bytes) {
  NARAD_CHECK(cache_ != nullptr, "the cache of a closed database");
  block_cache_bytes_ = bytes;
  cache_->SetCapacity(bytes);
}

// ---- Database: batches -----------------------------------------------------------------------------------------------------

bool Database::prepare(const std::vector<raft::Entry>& entries, Prepared& prepared) {
  NARAD_CHECK(db_ != nullptr, "a batch for a closed database");
  DatabaseRows source(*db_);
  Evaluation run = evaluate(source, state_, entries, settings_.newest_type, settings_.skips_unknown, &rows_);
  BatchOutcome& outcome = prepared.outcome;
  if (!source.failure().ok()) {
    rows_.clear();
    outcome.kind = BatchOutcome::Kind::read_failed;
    outcome.error = database_error(source.failure(), directory_);
    return false;
  }
  run.rows.for_each_change([&](const std::string& key, const std::string& value) { prepared.effects.Put(key, value); },
                           [&](const std::string& key) { prepared.effects.Delete(key); });
  run.rows.settle();  // ahead of the write: should that fail, the cache is emptied
  if (prepared.effects.GetDataSize() > kKeptBatchBytesMax) {
    rows_.clear();
  }
  outcome.state = run.state;
  outcome.answers = std::move(run.answers);
  outcome.bumps = std::move(run.bumps);
  outcome.undecodable = std::move(run.undecodable);
  outcome.unknown = run.unknown;
  return true;
}

bool Database::write(rocksdb::WriteBatch& batch, BatchOutcome& outcome) {
  rocksdb::Status status = db_->Write(write_options(), &batch);
  kv_.pump();
  if (status.ok()) {
    unflushed_bytes_ += batch.GetDataSize();
    return true;
  }
  rows_.clear();
  outcome.error = database_error(status, directory_);
  if (status.IsIncomplete()) {
    outcome.kind = BatchOutcome::Kind::stalled;
  } else if (is_failed_sync(*outcome.error)) {
    outcome.kind = BatchOutcome::Kind::sync_failed;
  } else {
    outcome.kind = BatchOutcome::Kind::write_failed;
  }
  return false;
}

void Database::finish(BatchOutcome& outcome) {
  state_ = outcome.state;
  outcome.view = view();
  flush_when_due();
  outcome.fsm_bytes = fsm_bytes();
  outcome.durable_index = durable_index_;
}

// Last in its batch: nothing of ours ever follows the row without it.
void Database::put_meta(rocksdb::WriteBatch& batch, const FsmState& state) const {
  if (settings_.writes_meta) {
    batch.Put(meta_row_key(), meta_row(state, batch.Count() + 1));
  }
}

BatchOutcome Database::apply(const std::vector<raft::Entry>& entries) {
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);  // of this thread: nobody reads what RocksDB would count at every comparison
  Prepared prepared;
  if (!prepare(entries, prepared)) {
    return std::move(prepared.outcome);
  }
  if (prepared.outcome.state != state_) {
    put_meta(prepared.effects, prepared.outcome.state);
    if (!write(prepared.effects, prepared.outcome)) {
      return std::move(prepared.outcome);
    }
  }
  finish(prepared.outcome);
  return std::move(prepared.outcome);
}

BatchOutcome Database::begin_apart(const std::vector<raft::Entry>& entries) {
  apart_ = std::make_unique<Prepared>();
  if (!prepare(entries, *apart_)) {
    return std::move(apart_->outcome);
  }
  FsmState index_only = apart_->outcome.state;
  index_only.digest = state_.digest;
  rocksdb::WriteBatch batch;
  put_meta(batch, index_only);
  BatchOutcome outcome;
  write(batch, outcome);
  return outcome;
}

BatchOutcome Database::finish_apart() {
  NARAD_CHECK(apart_ != nullptr, "effects without their index");
  std::unique_ptr<Prepared> prepared = std::move(apart_);
  put_meta(prepared->effects, prepared->outcome.state);
  if (write(prepared->effects, prepared->outcome)) {
    finish(prepared->outcome);
  }
  return std::move(prepared->outcome);
}

// ---- Database: flushes -----------------------------------------------------------------------------------------------------

bool Database::is_flushing() const {
  uint64_t waiting = 0;
  NARAD_CHECK(db_->GetIntProperty(rocksdb::DB::Properties::kNumImmutableMemTable, &waiting), "RocksDB counts its memtables");
  return waiting > 0;
}

uint64_t Database::background_errors() const {
  uint64_t errors = 0;
  NARAD_CHECK(db_->GetIntProperty(rocksdb::DB::Properties::kBackgroundErrors, &errors), "RocksDB counts its errors");
  return errors;
}

// Flushes run in RocksDB's background (pumped in the simulator). A memtable that is gone is in a synced table which the synced
// MANIFEST names; one that could not be written stays.
void Database::note_flush() {
  if (flushing_to_ != 0 && !is_flushing()) {
    durable_index_ = std::max(durable_index_, flushing_to_);
    flushing_to_ = 0;
  }
}

void Database::begin_flush() {
  rocksdb::FlushOptions options;
  options.wait = false;
  options.allow_write_stall = true;
  unflushed_bytes_ = 0;
  errors_before_flush_ = background_errors();
  const raft::Index index = state_.applied_index;
  rocksdb::Status begun = db_->Flush(options);
  flushing_to_ = begun.ok() ? index : 0;
  is_flush_refused_ = is_flush_refused_ || !begun.ok();
  kv_.pump();
  note_flush();
}

// Not every failure matters: a merge of tables that found no room is begun again by itself. Whether writes are refused, and why, is
// learned from one: of the row that says how far the database is, as it stands.
BatchOutcome Database::check_background() {
  NARAD_CHECK(db_ != nullptr, "the background of a closed database");
  note_flush();
  BatchOutcome outcome;
  outcome.state = state_;
  const uint64_t errors = background_errors();
  if (errors == errors_seen_ && !is_flush_refused_) {
    return outcome;
  }
  errors_seen_ = errors;
  is_flush_refused_ = false;
  rocksdb::WriteBatch batch;
  put_meta(batch, state_);
  if (write(batch, outcome)) {
    finish(outcome);
  }
  return outcome;
}

// Whether it succeeds is learned from a later write, or by check_background().
void Database::flush_when_due() {
  note_flush();
  if (unflushed_bytes_ < settings_.flush_bytes) {
    return;
  }
  if (is_flushing()) {
    SOMETIMES("metastore: a flush is due while one is under way");
    return;
  }
  begin_flush();
}

Database::FlushStep Database::flush_towards(raft::Index index) {
  FlushStep step;
  if (db_ == nullptr) {
    step.status = io::fail(io::ErrorKind::busy, directory_ + " is closed while a failed write is sorted out");
    return step;
  }
  if (index > state_.applied_index) {
    SOMETIMES("metastore: a flush meets a reopened database that is not known yet");
    step.status = io::fail(io::ErrorKind::busy, directory_ + " is behind what was applied while a failed write is sorted out");
    return step;
  }
  note_flush();
  if (durable_index_ < index && !is_flushing()) {
    begin_flush();
  }
  if (durable_index_ < index && (is_flush_refused_ || background_errors() > errors_before_flush_)) {
    flushing_to_ = 0;
    step.status = io::fail(io::ErrorKind::io, directory_ + ": a flush has failed");
  }
  step.durable_index = durable_index_;
  return step;
}

// ---- Database: images ------------------------------------------------------------------------------------------------------

void Database::begin_image(std::shared_ptr<const View> view, const FsmState& state) {
  NARAD_CHECK(db_ != nullptr, "an image of a closed database");
  image_ = std::make_unique<ImageWriter>(std::move(view), *kv_.env(), state);
}

ImageWriter::Piece Database::next_image_piece() {
  if (image_ == nullptr) {
    ImageWriter::Piece none;
    none.status = io::fail(io::ErrorKind::busy, directory_ + " was closed while its image was taken");
    return none;
  }
  return image_->next();
}

io::Status Database::ingest(const rocksdb::ExternalSstFileInfo& table) {
  NARAD_CHECK(db_ != nullptr && state_.applied_index == 0, "tables are ingested by a new database");
  rocksdb::IngestExternalFileOptions options;
  options.move_files = true;
  options.allow_blocking_flush = false;  // it would wait for the background
  rocksdb::Status ingested = db_->IngestExternalFile({table.file_path}, options);
  kv_.pump();
  if (!ingested.ok()) {
    return database_error(ingested, directory_);
  }
  // RocksDB reads the table to learn its bounds and does not look whether that worked: after a failed read it records none, scans find
  // every row and lookups find nothing.
  std::vector<rocksdb::LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  const bool is_found = std::any_of(files.begin(), files.end(), [&table](const rocksdb::LiveFileMetaData& file) {
    return file.smallestkey == table.smallest_key && file.largestkey == table.largest_key;
  });
  if (!is_found) {
    SOMETIMES("metastore: a table was ingested without its bounds");
    return io::fail(io::ErrorKind::io, directory_ + ": a table of an image was taken in without its first and last key");
  }
  return {};
}

io::Status Database::adopt(const FsmState& state) {
  NARAD_CHECK(db_ != nullptr && state_.applied_index == 0, "a state is adopted by a new database");
  return write_durably(state);
}

io::Status Database::write_durably(const FsmState& state) {
  rows_.clear();
  rocksdb::WriteBatch batch;
  batch.Put(meta_row_key(), meta_row(state, 1));
  rocksdb::WriteOptions options = write_options();
  options.sync = true;
  rocksdb::Status written = db_->Write(options, &batch);
  kv_.pump();
  if (!written.ok()) {
    return database_error(written, directory_);
  }
  state_ = state;
  durable_index_ = state.applied_index;
  return {};
}

}  // namespace engine::metastore
