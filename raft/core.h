// The consensus protocol as a pure state machine: Raft with pre-vote, check-quorum, stickiness, pipelined replication,
// a leader that writes its disk in parallel with its followers, and store identities.
//
// Core does no IO, reads no clock, waits for nothing and calls nobody. Whoever drives it (raft/server in a node, a test's
// hand) tells it what happened and when, and then takes from ready() what must be done:
//
//     core.tick(now) | core.step(message, now) | core.propose(...) | core.read_index(...)
//     while (core.has_ready()) { core.ready(out); act on out; }
//     ... later, when the disk or the state machine is done:
//     core.hard_state_persisted(...) | core.log_reset(...) | core.persisted(...) | core.applied(...)
//     | core.snapshot_installed(...)
//
// The driver's duties, on which safety rests:
//  1. What ready() hands out for the disk is written in the order of the Readys; within one Ready the hard state first,
//     then the log's reset, then the entries (cutting the stored log at entries.front().index where it reaches that far).
//     Several Readys may share one sync; entries that a later reset throws away need not be written at all.
//  2. `messages_after_persist` leave only when everything that this Ready and those before it handed out for the disk is
//     durable AND has been reported (by hard_state_persisted(), log_reset(), persisted()). `messages` may leave at once. Any message
//     may be dropped; to keep their order to one server helps speed, not safety.
//  3. hard_state_persisted(), log_reset(), persisted(), snapshot_available() and snapshot_received() are called only for
//     what a crash cannot take back any more.
//  4. `committed` is applied in order, each entry once; what a Ready hands out for apply is already durable here.
//  5. `install` replaces the state machine's state as a whole by the image of that label. It comes alone: everything handed out
//     for apply before was reported applied, the log's reset is durable, and nothing is handed out for apply until
//     snapshot_installed().
//
// Snapshots. The driver takes an image, labels it with label_at() and, once it is durable, reports it by
// snapshot_available(); then compact() says how far the log may be cut in front. A follower that needs entries from before the
// log's base is sent the newest image: Ready::snapshot_wishes, answered by snapshot_sent(). At the other end
// offer_snapshot() judges the head of the image, and snapshot_received() takes it when it is durable in the snapshot store.
// It is installed only if this server's own log does not lead to its index; then the log begins anew at the label:
//     image durable -> snapshot_received() -> Ready::log_reset -> log_reset() -> Ready::install -> snapshot_installed()
// Term and vote are untouched by all this. A crash anywhere in between is repaired before the next Core is made (InitialState).
//
// Memory. Of applied entries only the newest are kept (tail_bytes_max); a follower that needs older ones makes the core ask for
// them: Ready::log_reads, answered by log_read(). Everything kept for a slow or dead server is a window of requests and
// one such read.
//
// After a restart a new Core is made from what the disk holds (InitialState). Everything else is learned again.
//
// Proposals carry no waiter: propose() returns the term and the index of the first entry, and the driver matches the entries
// that come out as committed by *both*. An entry of another term that comes out at a waiter's index means that the
// waiter's own entry will never be applied. Until then its fate is unknown: a lost leadership, even a cut of the entry from
// this server's log, proves nothing, since another server may hold it and still bring it to commit.
//
// Sources: Ongaro's dissertation (chapters 3, 4, 6, 9, 10.2.1: parallel disk write), design/architecture.md "raft".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/random.h"
#include "io/time.h"
#include "raft/configuration.h"
#include "raft/log_view.h"
#include "raft/progress.h"
#include "raft/quorum.h"
#include "raft/snapshot_label.h"
#include "raft/types.h"

namespace raft {

// A message may raise a server's term by no more than this: so nobody can use the terms up, with few messages or many, and a cluster of
// 2^32 elections has never been. A server that joins, in term 0 and without a configuration, has none to compare with and takes any up
// to kTermOfJoinerMax.
inline constexpr Term kTermLeapMax = Term{1} << 32;
inline constexpr Term kTermOfJoinerMax = Term{1} << 61;

struct Settings {
  io::Duration heartbeat_interval = std::chrono::milliseconds(50);
  // A follower that hears no leader campaigns after a time drawn from [min, max]. min is also how long it refuses votes
  // after hearing a leader, max how long a leader goes on without contact to a quorum.
  io::Duration election_timeout_min = std::chrono::milliseconds(400);
  io::Duration election_timeout_max = std::chrono::milliseconds(700);
  // Requests with entries that may be unanswered at one server.
  FlightLimits flight;
  // One append request: as many entries as fit, at least one.
  std::uint64_t append_bytes_max = 256u << 10;
  std::uint32_t append_entries_max = 4096;
  // A single payload above this is refused by propose().
  std::uint64_t payload_bytes_max = 8u << 20;
  // propose() refuses while the entries above the leader's own applied index cost this much or more. A follower whose state
  // machine lags takes no more entries past this either: it drops them, as if they had been lost on the way.
  std::uint64_t unapplied_bytes_max = 64u << 20;
  // The same of a follower that installs an image, which may take minutes: what comes after the image waits at the leader rather
  // than in this memory.
  std::uint64_t installing_bytes_max = 2u << 20;
  // Entries kept in memory for followers after they were applied here. Those above the applied index stay in any case.
  std::uint64_t tail_bytes_max = 16u << 20;
  // Committed entries handed out and not yet reported applied: no more are handed out past this.
  std::uint64_t applying_bytes_max = 4u << 20;
  // Reads waiting for their round: more are refused.
  std::uint32_t pending_reads_max = 65536;
  // No change of the configuration may leave fewer voters than this.
  std::uint32_t voters_min = 1;
  // A leader whose disk or state machine has made no progress on what it was handed for this long no longer leads: it
  // begins to hand over one longest election timeout before, and steps down at the latest then.
  io::Duration stall_bound = std::chrono::seconds(2);
};

// Who this server is. Nothing of it changes while the Core lives.
struct Identity {
  ServerId id;
  StoreId store;              // of its data directory; known
  std::uint64_t session = 0;  // random, not 0, drawn at each start
  ClusterId new_cluster;      // random; becomes the cluster's id if this server is the first leader ever
};

// What the disk holds at start, as a whole that fits together. Before it makes a Core, the driver brings that about:
//  - The log does not hold (snapshot.index, snapshot.term), being shorter or having another entry there: it is reset to the
//    snapshot, as a crash between snapshot_received() and log_reset() left undone.
//  - The state machine is behind the log's base: the newest image is restored first.
//  - hard_state.term is below snapshot.term (and so perhaps below the log's base): nothing to do. The image may be durable before
//    the term it was offered in; the core goes on in that term, and hands it out.
//  - The log has a base and no snapshot reaches it: the state machine does (raft/restart.h). The configuration at the base is not
//    known then: until an entry of the log or a leader tells, this server belongs to no cluster.
struct InitialState {
  HardState hard_state;
  ClusterId cluster;       // seen committed in an earlier life; zero: not yet
  Index base_index = 0;    // (0, 0) unless a snapshot covers a prefix
  Term base_term = 0;
  SnapshotLabel snapshot;  // the newest durable one; index 0: none. Else base_index <= snapshot.index <= the log's end
  // In force before the first entry, from bootstrap; empty: this server belongs to no cluster yet. Not looked at when the log has a
  // base: the snapshot knows.
  Configuration base_configuration;
  // Entries base_index + 1 to older_last that need not be in memory (all of them applied): where each term begins, and the
  // configurations among them. older_last 0: there are none.
  Index older_last = 0;
  std::vector<TermRun> older_terms;
  std::vector<std::pair<Index, Configuration>> older_configurations;
  std::vector<Entry> entries;  // the rest of the log, all durable
  Index applied = 0;           // the state machine's own index, at least base_index, at most the log's end
};

enum class Refusal : std::uint8_t {
  none = 0,
  not_leader,        // ask `leader` (empty: none known)
  too_much_backlog,  // the state machine lags: try later
  payload_too_large,
  too_many_reads,
  transfer_in_progress,  // leadership is being handed over: try again, elsewhere if need be
  not_committed_in_term, // no entry of this leader's own term has committed yet: try again
  change_in_progress,    // a configuration that is not committed yet is in force: try again
  already_so,            // nothing to change
  not_a_member,
  invalid_change,        // see ChangeVerdict::invalid
  not_caught_up,         // the server to promote or to lead is behind or silent: try again
  no_live_majority,      // the voters that would remain are too few, or most of them are silent, or lack what came before this term
  not_a_voter,           // only a voter can lead
};

const char* to_string(Refusal refusal);

struct ProposeResult {
  Refusal refusal = Refusal::none;
  Term term = 0;    // accepted: of the new entries
  Index first = 0;  // accepted: index of the first payload; the others follow
  ServerId leader;  // not_leader: the leader this server follows, if any
};

struct ChangeResult {
  Refusal refusal = Refusal::none;
  Term term = 0;    // accepted: of the configuration entry. The change is made once the entry of this term at this index
  Index index = 0;  // is committed; until then its fate is unknown, as a proposal's
  ServerId leader;  // not_leader: the leader this server follows, if any
};

struct TransferStart {
  Refusal refusal = Refusal::none;
  ServerId to;      // accepted: who is to lead
  ServerId leader;  // not_leader: the leader this server follows, if any
};

// How an accepted transfer ended. Each ends within election_timeout_max, and with its leader's term.
struct TransferEnd {
  enum class Outcome : std::uint8_t {
    handed_over,  // the other server was told to campaign, and this one has since seen a newer term
    timed_out,    // this server goes on leading (unless it had a reason of its own to go)
    lost,         // leadership was lost before the other server was told
  };
  ServerId to;
  Term term = 0;  // of this leader
  Outcome outcome = Outcome::lost;
};

const char* to_string(TransferEnd::Outcome outcome);

// For operators: a request for a vote that this server did not grant.
struct VoteRefusal {
  ServerId candidate;
  Term term = 0;  // that it campaigns for
  bool is_pre_vote = false;
  const char* reason = "";
};

// For operators: a message from another server that cannot be in a sound cluster, and was dropped. `term` is the message's.
struct MessageRefusal {
  ServerId from;
  Term term = 0;
  const char* reason = "";
};

struct ReadRefusal {
  Refusal refusal = Refusal::none;
  ServerId leader;
};

// The answer to read_index().
struct ReadResult {
  std::uint64_t context = 0;
  bool confirmed = false;  // false: leadership was lost first; nothing is known
  Index index = 0;         // confirmed: a state machine that has applied this far sees every write acknowledged before
};

// A change of role, term or followed leader, for log lines and metrics.
struct RoleChange {
  Role role = Role::follower;
  Term term = 0;
  ServerId leader;     // empty: unknown
  const char* reason;  // static text
};

// The stored log is to be replaced by an empty one whose base is (index, term): an image covers everything up to there, and what
// the log holds does not lead to it.
struct LogReset {
  Index index = 0;
  Term term = 0;
};

// Entries first..last, or at least the first of them and as many as `cost_bytes_max` allows, are to be read from the stored log
// for `to`. Each is answered by log_read(), with no entries if it failed.
struct LogRead {
  ServerId to;
  Index first = 0;
  Index last = 0;
  std::uint64_t cost_bytes_max = 0;
};

// The image with offer.label is to be sent to offer.to. Answered by snapshot_sent() with `number`, whatever becomes of it.
struct SnapshotWish {
  std::uint64_t number = 0;  // of the transfer, unique in this core's life
  SnapshotOffer offer;
};

// What the receiver says to an offer.
struct OfferAnswer {
  enum class Verdict : std::uint8_t {
    wanted,    // send the image
    outdated,  // this server's log leads there by itself; its match has been sent to the leader
    refused,   // of a deposed leader or another cluster, or not for this server
  };
  Verdict verdict = Verdict::refused;
  Term term = 0;    // of this server
  Index match = 0;  // outdated: durable here and the same as the leader's
  const char* reason = "";  // refused: static text
};

const char* to_string(OfferAnswer::Verdict verdict);

// What must be done now. Reuse one object: its buffers keep their capacity.
struct Ready {
  // --- for the disk, in this order ---
  std::optional<HardState> hard_state;  // replaces the stored one; report by hard_state_persisted()
  std::optional<LogReset> log_reset;    // report by log_reset()
  // Consecutive. The stored log is cut at entries.front().index first if it reaches that far (replaces_suffix says that
  // it does). Report by persisted(append_term, entries.back().index).
  std::vector<Entry> entries;
  bool replaces_suffix = false;
  Term append_term = 0;  // the leader term under which `entries` were taken into the log

  // --- messages ---
  std::vector<Message> messages;                // may leave now
  std::vector<Message> messages_after_persist;  // see duty 2 above

  // --- for the state machine ---
  // Committed and durable in this server's own log, each handed out once, consecutive. Entries of every type: the
  // driver counts all of them as applied and passes only commands on.
  std::vector<Entry> committed;
  // Never together with `committed`; see duty 5. Report by snapshot_installed().
  std::optional<SnapshotLabel> install;

  // --- for other servers, on the leader ---
  std::vector<LogRead> log_reads;
  std::vector<SnapshotWish> snapshot_wishes;
  // A server needs an image, and there is none that reaches up to the log's begin (it was lost: raft/restart.h). Take one now;
  // said again with every message that this server would be sent, until snapshot_available().
  bool lacks_snapshot = false;

  std::vector<ReadResult> reads;
  std::vector<RoleChange> role_changes;
  std::vector<TransferEnd> transfers;
  std::vector<VoteRefusal> vote_refusals;
  std::vector<MessageRefusal> message_refusals;

  void clear();
  bool is_empty() const;
};

// Figures for operators and tests about one other server, as its leader sees it.
struct ServerProgress {
  ServerId id;
  bool is_voter = false;
  bool counts = false;  // its answers count for commit: voter, and its store is the recorded one
  Index match = 0;
  Index next = 0;
  Progress::State state = Progress::State::probe;
  Index snapshot = 0;  // state snapshot: the index of the image on its way
  io::Instant last_contact{};
};

class Core {
 public:
  // Checks that `initial` is consistent (term at least the last entry's, entries consecutive, applied and snapshot within the log).
  // A server without a voting right, or without a configuration, never campaigns; it follows whoever leads. (While the
  // loss of its voting right is not known to be committed, it still does.)
  // `random` is this core's own stream; only election timeouts are drawn from it.
  Core(Identity identity, Settings settings, InitialState initial, io::RandomStream random, io::Instant now);

  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // --- inputs; `now` never goes back ---

  // Acts on deadlines that have passed. Calling it early or often is harmless.
  void tick(io::Instant now);
  // When tick() is due; io::kNever if nothing is pending. Changes with every input.
  io::Instant next_deadline() const;

  // A message from another server. Messages that are not for this server, of another cluster, malformed or outdated are
  // dropped. So are those that no server of a sound cluster sends (of a second leader of this term, against what is committed
  // here, of a term out of reach: kTermLeapMax), which Ready::message_refusals tells. No message can end the process.
  // The message's entries are moved into the log.
  void step(Message&& message, io::Instant now);

  // Appends one command entry for each payload to the leader's log: all of them or none. An empty span is accepted and
  // does nothing. Replication begins with the next ready().
  ProposeResult propose(std::span<const Payload> payloads);

  // Appends the configuration that one step makes of the one in force; it is in force at once, and undone if its entry is
  // cut. Refused before an entry of the leader's own term has committed and while another configuration waits for its
  // commit (raft-dev 2015: else two leaders' changes could each find a quorum). A promotion asks that the server
  // has caught up: it has lately stored, within an election timeout, everything the log held when that time began. No step
  // may leave fewer than voters_min voters, or voters most of which are silent or lack what came before this term. A leader that removes or
  // demotes itself leads on, without counting itself, until that has committed; then it hands over and steps down.
  ChangeResult change_configuration(const ConfigurationChange& change);
  bool is_caught_up(const ServerId& id) const;  // false on any but the leader

  // Hands leadership to voter `to`, or to the voter whose log reaches furthest when `to` is empty: proposals and changes
  // are refused from now on, the voter is brought to the end of the log, then told to campaign at once. Ends within
  // election_timeout_max, as Ready::transfers says. The same transfer asked for again is accepted and changes nothing.
  TransferStart transfer_leadership(const ServerId& to);

  // Asks for the index at which a read sees every write acknowledged before this call. Answered by a ReadResult with
  // `context` (the caller's own number) once a quorum has answered a round begun after this call and an entry of the
  // leader's term has committed. The caller then waits until it has applied that index. Not answered while no quorum
  // answers: the caller bounds its own wait. Refused on any but the leader.
  ReadRefusal read_index(std::uint64_t context);

  // The hard state that a Ready handed out is durable.
  void hard_state_persisted(const HardState& hard_state);
  // The log is durable up to `index`, as handed out under leader term `append_term`. Ignored when the log has changed
  // since then (a Ready with the change follows or is on its way).
  void persisted(Term append_term, Index index);
  // The state machine has applied everything up to `index` (handed out before).
  void applied(Index index);

  // The log's reset to `index` is durable.
  void log_reset(Index index);
  // The state machine holds the image of `index`, and nothing it held before.
  void snapshot_installed(Index index);

  // --- snapshots of this server ---

  // The label of an image that holds the effects of everything up to `index`, for an index that this server has applied.
  // Nothing where the log does not tell any more (an image has overtaken it): such an image is of no use.
  std::optional<SnapshotLabel> label_at(Index index) const;
  // An image of this server's state machine with that label, made by label_at(), is durable. One that is not newer than the one
  // known changes nothing.
  void snapshot_available(const SnapshotLabel& label);
  // Cuts the log in front: makes `index` its base, or less: never past the newest durable snapshot, what is applied and durable
  // here, nor (unless told not to spare them, for want of room) what the receiver of an image under way will need after
  // it. The configuration in force at the base is kept. Returns the log's base, up to which the stored log may now be cut.
  Index compact(Index index, bool spares_transfers = true);

  // --- what followers need and memory does not hold, on the leader ---

  // The answer to a Ready::log_reads item that began at `first`: consecutive entries from there, or none if it failed.
  void log_read(const ServerId& to, Index first, std::vector<Entry>&& entries);
  // The end of transfer `number`: the image is durable at `to`, or it is not. An answer that nobody waits for any more is ignored.
  void snapshot_sent(const ServerId& to, std::uint64_t number, bool has_arrived);
  // False: transfer `number` may be broken off. Its term is over, its receiver was removed, came back in a new life, or needs no
  // image any more.
  bool wants_snapshot_sent(const ServerId& to, std::uint64_t number) const;

  // --- images from a leader ---

  // The head of an image. Counts as a message of that leader: a candidate of its term, or of an earlier one, follows it. What
  // is wanted may come again at any time, from this leader or the next; the newest stream is the one to listen to.
  OfferAnswer offer_snapshot(const SnapshotOffer& offer, io::Instant now);
  // The image with that label, once wanted, is durable in the snapshot store. From now on the log leads to it, or begins at it.
  void snapshot_received(const SnapshotLabel& label);

  // --- output ---

  bool has_ready() const;
  // Clears `out` and fills it. Each item is handed out once.
  void ready(Ready& out);
  Ready ready();

  // --- observers ---

  const ServerId& id() const { return identity_.id; }
  const Settings& settings() const { return settings_; }
  const StoreId& store() const { return identity_.store; }
  std::uint64_t session() const { return identity_.session; }
  Role role() const { return role_; }
  // The term of the newest election that this core has won; 0: none since it was made. It may have been deposed since.
  Term term_won() const { return term_won_; }
  Term term() const { return hard_state_.term; }
  const ServerId& vote() const { return hard_state_.vote; }
  const HardState& hard_state() const { return hard_state_; }
  // The newest hard state reported durable.
  const HardState& durable_hard_state() const { return durable_hard_state_; }
  const ServerId& leader() const { return leader_; }  // empty: none known in this term
  Index commit_index() const { return commit_; }
  Index applied_index() const { return applied_; }
  Index last_index() const { return log_.last_index(); }
  // This server's log is durable up to here (an image that covers a prefix counts).
  Index durable_index() const { return durable_; }
  // The newest image that is durable here; index 0: none.
  const SnapshotLabel& snapshot() const { return snapshot_; }
  // This server has lost entries that it had acknowledged, and no leader has brought it up to its commit index since.
  bool is_rebuilding() const { return hard_state_.is_rebuilding || durable_hard_state_.is_rebuilding; }
  // Whether an image is being installed, or waits for it: until then the state machine is behind the log's base.
  bool is_installing() const { return to_install_.has_value() || installing_ != 0; }
  const LogView& log() const { return log_; }
  const Configuration& configuration() const { return configurations_.current(); }
  const ConfigurationLog& configurations() const { return configurations_; }
  // The cluster this server is known to belong to: fixed by a *committed* configuration. Zero before that. Handshakes
  // and messages carry it; messages of another cluster are dropped.
  const ClusterId& cluster() const { return cluster_; }
  // Whether an entry of this leader's own term has committed, which reads and configuration changes wait for.
  bool has_committed_in_term() const;
  std::uint64_t unapplied_bytes() const { return unapplied_bytes_; }
  // Who is being handed the leadership; empty: nobody.
  const ServerId& transfer_target() const;
  // Since when what was handed to the disk, or to the state machine, has not moved; kNever: nothing waits there.
  io::Instant disk_waits_since() const { return disk_wait_.since; }
  io::Instant apply_waits_since() const { return apply_wait_.since; }

  // When this server sent the newest message that the current leader has answered; nothing if it has none in this term.
  // On the leader: the time by which a quorum (itself included) had been sent something it answered.
  std::optional<io::Instant> leader_contact() const;

  // The highest commit index that any leader has told this server in its present life; 0: none yet. What it knew by itself at its
  // start (the state machine's index, a snapshot) does not count.
  Index heard_commit() const { return heard_commit_; }
  // Whether what this server knows to be committed includes everything that was acknowledged before the current term's leader
  // was elected: its commit index reaches an entry of that leader's own term, and it has heard from that leader, in answer to
  // itself, that this is so. On the leader: has_committed_in_term().
  bool knows_commit_of_term() const;

  // On the leader: one item for each other server of the configuration, in id order. Elsewhere empty.
  std::vector<ServerProgress> progress() const;
  const Progress* find_progress(const ServerId& id) const;  // null: not followed
  const std::map<ServerId, Progress, std::less<>>& tracked() const { return progress_; }
  // On a candidate or pre-candidate.
  const Ballot& ballot() const { return ballot_; }
  // On the leader: its newest round, and how many reads wait for one.
  std::uint64_t round() const { return round_; }
  std::size_t pending_reads() const { return reads_.size(); }

 private:
  // core.cpp: construction, inputs, what goes out
  void observe_time(io::Instant now);
  std::int64_t now_ns() const { return io::to_ns(now_); }
  bool is_plausible(const Message& message) const;
  const char* why_not_heard(const Message& message) const;
  bool is_term_out_of_reach(Term term) const;
  void note_message_refused(const Message& message, const char* reason);
  Message make(MessageType type, const ServerId& to) const;
  void send(Message&& message);
  void note_role(const char* reason);
  void append_to_log(Entry&& entry);
  void commit_to(Index index);
  Index apply_limit() const;
  Index hand_out_limit() const;
  void hand_out_for_disk(Ready& out);
  void hand_out_for_apply(Ready& out);
  void release_tail();

  // core_snapshot.cpp
  void reset_to(const SnapshotLabel& label);
  bool holds(const SnapshotLabel& label) const;
  void prove_up_to_commit();
  bool can_install() const;
  void ask_for_snapshot(const ServerId& id, Progress& progress);
  void ask_for_read(const ServerId& id, Progress& progress);

  // core_election.cpp
  bool can_campaign() const;
  bool hears_leader() const;
  void draw_election_deadline();
  void become_follower(Term term, const ServerId& leader, const char* reason);
  void forget_leader_of_term();
  void start_pre_vote();
  void start_election(bool is_transfer);
  void request_votes(MessageType type, bool is_transfer);
  void count_own_vote();
  void decide_ballot();
  void become_leader();
  bool settle_term(const Message& message);
  const char* why_no_vote(const Message& message) const;
  void note_vote_refused(const Message& message, const char* reason);
  void on_vote_request(const Message& message);
  void on_vote_reply(const Message& message);

  // core_follower.cpp
  void on_append_request(Message&& message);
  void follow(const Message& message);
  void end_rebuilding(const Message& message);
  bool are_entries_sound(const Message& message) const;
  bool contradicts_commit(const Message& message) const;
  void take_entries(Message& message);
  void cut_log(Index from);
  void accept_append(const ServerId& to, Index proven);
  void refuse_append(const Message& request);
  Index acknowledged() const;

  // core_membership.cpp
  Refusal why_not_change(const ConfigurationChange& change, const Configuration& next) const;
  bool is_live(const ServerId& id) const;
  bool has_live_majority(const Configuration& servers) const;
  bool holds_earlier_terms(const ServerId& id) const;
  void append_configuration(const Configuration& next);
  void leave_when_removed();

  // core_transfer.cpp
  const ServerId* most_caught_up_voter() const;
  void begin_transfer(const ServerId& to);
  void advance_transfer();
  void end_transfer(TransferEnd::Outcome outcome);
  void on_timeout_now(const Message& message);
  void watch_disk(bool has_moved);
  void watch_applies(bool has_moved);
  bool is_stalled(io::Duration bound) const;
  bool could_serve() const;
  bool give_way_if_stalled();
  io::Duration handover_time() const;
  io::Instant stall_deadline() const;

  // core_leader.cpp
  void track_servers();
  void append_first_entry();
  void record_store(const ServerId& id, const StoreId& store);
  void on_append_reply(const Message& message);
  void observe_session(const Message& message, Progress& progress);
  void begin_round();
  void heartbeat();
  void send_appends();
  void send_append(const ServerId& id, Progress& progress, bool with_entries);
  Message make_append(const ServerId& id, Progress& progress) const;
  void advance_commit();
  void begin_read_round();
  void answer_reads();
  void fail_reads();
  template <class OfProgress>
  std::uint64_t reached_by_quorum(std::uint64_t own, OfProgress of_progress) const;
  std::int64_t quorum_contact_ns() const;

  struct PendingRead {
    std::uint64_t context = 0;
    std::uint64_t round = 0;  // 0: its round has not begun
    Index index = 0;
  };

  struct Transfer {
    ServerId to;
    Term term = 0;
    io::Instant deadline;
    bool is_told = false;
  };
  // Since when what the disk, or the state machine, was handed has not moved; kNever: nothing waits.
  struct Wait {
    io::Instant since = io::kNever;
    void update(bool is_waiting, bool has_moved, io::Instant now) {
      if (!is_waiting) since = io::kNever;
      else if (has_moved || since == io::kNever) since = now;
    }
    bool is_over(io::Instant now, io::Duration bound) const { return since != io::kNever && now - since >= bound; }
  };

  const Identity identity_;
  const Settings settings_;
  io::RandomStream random_;
  io::Instant now_;

  HardState hard_state_;
  HardState handed_hard_state_;
  HardState durable_hard_state_;
  bool is_hard_state_durable_ = true;

  // The log and how far each part of the server has come along it: applied <= applying <= min(commit, durable),
  // durable <= handed <= last. stored_last is how far the stored log may reach, which a cut has to go back from.
  LogView log_;
  ConfigurationLog configurations_;
  ClusterId cluster_;
  Term append_term_ = 0;
  Index durable_ = 0;
  Index handed_ = 0;
  Index stored_last_ = 0;
  Index commit_ = 0;
  Index applying_ = 0;
  Index applied_ = 0;
  std::uint64_t unapplied_bytes_ = 0;
  std::uint64_t applying_bytes_ = 0;

  SnapshotLabel snapshot_;
  // An image that was received: its log reset is to be handed out (log_reset_), then reported (until then reset_pending_ is its
  // index), then the image itself is handed out (to_install_), then reported (until then installing_ is its index).
  std::optional<LogReset> log_reset_;
  Index reset_pending_ = 0;
  std::optional<SnapshotLabel> to_install_;
  Index installing_ = 0;

  Wait disk_wait_;
  Wait apply_wait_;

  Role role_ = Role::follower;
  ServerId leader_;
  io::Instant election_deadline_;
  io::Instant leader_heard_;  // last valid request of leader_
  Ballot ballot_;

  // Following. All of it belongs to the current term.
  Index proven_ = 0;       // our log matches the leader's up to here
  bool owes_ack_ = false;  // proven entries await durability, and then an answer
  std::uint64_t leader_round_ = 0;
  std::int64_t leader_sent_at_ns_ = 0;
  std::uint64_t leader_session_ = 0;
  std::int64_t leader_contact_ns_ = 0;  // 0: none in this term
  struct Answered {
    std::uint64_t round = 0;
    Index proven = 0;
    Index match = 0;
    friend bool operator==(const Answered&, const Answered&) = default;
  };
  std::optional<Answered> answered_;  // what the last acceptance said

  // Leading.
  std::map<ServerId, Progress, std::less<>> progress_;
  io::Instant heartbeat_deadline_;
  std::uint64_t round_ = 0;
  Index term_start_ = 0;  // the leader's first entry
  Term term_won_ = 0;
  std::optional<Transfer> transfer_;
  std::uint64_t snapshots_asked_ = 0;
  bool must_send_ = false;       // ready() has appends to make
  bool must_broadcast_ = false;  // ... and every server gets one: a round has begun
  std::vector<PendingRead> reads_;                // in order of arrival
  mutable std::vector<std::uint64_t> reached_;  // scratch of reached_by_quorum()

  // Output that waits for ready().
  std::vector<Message> messages_;
  std::vector<Message> messages_after_persist_;
  std::vector<ReadResult> read_results_;
  std::vector<RoleChange> role_changes_;
  std::vector<TransferEnd> transfer_ends_;
  std::vector<VoteRefusal> vote_refusals_;
  std::vector<MessageRefusal> message_refusals_;
  std::vector<LogRead> log_reads_;
  std::vector<SnapshotWish> snapshot_wishes_;
  bool lacks_snapshot_ = false;

  Index heard_commit_ = 0;  // from leaders of any term
};

}  // namespace raft
