#include "engine/data_dir.h"

#include <charconv>
#include <string>
#include <vector>

#include "engine/version.h"

namespace engine {

namespace {

constexpr std::string_view kFormatFile = "FORMAT";
constexpr std::string_view kFormatDraft = "FORMAT.new";
constexpr std::string_view kFormatBegin = "narad data directory, layout ";

std::string format_text() { return std::string(kFormatBegin) + std::to_string(kDataFormat) + "\n"; }

io::Error explain(const io::Error& error, const std::string& what) { return io::fail(error.kind, what + ": " + error.message); }

io::Status write_format(io::Disk& disk) {
  io::Result<std::unique_ptr<io::File>> file = disk.open(kFormatDraft, io::OpenMode::create);
  if (!file.ok()) {
    return file.error();
  }
  io::Status status = (*file)->truncate(0);
  if (status.ok()) {
    status = (*file)->write_and_sync(0, format_text());
  }
  if (status.ok()) {
    status = disk.rename(kFormatDraft, kFormatFile);
  }
  return status.ok() ? disk.sync_directory("") : status;
}

// A directory without FORMAT is new only when nothing but our own first steps stands in it, and empty directories: each may be a volume
// of its own.
io::Status check_is_new(io::Disk& disk) {
  const io::Result<std::vector<std::string>> names = disk.list("");
  if (!names.ok()) {
    return names.error();
  }
  for (const std::string& name : *names) {
    if (name != "raft" && name != "fsm.db") {
      continue;
    }
    const io::Result<std::vector<std::string>> inside = disk.list(name);
    if (!inside.ok() || !inside->empty()) {
      return io::fail(io::ErrorKind::invalid,
                      "the data directory holds " + name + " but no file FORMAT, so its layout is unknown; refusing to start");
    }
  }
  return {};
}

// "narad data directory, layout 12\n" -> 12.
std::optional<uint32_t> parse_format(std::string_view text) {
  if (!text.starts_with(kFormatBegin) || !text.ends_with('\n')) {
    return std::nullopt;
  }
  text.remove_prefix(kFormatBegin.size());
  text.remove_suffix(1);
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0 ? std::optional(number) : std::nullopt;
}

io::Status check_format(io::Disk& disk) {
  const io::Result<std::optional<uint32_t>> format = read_format(disk);
  if (!format.ok() || format->has_value()) {
    return format.ok() ? io::Status() : io::Status(format.error());
  }
  io::Status is_new = check_is_new(disk);
  return is_new.ok() ? write_format(disk) : is_new;
}

}  // namespace

io::Result<std::optional<uint32_t>> read_format(io::Disk& disk) {
  io::Result<std::unique_ptr<io::File>> file = disk.open(kFormatFile, io::OpenMode::read);
  if (file.is(io::ErrorKind::not_found)) {
    return std::optional<uint32_t>();
  }
  if (!file.ok()) {
    return file.error();
  }
  const io::Result<std::string> text = (*file)->read(0, 256);
  if (!text.ok()) {
    return text.error();
  }
  const std::optional<uint32_t> format = parse_format(*text);
  if (!format) {
    return io::fail(io::ErrorKind::invalid, "the file FORMAT of the data directory does not name a layout; refusing to start");
  }
  if (*format > kDataFormat) {
    return io::fail(io::ErrorKind::invalid, "the data directory has format " + std::to_string(*format) +
                                                ", written by a newer Narad release than this build (" + std::string(kVersion) +
                                                ", which knows formats up to " + std::to_string(kDataFormat) +
                                                "); run that release or newer");
  }
  return format;
}

io::Result<std::unique_ptr<io::DirectoryLock>> claim_data_directory(io::Disk& disk) {
  io::Result<std::unique_ptr<io::DirectoryLock>> lock = disk.lock(kLockFile);
  if (lock.is(io::ErrorKind::busy)) {
    return io::fail(io::ErrorKind::busy, "the data directory is in use by another process");
  }
  if (!lock.ok()) {
    return explain(lock.error(), "cannot lock the data directory");
  }
  io::Status format = check_format(disk);
  if (!format.ok()) {
    return format.error().kind == io::ErrorKind::invalid ? format.error()
                                                          : explain(format.error(), "cannot prepare the data directory");
  }
  return lock;
}

}  // namespace engine
