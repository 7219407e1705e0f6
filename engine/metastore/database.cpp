#include "engine/metastore/database.h"

#include <rocksdb/env.h>
#include <rocksdb/options.h>

#include "engine/metastore/database_options.h"
#include "io/check.h"
#include "io/probe.h"

namespace engine::metastore {

namespace {

// RocksDB's status names the call that failed ("While fdatasync: ..."), and no field does.
bool names_a_sync(const rocksdb::Status& status) {
  const std::string text = status.ToString();
  return text.find("While fsync") != std::string::npos || text.find("While fdatasync") != std::string::npos;
}

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
  rocksdb::ReadOptions options = read_options();
  options.fill_cache = false;
  std::unique_ptr<rocksdb::Iterator> rows(db_->NewIterator(options));
  const std::string meta = row_key(Bucket::fsm_meta, "");
  Sum sum;
  for (rows->SeekToFirst(); rows->Valid(); rows->Next()) {
    if (!rows->key().starts_with(meta)) {
      sum.digest += row_hash(rows->key().ToStringView(), rows->value().ToStringView());
    }
  }
  if (!rows->status().ok()) {
    sum.status = database_error(rows->status(), "scan of all rows");
  }
  return sum;
}

// ---- Database: open and close ----------------------------------------------------------------------------------------------

struct Database::Prepared {
  BatchOutcome outcome;
  rocksdb::WriteBatch effects;
};

Database::Database(io::KvHost& kv, std::string directory, Settings settings)
    : kv_(kv), directory_(std::move(directory)), settings_(std::move(settings)) {}

// Without the pump and the checks of close(): a killed process's work may be dropped anywhere, its views with it. RocksDB closes
// when the last of them is gone.
Database::~Database() = default;

io::Status Database::read_state(rocksdb::DB& db, FsmState& state) const {
  std::string bytes;
  rocksdb::Status status = db.Get(rocksdb::ReadOptions(), state_row_key(), &bytes);
  if (status.IsNotFound()) {
    state = FsmState{};
    return {};
  }
  if (!status.ok()) {
    return database_error(status, directory_);
  }
  std::optional<FsmState> stored = decode_state(bytes);
  if (!stored) {
    return io::fail(io::ErrorKind::corrupt, directory_ + ": the row that says how far it is cannot be read");
  }
  state = *stored;
  return {};
}

// Looks without opening for writing, which would already change the directory.
io::Status Database::check_newest_type(const std::string& path) {
  rocksdb::DB* raw = nullptr;
  rocksdb::Options options = database_options(kv_.env(), false);
  rocksdb::Status opened = rocksdb::DB::OpenForReadOnly(options, path, &raw);
  std::unique_ptr<rocksdb::DB> db(raw);
  if (!opened.ok()) {
    return database_error(opened, directory_);
  }
  FsmState state;
  io::Status read = read_state(*db, state);
  if (read.ok() && state.newest_type > settings_.newest_type) {
    SOMETIMES("metastore: a database of a newer release is refused");
    return io::fail(io::ErrorKind::invalid,
                    "fsm: " + directory_ + " holds raft entry type " + std::to_string(state.newest_type) +
                        ", written by a newer Narad release than this build (" + settings_.build +
                        ", which knows entry types up to " + std::to_string(settings_.newest_type) +
                        "); run that release or newer");
  }
  return read;
}

io::Status Database::open() {
  NARAD_CHECK(db_ == nullptr, "a database opened twice");
  std::string path = kv_.path(directory_);
  bool exists = kv_.env()->FileExists(path + "/CURRENT").ok();
  if (exists) {
    if (io::Status checked = check_newest_type(path); !checked.ok()) {
      return checked;
    }
  }
  rocksdb::DB* raw = nullptr;
  rocksdb::Status opened = rocksdb::DB::Open(database_options(kv_.env(), !exists), path, &raw);
  std::shared_ptr<rocksdb::DB> db(raw);
  if (!opened.ok()) {
    return database_error(opened, directory_);
  }
  db_ = std::move(db);
  kv_.pump();
  if (io::Status read = read_state(*db_, state_); !read.ok()) {
    close();
    return read;
  }
  unflushed_bytes_ = 0;
  return {};
}

void Database::close() {
  apart_.reset();
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

// ---- Database: batches -----------------------------------------------------------------------------------------------------

bool Database::prepare(const std::vector<raft::Entry>& entries, Prepared& prepared) {
  NARAD_CHECK(db_ != nullptr, "a batch for a closed database");
  DatabaseRows source(*db_);
  Evaluation run = evaluate(source, state_, entries, settings_.newest_type);
  BatchOutcome& outcome = prepared.outcome;
  outcome.last_type = run.last_type;
  outcome.last_index = run.state.applied_index;
  if (!source.failure().ok()) {
    outcome.kind = BatchOutcome::Kind::read_failed;
    outcome.error = database_error(source.failure(), directory_);
    return false;
  }
  run.rows.for_each_change([&](const std::string& key, const std::string& value) { prepared.effects.Put(key, value); },
                           [&](const std::string& key) { prepared.effects.Delete(key); });
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
  outcome.error = database_error(status, directory_);
  if (status.IsIncomplete()) {
    outcome.kind = BatchOutcome::Kind::stalled;
  } else if (names_a_sync(status) && outcome.error->kind != io::ErrorKind::no_space) {
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
}

BatchOutcome Database::apply(const std::vector<raft::Entry>& entries) {
  Prepared prepared;
  if (!prepare(entries, prepared)) {
    return std::move(prepared.outcome);
  }
  if (prepared.outcome.state != state_) {
    prepared.effects.Put(state_row_key(), encode_state(prepared.outcome.state));
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
  batch.Put(state_row_key(), encode_state(index_only));
  BatchOutcome outcome;
  outcome.last_type = apart_->outcome.last_type;
  outcome.last_index = apart_->outcome.last_index;
  write(batch, outcome);
  return outcome;
}

BatchOutcome Database::finish_apart() {
  NARAD_CHECK(apart_ != nullptr, "effects without their index");
  std::unique_ptr<Prepared> prepared = std::move(apart_);
  prepared->effects.Put(state_row_key(), encode_state(prepared->outcome.state));
  if (write(prepared->effects, prepared->outcome)) {
    finish(prepared->outcome);
  }
  return std::move(prepared->outcome);
}

// Begins a flush that runs in RocksDB's background (pumped in the simulator), unless one is still under way. Whether it
// succeeds is learned from a later write.
void Database::flush_when_due() {
  if (unflushed_bytes_ < settings_.flush_bytes) {
    return;
  }
  uint64_t waiting = 0;
  db_->GetIntProperty(rocksdb::DB::Properties::kNumImmutableMemTable, &waiting);
  if (waiting > 0) {
    SOMETIMES("metastore: a flush is due while one is under way");
    return;
  }
  rocksdb::FlushOptions options;
  options.wait = false;
  options.allow_write_stall = true;
  unflushed_bytes_ = 0;
  (void)db_->Flush(options);
  kv_.pump();
}

}  // namespace engine::metastore
