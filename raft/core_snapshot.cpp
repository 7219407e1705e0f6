// Snapshots: labels, compaction, images on their way to and from other servers, entries that only the disk still holds.
#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/probe.h"
#include "raft/core.h"

namespace raft {

const char* to_string(OfferAnswer::Verdict verdict) {
  switch (verdict) {
    case OfferAnswer::Verdict::wanted: return "wanted";
    case OfferAnswer::Verdict::outdated: return "outdated";
    case OfferAnswer::Verdict::refused: return "refused";
  }
  return "unknown";
}

// --- this server's own ---

std::optional<SnapshotLabel> Core::label_at(Index index) const {
  NARAD_CHECK(index <= applied_, "an image holds what was applied");
  const std::optional<Term> term = log_.term(index);
  if (index == 0 || !term || index < snapshot_.index) return std::nullopt;
  if (configurations_.at(index).servers.empty()) return std::nullopt;  // not known here: nobody could go by such an image
  return SnapshotLabel{index, *term, configurations_.index_at(index), configurations_.at(index)};
}

void Core::snapshot_available(const SnapshotLabel& label) {
  if (label.index <= snapshot_.index) {
    SOMETIMES("raft: a snapshot is not newer than the one known");
    return;
  }
  NARAD_CHECK(label.index <= applied_ && log_.matches(label.index, label.term), "a label was made from this server's log");
  snapshot_ = label;
}

Index Core::compact(Index index, bool spares_transfers) {
  Index limit = std::min({index, snapshot_.index, applied_, durable_});
  for (const auto& [id, progress] : progress_) {
    const Index spared = progress.spared_from();
    if (!spares_transfers || spared == 0 || spared >= limit) continue;
    // One that is gone may be gone for good.
    const bool is_heard = now_ns() - progress.contact_ns <= settings_.election_timeout_max.count();
    if (progress.state() != Progress::State::snapshot && !is_heard) continue;
    SOMETIMES("raft: compaction stops at an image under way");
    limit = spared;
  }
  if (limit <= log_.base_index()) return log_.base_index();
  log_.compact(limit);
  configurations_.compact(limit);
  for (auto& [id, progress] : progress_) {
    if (progress.state() != Progress::State::snapshot && progress.next() <= limit) {
      SOMETIMES("raft: the log is compacted past what a server has");
      progress.restart(limit);
    }
  }
  return limit;
}

// --- to other servers ---

void Core::ask_for_snapshot(const ServerId& id, Progress& progress) {
  if (snapshot_.index < log_.base_index()) {
    // It was lost (raft/restart.h: held, replayed_onto). Another is to be taken, for the next try.
    SOMETIMES("raft: a server needs an image and there is none");
    progress.restart(log_.base_index());
    lacks_snapshot_ = true;
    return;
  }
  SOMETIMES("raft: a server needs an image");
  progress.begin_snapshot(snapshot_.index, ++snapshots_asked_);
  SnapshotOffer offer{identity_.id, id, hard_state_.term, identity_.store, cluster_, identity_.session, snapshot_};
  snapshot_wishes_.push_back(SnapshotWish{snapshots_asked_, std::move(offer)});
}

void Core::snapshot_sent(const ServerId& to, std::uint64_t number, bool has_arrived) {
  if (!wants_snapshot_sent(to, number)) {
    SOMETIMES("raft: the end of a transfer that nobody waits for");
    return;
  }
  if (!has_arrived) SOMETIMES("raft: an image did not arrive");
  progress_.find(to)->second.end_snapshot(has_arrived, log_.base_index());
  must_send_ = true;
}

bool Core::wants_snapshot_sent(const ServerId& to, std::uint64_t number) const {
  const Progress* progress = find_progress(to);
  return role_ == Role::leader && progress != nullptr && progress->awaits_snapshot(number);
}

void Core::ask_for_read(const ServerId& id, Progress& progress) {
  if (progress.is_reading()) return;
  SOMETIMES("raft: entries for a server are read from the disk");
  progress.begin_read();
  const Index last = std::min<Index>(log_.held_from() - 1, progress.next() + settings_.append_entries_max - 1);
  log_reads_.push_back(LogRead{id, progress.next(), last, settings_.append_bytes_max});
}

void Core::log_read(const ServerId& to, Index first, std::vector<Entry>&& entries) {
  const auto at = progress_.find(to);
  if (role_ != Role::leader || at == progress_.end()) return;
  Progress& progress = at->second;
  must_send_ = true;
  if (!progress.end_read(first)) {
    SOMETIMES("raft: what was read for a server is not what it needs now");
    return;
  }
  if (entries.empty()) {
    // Tried again after a heartbeat.
    progress.restart(log_.base_index());
    progress.sent_probe();
    return;
  }
  Message request = make_append(to, progress);
  std::uint64_t cost = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    NARAD_CHECK(entries[i].index == first + i && log_.matches(entries[i].index, entries[i].term),
                "the disk gives back what the log holds");
    cost += entries[i].cost_bytes();
  }
  progress.sent_entries(entries.back().index, cost);
  request.entries = std::move(entries);
  send(std::move(request));
}

// --- from a leader ---

OfferAnswer Core::offer_snapshot(const SnapshotOffer& offer, io::Instant now) {
  observe_time(now);
  // Judged as the append that it stands for.
  Message head;
  head.type = MessageType::append_request;
  head.from = offer.from;
  head.to = offer.to;
  head.term = offer.term;
  head.from_store = offer.from_store;
  head.cluster = offer.label.configuration.cluster;
  head.session = offer.session;
  const auto refuse = [this](const char* reason) {
    SOMETIMES("raft: image refused");
    return OfferAnswer{OfferAnswer::Verdict::refused, hard_state_.term, 0, reason};
  };
  const bool is_sound = offer.label.index > 0 && offer.label.term <= offer.term && offer.cluster == head.cluster;
  if (!is_sound) return refuse("its label is not sound");
  if (!is_plausible(head)) return refuse("it is of another cluster, or not for this server");
  if (const char* reason = why_not_heard(head)) {
    note_message_refused(head, reason);
    return refuse(reason);
  }
  if (!settle_term(head)) return refuse("its term is over");
  follow(head);
  if (!holds(offer.label)) return OfferAnswer{OfferAnswer::Verdict::wanted, hard_state_.term, 0, ""};
  SOMETIMES("raft: image outdated when it was offered");
  commit_to(std::max(commit_, offer.label.index));
  prove_up_to_commit();
  return OfferAnswer{OfferAnswer::Verdict::outdated, hard_state_.term, std::min(acknowledged(), proven_), ""};
}

// Whether this server's log leads to the image's index by itself.
bool Core::holds(const SnapshotLabel& label) const {
  return label.index <= commit_ || log_.matches(label.index, label.term);
}

// Every leader holds what is committed, so the logs match up to there; the current one is told.
void Core::prove_up_to_commit() {
  if (role_ == Role::leader || role_ == Role::candidate) return;
  proven_ = std::max(proven_, commit_);
  if (!leader_.empty()) accept_append(leader_, proven_);
}

void Core::snapshot_received(const SnapshotLabel& label) {
  NARAD_CHECK(label.index > 0, "an image has an index");
  if (role_ == Role::leader && label.index >= log_.base_index() && !log_.matches(label.index, label.term)) {
    // A leader's log holds what is committed: whoever sent that image led no sound cluster.
    SOMETIMES("raft: an image that a leader's log does not lead to is ignored");
    return;
  }
  if (label.index > snapshot_.index) snapshot_ = label;
  if (role_ == Role::leader) return;
  if (holds(label)) {
    SOMETIMES("raft: image not needed any more when it had arrived");
    commit_to(std::max(commit_, label.index));
  } else {
    reset_to(label);
  }
  prove_up_to_commit();
}

// The log begins anew at the image. What was handed out for apply before is still being applied; the image comes after it.
void Core::reset_to(const SnapshotLabel& label) {
  SOMETIMES("raft: an image takes the log's place");
  NARAD_CHECK(label.index > commit_, "an image at or below the commit index is not needed");
  if (role_ != Role::follower) become_follower(hard_state_.term, leader_, "takes an image");
  log_.reset(label.index, label.term);
  configurations_ = ConfigurationLog(label.configuration_index, label.configuration);
  unapplied_bytes_ = 0;
  append_term_ = hard_state_.term;
  handed_ = stored_last_ = durable_ = label.index;
  commit_to(label.index);
  log_reset_ = LogReset{label.index, label.term};
  reset_pending_ = label.index;
  to_install_ = label;
  watch_disk(true);
}

void Core::log_reset(Index index) {
  NARAD_CHECK(index <= log_.base_index(), "only a reset that was handed out is carried out");
  if (index != reset_pending_ || log_reset_) return;  // another one follows
  reset_pending_ = 0;
  watch_disk(true);
}

bool Core::can_install() const {
  return to_install_ && installing_ == 0 && reset_pending_ == 0 && applying_ == applied_;
}

void Core::snapshot_installed(Index index) {
  NARAD_CHECK(index != 0 && index == installing_, "only an image that was handed out is installed");
  NARAD_CHECK(index >= applied_ && applying_ == applied_, "an image is never older than what is applied");
  installing_ = 0;
  applied_ = applying_ = index;
  applying_bytes_ = 0;
  watch_applies(true);
}

}  // namespace raft
