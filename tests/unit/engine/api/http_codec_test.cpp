// Messages whose bytes come in any pieces.

#include "engine/api/http_codec.h"

#include <gtest/gtest.h>

#include <optional>

namespace engine::api {
namespace {

const std::string kChunked = "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string kAnswer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

// The body, when the pieces make a whole request with nothing behind it; fails the test when the parser asks for an end.
std::optional<std::string> body_of_request(const std::vector<std::string>& pieces) {
  HttpRequestParser parser(HttpLimits{});
  std::string buffer;
  for (const std::string& piece : pieces) {
    buffer += piece;
    if (buffer.empty()) continue;
    const auto state = parser.parse(buffer);
    if (state == HttpRequestParser::State::failed) return std::nullopt;
    if (state == HttpRequestParser::State::complete) return buffer.empty() ? std::optional(parser.take().body) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::string> body_of_response(const std::vector<std::string>& pieces) {
  HttpResponseParser parser(false);
  std::string buffer;
  for (const std::string& piece : pieces) {
    buffer += piece;
    if (buffer.empty()) continue;
    const auto state = parser.parse(buffer);
    if (state == HttpResponseParser::State::failed) return std::nullopt;
    if (state == HttpResponseParser::State::complete) return buffer.empty() ? std::optional(parser.take().body) : std::nullopt;
  }
  return std::nullopt;
}

template <typename Read>
void expect_in_any_pieces(const std::string& head, const std::string& tail, const std::string& body, Read read) {
  const std::string whole = head + tail;
  // Three pieces, cut at any two places; and a byte at a time.
  for (size_t first = head.size() - 3; first <= whole.size(); ++first) {
    for (size_t second = first; second <= whole.size(); ++second) {
      EXPECT_EQ(read({whole.substr(0, first), whole.substr(first, second - first), whole.substr(second)}), body)
          << tail << " cut at " << first << " and " << second;
    }
  }
  std::vector<std::string> bytes;
  for (const char byte : whole) bytes.emplace_back(1, byte);
  EXPECT_EQ(read(bytes), body) << tail;
}

TEST(HttpCodec, AChunkedBodyMayComeInAnyPieces) {
  const std::pair<std::string, std::string> bodies[] = {
      {"0\r\n\r\n", ""},
      {"000\r\n\r\n", ""},
      {"0\r\nTail: x\r\n\r\n", ""},
      {"0;a=b\r\n\r\n", ""},
      {"3\r\nabc\r\n0\r\n\r\n", "abc"},
      {"1\r\na\r\n2;x\r\nbc\r\n0\r\nTail: x\r\n\r\n", "abc"},
  };
  for (const auto& [tail, body] : bodies) {
    expect_in_any_pieces(kChunked, tail, body, body_of_request);
    expect_in_any_pieces(kAnswer, tail, body, body_of_response);
  }
}

// Nothing that a stranger sends may end the process: an ending that is wrong at each place, in any two pieces.
TEST(HttpCodec, AWrongEndOfAChunkedBodyIsRefusedOrWaitsForMore) {
  for (const std::string tail : {"0\r\n\n", "0\r\n\r", "0\n\r\n", "0\r\r\n", "0\r\n\r\r\n", "0\r\nx", "0;\r\n\n", "g\r\n\r\n", "\r\n0\r\n\r\n",
                                  "1\r\nab\r\n0\r\n\r\n", "1\r\na\n0\r\n\r\n", "1\r\na\r\n0\r\n\n"}) {
    const std::string request = kChunked + tail;
    const std::string response = kAnswer + tail;
    for (size_t back = 0; back <= tail.size() + 1; ++back) {
      EXPECT_EQ(body_of_request({request.substr(0, request.size() - back), request.substr(request.size() - back)}), std::nullopt) << tail;
      EXPECT_EQ(body_of_response({response.substr(0, response.size() - back), response.substr(response.size() - back)}), std::nullopt)
          << tail;
    }
  }
}

}  // namespace
}  // namespace engine::api
