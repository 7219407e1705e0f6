// A simulated world: virtual time, one queue of events ordered by (time, sequence), and the fibers of every simulated
// process.
//
// A run is a pure function of (source, library versions, seed, what the caller does): nothing of the real machine
// enters it, no time, address, process id or thread id. Two worlds built and driven alike have equal hash() in every
// build.
//
// How time passes. Nothing takes time by itself: an event happens at one instant, and idle time is skipped. A fiber's
// slice happens at one instant and then holds its process's loop for its modelled cost, during which no other fiber of
// that process runs; a call on a lane likewise holds that lane. Which of a process's runnable fibers goes next is drawn
// by seed.
//
// What runs here: Machines (a host name, a disk, a clock) and on each at most one Incarnation, the life of one process
// (machine.h), on a Volume (volume.h) and the Network (network.h).
//
// Calls come from outside run_*, from world events (at) or from the hooks; never from a fiber, except where stated.
// One world belongs to one thread; several may run on several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/fiber.h"
#include "io/log.h"
#include "io/random.h"
#include "io/sim/event_queue.h"
#include "io/sim/settings.h"
#include "io/sim/trace.h"

namespace io::sim {

class Incarnation;
class Machine;
class Network;

// What just happened, for checkers: only `machine`'s state can have changed (null: an event of the world itself).
struct Occurrence {
  TraceKind kind = TraceKind::world;
  Machine* machine = nullptr;
};

class World final : public Runtime {
 public:
  explicit World(uint64_t seed, WorldSettings settings = {});
  ~World() override;  // ends every process first

  uint64_t seed() const { return seed_; }
  const WorldSettings& settings() const { return settings_; }
  // Virtual time; starts at Instant{} and never steps back.
  Instant now() const { return now_; }
  // The world's own draws (plans, workloads, schedules), apart from every node's.
  RandomStream stream(std::string_view domain, uint64_t entity = 0) const;

  // Owned by the world, for its whole life. The name is unique.
  Machine& add_machine(MachineSettings settings);
  // nullptr when there is none.
  Machine* find_machine(std::string_view name) const;
  const std::vector<std::unique_ptr<Machine>>& machines() const { return machines_; }
  Network& network() { return *network_; }

  // ---- Running: all three end early once the world has stopped ------------------------------------------------------
  void run_until(Instant end);
  void run_for(Duration duration) { run_until(now_ + duration); }
  // Runs while `going()` is true, asked after every event, at most until `end`. False when `end` came first.
  bool run_while(const std::function<bool()>& going, Instant end);

  // Runs `fn` as an event of its own. May be called from anywhere, fibers included. `when` in the past means now.
  void at(Instant when, std::function<void()> fn);
  void after(Duration delay, std::function<void()> fn) { at(now_ + delay, std::move(fn)); }

  // ---- Checking -----------------------------------------------------------------------------------------------------
  // Called after every event, outside fibers.
  void set_after_event(std::function<void(const Occurrence&)> hook) { after_event_ = std::move(hook); }
  // Records what went wrong and stops the world after the current event. May be called from anywhere.
  void report_violation(std::string what);
  const std::vector<std::string>& violations() const { return violations_; }
  // Ends run_* after the current event without a violation.
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

  // Log lines at or above `level` (default info) are kept by each process and handed to `sink`, if any.
  using LogSink = std::function<void(Incarnation&, LogLevel, std::string_view line)>;
  void set_log_sink(LogLevel level, LogSink sink);
  LogLevel log_level() const { return log_level_; }
  const LogSink& log_sink() const { return log_sink_; }

  uint64_t hash() const { return trace_.hash(); }
  uint64_t events() const { return events_; }
  void set_trace_sink(Trace::Sink sink) { trace_.set_sink(std::move(sink)); }
  // For layers above that want their own decisions in the hash and the trace.
  void record(TraceKind kind, const Incarnation* who, std::string_view what, uint64_t a = 0, uint64_t b = 0,
              uint64_t c = 0);

  // ---- For the parts of io/sim --------------------------------------------------------------------------------------
  // The world whose event runs now on this thread; nullptr outside.
  static World* current();
  // The process whose slice or lane call runs now; nullptr outside.
  Incarnation* running() const { return running_; }

  template <typename Fn>
  void schedule(Instant at, Fn fn) {
    queue_.push(at < now_ ? now_ : at, std::move(fn));
  }
  // Adds to what the current slice or lane call will have cost; outside of one it is nobody's cost.
  void charge(Duration cost) { charge_ += cost; }
  void charge_bytes(size_t bytes, int64_t byte_ps) {
    charge_ += Duration(static_cast<int64_t>(bytes) * byte_ps / 1000);
  }
  // When an effect of the running slice begins: now, and what the slice has cost so far.
  Instant effect_time() const { return now_ + charge_; }
  // Sets who an event belongs to (for after_event), from inside the event.
  void note(TraceKind kind, Machine* machine) { occurrence_ = {kind, machine}; }
  // Runs `fn` for `process` (a slice or a lane call) and returns what it cost.
  template <typename Fn>
  Duration run_for_process(Incarnation& process, Fn&& fn);
  bool tracing() const { return trace_.listened(); }
  // Unwinds a dead process once the present event has ended.
  void bury(Incarnation& process);

 protected:
  void on_runnable(Fiber& fiber) override;
  Instant loop_time(FiberGroup& group, Instant local) override;
  Instant local_now(FiberGroup& group) override;

 private:
  // One step; false when nothing is left until `end`.
  bool step(Instant end);
  void begin_process_work(Incarnation& process);
  Duration end_process_work(Incarnation& process);
  void bury_the_dead();

  uint64_t seed_;
  WorldSettings settings_;
  Instant now_{};
  EventQueue queue_;
  Trace trace_;
  uint64_t events_ = 0;
  uint64_t events_at_this_instant_ = 0;
  bool stopped_ = false;
  std::vector<std::string> violations_;
  std::function<void(const Occurrence&)> after_event_;
  Occurrence occurrence_;
  LogLevel log_level_ = LogLevel::info;
  LogSink log_sink_;

  Incarnation* running_ = nullptr;
  Duration charge_{0};
  bool in_event_ = false;
  std::vector<Incarnation*> dead_;  // deaf, not yet unwound

  std::unique_ptr<Network> network_;
  std::vector<std::unique_ptr<Machine>> machines_;
};

template <typename Fn>
Duration World::run_for_process(Incarnation& process, Fn&& fn) {
  begin_process_work(process);
  fn();
  return end_process_work(process);
}

}  // namespace io::sim

#include "io/sim/machine.h"  // IWYU pragma: export
#include "io/sim/network.h"  // IWYU pragma: export
#include "io/sim/volume.h"   // IWYU pragma: export
