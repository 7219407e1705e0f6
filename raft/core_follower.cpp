// Following: taking a leader's entries, cutting what conflicts, acknowledging what is durable.
#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/defence.h"
#include "io/probe.h"
#include "raft/core.h"

namespace raft {

void Core::on_append_request(Message&& message) {
  NARAD_CHECK(message.term == hard_state_.term, "the term is settled first");
  if (!are_entries_sound(message)) {
    SOMETIMES("raft: malformed append dropped");
    return;
  }
  if (contradicts_commit(message)) {
    SOMETIMES("raft: append against a committed entry dropped");
    return note_message_refused(message, "it contradicts an entry that is committed here");
  }
  follow(message);
  const bool are_applies_behind = is_installing() || applying_bytes_ >= settings_.applying_bytes_max;
  const std::uint64_t backlog_max =
      is_installing() ? std::min(settings_.installing_bytes_max, settings_.unapplied_bytes_max) : settings_.unapplied_bytes_max;
  if (!message.entries.empty() && are_applies_behind && unapplied_bytes_ >= backlog_max) {
    // The leader sends them again; heartbeats are answered meanwhile. Entries that only wait for their commit are taken in any
    // case while applies go on, or the one that commits them could find no room; an install ends by itself, so past its bound it
    // takes nothing, and while another voter is away too, commits wait for it.
    SOMETIMES("raft: entries dropped, this server's applies lag");
    return;
  }
  // What lies at or below the base is covered by committed entries, which every leader has: it matches.
  const bool is_below_base = message.log_index < log_.base_index();
  if (is_below_base) {
    SOMETIMES("raft: append begins below the log's base");
    // A leader that knows nothing of this server's image would otherwise probe below it for ever.
    proven_ = std::max(proven_, log_.base_index());
  }
  if (!is_below_base && !log_.matches(message.log_index, message.log_term)) {
    refuse_append(message);
    return;
  }
  const Index end = message.log_index + message.entries.size();
  const bool is_empty = message.entries.empty();
  take_entries(message);
  // Nothing beyond what this term's requests have proven is known to be the leader's, whatever else our log holds.
  if (end >= log_.base_index()) proven_ = std::max(proven_, std::min(end, log_.last_index()));
  commit_to(std::max(commit_, std::min(message.commit, proven_)));
  if (is_rebuilding()) end_rebuilding(message);
  if (!is_empty && acknowledged() < proven_) {
    owes_ack_ = true;  // answered by persisted()
    return;
  }
  // An advance of the commit index alone needs no answer: it would say what the last one said.
  if (is_empty && answered_ == Answered{leader_round_, proven_, acknowledged()}) return;
  accept_append(message.from, proven_);
}

void Core::follow(const Message& message) {
  NARAD_CHECK(role_ != Role::leader, "a term has one leader");
  NARAD_CHECK(leader_.empty() || leader_ == message.from, "a term has one leader");
  if (role_ != Role::follower || leader_.empty()) {
    become_follower(message.term, message.from, "heard the leader");
  }
  leader_heard_ = now_;
  draw_election_deadline();
  leader_round_ = std::max(leader_round_, message.round);
  leader_sent_at_ns_ = std::max(leader_sent_at_ns_, message.sent_at_ns);
  leader_session_ = message.session;
  heard_commit_ = std::max(heard_commit_, message.commit);
  if (message.echo_session == identity_.session && message.echo_ns <= now_ns()) {
    leader_contact_ns_ = std::max(leader_contact_ns_, message.echo_ns);
  }
}

bool Core::knows_commit_of_term() const {
  if (role_ == Role::leader) return has_committed_in_term();
  if (leader_.empty() || leader_contact_ns_ == 0 || heard_commit_ == 0) return false;
  return log_.term(commit_) == hard_state_.term;
}

// Any entry that an acknowledgement of a life before the loss helped to commit lies at or below the commit index of a leader that has
// heard this life, and has committed in its own term: earlier terms' leaders had it from such a quorum, and its own terms'
// acknowledgements of earlier lives count no more. So whoever holds everything up to there may vote again.
void Core::end_rebuilding(const Message& message) {
  const Index goal = message.commit;
  const bool has_heard_this_life = message.echo_session == identity_.session;
  if (!hard_state_.is_rebuilding || !has_heard_this_life || goal == 0 || log_.term(goal) != message.term) return;
  if (std::min(proven_, durable_) < goal || is_installing()) return;
  SOMETIMES("raft: a rebuilt server votes again");
  hard_state_.is_rebuilding = false;
  is_hard_state_durable_ = durable_hard_state_ == hard_state_;
}

bool Core::are_entries_sound(const Message& message) const {
  Index index = message.log_index;
  Term term = message.log_term;
  for (const Entry& entry : message.entries) {
    if (entry.index != index + 1 || entry.term < term || entry.term > message.term) return false;
    if (entry.type == EntryType::configuration && !decode_configuration(entry.bytes())) return false;
    index = entry.index;
    term = entry.term;
  }
  return true;
}

// Whether one of its entries is another than the one that this server knows to be committed there. No leader has such an entry.
bool Core::contradicts_commit(const Message& message) const {
  for (const Entry& entry : message.entries) {
    if (entry.index > commit_) return false;
    if (entry.index >= log_.base_index() && !log_.matches(entry.index, entry.term)) return true;
  }
  return false;
}

void Core::take_entries(Message& message) {
  const Index end = message.log_index + message.entries.size();
  std::size_t next = 0;
  while (next < message.entries.size()) {
    const Entry& entry = message.entries[next];
    if (entry.index > log_.last_index()) break;
    if (entry.index > log_.base_index() && !log_.matches(entry.index, entry.term)) {
      cut_log(entry.index);
      break;
    }
    ++next;
  }
  if (next < message.entries.size()) {
    for (; next < message.entries.size(); ++next) append_to_log(std::move(message.entries[next]));
    append_term_ = hard_state_.term;
    return;
  }
  // Every entry was here already. A longer log than the request's is no conflict: the request may be an old one.
  if (end < log_.last_index()) {
    SOMETIMES("raft: append of entries already held, with more behind them");
    if (!io::defence(io::Defence::stale_append_truncates) && end >= commit_ && end >= log_.base_index()) {
      cut_log(end + 1);
      proven_ = std::min(proven_, log_.last_index());
    }
  }
}

void Core::cut_log(Index from) {
  NARAD_CHECK(from > commit_, "a committed entry is never cut");
  SOMETIMES("raft: conflicting suffix cut");
  for (Index index = from; index <= log_.last_index(); ++index) unapplied_bytes_ -= log_.at(index).cost_bytes();
  log_.truncate(from);
  if (configurations_.truncate(from)) SOMETIMES("raft: configuration undone by a cut");
  durable_ = std::min(durable_, log_.last_index());
  handed_ = std::min(handed_, log_.last_index());
  watch_disk(false);
}

Index Core::acknowledged() const {
  return io::defence(io::Defence::ack_before_sync) ? std::min(durable_, proven_) : proven_;
}

void Core::accept_append(const ServerId& to, Index proven) {
  Message reply = make(MessageType::append_reply, to);
  reply.log_index = proven;
  reply.match = std::min(acknowledged(), proven);
  reply.round = leader_round_;
  reply.echo_ns = leader_sent_at_ns_;
  reply.echo_session = leader_session_;
  owes_ack_ = reply.match < proven_;
  answered_ = Answered{reply.round, proven, reply.match};
  send(std::move(reply));
}

void Core::refuse_append(const Message& request) {
  Message reply = make(MessageType::append_reply, request.from);
  reply.rejected = true;
  reply.log_index = request.log_index;
  if (request.term == hard_state_.term) {
    SOMETIMES("raft: append refused, the logs do not meet there");
    reply.hint_index = std::max(commit_, log_.find_possible_match(request.log_index, request.log_term));
    reply.hint_term = log_.term(reply.hint_index).value();
    reply.round = leader_round_;
    reply.echo_ns = leader_sent_at_ns_;
    reply.echo_session = leader_session_;
  }
  send(std::move(reply));
}

}  // namespace raft
