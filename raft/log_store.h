// The durable log: segmented files under raft/log/, one data sync a batch.
//
// Promises
//  - When append() returns success the entries are durable and what they replaced is gone for good, as one atomic step
//    (batches above LogSettings::batch_bytes_max in several, each of which leaves a prefix).
//  - open() returns exactly the log as the last successful append() left it, possibly with what an append that did not
//    return had written: that is made durable before open() returns.
//  - Damage below the frontier that was synced refuses the start: `corrupt`, naming file, offset and index; nothing on the
//    disk is changed. What a crash left of an unsynced write is cut.
//  - A failed write or sync ends the store: every later call fails. Only `no_space` leaves it usable; nothing of that
//    batch counts then, and it may be tried again.
//
// Form, little endian. A segment is named <generation, 20 decimal digits>.log and filled with zeros before its first use, so
// that a sync writes data alone. It begins with a header of 512 bytes:
//      0  8  magic "NARADLOG"
//      8  4  format version (1)
//     12  4  CRC-32C of the 512 bytes with this field zero, salted with the generation
//     16  8  generation
//     24  8  index of the next entry when the segment was begun
//     32  8  term of the entry before that
//     40  8  sequence number of the segment's first batch
//     48  8  generation of the segment before; 0: none
//     56  8  where that one's last batch ended: all of it is synced
//     64  8  bytes that were filled when the segment was made: the file is never shorter
//     72 16  store id (high, low word): a segment of another volume is refused
// Batches follow, each at a multiple of 8, up to the first place that holds none:
//      0  4  magic "NLB1"
//      4  4  CRC-32C of the header from byte 8, salted with generation and offset
//      8  4  bytes of the body
//     12  4  CRC-32C of the body, salted with generation and first index
//     16  8  sequence number: one more than the batch before, over all segments
//     24  8  first index: entries at and above it that came before are cut
//     32  8  frontier: everything of this segment below this offset was synced before this batch was written
//     40  8  epoch: counts the openings of the log. Never falls; what an earlier opening cut cannot pass for the
//            continuation of what a later one wrote in its place
//     48  8  sequence number of the stable store's record at that time
//     56  4  number of entries
//     60  4  zero
//  then for each entry: 8 bytes term, 4 bytes length, 1 byte type, 3 bytes zero, its payload; zeros up to a multiple of 8.
// Generations only rise. A recycled segment keeps old bytes, but they are salted with their old generation and never pass.
//
// Who finds a cut: replay takes batches in order, so a batch that begins at or below the end of the log cuts it there. No
// cut stands apart from its entries, so none can be skipped while its entries are kept.
//
// Limit, by nature: the newest batch of the log has nothing behind it that names it as synced, so damage to it looks like a
// torn write. The stable store's record (raft/stable_store.h) names the newest batch of the time when it was written, which
// shortens the blind spot.
//
// append() is called by one fiber, prepare_segment() by another. Source: architecture.md "raft", scenarios PT-04, PT-06, PT-07,
// PT-09, LR-13.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/disk.h"
#include "raft/types.h"

namespace raft {

struct LogSettings {
  std::uint64_t segment_bytes = 16u << 20;    // at least 4 KiB; a batch that needs more gets a segment of its own size
  std::uint64_t fill_step_bytes = 1u << 20;   // zeros written at a time while a segment is prepared
  std::uint64_t batch_bytes_max = 8u << 20;   // of payloads and frames in one batch; a single entry may exceed it
};

class LogStore {
 public:
  // What open() found.
  struct Contents {
    Index base_index = 0;  // of the entry before the first
    Term base_term = 0;
    std::vector<Entry> entries;
    bool had_torn_tail = false;
  };

  // Opens the log of `store`, or makes an empty one where there is none. Waits. Errors: corrupt (see above), invalid (a newer
  // format), and the disk's own. `stable_batch` is the batch number that the stable store's record names: a log that ends
  // before it has lost a part and is refused.
  static io::Result<std::unique_ptr<LogStore>> open(io::Disk& disk, const StoreId& store, LogSettings settings,
                                                    std::uint64_t stable_batch, Contents& contents);

  // Whether raft/log holds a segment with anything in it or that cannot be told; for a data directory without identity.
  static io::Result<bool> has_traces(io::Disk& disk);

  // Cuts the log at entries.front().index, if it reaches that far, and appends. Entries are consecutive and not empty; the
  // first is at most one past the end. Waits.
  io::Status append(std::span<const Entry> entries);

  // Makes the next segment ready, if none is; success when there is nothing to do. Waits. `no_space` may be tried again.
  io::Status prepare_segment();
  // True when the segment in use is half full and no other stands ready.
  bool wants_segment() const;

  // Entries first..last, read from the disk and checked again; stops once `cost_bytes_max` is passed, but returns one entry
  // at least. first..last lie within the log. Waits.
  io::Result<std::vector<Entry>> read(Index first, Index last, std::uint64_t cost_bytes_max) const;

  Index first_index() const { return base_index_ + 1; }
  Index last_index() const { return last_index_; }
  Term last_term() const { return last_term_; }
  // Number of the newest durable batch; 0: none ever.
  std::uint64_t last_batch() const { return next_batch_ - 1; }
  // Named by the batches that follow (see the form).
  void set_stable_record(std::uint64_t sequence) { stable_record_ = sequence; }
  // Named by the newest batch found by open(); 0: none.
  std::uint64_t stable_record_seen() const { return stable_record_; }
  // Data syncs of batches so far.
  std::uint64_t syncs() const { return syncs_; }

 private:
  struct Segment {
    std::uint64_t generation = 0;
    std::uint64_t filled_bytes = 0;
    std::unique_ptr<io::File> file;
  };
  // Where the entries from `first` on are, up to the next place's first.
  struct Place {
    Index first = 0;
    std::uint64_t generation = 0;
    std::uint64_t offset = 0;
  };

  LogStore(io::Disk& disk, const StoreId& store, LogSettings settings);

  friend class LogRecovery;
  io::Status append_batch(std::span<const Entry> entries, std::uint64_t body_bytes);
  io::Status begin_segment(std::uint64_t bytes_needed, std::string& out);
  io::Status make_segment(std::uint64_t bytes);
  void fail(const io::Error& error);
  void place(Index first, std::uint64_t generation, std::uint64_t offset);

  io::Disk& disk_;
  const StoreId store_;
  const LogSettings settings_;

  Index base_index_ = 0;
  Term base_term_ = 0;
  Index last_index_ = 0;
  Term last_term_ = 0;
  std::uint64_t next_batch_ = 1;
  std::uint64_t epoch_ = 1;
  std::uint64_t stable_record_ = 0;
  std::uint64_t syncs_ = 0;
  std::uint64_t newest_generation_ = 0;

  std::optional<Segment> active_;
  std::uint64_t end_ = 0;  // where the next batch of the segment in use goes
  std::optional<Segment> ready_;
  io::Mutex preparing_;
  std::deque<Place> places_;
  std::optional<io::Error> failure_;
};

}  // namespace raft
