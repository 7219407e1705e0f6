// The metastore's flushes and images: the fiber's side. The lane's is in database.h, image_writer.h and image_installer.h.
#include <utility>

#include "engine/metastore/active_file.h"
#include "engine/metastore/database.h"
#include "engine/metastore/database_options.h"
#include "engine/metastore/fsm.h"
#include "engine/metastore/image.h"
#include "engine/metastore/image_installer.h"
#include "engine/metastore/record_cache.h"
#include "io/check.h"
#include "io/defence.h"
#include "io/probe.h"

namespace engine::metastore {

namespace {

// Runs `work` on the lane; a call without a deadline always comes back.
template <typename Work>
auto run_on(io::Executor& lane, Work work) {
  auto done = lane.run(std::move(work));
  NARAD_CHECK(done.ok(), "a lane call without a deadline failed");
  return std::move(*done);
}

std::string to_milliseconds(io::Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()) + "ms";
}

io::Status check_label(const FsmState& state, raft::Index label) {
  if (state.applied_index == label) {
    return {};
  }
  SOMETIMES("metastore: an image whose content is not its label's is refused");
  return io::fail(io::ErrorKind::corrupt, "the image holds entries up to index " + std::to_string(state.applied_index) +
                                              ", but it is labelled " + std::to_string(label));
}

// Something of the lane's that a fiber asked for: given up on the lane when the fiber leaves, also by cancellation.
template <typename Thing, typename GiveUp>
class OnLane {
 public:
  OnLane(io::Executor& lane, std::shared_ptr<Thing> thing, GiveUp give_up)
      : lane_(lane), thing_(std::move(thing)), give_up_(std::move(give_up)) {}
  ~OnLane() {
    lane_.start([thing = std::move(thing_), give_up = std::move(give_up_)] { give_up(*thing); });
  }
  OnLane(const OnLane&) = delete;
  OnLane& operator=(const OnLane&) = delete;

  const std::shared_ptr<Thing>& get() const { return thing_; }

 private:
  io::Executor& lane_;
  std::shared_ptr<Thing> thing_;
  GiveUp give_up_;
};

}  // namespace

// ---- Flush -----------------------------------------------------------------------------------------------------------------

io::Status Fsm::flush() {
  NARAD_CHECK(database_ != nullptr, "a flush of a closed metastore");
  const raft::Index wanted = state_.applied_index;
  const io::Instant until = env_.after(kFlushFor);
  while (durable_index_ < wanted) {
    Database::FlushStep step = run_on(env_.store_lane, [database = database_, wanted] { return database->flush_towards(wanted); });
    if (!step.status.ok()) {
      SOMETIMES("metastore: a flush that was asked for fails");
      return step.status;
    }
    durable_index_ = std::max(durable_index_, step.durable_index);
    if (durable_index_ >= wanted) {
      break;
    }
    if (env_.now() > until) {
      return io::fail(io::ErrorKind::timed_out, "fsm.db: a flush has not come to its end within 30s");
    }
    io::sleep_for(kFlushPoll);
  }
  return {};
}

// ---- Write -----------------------------------------------------------------------------------------------------------------

io::Result<raft::Index> Fsm::write_image(raft::ImageSink& sink, raft::Index replayed) {
  NARAD_CHECK(!is_writing_image_, "one image at a time");
  if (view_ == nullptr) {
    return io::fail(io::ErrorKind::busy, "fsm.db is closed while a failed write is sorted out");
  }
  FsmState state = state_;
  if (state.applied_index == 0 || replayed == 0) {
    return io::fail(io::ErrorKind::invalid, "fsm.db holds nothing yet");
  }
  // What raft has counted is what was published: an image is of that, and never of what the lane's database has come to meanwhile.
  const bool is_of_replayed = io::defence(io::Defence::snapshot_while_ahead);
  if (!is_of_replayed) {
    state.applied_index = replayed;
  }
  if (state.applied_index > replayed) {
    SOMETIMES("metastore: no image while the database is ahead of the replay");
    env_.log.info("metastore: snapshot deferred: the database holds raft index " + std::to_string(state.applied_index) +
                  " but the replay since the start has reached only " + std::to_string(replayed), {});
    return io::fail(io::ErrorKind::busy, "fsm.db is at index " + std::to_string(state.applied_index) +
                                             ", ahead of the replay at " + std::to_string(replayed));
  }
  is_writing_image_ = true;
  struct Writing {
    bool& is_writing;
    ~Writing() { is_writing = false; }
  } writing{is_writing_image_};
  OnLane taken(env_.store_lane, database_, [](Database& database) { database.end_image(); });
  // The view is given up on the lane: by the time a later call closes the database, only the database itself holds it.
  ImageWriter::Piece piece = run_on(env_.store_lane, [database = taken.get(), view = view_, state, is_of_replayed,
                                                       has_index = settings_.writes_meta]() mutable {
    if (!is_of_replayed) {
      view = database->view();
      const raft::Index label = state.applied_index;
      state = database->state();
      state.applied_index = label;
    }
    FsmState head = state;
    if (!has_index) {
      head.applied_index = 0;
      head.applied_term = 0;
    }
    database->begin_image(std::move(view), head);
    return database->next_image_piece();
  });
  while (piece.status.ok()) {
    const bool is_last = piece.is_last;
    if (!piece.bytes.empty()) {
      if (io::Status written = sink.write(std::move(piece.bytes)); !written.ok()) {
        report_not_copied(written.error());
        return written.error();
      }
    }
    if (is_last) {
      return state.applied_index;
    }
    piece = run_on(env_.store_lane, [database = taken.get()] { return database->next_image_piece(); });
  }
  if (piece.status.is(io::ErrorKind::busy)) {
    SOMETIMES("metastore: an image is given up, the database was replaced or closed");
    return piece.status.error();
  }
  report_not_copied(piece.status.error());
  return piece.status.error();
}

void Fsm::report_not_copied(const io::Error& error) {
  env_.log.error("metastore: could not copy the database for a raft snapshot", {{"error", error.to_text()}});
}

// ---- Check -----------------------------------------------------------------------------------------------------------------

// An image whose entries only a newer release applies stops this node: it could go on neither from it nor without it.
io::Status Fsm::judge_head(ImageReader& image, raft::Index label) {
  io::Status head = image.read_head(settings_.newest_type);
  if (!head.ok() && image.state().newest_type > settings_.newest_type) {
    SOMETIMES("metastore: an image of a newer release stops the node");
    ++stats_.errors_newer_database;
    return io::fail(head.error().kind, stop(label, image.state().newest_type, head.error().message).message);
  }
  if (head.ok() && image.state().applied_index == 0) {
    SOMETIMES("metastore: an image without an index takes its label's");
    image.take_index(label);
  }
  return head.ok() ? check_label(image.state(), label) : head;
}

io::Status Fsm::check_image(raft::ImageSource& source, raft::Index label) {
  if (!io::defence(io::Defence::restore_unchecked)) {
    return {};
  }
  ImageReader image(source);
  if (io::Status judged = judge_head(image, label); !judged.ok()) {
    return judged;
  }
  while (true) {
    io::Result<std::string> block = image.next_block();
    if (!block.ok()) {
      return block.error();
    }
    if (block->empty()) {
      return {};
    }
    io::yield();
  }
}

// ---- Install ---------------------------------------------------------------------------------------------------------------

// A database in the making: closed on the lane unless it has become the live one.
struct Fsm::NewDatabase {
  io::Executor& lane;
  std::shared_ptr<Database> database;
  ~NewDatabase() {
    if (database != nullptr) {
      lane.start([database = std::move(database)] { database->close(); });
    }
  }
};

std::shared_ptr<Database> Fsm::make_database(const std::string& directory, bool may_create, size_t block_cache_bytes) const {
  Database::Settings settings;
  settings.newest_type = settings_.newest_type;
  settings.flush_bytes = settings_.flush_bytes;
  settings.build = settings_.build;
  settings.block_cache_bytes = block_cache_bytes;
  settings.may_create = may_create;
  settings.skips_unknown = settings_.skips_unknown;
  settings.writes_meta = settings_.writes_meta;
  settings.store = settings_.store;
  settings.cluster = settings_.cluster;
  return std::make_shared<Database>(env_.kv, directory, std::move(settings));
}

// Not on the lane: to remove a large table takes long, and nothing else there has to wait for it. Nobody has the database open, once
// the lane has done what was queued before.
io::Status Fsm::remove_database(const std::string& directory) {
  io::Status idle = env_.store_lane.run([] {});
  NARAD_CHECK(idle.ok(), "a lane call without a deadline failed");
  io::Result<std::vector<std::string>> names = env_.disk.list(directory);
  if (!names.ok()) {
    return names.is(io::ErrorKind::not_found) ? io::Status() : io::Status(names.error());
  }
  for (const std::string& name : *names) {
    if (io::Status removed = env_.disk.remove(directory + "/" + name); !removed.ok()) {
      return removed;
    }
  }
  return env_.disk.remove(directory);
}

void Fsm::report_left_over(const io::Error& error) {
  env_.log.warn("metastore: could not remove a database that is no longer needed",
                {{"path", kFsmDirectory}, {"error", error.to_text()}});
}

// Leftovers are of no use to anybody, and in nobody's way: that they cannot be removed keeps nothing from working.
void Fsm::remove_leftovers() {
  io::Result<Leftovers> found = find_leftovers(env_.disk, database_->directory());
  if (!found.ok()) {
    report_left_over(found.error());
    return;
  }
  if (found->file) {
    if (io::Status removed = env_.disk.remove(*found->file); !removed.ok()) {
      report_left_over(removed.error());
    }
  }
  for (const std::string& directory : found->databases) {
    SOMETIMES("metastore: a database that an install left over is removed");
    if (io::Status removed = remove_database(directory); !removed.ok()) {
      report_left_over(removed.error());
    }
  }
}

// Closes a database that is not the live one, and removes it. What stays is removed at the next open.
void Fsm::discard(std::shared_ptr<Database> database) {
  const std::string directory = database->directory();
  io::Status closed = env_.store_lane.run([database] { database->close(); });
  NARAD_CHECK(closed.ok(), "a lane call without a deadline failed");
  if (io::Status removed = remove_database(directory); !removed.ok()) {
    report_left_over(removed.error());
  }
}

io::Status Fsm::add_rows(ImageReader& image, std::shared_ptr<Database> next, bool is_checked) {
  OnLane installer(env_.store_lane, std::make_shared<ImageInstaller>(env_.kv, std::move(next), is_checked),
                   [](ImageInstaller& made) { made.give_up(); });
  bool is_over = false;
  while (!is_over) {
    // A slice's worth of blocks a call: going there and back costs more than a block.
    std::vector<std::string> blocks;
    size_t bytes = 0;
    while (!is_over && bytes < kSliceBytes) {
      io::Result<std::string> block = image.next_block();
      if (!block.ok() && is_checked) {
        return block.error();
      }
      is_over = !block.ok() || block->empty();
      if (!is_over) {
        bytes += block->size();
        blocks.push_back(std::move(*block));
      }
    }
    io::Status added = run_on(env_.store_lane, [made = installer.get(), blocks = std::move(blocks)] {
      io::Status status;
      for (size_t i = 0; status.ok() && i < blocks.size(); ++i) {
        status = made->add(blocks[i]);
      }
      return status;
    });
    if (!added.ok()) {
      return added;
    }
  }
  return run_on(env_.store_lane, [made = installer.get()] { return made->finish(); });
}

// Reads back what has become of the image, which is what this node will live on.
io::Status Fsm::check_rows(std::shared_ptr<Database> next, const FsmState& state) {
  struct Sum {
    std::shared_ptr<Database> database;
    std::unique_ptr<RowScan> scan;
    uint64_t digest = 0;
  };
  OnLane sum(env_.store_lane, std::make_shared<Sum>(Sum{std::move(next), nullptr, 0}), [](Sum& made) { made.scan.reset(); });
  struct Step {
    io::Status status;
    bool is_done = false;
    uint64_t digest = 0;
  };
  Step step;
  while (step.status.ok() && !step.is_done) {
    step = run_on(env_.store_lane, [made = sum.get(), &kv = env_.kv] {
      if (made->scan == nullptr) {
        made->scan = std::make_unique<RowScan>(made->database->view(), *kv.env());
      }
      Step done;
      done.status = made->scan->run([&](std::string_view key, std::string_view value) {
        made->digest += row_hash(key, value);
        return io::Status();
      });
      done.is_done = made->scan->is_done();
      done.digest = made->digest;
      return done;
    });
  }
  if (step.status.ok() && step.digest != state.digest) {
    return io::fail(io::ErrorKind::corrupt, "the database made from the image does not hold its rows");
  }
  return step.status;
}

io::Status Fsm::build(ImageReader& image, NewDatabase& next, bool is_checked) {
  io::Status status = run_on(env_.store_lane, [database = next.database] { return database->open(); });
  if (status.ok()) {
    status = add_rows(image, next.database, is_checked);
  }
  if (status.ok()) {
    status = run_on(env_.store_lane, [database = next.database, state = image.state()] { return database->adopt(state); });
  }
  if (status.ok() && is_checked) {
    status = check_rows(next.database, image.state());
  }
  if (status.ok()) {
    status = env_.disk.sync_directory(next.database->directory());
  }
  return status.ok() ? sync_fsm_directory(env_.disk) : status;
}

// From here on everything reads and applies there. Nothing in between waits. Returns the database that was replaced.
std::shared_ptr<Database> Fsm::take_over(std::shared_ptr<Database> next) {
  std::shared_ptr<Database> replaced = std::exchange(database_, std::move(next));
  database_->set_block_cache_bytes(kBlockCacheBytes);
  state_ = database_->state();
  view_ = database_->view();
  durable_index_ = database_->durable_index();
  stats_.fsm_bytes = database_->fsm_bytes();
  versions_.raise_all();
  cache_->clear();
  return replaced;
}

io::Status Fsm::switch_to(NewDatabase& next) {
  // Should the fiber be cancelled in the middle, nothing may be applied to the database that is perhaps no longer the live one.
  struct Settled {
    FsmStats& stats;
    bool is_known = false;
    ~Settled() { stats.is_stopped = stats.is_stopped || !is_known; }
  } settled{stats_};
  const Switched switched = switch_active(env_.disk, next.database->directory());
  if (!switched.status.ok()) {
    settled.is_known = !switched.is_unknown;
    if (switched.is_unknown) {
      SOMETIMES("metastore: whether an image is in place is unknown");
      env_.log.error("metastore: stopped: whether an installed snapshot is in place is known at the next start only",
                     {{"path", kFsmDirectory}, {"error", switched.status.error().to_text()}});
    }
    return switched.status;
  }
  settled.is_known = true;
  discard(take_over(std::move(next.database)));
  return {};
}

io::Status Fsm::install_image(raft::ImageSource& source, raft::Index label) {
  NARAD_CHECK(database_ != nullptr && label > 0, "an image for a closed metastore");
  io::MutexLock lock(changing_);
  if (stats_.is_stopped || view_ == nullptr) {
    return io::fail(io::ErrorKind::io, "metastore: stopped applying raft entries");
  }
  const bool is_checked = io::defence(io::Defence::restore_unchecked);
  const io::Instant began = env_.now();
  ImageReader image(source, is_checked);
  io::Status status = judge_head(image, label);
  const std::string directory = next_database(database_->directory());
  if (status.ok()) {
    status = remove_database(directory);
  }
  if (!status.ok()) {
    return status;
  }
  NewDatabase next{env_.store_lane, make_database(directory, true, kBlockCacheBytesWhileFilled)};
  status = build(image, next, is_checked);
  if (status.ok()) {
    status = switch_to(next);
  }
  if (!status.ok()) {
    if (!stats_.is_stopped) {
      discard(std::move(next.database));
    }
    return status;
  }
  env_.log.info("metastore: installed a raft snapshot",
                {{"index", label}, {"rows", image.rows()}, {"after", to_milliseconds(env_.now() - began)}});
  return is_checked ? io::Status() : check_rows(database_, image.state());
}

}  // namespace engine::metastore
