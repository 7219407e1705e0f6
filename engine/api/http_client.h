// A small HTTP/1.1 client over io::Net: one kept-alive connection to one server, one request at a time. For simulated clients,
// integration tests and benchmarks; the node itself speaks the node protocol to its peers.
//
// It never repeats a request: after a failure the caller learns whether any byte of it may have left (may_have_arrived), which
// is the difference between "refused" and "unknown". A kept connection that the server has closed meanwhile is noticed before
// anything is sent, and replaced.
#pragma once

#include <memory>
#include <string>

#include "engine/api/http_types.h"
#include "io/net.h"
#include "io/result.h"
#include "io/time.h"

namespace engine::api {

class HttpClient {
 public:
  // `address`: host:port. Connects with the first request.
  HttpClient(io::Net& net, std::string address);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // The answer, whatever its status. Adds Host and Content-Length. Errors: what connect, write and read say, `timed_out`,
  // `corrupt` when the answer is no HTTP. After an error the connection is closed; the next request makes a new one.
  io::Result<HttpResponse> request(const HttpRequest& request, io::Instant deadline);

  // About the last request that failed: false when it certainly never reached the server.
  bool may_have_arrived() const { return may_have_arrived_; }

  void close();
  const std::string& address() const { return address_; }

 private:
  struct Connection;
  io::Status ensure_connected(io::Instant deadline);

  io::Net& net_;
  std::string address_;
  std::unique_ptr<Connection> connection_;
  bool may_have_arrived_ = false;
};

}  // namespace engine::api
