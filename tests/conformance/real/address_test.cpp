#include "io/real/address.h"

#include <gtest/gtest.h>

namespace {

using namespace io;
using namespace io::real;

TEST(Addresses, HostAndPortAreTakenApart) {
  EXPECT_EQ(parse_host_port("127.0.0.1:7942")->host, "127.0.0.1");
  EXPECT_EQ(parse_host_port("127.0.0.1:7942")->port, 7942);
  EXPECT_EQ(parse_host_port("node-1.narad:0")->host, "node-1.narad");
  EXPECT_EQ(parse_host_port(":65535")->host, "");
  EXPECT_EQ(parse_host_port(":65535")->port, 65535);
  EXPECT_EQ(parse_host_port("[::1]:80")->host, "::1");
  EXPECT_EQ(parse_host_port("[fe80::1%eth0]:80")->host, "fe80::1%eth0");
}

TEST(Addresses, WhatIsNoAddressIsRefusedWithItsText) {
  for (std::string_view bad :
       {"", "host", "host:", ":", "host:-1", "host:+1", "host:65536", "host:1x", "host: 1", "::1:80", "[::1]80", "[::1",
        "[]:80", "[host]:80", "[1.2.3.4]:80", "a b:80", "http://host:80"}) {
    Result<HostPort> parsed = parse_host_port(bad);
    ASSERT_TRUE(parsed.is(ErrorKind::invalid)) << bad;
    EXPECT_NE(parsed.error().message.find("\"" + std::string(bad) + "\""), std::string::npos) << parsed.error().message;
  }
}

TEST(Addresses, NumericHostsResolveToThemselves) {
  EXPECT_EQ(resolve({"127.0.0.1", 80}, false)->front().to_text(), "127.0.0.1:80");
  EXPECT_EQ(resolve({"::1", 80}, false)->front().to_text(), "[::1]:80");
  EXPECT_EQ(resolve({"::ffff:10.0.0.1", 80}, false)->front().to_text(), "10.0.0.1:80");
}

TEST(Addresses, TheEmptyHostListensEverywhere) {
  Result<std::vector<SocketAddress>> every = resolve({"", 80}, true);
  ASSERT_TRUE(every.ok());
  for (const SocketAddress& each : *every) {
    EXPECT_TRUE(each.to_text() == "0.0.0.0:80" || each.to_text() == "[::]:80") << each.to_text();
  }
}

TEST(Addresses, NamesAreTellable) {
  EXPECT_TRUE(is_numeric("127.0.0.1"));
  EXPECT_TRUE(is_numeric("::1"));
  EXPECT_FALSE(is_numeric("localhost"));
  EXPECT_FALSE(is_numeric("127.0.0"));
}

}  // namespace
