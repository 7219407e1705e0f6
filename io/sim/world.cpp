#include "io/sim/world.h"

#include <algorithm>

#include "io/sim/process.h"
#include "io/sim/switches.h"

namespace io::sim {

namespace {

thread_local World* t_world = nullptr;

// Names the world of this thread while it runs or unwinds.
class Entered {
 public:
  explicit Entered(World* world) : before_(t_world) { t_world = world; }
  ~Entered() { t_world = before_; }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  World* before_;
};

void set_probes_deaf(bool deaf) {
  if (Switchboard* board = current_switchboard()) {
    board->deaf = deaf;
  }
}

}  // namespace

World::World(uint64_t seed, WorldSettings settings)
    : seed_(seed), settings_(std::move(settings)), network_(std::make_unique<Network>(*this)) {}

World::~World() {
  for (const auto& machine : machines_) {
    machine->set_on_end(nullptr);
    machine->kill();
  }
  bury_the_dead();
  queue_.clear();
}

World* World::current() { return t_world; }

RandomStream World::stream(std::string_view domain, uint64_t entity) const {
  return RandomStream(mix(mix(seed_, stable_hash(domain)), entity));
}

Machine& World::add_machine(MachineSettings settings) {
  NARAD_CHECK(find_machine(settings.name) == nullptr, "two machines of one name");
  const auto id = static_cast<uint32_t>(machines_.size());
  machines_.push_back(std::make_unique<Machine>(*this, id, std::move(settings)));
  return *machines_.back();
}

Machine* World::find_machine(std::string_view name) const {
  for (const auto& machine : machines_) {
    if (machine->name() == name) {
      return machine.get();
    }
  }
  return nullptr;
}

// ---- Running --------------------------------------------------------------------------------------------------------

void World::run_until(Instant end) {
  NARAD_CHECK(end != kNever, "a run has an end");
  Entered entered(this);
  while (!stopped_ && step(end)) {
  }
  if (!stopped_ && now_ < end) {
    now_ = end;
    events_at_this_instant_ = 0;
  }
}

bool World::run_while(const std::function<bool()>& going, Instant end) {
  NARAD_CHECK(end != kNever, "a run has an end");
  Entered entered(this);
  while (!stopped_ && going()) {
    if (!step(end)) {
      now_ = std::max(now_, end);
      events_at_this_instant_ = 0;
      return !going();
    }
  }
  return true;
}

bool World::step(Instant end) {
  NARAD_CHECK(!in_event_ && running_ == nullptr, "run_* is not called from inside an event");
  const Instant timer = next_timer();
  const Instant event = queue_.next_time();
  const Instant next = std::min(timer, event);
  if (next == kNever || next > end) {
    return false;
  }
  if (next > now_) {
    now_ = next;
    events_at_this_instant_ = 0;
  } else if (++events_at_this_instant_ > settings_.events_at_one_instant_max) {
    report_violation("more than " + std::to_string(settings_.events_at_one_instant_max) + " events at one instant");
    return false;
  }
  ++events_;
  occurrence_ = {TraceKind::timer, nullptr};
  in_event_ = true;
  if (timer <= event) {
    fire_timers(now_);
  } else {
    queue_.run_next();
  }
  in_event_ = false;
  if (!dead_.empty()) {
    bury_the_dead();
  }
  if (after_event_) {
    after_event_(occurrence_);
  }
  return true;
}

void World::at(Instant when, std::function<void()> fn) {
  schedule(when, [this, fn = std::move(fn)] {
    note(TraceKind::world, nullptr);
    record(TraceKind::world, nullptr, "");
    fn();
  });
}

void World::report_violation(std::string what) {
  violations_.push_back(std::move(what));
  stopped_ = true;
}

void World::set_log_sink(LogLevel level, LogSink sink) {
  log_level_ = level;
  log_sink_ = std::move(sink);
}

void World::record(TraceKind kind, const Incarnation* who, std::string_view what, uint64_t a, uint64_t b, uint64_t c) {
  static const std::string nobody = "-";
  trace_.record(kind, to_ns(now_), who != nullptr ? who->trace_id() : 0, who != nullptr ? who->label() : nobody, what,
                a, b, c);
}

// ---- Processes ------------------------------------------------------------------------------------------------------

void World::begin_process_work(Incarnation& process) {
  NARAD_CHECK(running_ == nullptr, "one process runs at a time");
  NARAD_CHECK(process.live(), "a dead process does not run");
  running_ = &process;
  charge_ = Duration::zero();
}

Duration World::end_process_work(Incarnation& process) {
  NARAD_CHECK(running_ == &process, "the process that ran is the one that ends");
  if (!process.live()) {
    set_probes_deaf(false);
  }
  running_ = nullptr;
  return std::exchange(charge_, Duration::zero());
}

void World::bury(Incarnation& process) {
  NARAD_CHECK(!process.live(), "only the dead are buried");
  if (running_ == &process) {
    set_probes_deaf(true);
  }
  dead_.push_back(&process);
  if (!in_event_ && running_ == nullptr && Runtime::current() == nullptr) {
    bury_the_dead();
  }
}

void World::bury_the_dead() {
  Entered entered(this);
  while (!dead_.empty()) {
    Incarnation& process = *dead_.front();
    dead_.erase(dead_.begin());
    in_event_ = true;  // what dies now does not start another burial inside this one
    set_probes_deaf(true);
    unwind(process.group());
    process.last_log_lines_ = process.parts_->log.lines();
    process.parts_.reset();
    set_probes_deaf(false);
    charge_ = Duration::zero();
    in_event_ = false;
    process.machine().buried(process);
  }
}

void World::on_runnable(Fiber& fiber) { static_cast<Incarnation*>(fiber.group().owner)->make_runnable(fiber); }

Instant World::loop_time(FiberGroup& group, Instant local) {
  return static_cast<Incarnation*>(group.owner)->machine().clock().virtual_time_of(local);
}

Instant World::local_now(FiberGroup& group) { return static_cast<Incarnation*>(group.owner)->machine().clock().now(); }

}  // namespace io::sim
