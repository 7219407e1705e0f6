// What an image of the metastore costs on this machine's disk: written beside applies, checked, installed. Rates, the memory that
// each adds to the process, and the longest time between two applies meanwhile, beside the same applies without an image.

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

uint64_t resident() { return memory("VmRSS:"); }
uint64_t peak() { return memory("VmHWM:"); }
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

double megabytes_above(uint64_t after, uint64_t before) {
  return after > before ? static_cast<double>(after - before) / (1 << 20) : 0;
}

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
    // RocksDB's caches are bounded, and none of an image's.
    (void)apply_for("warm-up", 3s);
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

  // Small batches one after another until `is_over`; the longest took.
  io::Duration apply_until(const bool& is_over) {
    io::Duration longest{0};
    io::Instant last = env_.now();
    while (!is_over) {
      ++index_;
      NARAD_CHECK(fsm_->apply({topic_entry(index_, index_ % 1000, 200)}).ok(), "an entry applies");
      longest = std::max(longest, env_.now() - last);
      last = env_.now();
      io::sleep_for(100us);
    }
    return longest;
  }

  io::Duration apply_for(const char* name, io::Duration duration) {
    bool is_over = false;
    io::Duration longest{0};
    io::with_scope([&](io::Scope& scope) {
      scope.spawn("applies", [&] { longest = apply_until(is_over); });
      io::sleep_for(duration);
      is_over = true;
    });
    bench::report("image", name, 0, "longest_gap_between_applies", "ms", seconds(longest) * 1e3);
    return longest;
  }

  void measure_write(const std::string& round, io::File& file) {
    (void)apply_for("without", 5s);
    FileSink sink(file);
    bool is_over = false;
    io::Duration longest{0};
    const uint64_t before = resident();
    reset_peak();
    const io::Instant began = env_.now();
    io::with_scope([&](io::Scope& scope) {
      scope.spawn("applies", [&] { longest = apply_until(is_over); });
      auto label = fsm_->write_image(sink, index_);
      NARAD_CHECK(label.ok(), "an image is written");
      label_ = *label;
      is_over = true;
    });
    const std::string name = "write-" + round;
    bench::report("image", name, 0, "size", "MiB", static_cast<double>(sink.bytes()) / (1 << 20));
    bench::report("image", name, 0, "rate", "MB/s", static_cast<double>(sink.bytes()) / 1e6 / seconds(env_.now() - began));
    bench::report("image", name, 0, "memory_added", "MiB", megabytes_above(peak(), before));
    bench::report("image", name, 0, "longest_gap_between_applies", "ms", seconds(longest) * 1e3);
    bytes_ = sink.bytes();
    NARAD_CHECK(file.truncate(bytes_).ok() && file.sync().ok(), "the image's file is whole");
  }

  void measure_check(const std::string& round, io::File& file) {
    FileSource source(file);
    const uint64_t before = resident();
    reset_peak();
    const io::Instant began = env_.now();
    NARAD_CHECK(fsm_->check_image(source, label_).ok(), "the image is good");
    const std::string name = "check-" + round;
    bench::report("image", name, 0, "rate", "MB/s", static_cast<double>(bytes_) / 1e6 / seconds(env_.now() - began));
    bench::report("image", name, 0, "memory_added", "MiB", megabytes_above(peak(), before));
  }

  void measure_install(const std::string& round, io::File& file) {
    FileSource source(file);
    bool is_over = false;
    io::Duration longest{0};
    const uint64_t before = resident();
    reset_peak();
    const io::Instant began = env_.now();
    io::with_scope([&](io::Scope& scope) {
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
    bench::report("image", name, 0, "memory_added", "MiB", megabytes_above(peak(), before));
    bench::report("image", name, 0, "longest_lane_read", "ms", seconds(longest) * 1e3);
  }

  io::Env& env_;
  const Options& options_;
  std::unique_ptr<Fsm> fsm_;
  raft::Index index_ = 0;
  raft::Index label_ = 0;
  uint64_t bytes_ = 0;
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
