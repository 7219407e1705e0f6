// The core alone. Every server's core runs on this one thread and appends every entry; disk and state machine are done at once,
// messages are moved from core to core. Payloads are made before the clock starts and shared, as they are between a
// proposal and the messages that carry it.
#include "raft/core.h"

#include <time.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/raft/parts.h"
#include "bench/support/report.h"

namespace bench {

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kPayloadBytes = 256;
// Entries of one group of cores: enough that the log grows through many blocks, few enough to stay in memory.
constexpr std::uint64_t kGroupEntries = 1u << 17;

// Of this thread alone: what else runs on the machine does not count.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

class Group {
 public:
  explicit Group(int servers) {
    raft::Configuration configuration;
    configuration.cluster = raft::ClusterId{7, 7};
    for (int i = 0; i < servers; ++i) {
      const std::string id = "n" + std::to_string(i);
      configuration.servers.push_back(raft::Server{id, id + ":1", true, raft::StoreId{1, static_cast<std::uint64_t>(i) + 1}});
    }
    configuration.normalise();
    for (int i = 0; i < servers; ++i) {
      const raft::Server& self = configuration.servers[static_cast<std::size_t>(i)];
      raft::InitialState initial;
      initial.cluster = configuration.cluster;
      initial.base_configuration = configuration;
      raft::Identity identity{self.id, self.store, static_cast<std::uint64_t>(i) + 1, configuration.cluster};
      cores_.push_back(std::make_unique<raft::Core>(std::move(identity), raft::Settings(), std::move(initial),
                                                    io::RandomStream(static_cast<std::uint64_t>(i)), now_));
    }
    inboxes_.resize(cores_.size());
    elect();
  }

  // One batch from the proposal until every server has applied it.
  void commit(std::span<const raft::Payload> payloads) {
    if (leader().propose(payloads).refusal != raft::Refusal::none) throw std::runtime_error("a proposal was refused");
    run();
    if (leader().applied_index() != leader().last_index()) throw std::runtime_error("a batch did not commit");
  }
  raft::Index applied_index(std::size_t server) const { return cores_[server]->applied_index(); }

 private:
  raft::Core& leader() { return *cores_[0]; }

  void elect() {
    now_ = leader().next_deadline();
    leader().tick(now_);
    run();
    if (!leader().has_committed_in_term()) throw std::runtime_error("no leader");
  }
  void run() {
    bool has_moved = true;
    while (has_moved) {
      has_moved = false;
      for (std::size_t i = 0; i < cores_.size(); ++i) has_moved = serve(i) || has_moved;
    }
  }
  bool serve(std::size_t server) {
    raft::Core& core = *cores_[server];
    bool has_moved = !inboxes_[server].empty();
    received_.swap(inboxes_[server]);
    for (raft::Message& message : received_) core.step(std::move(message), now_);
    received_.clear();
    while (core.has_ready()) {
      has_moved = true;
      core.ready(ready_);
      send(ready_.messages);
      if (ready_.hard_state) core.hard_state_persisted(*ready_.hard_state);
      if (!ready_.entries.empty()) core.persisted(ready_.append_term, ready_.entries.back().index);
      send(ready_.messages_after_persist);
      if (!ready_.committed.empty()) core.applied(ready_.committed.back().index);
    }
    return has_moved;
  }
  void send(std::vector<raft::Message>& messages) {
    for (raft::Message& message : messages) {
      inboxes_[static_cast<std::size_t>(message.to[1] - '0')].push_back(std::move(message));
    }
  }

  io::Instant now_{std::chrono::seconds(1)};
  std::vector<std::unique_ptr<raft::Core>> cores_;
  std::vector<std::vector<raft::Message>> inboxes_;
  std::vector<raft::Message> received_;
  raft::Ready ready_;
};

void measure(int servers, std::size_t batch, double seconds) {
  std::vector<raft::Payload> payloads;
  for (std::size_t i = 0; i < 1024; ++i) {
    payloads.push_back(std::make_shared<const std::string>(kPayloadBytes, static_cast<char>('a' + i % 26)));
  }
  double spent = 0;
  double spent_cpu = 0;
  std::uint64_t entries = 0;
  while (spent < seconds) {
    Group group(servers);
    const raft::Index before = group.applied_index(0);
    const auto begin = SteadyClock::now();
    const double begin_cpu = cpu_seconds();
    for (std::uint64_t done = 0; done < kGroupEntries; done += batch) {
      group.commit(std::span(payloads).subspan(done % (payloads.size() - batch + 1) / batch * batch, batch));
    }
    spent += std::chrono::duration<double>(SteadyClock::now() - begin).count();
    spent_cpu += cpu_seconds() - begin_cpu;
    entries += group.applied_index(0) - before;
    for (std::size_t i = 1; i < static_cast<std::size_t>(servers); ++i) {
      if (group.applied_index(i) != group.applied_index(0)) throw std::runtime_error("a follower has not applied everything");
    }
  }
  const std::string name = "core_" + std::to_string(servers) + "_peers_batch_" + std::to_string(batch);
  report("raft", name, 0, "entries", "1/s", static_cast<double>(entries) / spent);
  report("raft", name, 0, "entries_of_a_whole_core", "1/s", static_cast<double>(entries) / spent_cpu);
}

}  // namespace

void measure_core(const RaftOptions& options) {
  for (const int servers : {3, 5}) {
    for (const std::size_t batch : {std::size_t{1}, std::size_t{8}, std::size_t{64}}) measure(servers, batch, options.seconds);
  }
}

}  // namespace bench
