// The phases in which images of a metastore are measured, whatever is in it: an ordinary life, then an image written beside applies,
// checked, installed. For each the rate, the memory that it adds to the process, and how long others wait.
//
// Memory is what the process's peak rises above the running peak: the highest before, in a process that has applied through
// several flushes and compactions and has read until every cache was full. So the metastore is to be filled by another process.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/support/cpu.h"
#include "bench/support/report.h"
#include "engine/metastore/database.h"
#include "engine/metastore/fsm.h"
#include "io/check.h"
#include "io/env.h"
#include "io/fiber.h"
#include "raft/state_machine.h"

namespace bench {

inline double to_mebibytes(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
inline double to_seconds(io::Duration duration) { return static_cast<double>(duration.count()) / 1e9; }

// From /proc: resident bytes, the highest since the last reset.
inline uint64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) {
      return std::stoull(line.substr(line.find_first_of("0123456789"))) * 1024;
    }
  }
  return 0;
}
inline void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5"; }

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

class ImagePhases {
 public:
  struct Load {
    std::function<raft::Entry(raft::Index)> entry;  // a small one, for that index
    std::function<std::string()> any_topic;         // a name drawn from all
    raft::Index warm_up_entries = 0;                // through several flushes
    uint64_t warm_up_reads = 0;                     // until the caches are full
  };

  // `bench` and `prefix` begin the names of the figures.
  ImagePhases(io::Env& env, engine::metastore::Fsm& fsm, std::string bench, std::string prefix, Load load)
      : env_(env), fsm_(fsm), bench_(std::move(bench)), prefix_(std::move(prefix)), load_(std::move(load)), index_(fsm.applied_index()) {}

  // All of them, twice each, through the file "image" of the data directory, which is left there.
  void measure() {
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
  }

 private:
  // How long applies stood still, by the clock and by the processor time that this process spent meanwhile: what others on the machine
  // took is in the first only.
  struct Gap {
    io::Duration time{0};
    double cpu = 0;
  };
  // The highest that a process has used, and what RocksDB's caches, tables and memtables were of it at most.
  struct Peaks {
    uint64_t process = 0;
    uint64_t rocksdb = 0;
  };

  void say(const std::string& name, const char* metric, const char* unit, double value) {
    report(bench_, prefix_ + name, 0, metric, unit, value);
  }

  void read_any() { NARAD_CHECK(fsm_.get_topic(load_.any_topic()).ok(), "a topic is read"); }

  // What an ordinary life brings memory to: flushes beside flushes, compactions, full caches.
  void warm_up() {
    reset_peak_memory();
    const raft::Index begun_at = index_;
    for (uint64_t i = 0; i < load_.warm_up_reads || index_ - begun_at < load_.warm_up_entries; ++i) {
      if (i < load_.warm_up_reads) read_any();
      if (index_ - begun_at < load_.warm_up_entries) {
        std::vector<raft::Entry> batch;
        while (batch.size() < 64) {
          ++index_;
          batch.push_back(load_.entry(index_));
        }
        NARAD_CHECK(fsm_.apply(batch).ok(), "an entry applies");
      }
      if (i % 64 == 0) sample();
    }
    apply_for("warm-up", std::chrono::seconds(2));
    take_peaks("warm-up");
  }

  void sample() { sampled_.rocksdb = std::max(sampled_.rocksdb, fsm_.store_memory().total()); }

  // Of the phase that ends here, and how far above those before.
  void take_peaks(const std::string& name) {
    sample();
    sampled_.process = peak_memory();
    const auto above = [](uint64_t now, uint64_t before) { return now > before ? to_mebibytes(now - before) : 0; };
    say(name, "memory_peak", "MiB", to_mebibytes(sampled_.process));
    say(name, "memory_peak_of_rocksdb", "MiB", to_mebibytes(sampled_.rocksdb));
    if (running_.process > 0) {
      say(name, "memory_added", "MiB", above(sampled_.process, running_.process));
      say(name, "memory_added_by_rocksdb", "MiB", above(sampled_.rocksdb, running_.rocksdb));
    }
    running_.process = std::max(running_.process, sampled_.process);
    running_.rocksdb = std::max(running_.rocksdb, sampled_.rocksdb);
    sampled_ = {};
    reset_peak_memory();
  }

  // Small batches one after another until `is_over`; the longest gaps.
  Gap apply_until(const bool& is_over) {
    Gap longest;
    io::Instant last = env_.now();
    double last_cpu = process_seconds();
    while (!is_over) {
      ++index_;
      NARAD_CHECK(fsm_.apply({load_.entry(index_)}).ok(), "an entry applies");
      longest.time = std::max(longest.time, env_.now() - last);
      longest.cpu = std::max(longest.cpu, process_seconds() - last_cpu);
      last = env_.now();
      last_cpu = process_seconds();
      io::sleep_for(std::chrono::microseconds(100));
    }
    return longest;
  }

  void say_gap(const std::string& name, const Gap& gap) {
    say(name, "longest_gap_between_applies", "ms", to_seconds(gap.time) * 1e3);
    say(name, "longest_gap_between_applies_cpu", "ms", gap.cpu * 1e3);
  }

  // Beside the applies: reads, and looks at RocksDB's memory.
  void sample_until(const bool& is_over) {
    while (!is_over) {
      read_any();
      sample();
      io::sleep_for(std::chrono::milliseconds(20));
    }
  }

  void apply_for(const char* name, io::Duration duration) {
    bool is_over = false;
    Gap longest;
    io::with_scope([&](io::Scope& scope) {
      scope.spawn("applies", [&] { longest = apply_until(is_over); });
      scope.spawn("samples", [&] { sample_until(is_over); });
      io::sleep_for(duration);
      is_over = true;
    });
    say_gap(name, longest);
  }

  void measure_write(const std::string& round, io::File& file) {
    apply_for("without-image", std::chrono::seconds(5));
    take_peaks("without-image");
    FileSink sink(file);
    bool is_over = false;
    Gap longest;
    const io::Instant began = env_.now();
    io::with_scope([&](io::Scope& scope) {
      scope.spawn("applies", [&] { longest = apply_until(is_over); });
      scope.spawn("samples", [&] { sample_until(is_over); });
      auto label = fsm_.write_image(sink, index_);
      NARAD_CHECK(label.ok(), "an image is written");
      label_ = *label;
      is_over = true;
    });
    const std::string name = "write-" + round;
    say(name, "size", "MiB", to_mebibytes(sink.bytes()));
    say(name, "rate", "MB/s", static_cast<double>(sink.bytes()) / 1e6 / to_seconds(env_.now() - began));
    take_peaks(name);
    say_gap(name, longest);
    bytes_ = sink.bytes();
    NARAD_CHECK(file.truncate(bytes_).ok() && file.sync().ok(), "the image's file is whole");
  }

  void measure_check(const std::string& round, io::File& file) {
    FileSource source(file);
    const io::Instant began = env_.now();
    NARAD_CHECK(fsm_.check_image(source, label_).ok(), "the image is good");
    const std::string name = "check-" + round;
    say(name, "rate", "MB/s", static_cast<double>(bytes_) / 1e6 / to_seconds(env_.now() - began));
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
          NARAD_CHECK(fsm_.list_topics("", 1).ok(), "a list is answered");
          longest = std::max(longest, env_.now() - asked);
          io::sleep_for(std::chrono::milliseconds(1));
        }
      });
      io::Status installed = fsm_.install_image(source, label_);
      NARAD_CHECK(installed.ok(), "the image is installed");
      is_over = true;
    });
    const std::string name = "install-" + round;
    say(name, "rate", "MB/s", static_cast<double>(bytes_) / 1e6 / to_seconds(env_.now() - began));
    take_peaks(name);
    say(name, "longest_lane_read", "ms", to_seconds(longest) * 1e3);
  }

  io::Env& env_;
  engine::metastore::Fsm& fsm_;
  const std::string bench_;
  const std::string prefix_;
  const Load load_;
  raft::Index index_;
  raft::Index label_ = 0;
  uint64_t bytes_ = 0;
  Peaks sampled_;  // of the phase under way
  Peaks running_;  // of those before
};

}  // namespace bench
