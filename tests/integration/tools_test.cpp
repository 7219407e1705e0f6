// The tools that look at the data directory of a node that does not run, as programs: what they print, what they refuse, and that
// they leave every byte and every time stamp as it was.

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/integration/cluster.h"
#include "tests/integration/process.h"
#include "tests/support/paths.h"

namespace tests {
namespace {

namespace fs = std::filesystem;

struct Printed {
  std::optional<int> code;
  std::vector<std::string> lines;

  bool has(const std::string& part) const {
    for (const std::string& line : lines) {
      if (line.find(part) != std::string::npos) {
        return true;
      }
    }
    return false;
  }
  bool has_line(const std::string& whole) const { return std::find(lines.begin(), lines.end(), whole) != lines.end(); }
  std::string text() const {
    std::string all;
    for (const std::string& line : lines) {
      all += line + "\n";
    }
    return all;
  }
};

// Everything below `root`, itself included: the bytes of files, and the times and modes of all.
std::map<std::string, std::string> everything(const std::string& root) {
  std::map<std::string, std::string> all;
  const auto add = [&all](const fs::path& path) {
    struct stat info {};
    ASSERT_EQ(lstat(path.c_str(), &info), 0) << path;
    std::ostringstream text;
    text << info.st_mode << ' ' << info.st_size << ' ' << info.st_ino << ' ' << info.st_mtim.tv_sec << '.' << info.st_mtim.tv_nsec << ' '
         << info.st_ctim.tv_sec << '.' << info.st_ctim.tv_nsec << '\n';
    if (S_ISREG(info.st_mode)) {
      text << std::ifstream(path, std::ios::binary).rdbuf();
    }
    all[path] = text.str();
  };
  add(root);
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    add(entry.path());
  }
  return all;
}

struct ToolsTest : testing::Test {
  TempDir dir;
  std::string data = dir.path() + "/data";
  NodeProcess node{"solo", data, dir.path() + "/log", free_port(), free_port()};
  int runs = 0;

  void TearDown() override {
    if (HasFailure()) {
      std::fprintf(stderr, "%s\n", node.log().c_str());
    }
  }
  Printed run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), narad_program());
    const std::string output = dir.path() + "/output" + std::to_string(++runs);
    Process process(arguments, {}, output);
    Printed printed;
    printed.code = process.wait(60s);
    std::ifstream file(output);
    for (std::string line; std::getline(file, line);) {
      printed.lines.push_back(line);
    }
    return printed;
  }
  Printed dump(const std::string& directory) { return run({"metastore", "dump", directory}); }
  Printed inspect(const std::string& directory) { return run({"metastore", "inspect", directory}); }
  void create(const std::string& name) {
    const auto answer = node.request("POST", "/v1/topics", "{\"name\":\"" + name + "\"}");
    ASSERT_TRUE(answer.has_value());
    ASSERT_EQ(answer->status, 201) << answer->body;
  }
};

TEST_F(ToolsTest, ADumpShowsEveryRowOfAStoppedNodeAndChangesNothing) {
  node.start();
  ASSERT_TRUE(node.wait_ready());
  create("orders");
  create("Billing");
  ASSERT_EQ(node.stop(), 0);
  const auto before = everything(data);
  const Printed printed = dump(data);
  EXPECT_EQ(printed.code, 0) << printed.text();
  ASSERT_GE(printed.lines.size(), 5u) << printed.text();
  EXPECT_EQ(printed.lines.front(), "{\"database\":\"fsm.db/000001\"}");
  EXPECT_TRUE(printed.has("{\"bucket\":\"topics\",\"key\":\"orders\",\"value\":{\"name\":\"orders\",\"id\":\"")) << printed.text();
  EXPECT_TRUE(printed.has("{\"bucket\":\"topics\",\"key\":\"Billing\",\"value\":{")) << printed.text();
  EXPECT_TRUE(printed.has("{\"bucket\":\"fsm_meta\",\"key\":\"state\",\"value\":{\"applied_index\":")) << printed.text();
  EXPECT_TRUE(printed.lines.back().starts_with("{\"rows\":" + std::to_string(printed.lines.size() - 2) + ",\"digest\":\""))
      << printed.text();
  for (const std::string& line : printed.lines) {
    EXPECT_TRUE(line.starts_with("{") && line.ends_with("}")) << line;
  }
  EXPECT_TRUE(everything(data) == before) << "looking changed the directory";
  // The node goes on from it.
  node.start();
  EXPECT_TRUE(node.wait_ready());
}

TEST_F(ToolsTest, ADumpAfterAKillReadsWhatStandsInTheLogsAloneAndRecoversNothing) {
  node.start();
  ASSERT_TRUE(node.wait_ready());
  for (int i = 0; i < 20; ++i) {
    create("t" + std::to_string(i));
  }
  node.kill9();
  const auto before = everything(data);
  const Printed printed = dump(data);
  EXPECT_EQ(printed.code, 0) << printed.text();
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(printed.has("{\"bucket\":\"topics\",\"key\":\"t" + std::to_string(i) + "\",")) << i;
  }
  EXPECT_TRUE(everything(data) == before) << "looking changed the directory";
}

TEST_F(ToolsTest, ARunningNodesDirectoryIsRefusedInOneLine) {
  node.start();
  ASSERT_TRUE(node.wait_ready());
  const Printed printed = dump(data);
  EXPECT_EQ(printed.code, 1);
  ASSERT_EQ(printed.lines.size(), 1u) << printed.text();
  EXPECT_EQ(printed.lines.front(), "narad: metastore: " + data +
                                       ": the data directory is in use by a running node; stop it first, or look at a copy");
  EXPECT_TRUE(node.is_ready());
  EXPECT_EQ(node.stop(), 0);
}

TEST_F(ToolsTest, WhatIsNoDirectoryOfOursIsRefusedInOneLine) {
  fs::create_directories(dir.path() + "/empty");
  fs::create_directories(dir.path() + "/newer");
  std::ofstream(dir.path() + "/newer/FORMAT") << "narad data directory, layout 7\n";
  fs::create_directories(dir.path() + "/unmarked/raft");
  std::ofstream(dir.path() + "/file") << "x";
  const struct {
    const char* name;
    const char* reason;
  } kCases[] = {
      {"absent", ": no such directory"},
      {"file", ": no such directory"},
      {"empty", ": this is no data directory of narad: it holds no file FORMAT"},
      {"unmarked", ": the data directory has no file FORMAT, so its layout is unknown"},
      {"newer", ": the data directory has format 7, written by a newer Narad release than this build ("},
  };
  for (const auto& each : kCases) {
    SCOPED_TRACE(each.name);
    const std::string path = dir.path() + "/" + each.name;
    const auto before = fs::is_directory(path) ? everything(path) : std::map<std::string, std::string>();
    for (const char* tool : {"dump", "inspect"}) {
      const Printed printed = run({"metastore", tool, path});
      EXPECT_EQ(printed.code, 1);
      ASSERT_EQ(printed.lines.size(), 1u) << printed.text();
      EXPECT_TRUE(printed.lines.front().starts_with("narad: metastore: " + path + each.reason)) << printed.text();
    }
    EXPECT_TRUE((fs::is_directory(path) ? everything(path) : std::map<std::string, std::string>()) == before);
  }
  EXPECT_EQ(run({"metastore"}).code, 2);
  EXPECT_EQ(run({"metastore", "dump"}).code, 2);
  EXPECT_EQ(run({"metastore", "dump", data, "more"}).code, 2);
}

TEST_F(ToolsTest, ADatabaseThatIsGoneIsSaidInOneLine) {
  node.start();
  ASSERT_TRUE(node.wait_ready());
  create("orders");
  ASSERT_EQ(node.stop(), 0);
  fs::remove_all(data + "/fsm.db/000001");
  const Printed printed = dump(data);
  EXPECT_EQ(printed.code, 1);
  ASSERT_EQ(printed.lines.size(), 1u) << printed.text();
  EXPECT_TRUE(printed.has("there is no database, although ACTIVE names it")) << printed.text();
  const Printed inspected = inspect(data);
  EXPECT_EQ(inspected.code, 0);
  EXPECT_TRUE(inspected.has_line("fsm.db: fsm.db/000001 (there is no database, although ACTIVE names it)")) << inspected.text();
}

TEST_F(ToolsTest, AnInspectionTellsWhatIsThereAndWhatAStartWouldMakeOfIt) {
  node.start();
  ASSERT_TRUE(node.wait_ready());
  create("orders");
  ASSERT_EQ(node.stop(), 0);
  const auto whole = everything(data);
  const Printed printed = inspect(data);
  EXPECT_EQ(printed.code, 0) << printed.text();
  for (const char* line : {"format: 1", "fsm.db: fsm.db/000001", "fsm.db holds anything: yes",
                           "fsm.db index trusted: yes", "raft snapshot: none", "raft bootstrapped: yes"}) {
    EXPECT_TRUE(printed.has_line(line)) << line << "\n" << printed.text();
  }
  // The topic itself, or its partitions too.
  EXPECT_TRUE(printed.has_line("fsm.db newest entry type: 23") || printed.has_line("fsm.db newest entry type: 29")) << printed.text();
  EXPECT_TRUE(printed.has("raft term record: term ")) << printed.text();
  EXPECT_TRUE(printed.has("raft log: entries 1 to ")) << printed.text();
  EXPECT_TRUE(printed.has("a start as a node that joins a running cluster: row 7 (held): keeps fsm.db")) << printed.text();
  EXPECT_TRUE(printed.has("a start as any other node: row 7 (held): keeps fsm.db")) << printed.text();
  EXPECT_TRUE(everything(data) == whole) << "looking changed the directory";

  // Raft's state is gone.
  fs::rename(data + "/raft", dir.path() + "/raft");
  const auto half = everything(data);
  const Printed without_raft = inspect(data);
  EXPECT_EQ(without_raft.code, 0) << without_raft.text();
  EXPECT_TRUE(without_raft.has_line("raft term record: none")) << without_raft.text();
  EXPECT_TRUE(without_raft.has("a start as a node that joins a running cluster: row 4 (no_raft_state): sets fsm.db aside"))
      << without_raft.text();
  EXPECT_TRUE(without_raft.has("a start as any other node: row 4 (no_raft_state): refuses: ")) << without_raft.text();
  EXPECT_TRUE(everything(data) == half) << "looking changed the directory";
  fs::rename(dir.path() + "/raft", data + "/raft");

  // The database is gone.
  fs::rename(data + "/fsm.db", dir.path() + "/fsm.db");
  const Printed without_database = inspect(data);
  EXPECT_TRUE(without_database.has_line("fsm.db: none")) << without_database.text();
  EXPECT_TRUE(without_database.has("a start as any other node: row 9 (replayed): ")) << without_database.text();
  EXPECT_FALSE(fs::exists(data + "/fsm.db"));
  fs::rename(dir.path() + "/fsm.db", data + "/fsm.db");

  // Damage in the log is told, and so is the start that it forbids.
  const std::string segment = data + "/raft/log/00000000000000000001.log";
  {
    std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(600);
    file.put('\x7f');
  }
  const Printed damaged = inspect(data);
  EXPECT_EQ(damaged.code, 0) << damaged.text();
  EXPECT_TRUE(damaged.has("a start: refused: raft: raft/log/00000000000000000001.log: damaged at offset ")) << damaged.text();
}

TEST_F(ToolsTest, AnInspectionAfterAKillFindsWhatTheNextStartKeeps) {
  node.start();
  ASSERT_TRUE(node.wait_ready());
  create("orders");
  create("bills");
  node.kill9();
  const auto before = everything(data);
  const Printed printed = inspect(data);
  EXPECT_EQ(printed.code, 0) << printed.text();
  EXPECT_TRUE(printed.has_line("fsm.db index trusted: yes")) << printed.text();
  EXPECT_TRUE(printed.has("raft log: entries 1 to ")) << printed.text();
  EXPECT_TRUE(printed.has("fsm.db applied: index ")) << printed.text();
  EXPECT_TRUE(printed.has_line("raft log's term at fsm.db's index: 1")) << printed.text();
  EXPECT_TRUE(printed.has("a start as any other node: row 7 (held): keeps fsm.db")) << printed.text();
  EXPECT_TRUE(everything(data) == before) << "looking changed the directory";
  node.start();
  EXPECT_TRUE(node.wait_ready());
  EXPECT_NE(node.log().find("raft: start decided row=held"), std::string::npos);
}

TEST_F(ToolsTest, WhatAnInspectionSaysIsWhatAStartDoes) {
  node.start();
  ASSERT_TRUE(node.wait_ready());
  create("orders");
  ASSERT_EQ(node.stop(), 0);
  fs::remove_all(data + "/raft");
  const Printed printed = inspect(data);
  ASSERT_TRUE(printed.has("a start as any other node: row 4 (no_raft_state): refuses: ")) << printed.text();
  node.start();
  EXPECT_EQ(node.wait(30s), 1);
  EXPECT_NE(node.log().find("there is no raft state beside it"), std::string::npos);
}

}  // namespace
}  // namespace tests
