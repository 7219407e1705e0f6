#include "io/sim/lane.h"

#include "io/sim/world.h"

namespace io::sim {

Lane::Lane(Incarnation& process, std::string name, size_t width, Duration cpu_low, Duration cpu_high)
    : process_(process),
      name_(std::move(name)),
      width_(width),
      cpu_low_(cpu_low),
      cpu_high_(cpu_high),
      draws_(process.machine().world().stream(name_, process.trace_id())) {
  NARAD_CHECK(width > 0, "a lane without a thread");
}

Completion<void> Lane::start(std::function<void()> work) {
  Completion<void> done;
  if (process_.live()) {
    process_.machine().world().charge(process_.machine().world().settings().cost.lane_call);
    waiting_.push_back({std::move(work), done});
    begin_next();
  }
  return done;
}

void Lane::begin_next() {
  if (busy_ + scheduled_ >= width_ || scheduled_ >= waiting_.size()) {
    return;
  }
  ++scheduled_;
  World& world = process_.machine().world();
  world.schedule(world.effect_time(), [this, process = &process_] {
    if (process->live()) {
      run();
    }
  });
}

void Lane::run() {
  Machine& machine = process_.machine();
  World& world = machine.world();
  if (machine.frozen()) {
    world.schedule(machine.frozen_until(), [this, process = &process_] {
      if (process->live()) {
        run();
      }
    });
    return;
  }
  world.note(TraceKind::lane, &machine);
  --scheduled_;
  ++busy_;
  Call call = std::move(waiting_.front());
  waiting_.pop_front();
  // What an earlier life left behind (a database closed while its disk stalled) says nothing about this call.
  (void)machine.volume().take_lane_hang();
  const Duration held = world.run_for_process(process_, [&call] {
    call.work();
    call.work = nullptr;
  });
  // A slow machine computes slowly; its disk takes the time that it takes.
  const Duration cost = held + machine.scaled(draws_.between(cpu_low_, cpu_high_));
  world.record(TraceKind::lane, &process_, name_, static_cast<uint64_t>(cost.count()));
  if (!process_.live()) {
    return;
  }
  auto end = [this, process = &process_, done = call.done, cost] {
    process->machine().world().schedule(process->machine().world().now() + cost, [this, process, done] {
      if (process->live()) {
        answer(done);
      }
    });
  };
  if (machine.volume().take_lane_hang()) {
    machine.volume().when_released(end);
  } else {
    end();
  }
}

void Lane::answer(const Completion<void>& done) {
  process_.machine().world().note(TraceKind::lane, &process_.machine());
  --busy_;
  done.complete({});
  begin_next();
}

}  // namespace io::sim
