#include "engine/metastore/fsm.h"

#include <algorithm>

#include "engine/metastore/active_file.h"
#include "engine/metastore/database.h"
#include "engine/metastore/database_options.h"
#include "engine/metastore/kept_rows.h"
#include "engine/metastore/record_cache.h"
#include "io/check.h"
#include "io/defence.h"
#include "io/probe.h"

namespace engine::metastore {

namespace {

// A list that raced a batch is read again, so that it is not older than what others have read meanwhile; this often at most.
constexpr int kListTries = 3;

std::string whole_seconds(io::Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + "s";
}

std::string milliseconds(io::Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()) + "ms";
}

// 0: undecodable.
uint32_t type_of_entry(const raft::Entry& entry) {
  const std::optional<Envelope> envelope = read_envelope(entry.bytes());
  return envelope ? envelope->type : 0;
}

io::Error already_stopped() { return io::fail(io::ErrorKind::io, "metastore: stopped applying raft entries"); }

io::Error closed_for_recovery() { return io::fail(io::ErrorKind::busy, "fsm.db is closed while a failed write is sorted out"); }

io::Result<std::shared_ptr<const Topic>> to_record(const std::optional<std::string>& bytes, std::string_view name) {
  if (!bytes) {
    return std::shared_ptr<const Topic>();
  }
  std::optional<Topic> topic = decode_topic(*bytes);
  if (!topic) {
    return io::fail(io::ErrorKind::corrupt, "the record of topic " + std::string(name) + " cannot be decoded");
  }
  return std::make_shared<const Topic>(std::move(*topic));
}

}  // namespace

// ---- Open and close --------------------------------------------------------------------------------------------------------

Fsm::Fsm(io::Env& env, FsmSettings settings)
    : env_(env), settings_(std::move(settings)), cache_(std::make_unique<RecordCache>(kCachedTopicsMax)) {}

io::Result<FsmHeld> Fsm::look(io::Env& env) {
  io::Result<std::optional<std::string>> directory = find_active(env.disk);
  if (!directory.ok()) {
    return directory.error();
  }
  if (!*directory) {
    return FsmHeld{};
  }
  io::Result<io::Result<FsmHeld>> held =
      env.store_lane.run([&kv = env.kv, directory = **directory] { return Database::look(kv, directory); });
  return held.ok() ? std::move(*held) : io::Result<FsmHeld>(held.error());
}

io::Result<std::unique_ptr<Fsm>> Fsm::open(io::Env& env, FsmSettings settings, OpenAs as) {
  io::Result<FsmHeld> held = look(env);
  if (!held.ok()) {
    return held.error();
  }
  if (held->meta.state.newest_type > settings.newest_type) {
    SOMETIMES("metastore: a database of a newer release is refused");
    return io::fail(io::ErrorKind::invalid,
                    "fsm: " + std::string(kFsmDirectory) + " holds raft entry type " +
                        std::to_string(held->meta.state.newest_type) + ", written by a newer Narad release than this build (" +
                        settings.build + ", which knows entry types up to " + std::to_string(settings.newest_type) +
                        "); run that release or newer");
  }
  if (as.kind == OpenAs::Kind::held && held->holds_anything && !held->is_trusted) {
    return io::fail(io::ErrorKind::corrupt,
                    std::string(kFsmDirectory) + " has no applied index that can be trusted: " + held->distrust);
  }
  return open_looked_at(env, std::move(settings), as);
}

io::Result<std::unique_ptr<Fsm>> Fsm::open_looked_at(io::Env& env, FsmSettings settings, OpenAs as) {
  io::Result<std::string> directory = find_or_name_active(env.disk);
  if (!directory.ok()) {
    return directory.error();
  }
  std::unique_ptr<Fsm> fsm(new Fsm(env, std::move(settings)));
  fsm->database_ = fsm->make_database(*directory, may_be_missing(env.disk, *directory), kBlockCacheBytes);
  if (io::Status opened = fsm->open_database(as); !opened.ok()) {
    return opened.error();
  }
  if (io::Status synced = sync_fsm_directory(env.disk); !synced.ok()) {
    return synced.error();
  }
  fsm->remove_leftovers();
  return fsm;
}

io::Status Fsm::open_database(OpenAs as) {
  struct Opened {
    io::Status status;
    FsmState state;
    std::shared_ptr<const View> view;
    uint64_t fsm_bytes = 0;
    raft::Index durable_index = 0;
  };
  io::Result<Opened> opened = env_.store_lane.run([database = database_, as] {
    Opened result;
    result.status = database->open(as.kind == OpenAs::Kind::held ? Database::As::held : Database::As::replaced);
    if (result.status.ok() && as.kind == OpenAs::Kind::rebased) {
      result.status = database->rebase(as.index, as.term);
    }
    if (result.status.ok()) {
      result.state = database->state();
      result.view = database->view();
      result.fsm_bytes = database->fsm_bytes();
      result.durable_index = database->durable_index();
    }
    return result;
  });
  if (!opened.ok()) {
    return opened.error();
  }
  if (!opened->status.ok()) {
    return opened->status;
  }
  state_ = opened->state;
  view_ = std::move(opened->view);
  stats_.fsm_bytes = opened->fsm_bytes;
  durable_index_ = opened->durable_index;
  return {};
}

io::Result<std::optional<std::string>> Fsm::set_aside(io::Env& env) {
  io::Status idle = env.store_lane.run([] {});
  NARAD_CHECK(idle.ok(), "a lane call without a deadline failed");
  return set_fsm_directory_aside(env.disk);
}

void Fsm::joined_cluster(const raft::ClusterId& cluster) {
  settings_.cluster = cluster;
  if (database_ != nullptr) {
    env_.store_lane.start([database = database_, cluster] { database->set_cluster(cluster); });
  }
}

Fsm::~Fsm() {
  view_.reset();
  if (database_ != nullptr) {
    env_.store_lane.start([database = std::move(database_)] { database->close(); });
  }
}

void Fsm::close() {
  view_.reset();
  if (database_ != nullptr) {
    (void)env_.store_lane.run([database = std::move(database_)] { database->close(); });
  }
}

// ---- Applying --------------------------------------------------------------------------------------------------------------

BatchOutcome Fsm::run_batch(const std::vector<raft::Entry>& batch) {
  auto on_lane = [this](auto work) {
    io::Result<BatchOutcome> outcome = env_.store_lane.run(std::move(work));
    NARAD_CHECK(outcome.ok(), "a lane call without a deadline failed");
    return std::move(*outcome);
  };
  if (batch.empty()) {
    return on_lane([database = database_] { return database->check_background(); });
  }
  if (io::defence(io::Defence::index_apart_from_effects)) {
    return on_lane([database = database_, batch] { return database->apply(batch); });
  }
  BatchOutcome index = on_lane([database = database_, batch] { return database->begin_apart(batch); });
  if (index.kind != BatchOutcome::Kind::written) {
    return index;
  }
  return on_lane([database = database_] { return database->finish_apart(); });
}

// `attempted`: what the state would be if the write that failed is there.
io::Status Fsm::reopen_database(const FsmState& attempted) {
  view_.reset();
  auto closed = env_.store_lane.run([database = database_] { database->close(); });
  NARAD_CHECK(closed.ok(), "a lane call without a deadline failed");
  const FsmState published = state_;
  io::Status opened = open_database();
  return opened.ok() && !settings_.writes_meta ? recall(attempted, published) : opened;
}

// A release that keeps no row which says how far it is tells by its rows.
io::Status Fsm::recall(const FsmState& attempted, const FsmState& published) {
  std::vector<FsmState> states;
  if (attempted.applied_index > published.applied_index) {
    states.push_back(attempted);
  }
  states.push_back(published);
  auto recalled = env_.store_lane.run([database = database_, states] {
    io::Status status = database->recall(states);
    return std::pair(std::move(status), database->state());
  });
  NARAD_CHECK(recalled.ok(), "a lane call without a deadline failed");
  if (!recalled->first.ok()) {
    state_ = published;
    view_.reset();
    return recalled->first;
  }
  SOMETIMES("metastore: a release without its index on the disk knows a reopened database by its rows");
  state_ = recalled->second;
  durable_index_ = state_.applied_index;
  return {};
}

// Writes until it worked, the time is up, or it must not be tried again. After a failed write only the reopened database tells
// whether the batch is there; its answers are those of the attempt that turned out to be there. An empty batch stands for what
// RocksDB writes in its background.
io::Result<BatchOutcome> Fsm::write_batch(const std::vector<raft::Entry>& batch) {
  BatchOutcome outcome = run_batch(batch);
  const raft::Entry* first = first_unapplied(batch);
  const io::Instant began = env_.now();
  io::Duration delay = kApplyRetryFirst;
  bool is_reported = false;
  while (outcome.kind != BatchOutcome::Kind::written) {
    io::Error error = *outcome.error;
    ++stats_.errors_storage;
    if (!io::defence(io::Defence::refused_write_counted)) {
      return count_refused_write(batch, std::move(outcome));
    }
    if (outcome.kind == BatchOutcome::Kind::sync_failed) {
      SOMETIMES("metastore: a failed sync stops the node");
      return error;
    }
    if (!is_reported) {
      is_reported = true;
      stats_.is_stalled = true;
      report_refused_write(first, *outcome.error);
    }
    if (env_.now() + delay > began + kApplyRetryFor) {
      SOMETIMES("metastore: a write refused for too long stops the node");
      error.message = "after retrying for " + whole_seconds(env_.now() - began) + ": " + error.message;
      return error;
    }
    io::sleep_for(delay);
    delay = std::min(delay * 2, kApplyRetryMax);
    if (outcome.kind != BatchOutcome::Kind::stalled) {
      const raft::Index attempted = outcome.state.applied_index;
      const raft::Index published = state_.applied_index;
      const bool had_answers = outcome.answers.size() == batch.size() || outcome.unknown.has_value();
      io::Status reopened = reopen_database(outcome.state);
      if (!reopened.ok()) {
        outcome.error = reopened.error();
        outcome.kind = is_failed_sync(reopened.error()) ? BatchOutcome::Kind::sync_failed : outcome.kind;
        continue;
      }
      if (state_.applied_index < published) {
        SOMETIMES("metastore: a reopened database had lost entries");
        return io::fail(io::ErrorKind::corrupt, "the reopened database is at index " + std::to_string(state_.applied_index) +
                                                    ", behind index " + std::to_string(published) + " that it had applied");
      }
      if (had_answers && attempted != 0 && state_.applied_index == attempted) {
        if (!batch.empty()) SOMETIMES("metastore: a write reported as failed was there after reopening");
        outcome.kind = BatchOutcome::Kind::written;
        outcome.view = view_;
        outcome.fsm_bytes = stats_.fsm_bytes;
        outcome.durable_index = durable_index_;
        break;
      }
    }
    outcome = run_batch(batch);
  }
  if (is_reported && batch.empty()) {
    SOMETIMES("metastore: a failed flush is made good without a write");
    env_.log.info("metastore: fsm.db works again", {{"after", milliseconds(env_.now() - began)}});
  } else if (is_reported) {
    SOMETIMES("metastore: a refused write worked on retry");
    env_.log.info("metastore: wrote raft entry on retry",
                  {{"index", first->index}, {"after", milliseconds(env_.now() - began)}});
  }
  stats_.is_stalled = false;
  return outcome;
}

// The entry that a batch hangs at when it cannot be written: the first that is not applied yet. Null for a batch of none.
const raft::Entry* Fsm::first_unapplied(const std::vector<raft::Entry>& batch) const {
  const auto found = std::find_if(batch.begin(), batch.end(), [this](const raft::Entry& each) { return each.index > state_.applied_index; });
  return batch.empty() ? nullptr : found == batch.end() ? &batch.back() : &*found;
}

void Fsm::report_refused_write(const raft::Entry* entry, const io::Error& error) {
  if (entry == nullptr) {
    env_.log.warn("metastore: fsm.db failed while it wrote in the background; opening it anew",
                  {{"path", kFsmDirectory}, {"error", error.to_text()}, {"retry_for", whole_seconds(kApplyRetryFor)}});
    return;
  }
  env_.log.warn("metastore: could not write raft entry; retrying",
                {{"index", entry->index},
                 {"entry_type", type_of_entry(*entry)},
                 {"path", kFsmDirectory},
                 {"error", error.to_text()},
                 {"retry_for", whole_seconds(kApplyRetryFor)}});
}

// The defect that the retries are there to keep away (see io/defence.h): as if the write had worked.
io::Result<BatchOutcome> Fsm::count_refused_write(const std::vector<raft::Entry>& batch, BatchOutcome outcome) {
  if (outcome.kind != BatchOutcome::Kind::stalled) {
    for (io::Duration delay = kApplyRetryFirst; !reopen_database(outcome.state).ok(); delay = std::min(delay * 2, kApplyRetryMax)) {
      io::sleep_for(delay);
    }
  }
  outcome.kind = BatchOutcome::Kind::written;
  outcome.state = state_;
  outcome.view = view_;
  outcome.fsm_bytes = stats_.fsm_bytes;
  outcome.durable_index = durable_index_;
  outcome.unknown.reset();
  outcome.answers.resize(batch.size());
  return outcome;
}

void Fsm::publish(BatchOutcome& outcome) {
  NARAD_CHECK(outcome.state.applied_index >= state_.applied_index, "the published index went back");
  state_ = outcome.state;
  view_ = std::move(outcome.view);
  stats_.fsm_bytes = outcome.fsm_bytes;
  durable_index_ = std::max(durable_index_, outcome.durable_index);
  for (const std::vector<Bump>& bumps : outcome.bumps) {
    versions_.apply(bumps);
    for (const Bump& bump : bumps) {
      if (bump.domain == Domain::topics) {
        cache_->drop(bump.name);
      }
    }
  }
}

void Fsm::report_undecodable(const BatchOutcome& outcome) {
  for (const Undecodable& entry : outcome.undecodable) {
    ++stats_.errors_undecodable;
    env_.log.error("metastore: consumed a raft entry it cannot decode", {{"index", entry.index}, {"error", entry.error}});
  }
}

io::Error Fsm::stop(raft::Index index, uint32_t type, std::string error) {
  stats_.is_stopped = true;
  stats_.is_stalled = false;
  env_.log.error("metastore: stopped applying raft entries; this node leaves raft and exits",
                 {{"index", index}, {"entry_type", type}, {"build", settings_.build}, {"error", error}});
  return io::fail(io::ErrorKind::io, "metastore: stopped applying raft entries: " + error);
}

io::Result<std::vector<std::string>> Fsm::apply(const std::vector<raft::Entry>& batch) {
  NARAD_CHECK(database_ != nullptr, "an entry for a closed metastore");
  io::MutexLock lock(changing_);
  if (stats_.is_stopped) {
    return already_stopped();
  }
  if (batch.empty()) {
    return std::vector<std::string>();
  }
  if (view_ == nullptr) {
    return already_stopped();  // a retry was cancelled halfway
  }
  const raft::Entry& first = *first_unapplied(batch);
  io::Result<BatchOutcome> written = write_batch(batch);
  if (!written.ok()) {
    const uint32_t type = type_of_entry(first);
    return stop(first.index, type,
                "could not write raft entry at index " + std::to_string(first.index) + " (entry type " + std::to_string(type) +
                    ") to " + std::string(kFsmDirectory) + " " + written.error().message);
  }
  BatchOutcome& outcome = *written;
  publish(outcome);
  report_undecodable(outcome);
  if (outcome.unknown) {
    ++stats_.errors_unknown_entry_type;
    return stop(outcome.unknown->index, outcome.unknown->type,
                "raft entry at index " + std::to_string(outcome.unknown->index) + " has entry type " +
                    std::to_string(outcome.unknown->type) + ", which this build (" + settings_.build +
                    ") does not know (it applies entry types 1 to " + std::to_string(settings_.newest_type) +
                    "): a newer Narad release proposed it; run that release or newer");
  }
  NARAD_CHECK(outcome.answers.size() == batch.size(), "one answer an entry");
  return std::move(outcome.answers);
}

io::Status Fsm::check_background() {
  NARAD_CHECK(database_ != nullptr, "the background of a closed metastore");
  io::MutexLock lock(changing_);
  if (stats_.is_stopped) {
    return already_stopped();
  }
  if (view_ == nullptr) {
    SOMETIMES("metastore: a retry was cancelled while fsm.db was closed");
    return {};  // whoever was to apply has ended, and nobody writes any more
  }
  io::Result<BatchOutcome> written = write_batch({});
  if (!written.ok()) {
    return stop(state_.applied_index, 0,
                std::string(kFsmDirectory) + " failed while it wrote in the background " + written.error().message);
  }
  if (written->view != nullptr) {
    publish(*written);
  }
  return {};
}

io::Error Fsm::watch() {
  while (true) {
    io::sleep_for(kBackgroundCheck);
    if (io::Status checked = check_background(); !checked.ok()) {
      return checked.error();
    }
  }
}

// ---- Reads -----------------------------------------------------------------------------------------------------------------

// Runs `read(view)` on the lane, at the last published batch. The view is given up there: by the time a later lane call closes the
// database, no read before it holds one.
template <typename Read>
auto Fsm::read_on_lane(Read read, io::Instant deadline) {
  using Value = std::invoke_result_t<Read, const View&>;
  auto work = [view = view_, read = std::move(read)]() mutable -> Value {
    std::shared_ptr<const View> mine = std::move(view);
    return read(*mine);
  };
  io::Result<Value> done = env_.store_lane.run(std::move(work), deadline);
  if (!done.ok()) {
    Value late;
    late.status = done.error();
    return late;
  }
  return std::move(*done);
}

io::Result<std::shared_ptr<const Topic>> Fsm::get_topic(std::string_view name, io::Instant deadline) {
  if (std::shared_ptr<const Topic> cached = cache_->find(name); cached != nullptr) {
    return cached;
  }
  const std::string key = row_key(Bucket::topics, name);
  while (true) {
    if (view_ == nullptr) {
      return closed_for_recovery();
    }
    std::optional<std::string> bytes;
    const uint64_t version = versions_.keyed(Domain::topics, name);
    std::string value;
    switch (view_->find_cached(key, value)) {
      case View::Found::present:
        bytes = std::move(value);
        break;
      case View::Found::absent:
        return std::shared_ptr<const Topic>();
      case View::Found::not_cached:
      case View::Found::failed: {
        SOMETIMES("metastore: a topic is read on the lane");
        auto found = read_on_lane([key](const View& view) { return view.find(key); }, deadline);
        if (!found.status.ok()) {
          return found.status.error();
        }
        if (versions_.keyed(Domain::topics, name) != version) {
          SOMETIMES("metastore: a topic changed while it was read");
          continue;
        }
        bytes = std::move(found.value);
        break;
      }
    }
    io::Result<std::shared_ptr<const Topic>> topic = to_record(bytes, name);
    if (topic.ok() && *topic != nullptr) {
      cache_->insert(*topic);
    }
    return topic;
  }
}

io::Result<std::vector<std::shared_ptr<const Topic>>> Fsm::list_topics(std::string_view after, size_t limit,
                                                                       io::Instant deadline) {
  NARAD_CHECK(limit >= 1 && limit <= kListMax, "a list of a size that is not allowed");
  const std::string begin = row_key(Bucket::topics, after) + '\0';
  const std::string end = end_of(Bucket::topics);
  View::Rows found;
  for (int tries = 0; tries < kListTries; ++tries) {
    if (view_ == nullptr) {
      return closed_for_recovery();
    }
    const uint64_t version = versions_.latest(Domain::topics);
    found = read_on_lane([=](const View& view) { return view.scan(begin, end, limit); }, deadline);
    if (!found.status.ok()) {
      return found.status.error();
    }
    if (versions_.latest(Domain::topics) == version) {
      break;
    }
    SOMETIMES("metastore: topics changed while they were listed");
  }
  std::vector<std::shared_ptr<const Topic>> topics;
  for (const auto& [key, bytes] : found.rows) {
    io::Result<std::shared_ptr<const Topic>> topic = to_record(bytes, key);
    if (!topic.ok()) {
      return topic.error();
    }
    topics.push_back(std::move(*topic));
  }
  return topics;
}

io::Result<std::vector<std::string>> Fsm::names_like(std::string_view name, io::Instant deadline) {
  const std::string key = row_key(Bucket::topic_names, fold_name(name));
  if (view_ == nullptr) {
    return closed_for_recovery();
  }
  std::string bytes;
  switch (view_->find_cached(key, bytes)) {
    case View::Found::present: return decode_names(bytes);
    case View::Found::absent: return std::vector<std::string>();
    case View::Found::not_cached:
    case View::Found::failed: break;
  }
  auto found = read_on_lane([key](const View& view) { return view.find(key); }, deadline);
  if (!found.status.ok()) {
    return found.status.error();
  }
  return found.value ? decode_names(*found.value) : std::vector<std::string>();
}

io::Result<std::optional<std::string>> Fsm::get_row(Bucket bucket, std::string_view key, io::Instant deadline) {
  const std::string row = row_key(bucket, key);
  View::Lookup found;
  for (int tries = 0; tries < kListTries; ++tries) {
    if (view_ == nullptr) {
      return closed_for_recovery();
    }
    std::string value;
    switch (view_->find_cached(row, value)) {
      case View::Found::present: return std::optional<std::string>(std::move(value));
      case View::Found::absent: return std::optional<std::string>();
      case View::Found::not_cached:
      case View::Found::failed: break;
    }
    const uint64_t version = versions_.metadata();
    found = read_on_lane([row](const View& view) { return view.find(row); }, deadline);
    if (!found.status.ok()) {
      return found.status.error();
    }
    if (versions_.metadata() == version) {
      break;
    }
  }
  return std::move(found.value);
}

io::Result<std::vector<Reader::Row>> Fsm::list_rows(Bucket bucket, std::string_view prefix, std::string_view after, size_t limit,
                                                    io::Instant deadline) {
  NARAD_CHECK(limit >= 1 && limit <= kListMax, "a list of a size that is not allowed");
  const std::string first = row_key(bucket, prefix);
  const std::string begin = std::max(first, row_key(bucket, after) + '\0');
  const std::string end = prefix.empty() ? end_of(bucket) : end_of_prefix(first);
  View::Rows found;
  for (int tries = 0; tries < kListTries; ++tries) {
    if (view_ == nullptr) {
      return closed_for_recovery();
    }
    const uint64_t version = versions_.metadata();
    found = read_on_lane([=](const View& view) { return view.scan(begin, end, limit); }, deadline);
    if (!found.status.ok()) {
      return found.status.error();
    }
    if (versions_.metadata() == version) {
      break;
    }
  }
  const size_t bucket_bytes = row_key(bucket, "").size();
  std::vector<Row> rows;
  for (auto& [key, value] : found.rows) {
    rows.push_back({key.substr(bucket_bytes), std::move(value)});
  }
  return rows;
}

StoreMemory Fsm::store_memory() {
  NARAD_CHECK(database_ != nullptr, "the memory of a closed metastore");
  io::Result<StoreMemory> memory = env_.store_lane.run([database = database_] { return database->memory(); });
  NARAD_CHECK(memory.ok(), "a lane call without a deadline failed");
  return *memory;
}

io::Result<Fsm::Audit> Fsm::audit(io::Instant deadline) {
  if (view_ == nullptr) {
    return closed_for_recovery();
  }
  FsmState stored = state_;
  View::Sum sum = read_on_lane([](const View& view) { return view.digest(); }, deadline);
  if (!sum.status.ok()) {
    return sum.status.error();
  }
  return Audit{stored, sum.digest};
}

}  // namespace engine::metastore
