// The HTTP/1.1 server: accepts connections, reads requests, calls the handler, writes answers. One fiber a connection, requests
// of one connection in order (pipelined ones wait in the stream), one write a response.
//
// Promises:
//  - bounded memory: connections, header bytes and body bytes have limits, and so have the bytes of all unfinished requests
//    together; what exceeds them is answered 503, 431, 413;
//  - a request that is malformed, ends early or does not arrive within read_timeout is answered (400, 408) where the client can
//    still hear it, and its connection closed; other connections never notice;
//  - `Expect: 100-continue` is answered before the body is read;
//  - drain() lets what has begun end and takes nothing new.
// It knows nothing of routes or of what a body means: that is the handler's.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "engine/api/http_codec.h"
#include "engine/api/http_types.h"
#include "io/env.h"
#include "io/fiber.h"

namespace engine::api {

struct HttpServerSettings {
  HttpLimits limits;
  io::Duration read_timeout = std::chrono::seconds(10);
  io::Duration write_timeout = std::chrono::seconds(30);
  io::Duration idle_timeout = std::chrono::seconds(60);
  uint64_t max_connections = 4096;  // 0: no cap
  uint64_t unfinished_bytes_max = 256u << 20;  // read of requests that are not answered yet, all connections together
};

class HttpServer {
 public:
  // May wait; runs in the connection's fiber.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  HttpServer(io::Env& env, HttpServerSettings settings, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Binds; connections queue up from here. Errors as Net::listen.
  io::Status listen(std::string_view address);
  // The bound address.
  std::string address() const;
  // Serves until `scope` is cancelled or drain() is called.
  void run(io::Scope& scope);

  // Stops accepting, closes idle connections, and waits until the requests in flight have been answered or `deadline` passes;
  // what is left then is cut off. Returns how many were.
  size_t drain(io::Instant deadline);
  bool draining() const { return draining_; }

  size_t connections() const { return connections_.size(); }
  size_t requests_in_flight() const { return in_flight_; }

 private:
  struct Connection;
  void accept_loop(io::Scope& scope);
  void refuse(std::unique_ptr<io::Stream> stream);
  void serve(Connection& connection);
  // One request. False: the connection is to be closed.
  bool serve_one(Connection& connection);
  bool answer(Connection& connection, const HttpRequest& request, bool keep_alive);
  void refuse_request(Connection& connection, int status, const std::string& text);
  bool write(Connection& connection, std::string bytes);

  io::Env& env_;
  HttpServerSettings settings_;
  Handler handler_;
  std::unique_ptr<io::Listener> listener_;
  std::string address_;
  io::Task accepting_;
  bool draining_ = false;
  size_t in_flight_ = 0;
  uint64_t unfinished_bytes_ = 0;
  std::list<Connection> connections_;
  io::Condition changed_;
};

}  // namespace engine::api
