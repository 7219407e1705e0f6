// A machine of the world: a host name, a volume, a clock, and at most one process at a time. Each life of the process
// is an Incarnation with an Env of its own.
//
// How a life ends:
//  - exited: its main returned. The kernel closes its connections.
//  - killed: everything it wrote is still there (page cache), file operations in flight land or do not by draw, its
//    connections are closed or reset as the kernel of a killed process does.
//  - power lost: unsynced bytes and names are lost as volume.h says, its connections stay half open at the far side,
//    and the machine answers nothing until a process is started on it again.
// Whatever the end, the incarnation is deaf from that instant: its IO, spawns, logs, probes, draws and wakes do
// nothing. Its fibers are unwound as soon as no slice or lane call is in progress; an end that strikes inside a call of
// the same process (a fault of its disk) thus lets that call fail out first, with the disk as it was at the fault.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/env.h"
#include "io/sim/clock.h"
#include "io/sim/process_log.h"
#include "io/sim/settings.h"

namespace io::sim {

class Machine;
class Network;
class Volume;
class World;
struct ProcessParts;  // what an Env refers to (process.h)

enum class Ending { running, exited, killed, power_lost };

const char* to_string(Ending ending);

class Incarnation {
 public:
  ~Incarnation();
  Incarnation(const Incarnation&) = delete;
  Incarnation& operator=(const Incarnation&) = delete;

  Machine& machine() { return machine_; }
  const Machine& machine() const { return machine_; }
  uint64_t number() const { return number_; }                 // 1, 2, ... on its machine
  const std::string& label() const { return group_.name(); }  // "n1#2"
  Ending ending() const { return ending_; }
  bool live() const { return ending_ == Ending::running; }
  // What main returned, once exited.
  std::optional<int> exit_code() const { return exit_code_; }
  Instant started_at() const { return started_at_; }
  // Valid while live; for world code that acts in the process's name (a control fiber).
  Env& env();
  // The last lines of its log, oldest first; still there when it has ended.
  const std::deque<LogLine>& log_lines() const;
  // A further fiber of this process, beside its main ("control").
  Task spawn(std::string name, std::function<void()> body);

  // ---- For the parts of io/sim --------------------------------------------------------------------------------------
  FiberGroup& group() { return group_; }
  ProcessParts& parts() { return *parts_; }
  // Machine and incarnation in one number, for the trace and as an entity of draws.
  uint64_t trace_id() const { return trace_id_; }

 private:
  friend class Machine;
  friend class World;
  Incarnation(Machine& machine, uint64_t number);
  void make_runnable(Fiber& fiber);
  void schedule_slice();
  void run_slice();

  Machine& machine_;
  uint64_t number_;
  uint64_t trace_id_;
  FiberGroup group_;
  Ending ending_ = Ending::running;
  std::optional<int> exit_code_;
  Instant started_at_{};
  std::vector<Fiber*> runnable_;
  bool slice_scheduled_ = false;
  Instant loop_free_at_{};
  RandomStream schedule_draws_;
  std::unique_ptr<ProcessParts> parts_;  // gone once buried
  std::deque<LogLine> last_log_lines_;
};

class Machine {
 public:
  Machine(World& world, uint32_t id, MachineSettings settings);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  World& world() { return world_; }
  const std::string& name() const { return settings_.name; }
  uint32_t id() const { return id_; }  // 0, 1, ... in the order of making
  const MachineSettings& settings() const { return settings_; }
  Volume& volume() { return *volume_; }
  MachineClock& clock() { return clock_; }

  // Starts a process whose first fiber ("main") runs `main`; its return is the exit code. Powers the machine on when it
  // was off. The Env is valid until the process has ended. No process may be live.
  Incarnation& start(std::function<int(Env&)> main);
  // The live process; nullptr when there is none.
  Incarnation* process() const { return process_; }
  uint64_t incarnations() const { return incarnations_; }
  // Called when a process has ended, whichever way, as soon as it is unwound. For supervisors: start() may be called in
  // it.
  void set_on_end(std::function<void(Incarnation&)> hook) { on_end_ = std::move(hook); }

  // Ends the process; nothing when none is live. May be called from anywhere.
  void kill();
  // Ends the process, if one is live, and loses what was not durable. The machine stays off until start().
  void power_loss();
  bool powered() const { return powered_; }

  // The process does not run for `duration` from now (SIGSTOP, a paused virtual machine); the world goes on, and its
  // clocks.
  void freeze(Duration duration);
  bool frozen() const;
  // Its costs, in percent of the world's; > 0.
  void set_slow_percent(uint32_t percent);

  // ---- For the parts of io/sim --------------------------------------------------------------------------------------
  Duration scaled(Duration cost) const { return slow_percent_ == 100 ? cost : cost * slow_percent_ / 100; }
  Instant frozen_until() const { return frozen_until_; }

 private:
  friend class Incarnation;
  friend class World;
  void end_process(Ending how, std::optional<int> exit_code);
  void buried(Incarnation& process);

  World& world_;
  uint32_t id_;
  MachineSettings settings_;
  MachineClock clock_;
  std::unique_ptr<Volume> volume_;
  std::vector<std::unique_ptr<Incarnation>> lives_;  // all of them; ended ones are empty shells
  Incarnation* process_ = nullptr;
  uint64_t incarnations_ = 0;
  bool powered_ = true;
  uint32_t slow_percent_ = 100;
  Instant frozen_until_{};
  std::function<void(Incarnation&)> on_end_;
};

}  // namespace io::sim
