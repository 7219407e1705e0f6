// The loops of the server: the core's own, the disk's, the state machine's, and the one that prepares segments.
#include <algorithm>
#include <iterator>
#include <utility>

#include "io/check.h"
#include "io/probe.h"
#include "raft/server.h"

namespace raft {

namespace {
// How long a stop waits for a write or an apply under way before it gives it up.
constexpr io::Duration kStopGrace = std::chrono::seconds(2);
constexpr io::Duration kFullLogInterval = std::chrono::minutes(1);
// A state machine keeps what a batch has changed beside its database until the batch is written: several hundred entries together cost it
// less each than a few, and less than a thousand (bench/metastore, apply).
constexpr std::size_t kApplyEntriesMax = 256;
}  // namespace

void RaftServer::run() {
  NARAD_CHECK(core_ != nullptr, "a server is opened before it runs");
  struct Ended {
    RaftServer& server;
    ~Ended() {
      server.scope_ = nullptr;
      server.stop();
    }
  } ended{*this};
  io::with_scope([this](io::Scope& scope) {
    scope_ = &scope;
    std::vector<io::Task> workers;
    workers.push_back(scope.spawn("raft/persist", [this] { persist_loop(); }));
    workers.push_back(scope.spawn("raft/apply", [this] { apply_loop(); }));
    workers.push_back(scope.spawn("raft/segments", [this] { prepare_loop(); }));
    workers.push_back(scope.spawn("raft/snapshots", [this] { snapshot_loop(); }));
    follow_configuration();
    for (const auto& [from, incoming] : incoming_) {
      SOMETIMES("raft: a server had connected before this one ran");
      answer_incoming(from, incoming.address);
    }
    core_loop();
    scope_ = nullptr;
    for (auto& [id, link] : links_) link.task.cancel();
    const io::Instant deadline = env_.after(kStopGrace);
    for (io::Task& worker : workers) worker.join(deadline);
    scope.cancel();
  });
}

void RaftServer::core_loop() {
  while (!is_stopping_) {
    const io::Instant now = env_.now();
    if (now >= core_->next_deadline()) {
      core_->tick(now);
      has_inputs_ = true;
    }
    if (now >= give_up_at_) {
      give_up_at_ = io::kNever;
      const Term led = is_leading_ ? led_term_ : led_term_ + 1;
      proposals_.end_older(led, ProposalWait::End::unknown);
    }
    if (has_inputs_) {
      drive();
      continue;
    }
    sleeps_until_ = next_due();
    inputs_.wait(sleeps_until_);
    sleeps_until_ = io::Instant{};
  }
}

// ---- Disk ----------------------------------------------------------------------------------------------------------------------

void RaftServer::persist_loop() {
  while (!is_stopping_) {
    if (pending_.is_empty()) {
      pending_added_.wait();
      continue;
    }
    PendingWrite write = std::exchange(pending_, PendingWrite());
    is_persisting_ = true;
    if (!persist(write)) return;
    is_persisting_ = false;
    // In this order: the core is told, then what waited for it leaves, then what follows from it.
    send_all(write.messages);
    drive();
  }
}

// False when the server has stopped.
bool RaftServer::persist(PendingWrite& write) {
  if (write.hard_state) {
    io::Status saved = stable_->save(*write.hard_state, core_->cluster(), log_->last_batch());
    if (is_stopping_) return false;
    if (!saved.ok()) {
      SOMETIMES("raft: a failed write or sync of term and vote stops the server");
      fail(saved.error());
      return false;
    }
    ++counters_.hard_state_syncs;
    log_->set_stable_record(stable_->record().sequence);
    core_->hard_state_persisted(*write.hard_state);
    hard_state_saved_.notify_all();
    if (observer_ != nullptr) observer_->persisted(*core_);
  }
  if (write.log_reset) {
    const LogReset reset = *write.log_reset;
    env_.log.info("raft: the log begins anew behind an image", {{"index", reset.index}, {"term", reset.term}});
    if (!until_there_is_room(reset.index, [&] { return log_->reset(reset.index, reset.term); })) return false;
    core_->log_reset(reset.index);
    if (observer_ != nullptr) observer_->persisted(*core_);
  }
  if (!write.entries.empty()) {
    if (!append_until_there_is_room(write.entries)) return false;
    counters_.log_syncs = log_->syncs();
    counters_.entries_appended += write.entries.size();
    core_->persisted(write.append_term, write.entries.back().index);
    if (observer_ != nullptr) observer_->persisted(*core_);
    if (log_->wants_segment()) segment_wanted_.notify_one();
  }
  return true;
}

// Nothing is acknowledged while the disk is full; the same entries are tried again, so the log never gets a hole and no index is
// given to something else.
bool RaftServer::append_until_there_is_room(const std::vector<Entry>& entries) {
  return until_there_is_room(entries.front().index, [&] { return log_->append(entries); });
}

// False when the server has stopped.
bool RaftServer::until_there_is_room(Index first, const std::function<io::Status()>& write) {
  io::Instant next_log{};
  for (;;) {
    io::Status written = write();
    if (is_stopping_) return false;
    if (written.ok()) {
      if (is_disk_full_) {
        SOMETIMES("raft: append goes on after a full disk");
        env_.log.info("raft: the disk has room again, the log goes on", {{"last_index", log_->last_index()}});
      }
      is_disk_full_ = false;
      return true;
    }
    if (!written.is(io::ErrorKind::no_space)) {
      SOMETIMES("raft: a failed write or sync of the log stops the server");
      fail(written.error());
      return false;
    }
    SOMETIMES("raft: append found the disk full");
    if (!std::exchange(is_disk_full_, true)) want_room();
    if (env_.now() >= next_log) {
      next_log = env_.after(kFullLogInterval);
      env_.log.warn("raft: the disk is full, entries wait and are not acknowledged",
                    {{"first_index", first}, {"reason", written.error().to_text()}});
    }
    io::sleep_for(options_.no_space_retry);
    if (is_stopping_) return false;
  }
}

// The next interval of snapshots may be minutes away.
void RaftServer::want_room() {
  must_compact_ = true;
  snapshot_wake_.notify_all();
}

void RaftServer::prepare_loop() {
  while (!is_stopping_) {
    if (!log_->wants_segment()) {
      segment_wanted_.wait();
      continue;
    }
    io::Status prepared = log_->prepare_segment();
    const bool was_without = std::exchange(is_without_segment_, prepared.is(io::ErrorKind::no_space));
    if (is_without_segment_ && !was_without) want_room();
    if (prepared.ok() || is_stopping_) continue;
    if (!prepared.is(io::ErrorKind::no_space)) {
      fail(prepared.error());
      return;
    }
    SOMETIMES("raft: no room to prepare a segment");
    io::sleep_for(options_.no_space_retry);
  }
}

// ---- State machine -------------------------------------------------------------------------------------------------------------

void RaftServer::apply_loop() {
  while (!is_stopping_) {
    if (to_apply_.empty() && !to_install_) {
      to_apply_added_.wait();
      continue;
    }
    if (to_apply_.empty()) {
      const SnapshotLabel label = *std::exchange(to_install_, std::nullopt);
      if (!install(label)) return;
      drive();
      continue;
    }
    if (!apply_in_pieces(std::exchange(to_apply_, {}))) return;
  }
}

// False when the server has stopped.
bool RaftServer::apply_in_pieces(std::vector<Entry> entries) {
  for (std::size_t at = 0; at < entries.size(); at += kApplyEntriesMax) {
    const auto from = std::make_move_iterator(entries.begin() + static_cast<std::ptrdiff_t>(at));
    const std::vector<Entry> batch(from, from + static_cast<std::ptrdiff_t>(std::min(kApplyEntriesMax, entries.size() - at)));
    if (!apply_batch(batch)) return false;
    drive();
  }
  return true;
}

// False when the server has stopped.
bool RaftServer::apply_batch(const std::vector<Entry>& batch) {
  const auto is_command = [](const Entry& entry) { return entry.type == EntryType::command; };
  const std::size_t commands = static_cast<std::size_t>(std::count_if(batch.begin(), batch.end(), is_command));
  std::vector<std::string> answers;
  if (commands > 0) {
    std::vector<Entry> only_commands;
    if (commands < batch.size()) std::copy_if(batch.begin(), batch.end(), std::back_inserter(only_commands), is_command);
    auto applied = state_machine_->apply(commands < batch.size() ? only_commands : batch);
    if (is_stopping_) return false;
    if (!applied.ok()) {
      fail(applied.error());
      return false;
    }
    answers = std::move(*applied);
    NARAD_CHECK(answers.size() == commands, "the state machine answers each command once");
  }
  std::size_t next = 0;
  for (const Entry& entry : batch) {
    std::string answer = is_command(entry) ? std::move(answers[next++]) : std::string();
    if (is_command(entry)) last_command_applied_ = entry.index;
    if (observer_ != nullptr) observer_->entry_applied(entry, answer);
    proposals_.applied(entry, std::move(answer));
  }
  counters_.entries_applied += batch.size();
  core_->applied(batch.back().index);
  if (observer_ != nullptr) observer_->applied(*core_);
  release_applied();
  return true;
}

}  // namespace raft
