// narad-chaos as a program: exit codes, the hash line, stored plans and their replay.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/integration/process.h"
#include "tests/support/paths.h"

namespace tests {
namespace {

struct Ran {
  int code = -1;
  std::string output;
};

Ran run(const std::string& arguments, const TempDir& dir) {
  const std::string log = dir.path() + "/output";
  const std::string command = "cd " + dir.path() + " && " + chaos_program() + " " + arguments + " > " + log + " 2>&1";
  const int status = std::system(command.c_str());
  std::ifstream file(log);
  std::stringstream text;
  text << file.rdbuf();
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text.str()};
}

std::string hash_of(const std::string& output) {
  const size_t at = output.find("hash ");
  return at == std::string::npos ? "" : output.substr(at + 5, 16);
}

TEST(ChaosProgram, WrongUseExitsWithTwoAndSaysWhatIsWrong) {
  TempDir dir;
  for (const char* arguments :
       {"", "run", "run --seed x", "run --seed -1", "sweep", "sweep --seeds 5..1", "sweep --seeds 1..2 --defect none",
        "sweep --seeds 1..2 --budget 60", "replay nowhere.plan", "hunt --defect none --seeds 1..2", "explode",
        "sweep --seeds 1..2 --jobs 0"}) {
    const Ran ran = run(arguments, dir);
    EXPECT_EQ(ran.code, 2) << arguments << "\n" << ran.output;
    EXPECT_FALSE(ran.output.empty()) << arguments;
  }
  std::ofstream(dir.path() + "/bad.plan") << "narad-chaos plan 1\nnods 3\n";
  const Ran bad = run("replay bad.plan", dir);
  EXPECT_EQ(bad.code, 2);
  EXPECT_NE(bad.output.find("bad.plan: line 2: no setting is called \"nods\""), std::string::npos) << bad.output;
}

TEST(ChaosProgram, RunAndReplayPrintTheSameHash) {
  TempDir dir;
  const Ran first = run("run --seed 9", dir);
  EXPECT_EQ(first.code, 0) << first.output;
  EXPECT_EQ(hash_of(first.output).size(), 16u);
  EXPECT_EQ(hash_of(run("replay 9", dir).output), hash_of(first.output));
  ASSERT_EQ(run("plan 9", dir).code, 0);
  std::filesystem::rename(dir.path() + "/output", dir.path() + "/nine.plan");
  EXPECT_EQ(hash_of(run("run --plan nine.plan --trace trace.txt", dir).output), hash_of(first.output));
  EXPECT_GT(std::filesystem::file_size(dir.path() + "/trace.txt"), 10'000u);
}

TEST(ChaosProgram, ASweepThatFindsNothingExitsWithZeroAndPrintsItsFigures) {
  TempDir dir;
  const Ran ran = run("sweep --seeds 49..51 --jobs 2", dir);
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_NE(ran.output.find("median run: "), std::string::npos);
  EXPECT_NE(ran.output.find("1 seeds run again in a fresh process"), std::string::npos) << ran.output;
  EXPECT_NE(ran.output.find("0 violations, 0 harness faults"), std::string::npos);
}

TEST(ChaosProgram, AFailingSeedStoresAPlanThatFailsAlike) {
  TempDir dir;
  const Ran ran = run("sweep --seeds 1..50 --jobs 2 --fail-fast --defect ack-before-sync --out plans", dir);
  EXPECT_EQ(ran.code, 1) << ran.output;
  const size_t at = ran.output.find("plans/seed-");
  ASSERT_NE(at, std::string::npos) << ran.output;
  const std::string plan = ran.output.substr(at, ran.output.find('\n', at) - at);
  const Ran again = run("replay " + plan, dir);
  EXPECT_EQ(again.code, 1) << again.output;
  const size_t rule = ran.output.find("rule: ");
  EXPECT_NE(again.output.find(ran.output.substr(rule, ran.output.find('\n', rule) - rule)), std::string::npos);
}

// The path behind "replay: <program> replay ", on a line of its own.
std::string replayed_file(const std::string& output) {
  const std::string before = chaos_program() + " replay ";
  const size_t at = output.find(before);
  return at == std::string::npos ? "" : output.substr(at + before.size(), output.find('\n', at) - at - before.size());
}

TEST(ChaosProgram, ASingleFailingRunStoresItsPlanAndItsDefects) {
  TempDir dir;
  const Ran hunt = run("hunt --defect ack-before-sync --seeds 1..50 --jobs 2", dir);
  ASSERT_EQ(hunt.code, 0) << hunt.output;
  const Ran failing = run("replay " + replayed_file(hunt.output), dir);
  EXPECT_EQ(failing.code, 1) << failing.output;
  const std::string plan = replayed_file(failing.output);
  EXPECT_TRUE(plan.starts_with("chaos-out/seed-")) << failing.output;
  const Ran again = run("replay " + plan, dir);
  EXPECT_EQ(again.code, 1) << again.output;
  EXPECT_EQ(hash_of(again.output), hash_of(failing.output));
  const Ran nowhere = run("replay " + replayed_file(hunt.output) + " --out missing/directory", dir);
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_NE(nowhere.output.find("cannot be written"), std::string::npos) << nowhere.output;
  EXPECT_NE(nowhere.output.find(" --defect ack-before-sync"), std::string::npos) << nowhere.output;
}

TEST(ChaosProgram, TheDefectsAreListedByName) {
  TempDir dir;
  const Ran ran = run("defects", dir);
  EXPECT_EQ(ran.code, 0);
  for (const char* name :
       {"vote-not-durable", "ack-before-sync", "commit-older-term", "apply-before-durable", "index-apart-from-effects"}) {
    EXPECT_NE(ran.output.find(name), std::string::npos) << name;
  }
}

TEST(ChaosProgram, AHuntSaysWhatItTook) {
  TempDir dir;
  const Ran ran = run("hunt --defect ack-before-sync --seeds 1..20 --jobs 1", dir);
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_NE(ran.output.find("ack-before-sync: caught after "), std::string::npos) << ran.output;
}

}  // namespace
}  // namespace tests
