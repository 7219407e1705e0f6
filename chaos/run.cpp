#include "chaos/run.h"

#include "chaos/driver.h"
#include "sim/client.h"
#include "sim/liveness.h"
#include "sim/world.h"

namespace chaos {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kSearchStepsMax = 20'000;  // Wing-Gong, one group of names
constexpr uint64_t kSearchEvery = 8;          // seeds

sim::WorldOptions world_options(const Plan& plan) {
  const Setup& setup = plan.setup;
  sim::WorldOptions options;
  options.seed = plan.salt == 0 ? plan.seed : io::mix(plan.seed, plan.salt);
  options.defects = plan.defects;
  options.nodes = static_cast<int>(setup.nodes);
  options.initial = static_cast<int>(setup.initial);
  options.node.cluster.raft_heartbeat_interval = setup.heartbeat;
  options.node.cluster.raft_election_timeout_min = setup.election_min;
  options.node.cluster.raft_election_timeout_max = setup.election_max;
  options.node.cluster.raft_snapshot_threshold = setup.snapshot_threshold;
  options.node.cluster.raft_snapshot_interval = setup.snapshot_interval;
  options.node.cluster.raft_trailing_logs = setup.trailing;
  options.node.tuning.snapshot_chunk_bytes = static_cast<uint32_t>(setup.chunk_bytes);
  options.node.tuning.raft_tail_bytes = setup.tail_bytes;
  options.node.tuning.raft_unapplied_bytes = setup.unapplied_bytes;
  options.node.tuning.raft_applying_bytes = setup.applying_bytes;
  options.node.tuning.raft_link_queue_bytes = setup.link_queue_bytes;
  options.io.disk.orphan_late_ppm = static_cast<uint32_t>(setup.late_ppm);
  options.io.disk.orphan_never_ppm = static_cast<uint32_t>(setup.never_ppm);
  options.node.tuning.append_entries_max = static_cast<uint32_t>(setup.append_entries_max);
  // A world's disks are memory: keep a segment small unless the plan asks for more.
  options.node.tuning.raft_segment_bytes = setup.segment_bytes != 0 ? setup.segment_bytes : 128 * 1024;
  options.io.disk.sync.rows = {
      {static_cast<uint32_t>(1'000'000 - setup.sync_tail_ppm), setup.sync_low, setup.sync_high},
      {static_cast<uint32_t>(setup.sync_tail_ppm), setup.sync_high, std::max(setup.sync_high, setup.sync_tail)}};
  if (setup.scattered_ppm != 0) {
    options.machine.scattered_prefixes = {"raft/"};
    options.machine.unsynced_bit_flip_ppm = static_cast<uint32_t>(setup.bit_flip_ppm);
  }
  options.load.clients = static_cast<uint32_t>(setup.clients);
  options.load.ops_per_minute = setup.ops_per_minute;
  options.load.create = setup.create;
  options.load.patch = setup.patch;
  options.load.remove = setup.remove;
  options.load.read = setup.read;
  options.load.list = setup.list;
  options.load.race = setup.race;
  options.load.names = setup.names;
  options.load.call_bound = setup.call_bound;
  options.load.proposals_per_minute = setup.proposals_per_minute;
  options.load.schema_bytes = setup.schema_bytes;
  options.load.crowd = static_cast<sim::Crowd>(setup.crowd);
  options.is_gated = setup.gate != 0;
  return options;
}

sim::LivenessBounds bounds_of(const Setup& setup) {
  // What is still down or frozen at the heal comes back within 10 s; then a few rounds of elections, each with its own draw.
  const io::Duration election = 20 * setup.election_max + 5s;
  return {10s + election, 20s + election, 10s + election, 12s + 3 * election};
}

}  // namespace

RunResult run_plan(const Plan& plan, const RunOptions& options) {
  RunResult result;
  result.seed = plan.seed;
  sim::World world(world_options(plan));
  if (options.trace) {
    world.io().set_trace_sink(options.trace);
  }
  if (options.raft_trace) {
    world.set_raft_trace(options.raft_trace);
  }
  if (options.log) {
    world.set_log_tap(options.log);
  }
  Driver driver(world, plan);
  driver.schedule();
  world.start();
  world.client_machine().start([&world](io::Env& env) { return sim::run_clients(world, env); });
  world.io().run_until(io::Instant(plan.setup.safety));
  if (!world.violation() && !world.io().stopped()) {
    world.end_load();
    driver.heal();
    sim::check_liveness(world, bounds_of(plan.setup));
  }
  world.check_proposals();
  if (!world.violation() && !world.io().stopped()) {
    result.searches_undecided =
        sim::check_history(world, options.search.value_or(plan.seed % kSearchEvery == 0), kSearchStepsMax);
  }
  result.violation = world.violation();
  if (!result.violation && !world.io().violations().empty()) {
    result.violation = sim::Violation{"the world stays within its bounds", world.io().violations().front(), world.now(),
                                      world.io().events()};
  }
  result.hash = world.io().hash();
  result.events = world.io().events();
  result.simulated_ms = static_cast<uint64_t>(io::to_ns(world.now()) / 1'000'000);
  result.calls = world.counts().calls;
  result.calls_ok = world.counts().calls_ok;
  result.calls_unknown = world.counts().calls_unknown;
  result.faults = driver.struck();
  result.starts = world.counts().starts;
  result.elections = world.counts().elections;
  result.entries = world.book().last_index();
  result.probes = world.probes();
  return result;
}

std::string hash_text(uint64_t hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (int i = 0; i < 16; ++i) {
    text[static_cast<size_t>(15 - i)] = kDigits[(hash >> (4 * i)) & 15];
  }
  return text;
}

std::string summary(const RunResult& result) {
  return "seed " + std::to_string(result.seed) + ": " + std::to_string(result.simulated_ms / 1'000) + " simulated s, " +
         std::to_string(result.events) + " events, " + std::to_string(result.calls) + " calls (" +
         std::to_string(result.calls_ok) + " ok, " + std::to_string(result.calls_unknown) + " unknown), " +
         std::to_string(result.faults) + " faults, " + std::to_string(result.starts) + " starts, " +
         std::to_string(result.elections) + " elections, " + std::to_string(result.entries) + " entries";
}

}  // namespace chaos
