// What an image of the metastore costs on this machine's disk: written beside applies, checked, installed. Rates, the memory that
// each adds to the process, and the longest time between two applies meanwhile, beside the same applies without an image.
// How memory is measured: support/image_phases.h.

#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/support/image_phases.h"
#include "bench/support/process.h"
#include "bench/support/report.h"
#include "engine/metastore/database_options.h"
#include "engine/metastore/envelope.h"
#include "engine/metastore/fsm.h"
#include "engine/metastore/topic.h"
#include "io/check.h"
#include "io/real/host.h"

namespace {

using namespace engine::metastore;

struct Options {
  std::string directory = ".";
  uint64_t megabytes = 1024;
  uint64_t row_bytes = 4096;
};

// Of small topics: through several flushes.
constexpr raft::Index kWarmUpEntries = 150'000;

std::string topic_name(uint64_t number) { return "topic-" + std::to_string(10'000'000 + number); }

raft::Entry topic_entry(raft::Index index, uint64_t number, uint64_t row_bytes) {
  Topic topic;
  topic.name = topic_name(number);
  topic.id = "00112233445566aa";
  topic.partitions = 3;
  topic.owner.assign(row_bytes, static_cast<char>('a' + number % 26));
  return {1, index, raft::EntryType::command, std::make_shared<const std::string>(encode_create_topic(topic))};
}

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
    uint64_t drawn = 1;
    bench::ImagePhases::Load load;
    load.entry = [](raft::Index index) { return topic_entry(index, 10'000'000 + index, 200); };
    load.any_topic = [this, drawn]() mutable {
      drawn = drawn * 6364136223846793005u + 1442695040888963407u;
      return topic_name((drawn >> 33) % ((options_.megabytes << 20) / options_.row_bytes));
    };
    load.warm_up_entries = kWarmUpEntries;
    load.warm_up_reads = 2 * kCachedTopicsMax + 2 * kBlockCacheBytes / options_.row_bytes;
    bench::ImagePhases(env_, *fsm_, "image", "", std::move(load)).measure();
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
    bench::report("image", "fill", 0, "rows", "1/s", static_cast<double>(rows) / bench::to_seconds(env_.now() - began));
  }

  io::Env& env_;
  const Options& options_;
  std::unique_ptr<Fsm> fsm_;
  raft::Index index_ = 0;
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
