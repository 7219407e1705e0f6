#include "engine/api/router.h"

#include <gtest/gtest.h>

namespace engine::api {
namespace {

struct RouterTest : testing::Test {
  RouterTest() {
    const auto echo = [](std::string name) {
      return [name](const Call& call) {
        std::string body = name;
        for (const std::string_view parameter : call.parameters) {
          body += "|" + std::string(parameter);
        }
        return text_response(200, body);
      };
    };
    router.add("GET", "/v1/topics", echo("list"));
    router.add("POST", "/v1/topics", echo("create"));
    router.add("GET", "/v1/topics/{topic}", echo("get"));
    router.add("DELETE", "/v1/topics/{topic}", echo("delete"));
    router.add("GET", "/v1/cluster/{rest...}", echo("cluster"));
  }
  Router::Routed ask(std::string method, std::string target, std::vector<Header> headers = {}) {
    request = {std::move(method), std::move(target), std::move(headers), ""};
    return router.dispatch(request);
  }
  Router router;
  HttpRequest request;
};

TEST_F(RouterTest, ARequestReachesItsRouteWithItsParameters) {
  EXPECT_EQ(ask("GET", "/v1/topics").response.body, "list\n");
  EXPECT_EQ(ask("GET", "/v1/topics/a%2Fb%20c?x=1").response.body, "get|a/b c\n");
  EXPECT_EQ(ask("GET", "/v1/topics/t").route, "GET /v1/topics/{topic}");
  EXPECT_EQ(ask("GET", "/v1/cluster/members/x").response.body, "cluster\n");
  EXPECT_EQ(ask("HEAD", "/v1/topics").response.status, 200);
}

TEST_F(RouterTest, AnUnknownRouteIsPlain404) {
  for (const char* target : {"/", "/v1", "/v1/topics/", "/v1/topics/a/b", "/v2/topics", "//v1/topics"}) {
    const Router::Routed routed = ask("GET", target);
    EXPECT_EQ(routed.response.status, 404) << target;
    EXPECT_EQ(routed.response.body, "404 page not found\n");
    EXPECT_EQ(routed.route, "unmatched");
  }
  EXPECT_EQ(ask("GET", "/v1/topics/%zz").response.status, 400);
}

TEST_F(RouterTest, AWrongMethodIs405AndNamesTheRightOnes) {
  const Router::Routed routed = ask("PUT", "/v1/topics");
  EXPECT_EQ(routed.response.status, 405);
  ASSERT_NE(routed.response.header("Allow"), nullptr);
  EXPECT_EQ(*routed.response.header("Allow"), "GET, HEAD, POST");
}

TEST_F(RouterTest, AWriteNeedsAHeaderThatABrowserDoesNotSend) {
  EXPECT_EQ(ask("POST", "/v1/topics").response.status, 415);
  EXPECT_EQ(ask("POST", "/v1/topics", {{"Content-Type", "text/plain"}}).response.status, 415);
  EXPECT_EQ(ask("POST", "/v1/topics", {{"content-type", "Application/JSON; charset=utf-8"}}).response.status, 200);
  EXPECT_EQ(ask("POST", "/v1/topics", {{"Content-Type", "application/octet-stream"}}).response.status, 200);
  EXPECT_EQ(ask("POST", "/v1/topics", {{"x-narad-client", ""}}).response.status, 200);
  EXPECT_EQ(ask("DELETE", "/v1/topics/a").response.status, 200);
}

TEST_F(RouterTest, QueryValuesAreDecoded) {
  const std::optional<Target> target = parse_target("/a?limit=10&page_token=x%26y+z&flag&bad=%z1&limit=11");
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->value("limit"), "10");
  EXPECT_EQ(target->value("page_token"), "x&y z");
  EXPECT_EQ(target->value("flag"), "");
  EXPECT_EQ(target->value("bad"), std::nullopt);
  EXPECT_EQ(url_escape("a/b c.~"), "a%2Fb%20c.~");
}

}  // namespace
}  // namespace engine::api
