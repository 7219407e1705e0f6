#include "engine/config.h"

#include <gtest/gtest.h>

#include <set>

namespace engine {
namespace {

using namespace std::chrono_literals;

struct ConfigTest : testing::Test {
  ConfigTest() { sources.default_node_id = "host"; }

  void file(std::string text) {
    sources.file_name = "narad.json";
    sources.file_text = std::move(text);
  }
  std::string refusal() {
    const io::Result<Config> config = load_config(sources);
    return config.ok() ? "accepted" : config.error().message;
  }
  Config accepted() {
    io::Result<Config> config = load_config(sources);
    EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().message);
    return config.ok() ? *config : Config();
  }

  ConfigSources sources;
};

TEST_F(ConfigTest, DefaultsAreThoseOfTheTable) {
  const Config config = accepted();
  EXPECT_EQ(config.http.addr, "127.0.0.1:7942");
  EXPECT_EQ(config.cluster.addr, "127.0.0.1:7943");
  EXPECT_EQ(config.cluster.node_id, "host");
  EXPECT_EQ(config.storage.data_dir, "data");
  EXPECT_EQ(config.http.read_timeout, 10s);
  EXPECT_EQ(config.http.idle_timeout, 60s);
  EXPECT_EQ(config.http.max_header_bytes, 65536u);
  EXPECT_EQ(config.topic.default_retention_age_ms, 604'800'000);
  EXPECT_EQ(config.log.format, LogFormat::json);
}

TEST_F(ConfigTest, FlagsWinOverEnvironmentOverFileOverDefault) {
  file(R"({"http":{"read_timeout":"1s","write_timeout":"2s"},"cluster":{"node_id":"from-file"}})");
  sources.environment = {{"NARAD_HTTP_READ_TIMEOUT", "3s"}, {"NARAD_NODE_ID", "from-environment"}, {"NARAD_ELSE", "x"}};
  sources.flags = {{"cluster.node_id", "from-flag"}};
  const Config config = accepted();
  EXPECT_EQ(config.http.read_timeout, 3s);
  EXPECT_EQ(config.http.write_timeout, 2s);
  EXPECT_EQ(config.cluster.node_id, "from-flag");
}

TEST_F(ConfigTest, APortFlagKeepsTheHost) {
  sources.flags = {{"http.port", "8000"}, {"cluster.port", "8001"}};
  EXPECT_EQ(accepted().http.addr, "127.0.0.1:8000");
  EXPECT_EQ(accepted().cluster.addr, "127.0.0.1:8001");
  sources.flags = {{"http.port", "70000"}};
  EXPECT_EQ(refusal(), "config: config: http.addr (--port): \"70000\" is not a port");
}

TEST_F(ConfigTest, UnknownFileKeysAreRefusedAtEveryLevel) {
  file(R"({"htpp":{}})");
  EXPECT_EQ(refusal(), "config: config: load file: json: unknown field \"htpp\"");
  file(R"({"http":{"adr":"x"}})");
  EXPECT_EQ(refusal(), "config: config: load file: json: unknown field \"http.adr\"");
  file(R"({"insecure":true})");
  EXPECT_EQ(refusal(), "config: config: load file: json: unknown field \"insecure\"");
  file(R"({"storage":{"fsync_mode":"never"}})");
  EXPECT_EQ(refusal(), "config: config: load file: storage.fsync_mode is an internal setting and cannot be configured");
}

TEST_F(ConfigTest, FilesThatAreNotOneJsonObjectAreRefused) {
  for (const char* text : {"", "{", "[]", "{} {}", "{/*no*/}", "null"}) {
    file(text);
    EXPECT_TRUE(refusal().starts_with("config: config: load file: narad.json ")) << text << " -> " << refusal();
  }
}

TEST_F(ConfigTest, WrongTypesAreRefusedByName) {
  file(R"({"http":{"read_timeout":10}})");
  EXPECT_EQ(refusal(), "config: config: load file: http.read_timeout must be a duration such as \"10s\"");
  file(R"({"http":{"max_connections":"4"}})");
  EXPECT_EQ(refusal(), "config: config: load file: http.max_connections must be a whole number");
  file(R"({"http":7})");
  EXPECT_EQ(refusal(), "config: config: load file: http must be an object");
  sources.file_name.clear();
  sources.environment = {{"NARAD_LOG_LEVEL", "loud"}};
  EXPECT_EQ(refusal(), "config: config: log.level (NARAD_LOG_LEVEL): \"loud\" is none of debug, info, warn, error");
}

TEST_F(ConfigTest, ListenersOthersCanReachNeedInsecure) {
  for (const char* address : {":7942", "0.0.0.0:7942", "10.0.0.1:7942", "example.org:80", "128.0.0.1:1"}) {
    sources.flags = {{"http.addr", address}};
    EXPECT_NE(refusal().find("http.addr"), std::string::npos) << address;
    EXPECT_NE(refusal().find("--insecure"), std::string::npos) << address;
    sources.flags["insecure"] = "true";
    EXPECT_EQ(refusal(), "accepted") << address;
  }
  for (const char* address : {"127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1"}) {
    sources.flags = {{"http.addr", address}};
    EXPECT_EQ(refusal(), "accepted") << address;
  }
}

TEST_F(ConfigTest, MalformedAddressesAreRefused) {
  for (const char* address : {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "::1:5", "a b:1"}) {
    sources.flags = {{"http.addr", address}};
    EXPECT_TRUE(refusal().starts_with("config: config: http.addr: ")) << address;
  }
  sources.flags = {{"http.addr", "127.0.0.1:7943"}};
  EXPECT_EQ(refusal(), "config: config: http.addr and cluster.addr must differ (both are 127.0.0.1:7943)");
}

TEST_F(ConfigTest, PeersAreThreeOrMoreDistinctNodesAndThisOneAmongThem) {
  sources.flags["cluster.node_id"] = "a";
  const auto with = [&](std::string peers) {
    sources.environment["NARAD_CLUSTER_PEERS"] = std::move(peers);
    return refusal();
  };
  EXPECT_EQ(with("a@h1:1,b@h2:1,c@h3:1"), "accepted");
  EXPECT_EQ(accepted().advertised_cluster_addr(), "h1:1");
  EXPECT_EQ(with("a@h1:1,b@h2:1"), "config: config: cluster.peers must name at least 3 nodes when set (it names 2)");
  EXPECT_EQ(with("a@h1:1,a@h2:1,c@h3:1"), "config: config: cluster.peers names \"a\" twice");
  EXPECT_EQ(with("a@h1:1,b@h1:1,c@h3:1"), "config: config: cluster.peers gives h1:1 to two nodes");
  EXPECT_EQ(with("x@h1:1,b@h2:1,c@h3:1"),
            "config: config: cluster.peers does not name this node (cluster.node_id is \"a\"), so cluster.advertise_addr must say where "
            "the others reach it");
  EXPECT_NE(with("a,b,c").find("is not a list of id@host:port"), std::string::npos);
}

TEST_F(ConfigTest, ANodeThatPeersDoesNotNameSaysWhereItIsReachedAndJoins) {
  sources.flags["cluster.node_id"] = "d";
  sources.environment["NARAD_CLUSTER_PEERS"] = "a@h1:1,b@h2:1,c@h3:1";
  sources.environment["NARAD_CLUSTER_ADVERTISE_ADDR"] = "h4:1";
  ASSERT_EQ(refusal(), "accepted");
  EXPECT_EQ(accepted().advertised_cluster_addr(), "h4:1");
  EXPECT_EQ(accepted().advertised_http_addr("127.0.0.1:7942"), "h4:7942");
  EXPECT_TRUE(accepted().is_join_only());
  EXPECT_TRUE(accepted().first_members().empty());
  sources.environment["NARAD_CLUSTER_ADVERTISE_ADDR"] = "h4";
  EXPECT_TRUE(refusal().starts_with("config: config: cluster.advertise_addr: "));
}

TEST_F(ConfigTest, FirstMembersAreThePeersThatInitialMembersNames) {
  sources.environment["NARAD_CLUSTER_PEERS"] = "a@h1:1,b@h2:1,c@h3:1";
  const auto first = [&](std::string id, std::string initial) {
    sources.flags["cluster.node_id"] = std::move(id);
    sources.environment["NARAD_CLUSTER_INITIAL_MEMBERS"] = std::move(initial);
    const Config config = accepted();
    std::string ids = config.is_join_only() ? "joins" : "";
    for (const Peer& peer : config.first_members()) ids += peer.id;
    return ids;
  };
  EXPECT_EQ(first("a", ""), "abc");
  EXPECT_EQ(first("a", "a,b"), "ab");
  EXPECT_EQ(first("c", "a,b"), "joins");
  sources.environment.erase("NARAD_CLUSTER_PEERS");
  EXPECT_EQ(first("a", ""), "a");
}

TEST_F(ConfigTest, PeersOfTheFileAreObjects) {
  sources.flags["cluster.node_id"] = "a";
  file(R"({"cluster":{"peers":[{"id":"a","addr":"h:1"},{"id":"b","addr":"h:2"},{"id":"c","addr":"h:3"}]}})");
  EXPECT_EQ(accepted().cluster.peers, (std::vector<Peer>{{"a", "h:1"}, {"b", "h:2"}, {"c", "h:3"}}));
  file(R"({"cluster":{"peers":[{"id":"a","addr":"h:1","x":1}]}})");
  EXPECT_EQ(refusal(), "config: config: load file: cluster.peers must be a list of {\"id\", \"addr\"}");
}

TEST_F(ConfigTest, TopicDefaultsKeepTheirRules) {
  const auto with = [&](std::string key, std::string value) {
    sources.flags = {{std::move(key), std::move(value)}};
    return refusal();
  };
  EXPECT_NE(with("topic.default_partitions", "2"), "accepted");
  EXPECT_NE(with("topic.default_partitions", "109"), "accepted");
  EXPECT_NE(with("topic.default_retention_age_ms", "3599999"), "accepted");
  EXPECT_EQ(with("topic.default_retention_age_ms", "0"), "accepted");
  EXPECT_NE(with("topic.default_visibility_timeout_ms", "0"), "accepted");
  EXPECT_NE(with("topic.default_max_in_flight_per_partition", "0"), "accepted");
  EXPECT_NE(with("http.max_header_bytes", "4095"), "accepted");
  EXPECT_NE(with("http.read_timeout", "0"), "accepted");
  EXPECT_NE(with("io", "poll"), "accepted");
}

TEST_F(ConfigTest, EverySettingHasItsOwnNames) {
  std::set<std::string_view> keys;
  std::set<std::string_view> environment;
  for (const Setting& setting : settings()) {
    EXPECT_TRUE(keys.insert(setting.key).second) << setting.key;
    EXPECT_TRUE(setting.environment.empty() || environment.insert(setting.environment).second) << setting.key;
    EXPECT_FALSE(setting.help.empty()) << setting.key;
  }
}

TEST(Durations, AreNumbersWithUnits) {
  const auto parsed = [](std::string_view text) {
    const io::Result<io::Duration> result = parse_duration(text);
    return result.ok() ? result->count() : -1;
  };
  EXPECT_EQ(parsed("10s"), 10'000'000'000);
  EXPECT_EQ(parsed("1m30s"), 90'000'000'000);
  EXPECT_EQ(parsed("250ms"), 250'000'000);
  EXPECT_EQ(parsed("1.5h"), 5'400'000'000'000);
  EXPECT_EQ(parsed("0"), 0);
  for (const char* bad : {"", "10", "s", "10 s", "-1s", "1.s", "1..5s", "10x", "1e3s", "99999999999h"}) {
    EXPECT_EQ(parsed(bad), -1) << bad;
  }
  EXPECT_EQ(format_duration(90s), "1m30s");
  EXPECT_EQ(format_duration(7250ms), "7s250ms");
  EXPECT_EQ(format_duration(0s), "0s");
}

}  // namespace
}  // namespace engine
