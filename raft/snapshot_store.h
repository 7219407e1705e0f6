// Snapshots on the disk: images of the state machine, each under a label that says what it contains, in raft/snapshots/.
//
// Promises
//  - A snapshot is listed only when it is complete: written whole, synced, renamed into place, the directory synced. What a crash
//    left is never listed, and is removed by confirm().
//  - The label equals the content: it stands in the header and again, with size and digest, in the trailer, which is written last.
//    Every chunk is checked when it is read; bytes that were written for another place or another snapshot do not pass.
//  - The newest two are kept. Others go only once the newer ones are durable. So the log may be compacted up to
//    compaction_floor(), the older of the two, and no further: should the newest turn out damaged, the older and the log still meet.
//  - A failed write, a full disk, a failed sync: what was there before stays, and the room is given back. The file of a failed
//    sync is never used again.
//  - Nothing here blocks the loop: every transfer is an io::File operation of one chunk at most (up to 1 MiB). Memory: two chunks
//    for each writer, reader or receiver. Rates are the caller's (Pace).
//
// A transfer that was broken off keeps its file, so that it can be resumed, until another begins or the next own snapshot.
//
// It knows nothing of the state machine: an image is a stream of bytes. Term and vote are in another file, which nothing here
// touches (PT-02). When to take, send, install and compact is the server's part. The order of an install is: the receiver's
// seal(), StateMachine::check_image(), publish(), then LogStore::reset() where the label does not match the log, then the switch.
//
// Form: raft/snapshot_format.h. Names: <index>-<term>.snapshot (20 digits each) is complete; writing-<n> and receiving are not.
// One writer and one receiver at a time. Source: architecture.md "raft", scenarios SC-03, SC-07, SC-08, SC-09, SI-09, SI-17,
// PT-16, IO-06, IO-08.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/disk.h"
#include "io/fiber.h"
#include "io/time.h"
#include "raft/pace.h"
#include "raft/snapshot_format.h"
#include "raft/state_machine.h"
#include "raft/types.h"

namespace raft {

struct SnapshotSettings {
  // 512 .. 1 MiB; of snapshots made here: a received one keeps its maker's. Each side of a transfer holds several chunks at a time: the
  // frame, the chunk, and what it becomes on the disk.
  std::uint32_t chunk_bytes = 256u << 10;
  std::uint64_t sync_step_bytes = 8u << 20;   // a sync at least this often, so that none has much to write
};

class SnapshotWriter;
class SnapshotReader;
class SnapshotReceiver;

class SnapshotStore {
 public:
  struct Damaged {
    std::string path;
    Index index = 0;  // by its name
    std::string reason;
  };

  // Lists what is complete, by headers, trailers and sizes; chunks are not read. Changes nothing. Waits. A damaged snapshot is no
  // error here: see damaged(). Errors: invalid (a newer format), corrupt (another volume's), the disk's own.
  static io::Result<std::unique_ptr<SnapshotStore>> open(io::Disk& disk, io::Clock& clock, const StoreId& store,
                                                         SnapshotSettings settings);
  // Whether raft/snapshots holds a file under a snapshot's name.
  static io::Result<bool> has_traces(io::Disk& disk);
  // Makes what open() listed durable and removes leftovers, but not a transfer that can be resumed. Once, before any snapshot
  // is written. Waits.
  io::Status confirm();

  // Complete snapshots, newest first, at most two.
  const std::vector<SnapshotInfo>& kept() const { return kept_; }
  // Files under a snapshot's name that are not what was written, newest first. They stay until a newer snapshot is published.
  const std::vector<Damaged>& damaged() const { return damaged_; }
  // Up to where the log may forget: the older of two kept snapshots; 0 while there are fewer.
  Index compaction_floor() const { return kept_.size() < 2 ? 0 : kept_.back().label.index; }

  // Reads and checks everything. `corrupt` names file, offset and chunk; the snapshot then counts as damaged and is no longer
  // kept. `not_found` when it is not kept. Waits.
  io::Status verify(const SnapshotLabel& label, std::uint64_t bytes_per_second = 0);

  // While a kept snapshot is held it can be read, also when two newer ones are kept: a transfer of it that was broken off goes on with
  // it. Each hold() is ended by one release(), which waits, or all at once by give_up_held(), for want of room.
  void hold(const SnapshotLabel& label);
  void release(const SnapshotLabel& label);
  void give_up_held();

  // Removes every snapshot, damaged ones too, durably. After confirm(), before anything is written. Waits.
  io::Status drop_all();

  // A new snapshot. `busy` while another is being written. Waits.
  io::Result<std::unique_ptr<SnapshotWriter>> write(std::uint64_t bytes_per_second = 0);
  // Opens a kept snapshot; `not_found` when it is none. The reader goes on when the snapshot is replaced meanwhile. Waits.
  io::Result<std::unique_ptr<SnapshotReader>> read(const SnapshotLabel& label);
  // Takes a snapshot from another server, or goes on with what an earlier life or connection received of the same one. What another
  // transfer left is dropped. `exists` when one at or above its index is kept; `busy` while another is received; `invalid` when
  // `info` is out of bounds. Waits (to resume: as long as it takes to read and rewrite what is there).
  io::Result<std::unique_ptr<SnapshotReceiver>> receive(const SnapshotInfo& info, std::uint64_t bytes_per_second = 0);

 private:
  friend class SnapshotWriter;
  friend class SnapshotReceiver;

  SnapshotStore(io::Disk& disk, io::Clock& clock, const StoreId& store, SnapshotSettings settings)
      : disk_(disk), clock_(clock), store_(store), settings_(settings) {}

  io::Status look_at(const std::string& name);
  const SnapshotInfo* find(const SnapshotLabel& label) const;
  bool is_held(const SnapshotLabel& label) const;
  void drop_spared();
  void remove_left_over();
  io::Status refuse_if_covered(Index index) const;
  // Renames a synced file into place, makes that durable, then removes what need not be kept.
  io::Status publish(const std::string& temporary, const SnapshotInfo& info);
  void prune();
  // Removes a file that is not, or no longer, a snapshot; later if it cannot be now.
  void discard(const std::string& path);
  void note_damaged(const SnapshotInfo& info, std::string reason);

  io::Disk& disk_;
  io::Clock& clock_;
  const StoreId store_;
  const SnapshotSettings settings_;
  std::vector<SnapshotInfo> kept_;
  std::vector<SnapshotLabel> held_;    // once for each hold
  std::vector<SnapshotInfo> spared_;   // no longer kept, but held
  std::vector<Damaged> damaged_;
  std::vector<std::string> left_over_;
  std::uint64_t next_temporary_ = 1;
  bool is_confirmed_ = false;
  bool is_writing_ = false;
  bool is_receiving_ = false;
  io::Mutex publishing_;
};

// Writes one image. Used by one fiber; goes before its store. Destroyed without publish() or abandon() it leaves a file that
// the next write() or confirm() removes.
class SnapshotWriter final : public ImageSink {
 public:
  ~SnapshotWriter() override;
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  // The next bytes of the image, any number: they are packed into chunks. Waits, also for the rate. After a failure the file is gone
  // and every call fails with the same error.
  io::Status write(std::string bytes) override;
  // Ends the image; `label` says what it contains. When it returns success the snapshot is durable and kept. `exists` when one
  // at or above its index is kept (SC-08: nothing to do): this one is dropped. Once. Waits.
  io::Result<SnapshotInfo> publish(const SnapshotLabel& label);
  // Removes the file. Waits.
  void abandon();

  std::uint64_t bytes() const { return info_.bytes; }

 private:
  friend class SnapshotStore;
  SnapshotWriter(SnapshotStore& store, std::string path, std::uint64_t bytes_per_second);

  io::Status write_chunk(std::string_view payload);
  io::Status write_at(std::uint64_t offset, std::string bytes);
  io::Status fail(io::Error error);

  SnapshotStore& store_;
  const std::string path_;
  SnapshotInfo info_;
  Pace pace_;
  std::unique_ptr<io::File> file_;
  std::string buffer_;  // of the chunk that is not full yet
  snapshot_format::Digest digest_;
  std::uint64_t chunks_ = 0;
  std::uint64_t unsynced_ = 0;  // bytes written since the last sync
  bool is_over_ = false;
  std::optional<io::Error> failure_;
};

// Reads one image, checked. Used by one fiber.
class SnapshotReader final : public ImageSource {
 public:
  const SnapshotInfo& info() const { return info_; }

  // The chunk that begins at `offset` of the image: a multiple of info().chunk_bytes below info().bytes. `corrupt` names file,
  // offset and chunk. Waits.
  io::Result<SnapshotChunk> read_chunk(std::uint64_t offset);
  // The image from its begin, as a state machine takes it. Checks the digest before it says that the image has ended.
  io::Result<std::string> read(std::size_t bytes_max) override;
  // For read() and read_chunk(): 0, no bound, at first.
  void set_bytes_per_second(std::uint64_t bytes_per_second) { pace_.set_bytes_per_second(bytes_per_second); }

 private:
  friend class SnapshotStore;
  friend class SnapshotReceiver;
  SnapshotReader(io::Clock& clock, SnapshotInfo info, std::unique_ptr<io::File> file)
      : info_(std::move(info)), pace_(clock, 0), file_(std::move(file)) {}

  io::Result<SnapshotChunk> read_number(std::uint64_t number);

  SnapshotInfo info_;
  Pace pace_;
  std::unique_ptr<io::File> file_;
  std::string chunk_;  // what read() has not handed out yet, from taken_ on
  std::size_t taken_ = 0;
  std::uint64_t next_chunk_ = 0;
  snapshot_format::Digest digest_;
};

// Takes one image from another server. Used by one fiber; goes before its store. It outlives a connection: keep it while the
// sender offers the same info, and go on at next_offset(). Destroyed, its file stays for a later receive().
class SnapshotReceiver {
 public:
  ~SnapshotReceiver();
  SnapshotReceiver(const SnapshotReceiver&) = delete;
  SnapshotReceiver& operator=(const SnapshotReceiver&) = delete;

  const SnapshotInfo& info() const { return info_; }
  // Where the next chunk begins: everything before it is here. info().bytes: all is.
  std::uint64_t next_offset() const { return next_; }
  bool is_complete() const { return next_ == info_.bytes; }

  // The chunk at next_offset(). `invalid` for another one (also one that is here already) or one of the wrong size, `corrupt`
  // when its checksum differs: nothing has changed then, ask again from next_offset(). Any other error ends this receiver
  // and removes its file. Waits.
  io::Status append(const SnapshotChunk& chunk);
  // Checks the digest, writes the trailer, syncs, and reads everything back. Once is_complete(). After any error the file is gone and
  // the transfer starts over. Waits.
  io::Status seal(std::uint64_t bytes_per_second = 0);
  // The sealed image, for StateMachine::check_image(). Waits.
  io::Result<std::unique_ptr<SnapshotReader>> image();
  // After seal(): puts the snapshot in place. When it returns success it is durable and kept. `exists` when one at or above its
  // index was published meanwhile: this one is dropped. Waits.
  io::Status publish();
  // Gives the transfer up and its room back. Waits.
  void abandon();

 private:
  friend class SnapshotStore;
  SnapshotReceiver(SnapshotStore& store, SnapshotInfo info);

  io::Status begin(std::uint64_t bytes_per_second);
  // What of the same image is here already, written anew: a page cache that survived a failed sync proves nothing.
  io::Result<bool> resume(Pace& pace);
  io::Status write_at(std::uint64_t offset, std::string bytes);
  io::Status fail(io::Error error);

  SnapshotStore& store_;
  SnapshotInfo info_;
  std::unique_ptr<io::File> file_;
  snapshot_format::Digest digest_;
  std::uint64_t next_ = 0;      // of the image
  std::uint64_t unsynced_ = 0;  // bytes written since the last sync
  bool is_sealed_ = false;
  bool is_over_ = false;
  std::optional<io::Error> failure_;
};

}  // namespace raft
