// Who belongs to the cluster, and which volumes speak for them.
//
// A Configuration is a value: the list of servers with address, voting right and store id, and the cluster id. It is
// written into the log as the payload of a configuration entry and is in force on a server from the moment the entry is
// appended there, committed or not; when the entry is cut from the log, the one before is in force again.
// ConfigurationLog keeps what that needs. Quorum arithmetic over match indexes is in raft/quorum.h.
//
// Store ids (architecture, "Identity"): bootstrap writes a configuration without ids. The first entry of the first leader
// fixes the cluster id and the store ids it has heard; a server it has not heard keeps the zero id until a leader hears
// it and records it. A voter counts only through its recorded store: whoever appears under its name with another volume
// is a stranger until it is admitted again.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "raft/types.h"

namespace raft {

struct Server {
  ServerId id;
  std::string address;  // host:port of the cluster listener; opaque to raft
  bool voter = true;
  StoreId store;  // zero: not recorded yet

  friend bool operator==(const Server&, const Server&) = default;
};

struct Configuration {
  ClusterId cluster;            // zero: bootstrapped, but no leader's first entry is in the log yet
  std::vector<Server> servers;  // sorted by id, ids unique

  const Server* find(std::string_view id) const;  // null: not a member
  bool is_voter(std::string_view id) const;
  std::size_t voter_count() const;
  // Votes or acknowledgements that decide: more than half of the voters; 0 voters: 1, which nobody can reach.
  std::size_t quorum() const { return voter_count() / 2 + 1; }
  // Whether `store` may speak for voter `id`: it is the recorded one, or none is recorded yet.
  bool admits(std::string_view id, const StoreId& store) const;
  // Same voter ids; everything else may differ.
  bool same_voters(const Configuration& other) const;

  // Sorts the servers by id. Call after filling `servers` by hand.
  void normalise();

  friend bool operator==(const Configuration&, const Configuration&) = default;
};

// One step from a configuration to the next. Each moves at most one voter, so the quorums of the two always share a
// server (Ongaro, section 4.1); Core adds the rules about when.
struct ConfigurationChange {
  enum class Kind : std::uint8_t {
    add,             // `id` joins as a non-voter at `address`; `store` if its volume is known, else the first one heard
    promote,         // non-voter `id` becomes a voter
    demote,          // voter `id` becomes a non-voter
    remove,          // `id` leaves
    change_address,  // `id` is reached at `address` from now on
  };
  Kind kind = Kind::add;
  ServerId id;
  std::string address;  // add, change_address
  StoreId store;        // add
};

const char* to_string(ConfigurationChange::Kind kind);

enum class ChangeVerdict : std::uint8_t {
  changed,
  already_so,   // nothing to do: safe to take for success when a call is tried again
  not_a_member,
  invalid,      // an empty or overlong name or address, too many servers, or an `add` that contradicts what is recorded
};

// Carries `change` out on `configuration`, or leaves it as it is.
ChangeVerdict apply(const ConfigurationChange& change, Configuration& configuration);

// A configuration without ids, every server a voter: what bootstrap writes. `members` are (id, address) pairs.
Configuration bootstrap_configuration(std::vector<std::pair<ServerId, std::string>> members);

// The bytes of a configuration entry, equal for equal values. Layout (little endian): u8 version 1, cluster id (2 x u64),
// u32 number of servers, then for each: u32 length and bytes of id, u32 length and bytes of address, u8 voter, store id
// (2 x u64).
std::string encode(const Configuration& configuration);
// Nothing when the bytes are not exactly what encode() writes (a normalised list of at most 1,024 servers).
std::optional<Configuration> decode_configuration(std::string_view bytes);

// The configurations of one log: the one at its base and those of the entries above it, oldest first.
class ConfigurationLog {
 public:
  ConfigurationLog() = default;
  // `base`: in force at the log's base (bootstrap or snapshot), `index` the index it came from (0: bootstrap).
  ConfigurationLog(Index index, Configuration base);

  const Configuration& current() const { return items_.back().configuration; }
  Index current_index() const { return items_.back().index; }
  // The newest configuration at or below `index`; the base when there is none.
  const Configuration& at(Index index) const;
  // The index that at(index) came from.
  Index index_at(Index index) const;

  // The indexes above `index`, ascending, whose configuration has other voters than the one before.
  std::vector<Index> voter_changes_after(Index index) const;

  // `index` must lie above the newest one's.
  void append(Index index, Configuration configuration);
  // Forgets every configuration at or above `from`. Returns whether the current one changed. The base never goes.
  bool truncate(Index from);
  // Makes at(index) the base; later ones stay.
  void compact(Index index);

  // How many configurations above `index` change the voters of the one before: at most one may, above the commit index.
  std::size_t voter_changes_above(Index index) const;

  // Configurations kept, the base included: bounded by the configuration entries above the base.
  std::size_t size() const { return items_.size(); }

 private:
  struct Item {
    Index index = 0;
    Configuration configuration;
  };
  std::size_t position(Index index) const;
  std::vector<Item> items_{Item{}};
};

}  // namespace raft
