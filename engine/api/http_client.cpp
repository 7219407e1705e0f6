#include "engine/api/http_client.h"

#include <utility>

#include "engine/api/http_codec.h"

namespace engine::api {

namespace {
constexpr size_t kReadBytes = 64 * 1024;
}

struct HttpClient::Connection {
  std::unique_ptr<io::Stream> stream;
  std::string buffer;  // read and not parsed yet
};

HttpClient::HttpClient(io::Net& net, std::string address) : net_(net), address_(std::move(address)) {}

HttpClient::~HttpClient() = default;

void HttpClient::close() { connection_.reset(); }

io::Status HttpClient::ensure_connected(io::Instant deadline) {
  if (connection_ != nullptr) {
    // Anything but "nothing yet" means that the server has given the connection up.
    const io::Result<std::string> early = connection_->stream->read(1, io::Instant{});
    if (early.is(io::ErrorKind::timed_out)) {
      return {};
    }
    connection_.reset();
  }
  io::Result<std::unique_ptr<io::Stream>> stream = net_.connect(address_, deadline);
  if (!stream.ok()) {
    return stream.error();
  }
  connection_ = std::make_unique<Connection>();
  connection_->stream = std::move(*stream);
  return {};
}

io::Result<HttpResponse> HttpClient::request(const HttpRequest& request, io::Instant deadline) {
  may_have_arrived_ = false;
  io::Status connected = ensure_connected(deadline);
  if (!connected.ok()) {
    return connected.error();
  }
  // Until the answer is whole the connection is good for nothing else, whichever way this call is left.
  struct CloseUnlessKept {
    HttpClient& client;
    bool kept = false;
    ~CloseUnlessKept() {
      if (!kept) {
        client.connection_.reset();
      }
    }
  } guard{*this};

  may_have_arrived_ = true;
  io::Status written = connection_->stream->write(encode_request(request, address_), deadline);
  if (!written.ok()) {
    return written.error();
  }
  HttpResponseParser parser(request.method == "HEAD");
  while (true) {
    HttpResponseParser::State state = parser.parse(connection_->buffer);
    if (state == HttpResponseParser::State::need_more) {
      io::Result<std::string> bytes = connection_->stream->read(kReadBytes, deadline);
      if (!bytes.ok()) {
        return bytes.error();
      }
      if (!bytes->empty()) {
        connection_->buffer += *bytes;
        continue;
      }
      state = parser.end();
    }
    if (state == HttpResponseParser::State::failed) {
      return io::fail(io::ErrorKind::corrupt, address_ + ": " + parser.error_text());
    }
    guard.kept = parser.keep_alive();
    return parser.take();
  }
}

}  // namespace engine::api
