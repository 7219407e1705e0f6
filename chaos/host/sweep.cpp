#include "chaos/host/sweep.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <vector>

#include "chaos/floors.h"
#include "chaos/host/plan_store.h"
#include "chaos/host/worker_pool.h"
#include "chaos/plan_draw.h"
#include "chaos/result_text.h"

namespace chaos {
namespace {

using Clock = std::chrono::steady_clock;

// Real time after which a run counts as hanging: it is stopped and reported with its seed. A run takes a fraction of a second
// in a release build, some seconds under sanitizers.
constexpr std::chrono::seconds kSeedLimit{120};

Plan plan_of(uint64_t seed, const std::set<io::Defence>& defects) {
  Plan plan = draw_plan(seed);
  plan.defects = defects;
  return plan;
}

// A worker's answer: the result, and behind it "fresh <what the fresh process printed>" when it was run again.
std::string run_seed(const std::string& request, const SweepOptions& options) {
  const uint64_t seed = std::stoull(request);
  std::string answer = print_result(run_plan(plan_of(seed, options.defects)));
  if (options.fresh_every != 0 && seed % options.fresh_every == 0) {
    std::vector<std::string> arguments{"run", "--seed", std::to_string(seed), "--out", options.out};
    for (const io::Defence defect : options.defects) {
      arguments.insert(arguments.end(), {"--defect", std::string(io::defect_name(defect))});
    }
    const auto printed = run_fresh(arguments);
    const size_t at = printed ? printed->rfind("\nhash ") : std::string::npos;  // its last line
    answer += "fresh " + (at == std::string::npos ? "none" : printed->substr(at + 6, 16)) + "\n";
  }
  return answer;
}

template <typename T>
T median(std::vector<T> values) {
  if (values.empty()) {
    return T{};
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Sweep {
 public:
  explicit Sweep(const SweepOptions& options) : options_(options), next_(options.first), began_(Clock::now()) {}

  Verdict run() {
    const PoolSettings pool{options_.jobs, kSeedLimit};
    run_pieces(
        pool, [this](const std::string& request) { return run_seed(request, options_); }, [this] { return next(); },
        [this](const PieceResult& result) { return take(result); });
    report();
    const bool is_below_floor = options_.with_floors && !reaches_floors();
    return !failures_.empty()         ? Verdict::violation
           : !harness_faults_.empty() ? Verdict::harness_fault
           : is_below_floor           ? Verdict::below_floor
                                      : Verdict::none;
  }

 private:
  std::optional<Piece> next() {
    const bool is_late = options_.budget && Clock::now() - began_ > *options_.budget;
    if (next_ > options_.last || is_late) {
      return std::nullopt;
    }
    Piece piece;
    piece.number = next_++;
    piece.request = std::to_string(piece.number);
    return piece;
  }

  bool take(const PieceResult& piece) {
    std::string text = piece.response;
    const size_t fresh = text.rfind("fresh ");
    std::string fresh_hash;
    if (fresh != std::string::npos && (fresh == 0 || text[fresh - 1] == '\n')) {
      fresh_hash = text.substr(fresh + 6, text.find('\n', fresh) - fresh - 6);
      text.resize(fresh);
    }
    const auto result = parse_result(text);
    if (!piece.fault.empty() || !result) {
      return harness_fault(piece.piece.number, piece.fault.empty() ? "unreadable answer of a worker" : piece.fault);
    }
    ++done_;
    cpu_us_ += piece.cpu_us;
    simulated_ms_.push_back(result->simulated_ms);
    calls_.push_back(result->calls);
    faults_.push_back(result->faults);
    undecided_ += result->searches_undecided;
    for (const auto& [name, count] : result->probes) {
      ++probes_[name];
    }
    bool goes_on = true;
    if (!fresh_hash.empty()) {
      ++reruns_;
      if (fresh_hash != hash_text(result->hash)) {
        goes_on = harness_fault(result->seed, "hash " + hash_text(result->hash) + " here, " + fresh_hash + " in a fresh process");
      }
    }
    if (result->violation) {
      goes_on = fail(*result) && goes_on;
    }
    progress();
    return goes_on;
  }

  bool harness_fault(uint64_t seed, const std::string& what) {
    harness_faults_.emplace_back(seed, what);
    std::printf("HARNESS FAULT seed %llu: %s\n  %s\n", static_cast<unsigned long long>(seed), what.c_str(),
                replay_line(seed).c_str());
    std::fflush(stdout);
    return !options_.fail_fast;
  }

  bool fail(const RunResult& result) {
    failures_[result.violation->signature()].push_back(result.seed);
    std::printf("VIOLATION seed %llu at %.3f s, event %llu\n  rule: %s\n  %s\n  %s\n",
                static_cast<unsigned long long>(result.seed), static_cast<double>(io::to_ns(result.violation->at)) / 1e9,
                static_cast<unsigned long long>(result.violation->event), result.violation->rule.c_str(),
                result.violation->sentence.c_str(), replay_line(result.seed).c_str());
    std::fflush(stdout);
    return !options_.fail_fast;
  }

  std::string replay_line(uint64_t seed) const {
    return store_for_replay(options_.out, options_.program, plan_of(seed, options_.defects));
  }

  void progress() {
    if (Clock::now() - told_ > std::chrono::seconds(10)) {
      told_ = Clock::now();
      std::printf("%llu of %llu seeds, %.1f seeds/s, %.1f simulated hours, %zu violations\n",
                  static_cast<unsigned long long>(done_), static_cast<unsigned long long>(options_.last - options_.first + 1),
                  static_cast<double>(done_) / elapsed(), hours(), count_failures());
      std::fflush(stdout);
    }
  }

  double elapsed() const { return std::max(1e-3, std::chrono::duration<double>(Clock::now() - began_).count()); }
  double hours() const {
    uint64_t sum = 0;
    for (const uint64_t ms : simulated_ms_) {
      sum += ms;
    }
    return static_cast<double>(sum) / 3.6e6;
  }
  size_t count_failures() const {
    size_t count = 0;
    for (const auto& [signature, seeds] : failures_) {
      count += seeds.size();
    }
    return count;
  }

  void report() {
    std::printf("%llu seeds in %.1f s (%.2f seeds/s, %.1f CPU s), %.2f simulated hours, %.0f simulated s per CPU s\n",
                static_cast<unsigned long long>(done_), elapsed(), static_cast<double>(done_) / elapsed(),
                static_cast<double>(cpu_us_) / 1e6, hours(),
                hours() * 3600 / std::max(1e-6, static_cast<double>(cpu_us_) / 1e6));
    std::printf("median run: %.1f simulated s, %llu client calls, %llu faults\n",
                static_cast<double>(median(simulated_ms_)) / 1e3, static_cast<unsigned long long>(median(calls_)),
                static_cast<unsigned long long>(median(faults_)));
    std::printf("%llu seeds run again in a fresh process; %llu searches undecided\n",
                static_cast<unsigned long long>(reruns_), static_cast<unsigned long long>(undecided_));
    std::printf("probes, by seeds that reached them:\n");
    for (const auto& [name, seeds] : probes_) {
      std::printf("  %6llu  %s\n", static_cast<unsigned long long>(seeds), name.c_str());
    }
    for (const auto& [signature, seeds] : failures_) {
      std::printf("violated by %zu seeds (first %llu): %s\n", seeds.size(),
                  static_cast<unsigned long long>(*std::min_element(seeds.begin(), seeds.end())), signature.c_str());
    }
    for (const auto& [seed, what] : harness_faults_) {
      std::printf("harness fault at seed %llu\n", static_cast<unsigned long long>(seed));
    }
    std::printf("%zu violations, %zu harness faults\n", count_failures(), harness_faults_.size());
  }

  bool reaches_floors() const {
    const std::vector<Floor> below = below_floor(probes_);
    for (const Floor& floor : below) {
      const auto reached = probes_.find(std::string(floor.probe));
      std::printf("BELOW ITS FLOOR: %llu of %llu seeds reached %s\n",
                  static_cast<unsigned long long>(reached == probes_.end() ? 0 : reached->second),
                  static_cast<unsigned long long>(floor.seeds), std::string(floor.probe).c_str());
    }
    std::printf("%zu of %zu probes below their floors\n", below.size(), floors().size());
    return below.empty();
  }

  const SweepOptions& options_;
  uint64_t next_;
  Clock::time_point began_;
  Clock::time_point told_ = Clock::now();
  uint64_t done_ = 0;
  uint64_t cpu_us_ = 0;
  uint64_t reruns_ = 0;
  uint64_t undecided_ = 0;
  std::vector<uint64_t> simulated_ms_;
  std::vector<uint64_t> calls_;
  std::vector<uint64_t> faults_;
  std::map<std::string, uint64_t> probes_;
  std::map<std::string, std::vector<uint64_t>> failures_;
  std::vector<std::pair<uint64_t, std::string>> harness_faults_;
};

}  // namespace

Verdict sweep(const SweepOptions& options) { return Sweep(options).run(); }

Verdict hunt(const HuntOptions& options) {
  uint64_t next = options.first;
  uint64_t tried = 0;
  uint64_t crashed = 0;
  uint64_t cpu_us = 0;
  std::optional<RunResult> caught;
  run_pieces(
      PoolSettings{options.jobs, kSeedLimit},
      [&options](const std::string& request) {
        const uint64_t seed = std::stoull(request);
        RunResult with_defect = run_plan(plan_of(seed, {options.defect}));
        if (with_defect.violation && run_plan(plan_of(seed, {})).violation) {
          with_defect.violation.reset();  // it fails without the defect too: nothing is caught
        }
        return print_result(with_defect);
      },
      [&]() -> std::optional<Piece> {
        if (next > options.last) {
          return std::nullopt;
        }
        Piece piece{next, std::to_string(next)};
        ++next;
        return piece;
      },
      [&](const PieceResult& piece) {
        ++tried;
        cpu_us += piece.cpu_us;
        const auto result = parse_result(piece.response);
        if (!result) {
          ++crashed;
          return true;
        }
        if (result->violation) {
          caught = result;
        }
        return !caught;
      });
  const std::string name(io::defect_name(options.defect));
  const double seconds = static_cast<double>(cpu_us) / 1e6;
  if (!caught) {
    std::printf("%s: NOT CAUGHT in %llu seeds, %.1f CPU s (%llu runs crashed, which does not count)\n", name.c_str(),
                static_cast<unsigned long long>(tried), seconds, static_cast<unsigned long long>(crashed));
    return Verdict::violation;
  }
  std::printf("%s: caught after %llu seeds, %.1f CPU s, by seed %llu\n  rule: %s\n  %s\n", name.c_str(),
              static_cast<unsigned long long>(tried), seconds, static_cast<unsigned long long>(caught->seed),
              caught->violation->rule.c_str(), caught->violation->sentence.c_str());
  std::printf("  replay: %s replay %llu --defect %s\n", options.program.c_str(),
              static_cast<unsigned long long>(caught->seed), name.c_str());
  if (crashed > 0) {
    std::printf("  (%llu runs crashed before, which does not count)\n", static_cast<unsigned long long>(crashed));
  }
  return Verdict::none;
}

}  // namespace chaos
