#include "io/real/disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <utility>

#include "io/real/descriptor.h"
#include "io/real/errno.h"
#include "io/real/open_file.h"

namespace io::real {

namespace {

constexpr size_t kZeroBlockBytes = 256 * 1024;

using Handover = std::shared_ptr<Descriptor>;  // a descriptor on its way from a file thread; closed if nobody takes it

// "a/b": relative, no empty, "." or ".." name.
Status check_path(std::string_view path) {
  size_t begin = 0;
  while (begin <= path.size()) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, end - begin);
    if (name.empty() || name == "." || name == ".." || name.find('\0') != std::string_view::npos) {
      return fail(ErrorKind::invalid,
                  "path \"" + std::string(path) + "\": relative names with '/' between are expected");
    }
    begin = end + 1;
  }
  return {};
}

Status check_directory_path(std::string_view path) { return path.empty() ? Status() : check_path(path); }

// What openat takes for a path of ours.
std::string kernel_path(std::string_view path) { return path.empty() ? "." : std::string(path); }

std::string shown(std::string_view path) { return path.empty() ? "data directory" : std::string(path); }

template <typename Call>
auto without_interruption(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) {
    result = call();
  }
  return result;
}

Status outcome(int result, std::string_view path) {
  return result == 0 ? Status() : Status(error_from_errno(errno, shown(path)));
}

int flags_of(OpenMode mode) {
  switch (mode) {
    case OpenMode::read: return O_RDONLY;
    case OpenMode::read_write: return O_RDWR;
    case OpenMode::create: return O_RDWR | O_CREAT;
    case OpenMode::create_new: return O_RDWR | O_CREAT | O_EXCL;
  }
  return O_RDONLY;
}

// ---- Blocking work, on a file thread --------------------------------------------------------------------------------

Result<Handover> open_file(int root, const std::string& path, OpenMode mode) {
  const int flags = flags_of(mode) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  Descriptor descriptor(without_interruption([&] { return openat(root, path.c_str(), flags, 0640); }));
  if (!descriptor.valid()) {
    return error_from_errno(errno, path);
  }
  struct stat info{};
  if (fstat(descriptor.get(), &info) != 0) {
    return error_from_errno(errno, path);
  }
  if (!S_ISREG(info.st_mode)) {
    return fail(ErrorKind::invalid, path + ": not a file");
  }
  // O_NONBLOCK kept a pipe under this name from hanging the open; on a file it would make io_uring give up instead of
  // waiting.
  if (fcntl(descriptor.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) {
    return error_from_errno(errno, path);
  }
  return std::make_shared<Descriptor>(std::move(descriptor));
}

Status make_directories(int root, const std::string& path) {
  for (size_t slash = path.find('/'); ; slash = path.find('/', slash + 1)) {
    const std::string prefix = path.substr(0, slash);
    if (mkdirat(root, prefix.c_str(), 0750) != 0) {
      const int error = errno;
      struct stat info{};
      if (error != EEXIST || fstatat(root, prefix.c_str(), &info, 0) != 0) {
        return error_from_errno(error, prefix);
      }
      if (!S_ISDIR(info.st_mode)) {
        return fail(ErrorKind::exists, prefix + ": it is there and no directory");
      }
    }
    if (slash == std::string::npos) {
      return {};
    }
  }
}

Status remove_name(int root, const std::string& path) {
  if (unlinkat(root, path.c_str(), 0) == 0) {
    return {};
  }
  if (errno != EISDIR) {
    return error_from_errno(errno, path);
  }
  return outcome(unlinkat(root, path.c_str(), AT_REMOVEDIR), path);
}

Result<std::vector<std::string>> list_names(int root, const std::string& path) {
  const int descriptor = openat(root, kernel_path(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    return error_from_errno(errno, shown(path));
  }
  DIR* directory = fdopendir(descriptor);
  if (directory == nullptr) {
    const int error = errno;
    ::close(descriptor);
    return error_from_errno(error, shown(path));
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* each = readdir(directory)) {
    const std::string_view name = each->d_name;
    if (name != "." && name != "..") {
      names.emplace_back(name);
    }
    errno = 0;
  }
  const int error = errno;
  closedir(directory);
  if (error != 0) {
    return error_from_errno(error, shown(path));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status sync_names(int root, const std::string& path) {
  Descriptor directory(openat(root, kernel_path(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) {
    return error_from_errno(errno, shown(path));
  }
  return outcome(fsync(directory.get()), path);
}

// Blocks are taken first, so that a full disk answers before anything is written; the zeros then make them plain data,
// which a later data sync need not record. A file system that cannot take blocks ahead only gets the zeros.
Status write_zeros(int descriptor, const std::string& path, uint64_t offset, uint64_t length) {
  if (length == 0) {
    return {};
  }
  const int reserved = without_interruption(
      [&] { return fallocate(descriptor, 0, static_cast<off_t>(offset), static_cast<off_t>(length)); });
  if (reserved != 0 && errno != EOPNOTSUPP && errno != ENOSYS) {
    return error_from_errno(errno, path);
  }
  static const std::string kZeros(kZeroBlockBytes, '\0');
  const uint64_t end = offset + length;
  while (offset < end) {
    const size_t part = std::min<uint64_t>(kZeros.size(), end - offset);
    const ssize_t written =
        without_interruption([&] { return pwrite(descriptor, kZeros.data(), part, static_cast<off_t>(offset)); });
    if (written <= 0) {
      return error_from_errno(written < 0 ? errno : EIO, path);
    }
    offset += static_cast<uint64_t>(written);
  }
  return {};
}

Result<Handover> lock_file(int root, const std::string& path) {
  Descriptor descriptor(openat(root, path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
  if (!descriptor.valid()) {
    return error_from_errno(errno, path);
  }
  if (without_interruption([&] { return flock(descriptor.get(), LOCK_EX | LOCK_NB); }) != 0) {
    if (errno == EWOULDBLOCK) {
      return fail(ErrorKind::busy, path + ": locked by another process");
    }
    return error_from_errno(errno, path);
  }
  return std::make_shared<Descriptor>(std::move(descriptor));
}

// ---- Handles --------------------------------------------------------------------------------------------------------

// The files of one disk, so that one with an abandoned operation is not opened again. Loop thread only.
using OpenFiles = std::list<OpenFile*>;

class RealFile final : public File {
 public:
  RealFile(Loop& loop, std::shared_ptr<OpenFile> file) : File(file->path()), loop_(loop), file_(std::move(file)) {
    file_->handle_made(*this);
  }
  ~RealFile() override { file_->handle_gone(); }

 protected:
  Completion<std::string> start_read(uint64_t offset, size_t length) override {
    Completion<std::string> completion;
    loop_.start_file(FileOperation::Kind::read, file_, offset, std::string(length, '\0'),
                     [completion, path = path()](int error, std::string bytes) {
                       completion.complete(error == 0 ? Result<std::string>(std::move(bytes))
                                                      : Result<std::string>(error_from_errno(error, path)));
                     });
    return completion;
  }
  Completion<void> start_write(uint64_t offset, std::string data) override {
    return start(FileOperation::Kind::write, offset, std::move(data));
  }
  Completion<void> start_sync() override { return start(FileOperation::Kind::sync, 0, {}); }
  Completion<void> start_write_and_sync(uint64_t offset, std::string data) override {
    return start(FileOperation::Kind::write_and_sync, offset, std::move(data));
  }
  Completion<void> start_truncate(uint64_t size) override {
    return on_thread<void>("truncate", [size](int descriptor, const std::string& path) {
      return outcome(without_interruption([&] { return ftruncate(descriptor, static_cast<off_t>(size)); }), path);
    });
  }
  Completion<void> start_fill_zero(uint64_t offset, uint64_t length) override {
    return on_thread<void>("fill_zero", [offset, length](int descriptor, const std::string& path) {
      return write_zeros(descriptor, path, offset, length);
    });
  }
  Completion<uint64_t> start_size() override {
    return on_thread<uint64_t>("size", [](int descriptor, const std::string& path) -> Result<uint64_t> {
      struct stat info{};
      if (fstat(descriptor, &info) != 0) {
        return error_from_errno(errno, path);
      }
      return static_cast<uint64_t>(info.st_size);
    });
  }

 private:
  Completion<void> start(FileOperation::Kind kind, uint64_t offset, std::string data) {
    Completion<void> completion;
    loop_.start_file(kind, file_, offset, std::move(data), [completion, path = path()](int error, const std::string&) {
      completion.complete(error == 0 ? Status() : Status(error_from_errno(error, path)));
    });
    return completion;
  }

  template <typename T, typename Work>
  Completion<T> on_thread(std::string_view what, Work work) {
    file_->operation_begins();
    const int descriptor = file_->descriptor();
    return loop_.start_on_file_thread<T>(
        what, path(), [descriptor, path = path(), work] { return work(descriptor, path); },
        [file = file_] { file->operation_ends(); });
  }

  Loop& loop_;
  std::shared_ptr<OpenFile> file_;
};

class RealLock final : public DirectoryLock {
 public:
  explicit RealLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

 private:
  Descriptor descriptor_;  // its end gives the lock up
};

class RealDisk final : public Disk {
 public:
  RealDisk(Loop& loop, Descriptor root) : loop_(loop), root_(std::make_shared<Descriptor>(std::move(root))) {}

  Result<std::unique_ptr<File>> open(std::string_view path, OpenMode mode, Instant deadline) override {
    if (Status good = check_path(path); !good.ok()) {
      return good.error();
    }
    for (const OpenFile* each : *files_) {
      if (each->path() == path && each->has_abandoned_operation()) {
        return fail(ErrorKind::busy, std::string(path) + ": an operation that was given up has not ended");
      }
    }
    Result<Handover> opened = run<Handover>("open", path, deadline, [path = std::string(path), mode](int root) {
      return open_file(root, path, mode);
    });
    if (!opened.ok()) {
      return opened.error();
    }
    return std::unique_ptr<File>(new RealFile(loop_, adopt(std::move(**opened), std::string(path))));
  }

  Status make_directory(std::string_view path, Instant deadline) override {
    return checked(check_path(path), [&] {
      return run<void>("make_directory", path, deadline,
                       [path = std::string(path)](int root) { return make_directories(root, path); });
    });
  }

  Status rename(std::string_view from, std::string_view to, Instant deadline) override {
    if (Status good = check_path(from); !good.ok()) {
      return good;
    }
    return checked(check_path(to), [&] {
      Status renamed = run<void>("rename", from, deadline, [from = std::string(from), to = std::string(to)](int root) {
        return outcome(renameat(root, from.c_str(), root, to.c_str()), from + " to " + to);
      });
      if (renamed.ok()) {
        follow_rename(std::string(from), std::string(to));
      }
      return renamed;
    });
  }

  Status remove(std::string_view path, Instant deadline) override {
    return checked(check_path(path), [&] {
      Status removed =
          run<void>("remove", path, deadline, [path = std::string(path)](int root) { return remove_name(root, path); });
      if (removed.ok()) {
        lose_name(path);
      }
      return removed;
    });
  }

  Result<std::vector<std::string>> list(std::string_view path, Instant deadline) override {
    if (Status good = check_directory_path(path); !good.ok()) {
      return good.error();
    }
    return run<std::vector<std::string>>("list", path, deadline,
                                         [path = std::string(path)](int root) { return list_names(root, path); });
  }

  Result<FileInfo> stat(std::string_view path, Instant deadline) override {
    if (Status good = check_directory_path(path); !good.ok()) {
      return good.error();
    }
    return run<FileInfo>("stat", path, deadline, [path = std::string(path)](int root) -> Result<FileInfo> {
      struct stat info{};
      if (fstatat(root, kernel_path(path).c_str(), &info, 0) != 0) {
        return error_from_errno(errno, shown(path));
      }
      const bool is_directory = S_ISDIR(info.st_mode);
      return FileInfo{is_directory ? 0 : static_cast<uint64_t>(info.st_size), is_directory};
    });
  }

  Status sync_directory(std::string_view path, Instant deadline) override {
    return checked(check_directory_path(path), [&] {
      return run<void>("sync_directory", path, deadline,
                       [path = std::string(path)](int root) { return sync_names(root, path); });
    });
  }

  Result<uint64_t> free_space(Instant deadline) override {
    return run<uint64_t>("free_space", "", deadline, [](int root) -> Result<uint64_t> {
      struct statvfs info{};
      if (fstatvfs(root, &info) != 0) {
        return error_from_errno(errno, "free space of the data directory");
      }
      return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
    });
  }

  Result<std::unique_ptr<DirectoryLock>> lock(std::string_view path, Instant deadline) override {
    if (Status good = check_path(path); !good.ok()) {
      return good.error();
    }
    Result<Handover> locked =
        run<Handover>("lock", path, deadline, [path = std::string(path)](int root) { return lock_file(root, path); });
    if (!locked.ok()) {
      return locked.error();
    }
    return std::unique_ptr<DirectoryLock>(new RealLock(std::move(**locked)));
  }

 private:
  template <typename Then>
  static Status checked(Status first, Then then) {
    return first.ok() ? then() : first;
  }

  template <typename T, typename Work>
  Result<T> run(std::string_view what, std::string_view path, Instant deadline, Work work) {
    check_cancelled();
    auto on_root = [root = root_, work] { return work(root->get()); };
    return loop_.start_on_file_thread<T>(what, path, std::move(on_root)).await(deadline);
  }

  std::shared_ptr<OpenFile> adopt(Descriptor descriptor, std::string path) {
    auto file = std::make_shared<OpenFile>(std::move(descriptor), std::move(path),
                                           [files = files_](OpenFile& self) { files->remove(&self); });
    files_->push_back(file.get());
    return file;
  }

  // Operations under way follow their file to its new name, which they keep from being opened.
  void follow_rename(const std::string& from, const std::string& to) {
    lose_name(to);  // what stood there is replaced
    for (OpenFile* each : *files_) {
      const std::string& path = each->path();
      if (path == from) {
        each->renamed(to);
      } else if (path.size() > from.size() && path.compare(0, from.size(), from) == 0 && path[from.size()] == '/') {
        each->renamed(to + path.substr(from.size()));
      }
    }
  }

  // Operations of a removed file reach nobody.
  void lose_name(std::string_view path) {
    for (OpenFile* each : *files_) {
      if (each->path() == path) {
        each->renamed("");
      }
    }
  }

  Loop& loop_;
  std::shared_ptr<Descriptor> root_;
  std::shared_ptr<OpenFiles> files_ = std::make_shared<OpenFiles>();
};

Status make_with_parents(const std::string& root) {
  for (size_t slash = root.find('/', 1);; slash = root.find('/', slash + 1)) {
    const std::string prefix = root.substr(0, slash);
    if (mkdir(prefix.c_str(), 0750) != 0 && errno != EEXIST) {
      // EROFS and EACCES may stand before "it is there": only what is missing is a failure.
      const int error = errno;
      struct stat info{};
      if (::stat(prefix.c_str(), &info) != 0) {
        return error_from_errno(error, "data directory " + root);
      }
    }
    if (slash == std::string::npos) {
      return {};
    }
  }
}

}  // namespace

Result<std::unique_ptr<Disk>> open_data_directory(Loop& loop, const std::string& root) {
  if (root.empty()) {
    return fail(ErrorKind::invalid, "data directory: the path is empty");
  }
  if (Status made = make_with_parents(root); !made.ok()) {
    return made.error();
  }
  Descriptor directory(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) {
    if (errno == ENOTDIR) {
      return fail(ErrorKind::invalid, "data directory " + root + ": it is a file, not a directory");
    }
    return error_from_errno(errno, "data directory " + root);
  }
  if (faccessat(directory.get(), ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
    const int error = errno;
    const ErrorKind kind = error_from_errno(error, root).kind;
    return fail(kind, "data directory " + root + ": not writable (" + errno_text(error) + ")");
  }
  return std::unique_ptr<Disk>(new RealDisk(loop, std::move(directory)));
}

}  // namespace io::real
