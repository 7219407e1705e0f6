// A raft server: the fibers that drive the pure core over this node's disk, its network and its state machine.
//
// Promises
//  - What the core asks to be durable is durable before anything that depends on it leaves: the hard state before the
//    entries, both before the messages that speak for them. One data sync serves everything that gathered while the one
//    before was under way (group commit). Requests to followers leave before and while the leader's own disk writes.
//  - A proposal's waiter is registered before its entry can commit, and is answered only by the entry of its own term at
//    its own index. Whoever waits is answered by its deadline, also when leadership is lost and when the server stops.
//  - One slow, silent or dead server does not hold up the others: each has a connection, a fiber and a bounded queue of its
//    own; a full queue drops, which the protocol makes good.
//  - Fail-stop: a failed sync, damage, or a state machine that cannot go on end the server. From then on it sends nothing,
//    answers `stopped`, and says why (failure()). A disk without room is no failure: entries are not acknowledged, new
//    proposals are refused, and the append is tried again until there is room.
//
// Left to others: the protocol itself (raft/core.h), the form of the files (raft/log_store.h, raft/stable_store.h) and of the
// frames (raft/wire.h); listening (the caller accepts connections and hands those that speak raft to serve()); what
// commands mean.
//
// Fibers: run() is the root of all of them; every public function is called from fibers of the same node. Those that wait
// say so. The core is plain data of the loop's thread: messages, proposals and notices go into it where they arise, and one
// fiber takes out what follows once everything else that was runnable has had its turn, so that what arrives together
// leaves together.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/env.h"
#include "raft/core.h"
#include "raft/log_limit.h"
#include "raft/log_store.h"
#include "raft/peer_link.h"
#include "raft/proposals.h"
#include "raft/restart.h"
#include "raft/snapshot_sender.h"
#include "raft/snapshot_store.h"
#include "raft/stable_store.h"
#include "raft/state_machine.h"

namespace raft {

struct SnapshotPolicy {
  // A snapshot is taken when this many entries have been applied since the last one; looked at every interval to twice the interval.
  std::uint64_t threshold = 8192;
  io::Duration interval = std::chrono::seconds(120);
  // Entries below the older kept snapshot that stay in the log, for followers that are a little behind.
  std::uint64_t trailing = 10240;
  // The log grows no larger than that for the sake of followers whose image is on its way, nor at all on a full disk: what comes after
  // that image is cut then, and they are sent a newer one.
  std::uint64_t transfer_log_bytes_max = 1u << 30;
  std::uint64_t write_bytes_per_second = 128u << 20;  // 0: no bound
  std::uint64_t send_bytes_per_second = 64u << 20;
  SnapshotSettings store;
};

struct ServerOptions {
  ServerId id;
  std::string address;  // host:port where this server is reached; told to whoever it dials
  // The configuration of a cluster that does not exist yet, the same on each of its servers (bootstrap_configuration()).
  // Used only when the data directory holds no raft state; afterwards what is stored counts.
  std::optional<Configuration> bootstrap;
  // This server never bootstraps: its cluster exists, and has what is missing here (raft/restart.h).
  bool is_joining = false;
  Settings core;
  LogSettings log;
  SnapshotPolicy snapshots;
  LinkSettings link;
  // How often the append is tried again while the disk has no room.
  io::Duration no_space_retry = std::chrono::milliseconds(200);
  // Proposals in flight after leadership is lost are answered `unknown` when this has passed (or by their deadline, if
  // sooner): long enough for a new leader to commit them in most cases.
  io::Duration lost_leadership_grace = std::chrono::milliseconds(1500);
};

// Where to ask instead; both empty when no leader is known.
struct LeaderHint {
  ServerId id;
  std::string address;
};

enum class Outcome : std::uint8_t {
  ok = 0,
  not_leader,  // nothing was written; ask `leader`
  refused,     // nothing was written: a bound is reached or the disk is full; try later
  too_large,   // nothing was written, and never will be
  unknown,     // may have been or may yet be committed
  superseded,  // another entry was committed in its place: it was not and will not be applied
  stopped,     // this server has ended; what was in flight may have been or may yet be committed
};

const char* to_string(Outcome outcome);

struct Proposed {
  Outcome outcome = Outcome::unknown;
  Term term = 0;       // of the entry, once it has one
  Index index = 0;
  std::string answer;  // ok: the state machine's
  std::string reason;  // otherwise: one line for people
  Refusal refusal = Refusal::none;  // why nothing was written, where the core says so
  LeaderHint leader;   // not_leader

  bool ok() const { return outcome == Outcome::ok; }
};

struct Transferred {
  // ok: another server leads a newer term. refused: nothing was begun, or this server leads on. unknown: the deadline passed.
  Outcome outcome = Outcome::unknown;
  ServerId to;         // who was to lead, once that was decided
  std::string reason;  // of anything but ok: one line for people
  LeaderHint leader;   // ok: who leads now; not_leader: whom to ask

  bool ok() const { return outcome == Outcome::ok; }
};

struct Barrier {
  Outcome outcome = Outcome::unknown;  // ok, not_leader, refused, unknown (the deadline passed), stopped
  Index index = 0;                     // ok: this server's state machine has applied this far, and every write
                                       // acknowledged anywhere before the call lies at or below it
  std::string reason;
  LeaderHint leader;

  bool ok() const { return outcome == Outcome::ok; }
};

struct PeerStatus {
  ServerId id;
  std::string address;
  bool is_voter = false;
  bool is_connected = false;  // this server's own connection to it
  // As its leader sees it; zero elsewhere.
  Index match = 0;
  Progress::State state = Progress::State::probe;
  std::optional<io::Instant> last_contact;
};

struct ServerStatus {
  ServerId id;
  StoreId store;
  ClusterId cluster;  // zero until known
  Role role = Role::follower;
  Term term = 0;
  LeaderHint leader;
  Index commit = 0;
  Index applied = 0;
  Index last = 0;
  Index durable = 0;
  Index log_base = 0;        // the log holds the entries after this one
  Index snapshot = 0;        // of the newest durable one; 0: none
  Term snapshot_term = 0;
  std::uint64_t snapshot_bytes = 0;
  io::Duration snapshot_took{0};  // the newest one taken in this life
  std::size_t voters = 0;
  std::size_t non_voters = 0;
  bool is_voter = false;
  bool is_disk_full = false;
  bool is_stopped = false;
  bool is_rebuilding = false;  // gives no vote until a leader has brought it up to date
  std::uint64_t apply_backlog = 0;  // committed entries not yet applied
  // Follower: when it sent the newest message that the leader has answered. Leader: the same for a quorum.
  std::optional<io::Instant> leader_contact;
  std::vector<PeerStatus> peers;  // every other server of the configuration, in id order
};

// Answers that wait for a disk that is full or hangs: more than that, and the oldest are dropped. A window of requests is far less.
inline constexpr std::size_t kMessagesBehindDiskMax = 1024;

// Counts since the server was made.
struct ServerCounters {
  std::uint64_t log_syncs = 0;
  std::uint64_t hard_state_syncs = 0;
  std::uint64_t entries_appended = 0;
  std::uint64_t entries_applied = 0;
  std::uint64_t messages_sent = 0;     // given to a link
  std::uint64_t messages_received = 0;
  std::uint64_t messages_dropped = 0;  // a link's queue was full, it had no connection, or too many waited for the disk
  std::uint64_t leader_changes = 0;
  std::uint64_t elections = 0;         // campaigns of this server that a quorum had agreed to, or that a leader had ordered
  std::uint64_t configuration_changes = 0;  // appended by this server as leader
  // What this server did not grant, each with its reason in the log.
  std::uint64_t votes_refused = 0;      // pre-votes included
  std::uint64_t proposals_refused = 0;  // by the leader; of one who does not lead they are not counted
  std::uint64_t changes_refused = 0;
  std::uint64_t transfers_refused = 0;
  std::uint64_t connections_refused = 0;
  std::uint64_t messages_refused = 0;   // dropped, since no server of a sound cluster sends them
  std::uint64_t images_refused = 0;     // offers of one
  std::uint64_t reads_refused = 0;      // barriers of a leader that were refused or not passed in time
  std::uint64_t transfers_made = 0;    // hand-overs that ended in a newer term
  std::uint64_t transfers_failed = 0;
  std::uint64_t snapshots_taken = 0;
  std::uint64_t snapshots_failed = 0;
  std::uint64_t snapshots_sent = 0;      // whole, to another server
  std::uint64_t snapshots_not_sent = 0;  // given up
  std::uint64_t snapshots_received = 0;
  std::uint64_t snapshots_installed = 0;
};

class RaftServer {
 public:
  // Keeps references to all but `options`.
  RaftServer(io::Env& env, ServerOptions options, Observer* observer = nullptr);
  ~RaftServer();
  RaftServer(const RaftServer&) = delete;
  RaftServer& operator=(const RaftServer&) = delete;

  // Reads the stores under "raft/" and judges each and the two together. Waits for the disk; changes nothing on it, so that a
  // start which is refused here leaves the disk as it was. Errors name file and offset. Called once, before everything else.
  io::Status read();
  // Looks at the state machine, decides by raft/restart.h, and does what was decided: opens the state machine, which then lives as long
  // as the server, and makes the stores, where they are new, and the core. Waits for the disk. Called once, after read(). When the
  // decision is to refuse, nothing has been changed, and the error is its reason.
  io::Status open(StateMachineHome& home);
  // Between read() and open(): nothing was found of an earlier life, neither entries nor a snapshot nor a term.
  bool is_blank() const;
  // Between read() and open(): this server joins a cluster that exists, whatever the options say (ServerOptions::is_joining).
  void join_instead() { options_.is_joining = true; }
  // What open() would decide for a joining server, or for another, with nothing of it done. Any number of times after read(), and
  // instead of open(): for tools that look at a directory. Errors: what could not be read.
  io::Result<RestartDecision> judge(StateMachineHome& home, bool is_joining);
  // What open() decided; nothing before.
  const std::optional<RestartDecision>& decision() const { return decision_; }

  // Runs the server until stop() or a failure; call it in a fiber of its own. When it returns, every fiber of the server
  // has ended. Throws Cancelled.
  void run();
  // Asks run() to end: waiters are answered `stopped`, incoming connections are closed. Does not wait.
  void stop();
  // Set when the server has stopped, by stop() or by a failure.
  io::Event& stopped() { return stopped_; }
  // Why it stopped by itself; nothing while it runs and after stop().
  const std::optional<io::Error>& failure() const { return failure_; }

  // Appends one command and waits until this server has applied it. Only the leader takes proposals.
  Proposed propose(std::string command, io::Instant deadline);
  // Makes one step of the cluster's configuration and waits until it is committed and this server has applied it. Only the leader;
  // `refused` says why in `refusal` (raft/core.h: one change at a time, after an entry of the term has committed, ...).
  Proposed change_configuration(const ConfigurationChange& change, io::Instant deadline);
  // Hands leadership to voter `to`, to the most caught-up one when empty, and waits until a newer term has a leader. Proposals are
  // refused meanwhile (Refusal::transfer_in_progress); nothing in flight is lost.
  Transferred transfer_leadership(const ServerId& to, io::Instant deadline);
  // The begin of either, without the wait. The server runs.
  ChangeResult start_change(const ConfigurationChange& change);
  TransferStart start_transfer(const ServerId& to);
  // True once a leader is known and does not hand over; false when the deadline passed or the server stopped first.
  bool wait_leadership_settled(io::Instant deadline);
  // True once this server is in a term above `term`; false when the deadline passed or the server stopped first.
  bool wait_newer_term(Term term, io::Instant deadline);
  // Read barrier: confirms leadership by a quorum round begun after the call, then waits until the commit index of that
  // moment is applied here.
  Barrier barrier(io::Instant deadline);
  // True when this server has applied `index`; false when the deadline passed or the server stopped first.
  bool wait_applied(Index index, io::Instant deadline);

  // An incoming connection whose first bytes announce raft frames; `already_read` is what was read of it so far. Returns
  // when the connection has ended; the calling fiber is the connection's.
  void serve(std::unique_ptr<io::Stream> stream, std::string already_read);

  ServerStatus status() const;
  const ServerCounters& counters() const { return counters_; }
  bool is_running() const { return core_ && !is_stopping_; }
  bool is_leader() const { return core_ && core_->role() == Role::leader && !is_stopping_; }
  // How long it has led, in this term; zero when it does not lead.
  io::Duration led_for() const { return is_leader() ? env_.now() - leads_since_ : io::Duration(0); }
  // The configuration in force gives this server a place, and its volume is the one on record there, or none is yet: it has been admitted.
  // Also where it holds the cluster's log and knows no configuration: the snapshot in which that stood is lost or damaged.
  bool is_admitted() const;
  // The same, but for a volume on record that is not this server's: it was admitted with another one.
  bool is_known_with_another_store() const;
  // This server leads and is handing leadership over: it takes no proposals.
  bool is_handing_over() const { return is_leader() && !core_->transfer_target().empty(); }
  LeaderHint leader() const;
  Index applied_index() const { return core_ ? core_->applied_index() : 0; }
  // The last command (no no-op, no configuration) that this life of the server counts as applied; 0: none yet. A state machine
  // whose own index is below it does not hold what it was given.
  Index last_command_applied() const { return last_command_applied_; }
  // For checks: the settings of this server's links, and each link that stands.
  const LinkSettings& link_settings() const { return options_.link; }
  template <typename Visit>
  void visit_links(Visit visit) const {
    for (const auto& [id, link] : links_) visit(*link.link);
  }
  // Messages that leave when what comes before them is durable: at most kMessagesBehindDiskMax.
  std::size_t messages_behind_disk() const { return pending_.messages.size(); }
  // The core itself, for checks; valid after open().
  const Core& core() const { return *core_; }

 private:
  // What waits for the next write of the persist fiber.
  struct PendingWrite {
    std::optional<HardState> hard_state;
    std::optional<LogReset> log_reset;
    std::vector<Entry> entries;
    Term append_term = 0;
    std::vector<Message> messages;  // leave when all of the above, and all before, is durable
    bool is_empty() const { return !hard_state && !log_reset && entries.empty() && messages.empty(); }
  };
  // Waits stand in a table until they are answered; stop() answers all and empties the tables, so that a caller who unwinds
  // later than that touches nothing of the server.
  struct AppliedWait {
    bool is_listed = true;
    io::Event done;
  };
  struct BarrierWait {
    bool is_listed = true;
    bool is_answered = false;
    bool is_confirmed = false;
    Index index = 0;
    io::Event done;
  };
  // To each other server of the configuration in force, and to each whose connection to this one stands: a leader that has been
  // removed, or a server that joins and has no configuration yet, is answered like any other.
  struct Link {
    std::unique_ptr<PeerLink> link;
    io::Task task;
  };

  // server_open.cpp
  io::Status read_stores();
  io::Status check_contents();
  io::Status decide(StateMachineHome& home);
  void log_damaged(Index index, const io::Error& error);
  io::Status choose_snapshot(StateMachineHome& home);
  RestartFacts restart_facts(StateMachineBuild build, StateMachineFacts held) const;
  io::Status confirm_stores();
  io::Status carry_out(StateMachineHome& home);
  io::Status forget_everything();
  io::Status begin_log_behind(const SnapshotLabel& label);
  io::Status read_unapplied();
  void make_core();

  // server.cpp: what follows from the core's Readys; nothing there waits. server_calls.cpp has the calls that do.
  void step(Message&& message);
  void wake();
  void drive();
  io::Instant next_due() const;
  void take_for_disk();
  void drop_oldest_waiting();
  void take_for_apply();
  void take_reads();
  void send_all(std::vector<Message>& messages);
  void note_role_changes();
  void note_transfers();
  void note_refused_votes();
  void note_refused_messages();
  void follow_configuration();
  void link_to(const ServerId& id, const std::string& address);
  void retire_links();
  LeaderHint hint(const ServerId& id) const;
  Proposed wait_for_entry(Term term, Index index, io::Instant deadline);
  Proposed refuse(Refusal refusal, const ServerId& leader) const;
  void note_refused_proposal(const std::string& reason);
  void note_refused_read(const std::string& reason);
  bool leader_is_known() const;
  Proposed finish(const ProposalWait& wait) const;
  void release_applied();
  void fail(io::Error error);

  // server_fibers.cpp: the loops
  void core_loop();
  void persist_loop();
  bool persist(PendingWrite& write);
  bool append_until_there_is_room(const std::vector<Entry>& entries);
  bool until_there_is_room(Index first, const std::function<io::Status()>& write);
  void apply_loop();
  bool apply_in_pieces(std::vector<Entry> entries);
  bool apply_batch(const std::vector<Entry>& batch);
  void prepare_loop();
  void want_room();

  // server_snapshots.cpp
  void snapshot_loop();
  void take_snapshot();
  bool is_kept(Index index) const;
  bool replace_if_damaged(const SnapshotLabel& label);
  void note_snapshot_failure(const io::Error& error);
  void note_snapshot_not_kept(const io::Error& error);
  void compact_log();
  bool note_compacted(const io::Status& compacted);
  bool install(const SnapshotLabel& label);
  bool install_held(const SnapshotLabel& label);
  void take_for_others();
  void read_for(const LogRead& read);
  void send_snapshot(const SnapshotWish& wish);

  // server_receiving.cpp
  void receive_snapshot(io::Stream& stream, wire::FrameReader& frames, const wire::Hello& hello);
  void note_refused_image(const wire::Hello& hello, const wire::SnapshotHead& head, const char* reason);
  OfferAnswer::Verdict offer(io::Stream& stream, const wire::Hello& hello, const wire::SnapshotHead& head);
  wire::SnapshotState receive_image(io::Stream& stream, wire::FrameReader& frames, const wire::Hello& hello,
                                    const wire::SnapshotHead& head);
  io::Status begin_receiving(const SnapshotInfo& info, bool& is_in_place);
  io::Status finish_while_alive(io::Stream& stream);
  io::Status finish_receiving();

  // server_inbound.cpp: incoming connections
  io::Result<wire::Hello> take_greeting(io::Stream& stream, wire::FrameReader& reader);
  std::string reason_to_refuse(const wire::Hello& hello) const;
  void receive(io::Stream& stream, wire::FrameReader& reader, const wire::Hello& hello);
  void answer_incoming(const ServerId& from, const std::string& address);
  io::Result<std::uint64_t> step_all(wire::FrameReader& reader, const wire::Hello& hello);
  void log_refused_connection(const std::string& who, const std::string& peer_address, const std::string& reason);

  io::Env& env_;
  ServerOptions options_;
  StateMachine* state_machine_ = nullptr;  // from open() on
  Observer* observer_;

  std::unique_ptr<StableStore> stable_;
  std::unique_ptr<LogStore> log_;
  std::unique_ptr<SnapshotStore> snapshots_;
  // Between read() and open().
  std::optional<LogStore::Contents> contents_;
  std::optional<SnapshotInfo> chosen_;
  std::uint32_t chosen_newest_type_ = 0;
  std::optional<RestartDecision> decision_;
  std::unique_ptr<Core> core_;
  std::uint64_t session_ = 0;
  ServerCounters counters_;

  bool is_stopping_ = false;
  bool is_disk_full_ = false;
  bool is_without_segment_ = false;  // no room was found for the log's next segment
  bool is_cluster_recorded_ = false;  // in the stable store, or on its way there
  io::Event stopped_;
  std::optional<io::Error> failure_;

  // core
  bool has_inputs_ = true;
  io::Condition inputs_;
  io::Instant sleeps_until_{};  // the core's fiber; in the past while it is awake
  Ready ready_;  // reused
  Term led_term_ = 0;              // newest term that this server led
  bool is_leading_ = false;
  io::Instant leads_since_{};
  io::Condition leadership_moved_;  // a role, a leader, or the end of a hand-over
  io::Instant give_up_at_ = io::kNever;  // when proposals of led_term_ end as unknown

  // links: null outside run()
  io::Scope* scope_ = nullptr;
  bool has_followed_ = false;
  Index followed_index_ = 0;
  std::uint64_t followed_truncations_ = 0;
  std::map<ServerId, Link> links_;
  std::vector<Link> retired_links_;

  // incoming
  struct Incoming {
    io::Stream* stream = nullptr;
    std::string address;  // where the other server says that it listens
  };
  std::map<ServerId, Incoming> incoming_;

  // Of refusals one line a minute and peer, or reason.
  LogLimit connection_lines_{std::chrono::minutes(1)};
  LogLimit vote_lines_{std::chrono::minutes(1)};
  LogLimit proposal_lines_{std::chrono::minutes(1)};
  LogLimit message_lines_{std::chrono::minutes(1)};
  LogLimit image_lines_{std::chrono::minutes(1)};
  LogLimit read_lines_{std::chrono::minutes(1)};

  // persist
  PendingWrite pending_;
  bool is_persisting_ = false;
  io::Condition pending_added_;
  io::Condition hard_state_saved_;
  io::Condition segment_wanted_;

  // snapshots
  io::Condition snapshot_wake_;
  bool must_take_snapshot_ = false;    // however few entries there are since the last one
  bool must_compact_ = false;          // the disk is full: what can be given up is given up now
  io::Instant next_asked_snapshot_{};  // a follower's need is not answered before
  io::Instant next_read_log_{};  // when a log that cannot be read is told of again
  io::Duration last_snapshot_took_{0};
  io::Mutex receiving_;                          // held by the connection that receives
  io::Stream* snapshot_stream_ = nullptr;        // of the newest connection that wants to
  std::unique_ptr<SnapshotReceiver> receiver_;   // outlives a connection

  // apply
  std::optional<SnapshotLabel> to_install_;
  std::vector<Entry> to_apply_;
  io::Condition to_apply_added_;

  // waiters
  ProposalTable proposals_;
  std::uint64_t next_context_ = 1;
  std::map<std::uint64_t, std::shared_ptr<BarrierWait>> barriers_;
  std::multimap<Index, std::shared_ptr<AppliedWait>> applied_waits_;

  Index last_command_applied_ = 0;
};

}  // namespace raft
