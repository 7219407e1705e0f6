// Snapshots of this server: taking them, cutting the log behind them, installing one that was received; and what followers need that
// memory does not hold.
#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/probe.h"
#include "raft/server.h"

namespace raft {

namespace {
constexpr io::Duration kToldWithin = std::chrono::seconds(30);
// Doubled with each try: every one builds the whole database anew.
constexpr io::Duration kInstallRetry = std::chrono::milliseconds(200);
constexpr io::Duration kInstallRetryMax = std::chrono::seconds(5);
constexpr io::Duration kReadLogInterval = std::chrono::seconds(10);
// A follower's need makes this server take snapshots so often at most, should none come of it.
constexpr io::Duration kAskedSnapshotInterval = std::chrono::seconds(5);
}

// ---- Taking ------------------------------------------------------------------------------------------------------------------

void RaftServer::snapshot_loop() {
  const SnapshotPolicy& policy = options_.snapshots;
  io::RandomStream jitter = env_.random.stream("raft snapshot interval", options_.id);
  while (!is_stopping_) {
    const io::Instant due = env_.after(policy.interval + jitter.between(io::Duration::zero(), policy.interval));
    while (!is_stopping_ && env_.now() < due && !must_take_snapshot_ && !must_compact_) snapshot_wake_.wait(due);
    if (is_stopping_) return;
    if (std::exchange(must_compact_, false) && !must_take_snapshot_) {
      SOMETIMES("raft: a full disk makes the log give up what it can");
      compact_log();
      continue;
    }
    const bool must_take = std::exchange(must_take_snapshot_, false);
    // While an image waits to be installed the newest snapshot is ahead of what is applied.
    const Index applied = core_->applied_index();
    const Index newest = core_->snapshot().index;
    if (must_take || (applied >= newest && applied - newest >= policy.threshold)) take_snapshot();
    if (!is_stopping_) compact_log();
  }
}

bool RaftServer::is_kept(Index index) const {
  const auto& kept = snapshots_->kept();
  return std::any_of(kept.begin(), kept.end(), [index](const SnapshotInfo& info) { return info.label.index == index; });
}

// A snapshot that turned out damaged is of use to nobody, and the next one may be far: another is taken in its place, however few
// entries it is ahead. False when the snapshot is whole.
bool RaftServer::replace_if_damaged(const SnapshotLabel& label) {
  if (is_kept(label.index)) {
    io::Status verified = snapshots_->verify(label, options_.snapshots.send_bytes_per_second);
    if (is_stopping_ || !verified.is(io::ErrorKind::corrupt)) return false;
    env_.log.warn("raft: a snapshot is damaged, another is taken in its place",
                  {{"index", label.index}, {"reason", verified.error().to_text()}});
  }
  SOMETIMES("raft: a damaged snapshot is replaced");
  must_take_snapshot_ = true;
  snapshot_wake_.notify_all();
  return true;
}

void RaftServer::note_snapshot_failure(const io::Error& error) {
  ++counters_.snapshots_failed;
  env_.log.error("raft: no snapshot could be taken", {{"applied_index", core_->applied_index()}, {"reason", error.to_text()}});
}

void RaftServer::note_snapshot_not_kept(const io::Error& error) {
  note_snapshot_failure(error);
  state_machine_->image_not_kept(error);
}

// Applies go on meanwhile. Whatever fails leaves the snapshots and the log as they were; the next interval tries again.
void RaftServer::take_snapshot() {
  // No command yet, only what raft itself wrote: that there is nothing to take is no failure.
  if (state_machine_->applied_index() == 0 || core_->applied_index() == 0) return;
  const io::Instant begun = env_.now();
  auto writer = snapshots_->write(options_.snapshots.write_bytes_per_second);
  if (!writer.ok()) return note_snapshot_not_kept(writer.error());
  auto index = state_machine_->write_image(**writer, core_->applied_index());
  if (is_stopping_) return;
  if (!index.ok()) {
    (*writer)->abandon();
    if (is_stopping_) return;
    if (index.is(io::ErrorKind::busy)) {
      SOMETIMES("raft: snapshot deferred, the replay has not caught up");
      env_.log.info("raft: snapshot deferred", {{"reason", index.error().to_text()}});
      return;
    }
    return note_snapshot_failure(index.error());
  }
  // The state machine may have been written between applying an entry and telling of it.
  const bool is_told = wait_applied(*index, env_.after(kToldWithin));
  if (is_stopping_) return;
  const std::optional<SnapshotLabel> label = is_told ? core_->label_at(*index) : std::nullopt;
  const Index known = core_->snapshot().index;
  if (!label || *index < known || (*index == known && is_kept(known))) {
    SOMETIMES("raft: an image overtaken while it was written");
    (*writer)->abandon();
    return;
  }
  auto info = (*writer)->publish(*label);
  if (is_stopping_) return;
  if (!info.ok()) {
    if (!info.is(io::ErrorKind::exists)) note_snapshot_not_kept(info.error());
    return;
  }
  SOMETIMES("raft: snapshot taken");
  if (observer_ != nullptr) observer_->snapshot_taken(*label);
  ++counters_.snapshots_taken;
  last_snapshot_took_ = env_.now() - begun;
  env_.log.info("raft: snapshot taken", {{"index", label->index},
                                         {"term", label->term},
                                         {"bytes", info->bytes},
                                         {"took_ms", last_snapshot_took_ / std::chrono::milliseconds(1)}});
  if (label->index > core_->snapshot().index) core_->snapshot_available(*label);
  wake();
}

// Up to the older of two kept snapshots, minus what is kept for followers that are a little behind, and never past what the state
// machine has on its disk.
void RaftServer::compact_log() {
  if (is_disk_full_ || is_without_segment_) snapshots_->give_up_held();
  if (is_stopping_) return;
  // What an earlier one left on the disk goes without waiting for the next snapshot: on a full disk there may be none.
  if (log_->has_unused() && !note_compacted(log_->remove_unused())) return;
  const Index floor = snapshots_->compaction_floor();
  if (floor <= options_.snapshots.trailing) return;
  Index target = floor - options_.snapshots.trailing;
  if (target <= core_->log().base_index()) return;
  if (state_machine_->durable_index() < std::min(target, state_machine_->applied_index())) {
    io::Status flushed = state_machine_->flush();
    if (is_stopping_) return;
    if (!flushed.ok()) {
      SOMETIMES("raft: compaction waits for a flush that failed");
      env_.log.warn("raft: the log is not compacted, the state machine cannot be flushed", {{"reason", flushed.error().to_text()}});
      return;
    }
  }
  // No command lies between what is applied and what is durable then.
  if (state_machine_->durable_index() < state_machine_->applied_index()) target = std::min(target, state_machine_->durable_index());
  // During the flush an image may have taken the log's place, which the disk does not know yet.
  if (target <= core_->log().base_index()) return;
  const bool has_room = !is_disk_full_ && !is_without_segment_ && log_->disk_bytes() <= options_.snapshots.transfer_log_bytes_max;
  const Index base = core_->compact(target, has_room);
  if (base == 0) return;
  if (note_compacted(log_->compact(base))) {
    env_.log.info("raft: log compacted", {{"base_index", base}, {"last_index", core_->last_index()}, {"disk_bytes", log_->disk_bytes()}});
  }
}

// True when nothing is left to put away for want of room; the next interval tries again.
bool RaftServer::note_compacted(const io::Status& compacted) {
  if (is_stopping_) return false;
  if (compacted.ok()) return true;
  if (compacted.is(io::ErrorKind::no_space)) {
    SOMETIMES("raft: no room to compact the log");
  } else {
    fail(compacted.error());
  }
  return false;
}

// ---- Installing --------------------------------------------------------------------------------------------------------------

// False when the server has stopped. A full disk is waited for, as long as it takes; anything else leaves a state machine that nobody can
// bring up to date in this life. The image is held meanwhile: newer ones may come in, and they are installed after it.
bool RaftServer::install(const SnapshotLabel& label) {
  snapshots_->hold(label);
  const bool is_installed = install_held(label);
  if (is_stopping_) return false;
  snapshots_->release(label);
  return is_installed && !is_stopping_;
}

bool RaftServer::install_held(const SnapshotLabel& label) {
  bool is_reported = false;
  for (io::Duration pause = kInstallRetry;; pause = std::min(2 * pause, kInstallRetryMax)) {
    auto image = snapshots_->read(label);
    if (is_stopping_) return false;
    io::Status installed = image.ok() ? state_machine_->install_image(**image, label.index) : io::Status(image.error());
    if (is_stopping_) return false;
    if (installed.ok()) break;
    const bool may_pass = installed.is(io::ErrorKind::no_space) || installed.is(io::ErrorKind::busy);
    if (!may_pass || state_machine_->is_stopped()) {
      fail(installed.error());
      return false;
    }
    SOMETIMES("raft: an image waits for room to be installed");
    if (!std::exchange(is_reported, true)) {
      env_.log.warn("raft: an image cannot be installed yet", {{"index", label.index}, {"reason", installed.error().to_text()}});
    }
    io::sleep_for(pause);
    if (is_stopping_) return false;
  }
  SOMETIMES("raft: image installed");
  ++counters_.snapshots_installed;
  env_.log.info("raft: image installed", {{"index", label.index}, {"term", label.term}});
  if (observer_ != nullptr) observer_->image_installed(label);
  proposals_.covered(label.index);
  core_->snapshot_installed(label.index);
  if (observer_ != nullptr) observer_->applied(*core_);
  release_applied();
  return true;
}

// ---- For followers -----------------------------------------------------------------------------------------------------------

void RaftServer::take_for_others() {
  if (ready_.lacks_snapshot && env_.now() >= next_asked_snapshot_) {
    SOMETIMES("raft: a snapshot is taken because a server needs one");
    next_asked_snapshot_ = env_.after(kAskedSnapshotInterval);
    env_.log.info("raft: a server needs a snapshot and there is none, one is taken", {{"applied_index", core_->applied_index()}});
    must_take_snapshot_ = true;
    snapshot_wake_.notify_all();
  }
  for (const LogRead& read : ready_.log_reads) {
    scope_->spawn("raft/read/" + read.to, [this, read] { read_for(read); });
  }
  for (SnapshotWish& wish : ready_.snapshot_wishes) {
    const std::string name = "raft/snapshot/" + wish.offer.to;
    scope_->spawn(name, [this, wish = std::move(wish)] { send_snapshot(wish); });
  }
}

void RaftServer::read_for(const LogRead& read) {
  auto entries = log_->read(read.first, read.last, read.cost_bytes_max);
  if (is_stopping_) return;
  if (entries.is(io::ErrorKind::corrupt)) {
    // The next start would refuse it too. Another server, whose log is whole, is to lead meanwhile.
    SOMETIMES("raft: damage found in the log while it is served");
    fail(entries.error());
    return;
  }
  if (!entries.ok() && !entries.is(io::ErrorKind::not_found)) {
    SOMETIMES("raft: entries for a follower cannot be read");
    if (env_.now() >= next_read_log_) {
      next_read_log_ = env_.after(kReadLogInterval);
      env_.log.warn("raft: entries for a follower cannot be read", {{"server", read.to}, {"reason", entries.error().to_text()}});
    }
  }
  core_->log_read(read.to, read.first, entries.ok() ? std::move(*entries) : std::vector<Entry>());
  wake();
}

void RaftServer::send_snapshot(const SnapshotWish& wish) {
  const ServerId& to = wish.offer.to;
  wire::Hello hello;
  hello.from = options_.id;
  hello.to = to;
  hello.store = core_->store();
  hello.cluster = core_->cluster();
  hello.session = session_;
  hello.address = options_.address;
  hello.purpose = wire::Purpose::snapshot;
  SnapshotSender sender(env_, options_.link, options_.snapshots.send_bytes_per_second, *snapshots_);
  const auto is_wanted = [&] { return !is_stopping_ && core_->wants_snapshot_sent(to, wish.number); };
  io::Duration backoff = options_.link.backoff_min;
  bool has_arrived = false;
  const io::Instant begun = env_.now();
  snapshots_->hold(wish.offer.label);
  env_.log.info("raft: an image is sent", {{"server", to}, {"index", wish.offer.label.index}, {"term", wish.offer.label.term}});
  while (is_wanted() && !has_arrived) {
    io::Status sent = sender.send(hint(to).address, hello, wish.offer, is_wanted);
    if (is_stopping_) return;
    has_arrived = sent.ok();
    // Not needed: the core learns how far that server is. Replaced by a newer one: the core names that.
    if (has_arrived || sent.is(io::ErrorKind::exists)) break;
    const bool is_newest = wish.offer.label.index == core_->snapshot().index;
    if (sent.is(io::ErrorKind::not_found) && !is_newest) break;
    if (sent.is(io::ErrorKind::not_found) || sent.is(io::ErrorKind::corrupt)) {
      const bool is_replaced = replace_if_damaged(wish.offer.label);
      if (is_stopping_) return;
      if (is_replaced && core_->snapshot().index > wish.offer.label.index) break;
    }
    env_.log.info("raft: an image was not sent, or not all of it",
                  {{"server", to}, {"index", wish.offer.label.index}, {"reason", sent.error().to_text()}});
    io::sleep_for(backoff);
    backoff = std::min(backoff * 2, options_.link.backoff_max);
  }
  if (is_stopping_) return;
  (has_arrived ? counters_.snapshots_sent : counters_.snapshots_not_sent) += 1;
  env_.log.info("raft: the sending of an image has ended", {{"server", to},
                                                            {"index", wish.offer.label.index},
                                                            {"outcome", has_arrived ? "arrived" : "given up"},
                                                            {"took_ms", (env_.now() - begun) / std::chrono::milliseconds(1)}});
  core_->snapshot_sent(to, wish.number, has_arrived);
  wake();
  snapshots_->release(wish.offer.label);
}

}  // namespace raft
