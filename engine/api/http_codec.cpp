#include "engine/api/http_codec.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <charconv>
#include <cstdio>

#include "io/check.h"

namespace engine::api {

namespace http = boost::beast::http;

namespace {

constexpr uint64_t kResponseBodyBytesMax = 64u << 20;
// What may stand unparsed in a buffer beside a header block: a chunk header, a piece of a body.
constexpr size_t kUnparsedSlackBytes = 64 * 1024;

bool same_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) {
    return false;
  }
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  for (size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) {
      return false;
    }
  }
  return true;
}

std::string_view to_view(boost::beast::string_view text) { return {text.data(), text.size()}; }

// The least that ends a chunked body: "0\r\n\r\n".
constexpr size_t kLastChunkBytesMin = 5;

// A body in a string that grows with what arrives. Beast's string_body makes room for all that a Content-Length promises, before the
// first byte of it: a header of 60 bytes would cost its reader a megabyte.
struct ArrivedBody {
  using value_type = std::string;

  class reader {
   public:
    template <bool isRequest, typename Fields>
    reader(http::header<isRequest, Fields>&, std::string& body) : body_(body) {}
    void init(const boost::optional<std::uint64_t>&, boost::beast::error_code& error) { error = {}; }
    template <typename Buffers>
    std::size_t put(const Buffers& buffers, boost::beast::error_code& error) {
      error = {};
      const std::size_t before = body_.size();
      for (auto at = boost::asio::buffer_sequence_begin(buffers); at != boost::asio::buffer_sequence_end(buffers); ++at) {
        const boost::asio::const_buffer piece = *at;
        body_.append(static_cast<const char*>(piece.data()), piece.size());
      }
      return body_.size() - before;
    }
    void finish(boost::beast::error_code& error) { error = {}; }

   private:
    std::string& body_;
  };
};

// Feeds `parser` from the front of `buffer` until the message is done, an error occurs or bytes run out.
//
// What may be the first bytes of a last chunk is held back until it can be the whole: Beast (1.81) takes it for granted that an
// empty body's last chunk, once looked at, is not shown to it again with less than that.
template <typename Parser>
boost::beast::error_code feed(Parser& parser, std::string& buffer) {
  size_t used = 0;
  boost::beast::error_code error;
  while (used < buffer.size() && !parser.is_done()) {
    const bool may_be_last_chunk = parser.is_header_done() && parser.chunked() && buffer[used] == '0';
    if (may_be_last_chunk && buffer.size() - used < kLastChunkBytesMin) {
      break;
    }
    const size_t taken = parser.put(boost::asio::const_buffer(buffer.data() + used, buffer.size() - used), error);
    used += taken;
    if (error == http::error::need_more) {
      error = {};
      if (taken == 0) {
        break;
      }
      continue;
    }
    if (error || taken == 0) {
      break;
    }
  }
  buffer.erase(0, used);
  return error;
}

template <typename Fields>
std::vector<Header> copy_fields(const Fields& fields) {
  std::vector<Header> headers;
  for (const auto& field : fields) {
    headers.push_back({std::string(to_view(field.name_string())), std::string(to_view(field.value()))});
  }
  return headers;
}

void append_number(std::string& out, uint64_t value) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

bool may_carry_body(int status) { return status >= 200 && status != 204 && status != 304; }

}  // namespace

const std::string* find_header(const std::vector<Header>& headers, std::string_view name) {
  for (const Header& header : headers) {
    if (same_ignoring_case(header.name, name)) {
      return &header.value;
    }
  }
  return nullptr;
}

// ---- Requests ----------------------------------------------------------------------------------------------------------------

struct HttpRequestParser::Impl {
  http::request_parser<ArrivedBody> parser;
  HttpLimits limits;
  bool failed = false;
  bool continue_taken = false;
  int status = 400;
  std::string text;

  void fail_with(int code, std::string why) {
    failed = true;
    status = code;
    text = std::move(why);
  }

  void judge(const boost::beast::error_code& error) {
    if (error == http::error::header_limit) {
      fail_with(431, "request header fields too large");
    } else if (error == http::error::body_limit) {
      fail_with(413, "request body too large");
    } else if (error == http::error::bad_version) {
      fail_with(505, "HTTP version not supported");
    } else {
      fail_with(400, "malformed HTTP request: " + error.message());
    }
  }

  // What Beast lets pass and HTTP does not.
  void judge_header() {
    const auto& message = parser.get();
    if (message.version() != 10 && message.version() != 11) {
      fail_with(505, "HTTP version not supported");
    } else if (message.version() == 11 && message.find(http::field::host) == message.end()) {
      fail_with(400, "malformed HTTP request: missing Host header");
    } else if (message.find(http::field::transfer_encoding) != message.end() && !parser.chunked()) {
      fail_with(501, "unsupported transfer encoding");
    } else if (message.target().empty() || (message.target().front() != '/' && message.target() != "*")) {
      fail_with(400, "malformed HTTP request: the target is not a path");
    }
  }
};

HttpRequestParser::HttpRequestParser(HttpLimits limits) : impl_(std::make_unique<Impl>()) {
  impl_->limits = limits;
  impl_->parser.header_limit(limits.header_bytes);
  impl_->parser.body_limit(limits.body_bytes);
}

HttpRequestParser::~HttpRequestParser() = default;

HttpRequestParser::State HttpRequestParser::parse(std::string& buffer) {
  Impl& impl = *impl_;
  NARAD_CHECK(!impl.failed, "a failed parser is fed no more");
  const bool had_header = impl.parser.is_header_done();
  const boost::beast::error_code error = feed(impl.parser, buffer);
  if (error) {
    impl.judge(error);
    return State::failed;
  }
  if (!had_header && impl.parser.is_header_done()) {
    impl.judge_header();
    if (impl.failed) {
      return State::failed;
    }
  }
  if (impl.parser.is_done()) {
    return State::complete;
  }
  if (buffer.size() > impl.limits.header_bytes + kUnparsedSlackBytes) {
    impl.fail_with(400, "malformed HTTP request: a line without end");
    return State::failed;
  }
  return State::need_more;
}

bool HttpRequestParser::started(const std::string& buffer) const {
  return !buffer.empty() || impl_->parser.got_some() || impl_->parser.is_header_done();
}

bool HttpRequestParser::take_expects_continue() {
  Impl& impl = *impl_;
  if (impl.failed || impl.continue_taken || !impl.parser.is_header_done() || impl.parser.is_done()) {
    return false;
  }
  impl.continue_taken = true;
  return same_ignoring_case(to_view(impl.parser.get()[http::field::expect]), "100-continue");
}

// An HTTP/1.0 client may ask to keep the connection; it is not worth a second way of answering.
bool HttpRequestParser::keep_alive() const {
  return impl_->parser.get().version() == 11 && impl_->parser.keep_alive();
}

HttpRequest HttpRequestParser::take() {
  NARAD_CHECK(impl_->parser.is_done(), "a request is taken when it is complete");
  auto& message = impl_->parser.get();
  HttpRequest request;
  request.method = std::string(to_view(message.method_string()));
  request.target = std::string(to_view(message.target()));
  request.headers = copy_fields(message.base());
  request.body = std::move(message.body());
  return request;
}

int HttpRequestParser::error_status() const { return impl_->status; }
const std::string& HttpRequestParser::error_text() const { return impl_->text; }

// ---- Responses ---------------------------------------------------------------------------------------------------------------

struct HttpResponseParser::Impl {
  http::response_parser<ArrivedBody> parser;
  std::string text;
};

HttpResponseParser::HttpResponseParser(bool is_head) : impl_(std::make_unique<Impl>()) {
  impl_->parser.header_limit(64 * 1024);
  impl_->parser.body_limit(kResponseBodyBytesMax);
  impl_->parser.skip(is_head);
}

HttpResponseParser::~HttpResponseParser() = default;

HttpResponseParser::State HttpResponseParser::parse(std::string& buffer) {
  const boost::beast::error_code error = feed(impl_->parser, buffer);
  if (error) {
    impl_->text = "malformed HTTP response: " + error.message();
    return State::failed;
  }
  return impl_->parser.is_done() ? State::complete : State::need_more;
}

HttpResponseParser::State HttpResponseParser::end() {
  boost::beast::error_code error;
  if (impl_->parser.got_some()) {
    impl_->parser.put_eof(error);
  }
  if (error || !impl_->parser.is_done()) {
    impl_->text = "the connection ended before the response was complete";
    return State::failed;
  }
  return State::complete;
}

bool HttpResponseParser::keep_alive() const { return impl_->parser.keep_alive(); }

HttpResponse HttpResponseParser::take() {
  NARAD_CHECK(impl_->parser.is_done(), "a response is taken when it is complete");
  auto& message = impl_->parser.get();
  HttpResponse response;
  response.status = static_cast<int>(message.result_int());
  response.content_type = std::string(to_view(message[http::field::content_type]));
  response.headers = copy_fields(message.base());
  response.body = std::move(message.body());
  return response;
}

const std::string& HttpResponseParser::error_text() const { return impl_->text; }

// ---- Writing -----------------------------------------------------------------------------------------------------------------

std::string_view reason_phrase(int status) {
  if (status == 499) {
    return "Client Closed Request";
  }
  const auto known = http::int_to_status(static_cast<unsigned>(status));
  return known == http::status::unknown ? std::string_view("Unknown") : to_view(http::obsolete_reason(known));
}

std::string http_date(io::WallTime now) {
  static constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const int64_t seconds = io::to_unix_seconds(now);
  const int64_t day = seconds >= 0 ? seconds / 86400 : (seconds - 86399) / 86400;
  const int64_t rest = seconds - day * 86400;
  const std::chrono::sys_days date{std::chrono::days(day)};
  const std::chrono::year_month_day ymd(date);
  std::array<char, 40> text{};
  const int length =
      std::snprintf(text.data(), text.size(), "%s, %02u %s %04d %02d:%02d:%02d GMT",
                    kDays[std::chrono::weekday(date).c_encoding()], static_cast<unsigned>(ymd.day()),
                    kMonths[static_cast<unsigned>(ymd.month()) - 1], static_cast<int>(ymd.year()),
                    static_cast<int>(rest / 3600), static_cast<int>(rest / 60 % 60), static_cast<int>(rest % 60));
  return std::string(text.data(), static_cast<size_t>(length));
}

std::string encode_response(const HttpResponse& response, io::WallTime now, bool keep_alive, bool head_only) {
  std::string out;
  out.reserve(192 + response.body.size());
  out.append("HTTP/1.1 ");
  append_number(out, static_cast<uint64_t>(response.status));
  out.append(" ").append(reason_phrase(response.status)).append("\r\n");
  append_header(out, "Date", http_date(now));
  if (!response.content_type.empty()) {
    append_header(out, "Content-Type", response.content_type);
  }
  for (const Header& header : response.headers) {
    append_header(out, header.name, header.value);
  }
  if (may_carry_body(response.status)) {
    out.append("Content-Length: ");
    append_number(out, response.body.size());
    out.append("\r\n");
  }
  if (!keep_alive) {
    append_header(out, "Connection", "close");
  }
  out.append("\r\n");
  if (!head_only && may_carry_body(response.status)) {
    out.append(response.body);
  }
  return out;
}

std::string encode_request(const HttpRequest& request, std::string_view host) {
  std::string out;
  out.reserve(192 + request.body.size());
  out.append(request.method).append(" ").append(request.target).append(" HTTP/1.1\r\n");
  append_header(out, "Host", host);
  for (const Header& header : request.headers) {
    append_header(out, header.name, header.value);
  }
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT" || request.method == "PATCH") {
    out.append("Content-Length: ");
    append_number(out, request.body.size());
    out.append("\r\n");
  }
  out.append("\r\n").append(request.body);
  return out;
}

}  // namespace engine::api
