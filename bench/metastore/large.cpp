// The large metastore: created entry by entry through the raft of a single node.
#include <chrono>
#include <string>
#include <utility>

#include "bench/metastore/node.h"
#include "bench/metastore/parts.h"
#include "bench/support/report.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/fsm.h"
#include "io/check.h"
#include "io/fiber.h"
#include "raft/server.h"

namespace bench {

namespace {

using namespace engine::metastore;

constexpr int kFillers = 512;  // proposals in flight
constexpr io::Duration kSnapshotFor = std::chrono::seconds(120);

std::string id_of(uint64_t number) {
  const std::string text = std::to_string(number);
  return std::string(16 - text.size(), '0') + text;
}

std::string create_topic(const MetastoreOptions& options, uint64_t number) {
  Topic topic;
  topic.name = large_topic_name(number);
  topic.id = id_of(number);
  topic.partitions = static_cast<int32_t>(options.assignments_per_topic);
  topic.retention_ms = 604'800'000;
  topic.visibility_timeout_ms = 30'000;
  topic.max_in_flight_per_partition = 1024;
  topic.max_acked_ahead_per_partition = 1024;
  topic.created_at = 1'700'000'000;
  topic.owner = "team-" + std::to_string(number % 1000);
  return encode_command(CreateTopic{topic});
}

std::string place_partition(uint64_t number, uint64_t partition) {
  return encode_command(PlacePartition{large_topic_name(number), static_cast<int32_t>(partition),
                                       "narad-" + std::to_string((number + partition) % 5), id_of(number)});
}

void propose(raft::RaftServer& raft, const std::string& command) {
  raft::Proposed proposed = raft.propose(command, io::kNever);
  while (proposed.outcome == raft::Outcome::refused) {  // a bound is reached
    io::sleep_for(std::chrono::milliseconds(1));
    proposed = raft.propose(command, io::kNever);
  }
  NARAD_CHECK(proposed.ok() && decode_answer(proposed.answer)->ok(), "an entry is accepted");
}

void fill(const MetastoreOptions& options, raft::RaftServer& raft) {
  while (!raft.is_leader()) io::sleep_for(std::chrono::milliseconds(10));
  uint64_t next = 0;
  io::with_scope([&](io::Scope& scope) {
    for (int i = 0; i < kFillers; ++i) {
      scope.spawn("fill", [&] {
        while (next < options.topics) {
          const uint64_t number = next++;
          propose(raft, create_topic(options, number));
          for (uint64_t partition = 0; partition < options.assignments_per_topic; ++partition) {
            propose(raft, place_partition(number, partition));
          }
        }
      });
    }
  });
}

}  // namespace

std::string large_topic_name(uint64_t number) { return "orders-" + std::to_string(10'000'000 + number); }

void fill_large(const MetastoreOptions& options, const std::string& data_dir) {
  engine::Config config = node_config(data_dir);
  config.cluster.raft_snapshot_interval = std::chrono::seconds(15);
  run_apart(data_dir, [&](io::Env& env) {
    return with_node(env, config, [&](const engine::NodeView& node) {
      const io::Instant began = env.now();
      fill(options, node.raft);
      const auto entries = static_cast<double>(options.topics * (1 + options.assignments_per_topic));
      report("metastore", "fill", 0, "entries", "1/s", entries / (static_cast<double>((env.now() - began).count()) / 1e9));
      report("metastore", "fill", 0, "topics", "topics", static_cast<double>(options.topics));
      report("metastore", "fill", 0, "assignments", "rows", static_cast<double>(options.topics * options.assignments_per_topic));
      // A node that has lived for a while has a snapshot that is not far behind.
      const raft::Index last = node.raft.applied_index();
      const io::Instant until = env.now() + kSnapshotFor;
      while (node.raft.status().snapshot + config.cluster.raft_snapshot_threshold < last && env.now() < until) {
        io::sleep_for(std::chrono::milliseconds(100));
      }
      const raft::ServerStatus status = node.raft.status();
      report("metastore", "fill", 0, "size", "MiB", static_cast<double>(node.fsm.stats().fsm_bytes) / (1 << 20));
      report("metastore", "fill", 0, "snapshot", "MiB", static_cast<double>(status.snapshot_bytes) / (1 << 20));
      report("metastore", "fill", 0, "log", "entries", static_cast<double>(status.last - status.log_base));
    });
  });
}

}  // namespace bench
