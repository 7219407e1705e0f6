// Elections: timeouts, pre-vote, votes, terms.
#include <utility>

#include "io/check.h"
#include "io/defence.h"
#include "io/probe.h"
#include "raft/core.h"

namespace raft {

namespace {

bool is_request(MessageType type) {
  return type == MessageType::pre_vote_request || type == MessageType::vote_request;
}

bool is_pre_vote(MessageType type) {
  return type == MessageType::pre_vote_request || type == MessageType::pre_vote_reply;
}

}  // namespace

bool Core::can_campaign() const {
  if (is_rebuilding()) return false;
  // Also false for a server whose volume is not the one that the configuration has recorded: it is a stranger under an
  // old name, and its empty log has promised nothing.
  if (configuration().admits(identity_.id, identity_.store)) return true;
  // A configuration that this server is no voter of may never commit without it: if only its own log holds it, nobody
  // else can be elected. It may lead until then, without counting itself (Ongaro, section 4.2.2).
  const Index index = configurations_.current_index();
  return index > commit_ && configurations_.at(index - 1).admits(identity_.id, identity_.store);
}

bool Core::hears_leader() const {
  if (role_ == Role::leader) return true;
  return !leader_.empty() && now_ < leader_heard_ + settings_.election_timeout_min;
}

void Core::draw_election_deadline() {
  election_deadline_ = now_ + random_.between(settings_.election_timeout_min, settings_.election_timeout_max);
}

void Core::become_follower(Term term, const ServerId& leader, const char* reason) {
  NARAD_CHECK(term >= hard_state_.term, "terms never fall");
  const bool is_new_term = term > hard_state_.term;
  const bool was_follower = role_ == Role::follower;
  if (is_new_term) {
    hard_state_ = HardState{term, {}, hard_state_.is_rebuilding};
    is_hard_state_durable_ = false;
  } else if (!io::defence(io::Defence::same_term_stepdown_clears_vote)) {
    hard_state_.vote.clear();
    is_hard_state_durable_ = durable_hard_state_ == hard_state_;
  }
  if (role_ == Role::leader) {
    fail_reads();
    const bool is_handed_over = transfer_ && transfer_->is_told && is_new_term;
    if (transfer_) end_transfer(is_handed_over ? TransferEnd::Outcome::handed_over : TransferEnd::Outcome::lost);
    progress_.clear();
    log_reads_.clear();
    snapshot_wishes_.clear();
    must_send_ = false;
  }
  role_ = Role::follower;
  leader_ = leader;
  owes_ack_ = false;
  if (is_new_term) forget_leader_of_term();
  // A follower keeps its deadline: a candidate that cannot win must not postpone the elections of those who can.
  if (!was_follower) draw_election_deadline();
  note_role(reason);
}

// Brings this server to the message's term, or decides that the message is not to be looked at. Returns whether to go on.
bool Core::settle_term(const Message& message) {
  const bool is_election = is_request(message.type);
  if (is_election && hears_leader() && message.from != leader_ && !message.is_transfer) {
    // Who hears a leader helps nobody to depose it. The leader's own request is another matter: it has stepped down
    // and says so, and to ignore it could leave the cluster without anyone who can be elected.
    SOMETIMES("raft: vote refused, a leader is heard");
    note_vote_refused(message, "a leader is heard");
    if (message.type == MessageType::pre_vote_request) {
      Message reply = make(MessageType::pre_vote_reply, message.from);
      reply.campaign_term = message.campaign_term;
      send(std::move(reply));
    }
    return false;
  }
  // A pre-vote asks about a future term: it moves nobody's, and its answer counts whatever the voter's term is.
  if (message.type == MessageType::pre_vote_request) return true;
  if (message.term > hard_state_.term) {
    become_follower(message.term, message.type == MessageType::append_request ? message.from : ServerId(),
                    "saw a newer term");
    return true;
  }
  if (message.term == hard_state_.term || message.type == MessageType::pre_vote_reply) return true;
  if (message.type == MessageType::vote_request) return true;  // refused, with our term
  if (message.type == MessageType::append_request) {
    SOMETIMES("raft: append of a deposed leader refused");
    refuse_append(message);
  }
  return false;
}

// What was learned from a leader holds within its term.
void Core::forget_leader_of_term() {
  proven_ = 0;
  leader_round_ = 0;
  leader_sent_at_ns_ = 0;
  leader_session_ = 0;
  leader_contact_ns_ = 0;
  answered_.reset();
}

void Core::start_pre_vote() {
  NARAD_CHECK(can_campaign(), "only voters campaign");
  if (!could_serve()) {
    // It could not store its own vote, or would lead without applying: let others try.
    SOMETIMES("raft: no campaign while the disk or the applies stall, or an image is installed");
    leader_.clear();
    owes_ack_ = false;
    if (role_ != Role::follower) become_follower(hard_state_.term, ServerId(), "its disk or its applies stall");
    draw_election_deadline();
    return;
  }
  if (role_ == Role::pre_candidate || role_ == Role::candidate) SOMETIMES("raft: election timed out, tried again");
  role_ = Role::pre_candidate;
  leader_.clear();
  owes_ack_ = false;
  ballot_ = Ballot(ElectionKind::pre_vote, hard_state_.term + 1, configuration());
  draw_election_deadline();
  note_role("no leader heard");
  ballot_.record(ElectionKind::pre_vote, ballot_.term(), identity_.id, identity_.store, true);
  request_votes(MessageType::pre_vote_request, false);
  decide_ballot();
}

void Core::start_election(bool is_transfer) {
  hard_state_ = HardState{hard_state_.term + 1, identity_.id};
  is_hard_state_durable_ = false;
  role_ = Role::candidate;
  leader_.clear();
  forget_leader_of_term();
  ballot_ = Ballot(ElectionKind::vote, hard_state_.term, configuration());
  draw_election_deadline();
  owes_ack_ = false;
  note_role(is_transfer ? "the leader hands over to it" : "a quorum would vote for it");
  // Its own vote counts only once it is durable; the requests wait for that too, or a crash could bring this server
  // back in the old term with votes given to it under way.
  request_votes(MessageType::vote_request, is_transfer);
}

void Core::request_votes(MessageType type, bool is_transfer) {
  for (const Ballot::Voter& voter : ballot_.voters()) {
    if (voter.id == identity_.id) continue;
    Message request = make(type, voter.id);
    request.campaign_term = ballot_.term();
    request.is_transfer = is_transfer;
    request.log_index = log_.last_index();
    request.log_term = log_.last_term();
    send(std::move(request));
  }
}

// Why this server does not vote for the sender; null: it does. A pre-vote asks about a term to come, in which nobody has voted.
const char* Core::why_no_vote(const Message& message) const {
  const bool is_log_covered = log_.is_covered_by(message.log_index, message.log_term);
  const bool is_vote_free = hard_state_.vote.empty() || hard_state_.vote == message.from;
  if (is_rebuilding()) {
    SOMETIMES("raft: vote refused, this server is being rebuilt");
    return "this server is being brought up to date";
  }
  if (is_pre_vote(message.type)) {
    if (message.campaign_term <= hard_state_.term) return "the term is not a new one";
  } else {
    if (message.term != hard_state_.term || message.campaign_term != message.term) return "the term is over";
    if (!is_vote_free) {
      SOMETIMES("raft: vote refused, already given in this term");
      return "the vote of this term is given to another";
    }
    if (role_ == Role::leader || !leader_.empty()) return "this term has a leader";
  }
  if (!is_log_covered) {
    SOMETIMES("raft: vote refused, the candidate's log is behind");
    return "the candidate's log is behind";
  }
  return nullptr;
}

void Core::note_vote_refused(const Message& message, const char* reason) {
  vote_refusals_.push_back(VoteRefusal{message.from, message.campaign_term, is_pre_vote(message.type), reason});
}

void Core::on_vote_request(const Message& message) {
  const bool is_pre = is_pre_vote(message.type);
  Message reply = make(is_pre ? MessageType::pre_vote_reply : MessageType::vote_reply, message.from);
  reply.campaign_term = message.campaign_term;
  const char* refused = why_no_vote(message);
  reply.granted = refused == nullptr;
  if (refused != nullptr) note_vote_refused(message, refused);
  if (!is_pre && reply.granted) {
    if (role_ != Role::follower) become_follower(hard_state_.term, ServerId(), "votes for another");
    if (hard_state_.vote.empty()) {
      hard_state_.vote = message.from;
      is_hard_state_durable_ = durable_hard_state_ == hard_state_;
    }
    draw_election_deadline();
    if (!io::defence(io::Defence::vote_not_durable)) {
      messages_.push_back(std::move(reply));
      return;
    }
  }
  send(std::move(reply));
}

void Core::on_vote_reply(const Message& message) {
  if (role_ != Role::pre_candidate && role_ != Role::candidate) return;
  ElectionKind kind = is_pre_vote(message.type) ? ElectionKind::pre_vote : ElectionKind::vote;
  if (kind != ballot_.kind()) {
    SOMETIMES("raft: late pre-vote answer during an election");
    if (!io::defence(io::Defence::late_prevote_counts)) kind = ballot_.kind();
  }
  if (!ballot_.record(kind, message.campaign_term, message.from, message.from_store, message.granted)) {
    SOMETIMES("raft: vote answer not counted");
    return;
  }
  decide_ballot();
}

void Core::count_own_vote() {
  if (role_ != Role::candidate) return;
  if (ballot_.record(ElectionKind::vote, hard_state_.term, identity_.id, identity_.store, true)) decide_ballot();
}

void Core::decide_ballot() {
  switch (ballot_.result()) {
    case ElectionResult::pending:
      return;
    case ElectionResult::lost:
      become_follower(hard_state_.term, ServerId(), "a quorum refused it");
      return;
    case ElectionResult::won:
      if (ballot_.kind() == ElectionKind::pre_vote) {
        start_election(false);
      } else {
        become_leader();
      }
      return;
  }
}

void Core::become_leader() {
  NARAD_CHECK(role_ == Role::candidate && hard_state_.vote == identity_.id, "a leader was a candidate");
  NARAD_CHECK(!transfer_, "a transfer ends with the leadership it gives away");
  role_ = Role::leader;
  term_won_ = hard_state_.term;
  leader_ = identity_.id;
  reads_.clear();
  progress_.clear();
  track_servers();
  term_start_ = log_.last_index() + 1;
  append_first_entry();
  note_role("won the election");
  begin_round();
  heartbeat_deadline_ = now_ + settings_.heartbeat_interval;
  must_send_ = true;
}

}  // namespace raft
