// Local reads of the metastore on the loop: a topic from the cache of records, a topic that is not there from RocksDB's memory (its
// memtable, then its cache of blocks), the check that a record which somebody keeps still holds, and a list of all topics.

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "bench/support/cpu.h"
#include "bench/support/process.h"
#include "bench/support/report.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/fsm.h"
#include "io/check.h"
#include "io/real/host.h"

namespace {

using namespace engine::metastore;

struct Options {
  std::string directory = ".";
  uint64_t topics = 10'000;
  uint64_t rounds = 20;
};

class Bench {
 public:
  Bench(io::Env& env, const Options& options) : env_(env), options_(options) {}

  int measure() {
    auto fsm = Fsm::open(env_, {});
    NARAD_CHECK(fsm.ok(), "the metastore opens");
    fsm_ = std::move(*fsm);
    fill();
    lookups("cached", 1'000, 1'000'000 / 1'000);
    // More names than the cache holds, in turn: none is there when its turn comes.
    NARAD_CHECK(options_.topics > kCachedTopicsMax, "fewer topics than the cache holds");
    lookups("uncached", options_.topics, options_.rounds);
    checks();
    lists("list");
    // The same once the rows are in a table, whose blocks are in RocksDB's cache after the round that is not counted.
    NARAD_CHECK(fsm_->flush().ok(), "what was applied is flushed");
    lookups("uncached-table", options_.topics, options_.rounds);
    lists("list-table");
    fsm_->close();
    return 0;
  }

 private:
  static std::string name_of(uint64_t number) { return "orders-eu-" + std::to_string(10'000'000 + number); }

  void fill() {
    raft::Index index = 0;
    for (uint64_t number = 0; number < options_.topics;) {
      std::vector<raft::Entry> batch;
      for (; batch.size() < 256 && number < options_.topics; ++number) {
        Topic topic;
        topic.name = name_of(number);
        topic.id = "00112233445566aa";
        topic.partitions = 12;
        topic.retention_ms = 604'800'000;
        topic.owner = "ann";
        names_.push_back(topic.name);
        batch.push_back({1, ++index, raft::EntryType::command, std::make_shared<const std::string>(encode_command(CreateTopic{topic}))});
      }
      NARAD_CHECK(fsm_->apply(batch).ok(), "entries apply");
    }
  }

  // Of the first `count` names, in turn, after one round that is not counted.
  void lookups(const char* what, uint64_t count, uint64_t rounds) {
    uint64_t partitions = 0;
    double began = 0;
    for (uint64_t round = 0; round <= rounds; ++round) {
      if (round == 1) {
        began = bench::thread_seconds();
      }
      for (uint64_t number = 0; number < count; ++number) {
        auto topic = fsm_->get_topic(names_[number]);
        NARAD_CHECK(topic.ok() && *topic != nullptr, "a topic is found");
        partitions += static_cast<uint64_t>((*topic)->partitions);
      }
    }
    const double took = bench::thread_seconds() - began;
    NARAD_CHECK(partitions == 12 * count * (rounds + 1), "the records are whole");
    bench::report("reads", what, 0, "lookup", "ns", took * 1e9 / static_cast<double>(count * rounds));
  }

  void checks() {
    DomainVersions versions;
    std::vector<VersionCell> cells;
    for (const std::string& name : names_) {
      cells.push_back(versions.watch(Domain::topics, name));
    }
    const uint64_t seen = cells.front().value();
    uint64_t same = 0;
    const uint64_t rounds = 100;
    const double began = bench::thread_seconds();
    for (uint64_t round = 0; round < rounds; ++round) {
      for (const VersionCell& cell : cells) {
        same += cell.value() == seen ? 1 : 0;
      }
    }
    const double took = bench::thread_seconds() - began;
    NARAD_CHECK(same == rounds * cells.size(), "nothing has moved");
    bench::report("reads", "version", 0, "check", "ns", took * 1e9 / static_cast<double>(same));
  }

  void lists(const char* what) {
    const io::Instant began = env_.now();
    const double cpu_began = bench::process_seconds();
    for (uint64_t round = 0; round < options_.rounds; ++round) {
      uint64_t found = 0;
      std::string after;
      while (true) {
        auto page = fsm_->list_topics(after, 1000);
        NARAD_CHECK(page.ok(), "topics are listed");
        found += page->size();
        if (page->size() < 1000) {
          break;
        }
        after = page->back()->name;
      }
      NARAD_CHECK(found == options_.topics, "every topic is listed");
    }
    const auto rounds = static_cast<double>(options_.rounds);
    const double took = static_cast<double>((env_.now() - began).count()) / 1e6;
    bench::report("reads", what, 0, "all_topics", "ms", took / rounds);
    bench::report("reads", what, 0, "all_topics_cpu", "ms", (bench::process_seconds() - cpu_began) * 1e3 / rounds);
    bench::report("reads", what, 0, "topics", "topics", static_cast<double>(options_.topics));
  }

  io::Env& env_;
  const Options& options_;
  std::unique_ptr<Fsm> fsm_;
  std::vector<std::string> names_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Local reads of the metastore");
  app.add_option("--dir", options.directory, "where the data directory is made")->capture_default_str();
  app.add_option("--topics", options.topics, "topics in the metastore")->capture_default_str();
  app.add_option("--rounds", options.rounds, "rounds over all topics")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  bench::ScratchDirectory scratch(options.directory);
  io::real::HostSettings settings;
  settings.data_dir = scratch.path();
  settings.log.level = io::LogLevel::warn;
  settings.handle_signals = false;
  return io::real::run_host(settings, [&](io::Env& env, io::Event&) { return Bench(env, options).measure(); });
}
