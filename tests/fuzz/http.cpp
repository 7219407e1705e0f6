// The HTTP codec: requests from anybody, responses from a server that may be none.
//
// Input: one byte of mode (bit 0: a response, bit 1: it answers HEAD, bits 2 to 7: bytes that arrive at a time, 0 for all at
// once), then the byte stream. It is parsed message by message until it is refused or ends.

#include <algorithm>

#include "engine/api/http_codec.h"
#include "io/check.h"
#include "tests/fuzz/support/fuzz.h"

namespace fuzz {

namespace {

using namespace engine::api;

constexpr HttpLimits kLimits{.header_bytes = 2048, .body_bytes = 4096};

bool is_framing(const std::string& name) {
  const Header header{name, ""};
  for (const char* own : {"Host", "Content-Length", "Transfer-Encoding", "Trailer", "Connection", "Proxy-Connection", "Upgrade"}) {
    if (find_header({header}, own) != nullptr) return true;
  }
  return false;
}

// What encode_request() and encode_response() do not write themselves.
std::vector<Header> others(const std::vector<Header>& headers) {
  std::vector<Header> kept;
  for (const Header& header : headers) {
    if (!is_framing(header.name)) kept.push_back(header);
  }
  return kept;
}

bool same(const std::vector<Header>& a, const std::vector<Header>& b) {
  bool equal = a.size() == b.size();
  for (std::size_t i = 0; equal && i < a.size(); ++i) equal = a[i].name == b[i].name && a[i].value == b[i].value;
  return equal;
}

void check_request(HttpRequest request) {
  NARAD_CHECK(request.body.size() <= kLimits.body_bytes, "a body above the limit is refused");
  NARAD_CHECK(!request.target.empty() && (request.target[0] == '/' || request.target == "*"), "the target is a path");
  request.headers = others(request.headers);
  std::string bytes = encode_request(request, "host");
  HttpLimits wide = kLimits;
  wide.header_bytes *= 2;
  HttpRequestParser parser(wide);
  NARAD_CHECK(parser.parse(bytes) == HttpRequestParser::State::complete && bytes.empty(), "what was parsed can be sent on");
  const HttpRequest again = parser.take();
  NARAD_CHECK(again.method == request.method && again.target == request.target && again.body == request.body,
              "decode(encode(x)) is x");
  NARAD_CHECK(same(others(again.headers), request.headers), "headers are passed on as they came");
}

void read_requests(std::string_view bytes, std::size_t piece) {
  std::string buffer;
  bool is_open = true;
  while (is_open) {
    HttpRequestParser parser(kLimits);
    HttpRequestParser::State state = HttpRequestParser::State::need_more;
    while (state == HttpRequestParser::State::need_more) {
      const std::size_t before = buffer.size();
      if (before > 0) state = parser.parse(buffer);
      if (state != HttpRequestParser::State::need_more || bytes.empty()) break;
      parser.take_expects_continue();
      buffer.append(bytes.substr(0, piece));
      bytes.remove_prefix(std::min(piece, bytes.size()));
    }
    if (state == HttpRequestParser::State::failed) {
      const int status = parser.error_status();
      NARAD_CHECK(status == 400 || status == 413 || status == 431 || status == 501 || status == 505, "a refusal has a status");
      NARAD_CHECK(!parser.error_text().empty(), "a refusal has a reason");
      return;
    }
    if (state == HttpRequestParser::State::need_more) return;
    is_open = parser.keep_alive();
    check_request(parser.take());
  }
}

void check_response(const HttpResponse& response, bool is_head) {
  HttpResponse sent = response;
  sent.headers = others(sent.headers);
  std::erase_if(sent.headers, [](const Header& header) {
    return find_header({header}, "Content-Type") != nullptr || find_header({header}, "Date") != nullptr;
  });
  if (sent.status < 200) return;  // an interim answer has no body and is followed by the real one
  std::string bytes = encode_response(sent, io::WallTime{}, true, is_head);
  HttpResponseParser parser(is_head);
  HttpResponseParser::State state = parser.parse(bytes);
  NARAD_CHECK(state == HttpResponseParser::State::complete && bytes.empty(), "what was parsed can be sent on");
  const HttpResponse again = parser.take();
  NARAD_CHECK(again.status == sent.status && again.content_type == sent.content_type, "decode(encode(x)) is x");
  const bool has_body = !is_head && sent.status != 204 && sent.status != 304;
  NARAD_CHECK(again.body == (has_body ? sent.body : std::string()), "a body comes over whole");
}

void read_responses(std::string_view bytes, std::size_t piece, bool is_head) {
  std::string buffer;
  for (;;) {
    HttpResponseParser parser(is_head);
    HttpResponseParser::State state = HttpResponseParser::State::need_more;
    while (state == HttpResponseParser::State::need_more) {
      if (!buffer.empty()) state = parser.parse(buffer);
      if (state != HttpResponseParser::State::need_more) break;
      if (bytes.empty()) {
        state = parser.end();
        break;
      }
      buffer.append(bytes.substr(0, piece));
      bytes.remove_prefix(std::min(piece, bytes.size()));
    }
    if (state != HttpResponseParser::State::complete) {
      NARAD_CHECK(!parser.error_text().empty(), "a refusal has a reason");
      return;
    }
    const bool is_open = parser.keep_alive();
    check_response(parser.take(), is_head);
    if (!is_open || (bytes.empty() && buffer.empty())) return;
  }
}

}  // namespace

std::vector<std::string> seeds() {
  const std::vector<std::string> requests = {
      encode_request({"GET", "/v1/topics?limit=5", {{"Accept", "application/json"}}, ""}, "127.0.0.1:8080"),
      encode_request({"POST", "/v1/topics", {{"Content-Type", "application/json"}}, R"({"name":"orders"})"}, "localhost"),
      encode_request({"DELETE", "/v1/topics/a%20b", {}, ""}, "localhost") + encode_request({}, "localhost"),
      "PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nTail: x\r\n\r\n",
      "POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
      "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
  };
  const std::vector<std::string> responses = {
      encode_response({200, "application/json", {{"X-Narad-Index", "7"}}, "{}\n"}, io::WallTime{}, true, false),
      encode_response({204, "", {}, ""}, io::WallTime{}, false, false),
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\n\r\nuntil the end",
      "HTTP/1.1 200 OK\r\nContent-Length: 6111179\r\n\r\n{}",
  };
  std::vector<std::string> all;
  for (const char piece : {'\0', '\24'}) {
    for (const std::string& each : requests) all.push_back(std::string(1, piece) + each);
    for (const std::string& each : responses) all.push_back(std::string(1, static_cast<char>(piece | 1)) + each);
  }
  return all;
}

void run_one(std::string_view bytes) {
  Input input(bytes);
  const std::uint8_t mode = input.byte();
  const std::string_view stream = input.rest();
  const std::size_t piece = mode >> 2 == 0 ? std::max<std::size_t>(stream.size(), 1) : mode >> 2;
  // Parsers, copies for the way back and the error texts: what may be held at once is bounded by the limits, what is
  // allocated by the bytes that arrive.
  const AllocationBound bound(256 * stream.size() + (64 << 10));
  if ((mode & 1) == 0) {
    read_requests(stream, piece);
  } else {
    read_responses(stream, piece, (mode & 2) != 0);
  }
}

}  // namespace fuzz
