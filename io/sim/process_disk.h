// io::Disk of a simulated process: each operation begins when it is called, takes the time that the volume draws, and
// lands in an event of its own, after which its caller goes on.
//
// An operation whose handle died before it landed lands at its time, later, or never, by draw; until then its file
// cannot be opened. What a dying process had in flight lands or does not at that instant, by draw.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/disk.h"
#include "io/sim/file_tree.h"
#include "io/sim/volume.h"

namespace io::sim {

class Incarnation;
struct PendingOperation;

class ProcessDisk final : public Disk {
 public:
  explicit ProcessDisk(Incarnation& process);
  ~ProcessDisk() override;

  Result<std::unique_ptr<File>> open(std::string_view path, OpenMode mode, Instant deadline) override;
  Status make_directory(std::string_view path, Instant deadline) override;
  Status rename(std::string_view from, std::string_view to, Instant deadline) override;
  Status remove(std::string_view path, Instant deadline) override;
  Result<std::vector<std::string>> list(std::string_view path, Instant deadline) override;
  Result<FileInfo> stat(std::string_view path, Instant deadline) override;
  Status sync_directory(std::string_view path, Instant deadline) override;
  Result<uint64_t> free_space(Instant deadline) override;
  Result<std::unique_ptr<DirectoryLock>> lock(std::string_view path, Instant deadline) override;

  // The process has ended: draws what of the operations under way still takes effect.
  void land_in_flight();

 private:
  friend class ProcessFile;
  // Begins an operation: `effect` runs at its landing and returns Result<T>. `file` is null for operations on names.
  template <typename T, typename Effect>
  Completion<T> begin(DiskOp op, const std::string& path, uint64_t bytes, std::shared_ptr<OpenFile> file,
                      Effect effect);
  void schedule(const std::shared_ptr<PendingOperation>& operation, Duration delay);
  void fire(const std::shared_ptr<PendingOperation>& operation);
  void finish(PendingOperation& operation);

  Incarnation& process_;
  Volume& volume_;
  std::vector<std::shared_ptr<PendingOperation>> in_flight_;
};

}  // namespace io::sim
