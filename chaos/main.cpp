// narad-chaos: runs the node's own code in simulated worlds under faults, by seed or by plan.

#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "chaos/host/plan_store.h"
#include "chaos/host/sweep.h"
#include "chaos/plan_draw.h"
#include "chaos/plan_text.h"
#include "chaos/run.h"

namespace {

struct UsageError {
  std::string text;
};

uint64_t parse_u64(const std::string& text, const std::string& what) {
  size_t used = 0;
  uint64_t value = 0;
  try {
    value = std::stoull(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used != text.size() || text.empty() || !std::isdigit(static_cast<unsigned char>(text[0]))) {
    throw UsageError{what + " wants a whole number, not \"" + text + "\""};
  }
  return value;
}

// "A..B", both included.
std::pair<uint64_t, uint64_t> parse_range(const std::string& text) {
  const size_t dots = text.find("..");
  if (dots == std::string::npos) {
    const uint64_t only = parse_u64(text, "--seeds");
    return {only, only};
  }
  const uint64_t first = parse_u64(text.substr(0, dots), "--seeds");
  const uint64_t last = parse_u64(text.substr(dots + 2), "--seeds");
  if (last < first) {
    throw UsageError{"--seeds: " + text + " is empty"};
  }
  return {first, last};
}

io::Defence parse_defect(const std::string& name) {
  const auto defect = io::defect_by_name(name);
  if (!defect) {
    throw UsageError{"no defect is called \"" + name + "\"; narad-chaos defects lists them"};
  }
  return *defect;
}

std::set<io::Defence> parse_defects(const std::vector<std::string>& names) {
  std::set<io::Defence> defects;
  for (const std::string& name : names) {
    defects.insert(parse_defect(name));
  }
  return defects;
}

chaos::Plan read_plan(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw UsageError{path + ": cannot be read"};
  }
  std::stringstream text;
  text << file.rdbuf();
  auto plan = chaos::parse_plan(text.str());
  if (!plan.ok()) {
    throw UsageError{path + ": " + plan.error().message};
  }
  return *plan;
}

struct RunArguments {
  std::optional<uint64_t> seed;
  std::string plan_file;
  std::string trace_file;
  std::string raft_trace_file;
  std::string log_file;
  std::vector<std::string> defects;
  std::string out = chaos::kPlanDirectory;
  std::string program;  // as it was called, for the replay line
};

int run_one(const RunArguments& arguments) {
  chaos::Plan plan;
  if (!arguments.plan_file.empty()) {
    plan = read_plan(arguments.plan_file);
    if (arguments.seed) {
      plan.seed = *arguments.seed;
    }
  } else {
    plan = chaos::draw_plan(*arguments.seed);
  }
  plan.defects.merge(parse_defects(arguments.defects));
  // A plan file that is run as it stands is its own record.
  const bool is_stored = !arguments.plan_file.empty() && !arguments.seed && arguments.defects.empty();
  chaos::RunOptions options;
  std::ofstream trace;
  std::ofstream raft_trace;
  std::ofstream log;
  const auto open = [](std::ofstream& file, const std::string& path) {
    file.open(path);
    if (!file) {
      throw UsageError{path + ": cannot be written"};
    }
  };
  if (!arguments.trace_file.empty()) {
    open(trace, arguments.trace_file);
    options.trace = [&trace](std::string_view line) { trace << line << '\n'; };
  }
  if (!arguments.raft_trace_file.empty()) {
    open(raft_trace, arguments.raft_trace_file);
    options.raft_trace = [&raft_trace](std::string_view line) { raft_trace << line << '\n'; };
  }
  if (!arguments.log_file.empty()) {
    open(log, arguments.log_file);
    options.log = [&log](std::string_view line) { log << line << '\n' << std::flush; };
  }
  const chaos::RunResult result = chaos::run_plan(plan, options);
  std::printf("%s\n", chaos::summary(result).c_str());
  if (result.violation) {
    std::printf("VIOLATION at %.6f s, event %llu\n  rule: %s\n  %s\n",
                static_cast<double>(io::to_ns(result.violation->at)) / 1e9,
                static_cast<unsigned long long>(result.violation->event), result.violation->rule.c_str(),
                result.violation->sentence.c_str());
    if (!is_stored) {
      std::printf("  %s\n", chaos::store_for_replay(arguments.out, arguments.program, plan).c_str());
    }
  }
  std::printf("hash %s\n", chaos::hash_text(result.hash).c_str());
  return result.violation ? 1 : 0;
}

int list_defects() {
  for (int i = 0; i < io::kDefenceCount; ++i) {
    const auto defect = static_cast<io::Defence>(i);
    std::printf("%-32s %s\n", std::string(io::defect_name(defect)).c_str(), std::string(io::defect_summary(defect)).c_str());
  }
  return 0;
}

int default_jobs() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

int run_program(int argc, char** argv) {
  CLI::App app{"Narad's simulator: seeds, plans, sweeps, hunts"};
  app.require_subcommand(1);
  RunArguments one;
  one.program = argv[0];
  std::string seed_text;

  CLI::App* run = app.add_subcommand("run", "one run of a seed's own plan, or of a plan file");
  run->add_option("--seed", seed_text, "the seed; with --plan it replaces the plan's");
  run->add_option("--plan", one.plan_file, "a plan file instead of the seed's own plan");
  run->add_option("--trace", one.trace_file, "write one line an event to this file");
  run->add_option("--raft-trace", one.raft_trace_file, "write one JSON object a raft event to this file");
  run->add_option("--log", one.log_file, "write the nodes' log lines to this file");
  run->add_option("--defect", one.defects, "switch a defect on");
  run->add_option("--out", one.out, "directory for the plan of a failing run")->capture_default_str();

  std::string target;
  CLI::App* replay = app.add_subcommand("replay", "run a seed or a stored plan again");
  replay->add_option("target", target, "a seed or a plan file")->required();
  replay->add_option("--trace", one.trace_file, "write one line an event to this file");
  replay->add_option("--raft-trace", one.raft_trace_file, "write one JSON object a raft event to this file");
  replay->add_option("--log", one.log_file, "write the nodes' log lines to this file");
  replay->add_option("--defect", one.defects, "switch a defect on");
  replay->add_option("--out", one.out, "directory for the plan of a failing run")->capture_default_str();

  chaos::SweepOptions sweep_options;
  sweep_options.jobs = default_jobs();
  sweep_options.program = argv[0];
  std::string seeds;
  std::string budget;
  std::vector<std::string> sweep_defects;
  CLI::App* sweep = app.add_subcommand("sweep", "many seeds; exit 0: no violation, 1: violations, 2: usage, 3: a run crashed, 4: below a floor");
  sweep->add_option("--seeds", seeds, "A..B, both included")->required();
  sweep->add_option("--jobs", sweep_options.jobs, "worker processes")->check(CLI::Range(1, 256));
  sweep->add_option("--budget", budget, "begin no seed after this real time, e.g. 60s or 10m");
  sweep->add_flag("--fail-fast", sweep_options.fail_fast, "stop at the first violation");
  sweep->add_flag("--floors", sweep_options.with_floors, "fail when too few seeds reach a probe; for 5000 seeds or more");
  sweep->add_option("--defect", sweep_defects, "switch a defect on");
  sweep->add_option("--out", sweep_options.out, "directory for the plans of failing seeds")->capture_default_str();

  CLI::App* defects = app.add_subcommand("defects", "the defects by name");
  CLI::App* settings = app.add_subcommand("settings", "what a plan file may say");
  std::string plan_seed;
  CLI::App* plan = app.add_subcommand("plan", "print the plan of a seed");
  plan->add_option("seed", plan_seed, "the seed")->required();

  std::string hunted;
  chaos::HuntOptions hunt_options;
  hunt_options.jobs = default_jobs();
  hunt_options.program = argv[0];
  CLI::App* hunt = app.add_subcommand("hunt", "how many seeds and CPU seconds until a defect is caught");
  hunt->add_option("--defect", hunted, "the defect")->required();
  hunt->add_option("--seeds", seeds, "A..B, both included")->required();
  hunt->add_option("--jobs", hunt_options.jobs, "worker processes")->check(CLI::Range(1, 256));

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return 2;
  }
  if (*run) {
    if (!seed_text.empty()) {
      one.seed = parse_u64(seed_text, "--seed");
    } else if (one.plan_file.empty()) {
      throw UsageError{"run wants --seed or --plan"};
    }
    return run_one(one);
  }
  if (*replay) {
    if (!target.empty() && target.find_first_not_of("0123456789") == std::string::npos) {
      one.seed = parse_u64(target, "replay");
    } else {
      one.plan_file = target;
    }
    return run_one(one);
  }
  if (*sweep) {
    std::tie(sweep_options.first, sweep_options.last) = parse_range(seeds);
    sweep_options.defects = parse_defects(sweep_defects);
    if (sweep_options.with_floors && !sweep_options.defects.empty()) {
      throw UsageError{"--floors: what a defect changes is not measured; leave out --floors or --defect"};
    }
    if (!budget.empty()) {
      const auto parsed = chaos::parse_duration(budget);
      if (!parsed.ok() || *parsed <= io::Duration(0)) {
        throw UsageError{"--budget: " + (parsed.ok() ? "not positive" : parsed.error().message)};
      }
      sweep_options.budget = std::chrono::ceil<std::chrono::seconds>(*parsed);
    }
    return static_cast<int>(chaos::sweep(sweep_options));
  }
  if (*defects) {
    return list_defects();
  }
  if (*settings) {
    std::printf("%s", chaos::plan_manual().c_str());
    return 0;
  }
  if (*plan) {
    std::printf("%s", chaos::print_plan(chaos::draw_plan(parse_u64(plan_seed, "plan"))).c_str());
    return 0;
  }
  hunt_options.defect = parse_defect(hunted);
  std::tie(hunt_options.first, hunt_options.last) = parse_range(seeds);
  return static_cast<int>(chaos::hunt(hunt_options));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_program(argc, argv);
  } catch (const UsageError& error) {
    std::fprintf(stderr, "narad-chaos: %s\n", error.text.c_str());
    return 2;
  }
}
