#include "engine/api/http_server.h"

#include <optional>
#include <utility>

#include "io/check.h"

namespace engine::api {

namespace {

constexpr size_t kReadBytes = 16 * 1024;
// How long, and for how many bytes, a refused client is heard out so that it reads the answer instead of a reset.
constexpr io::Duration kLingerTime = std::chrono::seconds(1);
constexpr size_t kLingerBytes = 2u << 20;
// After a failed accept (no file descriptors left, say) the next try waits this long.
constexpr io::Duration kAcceptPause = std::chrono::milliseconds(50);

// 413 has the shape of the API's errors, as a handler's refusal would; the others are HTTP's own and plain text.
HttpResponse text_response(int status, const std::string& text) {
  HttpResponse response;
  response.status = status;
  if (status == 413) {
    response.content_type = "application/json";
    response.body = R"({"error":")" + text + "\"}\n";
  } else {
    response.content_type = "text/plain; charset=utf-8";
    response.body = text + "\n";
  }
  return response;
}

}  // namespace

struct HttpServer::Connection {
  std::unique_ptr<io::Stream> stream;
  std::string buffer;  // read and not parsed yet
  bool busy = false;   // a request has begun and is not answered yet
};

HttpServer::HttpServer(io::Env& env, HttpServerSettings settings, Handler handler)
    : env_(env), settings_(settings), handler_(std::move(handler)) {}

HttpServer::~HttpServer() = default;

io::Status HttpServer::listen(std::string_view address) {
  NARAD_CHECK(listener_ == nullptr, "a server listens once");
  io::Result<std::unique_ptr<io::Listener>> listener = env_.net.listen(address);
  if (!listener.ok()) {
    return listener.error();
  }
  listener_ = std::move(*listener);
  address_ = listener_->address();
  return {};
}

std::string HttpServer::address() const { return address_; }

void HttpServer::run(io::Scope& scope) {
  NARAD_CHECK(listener_ != nullptr, "a server listens before it serves");
  accepting_ = scope.spawn("http/accept", [this, &scope] { accept_loop(scope); });
}

void HttpServer::accept_loop(io::Scope& scope) {
  bool failing = false;
  while (!draining_) {
    io::Result<std::unique_ptr<io::Stream>> stream = listener_->accept();
    if (!stream.ok()) {
      if (draining_) {
        return;
      }
      if (!failing) {
        env_.log.error("http server error", {{"op", "accept"}, {"err", stream.error().to_text()}});
      }
      failing = true;
      io::sleep_for(kAcceptPause);
      continue;
    }
    failing = false;
    if (settings_.max_connections != 0 && connections_.size() >= settings_.max_connections) {
      refuse(std::move(*stream));
      continue;
    }
    connections_.emplace_back();
    auto place = std::prev(connections_.end());
    place->stream = std::move(*stream);
    scope.spawn("http/connection", [this, place] {
      struct Leave {
        HttpServer& server;
        std::list<Connection>::iterator place;
        ~Leave() {
          server.connections_.erase(place);
          server.changed_.notify_all();
        }
      } leave{*this, place};
      serve(*place);
    });
  }
}

// Above the limit a client is told so in one write that must not wait, and let go.
void HttpServer::refuse(std::unique_ptr<io::Stream> stream) {
  const HttpResponse response = text_response(503, "too many connections");
  (void)stream->write(encode_response(response, env_.clock.wall(), false, false), env_.now());
}

void HttpServer::serve(Connection& connection) {
  while (!draining_ && serve_one(connection)) {
  }
}

bool HttpServer::serve_one(Connection& connection) {
  std::optional<HttpRequestParser> parser(std::in_place, settings_.limits);
  io::Instant deadline = env_.after(settings_.idle_timeout);
  bool begun = false;
  struct Busy {
    HttpServer& server;
    Connection& connection;
    bool counted = false;
    uint64_t bytes = 0;
    void begin() {
      counted = true;
      connection.busy = true;
      ++server.in_flight_;
    }
    void hold(uint64_t more) {
      bytes += more;
      server.unfinished_bytes_ += more;
    }
    void let_go() {
      server.unfinished_bytes_ -= bytes;
      bytes = 0;
    }
    ~Busy() {
      let_go();
      if (counted) {
        connection.busy = false;
        --server.in_flight_;
        server.changed_.notify_all();
      }
    }
  } busy{*this, connection};

  while (true) {
    if (!begun && !connection.buffer.empty()) {
      begun = true;
      deadline = env_.after(settings_.read_timeout);
      busy.begin();
    }
    if (begun) {
      const HttpRequestParser::State state = parser->parse(connection.buffer);
      if (state == HttpRequestParser::State::complete) {
        return answer(connection, parser->take(), parser->keep_alive() && !draining_);
      }
      if (state == HttpRequestParser::State::failed) {
        refuse_request(connection, parser->error_status(), parser->error_text());
        return false;
      }
      if (parser->take_expects_continue() && !write(connection, "HTTP/1.1 100 Continue\r\n\r\n")) {
        return false;
      }
    }
    io::Result<std::string> bytes = connection.stream->read(kReadBytes, deadline);
    if (bytes.is(io::ErrorKind::timed_out)) {
      if (begun) {
        refuse_request(connection, 408, "the request did not arrive in time");
      }
      return false;
    }
    if (!bytes.ok()) {
      return false;
    }
    if (bytes->empty()) {
      if (begun) {
        refuse_request(connection, 400, "malformed HTTP request: it ended early");
      }
      return false;
    }
    busy.hold(bytes->size());
    if (unfinished_bytes_ > settings_.unfinished_bytes_max) {
      parser.reset();
      connection.buffer = std::string();
      busy.let_go();
      refuse_request(connection, 503, "too many request bytes in flight");
      return false;
    }
    if (connection.buffer.empty()) {
      connection.buffer = std::move(*bytes);
    } else {
      connection.buffer += *bytes;
    }
  }
}

bool HttpServer::answer(Connection& connection, const HttpRequest& request, bool keep_alive) {
  const HttpResponse response = handler_(request);
  keep_alive = keep_alive && !draining_;
  std::string bytes = encode_response(response, env_.clock.wall(), keep_alive, request.method == "HEAD");
  if (!write(connection, std::move(bytes))) {
    return false;
  }
  if (!keep_alive) {
    (void)connection.stream->shutdown_write();
  }
  return keep_alive;
}

// Answers, then hears the client out for a moment: closing with unread bytes would reset the connection and take the answer
// with it.
void HttpServer::refuse_request(Connection& connection, int status, const std::string& text) {
  if (!write(connection, encode_response(text_response(status, text), env_.clock.wall(), false, false))) {
    return;
  }
  (void)connection.stream->shutdown_write();
  const io::Instant deadline = env_.after(kLingerTime);
  for (size_t heard = 0; heard < kLingerBytes;) {
    const io::Result<std::string> bytes = connection.stream->read(kReadBytes, deadline);
    if (!bytes.ok() || bytes->empty()) {
      return;
    }
    heard += bytes->size();
  }
}

bool HttpServer::write(Connection& connection, std::string bytes) {
  return connection.stream->write(std::move(bytes), env_.after(settings_.write_timeout)).ok();
}

size_t HttpServer::drain(io::Instant deadline) {
  draining_ = true;
  accepting_.cancel();
  accepting_.join();
  listener_.reset();
  for (Connection& connection : connections_) {
    if (!connection.busy) {
      connection.stream->close();
    }
  }
  while (!connections_.empty() && changed_.wait(deadline)) {
  }
  const size_t cut_off = in_flight_;
  for (Connection& connection : connections_) {
    connection.stream->close();
  }
  return cut_off;
}

}  // namespace engine::api
