// The way out to one other server: a connection that this server dials, a bounded queue, one fiber that writes.
//
// Frames flow one way, from the dialler; the far side's own frames come over the connection that it dials. The far side
// acknowledges what arrived now and then (wire.h, Ack): a connection on which bytes stay unacknowledged past a deadline is dead
// although nobody says so (half-open, scenario NW-01), and is replaced. Dialling is tried for ever, with backoff.
//
// send() never waits. While there is no connection only the newest few messages are kept, and none once it has been down
// for longer than an election: the protocol sends anew what matters.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "io/env.h"
#include "raft/types.h"
#include "raft/greeting.h"
#include "raft/wire.h"

namespace raft {

struct LinkSettings {
  io::Duration dial_timeout = std::chrono::seconds(1);       // connect and greeting together
  io::Duration backoff_min = std::chrono::milliseconds(25);  // doubles, drawn from [half, whole]
  io::Duration backoff_max = std::chrono::seconds(1);
  io::Duration write_timeout = std::chrono::seconds(2);      // the far side takes nothing for this long: replaced
  io::Duration ack_interval = std::chrono::milliseconds(500);  // how often the receiving side acknowledges
  io::Duration ack_timeout = std::chrono::seconds(2);          // unacknowledged for this long: replaced
  std::uint64_t queue_bytes_max = 8u << 20;                  // queued and not yet written; more is dropped
  std::uint32_t queue_disconnected_max = 16;                 // messages kept while there is no connection
};

class PeerLink {
 public:
  // `self` is what greetings say, but for `to` and the cluster: that is read anew for each greeting. `address` may change later.
  // `messages_dropped` counts every message that was queued, or was to be, and never written. Keeps references to env, settings, cluster
  // and that count.
  PeerLink(io::Env& env, const LinkSettings& settings, wire::Hello self, const ClusterId& cluster, ServerId to,
           std::string address, std::uint64_t& messages_dropped);
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  // Runs the link until it is cancelled; the body of its fiber.
  void run();

  // Queues `message`, for which older ones may have to go while there is no connection, or drops it: then false. Never waits.
  bool send(Message&& message);

  void set_address(std::string address);
  // Where the other server says that it listens. Tried in turn with the configured address while that does not lead to it: a server that
  // missed a change of address could not answer one that has moved, and would never learn of the change from it.
  void set_heard_address(std::string address) { heard_address_ = std::move(address); }
  // The other server is known to be up (it has just connected): dials at once instead of waiting for its next try.
  void nudge();

  const ServerId& to() const { return to_; }
  const std::string& address() const { return address_; }
  bool is_connected() const { return is_connected_; }
  std::uint64_t frames_sent() const { return frames_sent_; }
  // Queued and not yet written.
  std::uint64_t queued_bytes() const { return queue_bytes_; }

 private:
  io::Result<std::unique_ptr<io::Stream>> connect();
  void pump(io::Stream& stream);
  std::string encode_queued();
  void read_acks(io::Stream& stream);
  bool take_acks();
  void drop_connection();
  void note_dial_failure(const io::Error& error);

  io::Env& env_;
  const LinkSettings& settings_;
  wire::Hello self_;
  const ClusterId& cluster_;
  const ServerId to_;
  std::string address_;
  std::string heard_address_;      // empty: none
  bool is_heard_address_next_ = false;
  io::RandomStream random_;
  std::uint64_t& messages_dropped_;

  std::deque<Message> queue_;
  std::uint64_t queue_bytes_ = 0;
  io::Condition queued_;
  io::Event nudged_;
  bool is_connected_ = false;
  std::uint64_t frames_sent_ = 0;

  // of the connection in use
  io::Stream* stream_ = nullptr;
  wire::FrameReader incoming_;
  std::uint64_t written_ = 0;       // frames written to it
  std::uint64_t acknowledged_ = 0;  // frames of it that arrived
  io::Instant unacknowledged_since_{};

  bool is_failure_logged_ = false;
  io::Instant next_failure_log_{};
};

}  // namespace raft
