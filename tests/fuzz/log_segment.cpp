// The reader of log segments: recovery of the whole log over arbitrary bytes on the simulated disk.
//
// Input: segments one behind the other, each 1 byte generation, 1 byte flags (bit 0: put the checksums right, so that what they
// protect is reached; bits 1 to 3: blocks of 512 zeros behind it), 2 bytes length, the bytes. Recovery must refuse or find a
// log; it changes nothing on the disk; what it found can be confirmed, appended to and found again.

#include <algorithm>

#include "io/crc32c.h"
#include "raft/bytes.h"
#include "raft/log_format.h"
#include "raft/log_store.h"
#include "tests/fuzz/support/fuzz.h"
#include "tests/support/disk_world.h"

namespace fuzz {

namespace {

using raft::Entry;
using raft::Index;
using raft::LogStore;
using tests::DiskWorld;
namespace log_format = raft::log_format;

const raft::LogSettings kSmall{.segment_bytes = 4096, .fill_step_bytes = 4096, .batch_bytes_max = 1 << 20};
constexpr std::size_t kInputBytesMax = 64 << 10;

// ---- Putting checksums right -----------------------------------------------------------------------------------------------

void repair_header(std::string& bytes, std::uint64_t generation) {
  if (bytes.size() < log_format::kSegmentHeaderBytes) return;
  bytes.replace(0, 8, "NARADLOG");
  raft::put(bytes, 12, std::uint32_t{0});
  const std::string_view block = std::string_view(bytes).substr(0, log_format::kSegmentHeaderBytes);
  raft::put(bytes, 12, io::crc32c(block, io::crc32c_salt(generation, 0)));
}

void repair_batches(std::string& bytes, std::uint64_t generation) {
  for (std::size_t at = log_format::kSegmentHeaderBytes; at + log_format::kBatchHeaderBytes <= bytes.size(); at += 8) {
    if (bytes.compare(at, 4, "NLB1") != 0) continue;
    const std::size_t body = at + log_format::kBatchHeaderBytes;
    const std::size_t length = std::min<std::size_t>(raft::get<std::uint32_t>(bytes, at + 8), bytes.size() - body);
    const auto first = raft::get<std::uint64_t>(bytes, at + 24);
    raft::put(bytes, at + 12, io::crc32c(std::string_view(bytes).substr(body, length), io::crc32c_salt(generation, first)));
    const std::string_view fields = std::string_view(bytes).substr(at + 8, log_format::kBatchHeaderBytes - 8);
    raft::put(bytes, at + 4, io::crc32c(fields, io::crc32c_salt(generation, at)));
  }
}

// ---- The log on its disk ---------------------------------------------------------------------------------------------------

struct Found {
  io::Status status;
  LogStore::Contents contents;
};

Found open(io::Env& env, const std::function<void(LogStore&)>& then) {
  Found found;
  auto log = LogStore::open(env.disk, tests::kStore, kSmall, found.contents);
  if (!log.ok()) {
    found.status = log.error();
    return found;
  }
  then(**log);
  return found;
}

// A refusal says what it refuses: a damaged place by file and offset, anything else by file.
void check_refusal(const io::Error& error) {
  NARAD_CHECK(error.kind == io::ErrorKind::corrupt || error.kind == io::ErrorKind::invalid, "bytes on the disk are no other error");
  NARAD_CHECK(error.message.find("raft/log/") != std::string::npos, "a refusal names the file");
  const bool is_whole_file = error.message.find(": missing") != std::string::npos ||
                             error.message.find("belongs to store") != std::string::npos ||
                             error.kind == io::ErrorKind::invalid;
  NARAD_CHECK(is_whole_file || error.message.find("damaged at offset ") != std::string::npos, "damage names its place");
}

void check_contents(const LogStore::Contents& contents) {
  raft::Term term = contents.base_term;
  Index index = contents.base_index;
  for (const Entry& entry : contents.entries) {
    NARAD_CHECK(entry.index == ++index, "the entries of a log are consecutive");
    NARAD_CHECK(entry.term >= term, "terms never fall along a log");
    term = entry.term;
  }
  NARAD_CHECK(index == contents.last_index && term == contents.last_term(), "a log ends with its last entry");
}

bool same(const std::vector<Entry>& a, const std::vector<Entry>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), raft::same_entry);
}

std::string bytes_of(const DiskWorld& disk, std::uint64_t generation) {
  return const_cast<DiskWorld&>(disk).bytes(log_format::segment_path(generation));
}

struct File {
  std::uint64_t generation = 0;
  std::string bytes;
};

std::vector<File> files_of(std::string_view bytes) {
  std::vector<File> files;
  Input input(bytes.substr(0, kInputBytesMax));
  while (!input.is_empty()) {
    File file;
    file.generation = input.byte() % 4 + 1;
    const std::uint8_t flags = input.byte();
    file.bytes = input.take(input.two_bytes());
    file.bytes.append((flags >> 1 & 7) * 512u, '\0');
    if ((flags & 1) != 0) {
      repair_header(file.bytes, file.generation);
      repair_batches(file.bytes, file.generation);
    }
    const bool is_new = std::none_of(files.begin(), files.end(), [&](const File& f) { return f.generation == file.generation; });
    if (is_new) files.push_back(std::move(file));
  }
  return files;
}

void put_files(io::Env& env, const std::vector<File>& files) {
  NARAD_CHECK(env.disk.make_directory("raft/log").ok() && env.disk.sync_directory("").ok(), "the log's folder is made");
  for (const File& file : files) {
    auto opened = env.disk.open(log_format::segment_path(file.generation), io::OpenMode::create);
    NARAD_CHECK(opened.ok() && (file.bytes.empty() || (*opened)->write(0, file.bytes).ok()), "a segment is written");
    NARAD_CHECK((*opened)->sync().ok(), "a segment is synced");
  }
  NARAD_CHECK(env.disk.sync_directory("raft/log").ok() && env.disk.sync_directory("raft").ok(), "names are durable");
}

// One batch more behind what was found; then all of it is found again.
void extend(LogStore& log, std::vector<Entry>& expected, raft::Term base_term, Index base_index) {
  if (!log.confirm().ok()) NARAD_CHECK(false, "a log that opened can be confirmed");
  const raft::Term term = expected.empty() ? base_term : expected.back().term;
  const Index last = base_index + expected.size();
  if (last == ~Index{0}) return;
  std::vector<Entry> more{Entry{term, last + 1, raft::EntryType::command, std::make_shared<const std::string>("more")}};
  NARAD_CHECK(log.append(more).ok(), "a log that opened can be appended to");
  expected.push_back(more[0]);
  auto read = log.read(base_index + 1, last + 1, 1 << 20);
  NARAD_CHECK(read.ok() && !read->empty() && raft::same_entry(read->front(), expected.front()), "what was found can be read");
}

std::string segment(std::uint64_t generation, std::uint8_t flags, std::string_view bytes) {
  std::string part{static_cast<char>(generation - 1), static_cast<char>(flags)};
  part.push_back(static_cast<char>(bytes.size() & 0xff));
  part.push_back(static_cast<char>(bytes.size() >> 8));
  return part.append(bytes);
}

// Segments as the store writes them, without most of the zeros at their ends.
std::string seed_from(DiskWorld& disk, std::uint8_t checksums) {
  std::string input;
  for (const std::string& path : disk.volume().tree().files()) {
    const auto generation = log_format::generation_of(std::string_view(path).substr(path.rfind('/') + 1));
    if (!generation || *generation > 4) continue;
    std::string bytes = bytes_of(disk, *generation);
    std::uint8_t zeros = 0;
    while (zeros < 7 && bytes.size() >= 512 && raft::is_all_zero(std::string_view(bytes).substr(bytes.size() - 512))) {
      bytes.resize(bytes.size() - 512);
      ++zeros;
    }
    input += segment(*generation, static_cast<std::uint8_t>(zeros << 1 | checksums), bytes);
  }
  return input;
}

std::string seed(const std::function<void(LogStore&)>& body, std::uint8_t checksums, int lives = 1) {
  DiskWorld disk(1);
  for (int i = 0; i < lives; ++i) {
    disk.run([&](io::Env& env) {
      put_files(env, {});
      const Found found = open(env, [&](LogStore& log) {
        NARAD_CHECK(log.confirm().ok(), "the seed's log can be confirmed");
        body(log);
      });
      NARAD_CHECK(found.status.ok(), "the seed's log opens");
    });
  }
  return seed_from(disk, checksums);
}

}  // namespace

std::vector<std::string> seeds() {
  using tests::entry;
  const auto batches = [](LogStore& log) {
    const Index at = log.last_index();
    NARAD_CHECK(log.append(std::vector{entry(1, at + 1, "one"), entry(1, at + 2, "")}).ok(), "appended");
    NARAD_CHECK(log.append(std::vector{entry(1, at + 3, "three")}).ok(), "appended");
  };
  const auto cut = [&](LogStore& log) {
    batches(log);
    NARAD_CHECK(log.append(std::vector{entry(2, 2, "two"), entry(2, 3, std::string(40, 'x'))}).ok(), "cut");
  };
  const auto long_log = [](LogStore& log) {
    for (int i = 0; i < 6; ++i) {
      NARAD_CHECK(log.append(std::vector{entry(1, log.last_index() + 1, std::string(900, 'y'))}).ok(), "appended");
    }
  };
  const auto begun_anew = [&](LogStore& log) {
    batches(log);
    NARAD_CHECK(log.reset(9, 3).ok() && log.append(std::vector{entry(4, 10, "ten")}).ok(), "reset");
  };
  const auto compacted = [&](LogStore& log) {
    long_log(log);
    NARAD_CHECK(log.compact(5).ok() && log.append(std::vector{entry(1, 7, std::string(3000, 'z'))}).ok(), "compacted");
  };
  std::vector<std::string> all;
  for (const std::uint8_t checksums : {0, 1}) {
    all.push_back(seed(batches, checksums));
    all.push_back(seed(batches, checksums, 3));
    all.push_back(seed(cut, checksums));
    all.push_back(seed(long_log, checksums));
    all.push_back(seed(begun_anew, checksums));
    all.push_back(seed(compacted, checksums));
  }
  return all;
}

void run_one(std::string_view bytes) {
  const std::vector<File> files = files_of(bytes);
  DiskWorld disk(1);
  Found first;
  std::vector<Entry> expected;
  disk.run([&](io::Env& env) {
    put_files(env, files);
    first = open(env, [](LogStore&) {});
  });
  for (const File& file : files) {
    NARAD_CHECK(bytes_of(disk, file.generation) == file.bytes, "open() changes nothing on the disk");
  }
  if (!first.status.ok()) return check_refusal(first.status.error());
  check_contents(first.contents);
  expected = first.contents.entries;
  disk.run([&](io::Env& env) {
    const Found again = open(env, [&](LogStore& log) { extend(log, expected, first.contents.base_term, first.contents.base_index); });
    NARAD_CHECK(again.status.ok() && same(again.contents.entries, first.contents.entries), "a log opens alike twice");
  });
  disk.run([&](io::Env& env) {
    const Found last = open(env, [](LogStore&) {});
    NARAD_CHECK(last.status.ok(), "what was confirmed opens: " + (last.status.ok() ? "" : last.status.error().message));
    NARAD_CHECK(last.contents.base_index == first.contents.base_index, "a log begins where it did");
    NARAD_CHECK(same(last.contents.entries, expected), "what was appended is found behind what was there");
  });
}

}  // namespace fuzz
