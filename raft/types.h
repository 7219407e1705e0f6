// The words of the consensus protocol: terms, indexes, entries, servers' identities, hard state, messages, roles.
//
// Plain value types shared by the pure core, the log store, the wire format and the server that drives them. Nothing here
// does anything but hold values; what a field means is said here and nowhere else. How a message is encoded is the wire's
// matter (raft/wire), how an entry is stored the log store's.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace raft {

// No index, term, number or count comes near this, so what counts on from one does not overflow. What claims more, on a disk or on
// the wire, is damaged.
inline constexpr std::uint64_t kNumberMax = std::uint64_t{1} << 62;

using Term = std::uint64_t;   // 0: before the first election
using Index = std::uint64_t;  // the first entry of a log has index 1; 0: before it

// The name of a server, as the operator gave it (NARAD_NODE_ID). It survives the loss of its volume; a StoreId does not.
using ServerId = std::string;

// A 128-bit random name as a value: ordered, zero meaning "unknown". Tag keeps store and cluster names apart.
template <class Tag>
struct Id128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  bool is_known() const { return high != 0 || low != 0; }
  friend auto operator<=>(const Id128&, const Id128&) = default;

  // 32 lower-case hexadecimal digits, high word first.
  std::string to_string() const {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text(32, '0');
    for (int i = 0; i < 16; ++i) {
      text[15 - i] = kDigits[(high >> (4 * i)) & 15];
      text[31 - i] = kDigits[(low >> (4 * i)) & 15];
    }
    return text;
  }

  // The inverse of to_string(); upper-case digits are taken too. Anything else gives nothing.
  static std::optional<Id128> parse(std::string_view text) {
    if (text.size() != 32) return std::nullopt;
    std::uint64_t words[2] = {0, 0};
    for (std::size_t i = 0; i < 32; ++i) {
      const char c = text[i];
      std::uint64_t digit = 0;
      if (c >= '0' && c <= '9') {
        digit = static_cast<std::uint64_t>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        digit = static_cast<std::uint64_t>(c - 'a' + 10);
      } else if (c >= 'A' && c <= 'F') {
        digit = static_cast<std::uint64_t>(c - 'A' + 10);
      } else {
        return std::nullopt;
      }
      words[i / 16] = words[i / 16] << 4 | digit;
    }
    return Id128{words[0], words[1]};
  }
};

// Names one volume: drawn when a data directory is created, gone with it.
using StoreId = Id128<struct StoreIdTag>;
// Names one cluster: fixed by the first entry of its first leader.
using ClusterId = Id128<struct ClusterIdTag>;

// What an entry carries. Values are stored in logs and sent between servers: they never change.
enum class EntryType : std::uint8_t {
  noop = 0,           // no payload; a leader's first entry, commits what came before
  command = 1,        // opaque bytes for the state machine
  configuration = 2,  // an encoded Configuration (raft/configuration.h)
};

const char* to_string(EntryType type);

// Bytes of one entry, shared and immutable from the proposal to the last message and apply. Null reads as empty.
using Payload = std::shared_ptr<const std::string>;

struct Entry {
  Term term = 0;  // of the leader that created it
  Index index = 0;
  EntryType type = EntryType::noop;
  Payload data;

  std::string_view bytes() const { return data ? std::string_view(*data) : std::string_view(); }
  // What the entry counts for in every bound stated in bytes: its payload and a flat charge for its frame.
  std::uint64_t cost_bytes() const { return kFrameBytes + (data ? data->size() : 0); }

  static constexpr std::uint64_t kFrameBytes = 40;
};

// Same term, index, type and payload bytes.
bool same_entry(const Entry& a, const Entry& b);

// What a server must find again after any crash before it speaks: persisted as one atomic, synced record.
struct HardState {
  Term term = 0;
  ServerId vote;  // whom this server voted for in `term`; empty: nobody
  // This server has lost entries that it had acknowledged (raft/restart.h: reset): it gives no vote, and does not campaign, until a
  // leader has brought it up to its commit index.
  bool is_rebuilding = false;

  friend bool operator==(const HardState&, const HardState&) = default;
};

enum class Role : std::uint8_t { follower = 0, pre_candidate = 1, candidate = 2, leader = 3 };

const char* to_string(Role role);

enum class MessageType : std::uint8_t {
  pre_vote_request = 1,  // "would you vote for me in campaign_term?"; moves nobody's term
  pre_vote_reply = 2,
  vote_request = 3,
  vote_reply = 4,
  append_request = 5,  // also the heartbeat: an append without entries
  append_reply = 6,
  timeout_now = 7,  // leader to the server that is to take over: campaign at once
};

const char* to_string(MessageType type);

// One message between two servers. Every message carries the first group; which other fields count depends on the type.
//
// A message may be lost, repeated, delayed and reordered at will; it must not be changed on the way (the transport
// checks that).
struct Message {
  MessageType type = MessageType::append_request;
  ServerId from;
  ServerId to;
  Term term = 0;           // the sender's own current term
  StoreId from_store;      // the volume that the sender speaks for
  ClusterId cluster;       // the sender's cluster; zero while it knows none
  std::uint64_t session = 0;  // drawn anew each time the sender starts: tells one life of a server from the next

  // The two ends of a contact proof. sent_at_ns is the sender's own monotonic clock, meaningless to anybody else; the
  // answer returns it in echo_ns (with the session it came from), so that a server measures contact by its own clock
  // from the moment it *sent* what was answered. Zero: nothing to echo.
  std::int64_t sent_at_ns = 0;
  std::int64_t echo_ns = 0;
  std::uint64_t echo_session = 0;

  // Elections (all four types): the term that the election is about. Pre-vote: the candidate's term + 1.
  Term campaign_term = 0;
  bool granted = false;  // replies
  // vote_request: the leader itself asked for this election, so that having heard it is no reason to refuse.
  bool is_transfer = false;

  // vote and pre_vote requests: the candidate's last entry.
  // timeout_now: the leader's last entry, which the receiver must hold.
  // append_request: the entry before entries[0], which the receiver must hold.
  // append_reply: accepted, the last index that this request proved (its log_index + number of entries); rejected, the
  // log_index of the request that was refused.
  Index log_index = 0;
  Term log_term = 0;  // requests only

  // append_request
  Index commit = 0;
  std::vector<Entry> entries;  // consecutive, first is log_index + 1

  // append_request and its reply: the leader's newest round begun before the send; the reply returns it. A round is
  // proven by answers to sends that came after its begin, which is what a read index needs.
  std::uint64_t round = 0;

  // append_reply
  bool rejected = false;  // the receiver does not hold (log_index, log_term)
  Index match = 0;        // accepted: last index that is proven to match this leader's log and durable at the sender
  Index hint_index = 0;   // rejected: a place at or below log_index where the leader may try next ...
  Term hint_term = 0;     // ... and the term that the sender has there
};

}  // namespace raft
