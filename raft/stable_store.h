// Term, vote and identity of one data directory, as one atomic, synced record; and the configuration it was bootstrapped with.
//
// Promises
//  - When save() returns success the record is durable; after a crash open() finds the last saved record, or the one whose save
//    did not return. One data sync a save.
//  - confirm() makes durable what open() found, before anybody may count on it.
//  - Damage to one copy is made good from the other. When the newest record cannot be told, the start is refused: a server never
//    votes by a record older than its last. Nothing is changed then.
//  - A directory that holds a log, a snapshot or a bootstrap configuration but no record is refused: "no record" never means "never
//    voted".
//  - A failed save ends the store.
//
// Form, little endian. raft/stable has four blocks of 4,096 bytes: two places of two copies each. Record number n stands in both
// copies of place n mod 2, written by one write and one sync, so that the place of record n - 1 stays whole whatever happens:
//      0  8  magic "NARADSTB"
//      8  4  format version (1)
//     12  4  CRC-32C of the 4,096 bytes with this field zero
//     16  8  record number
//     24  8  term
//     32 16  store id (high, low word)
//     48 16  cluster id; zero: not known
//     64  8  number of the log's newest durable batch at the time of the save
//     72  1  1: this directory was bootstrapped, raft/bootstrap exists; 2: HardState::is_rebuilding. A sum of these
//     73  1  length of the vote, then its bytes; zeros up to the end
// The file is made under a temporary name with records 0 and 1, equal but for the number. A place whose two copies are both
// damaged was torn while its record was written, which nobody counted on yet, so the other place holds the newest; one flipped bit
// or one lost sector never looks like that, since the copies are in blocks of their own.
//
// What open() finds may be in the page cache alone, and after a failed sync be held for clean there, so that syncing it again
// proves nothing. confirm() therefore writes the newest record anew, with a number two higher, into its own place: one copy,
// sync, the other copy, sync. Torn at any point, either that record or the one before is found, whichever was durable.
//
// raft/bootstrap, written once through a temporary name: magic "NARADBST", u32 version, u32 CRC-32C of the rest, and the
// configuration as raft/configuration.h encodes it.
//
// Called by one fiber at a time. Source: architecture.md "Identity", scenarios PT-01, PT-02, PT-09.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "io/disk.h"
#include "raft/configuration.h"
#include "raft/types.h"

namespace raft {

struct StableRecord {
  HardState hard_state;
  StoreId store;
  ClusterId cluster;
  std::uint64_t log_batch = 0;
  bool is_bootstrapped = false;
  std::uint64_t sequence = 0;  // set by the store

  friend bool operator==(const StableRecord&, const StableRecord&) = default;
};

class StableStore {
 public:
  // The longest vote (a server id) that a record holds.
  static constexpr std::size_t kVoteBytesMax = 255;

  // Reads raft/stable, or decides that a new one is due: a directory without any raft state, which confirm() then gives
  // `new_store`. Changes nothing. Waits. Errors: corrupt, invalid (a newer format), and the disk's own.
  static io::Result<std::unique_ptr<StableStore>> open(io::Disk& disk, const StoreId& new_store);
  // Makes the record durable (or makes the store), and bootstraps the directory with `bootstrap` if it never was and one is
  // given. Once, before save(). Waits.
  io::Status confirm(const std::optional<Configuration>& bootstrap);

  // Replaces the hard state, and the cluster id once it is known, durably. Waits.
  io::Status save(const HardState& hard_state, const ClusterId& cluster, std::uint64_t log_batch);

  // Records, durably, that this server is about to lose entries (HardState::is_rebuilding). Waits.
  io::Status begin_rebuilding();

  const StableRecord& record() const { return record_; }
  // What this directory was bootstrapped with; empty when it never was.
  const Configuration& bootstrap() const { return bootstrap_; }
  // Whether confirm() makes, or made, the directory's identity.
  bool is_new() const { return is_new_; }

 private:
  explicit StableStore(io::Disk& disk) : disk_(disk) {}

  io::Status load();
  io::Status load_bootstrap();
  io::Status make();
  io::Status rewrite();
  io::Status write_bootstrap(const Configuration& bootstrap);
  io::Status write_record();

  io::Disk& disk_;
  std::unique_ptr<io::File> file_;
  StableRecord record_;
  Configuration bootstrap_;
  bool is_new_ = false;
  bool is_confirmed_ = false;
  std::optional<io::Error> failure_;
};

}  // namespace raft
