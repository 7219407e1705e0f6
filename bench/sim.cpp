// bench/sim: how fast the simulator runs the standard world (chaos/plans/standard.plan), over several seeds, on one core.

#include <time.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "bench/support/report.h"
#include "chaos/plan_text.h"
#include "chaos/run.h"

namespace {

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Speed of the simulator on the standard world; one JSON line a figure"};
  std::string path = "chaos/plans/standard.plan";
  uint64_t runs = 20;
  app.add_option("--plan", path, "the plan file")->capture_default_str();
  app.add_option("--runs", runs, "runs, each with a seed of its own")->capture_default_str()->check(CLI::Range(1, 100'000));
  CLI11_PARSE(app, argc, argv);

  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  auto plan = chaos::parse_plan(text.str());
  if (!file || !plan.ok()) {
    std::fprintf(stderr, "bench/sim: %s: %s\n", path.c_str(), file ? plan.error().message.c_str() : "cannot be read");
    return 2;
  }
  uint64_t simulated_ms = 0;
  uint64_t events = 0;
  uint64_t calls = 0;
  const double cpu_before = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  const double wall_before = seconds_of(CLOCK_MONOTONIC);
  for (uint64_t run = 1; run <= runs; ++run) {
    plan->seed = run;
    const chaos::RunResult result = chaos::run_plan(*plan);
    simulated_ms += result.simulated_ms;
    events += result.events;
    calls += result.calls;
    if (result.violation) {
      std::fprintf(stderr, "bench/sim: seed %llu: %s: %s\n", static_cast<unsigned long long>(run),
                   result.violation->rule.c_str(), result.violation->sentence.c_str());
      return 1;
    }
  }
  const double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu_before;
  const double wall = seconds_of(CLOCK_MONOTONIC) - wall_before;
  bench::report("sim", "standard", 0, "simulated_seconds_per_cpu_second", "s/s", static_cast<double>(simulated_ms) / 1e3 / cpu);
  bench::report("sim", "standard", 0, "events_per_cpu_second", "1/s", static_cast<double>(events) / cpu);
  bench::report("sim", "standard", 0, "calls_per_simulated_second", "1/s",
                static_cast<double>(calls) / (static_cast<double>(simulated_ms) / 1e3));
  bench::report("sim", "standard", 0, "seeds_per_minute", "1/min", static_cast<double>(runs) / wall * 60);
  return 0;
}
