// Bad input and bad surroundings: a clear error, and nothing lost.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/integration/cluster.h"
#include "tests/support/paths.h"

namespace tests {
namespace {

namespace fs = std::filesystem;

// One node that is its own cluster.
struct SingleNode : testing::Test {
  TempDir dir;
  uint16_t http_port = free_port();
  uint16_t cluster_port = free_port();
  std::unique_ptr<NodeProcess> node = make(dir.path() + "/data");

  std::unique_ptr<NodeProcess> make(const std::string& data_dir) {
    return std::make_unique<NodeProcess>("solo", data_dir, dir.path() + "/log", http_port, cluster_port);
  }
  void TearDown() override {
    if (HasFailure()) {
      std::fprintf(stderr, "%s\n", node->log().c_str());
    }
  }
  // Starts, expects exit code 1, and gives back the line that says why.
  std::string refusal(const std::vector<std::string>& flags = {}) {
    const size_t before = node->log().size();
    node->start(flags);
    EXPECT_EQ(node->wait(30s), 1);
    const std::string printed = node->log().substr(before);
    std::istringstream lines(printed);
    std::string found;
    size_t count = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("narad: ", 0) == 0) {
        found = line;
        ++count;
      }
    }
    EXPECT_EQ(count, 1u) << printed;
    return found;
  }
  int status(std::string method, std::string target, std::string body = {}) {
    const auto response = node->request(std::move(method), std::move(target), std::move(body));
    return response.has_value() ? response->status : 0;
  }
};

// Every file below `root` with its bytes.
std::map<std::string, std::string> contents(const std::string& root) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) {
      std::ifstream file(entry.path(), std::ios::binary);
      std::ostringstream bytes;
      bytes << file.rdbuf();
      all[entry.path()] = bytes.str();
    }
  }
  return all;
}

// ---- Requests ------------------------------------------------------------------------------------------------------------------

TEST_F(SingleNode, BadRequestsAreAnsweredByTheirStatusAndTheNodeStaysUp) {
  node->start();
  ASSERT_TRUE(node->wait_ready());
  for (const char* body : {"", "{", "[]", "null", "{\"name\":1}", "{\"name\":\"a\"} {}", "{\"name\":\"a\",\"nmae\":1}",
                           "{\"name\":\"\"}", "{\"name\":\"a/b\"}", "{\"name\":\"..\"}", "{\"name\":\"a\",\"partitions\":2}",
                           "{\"name\":\"a\",\"retention_ms\":5}", "\xff\xfe"}) {
    const auto response = node->request("POST", "/v1/topics", body);
    ASSERT_TRUE(response.has_value()) << body;
    EXPECT_EQ(response->status, 400) << body;
    EXPECT_TRUE(response->body.starts_with("{\"error\":\"")) << body << " -> " << response->body;
  }
  EXPECT_EQ(status("POST", "/v1/topics", std::string((1 << 20) + 1, ' ')), 413);
  EXPECT_EQ(status("GET", "/v1/topics?limit=0"), 400);
  EXPECT_EQ(status("GET", "/v1/nothing"), 404);
  EXPECT_EQ(status("PUT", "/v1/topics"), 405);
  EXPECT_EQ(status("POST", "/v1/topics/a/produce", "x"), 501);
  EXPECT_EQ(status("GET", "/v1/users"), 501);
  EXPECT_TRUE(talk_raw(http_port, "POST /v1/topics HTTP/1.1\r\nHost: x\r\n\r\n", true).starts_with("HTTP/1.1 415 "));
  EXPECT_TRUE(talk_raw(http_port, "GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(70000, 'a') + "\r\n\r\n", true)
                  .starts_with("HTTP/1.1 431 "));
  EXPECT_TRUE(talk_raw(http_port, "POST /v1/topics HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{\"name\"", true)
                  .starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(talk_raw(http_port, "nonsense\r\n\r\n", false).starts_with("HTTP/1.1 400 "));
  for (const std::string& bytes : {std::string("garbage"), std::string("NRS1\x01\x08\0\0\0\0\0\0\0\0\0\1\xff\xff\xff\xff", 20),
                                   std::string("NRF1\xff\xff\xff\xff", 8), std::string("GET / HTTP/1.1\r\n\r\n")}) {
    (void)talk_raw(cluster_port, bytes, true);
  }
  EXPECT_EQ(status("POST", "/v1/topics", topic_body("fine")), 201);
  EXPECT_EQ(status("GET", "/v1/topics/fine"), 200);
  EXPECT_EQ(node->stop(), 0);
}

// ---- Starts that are refused -----------------------------------------------------------------------------------------------------

TEST_F(SingleNode, APortInUseIsNamedAndNothingIsTouched) {
  node->start();
  ASSERT_TRUE(node->wait_ready());
  auto second = std::make_unique<NodeProcess>("second", dir.path() + "/other", dir.path() + "/log2", http_port, free_port());
  second->start();
  EXPECT_EQ(second->wait(30s), 1);
  EXPECT_NE(second->log().find("narad: http.addr (" + node->http_address() + ")"), std::string::npos) << second->log();
  EXPECT_FALSE(fs::exists(dir.path() + "/other/raft"));
  auto third = std::make_unique<NodeProcess>("third", dir.path() + "/other", dir.path() + "/log3", free_port(), cluster_port);
  third->start();
  EXPECT_EQ(third->wait(30s), 1);
  EXPECT_NE(third->log().find("narad: cluster.addr (" + node->cluster_address() + ")"), std::string::npos) << third->log();
}

TEST_F(SingleNode, ADataDirectoryOfAnotherProcessIsRefused) {
  node->start();
  ASSERT_TRUE(node->wait_ready());
  auto second = std::make_unique<NodeProcess>("solo", dir.path() + "/data", dir.path() + "/log2", free_port(), free_port());
  second->start();
  EXPECT_EQ(second->wait(30s), 1);
  EXPECT_NE(second->log().find("in use by another process"), std::string::npos) << second->log();
  EXPECT_EQ(status("POST", "/v1/topics", topic_body("fine")), 201);
}

TEST_F(SingleNode, ADataDirectoryThatIsAFileIsRefused) {
  std::ofstream(dir.path() + "/data") << "a file";
  EXPECT_NE(refusal().find(dir.path() + "/data"), std::string::npos);
  EXPECT_EQ(fs::file_size(dir.path() + "/data"), 6u);
}

TEST_F(SingleNode, ADataDirectoryThatCannotBeWrittenIsRefused) {
  SmallDisk disk(1 << 20, true);
  if (!disk.is_mounted()) {
    GTEST_SKIP() << "mounting a file system is not permitted here";
  }
  node = make(disk.path());
  EXPECT_NE(refusal().find(disk.path()), std::string::npos);
}

TEST(Help, ListsTheSettingsThatHaveNoFlag) {
  FILE* pipe = ::popen((narad_program() + " serve --help").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    text.push_back(static_cast<char>(c));
  }
  EXPECT_EQ(::pclose(pipe), 0);
  EXPECT_NE(text.find("--data-dir"), std::string::npos) << text;
  EXPECT_NE(text.find("NARAD_HTTP_READ_TIMEOUT (http.read_timeout)"), std::string::npos) << text;
}

TEST_F(SingleNode, WrongSettingsAreNamed) {
  EXPECT_NE(refusal({"--addr", "0.0.0.0:7942"}).find("narad: config: config: http.addr (0.0.0.0:7942)"), std::string::npos);
  EXPECT_NE(refusal({"--log-level", "loud"}).find("log.level"), std::string::npos);
  std::ofstream(dir.path() + "/narad.json") << R"({"http":{"adr":"x"}})";
  EXPECT_EQ(refusal({"--config", dir.path() + "/narad.json"}),
            "narad: config: config: load file: json: unknown field \"http.adr\"");
  EXPECT_FALSE(fs::exists(dir.path() + "/data")) << "the configuration is judged before the data directory is made";
}

TEST_F(SingleNode, AFullDiskAtStartIsRefusedAndARoomyOneStarts) {
  SmallDisk disk(64 << 10);
  if (!disk.is_mounted()) {
    GTEST_SKIP() << "mounting a file system is not permitted here";
  }
  std::ofstream(disk.path() + "/filler") << std::string(64 << 10, 'x');
  node = make(disk.path());
  const std::string reason = refusal();
  EXPECT_NE(reason.find("space"), std::string::npos) << reason;
}

TEST_F(SingleNode, AMetadataDatabaseWithoutRaftStateIsRefusedAndUntouched) {
  node->start();
  ASSERT_TRUE(node->wait_ready());
  EXPECT_EQ(status("POST", "/v1/topics", topic_body("kept")), 201);
  EXPECT_EQ(node->stop(), 0);
  fs::rename(dir.path() + "/data/raft", dir.path() + "/raft-aside");
  const std::string reason = refusal();
  EXPECT_NE(reason.find("there is no raft state beside it"), std::string::npos) << reason;
  EXPECT_FALSE(fs::exists(dir.path() + "/data/raft"));
  fs::rename(dir.path() + "/raft-aside", dir.path() + "/data/raft");
  node->start();
  ASSERT_TRUE(node->wait_ready());
  EXPECT_EQ(status("GET", "/v1/topics/kept"), 200);
}

// The segment that holds the first entries.
fs::path oldest_segment(const std::string& data_dir) {
  std::vector<fs::path> segments;
  for (const auto& entry : fs::directory_iterator(data_dir + "/raft/log")) {
    if (entry.path().extension() == ".log") {
      segments.push_back(entry.path());
    }
  }
  std::sort(segments.begin(), segments.end());
  return segments.empty() ? fs::path() : segments.front();
}

TEST_F(SingleNode, ADamagedLogSegmentIsNamedWithItsOffsetAndNothingChanges) {
  node->start();
  ASSERT_TRUE(node->wait_ready());
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(status("POST", "/v1/topics", topic_body("topic-" + std::to_string(i))), 201);
  }
  node->kill9();
  const fs::path segment = oldest_segment(dir.path() + "/data");
  ASSERT_FALSE(segment.empty());
  // A bit of an early entry, well below the frontier that later batches name.
  std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(600);
  const char byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(600);
  file.put(byte);
  file.close();
  const auto before = contents(dir.path() + "/data");
  const std::string reason = refusal();
  EXPECT_NE(reason.find(segment.filename().string()), std::string::npos) << reason;
  EXPECT_NE(reason.find("offset"), std::string::npos) << reason;
  EXPECT_TRUE(contents(dir.path() + "/data") == before) << "a refused start changed the data directory";
}

// ---- A disk that fills up while the node runs --------------------------------------------------------------------------------------

TEST_F(SingleNode, ADiskThatFillsUpRefusesWritesAndTakesThemAgainWithRoomAndLosesNothing) {
  SmallDisk disk(96 << 20);
  if (!disk.is_mounted()) {
    GTEST_SKIP() << "mounting a file system is not permitted here";
  }
  node = make(disk.path() + "/data");
  node->start();
  ASSERT_TRUE(node->wait_ready());
  EXPECT_EQ(status("POST", "/v1/topics", topic_body("before")), 201);
  {
    std::ofstream filler(disk.path() + "/filler", std::ios::binary);
    const std::string block(64 << 10, 'x');
    while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  // The log has room that was prepared; fill that, until a write is refused.
  std::vector<std::string> acknowledged = {"before"};
  bool refused = false;
  for (int i = 0; i < 100'000 && !refused && node->is_running(); ++i) {
    const std::string name = "full-" + std::to_string(i);
    const int code = status("POST", "/v1/topics", topic_body(name));
    if (code == 201) {
      acknowledged.push_back(name);
    } else {
      EXPECT_TRUE(code == 503 || code == 0) << code;
      refused = true;
    }
  }
  EXPECT_TRUE(refused);
  fs::remove(disk.path() + "/filler");
  // Where the state machine could not write for 30 s the node stops by its rule; an operator starts it again.
  const bool written_again = eventually(
      [&] {
        if (!node->is_running()) {
          node->start();
          (void)node->wait_ready(10s);
        }
        return status("POST", "/v1/topics", topic_body("after")) == 201 || status("GET", "/v1/topics/after") == 200;
      },
      60s);
  EXPECT_TRUE(written_again);
  for (const std::string& name : acknowledged) {
    EXPECT_EQ(status("GET", "/v1/topics/" + name), 200) << name;
  }
}

}  // namespace
}  // namespace tests
