// Upgrade gating over random histories of a cluster of mixed releases.
//
//   - An entry type that is not of every release is proposed only when every server and member on record had reported it at that moment
//     (the leader counted by its own build), and is proposed as soon as they all have.
//   - The reason that a type is held back names the first that holds it back, and its build.
//   - No release ever meets an entry, an image or a database that it would pass over or stop at, in any history that keeps to the upgrade
//     rules; in any other, 3.1 and later stop and never pass over it, and the history is recognised as past the boundary.
//   - Once everybody reports a type, it is used within one heartbeat, and all replicas are equal.
//
// The world and the book it is held against: gating_world.h, gating_oracle.h. Sequences: kSequences in an ordinary run; another number
// with rapidcheck's own setting:
//
//   RC_PARAMS="seed=2 max_success=50000" build/release/narad_property --gtest_filter='UpgradeGating.*'

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/detail/TestListenerAdapter.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <sstream>
#include <string>
#include <vector>

#include "io/sim/switches.h"
#include "tests/property/gating_world.h"

namespace {

using tests::gating::kNodes;
using tests::gating::Sequence;
using tests::gating::Step;
using tests::gating::World;

constexpr int kSequences = 10'000;
constexpr int kRapidcheckDefault = 100;
constexpr int kStepsMax = 320;

rc::Gen<Step> any_step() {
  using What = Step::What;
  return rc::gen::build<Step>(
      rc::gen::set(&Step::what, rc::gen::weightedElement<What>({{14, What::heartbeat},
                                                                {10, What::propose},
                                                                {8, What::restart},
                                                                {8, What::join},
                                                                {4, What::apply},
                                                                {4, What::stop},
                                                                {3, What::lead},
                                                                {3, What::mark_dead},
                                                                {2, What::remove},
                                                                {1, What::forget},
                                                                {2, What::wipe}})),
      rc::gen::set(&Step::node, rc::gen::inRange<uint32_t>(0, kNodes)), rc::gen::set(&Step::bits, rc::gen::inRange<uint32_t>(0, 1u << 24)));
}

rc::Gen<Sequence> any_sequence(bool is_supported) {
  return rc::gen::build<Sequence>(
      rc::gen::set(&Sequence::voters, rc::gen::element<uint32_t>(1, 3)),
      rc::gen::set(&Sequence::release, rc::gen::weightedElement<uint32_t>({{6, 0}, {3, 1}, {2, 2}, {1, 3}})),
      rc::gen::set(&Sequence::is_supported, rc::gen::just(is_supported)),
      rc::gen::set(&Sequence::steps, rc::gen::resize(kStepsMax, rc::gen::container<std::vector<Step>>(any_step()))));
}

// Which of a world's findings makes a sequence fail.
using Finding = const std::string& (World::*)() const;

World run(const Sequence& sequence, Finding finding) {
  World world(sequence.voters, sequence.release, sequence.is_supported);
  for (const Step& step : sequence.steps) {
    world.take(step);
    if (!(world.*finding)().empty()) {
      return world;
    }
  }
  world.finish();
  return world;
}

// What a number of sequences came to.
struct Tally {
  World::Seen all;
  std::vector<uint64_t> steps;
  uint64_t unsupported = 0;

  void add(const World::Seen& seen) {
    steps.push_back(seen.steps);
    all.uses += seen.uses;
    all.held_by_dead += seen.held_by_dead;
    all.held_by_unrecorded += seen.held_by_unrecorded;
    all.held_by_leader += seen.held_by_leader;
    all.held_by_member += seen.held_by_member;
    all.joins += seen.joins;
    all.older_joiners += seen.older_joiners;
    all.rollbacks += seen.rollbacks;
    all.unsupported += seen.unsupported;
    all.stops += seen.stops;
    all.skips += seen.skips;
    all.lost += seen.lost;
    all.leaders += seen.leaders;
  }
  uint64_t median_steps() {
    std::nth_element(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2), steps.end());
    return steps[steps.size() / 2];
  }
};

template <typename... Listener>
rc::detail::TestResult check(const rc::detail::TestParams& params, bool is_supported, Finding finding, Tally& tally, Listener&... listener) {
  return rc::detail::checkTestable(
      [&] {
        const Sequence sequence = *any_sequence(is_supported);
        const World world = run(sequence, finding);
        tally.add(world.seen());
        if (!(world.*finding)().empty()) {
          RC_FAIL((world.*finding)());
        }
      },
      rc::detail::TestMetadata{"UpgradeGating", "UpgradeGating"}, params, listener...);
}

rc::detail::TestParams ordinary() {
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  if (params.maxSuccess == kRapidcheckDefault) {
    params.maxSuccess = kSequences;
  }
  return params;
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void run_and_print(bool is_supported, Tally& tally) {
  const rc::detail::TestParams params = ordinary();
  const double begun = cpu_seconds();
  const rc::detail::TestResult result = check(params, is_supported, &World::violation, tally);
  const double took = cpu_seconds() - begun;
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  ASSERT_TRUE(result.is<rc::detail::SuccessResult>()) << text.str();
  std::printf("%d sequences in %.1f CPU seconds, median of %llu steps: %llu new types used, held back by dead %llu, unrecorded %llu, leader "
              "%llu, other %llu; %llu joins, %llu older joiners refused, %llu rollbacks, %llu sequences past the boundary, %llu stops, %llu "
              "skips, %llu entries lost, %llu leaders\n",
              params.maxSuccess, took, static_cast<unsigned long long>(tally.median_steps()), static_cast<unsigned long long>(tally.all.uses),
              static_cast<unsigned long long>(tally.all.held_by_dead), static_cast<unsigned long long>(tally.all.held_by_unrecorded),
              static_cast<unsigned long long>(tally.all.held_by_leader), static_cast<unsigned long long>(tally.all.held_by_member),
              static_cast<unsigned long long>(tally.all.joins), static_cast<unsigned long long>(tally.all.older_joiners),
              static_cast<unsigned long long>(tally.all.rollbacks), static_cast<unsigned long long>(tally.all.unsupported),
              static_cast<unsigned long long>(tally.all.stops), static_cast<unsigned long long>(tally.all.skips),
              static_cast<unsigned long long>(tally.all.lost), static_cast<unsigned long long>(tally.all.leaders));
}

TEST(UpgradeGating, NoReleaseMeetsWhatItDoesNotKnowInASupportedHistory) {
  Tally tally;
  run_and_print(true, tally);
  if (HasFatalFailure()) {
    return;
  }
  // Else it would say little.
  EXPECT_GE(tally.median_steps(), 40u);
  for (const uint64_t happened : {tally.all.uses, tally.all.held_by_dead, tally.all.held_by_unrecorded, tally.all.held_by_leader,
                                  tally.all.held_by_member, tally.all.joins, tally.all.older_joiners, tally.all.rollbacks, tally.all.lost}) {
    EXPECT_GT(happened, 50u);
  }
}

TEST(UpgradeGating, PastTheBoundaryLaterReleasesStopAndTheHistoryIsRecognised) {
  Tally tally;
  run_and_print(false, tally);
  if (HasFatalFailure()) {
    return;
  }
  EXPECT_GT(tally.all.unsupported, 50u);
  EXPECT_GT(tally.all.stops, 50u);
  EXPECT_GT(tally.all.skips, 50u);
}

// With a defence off, the same sequences must show the harm: a type proposed that somebody had not reported, or met by one that does
// not know it.
class UpgradeGatingDefect : public testing::TestWithParam<io::Defence> {};

TEST_P(UpgradeGatingDefect, IsCaughtWithinAThousandSequences) {
  rc::detail::TestParams params;
  params.seed = 7;
  params.maxSuccess = 1000;
  params.disableShrinking = true;
  Tally tally;
  {
    const rc::detail::TestResult with_defence = check(params, true, &World::violation, tally);
    std::ostringstream text;
    rc::detail::printResultMessage(with_defence, text);
    ASSERT_TRUE(with_defence.is<rc::detail::SuccessResult>()) << text.str();
  }
  io::sim::Switchboard board;
  board.off.insert(GetParam());
  const io::sim::SwitchboardGuard guard(&board);
  rc::detail::TestListenerAdapter quiet;  // what fails here is meant to
  const rc::detail::TestResult without = check(params, true, &World::harm, tally, quiet);
  ASSERT_TRUE(without.is<rc::detail::FailureResult>()) << io::defect_name(GetParam()) << " is not noticed";
  const rc::detail::FailureResult failure = without.get<rc::detail::FailureResult>();
  std::printf("%s is caught by sequence %d%s\n", std::string(io::defect_name(GetParam())).c_str(), failure.numSuccess + 1,
              failure.description.substr(failure.description.rfind('\n')).c_str());
}

INSTANTIATE_TEST_SUITE_P(Gate, UpgradeGatingDefect,
                         testing::Values(io::Defence::gate_ignores_dead, io::Defence::gate_ignores_unrecorded,
                                         io::Defence::gate_drops_stopped_report, io::Defence::older_joiner_admitted),
                         [](const testing::TestParamInfo<io::Defence>& info) {
                           std::string name(io::defect_name(info.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
