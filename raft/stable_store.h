// Term, vote and identity of one data directory, as one atomic, synced record; and the configuration it was bootstrapped with.
//
// Promises
//  - When save() returns success the record is durable; after a crash open() finds the last saved record, or the one whose save
//    did not return. One data sync a save.
//  - open() returns only what is durable: a record that a killed process left unsynced is synced first.
//  - Damage to one copy is made good from the other. When no copy of a place that may hold the newest record can be trusted,
//    the start is refused: a server never votes by a record older than its last. Nothing is changed then.
//  - A directory that holds a log or a bootstrap configuration but no record is refused: "no record" never means "never voted".
//  - A failed save ends the store.
//
// Form, little endian. raft/stable has four blocks of 4,096 bytes: two places of two copies each. Record number n is written
// into both copies of place n mod 2 by one write and one sync, so the place of record n - 1 stays whole whatever happens. A copy:
//      0  8  magic "NARADSTB"
//      8  4  format version (1)
//     12  4  CRC-32C of the 4,096 bytes with this field zero
//     16  8  record number, from 1
//     24  8  term
//     32 16  store id
//     48 16  cluster id; zero: not known
//     64  8  number of the log's newest durable batch at the time of the save
//     72  1  1: this directory was bootstrapped or joined, raft/bootstrap exists
//     73  1  length of the vote, then its bytes; zeros up to the end
// Both places are made together, before the file gets its name. A place whose two copies are both damaged may have been torn
// while record n was written, so that record n - 1 is the newest; or both copies were damaged later. The copies lie in blocks of
// their own, so one flipped bit or one lost sector never looks like a torn write of both.
//
// raft/bootstrap, written once through a temporary name: magic "NARADBST", version, CRC-32C of the rest, length, and the
// configuration as raft/configuration.h encodes it.
//
// Called by one fiber at a time. Source: architecture.md "Identity", scenarios PT-01, PT-02.
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

  // Opens raft/stable. Where there is no raft state at all, makes it with `new_store` and, if given, `bootstrap`. A directory
  // that has a record but was never bootstrapped takes `bootstrap` too. Waits. Errors: corrupt, invalid (a newer format),
  // and the disk's own; after corrupt and invalid nothing has been changed.
  static io::Result<std::unique_ptr<StableStore>> open(io::Disk& disk, const StoreId& new_store,
                                                       const std::optional<Configuration>& bootstrap);

  // Replaces the hard state, and the cluster id once it is known, durably. Waits.
  io::Status save(const HardState& hard_state, const ClusterId& cluster, std::uint64_t log_batch);

  const StableRecord& record() const { return record_; }
  // What this directory was bootstrapped with; empty when it never was.
  const Configuration& bootstrap() const { return bootstrap_; }
  // Whether open() made the directory's identity.
  bool is_new() const { return is_new_; }

 private:
  explicit StableStore(io::Disk& disk) : disk_(disk) {}

  io::Status create(const StoreId& store, const std::optional<Configuration>& bootstrap);
  io::Status load();
  io::Status load_bootstrap();
  io::Status write_bootstrap(const Configuration& bootstrap);
  io::Status write_record(const StableRecord& record);

  io::Disk& disk_;
  std::unique_ptr<io::File> file_;
  StableRecord record_;
  Configuration bootstrap_;
  bool is_new_ = false;
  std::optional<io::Error> failure_;
};

}  // namespace raft
