// HTTP/1.1 on the wire: an incremental request parser, a response parser and writers for both. Boost.Beast does the parsing and
// stays behind this header, in one source file, because it costs that file ten seconds to compile.
//
// Bounded: a header block above the limit, a body above the limit, and a chunk header that never ends are all refused while
// they arrive; no parser keeps more than limits.header_bytes plus limits.body_bytes and one read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/api/http_types.h"
#include "io/time.h"

namespace engine::api {

struct HttpLimits {
  uint32_t header_bytes = 64 * 1024;
  uint64_t body_bytes = 1024 * 1024;
};

// One request (server side). Feed it until it is complete or failed; make a new one for the next request.
class HttpRequestParser {
 public:
  explicit HttpRequestParser(HttpLimits limits);
  ~HttpRequestParser();
  HttpRequestParser(const HttpRequestParser&) = delete;
  HttpRequestParser& operator=(const HttpRequestParser&) = delete;

  enum class State { need_more, complete, failed };
  // Takes what it can off the front of `buffer`; the rest (the next pipelined request, or a part that is not whole yet) stays.
  State parse(std::string& buffer);

  // Whether any byte of the request has been seen; false: the connection is idle between requests.
  bool started(const std::string& buffer) const;
  // True once, when the header block is complete, asks for "100 Continue" and the body has not begun.
  bool take_expects_continue();
  // complete: whether the connection may carry another request.
  bool keep_alive() const;
  // complete: the request, moved out.
  HttpRequest take();

  // failed: what to answer before closing (400, 413, 431, 501, 505) and why.
  int error_status() const;
  const std::string& error_text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One response (client side). `is_head`: the answer to HEAD has no body.
class HttpResponseParser {
 public:
  explicit HttpResponseParser(bool is_head);
  ~HttpResponseParser();
  HttpResponseParser(const HttpResponseParser&) = delete;
  HttpResponseParser& operator=(const HttpResponseParser&) = delete;

  enum class State { need_more, complete, failed };
  State parse(std::string& buffer);
  // The stream has ended: a body without a length is complete now, anything else failed.
  State end();
  bool keep_alive() const;
  HttpResponse take();
  const std::string& error_text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The bytes of a response: status line, Date, Content-Type, the response's own headers, Content-Length, Connection, body.
// `head_only`: the same without the body (HEAD). 1xx, 204 and 304 never carry a body or a length.
std::string encode_response(const HttpResponse& response, io::WallTime now, bool keep_alive, bool head_only);
// The bytes of a request; adds Host and, when there is a body or the method usually has one, Content-Length.
std::string encode_request(const HttpRequest& request, std::string_view host);

// "Not Found"; "Unknown" for a status that is none.
std::string_view reason_phrase(int status);
// "Mon, 30 Nov 2026 17:52:25 GMT"
std::string http_date(io::WallTime now);

}  // namespace engine::api
