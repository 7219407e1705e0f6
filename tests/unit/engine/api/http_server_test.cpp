#include "engine/api/http_server.h"

#include <gtest/gtest.h>

#include "engine/api/http_client.h"
#include "tests/unit/engine/api/sim_pair.h"

namespace engine::api {
namespace {

using namespace std::chrono_literals;
using engine::test::read_all;

class HttpServerTest : public engine::test::SimPair {
 protected:
  HttpServerSettings settings;
  std::vector<std::string> seen;  // "METHOD target body" of each request that reached the handler
  io::Duration handler_takes{0};
  HttpServer* server = nullptr;

  void serve() {
    start_server([this](io::Env& env) {
      HttpServer http(env, settings, [this](const HttpRequest& request) {
        seen.push_back(request.method + " " + request.target + " " + request.body.substr(0, 40));
        if (handler_takes > 0s) {
          io::sleep_for(handler_takes);
        }
        HttpResponse response;
        response.content_type = "text/plain";
        response.body = "body of " + request.target;
        return response;
      });
      ASSERT_TRUE(http.listen("0.0.0.0:80").ok());
      server = &http;
      io::with_scope([&](io::Scope& scope) {
        http.run(scope);
        io::sleep_for(1h);  // the process outlives the server
      });
    });
  }

  // Sends `bytes` as they are, in pieces of `piece`, ends its direction when asked to, and gives back all that is answered.
  std::string talk(std::string bytes, size_t piece = SIZE_MAX, bool end = true) {
    std::string answer;
    serve();
    start_client([&](io::Env& env) {
      auto stream = env.net.connect("server:80", env.after(5s));
      ASSERT_TRUE(stream.ok());
      for (size_t at = 0; at < bytes.size(); at += piece) {
        if (!(*stream)->write(bytes.substr(at, piece), env.after(60s)).ok()) {
          break;
        }
        if (piece != SIZE_MAX) {
          io::sleep_for(1ms);
        }
      }
      if (end) {
        (void)(*stream)->shutdown_write();
      }
      answer = read_all(**stream, env.after(100s));
    });
    run();
    return answer;
  }
};

TEST_F(HttpServerTest, ARequestIsAnsweredWithLengthAndDate) {
  const std::string answer = talk("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\nDate: ")) << answer;
  EXPECT_NE(answer.find("Content-Length: 10\r\n"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\nbody of /a"));
}

TEST_F(HttpServerTest, BytesThatArriveOneByOneMakeTheSameRequest) {
  talk("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", 1);
  EXPECT_EQ(seen, std::vector<std::string>{"POST /a hello"});
}

TEST_F(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
  const std::string answer = talk(
      "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nPOST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhiGET /3 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(seen, (std::vector<std::string>{"GET /1 ", "POST /2 hi", "GET /3 "}));
  EXPECT_LT(answer.find("body of /1"), answer.find("body of /2"));
  EXPECT_LT(answer.find("body of /2"), answer.find("body of /3"));
}

TEST_F(HttpServerTest, AChunkedBodyIsPutTogether) {
  talk("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: v\r\n\r\n", 3);
  EXPECT_EQ(seen, std::vector<std::string>{"POST /a hello world"});
}

TEST_F(HttpServerTest, HeadIsAnsweredWithoutBody) {
  const std::string answer = talk("HEAD /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_NE(answer.find("Content-Length: 10\r\n"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
}

TEST_F(HttpServerTest, ConnectionCloseAndHttp10EndTheConnection) {
  const std::string closed =
      talk("GET /1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n", SIZE_MAX, false);
  EXPECT_EQ(seen, std::vector<std::string>{"GET /1 "});
  EXPECT_NE(closed.find("Connection: close\r\n"), std::string::npos);
}

TEST_F(HttpServerTest, Http10IsAnsweredAndClosed) {
  const std::string answer = talk("GET /1 HTTP/1.0\r\n\r\n", SIZE_MAX, false);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos);
}

TEST_F(HttpServerTest, ExpectContinueIsAnsweredBeforeTheBody) {
  std::string first;
  serve();
  start_client([&](io::Env& env) {
    auto stream = env.net.connect("server:80", env.after(5s));
    ASSERT_TRUE(stream.ok());
    ASSERT_TRUE((*stream)->write("POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n").ok());
    first = *(*stream)->read(1000, env.after(5s));
    ASSERT_TRUE((*stream)->write("ok").ok());
    (void)(*stream)->shutdown_write();
    EXPECT_NE(read_all(**stream, env.after(5s)).find("200 OK"), std::string::npos);
  });
  run();
  EXPECT_EQ(first, "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(seen, std::vector<std::string>{"POST /a ok"});
}

TEST_F(HttpServerTest, ABodyAboveTheLimitIsRefusedWith413BeforeItIsRead) {
  const std::string answer =
      talk("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n" + std::string(300'000, 'x'), SIZE_MAX, false);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 413 ")) << answer.substr(0, 100);
  EXPECT_NE(answer.find(R"({"error":"request body too large"})"), std::string::npos);
  EXPECT_TRUE(seen.empty());
}

TEST_F(HttpServerTest, AChunkedBodyAboveTheLimitIsRefusedWhileItArrives) {
  std::string body = "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 20; ++i) {
    body += "10000\r\n" + std::string(65536, 'x') + "\r\n";
  }
  EXPECT_TRUE(talk(body).starts_with("HTTP/1.1 413 "));
  EXPECT_TRUE(seen.empty());
}

TEST_F(HttpServerTest, ABodyOfExactlyTheLimitPasses) {
  const std::string answer =
      talk("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n" + std::string(1048576, 'x'));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer.substr(0, 100);
}

TEST_F(HttpServerTest, HeadersAboveTheLimitAreRefusedWith431) {
  const std::string answer = talk("GET /a HTTP/1.1\r\nHost: x\r\nX-Big: " + std::string(70'000, 'x') + "\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 431 ")) << answer.substr(0, 100);
}

TEST_F(HttpServerTest, MalformedRequestsAreAnswered400AndClosed) {
  for (const char* bytes : {
           "\r\n\r\n", "GET\r\n\r\n", "GET /a\r\nHost: x\r\n\r\n", "GET /a HTTP/1.1\r\nHost x\r\n\r\n",
           "GET /a HTTP/1.1\r\n\r\n", "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
           "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
           "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "GET a HTTP/1.1\r\nHost: x\r\n\r\n",
           "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
       }) {
    HttpRequestParser parser({});
    std::string buffer(bytes);
    EXPECT_EQ(parser.parse(buffer), HttpRequestParser::State::failed) << bytes;
    EXPECT_EQ(parser.error_status(), 400) << bytes;
  }
  EXPECT_TRUE(talk("nonsense\r\n\r\n", SIZE_MAX, false).starts_with("HTTP/1.1 400 Bad Request\r\n"));
}

TEST_F(HttpServerTest, OtherVersionsAndEncodingsAreRefusedByName) {
  HttpRequestParser version({});
  std::string buffer = "GET /a HTTP/2.0\r\nHost: x\r\n\r\n";
  EXPECT_EQ(version.parse(buffer), HttpRequestParser::State::failed);
  EXPECT_EQ(version.error_status(), 505);
  HttpRequestParser encoding({});
  buffer = "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n";
  EXPECT_EQ(encoding.parse(buffer), HttpRequestParser::State::failed);
  EXPECT_EQ(encoding.error_status(), 501);
}

TEST_F(HttpServerTest, AChunkHeaderWithoutEndIsRefusedWithinBounds) {
  HttpRequestParser parser({});
  std::string buffer = "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;" + std::string(200'000, 'x');
  EXPECT_EQ(parser.parse(buffer), HttpRequestParser::State::failed);
  EXPECT_EQ(parser.error_status(), 400);
}

TEST_F(HttpServerTest, ARequestThatEndsEarlyIsAnswered400) {
  EXPECT_TRUE(talk("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(seen.empty());
}

TEST_F(HttpServerTest, HalfAHeaderThatEndsIsAnswered400) {
  EXPECT_TRUE(talk("POST /a HTT").starts_with("HTTP/1.1 400 "));
}

TEST_F(HttpServerTest, ARequestThatStallsIsAnswered408AfterTheReadTimeout) {
  const std::string answer = talk("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc", SIZE_MAX, false);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 408 "));
  EXPECT_GE(world.now(), io::Instant{} + 10s);
  EXPECT_LT(world.now(), io::Instant{} + 15s);
}

TEST_F(HttpServerTest, AnIdleConnectionIsClosedSilentlyAfterTheIdleTimeout) {
  EXPECT_EQ(talk("", SIZE_MAX, false), "");
  EXPECT_GE(world.now(), io::Instant{} + 60s);
  EXPECT_LT(world.now(), io::Instant{} + 65s);
}

TEST_F(HttpServerTest, ConnectionsAboveTheCapAreToldSo) {
  settings.max_connections = 2;
  serve();
  std::string answer;
  start_client([&](io::Env& env) {
    auto first = env.net.connect("server:80", env.after(5s));
    auto second = env.net.connect("server:80", env.after(5s));
    io::sleep_for(5ms);
    auto third = env.net.connect("server:80", env.after(5s));
    ASSERT_TRUE(third.ok());
    answer = read_all(**third, env.after(5s));
    (*first)->close();
    io::sleep_for(100ms);
    HttpClient again(env.net, "server:80");
    const auto response = again.request({"GET", "/x", {}, ""}, env.after(5s));
    EXPECT_TRUE(response.ok() && response->status == 200);
  });
  run();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
}

TEST_F(HttpServerTest, UnfinishedRequestsShareABoundOfBytes) {
  settings.unfinished_bytes_max = 1'000'000;
  serve();
  start_client([&](io::Env& env) {
    const std::string half = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n" + std::string(600'000, 'x');
    auto first = env.net.connect("server:80", env.after(5s));
    ASSERT_TRUE((*first)->write(half, env.after(5s)).ok());
    io::sleep_for(200ms);  // all of it has been read
    auto second = env.net.connect("server:80", env.after(5s));
    (void)(*second)->write(half, env.after(5s));
    EXPECT_TRUE(read_all(**second, env.after(5s)).starts_with("HTTP/1.1 503 "));
    ASSERT_TRUE((*first)->write(std::string(300'000, 'x'), env.after(5s)).ok());
    (void)(*first)->shutdown_write();
    EXPECT_TRUE(read_all(**first, env.after(5s)).starts_with("HTTP/1.1 200 "));
  });
  run();
}

TEST_F(HttpServerTest, DrainAnswersWhatHasBegunAndClosesWhatIsIdle) {
  handler_takes = 500ms;
  serve();
  size_t cut_off = 99;
  int status = 0;
  start_client([&](io::Env& env) {
    io::with_scope([&](io::Scope& scope) {
      scope.spawn("busy", [&] {
        HttpClient client(env.net, "server:80");
        const auto response = client.request({"GET", "/slow", {}, ""}, env.after(5s));
        status = response.ok() ? response->status : -1;
        EXPECT_TRUE(!response.ok() || response->header("Connection") != nullptr);
      });
      auto idle = env.net.connect("server:80", env.after(5s));
      io::sleep_for(100ms);
      server_machine.process()->spawn("drain", [&] { cut_off = server->drain(server_machine.process()->env().after(5s)); });
      EXPECT_EQ(read_all(**idle, env.after(50ms)), "");
      EXPECT_FALSE(env.net.connect("server:80", env.after(100ms)).ok());
    });
  });
  run();
  world.run_for(1s);
  EXPECT_EQ(status, 200);
  EXPECT_EQ(cut_off, 0u);
}

TEST_F(HttpServerTest, AClientKeepsItsConnectionAndReplacesAClosedOne) {
  settings.idle_timeout = 1s;
  serve();
  start_client([&](io::Env& env) {
    HttpClient client(env.net, "server:80");
    for (io::Duration pause : {0s, 0s, 3s, 0s}) {
      io::sleep_for(pause);
      const auto response = client.request({"POST", "/a", {{"Content-Type", "text/plain"}}, "x"}, env.after(5s));
      ASSERT_TRUE(response.ok()) << response.error().to_text();
      EXPECT_EQ(response->status, 200);
      EXPECT_EQ(response->body, "body of /a");
      EXPECT_EQ(response->content_type, "text/plain");
    }
  });
  run();
  EXPECT_EQ(seen.size(), 4u);
}

TEST_F(HttpServerTest, AClientSaysWhetherAFailedRequestMayHaveArrived) {
  handler_takes = 10s;
  serve();
  start_client([&](io::Env& env) {
    HttpClient nobody(env.net, "server:81");
    EXPECT_FALSE(nobody.request({"GET", "/", {}, ""}, env.after(5s)).ok());
    EXPECT_FALSE(nobody.may_have_arrived());
    HttpClient slow(env.net, "server:80");
    const auto response = slow.request({"GET", "/", {}, ""}, env.after(1s));
    EXPECT_TRUE(response.is(io::ErrorKind::timed_out));
    EXPECT_TRUE(slow.may_have_arrived());
  });
  run();
}

TEST(HttpResponses, AnEndBeforeTheirEndIsAFailure) {
  for (const char* bytes : {"", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"}) {
    HttpResponseParser parser(false);
    std::string buffer(bytes);
    EXPECT_EQ(parser.parse(buffer), HttpResponseParser::State::need_more) << bytes;
    EXPECT_EQ(parser.end(), HttpResponseParser::State::failed) << bytes;
  }
  HttpResponseParser until_closed(false);
  std::string buffer("HTTP/1.0 200 OK\r\n\r\nabc");
  EXPECT_EQ(until_closed.parse(buffer), HttpResponseParser::State::need_more);
  EXPECT_EQ(until_closed.end(), HttpResponseParser::State::complete);
  EXPECT_EQ(until_closed.take().body, "abc");
}

TEST(HttpText, DatesAreThoseOfTheStandard) {
  using std::chrono::seconds;
  EXPECT_EQ(http_date(io::WallTime(seconds(784111777))), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http_date(io::WallTime(seconds(951782400))), "Tue, 29 Feb 2000 00:00:00 GMT");
  EXPECT_EQ(reason_phrase(404), "Not Found");
}

}  // namespace
}  // namespace engine::api
