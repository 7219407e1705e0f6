// The durable log: segmented files under raft/log/, one data sync a batch.
//
// Promises
//  - When append() returns success the entries are durable and what they replaced is gone for good, as one atomic step
//    (batches above LogSettings::batch_bytes_max in several, each of which leaves a prefix).
//  - open() finds exactly the log as the last successful append() left it, possibly with what an append that did not return
//    had written; confirm() makes that durable before anybody may count on it.
//  - Damage below the frontier that was synced refuses the start: `corrupt`, naming file, offset and index; nothing on the
//    disk is changed. What a crash left of an unsynced write is cut.
//  - A failed write or sync ends the store: every later call fails. Only `no_space` leaves it usable; nothing of that
//    batch counts then, and it may be tried again.
//  - compact() forgets a prefix, in whole segments, oldest first; the log then begins where its oldest segment's header says. A
//    crash leaves some of the prefix. Whether a snapshot reaches to where the log begins is for the caller to check, at every start.
//  - reset() puts an empty log that begins at a given (index, term) in the place of this one, as one durable step: after a crash
//    there is the old log or the new one, and once it has returned never again the old one.
//  - Memory does not grow with the log: a place for every 64 KiB, a pair for every change of term, no entries.
//
// Form, little endian. A segment is named <generation, 20 decimal digits>.log and filled with zeros before its first use, so
// that a sync writes data alone. It begins with a header of 512 bytes:
//      0  8  magic "NARADLOG"
//      8  4  format version (1)
//     12  4  CRC-32C of the 512 bytes with this field zero, salted with the generation
//     16  8  generation
//     24  8  index of the entry before the segment's first, and
//     32  8  its term
//     40  8  sequence number of the segment's first batch
//     48  8  generation of the segment before; 0: none
//     56  8  where that one ends: everything before that is synced, what follows there does not count
//     64  8  bytes that were filled when the segment was made: the file is never shorter
//     72 16  store id (high, low word): a segment of another volume is refused
//     88  1  1: reset: the log begins here, behind an entry that a snapshot covers, even while there is no batch; generation before
//            is 0. 2: recycled: what no batch covers is old bytes, not zeros. A sum of these
// Batches follow, each at a multiple of 8, up to the first place that holds none:
//      0  4  magic "NLB1"
//      4  4  CRC-32C of the header from byte 8, salted with generation and offset
//      8  4  bytes of the body
//     12  4  CRC-32C of the body, salted with generation and first index
//     16  8  sequence number: one more than the batch before, over all segments
//     24  8  first index: entries at and above it that came before are cut
//     32  8  frontier: everything of this segment below this offset was synced before this batch was written; what lies
//            between it and this batch does not count
//     40  8  epoch: counts the openings of the log. It never falls, so what one opening cut cannot pass for the continuation
//            of what a later one wrote in its place
//     48  8  number of the stable store's record at that time
//     56  4  number of entries
//     60  4  zero
//  then for each entry: 8 bytes term, 4 bytes length, 1 byte type, 3 bytes zero, its payload; zeros up to a multiple of 8.
// Generations only rise. A segment that compaction frees may be kept as <generation>.spare and renamed to a later segment: it needs
// no filling then. It keeps its old bytes, but they are salted with their old generation and never pass.
//
// The first segment of the log may name one before it that is gone: compaction removed it. Since it removes the oldest first and
// syncs the directory each time, a missing segment with an older one still there is damage. A crash in between may leave segments
// that a later batch cuts below their base: they do not count, and the log begins with the first segment behind them.
//
// Cuts: replay takes batches in order, so a batch that begins at or below the end of the log cuts it there. No cut stands
// apart from its entries, so none can be skipped while its entries are kept.
//
// The last batch after a restart: a process that was killed, or whose sync failed, may have left it in the page cache alone,
// and after a failed sync the kernel may hold it for clean: another sync would then succeed without writing it. So confirm()
// never syncs what it finds; it writes the last batch again behind itself (same sequence number and frontier, new epoch),
// or into a new segment that ends the one before in front of it, and syncs that.
//
// Limit, by nature: the newest batch of the log has nothing behind it that names it as synced, so damage to it looks like a
// torn write. The stable store's record (raft/stable_store.h) names the newest batch of the time when it was written, which
// shortens the blind spot.
//
// append() and reset() are called by one fiber, prepare_segment() by another, compact() by a third, read() by any. Source:
// architecture.md "raft", scenarios PT-03, PT-04, PT-06, PT-07, PT-09, PT-16, LR-13.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/disk.h"
#include "io/fiber.h"
#include "raft/log_format.h"
#include "raft/log_view.h"
#include "raft/types.h"

namespace raft {

struct LogSettings {
  std::uint64_t segment_bytes = 16u << 20;    // at least 4 KiB; a batch that needs more gets a segment of its own size
  std::uint64_t fill_step_bytes = 1u << 20;   // zeros written at a time while a segment is prepared
  std::uint64_t batch_bytes_max = 8u << 20;   // of payloads and frames in one batch; a single entry may exceed it
  std::uint64_t tail_bytes_max = 16u << 20;   // cost of the entries that open() returns; at least the last one
  std::uint32_t spares_max = 2;               // segments kept for use again
};

class LogStore {
 public:
  // What open() found.
  struct Contents {
    Index base_index = 0;  // of the entry before the first
    Term base_term = 0;
    Index last_index = 0;
    std::vector<Entry> entries;         // the last ones, up to last_index, within LogSettings::tail_bytes_max
    std::vector<TermRun> terms;         // of all of the log, ascending
    std::vector<Entry> configurations;  // every configuration entry of the log, ascending
    bool had_torn_tail = false;

    Term last_term() const { return terms.empty() ? base_term : terms.back().term; }
  };

  // Reads and checks the whole log of `store`, a segment at a time; an empty one where there is none. Changes nothing. Waits. Errors:
  // corrupt (see above), invalid (a newer format), and the disk's own.
  static io::Result<std::unique_ptr<LogStore>> open(io::Disk& disk, const StoreId& store, LogSettings settings,
                                                    Contents& contents);
  // Makes what open() found durable and removes what a crash left over. Once, before append(). Waits.
  io::Status confirm();

  // Whether raft/log holds a segment with anything in it, or one that cannot be read.
  static io::Result<bool> has_traces(io::Disk& disk);

  // Cuts the log at entries.front().index, if it reaches that far, and appends. Entries are consecutive and not empty; the
  // first is at most one past the end. Waits.
  io::Status append(std::span<const Entry> entries);

  // Makes the next segment ready, if none is; success when there is nothing to do. Waits. `no_space` may be tried again.
  io::Status prepare_segment();
  // True when no segment stands ready and the one in use is half full or there is none.
  bool wants_segment() const;

  // Forgets entries at and below `up_to`, as far as whole segments go: first_index() rises to at most up_to + 1. The caller has made
  // sure that a durable snapshot covers them, and that nobody above needs them. Safe beside append(), prepare_segment() and
  // read(): what is being read stays for the next call. `no_space` may be tried again. Waits.
  io::Status compact(Index up_to);
  // Puts away what compact() or reset() took out of the log but could not remove then, for want of room or because it was being
  // read. Safe beside the same as compact(). `no_space` may be tried again. Waits.
  io::Status remove_unused();
  bool has_unused() const { return !unused_.empty(); }
  // Empties the log: it goes on behind (index, term), which a durable snapshot covers, and which the log does not match. Not
  // beside append(). `no_space`: nothing has changed, it may be tried again. Waits.
  io::Status reset(Index index, Term term);

  // Empties the log: it goes on with index 1, as one durable step. For a server that starts over (raft/restart.h: reset); before the
  // first append(). Errors as reset(). Waits.
  io::Status forget();

  // Entries first..last, read from the disk and checked again; stops once `cost_bytes_max` is passed, and at the log's end, but
  // returns one entry at least; it may return fewer than fit. Reads from the disk what it returns and at most 64 KiB, one batch
  // and cost_bytes_max (16 KiB to 1 MiB) more. `not_found` when `first` is not in the log, and for nothing else: compact() or
  // reset() has forgotten it, and the caller has to go by a snapshot, or a cut has taken it. What an append() cuts meanwhile may be
  // among the result: compare terms. Waits.
  io::Result<std::vector<Entry>> read(Index first, Index last, std::uint64_t cost_bytes_max) const;

  Index first_index() const { return base_index_ + 1; }
  Index last_index() const { return last_index_; }
  // Of an entry of the log, or of the one before its first; nothing for others.
  std::optional<Term> term(Index index) const;
  // Bytes of the segments, those in use, ready and spare.
  std::uint64_t disk_bytes() const;
  // Sequence number of the newest batch; 0: none ever.
  std::uint64_t last_batch() const { return next_batch_ - 1; }
  // The number of the stable store's record, named by the batches that follow; after open() what the newest batch named.
  void set_stable_record(std::uint64_t sequence) { stable_record_ = sequence; }
  std::uint64_t stable_record() const { return stable_record_; }
  // Data syncs of batches so far.
  std::uint64_t syncs() const { return syncs_; }

 private:
  friend class LogRecovery;

  struct Segment {
    std::uint64_t generation = 0;
    std::uint64_t filled_bytes = 0;
    std::unique_ptr<io::File> file;
    bool is_recycled = false;
  };
  // The end of a segment as the next one's header names it.
  struct End {
    std::uint64_t generation = 0;
    std::uint64_t offset = 0;
  };
  // One of the log's segments, the one in use included.
  struct Link {
    std::uint64_t generation = 0;
    std::uint64_t filled_bytes = 0;
    Index base_index = 0;
    Term base_term = 0;
    bool is_cut_below = false;  // a later batch cuts below its base: the log cannot begin here
  };
  // Batches that stand one behind the other, each continuing the one before: entries from `first` up to the next place's first.
  struct Place {
    Index first = 0;
    std::uint64_t generation = 0;
    std::uint64_t offset = 0;
  };

  LogStore(io::Disk& disk, const StoreId& store, LogSettings settings) : disk_(disk), store_(store), settings_(settings) {}

  io::Status append_batch(std::span<const Entry> entries, std::uint64_t sequence, std::uint64_t frontier);
  io::Status begin_segment(std::span<const Entry> entries, std::uint64_t sequence, End before);
  // Writes the first bytes of ready_ and makes it the one in use. A refused write leaves no trace of itself.
  io::Status put_in_use(log_format::SegmentHeader header, std::span<const Entry> entries);
  io::Status write_out(Segment& segment, std::uint64_t offset, std::string bytes);
  void encode_batch(std::span<const Entry> entries, std::uint64_t sequence, std::uint64_t frontier, std::uint64_t generation,
                    std::uint64_t offset, std::string& out) const;
  void note_written(std::span<const Entry> entries, std::uint64_t sequence, std::uint64_t offset, std::uint64_t bytes);
  void note_batch(Index first, std::uint64_t entries, std::uint64_t offset, std::uint64_t bytes);
  void note_term(Index index, Term term);
  io::Status ensure_ready(std::uint64_t bytes);
  io::Status make_segment(std::uint64_t bytes);
  io::Status use_spare();
  io::Status fill_segment(Segment& segment, std::uint64_t bytes);
  io::Status begin_anew(Index index, Term term);
  io::Status begin_empty(Index index, Term term);
  io::Status repeat_last_batch();
  io::Result<std::unique_ptr<io::File>> open_segment(std::uint64_t generation, io::OpenMode mode) const;
  io::Status fail_unless_full(io::Status status);

  io::Disk& disk_;
  const StoreId store_;
  const LogSettings settings_;

  Index base_index_ = 0;
  Term base_term_ = 0;
  Index last_index_ = 0;
  std::uint64_t next_batch_ = 1;
  std::uint64_t epoch_ = 1;
  std::uint64_t stable_record_ = 0;
  std::uint64_t syncs_ = 0;
  std::uint64_t newest_generation_ = 0;
  std::vector<std::string> left_over_;  // found by open(), removed by confirm()
  std::vector<std::string> unused_spares_;  // likewise, and before anything is written

  std::optional<Segment> active_;
  End before_active_;      // as the header of the active one names it
  std::uint64_t end_ = 0;  // where the next batch of the active one goes
  // The newest batch, until it is confirmed; none while a log that was reset is still empty.
  std::uint64_t last_frontier_ = 0;
  std::vector<Entry> last_entries_;
  bool is_confirmed_ = false;

  std::optional<Segment> ready_;
  io::Mutex preparing_;  // ready_, spares_
  std::deque<Link> chain_;   // the log's segments, oldest first
  std::deque<Link> unused_;  // out of the log, still on the disk, oldest first
  std::deque<std::uint64_t> spares_;
  io::Mutex removing_;  // unused_
  mutable std::multiset<std::uint64_t> being_read_;  // generations
  std::deque<Place> places_;
  std::uint64_t place_end_ = 0;   // of the newest place, in its segment
  Index next_in_place_ = 0;       // the entry that would continue it
  std::deque<TermRun> terms_;
  std::optional<io::Error> failure_;
};

}  // namespace raft
