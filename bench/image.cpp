// What an image of the metastore costs on this machine's disk: written beside applies, checked, installed. Rates, the memory that
// each adds to the process, and the longest time between two applies meanwhile, beside the same applies without an image.
//
// Memory is what the process's peak rises above the running peak: the highest before, in a process that has applied through
// several flushes and compactions and has read until every cache was full.

#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "bench/support/process.h"
#include "bench/support/report.h"
#include "engine/metastore/database.h"
#include "engine/metastore/database_options.h"
#include "engine/metastore/envelope.h"
#include "engine/metastore/fsm.h"
#include "engine/metastore/topic.h"
#include "io/check.h"
#include "io/real/host.h"

namespace {

using namespace engine::metastore;
using namespace std::chrono_literals;

struct Options {
  std::string directory = ".";
  uint64_t megabytes = 1024;
  uint64_t row_bytes = 4096;
};

// Of small topics: through several flushes.
constexpr raft::Index kWarmUpEntries = 150'000;

double seconds(io::Duration duration) { return static_cast<double>(duration.count()) / 1e9; }

// From /proc: resident bytes now, or the highest since the last reset.
uint64_t memory(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) {
      return std::stoull(line.substr(line.find_first_of("0123456789"))) * 1024;
    }
  }
  return 0;
}

uint64_t peak() { return memory("VmHWM:"); }
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

double to_mebibytes(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// The highest that a process has used, and what RocksDB's caches, tables and memtables were of it at most.
struct Peaks {
  uint64_t process = 0;
  uint64_t rocksdb = 0;
};

raft::Entry topic_entry(raft::Index index, uint64_t number, uint64_t row_bytes) {
  Topic topic;
  topic.name = "topic-" + std::to_string(10'000'000 + number);
  topic.id = "00112233445566aa";
  topic.partitions = 3;
  topic.owner.assign(row_bytes, static_cast<char>('a' + number % 26));
  return {1, index, raft::EntryType::command, std::make_shared<const std::string>(encode_create_topic(topic))};
}

// Into a file, a piece at a time, as a snapshot is written.
class FileSink final : public raft::ImageSink {
 public:
  explicit FileSink(io::File& file) : file_(file) {}
  io::Status write(std::string bytes) override {
    const uint64_t at = bytes_;
    bytes_ += bytes.size();
    return file_.write(at, std::move(bytes));
  }
  uint64_t bytes() const { return bytes_; }

 private:
  io::File& file_;
  uint64_t bytes_ = 0;
};

class FileSource final : public raft::ImageSource {
 public:
  explicit FileSource(io::File& file) : file_(file) {}
  io::Result<std::string> read(std::size_t bytes_max) override {
    io::Result<std::string> piece = file_.read(at_, bytes_max);
    if (piece.ok()) {
      at_ += piece->size();
    }
    return piece;
  }

 private:
  io::File& file_;
  uint64_t at_ = 0;
};

class Bench {
 public:
  Bench(io::Env& env, const Options& options) : env_(env), options_(options) {}

  int fill() {
    open();
    fill_rows();
    fsm_->close();
    return 0;
  }

  int measure() {
    open();
    index_ = fsm_->applied_index();
    warm_up();
    auto file = env_.disk.open("image", io::OpenMode::create);
    NARAD_CHECK(file.ok(), "the image's file opens");
    for (const char* round : {"first", "again"}) {
      measure_write(round, **file);
    }
    for (const char* round : {"first", "again"}) {
      measure_check(round, **file);
      measure_install(round, **file);
    }
    fsm_->close();
    return 0;
  }

 private:
  void open() {
    std::fflush(stdout);
    auto fsm = Fsm::open(env_, {});
    NARAD_CHECK(fsm.ok(), "the metastore opens");
    fsm_ = std::move(*fsm);
  }

  void fill_rows() {
    const io::Instant began = env_.now();
    const uint64_t rows = (options_.megabytes << 20) / options_.row_bytes;
    for (uint64_t number = 0; number < rows;) {
      std::vector<raft::Entry> batch;
      for (; batch.size() < 64 && number < rows; ++number) {
        batch.push_back(topic_entry(++index_, number, options_.row_bytes));
      }
      NARAD_CHECK(fsm_->apply(batch).ok(), "an entry applies");
    }
    NARAD_CHECK(fsm_->flush().ok(), "what was applied is flushed");
    bench::report("image", "fill", 0, "rows", "1/s", static_cast<double>(rows) / seconds(env_.now() - began));
  }

  std::string any_topic() {
    drawn_ = drawn_ * 6364136223846793005u + 1442695040888963407u;
    return "topic-" + std::to_string(10'000'000 + (drawn_ >> 33) % ((options_.megabytes << 20) / options_.row_bytes));
  }

  void read_any() { NARAD_CHECK(fsm_->get_topic(any_topic()).ok(), "a topic is read"); }

  // What an ordinary life brings memory to: flushes beside flushes, compactions, full caches.
  void warm_up() {
    reset_peak();
    const raft::Index begun_at = index_;
    const uint64_t reads = 2 * kCachedTopicsMax + 2 * kBlockCacheBytes / options_.row_bytes;
    for (uint64_t i = 0; i < reads || index_ - begun_at < kWarmUpEntries; ++i) {
      if (i < reads) read_any();
      if (index_ - begun_at < kWarmUpEntries) {
        std::vector<raft::Entry> batch;
        while (batch.size() < 64) {
          ++index_;
          batch.push_back(topic_entry(index_, 10'000'000 + index_, 200));
        }
        NARAD_CHECK(fsm_->apply(batch).ok(), "an entry applies");
      }
      if (i % 64 == 0) sample();
    }
    (void)apply_for("warm-up", 2s);
    take_peaks("warm-up");
  }

  void sample() { sampled_.rocksdb = std::max(sampled_.rocksdb, fsm_->store_memory().total()); }

  // Of the phase that ends here, and how far above those before.
  void take_peaks(const std::string& name) {
    sample();
    sampled_.process = peak();
    const auto above = [](uint64_t now, uint64_t before) { return now > before ? to_mebibytes(now - before) : 0; };
    bench::report("image", name, 0, "memory_peak", "MiB", to_mebibytes(sampled_.process));
    bench::report("image", name, 0, "memory_peak_of_rocksdb", "MiB", to_mebibytes(sampled_.rocksdb));
    if (running_.process > 0) {
      bench::report("image", name, 0, "memory_added", "MiB", above(sampled_.process, running_.process));
      bench::report("image", name, 0, "memory_added_by_rocksdb", "MiB", above(sampled_.rocksdb, running_.rocksdb));
    }
    running_.process = std::max(running_.process, sampled_.process);
    running_.rocksdb = std::max(running_.rocksdb, sampled_.rocksdb);
    sampled_ = {};
    reset_peak();
  }

  // Small batches one after another until `is_over`; the longest took.
  io::Duration apply_until(const bool& is_over) {
    io::Duration longest{0};
    io::Instant last = env_.now();
    while (!is_over) {
      ++index_;
      NARAD_CHECK(fsm_->apply({topic_entry(index_, 10'000'000 + index_, 200)}).ok(), "an entry applies");
      longest = std::max(longest, env_.now() - last);
      last = env_.now();
      io::sleep_for(100us);
    }
    return longest;
  }

  // Beside the applies: reads, and looks at RocksDB's memory.
  void sample_until(const bool& is_over) {
    while (!is_over) {
      read_any();
      sample();
      io::sleep_for(20ms);
    }
  }

  io::Duration apply_for(const char* name, io::Duration duration) {
    bool is_over = false;
    io::Duration longest{0};
    io::with_scope([&](io::Scope& scope) {
      scope.spawn("applies", [&] { longest = apply_until(is_over); });
      scope.spawn("samples", [&] { sample_until(is_over); });
      io::sleep_for(duration);
      is_over = true;
    });
    bench::report("image", name, 0, "longest_gap_between_applies", "ms", seconds(longest) * 1e3);
    return longest;
  }

  void measure_write(const std::string& round, io::File& file) {
    (void)apply_for("without", 5s);
    take_peaks("without");
    FileSink sink(file);
    bool is_over = false;
    io::Duration longest{0};
    const io::Instant began = env_.now();
    io::with_scope([&](io::Scope& scope) {
      scope.spawn("applies", [&] { longest = apply_until(is_over); });
      scope.spawn("samples", [&] { sample_until(is_over); });
      auto label = fsm_->write_image(sink, index_);
      NARAD_CHECK(label.ok(), "an image is written");
      label_ = *label;
      is_over = true;
    });
    const std::string name = "write-" + round;
    bench::report("image", name, 0, "size", "MiB", static_cast<double>(sink.bytes()) / (1 << 20));
    bench::report("image", name, 0, "rate", "MB/s", static_cast<double>(sink.bytes()) / 1e6 / seconds(env_.now() - began));
    take_peaks(name);
    bench::report("image", name, 0, "longest_gap_between_applies", "ms", seconds(longest) * 1e3);
    bytes_ = sink.bytes();
    NARAD_CHECK(file.truncate(bytes_).ok() && file.sync().ok(), "the image's file is whole");
  }

  void measure_check(const std::string& round, io::File& file) {
    FileSource source(file);
    const io::Instant began = env_.now();
    NARAD_CHECK(fsm_->check_image(source, label_).ok(), "the image is good");
    const std::string name = "check-" + round;
    bench::report("image", name, 0, "rate", "MB/s", static_cast<double>(bytes_) / 1e6 / seconds(env_.now() - began));
    take_peaks(name);
  }

  void measure_install(const std::string& round, io::File& file) {
    FileSource source(file);
    bool is_over = false;
    io::Duration longest{0};
    const io::Instant began = env_.now();
    io::with_scope([&](io::Scope& scope) {
      scope.spawn("samples", [&] { sample_until(is_over); });
      // Reads that go to the lane show what an install makes others wait there.
      scope.spawn("reads", [&] {
        while (!is_over) {
          const io::Instant asked = env_.now();
          NARAD_CHECK(fsm_->list_topics("", 1).ok(), "a list is answered");
          longest = std::max(longest, env_.now() - asked);
          io::sleep_for(1ms);
        }
      });
      io::Status installed = fsm_->install_image(source, label_);
      NARAD_CHECK(installed.ok(), "the image is installed");
      is_over = true;
    });
    const std::string name = "install-" + round;
    bench::report("image", name, 0, "rate", "MB/s", static_cast<double>(bytes_) / 1e6 / seconds(env_.now() - began));
    take_peaks(name);
    bench::report("image", name, 0, "longest_lane_read", "ms", seconds(longest) * 1e3);
  }

  io::Env& env_;
  const Options& options_;
  std::unique_ptr<Fsm> fsm_;
  raft::Index index_ = 0;
  raft::Index label_ = 0;
  uint64_t bytes_ = 0;
  uint64_t drawn_ = 1;
  Peaks sampled_;  // of the phase under way
  Peaks running_;  // of those before
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Images of the metastore: written beside applies, checked, installed");
  app.add_option("--dir", options.directory, "where the data directory is made")->capture_default_str();
  app.add_option("--megabytes", options.megabytes, "size of the metastore")->capture_default_str();
  app.add_option("--row-bytes", options.row_bytes, "size of a row")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  bench::ScratchDirectory scratch(options.directory);
  io::real::HostSettings settings;
  settings.data_dir = scratch.path();
  settings.log.level = io::LogLevel::warn;
  settings.handle_signals = false;
  // Filled by a process of its own: what that took of memory would hide what an image takes.
  const pid_t filler = fork();
  if (filler == 0) {
    std::_Exit(io::real::run_host(settings, [&](io::Env& env, io::Event&) { return Bench(env, options).fill(); }));
  }
  int ended = 0;
  if (filler < 0 || waitpid(filler, &ended, 0) != filler || ended != 0) {
    std::fprintf(stderr, "bench/image: the metastore could not be filled\n");
    return 1;
  }
  return io::real::run_host(settings, [&](io::Env& env, io::Event&) { return Bench(env, options).measure(); });
}
