// Images of the large metastore, in a process that did not fill it.
#include <memory>
#include <string>
#include <utility>

#include "bench/metastore/node.h"
#include "bench/metastore/parts.h"
#include "bench/support/image_phases.h"
#include "bench/support/machine.h"
#include "bench/support/report.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/database_options.h"
#include "engine/metastore/fsm.h"
#include "io/check.h"

namespace bench {

namespace {

using namespace engine::metastore;

constexpr raft::Index kWarmUpEntries = 150'000;  // of small topics: through several flushes
constexpr uint64_t kSmallRowBytes = 128;

raft::Entry small_topic(raft::Index index) {
  Topic topic;
  topic.name = "written-" + std::to_string(10'000'000 + index);
  topic.id = "00112233445566aa";
  topic.partitions = 3;
  topic.owner = "team-" + std::to_string(index % 1000);
  return {1'000'000, index, raft::EntryType::command, std::make_shared<const std::string>(encode_command(CreateTopic{topic}))};
}

}  // namespace

void measure_images(const MetastoreOptions& options, const std::string& data_dir) {
  constexpr uint64_t kDiskBytes = 256u << 20;
  report("metastore", "machine", 0, "sequential_write", "MB/s", measure_sequential_write(options.directory, kDiskBytes));
  run_apart(data_dir, [&](io::Env& env) {
    auto opened = Fsm::open(env, {});
    NARAD_CHECK(opened.ok(), "the metastore opens");
    Fsm& fsm = **opened;
    report("metastore", "image", 0, "database", "MiB", to_mebibytes(fsm.stats().fsm_bytes));
    ImagePhases::Load load;
    load.entry = small_topic;
    load.any_topic = [topics = options.topics, drawn = uint64_t{1}]() mutable {
      drawn = drawn * 6364136223846793005u + 1442695040888963407u;
      return large_topic_name((drawn >> 33) % topics);
    };
    load.warm_up_entries = kWarmUpEntries;
    load.warm_up_reads = 2 * kCachedTopicsMax + 2 * kBlockCacheBytes / kSmallRowBytes;
    ImagePhases(env, fsm, "metastore", "image-", std::move(load)).measure();
    fsm.close();
    return 0;
  });
}

}  // namespace bench
