// What a leader knows about one other server's log, and how much it may send there.
//
// Three states. *probe*: where the logs meet is not known; one request at a time, the next after an answer or a heartbeat.
// *replicate*: the logs are known to meet; requests go out without waiting (pipelined), up to a window of messages and
// bytes, and `next` runs ahead of `match`. *snapshot*: the entries it needs are gone from the leader's log; an image is on
// its way to it and nothing else but heartbeats, until the image's fate is known or the server turns out not to need it.
//
// match never goes back within a session of the server, and next > match always. A new session (it was restarted) loses what was in
// flight, and match counts anew; a new store (its volume was wiped) loses everything.
#pragma once

#include <cstdint>
#include <deque>

#include "raft/types.h"

namespace raft {

struct FlightLimits {
  std::uint32_t messages_max = 256;
  std::uint64_t bytes_max = 4u << 20;
};

class Progress {
 public:
  enum class State : std::uint8_t { probe, replicate, snapshot };

  Progress() = default;
  // `next`: the first index to try; the leader's last index + 1 at the beginning of its term.
  explicit Progress(Index next) : next_(next) {}

  State state() const { return state_; }
  Index match() const { return match_; }
  Index next() const { return next_; }
  std::uint64_t in_flight_bytes() const { return in_flight_bytes_; }
  std::size_t in_flight_messages() const { return in_flight_.size(); }
  bool is_probe_outstanding() const { return probe_outstanding_; }

  // Whether a request with entries may go out now.
  bool can_send_entries(const FlightLimits& limits) const;
  // A request with entries next()..last was sent.
  void sent_entries(Index last, std::uint64_t bytes);
  // A request without entries was sent as a probe.
  void sent_probe() { probe_outstanding_ = true; }
  // A heartbeat is due: a lost probe may be tried again.
  void allow_probe() { probe_outstanding_ = false; }

  // An accepted request: `proven` is the last index that matches, `match` the last one that is durable there too.
  // Returns whether match advanced.
  bool accepted(Index proven, Index match);
  // A refused request whose previous index was `refused`; `retry_at` is where the logs may meet. Returns false for a
  // stray answer (one that contradicts what is proven, or answers a probe long since replaced), which changes nothing.
  bool refused(Index refused, Index retry_at);
  // The connection began anew, or the leader's log has been compacted past next: what was in flight (an image too) is lost, proven
  // entries are not. Probing goes on at match, or at `base` if the log begins above match.
  void restart(Index base);
  // The server's life began anew. The same, but what an earlier life has acknowledged does not count any more: it may have lost it
  // (raft/restart.h: reset). The first answer at where match was tells.
  void begin_session(Index base);
  // The server's volume is another one: nothing is proven.
  void reset(Index next);

  // An image that reaches `index` is to be sent, as the leader's transfer number `number` (not 0).
  void begin_snapshot(Index index, std::uint64_t number);
  // Whether transfer `number` is the one under way.
  bool awaits_snapshot(std::uint64_t number) const { return state_ == State::snapshot && snapshot_number_ == number; }
  // Its end. Arrived: the logs meet at its index. Else: probed again, at the next heartbeat, at `base`.
  void end_snapshot(bool has_arrived, Index base);
  Index snapshot_index() const { return snapshot_index_; }          // 0 but in state snapshot
  // A server that is brought up by an image, until its connection or its life ends: the last index that it does not need any more. The
  // entries behind are what spares it another image when the first has taken long to arrive, or to be installed. 0: it is not.
  Index spared_from() const;
  std::uint64_t snapshot_number() const { return snapshot_number_; }

  // Entries from next() on are being read from the leader's disk for it; 0: none are.
  void begin_read() { reading_from_ = next_; }
  // Ends the read that began at `first`. Returns whether what was read is still what this server is to get next.
  bool end_read(Index first);
  bool is_reading() const { return reading_from_ != 0; }

  // Catching up is measured in rounds: what the log held when a round began, at `begun_ns`, is stored there when it ends.
  void begin_catch_up(Index goal, std::int64_t now_ns);
  // After an acceptance: ends the round if its goal is reached, and begins the next one with `last` as its goal.
  void follow_catch_up(Index last, std::int64_t now_ns, std::int64_t round_ns_max);
  // The last round ended within its bound, and the one under way has not outlived it.
  bool is_caught_up(std::int64_t now_ns, std::int64_t round_ns_max) const;

  // Whether this server's answers count for a quorum: it votes, and speaks through the volume on record.
  bool counts() const { return is_voter && recorded.is_known() && recorded == store; }

  // --- kept for the leader, no rules here ---
  bool is_voter = false;          // in the configuration in force
  StoreId recorded;               // in the configuration in force
  StoreId store;                  // last heard
  std::uint64_t session = 0;      // last heard; 0: none
  std::int64_t echo_ns = 0;       // the server's own clock in its last message, to be returned to it
  std::int64_t contact_ns = 0;    // the leader's clock when it sent what was last answered
  std::uint64_t round_acked = 0;  // newest round proven by an answer
  Index commit_sent = 0;          // commit index of the last request

 private:
  struct Flight {
    Index last = 0;
    std::uint64_t bytes = 0;
  };
  void to_probe();

  State state_ = State::probe;
  Index match_ = 0;
  Index next_ = 1;
  bool probe_outstanding_ = false;
  std::deque<Flight> in_flight_;
  std::uint64_t in_flight_bytes_ = 0;
  Index goal_ = 0;
  std::int64_t goal_since_ns_ = 0;
  bool was_round_short_ = false;
  Index snapshot_index_ = 0;
  std::uint64_t snapshot_number_ = 0;
  Index brought_to_ = 0;  // by an image that has arrived
  Index reading_from_ = 0;
};

}  // namespace raft
