#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bench/metastore/parts.h"
#include "bench/support/cpu.h"
#include "bench/support/process.h"
#include "bench/support/report.h"
#include "engine/metastore/apply.h"
#include "engine/metastore/commands.h"
#include "engine/metastore/fsm.h"
#include "io/check.h"
#include "io/real/host.h"

namespace bench {

namespace {

using namespace engine::metastore;

// A log as a busy cluster writes it, over and over: heartbeats of five members; a parent with a schema and its child, both placed;
// another schema version, a change of configuration, a move; and, a while later, the child detached and deleted.
class PreparedLog {
 public:
  explicit PreparedLog(uint64_t entries) {
    log_.reserve(entries + 32);
    while (log_.size() < entries) {
      add_round(round_++);
    }
    log_.resize(entries);
  }
  const std::vector<raft::Entry>& entries() const { return log_; }

 private:
  static constexpr uint64_t kPartitions = 3;
  static constexpr uint64_t kDetachAfter = 50;
  static constexpr uint64_t kDeleteAfter = 100;

  static std::string parent(uint64_t round) { return "orders-" + std::to_string(1'000'000 + round); }
  static std::string child(uint64_t round) { return "orders-" + std::to_string(1'000'000 + round) + "-replica"; }
  static std::string id(uint64_t number) {
    std::string text = std::to_string(number);
    return std::string(16 - text.size(), '0') + text;
  }
  static std::string member(uint64_t number) { return "narad-" + std::to_string(number % 5); }

  static Topic topic(std::string name, uint64_t round, uint64_t incarnation) {
    Topic made;
    made.name = std::move(name);
    made.id = id(incarnation);
    made.partitions = kPartitions;
    made.retention_ms = 604'800'000;
    made.visibility_timeout_ms = 30'000;
    made.max_in_flight_per_partition = 1024;
    made.max_acked_ahead_per_partition = 1024;
    made.created_at = 1'700'000'000;
    made.owner = "team-" + std::to_string(round % 100);
    return made;
  }

  template <typename C>
  void add(const C& command) {
    log_.push_back({1, log_.size() + 1, raft::EntryType::command, std::make_shared<const std::string>(encode_command(command))});
  }

  void add_heartbeats(uint64_t round, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const std::string host = member(heartbeats_++);
      add(RegisterMember{{host, host + ":7942", host + ":7943", MemberStatus::alive, static_cast<int64_t>(1'700'000'000 + round), false,
                          "3.2.2", kNewestEntryType}});
    }
  }

  void add_round(uint64_t round) {
    const std::string p = parent(round);
    const std::string c = child(round);
    const std::string p_id = id(2 * round);
    const std::string c_id = id(2 * round + 1);
    const std::string schema = R"({"type":"object","properties":{"id":{"type":"string"},"amount":{"type":"number"}}})";
    add_heartbeats(round, 3);
    add(CreateTopicLinked{topic(p, round, 2 * round), schema, {}});
    for (uint64_t i = 0; i < kPartitions; ++i) {
      add(PlacePartition{p, static_cast<int32_t>(i), member(round + i), p_id});
    }
    add(CreateTopicLinked{topic(c, round, 2 * round + 1), "", ParentLink{p, p_id, "epoch", 60'000, {0, 0, 0}}});
    for (uint64_t i = 0; i < kPartitions; ++i) {
      add(PlacePartition{c, static_cast<int32_t>(i), member(round + i + 1), c_id});
    }
    add_heartbeats(round, 3);
    add(PutSchemaIf{p, 2, schema + " ", p_id});
    Topic changed = topic(p, round, 2 * round);
    changed.retention_ms = 0;
    add(UpdateTopicIf{changed, p_id});
    add(SetMoveTarget{p, 0, member(round + 3)});
    add(CompleteMove{p, 0, member(round), member(round + 3)});
    if (round >= kDetachAfter) {
      const uint64_t old = round - kDetachAfter;
      add(DetachChildIf{parent(old), child(old), id(2 * old), id(2 * old + 1)});
    }
    if (round >= kDeleteAfter) {
      const uint64_t old = round - kDeleteAfter;
      add(DeleteTopicIf{child(old), id(2 * old + 1)});
    }
  }

  std::vector<raft::Entry> log_;
  uint64_t round_ = 0;
  uint64_t heartbeats_ = 0;
};

int apply_all(io::Env& env, const std::vector<raft::Entry>& log, size_t batch_max) {
  auto opened = Fsm::open(env, {});
  NARAD_CHECK(opened.ok(), "the metastore opens");
  Fsm& fsm = **opened;
  const io::Instant began = env.now();
  const double cpu_began = process_seconds();
  for (size_t at = 0; at < log.size(); at += batch_max) {
    const auto first = log.begin() + static_cast<ptrdiff_t>(at);
    const auto last = first + static_cast<ptrdiff_t>(std::min(batch_max, log.size() - at));
    auto answers = fsm.apply({first, last});
    NARAD_CHECK(answers.ok(), "entries apply");
    for (const std::string& answer : *answers) {
      NARAD_CHECK(decode_answer(answer)->ok(), "no entry of the prepared log is refused");
    }
  }
  const double took = static_cast<double>((env.now() - began).count()) / 1e9;
  const double cpu = process_seconds() - cpu_began;
  const std::string name = "apply-batch-" + std::to_string(batch_max);
  const auto entries = static_cast<double>(log.size());
  report("metastore", name, 0, "entries", "1/s", entries / took);
  report("metastore", name, 0, "entries_per_cpu", "1/s", entries / cpu);
  report("metastore", name, 0, "size", "MiB", static_cast<double>(fsm.stats().fsm_bytes) / (1 << 20));
  fsm.close();
  return 0;
}

// Without a database: what the handlers alone cost.
void evaluate_all(const std::vector<raft::Entry>& log) {
  class Rows final : public RowSource {
   public:
    std::optional<std::string> read(const std::string&) override { return std::nullopt; }
  };
  Rows rows;
  const double began = thread_seconds();
  const Evaluation run = evaluate(rows, {}, log, kNewestEntryType);
  const double took = thread_seconds() - began;
  NARAD_CHECK(run.answers.size() == log.size(), "one answer an entry");
  report("metastore", "evaluate", 0, "entries_per_cpu", "1/s", static_cast<double>(log.size()) / took);
}

}  // namespace

void measure_apply(const MetastoreOptions& options) {
  const PreparedLog log(options.entries);
  evaluate_all(log.entries());
  for (const size_t batch : {1024, 256, 64}) {
    ScratchDirectory scratch(options.directory);
    io::real::HostSettings settings;
    settings.data_dir = scratch.path();
    settings.log.level = io::LogLevel::warn;
    settings.handle_signals = false;
    const int ended = io::real::run_host(settings, [&](io::Env& env, io::Event&) { return apply_all(env, log.entries(), batch); });
    NARAD_CHECK(ended == 0, "the log is applied");
  }
}

}  // namespace bench
