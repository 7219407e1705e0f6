// The node's metastore: the state machine behind raft, kept in RocksDB, and the local reads from it.
//
// What it promises:
//  - The index of the last entry stands in the same write batch as the effects (unless the defence index_apart_from_effects is
//    off), so after any crash the database holds all of an entry or nothing of it, and says which.
//  - Batches are written to RocksDB's log without a sync: raft's log is the durable copy. A tail lost with the power is handed
//    to apply() again, and it skips what the database holds.
//  - An answered write is visible to every later read on this node; reads never go back.
//  - Refused and undecodable entries move the index and change nothing else. An unknown entry type (of an entry, or in an image), a
//    write that the disk refuses for longer than 30 s, or a failed sync stops it for good: apply() then returns an error, and the
//    entry is not counted.
//
// Where things run: the database belongs to the store lane. On the loop are what has been published by finished batches (state,
// domain versions, a bounded cache of records) and reads of what RocksDB has in memory, at the RocksDB snapshot of the last
// published batch; any other read goes to the lane. Memory: kCachedTopicsMax records, beside RocksDB's own (database_options.h).
//
// fsm.db is a directory of databases with a file ACTIVE that names the live one (active_file.h). An image (image.h) is installed as a
// new database beside the live one: filled, durable and checked before ACTIVE is switched to it in one step, so whatever ends an
// install leaves the old state or the new one. The replaced database is removed then; what a crash left over, at the next open.
//
// Images are written and installed in slices on the lane (image_writer.h), applies and reads go on between them. Memory that either
// adds: a slice, a block and what the sink holds; for an install one table's filter and index beside it.
//
// Whether the index may be believed, and what a start does when it may not: look() tells (fsm_meta.h), raft/restart.h decides, and
// open() is told by OpenAs. An index that is not trusted is never gone by unasked.
//
// Left to others: whether the replica is current (raft), what may be proposed (engine/topics), whether the database goes with raft's
// state (raft/restart.h; fsm_home.h brings the two together).
// Source: spec, "Snapshots", "Restarts" and "When a node stops applying"; narad/entry-types.md section 10.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/metastore/apply.h"
#include "engine/metastore/domain_versions.h"
#include "engine/metastore/envelope.h"
#include "engine/metastore/fsm_meta.h"
#include "engine/metastore/reader.h"
#include "io/env.h"
#include "raft/state_machine.h"

namespace engine::metastore {

class Database;
class ImageReader;
class RecordCache;
class View;
struct BatchOutcome;
struct StoreMemory;

inline constexpr io::Duration kApplyRetryFirst = std::chrono::milliseconds(100);
inline constexpr io::Duration kApplyRetryMax = std::chrono::seconds(5);
inline constexpr io::Duration kApplyRetryFor = std::chrono::seconds(30);
inline constexpr size_t kCachedTopicsMax = 4096;
// watch() looks this often whether RocksDB's background has failed.
inline constexpr io::Duration kBackgroundCheck = std::chrono::seconds(1);
// flush() looks this often whether RocksDB's background has come to its end, and gives up after that long.
inline constexpr io::Duration kFlushPoll = std::chrono::milliseconds(5);
inline constexpr io::Duration kFlushFor = std::chrono::seconds(30);

struct FsmSettings {
  std::string build = "narad";              // named in log lines and refusals
  uint32_t newest_type = kNewestEntryType;  // this release's
  // Bytes of write batches after which the memtable is flushed and RocksDB's log begins anew.
  uint64_t flush_bytes = 8u << 20;
  // The ways of a release: before 3.1.0 entry types that it did not know were passed over, and the row that says how far the
  // database is was neither written nor read: whether a refused write is there after reopening is told by all rows then,
  // and an image's index by its label.
  bool skips_unknown = false;
  bool writes_meta = true;
  // Whose database it is, for that row: the data directory's id, and its cluster's (zero while it is not known).
  raft::StoreId store = {};
  raft::ClusterId cluster = {};
};

// How a database is opened whose index look() found.
struct OpenAs {
  enum class Kind {
    held,      // its index is trusted, or it holds nothing
    replaced,  // an image is installed over it next; nothing is applied before
    rebased,   // its rows are taken as they are for the effects of everything up to `index`
  };
  Kind kind = Kind::held;
  raft::Index index = 0;
  raft::Term term = 0;
};

// Counters for /metrics; since the start.
struct FsmStats {
  uint64_t fsm_bytes = 0;  // tables and log of the live database, about
  uint64_t errors_storage = 0;
  uint64_t errors_unknown_entry_type = 0;
  uint64_t errors_undecodable = 0;
  uint64_t errors_newer_database = 0;  // an image that holds an entry type of a newer release
  bool is_stalled = false;  // retrying a write now
  bool is_stopped = false;
};

class Fsm final : public raft::StateMachine, public Reader {
 public:
  // Opens the live database under "fsm.db", or makes it. Fiber only. Errors, each naming the path: `invalid` when the database
  // has applied an entry type newer than settings.newest_type (it is left untouched) or when the directory is not as we leave it,
  // `corrupt` (also: held, but its index is not to be trusted; untouched), `no_space`, `io`, `busy` (locked by another process).
  static io::Result<std::unique_ptr<Fsm>> open(io::Env& env, FsmSettings settings, OpenAs as = {});
  // The same, for one who has looked and decided: what was found is not looked at again.
  static io::Result<std::unique_ptr<Fsm>> open_looked_at(io::Env& env, FsmSettings settings, OpenAs as);
  // What the live database holds, looked at without changing a byte on the disk; all zero where there is none. Fiber only; before
  // open(). Errors as open(), but for those that it judges by.
  static io::Result<FsmHeld> look(io::Env& env);
  // Moves the directory of databases away, whole, to fsm.db.stale, in place of what was there; where it is a volume of its own, makes its
  // database one that is not live (active_file.h). Where it lies now; nullopt when there is none. The database is not open. Durable when it
  // returns success; a crash leaves all of it under one name or the other. Fiber only.
  static io::Result<std::optional<std::string>> set_aside(io::Env& env);
  // Closes without waiting: the lane finishes what it was given, then closes the database.
  ~Fsm() override;

  // Waits until the database is closed; nothing may be called afterwards. For an orderly stop, so that the directory can be
  // opened again at once.
  void close();

  // ---- raft::StateMachine --------------------------------------------------------------------------------------------------
  raft::Index applied_index() const override { return state_.applied_index; }
  raft::Index durable_index() const override { return durable_index_; }
  io::Status flush() override;
  io::Result<std::vector<std::string>> apply(const std::vector<raft::Entry>& batch) override;
  io::Result<raft::Index> write_image(raft::ImageSink& sink, raft::Index replayed) override;
  void image_not_kept(const io::Error& error) override { report_not_copied(error); }
  io::Status check_image(raft::ImageSource& source, raft::Index label) override;
  io::Status install_image(raft::ImageSource& source, raft::Index label) override;
  // True once apply() has given up, or the outcome of an install is unknown; the reason is the last error it returned.
  bool is_stopped() const override { return stats_.is_stopped; }
  // A flush in RocksDB's background that failed makes it refuse every later write. Sees to that by itself, without waiting for a write
  // that finds out: closes, reopens, retries and stops as for a refused write. Waits until the metastore has stopped, and returns
  // why. Runs beside everything; to be cancelled before close().
  io::Error watch();
  // Its one step: an error when the metastore has stopped.
  io::Status check_background();
  void joined_cluster(const raft::ClusterId& cluster) override;

  // ---- Reader --------------------------------------------------------------------------------------------------------------
  io::Result<std::shared_ptr<const Topic>> get_topic(std::string_view name, io::Instant deadline = io::kNever) override;
  io::Result<std::vector<std::shared_ptr<const Topic>>> list_topics(std::string_view after, size_t limit,
                                                                    io::Instant deadline = io::kNever) override;
  io::Result<std::vector<std::string>> names_like(std::string_view name, io::Instant deadline = io::kNever) override;
  io::Result<std::optional<std::string>> get_row(Bucket bucket, std::string_view key, io::Instant deadline = io::kNever) override;
  io::Result<std::vector<Row>> list_rows(Bucket bucket, std::string_view prefix, std::string_view after, size_t limit,
                                         io::Instant deadline = io::kNever) override;

  // ---- What the published state is -----------------------------------------------------------------------------------------
  const FsmState& state() const { return state_; }
  raft::Term applied_term() const { return state_.applied_term; }
  // Sum of the hashes of all rows: equal on every node at an equal applied index.
  uint64_t digest() const { return state_.digest; }
  const DomainVersions& versions() const { return versions_; }
  const FsmStats& stats() const { return stats_; }

  // Sums the hashes of all rows anew, on the lane, and compares with the state kept beside them: the two that must be equal.
  // For tests and checkers.
  struct Audit {
    FsmState stored;
    uint64_t digest_of_rows = 0;
  };
  io::Result<Audit> audit(io::Instant deadline = io::kNever);

  // What RocksDB says that the live database takes of memory; asks on the lane. For benchmarks.
  StoreMemory store_memory();

 private:
  Fsm(io::Env& env, FsmSettings settings);

  io::Status open_database(OpenAs as = {});
  io::Status reopen_database(const FsmState& attempted);
  io::Status recall(const FsmState& attempted, const FsmState& published);
  const raft::Entry* first_unapplied(const std::vector<raft::Entry>& batch) const;
  io::Result<BatchOutcome> count_refused_write(const std::vector<raft::Entry>& batch, BatchOutcome outcome);
  std::shared_ptr<Database> make_database(const std::string& directory, bool may_create, size_t block_cache_bytes) const;
  void remove_leftovers();
  void report_left_over(const io::Error& error);
  io::Status remove_database(const std::string& directory);
  // fsm_image.cpp
  struct NewDatabase;
  io::Status build(ImageReader& image, NewDatabase& next, bool is_checked);
  io::Status add_rows(ImageReader& image, std::shared_ptr<Database> next, bool is_checked);
  io::Status check_rows(std::shared_ptr<Database> next, const FsmState& state);
  io::Status switch_to(NewDatabase& next);
  std::shared_ptr<Database> take_over(std::shared_ptr<Database> next);
  void discard(std::shared_ptr<Database> database);
  BatchOutcome run_batch(const std::vector<raft::Entry>& batch);
  io::Result<BatchOutcome> write_batch(const std::vector<raft::Entry>& batch);
  void publish(BatchOutcome& outcome);
  void report_undecodable(const BatchOutcome& outcome);
  void report_not_copied(const io::Error& error);
  void report_refused_write(const raft::Entry* entry, const io::Error& error);
  io::Error stop(raft::Index index, uint32_t type, std::string error);
  io::Status judge_head(ImageReader& image, raft::Index label);
  template <typename Read>
  auto read_on_lane(Read read, io::Instant deadline);

  io::Env& env_;
  FsmSettings settings_;
  std::shared_ptr<Database> database_;  // the lane's
  std::shared_ptr<const View> view_;    // of the last published batch; null while the database is closed
  FsmState state_;
  raft::Index durable_index_ = 0;
  io::Mutex changing_;  // held by who writes to the live database, reopens it or puts another in its place
  bool is_writing_image_ = false;
  DomainVersions versions_;
  std::unique_ptr<RecordCache> cache_;
  FsmStats stats_;
};

}  // namespace engine::metastore
