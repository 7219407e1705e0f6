// The disk of one machine: files and names in memory, what of them is durable, and every fault that a disk can have.
//
// Model. A write changes the page cache; sync of the file makes the writes issued before it durable; a name (create,
// rename, remove, make directory) is durable after sync of its directory. A kill loses nothing. A power loss keeps of
// the names a drawn prefix, in order, of the operations that were not durable, and of each file what was synced and a
// drawn part of the rest:
//  - ordered files (the default, what RocksDB needs): the first so many unsynced writes stay, the next is perhaps cut;
//  - scattered files (MachineSettings::scattered_prefixes): any 512-byte sectors of the unsynced writes stay, perhaps
//    with a flipped bit.
//
// Both doors to a volume count and fault alike: io::Disk of a process (operations take time and land in events of their
// own) and RocksDB's file system (operations land at once, inside the call; their time is charged to the lane
// afterwards).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/disk.h"
#include "io/result.h"
#include "io/sim/file_tree.h"
#include "io/sim/settings.h"

namespace io::sim {

class Incarnation;
class Machine;

// Kinds of operation, as faults name them. All from `create` on change the disk: "mutating".
enum class DiskOp : uint8_t {
  read,
  list,
  create,
  write,
  sync,
  truncate,
  rename,
  remove,
  make_directory,
  sync_directory
};

const char* to_string(DiskOp op);

// Random faults below a path prefix, each with a chance in parts per million of one operation.
struct FaultRates {
  std::string prefix;  // "" is every path
  uint32_t read_error_ppm = 0;
  uint32_t write_error_ppm = 0;  // every mutating operation but the syncs
  uint32_t sync_error_ppm = 0;   // file and directory; pages count as clean: a later sync "succeeds" without them
  uint32_t no_space_ppm = 0;     // operations that need room
  uint32_t slow_ppm = 0;         // DiskSettings::slow is added to the latency
};

enum class FaultAction : uint8_t {
  error,  // io
  no_space,
  stall,  // hangs until release() (in RocksDB: the operation lands, and its lane hangs)
  slow,
  bit_flip,   // a write lands with one drawn bit flipped, and reports success
  misdirect,  // a write lands at another drawn sector of its file, and reports success
  kill,       // the process ends here; whether and how far the operation itself lands is drawn
  power_loss,
};

// One fault, once: strikes the `nth` matching operation from now on (1 is the next).
struct ScriptedFault {
  FaultAction action = FaultAction::error;
  std::optional<DiskOp> op;  // nullopt: any mutating operation
  std::string prefix;
  uint64_t nth = 1;
  std::function<bool(DiskOp, std::string_view path)> when = {};  // of those: the operations for which it holds; null: all
  std::function<void()> struck = {};                             // called as it strikes
};

class Volume {
 public:
  Volume(Machine& machine, const MachineSettings& settings);
  ~Volume();
  Volume(const Volume&) = delete;
  Volume& operator=(const Volume&) = delete;

  // ---- Faults -------------------------------------------------------------------------------------------------------
  // Replaces every rate; empty: none.
  void set_rates(std::vector<FaultRates> rates) { rates_ = std::move(rates); }
  void script(ScriptedFault fault);
  size_t scripted_left() const { return scripted_.size(); }
  void clear_scripted() { scripted_.clear(); }
  // May be less than what is used: steps that need room then fail with no_space.
  void set_capacity(uint64_t bytes) { capacity_ = bytes; }
  uint64_t capacity() const { return capacity_; }
  uint64_t used() const { return tree_.used_bytes(); }
  uint64_t free_bytes() const { return used() >= capacity_ ? 0 : capacity_ - used(); }
  // From now on operations hang, until release(), which lets them go on and ends scripted stalls too.
  void stall();
  void release();
  bool stalled() const { return stalled_; }

  // ---- The image, for plans and checks: no faults, no time, not counted; what is put is durable ---------------------
  FileTree& tree() { return tree_; }
  void wipe();
  // A copy of what stands below `path` now, and its return later. The process must not be live for restore.
  FileTree::Image copy(std::string_view path) const { return tree_.copy(path); }
  void restore(std::string_view path, const FileTree::Image& image);
  // Flips one bit of a file, on the disk and in the page cache. False when there is no such byte.
  bool flip_bit(std::string_view path, uint64_t offset, int bit);

  // Operations so far, by those that change the disk.
  uint64_t mutations() const { return mutations_; }
  // Calls `observer` before each mutating operation lands (checks of what is removed or overwritten).
  void set_observer(std::function<void(DiskOp, std::string_view path)> observer) { observer_ = std::move(observer); }

  // ---- Operations of processes, for the parts of io/sim: each is judged by the faults and lands at once -------------
  // A dead process's operations fail and change nothing.
  Result<NodePtr> open(Incarnation& process, std::string_view path, OpenMode mode);
  Result<std::string> read(Incarnation& process, const Node& file, std::string_view path, uint64_t offset,
                           size_t length);
  Status write(Incarnation& process, Node& file, std::string_view path, uint64_t offset, std::string_view data);
  Status truncate(Incarnation& process, Node& file, std::string_view path, uint64_t size);
  Status sync(Incarnation& process, Node& file, std::string_view path, uint64_t mark);
  Status make_directory(Incarnation& process, std::string_view path);  // with its parents; success when it is there
  Status rename(Incarnation& process, std::string_view from, std::string_view to);
  Status link(Incarnation& process, std::string_view from, std::string_view to);
  Status remove(Incarnation& process, std::string_view path);
  Status sync_directory(Incarnation& process, std::string_view path);
  Result<std::vector<std::string>> list(Incarnation& process, std::string_view path);
  Result<FileInfo> stat(Incarnation& process, std::string_view path);
  Status lock(Incarnation& process, std::string_view path);  // busy
  void unlock(std::string_view path);

  // How long an operation takes; draws slow faults.
  Duration latency(DiskOp op, std::string_view path, uint64_t bytes);
  // True when an operation that begins now hangs: it goes on when_released.
  bool hangs(DiskOp op, std::string_view path);
  void when_released(std::function<void()> resume) { hanging_.push_back(std::move(resume)); }
  // RocksDB's calls cannot wait: what hangs inside one is remembered, and the lane asks after its call whether it is to
  // hang.
  void note_lane_hang() { lane_hangs_ = true; }
  bool take_lane_hang() { return std::exchange(lane_hangs_, false); }
  RandomStream& draws() { return draws_; }

  // A process has ended: gives its locks up. `in_flight` is called in between, while operations still land without
  // faults.
  void process_ended(Incarnation& process, const std::function<void()>& in_flight);
  void power_lost();

 private:
  struct Verdict;
  Verdict judge(Incarnation& process, DiskOp op, std::string_view path, uint64_t bytes, uint64_t growth);
  void strike(Verdict& verdict, FaultAction action, std::string_view path, uint64_t bytes);
  // The first scripted fault that this operation meets, taken off the list.
  std::optional<FaultAction> take_scripted(DiskOp op, std::string_view path, bool at_start);
  // Records the operation, and carries out a kill or power loss that it met.
  void conclude(Incarnation& process, const Verdict& verdict, DiskOp op, std::string_view path, uint64_t offset,
                uint64_t length, uint64_t hash, bool opaque);
  // An operation on names: judged, then `change` if it lands.
  template <typename Change>
  Status change_names(Incarnation& process, DiskOp op, std::string_view path, uint64_t growth, const Change& change);

  Machine& machine_;
  const MachineSettings& settings_;
  FileTree tree_;
  uint64_t capacity_;
  RandomStream draws_;
  std::vector<FaultRates> rates_;
  std::vector<ScriptedFault> scripted_;
  bool stalled_ = false;
  bool lane_hangs_ = false;
  std::vector<std::function<void()>> hanging_;
  bool no_faults_ = false;  // what a dying process had in flight lands without faults
  std::map<std::string, uint64_t, std::less<>> locks_;  // path -> Incarnation::trace_id
  uint64_t mutations_ = 0;
  std::function<void(DiskOp, std::string_view)> observer_;
};

}  // namespace io::sim
