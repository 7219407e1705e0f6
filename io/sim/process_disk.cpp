#include "io/sim/process_disk.h"

#include <algorithm>

#include "io/probe.h"
#include "io/sim/world.h"

namespace io::sim {

class ProcessFile;

// Shared by a handle and its operations, which may outlive it.
struct OpenFile {
  NodePtr node;
  std::string path;
  ProcessFile* handle = nullptr;  // null once it has died
};

// An operation that has begun and not landed.
struct PendingOperation {
  virtual ~PendingOperation() = default;
  // Runs the effect and, when `answers`, completes the operation.
  virtual void land(bool answers) = 0;

  Incarnation* process = nullptr;
  std::shared_ptr<OpenFile> file;
  bool ended = false;  // landed, or its process has
  bool put_off = false;
};

namespace {

template <typename T, typename Effect>
struct Operation final : PendingOperation {
  explicit Operation(Effect e) : effect(std::move(e)) {}
  void land(bool answers) override {
    Result<T> result = effect();
    if (answers) {
      done.complete(std::move(result));
    }
  }
  Effect effect;
  Completion<T> done;
};

bool acceptable(std::string_view path) {
  if (path.ends_with('/')) {
    return false;
  }
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, end);
    if (name.empty() || name == "." || name == "..") {
      return false;
    }
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return true;
}

Error unacceptable(std::string_view path) {
  return fail(ErrorKind::invalid, std::string(path) + ": not a path below the data directory");
}

}  // namespace

class ProcessFile final : public File {
 public:
  ProcessFile(ProcessDisk& disk, std::shared_ptr<OpenFile> open, bool may_write)
      : File(open->path), disk_(disk), open_(std::move(open)), may_write_(may_write) {
    open_->handle = this;
  }
  ~ProcessFile() override { open_->handle = nullptr; }

 protected:
  Completion<std::string> start_read(uint64_t offset, size_t length) override {
    return disk_.begin<std::string>(DiskOp::read, open_->path, length, open_, [this_ = parts(), offset, length] {
      return this_.volume.read(this_.process, *this_.open->node, this_.open->path, offset, length);
    });
  }
  Completion<void> start_write(uint64_t offset, std::string data) override {
    if (!may_write_) {
      return Completion<void>::finished(read_only());
    }
    const uint64_t bytes = data.size();
    return disk_.begin<void>(
        DiskOp::write, open_->path, bytes, open_, [this_ = parts(), offset, data = std::move(data)] {
          return this_.volume.write(this_.process, *this_.open->node, this_.open->path, offset, data);
        });
  }
  Completion<void> start_sync() override {
    return disk_.begin<void>(DiskOp::sync, open_->path, 0, open_, [this_ = parts(), mark = open_->node->next_sequence] {
      return this_.volume.sync(this_.process, *this_.open->node, this_.open->path, mark);
    });
  }
  Completion<void> start_write_and_sync(uint64_t offset, std::string data) override {
    if (!may_write_) {
      return Completion<void>::finished(read_only());
    }
    const uint64_t bytes = data.size();
    return disk_.begin<void>(
        DiskOp::sync, open_->path, bytes, open_, [this_ = parts(), offset, data = std::move(data)] {
          Status written = this_.volume.write(this_.process, *this_.open->node, this_.open->path, offset, data);
          if (!written.ok()) {
            return written;
          }
          return this_.volume.sync(this_.process, *this_.open->node, this_.open->path, this_.open->node->next_sequence);
        });
  }
  Completion<void> start_truncate(uint64_t size) override {
    if (!may_write_) {
      return Completion<void>::finished(read_only());
    }
    return disk_.begin<void>(DiskOp::truncate, open_->path, 0, open_, [this_ = parts(), size] {
      return this_.volume.truncate(this_.process, *this_.open->node, this_.open->path, size);
    });
  }
  Completion<void> start_fill_zero(uint64_t offset, uint64_t length) override {
    return start_write(offset, std::string(length, '\0'));
  }
  Completion<uint64_t> start_size() override {
    return disk_.begin<uint64_t>(DiskOp::list, open_->path, 0, open_,
                                 [this_ = parts()] { return Result<uint64_t>(this_.open->node->content.size()); });
  }

 private:
  // What an effect needs, whether or not the handle still lives.
  struct Parts {
    Volume& volume;
    Incarnation& process;
    std::shared_ptr<OpenFile> open;
  };
  Parts parts() const { return {disk_.volume_, disk_.process_, open_}; }
  Error read_only() const { return fail(ErrorKind::invalid, open_->path + ": opened for reading"); }

  ProcessDisk& disk_;
  std::shared_ptr<OpenFile> open_;
  bool may_write_;
};

ProcessDisk::ProcessDisk(Incarnation& process) : process_(process), volume_(process.machine().volume()) {}

ProcessDisk::~ProcessDisk() = default;

template <typename T, typename Effect>
Completion<T> ProcessDisk::begin(DiskOp op, const std::string& path, uint64_t bytes, std::shared_ptr<OpenFile> file,
                                 Effect effect) {
  check_cancelled();
  World& world = process_.machine().world();
  auto operation = std::make_shared<Operation<T, Effect>>(std::move(effect));
  if (!process_.live()) {
    return operation->done;
  }
  world.charge(world.settings().cost.disk_call);
  operation->process = &process_;
  operation->file = std::move(file);
  if (operation->file != nullptr) {
    operation->file->node->in_flight.push_back(operation->file.get());
  }
  in_flight_.push_back(operation);
  const Duration delay = volume_.latency(op, path, bytes);
  if (volume_.hangs(op, path)) {
    volume_.when_released([this, process = &process_, operation, delay] {
      if (process->live()) {
        schedule(operation, delay);
      }
    });
  } else {
    schedule(operation, delay);
  }
  return operation->done;
}

void ProcessDisk::schedule(const std::shared_ptr<PendingOperation>& operation, Duration delay) {
  World& world = process_.machine().world();
  world.schedule(world.effect_time() + delay, [this, operation] {
    if (!operation->ended) {
      fire(operation);
    }
  });
}

void ProcessDisk::fire(const std::shared_ptr<PendingOperation>& operation) {
  const DiskSettings& settings = process_.machine().world().settings().disk;
  process_.machine().world().note(TraceKind::disk, &process_.machine());
  const bool orphaned = operation->file != nullptr && operation->file->handle == nullptr;
  if (orphaned && !operation->put_off) {
    const uint64_t draw = volume_.draws().below(1'000'000);
    if (draw < settings.orphan_never_ppm) {
      finish(*operation);
      return;
    }
    if (draw < settings.orphan_never_ppm + settings.orphan_late_ppm) {
      SOMETIMES("simulator: an operation lands after its caller has given it up");
      operation->put_off = true;
      schedule(operation, settings.late_landing.draw(volume_.draws()));
      return;
    }
  }
  finish(*operation);
  operation->land(true);
}

void ProcessDisk::finish(PendingOperation& operation) {
  operation.ended = true;
  if (operation.file != nullptr) {
    auto& handles = operation.file->node->in_flight;
    handles.erase(std::find(handles.begin(), handles.end(), operation.file.get()));
  }
  auto at =
      std::find_if(in_flight_.begin(), in_flight_.end(), [&](const auto& other) { return other.get() == &operation; });
  NARAD_CHECK(at != in_flight_.end(), "an operation ended twice");
  in_flight_.erase(at);
}

void ProcessDisk::land_in_flight() {
  while (!in_flight_.empty()) {
    const std::shared_ptr<PendingOperation> operation = in_flight_.front();
    finish(*operation);
    if (volume_.draws().below(2) == 0) {
      SOMETIMES("simulator: an operation lands after its process has ended");
      operation->land(false);
    }
  }
}

// ---- Operations on names --------------------------------------------------------------------------------------------

Result<std::unique_ptr<File>> ProcessDisk::open(std::string_view path, OpenMode mode, Instant deadline) {
  if (!acceptable(path) || path.empty()) {
    return unacceptable(path);
  }
  const std::string name(path);
  const Completion<NodePtr> opened = begin<NodePtr>(
      DiskOp::list, name, 0, nullptr, [&volume = volume_, &process = process_, name, mode]() -> Result<NodePtr> {
        const NodePtr node = volume.tree().find_file(name);
        if (node != nullptr && std::any_of(node->in_flight.begin(), node->in_flight.end(), [](const OpenFile* open) {
              return open->handle == nullptr || open->handle->refuses_use();
            })) {
          return fail(ErrorKind::busy, name + ": an operation that was given up has not ended");
        }
        return volume.open(process, name, mode);
      });
  Result<NodePtr> node = opened.await(deadline);
  if (!node.ok()) {
    return node.error();
  }
  auto open = std::make_shared<OpenFile>(OpenFile{*node, name, nullptr});
  return std::unique_ptr<File>(std::make_unique<ProcessFile>(*this, std::move(open), mode != OpenMode::read));
}

Status ProcessDisk::make_directory(std::string_view path, Instant deadline) {
  if (!acceptable(path)) {
    return unacceptable(path);
  }
  const std::string name(path);
  return begin<void>(DiskOp::make_directory, name, 0, nullptr,
                     [&volume = volume_, &process = process_, name] { return volume.make_directory(process, name); })
      .await(deadline);
}

Status ProcessDisk::rename(std::string_view from, std::string_view to, Instant deadline) {
  for (std::string_view path : {from, to}) {
    if (!acceptable(path) || path.empty()) {
      return unacceptable(path);
    }
  }
  const std::string to_name(to);
  return begin<void>(DiskOp::rename, to_name, 0, nullptr,
                     [&volume = volume_, &process = process_, from_name = std::string(from), to_name] {
                       return volume.rename(process, from_name, to_name);
                     })
      .await(deadline);
}

Status ProcessDisk::remove(std::string_view path, Instant deadline) {
  if (!acceptable(path) || path.empty()) {
    return unacceptable(path);
  }
  const std::string name(path);
  return begin<void>(DiskOp::remove, name, 0, nullptr,
                     [&volume = volume_, &process = process_, name] { return volume.remove(process, name); })
      .await(deadline);
}

Result<std::vector<std::string>> ProcessDisk::list(std::string_view path, Instant deadline) {
  if (!acceptable(path)) {
    return unacceptable(path);
  }
  const std::string name(path);
  return begin<std::vector<std::string>>(
             DiskOp::list, name, 0, nullptr,
             [&volume = volume_, &process = process_, name] { return volume.list(process, name); })
      .await(deadline);
}

Result<FileInfo> ProcessDisk::stat(std::string_view path, Instant deadline) {
  if (!acceptable(path)) {
    return unacceptable(path);
  }
  const std::string name(path);
  return begin<FileInfo>(DiskOp::list, name, 0, nullptr,
                         [&volume = volume_, &process = process_, name] { return volume.stat(process, name); })
      .await(deadline);
}

Status ProcessDisk::sync_directory(std::string_view path, Instant deadline) {
  if (!acceptable(path)) {
    return unacceptable(path);
  }
  const std::string name(path);
  return begin<void>(DiskOp::sync_directory, name, 0, nullptr,
                     [&volume = volume_, &process = process_, name] { return volume.sync_directory(process, name); })
      .await(deadline);
}

Result<uint64_t> ProcessDisk::free_space(Instant deadline) {
  return begin<uint64_t>(DiskOp::list, "", 0, nullptr,
                         [&volume = volume_] { return Result<uint64_t>(volume.free_bytes()); })
      .await(deadline);
}

namespace {

class HeldLock final : public DirectoryLock {
 public:
  HeldLock(Volume& volume, Incarnation& process, std::string path)
      : volume_(volume), process_(process), path_(std::move(path)) {}
  ~HeldLock() override {
    if (process_.live()) {
      volume_.unlock(path_);
    }
  }

 private:
  Volume& volume_;
  Incarnation& process_;
  std::string path_;
};

}  // namespace

Result<std::unique_ptr<DirectoryLock>> ProcessDisk::lock(std::string_view path, Instant deadline) {
  if (!acceptable(path) || path.empty()) {
    return unacceptable(path);
  }
  // The lock belongs to the operation until the caller takes it: a caller that gave up leaves none behind.
  auto held = std::make_shared<std::unique_ptr<DirectoryLock>>();
  const std::string name(path);
  const Status locked =
      begin<void>(DiskOp::list, name, 0, nullptr, [&volume = volume_, &process = process_, name, held] {
        Status status = volume.lock(process, name);
        if (status.ok()) {
          *held = std::make_unique<HeldLock>(volume, process, name);
        }
        return status;
      }).await(deadline);
  if (!locked.ok()) {
    return locked.error();
  }
  return std::move(*held);
}

}  // namespace io::sim
