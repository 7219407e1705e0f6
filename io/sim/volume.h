// The disk of one machine: files and names in memory, what of them is durable, and every fault that a disk can have.
//
// Model. A write changes the page cache; sync of the file makes the writes issued before it durable; a name (create, rename,
// remove, make directory) is durable after sync of its directory. A kill loses nothing. A power loss keeps of the names a drawn
// prefix, in order, of the operations that were not durable, and of each file what was synced and a drawn part of the rest:
//  - ordered files (the default, what RocksDB needs): the first so many unsynced writes stay, the next may be cut short;
//  - scattered files (MachineSettings::scattered_prefixes): any 512-byte sectors of the unsynced writes stay, perhaps with a
//    flipped bit.
//
// Both doors to a volume count and fault alike: io::Disk of a process (operations take time and land in events of their own)
// and RocksDB's file system (operations land at once, inside the call; their time is charged to the lane afterwards).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/result.h"
#include "io/sim/file_tree.h"
#include "io/sim/settings.h"

namespace io::sim {

class Incarnation;
class Machine;

// Kinds of operation, as faults name them. All from `create` on change the disk: "mutating".
enum class DiskOp : uint8_t { read, list, create, write, sync, truncate, rename, remove, make_directory, sync_directory };

const char* to_string(DiskOp op);

// Random faults below a path prefix, each with a chance in parts per million of one operation.
struct FaultRates {
  std::string prefix;  // "" is every path
  uint32_t read_error_ppm = 0;
  uint32_t write_error_ppm = 0;  // every mutating operation but the syncs
  uint32_t sync_error_ppm = 0;   // file and directory; the pages are clean afterwards: a later sync "succeeds" without them
  uint32_t no_space_ppm = 0;     // operations that need room
  uint32_t slow_ppm = 0;         // DiskSettings::slow is added to the latency
};

enum class FaultAction : uint8_t {
  error,       // io
  no_space,
  stall,       // hangs until release() (in RocksDB: the operation lands, and its lane hangs)
  slow,
  bit_flip,    // a write lands with one drawn bit flipped, and reports success
  misdirect,   // a write lands at another drawn sector of its file, and reports success
  kill,        // the process ends here; whether and how far the operation itself lands is drawn
  power_loss,
};

// One fault, once: strikes the `nth` matching operation from now on (1 is the next).
struct ScriptedFault {
  FaultAction action = FaultAction::error;
  std::optional<DiskOp> op;  // nullopt: any mutating operation
  std::string prefix;
  uint64_t nth = 1;
};

class Volume {
 public:
  Volume(Machine& machine, const MachineSettings& settings);
  ~Volume();
  Volume(const Volume&) = delete;
  Volume& operator=(const Volume&) = delete;

  // ---- Faults --------------------------------------------------------------------------------------------------------------
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

  // ---- The image, for plans and checks: no faults, no time, not counted; what is put is durable ------------------------------
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

  // ---- For the parts of io/sim ---------------------------------------------------------------------------------------------
  struct Verdict {
    std::optional<Error> error;
    // For a write: how many of its bytes land (all when no fault), where, and with which bit flipped.
    std::optional<uint64_t> landing_bytes;
    std::optional<uint64_t> landing_offset;
    std::optional<uint64_t> flipped_bit;
    bool lands = true;  // with an error: the operation took effect all the same
  };
  // Judges one operation of `process` at its landing. `bytes` is what it writes, `growth` by how much it needs more room.
  Verdict judge(Incarnation& process, DiskOp op, std::string_view path, uint64_t offset, uint64_t bytes, uint64_t growth);
  // How long the operation takes; draws slow faults.
  Duration latency(DiskOp op, std::string_view path, uint64_t bytes);
  // True when an operation that starts now hangs: `resume` is called at release.
  bool hangs(DiskOp op, std::string_view path, std::function<void()> resume);
  RandomStream& draws() { return draws_; }
  Machine& machine() { return machine_; }

  // The two ends of a process that the disk notices.
  void power_lost();

 private:
  bool scripted(DiskOp op, std::string_view path, FaultAction& action);

  Machine& machine_;
  const MachineSettings& settings_;
  FileTree tree_;
  uint64_t capacity_;
  RandomStream draws_;
  std::vector<FaultRates> rates_;
  std::vector<ScriptedFault> scripted_;
  bool stalled_ = false;
  std::vector<std::function<void()>> hanging_;
  uint64_t mutations_ = 0;
  std::function<void(DiskOp, std::string_view)> observer_;
};

}  // namespace io::sim
