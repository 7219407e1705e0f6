// What arrives from outside, in any pieces and any bytes: requests mean the same however they were cut, and no bytes do harm.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "engine/api/http_codec.h"
#include "engine/api/url.h"
#include "engine/cluster/node_frames.h"
#include "engine/config.h"
#include "engine/json_text.h"

namespace engine {
namespace {

using api::HttpRequest;
using api::HttpRequestParser;

std::string printable() {
  return *rc::gen::container<std::string>(rc::gen::elementOf(std::string("abcdefghijklmnopqrstuvwxyz0123456789-_.")));
}

// The requests that `bytes` hold, parsed from pieces of the drawn sizes.
std::vector<HttpRequest> parse_in_pieces(std::string bytes) {
  std::vector<HttpRequest> requests;
  std::string buffer;
  auto parser = std::make_unique<HttpRequestParser>(api::HttpLimits{});
  while (!bytes.empty()) {
    const size_t piece = *rc::gen::inRange<size_t>(1, bytes.size() + 1);
    buffer += bytes.substr(0, piece);
    bytes.erase(0, piece);
    while (!buffer.empty()) {
      const HttpRequestParser::State state = parser->parse(buffer);
      RC_ASSERT(state != HttpRequestParser::State::failed);
      if (state == HttpRequestParser::State::need_more) {
        break;
      }
      requests.push_back(parser->take());
      parser = std::make_unique<HttpRequestParser>(api::HttpLimits{});
    }
  }
  return requests;
}

RC_GTEST_PROP(HttpProperty, RequestsMeanTheSameHoweverTheyAreCut, ()) {
  std::vector<HttpRequest> sent(*rc::gen::inRange<size_t>(1, 4));
  std::string bytes;
  for (HttpRequest& request : sent) {
    request.method = *rc::gen::element<std::string>("GET", "POST", "DELETE", "PATCH");
    request.target = "/" + printable();
    request.headers = {{"X-One", printable() + "v"}};
    request.body = request.method == "GET" ? "" : *rc::gen::arbitrary<std::string>();
    bytes += api::encode_request(request, "host");
  }
  const std::vector<HttpRequest> read = parse_in_pieces(bytes);
  RC_ASSERT(read.size() == sent.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    RC_ASSERT(read[i].method == sent[i].method);
    RC_ASSERT(read[i].target == sent[i].target);
    RC_ASSERT(read[i].body == sent[i].body);
    RC_ASSERT(*read[i].header("x-one") == sent[i].headers[0].value);
  }
}

RC_GTEST_PROP(HttpProperty, AnyBytesAreTakenRefusedOrWaitedFor, (std::string bytes)) {
  const std::string prefix =
      *rc::gen::element<std::string>("", "GET ", "GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
                                     "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n");
  std::string buffer = prefix + bytes;
  HttpRequestParser parser({});
  if (parser.parse(buffer) == HttpRequestParser::State::failed) {
    RC_ASSERT(parser.error_status() >= 400);
    RC_ASSERT(!parser.error_text().empty());
  }
  api::HttpResponseParser response(false);
  buffer = "HTTP/1.1 200 OK\r\n" + bytes;
  (void)response.parse(buffer);
}

RC_GTEST_PROP(UrlProperty, EscapedSegmentsComeBack, (std::string text)) {
  RC_PRE(!text.empty());
  const auto target = api::parse_target("/v1/" + api::url_escape(text) + "?q=" + api::url_escape(text));
  RC_ASSERT(target.has_value());
  RC_ASSERT(target->segments.size() == 2u);
  RC_ASSERT(target->segments[1] == text);
  RC_ASSERT(target->value("q") == text);
}

RC_GTEST_PROP(FrameProperty, AnyPayloadIsDecodedOrRefused, (std::string bytes)) {
  const std::string payload = "\x04" + bytes;
  const auto create = cluster::decode_create_topic(payload);
  if (create.ok() && create->actor.has_value()) {
    RC_ASSERT(cluster::encode(*create) == payload);
  }
  (void)cluster::decode_alter_topic(payload);
  (void)cluster::decode_delete_topic(payload);
  (void)cluster::decode_get_topic(payload);
  (void)cluster::decode_reply(bytes);
  (void)cluster::decode_error_text(bytes);
  if (bytes.size() >= cluster::kFrameHeaderBytes) {
    (void)cluster::decode_frame_header(bytes);
  }
}

RC_GTEST_PROP(DurationProperty, AFormattedDurationReadsAsItself, ()) {
  const auto duration = io::Duration(*rc::gen::inRange<int64_t>(0, 4'000'000'000'000'000));
  const auto read = parse_duration(format_duration(duration));
  RC_ASSERT(read.ok());
  RC_ASSERT(*read == duration);
}

RC_GTEST_PROP(JsonProperty, QuotedTextHasNoBareControlByteOrQuote, (std::string text)) {
  const std::string quoted = json_quoted(text);
  RC_ASSERT(quoted.size() >= 2u);
  for (size_t i = 1; i + 1 < quoted.size(); ++i) {
    RC_ASSERT(static_cast<unsigned char>(quoted[i]) >= 0x20);
    if (quoted[i] == '\\') {
      ++i;
    } else {
      RC_ASSERT(quoted[i] != '"');
    }
  }
}

}  // namespace
}  // namespace engine
