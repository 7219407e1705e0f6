#include "io/sim/machine.h"

#include <algorithm>

#include "io/sim/process.h"
#include "io/sim/world.h"

namespace io::sim {

const char* to_string(Ending ending) {
  switch (ending) {
    case Ending::running: return "running";
    case Ending::exited: return "exited";
    case Ending::killed: return "killed";
    case Ending::power_lost: return "power lost";
  }
  return "unknown";
}

Result<std::unique_ptr<Listener>> ProcessNet::listen(std::string_view address) {
  return process_.machine().world().network().listen(process_, address);
}

Result<std::unique_ptr<Stream>> ProcessNet::connect(std::string_view address, Instant deadline) {
  return process_.machine().world().network().connect(process_, address, deadline);
}

ProcessParts::ProcessParts(Incarnation& process)
    : random(mix(mix(process.machine().world().seed(), stable_hash(process.machine().name())), process.number())),
      disk(process),
      net(process),
      kv(process),
      log(process),
      store_lane(process, "store-lane", 1, process.machine().world().settings().cost.lane_cpu_low,
                 process.machine().world().settings().cost.lane_cpu_high),
      pool(process, "pool", 4, process.machine().world().settings().cost.pool_call_low,
           process.machine().world().settings().cost.pool_call_high),
      env{process.machine().clock(), random, disk, net, store_lane, pool, kv, log} {}

// ---- Incarnation ----------------------------------------------------------------------------------------------------

Incarnation::Incarnation(Machine& machine, uint64_t number)
    : machine_(machine),
      number_(number),
      trace_id_(uint64_t{machine.id() + 1} << 32 | number),
      group_(machine.world(), machine.name() + "#" + std::to_string(number), trace_id_),
      started_at_(machine.world().now()),
      schedule_draws_(machine.world().stream("schedule", trace_id_)),
      parts_(nullptr) {
  group_.owner = this;
  parts_ = std::make_unique<ProcessParts>(*this);
}

Incarnation::~Incarnation() = default;

Env& Incarnation::env() {
  NARAD_CHECK(live(), "the environment of a dead process");
  return parts_->env;
}

const std::deque<LogLine>& Incarnation::log_lines() const {
  return parts_ != nullptr ? parts_->log.lines() : last_log_lines_;
}

Task Incarnation::spawn(std::string name, std::function<void()> body) {
  return group_.runtime().spawn(group_, std::move(name), std::move(body));
}

void Incarnation::make_runnable(Fiber& fiber) {
  if (!live()) {
    return;
  }
  runnable_.push_back(&fiber);
  if (!slice_scheduled_) {
    schedule_slice();
  }
}

void Incarnation::schedule_slice() {
  slice_scheduled_ = true;
  machine_.world().schedule(std::max(loop_free_at_, machine_.frozen_until_), [this] { run_slice(); });
}

void Incarnation::run_slice() {
  slice_scheduled_ = false;
  if (!live() || runnable_.empty()) {
    return;
  }
  if (machine_.frozen()) {
    schedule_slice();
    return;
  }
  World& world = machine_.world();
  world.note(TraceKind::slice, &machine_);
  const size_t count = runnable_.size();
  const size_t drawn = count == 1 ? 0 : schedule_draws_.below(count);
  Fiber& fiber = *std::exchange(runnable_[drawn], runnable_.back());
  runnable_.pop_back();
  world.record(TraceKind::slice, this, fiber.name(), drawn, count);
  slice_scheduled_ = true;  // what this slice wakes waits until its cost has passed
  const Duration cost = world.run_for_process(*this, [&] { world.resume(fiber); });
  slice_scheduled_ = false;
  loop_free_at_ = world.now() + machine_.scaled(cost + world.settings().cost.slice);
  if (!runnable_.empty()) {
    schedule_slice();
  }
}

// ---- Machine --------------------------------------------------------------------------------------------------------

Machine::Machine(World& world, uint32_t id, MachineSettings settings)
    : world_(world),
      id_(id),
      settings_(std::move(settings)),
      clock_(world, settings_),
      volume_(std::make_unique<Volume>(*this, settings_)),
      slow_percent_(settings_.slow_percent) {
  NARAD_CHECK(!settings_.name.empty(), "a machine without a name");
}

Machine::~Machine() = default;

Incarnation& Machine::start(std::function<int(Env&)> main) {
  NARAD_CHECK(process_ == nullptr, "one process at a time on a machine");
  if (!powered_) {
    powered_ = true;
    world_.network().machine_powered_on(*this);
  }
  lives_.push_back(std::unique_ptr<Incarnation>(new Incarnation(*this, ++incarnations_)));
  process_ = lives_.back().get();
  world_.record(TraceKind::process, process_, "started");
  process_->spawn("main", [this, process = process_, main = std::move(main)] {
    const int code = main(process->env());
    if (process->live()) {
      end_process(Ending::exited, code);
    }
  });
  return *process_;
}

void Machine::kill() { end_process(Ending::killed, std::nullopt); }

void Machine::power_loss() {
  if (!powered_) {
    return;
  }
  if (process_ != nullptr) {
    end_process(Ending::power_lost, std::nullopt);
  }
  powered_ = false;
  world_.record(TraceKind::process, nullptr, settings_.name, static_cast<uint64_t>(Ending::power_lost));
  volume_->power_lost();
}

void Machine::end_process(Ending how, std::optional<int> exit_code) {
  if (process_ == nullptr) {
    return;
  }
  Incarnation& process = *std::exchange(process_, nullptr);
  process.ending_ = how;
  process.exit_code_ = exit_code;
  process.group_.deafen();
  process.runnable_.clear();
  frozen_until_ = world_.now();
  world_.record(TraceKind::process, &process, to_string(how), static_cast<uint64_t>(exit_code.value_or(0)));
  volume_->process_ended(process, [&process] { process.parts_->disk.land_in_flight(); });
  world_.network().process_ended(process, how == Ending::power_lost);
  world_.bury(process);
}

void Machine::buried(Incarnation& process) {
  if (on_end_) {
    on_end_(process);
  }
}

void Machine::freeze(Duration duration) {
  NARAD_CHECK(duration >= Duration::zero(), "a freeze of a negative length");
  frozen_until_ = std::max(frozen_until_, world_.now() + duration);
  world_.record(TraceKind::fault, process_, "freeze", static_cast<uint64_t>(duration.count()));
}

bool Machine::frozen() const { return world_.now() < frozen_until_; }

void Machine::set_slow_percent(uint32_t percent) {
  NARAD_CHECK(percent > 0, "a machine that takes no time");
  slow_percent_ = percent;
}

}  // namespace io::sim
