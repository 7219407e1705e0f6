#include "bench/support/load.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <utility>

namespace bench {

namespace {

using SteadyClock = std::chrono::steady_clock;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(SteadyClock::now().time_since_epoch()).count();
}

void put_number(std::string& out, uint64_t value, int bytes) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(value >> shift));
  }
}

void put_bytes(std::string& out, const std::string& bytes) {
  put_number(out, bytes.size(), 4);
  out += bytes;
}

uint64_t get_number(const std::string& in, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) {
    value = value << 8 | static_cast<unsigned char>(in[at + static_cast<size_t>(i)]);
  }
  return value;
}

class Connection {
 public:
  Connection(int port, const Protocol& protocol) : protocol_(protocol), fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot connect to port " + std::to_string(port));
    }
  }
  ~Connection() { close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const { return fd_; }

  void send(uint64_t number) {
    const std::string request = protocol_.request(number);
    sent_at_ns_ = now_ns();
    if (write(fd_, request.data(), request.size()) != static_cast<ssize_t>(request.size())) {
      throw std::runtime_error("a request could not be sent");
    }
  }

  // Reads what is there; true when the answer is complete, which is then counted in `result`.
  bool receive(LoadResult& result) {
    char buffer[16384];
    const ssize_t got = read(fd_, buffer, sizeof buffer);
    if (got <= 0) {
      throw std::runtime_error("the server closed a connection: " + received_.substr(0, 200));
    }
    received_.append(buffer, static_cast<size_t>(got));
    bool accepted = false;
    const size_t used = protocol_.answer(received_, accepted);
    if (used == 0) {
      return false;
    }
    if (accepted) {
      ++result.accepted;
      result.latencies_ns.push_back(now_ns() - sent_at_ns_);
    } else {
      if (++result.refused == 1) {
        result.first_refusal = received_.substr(0, used);
      }
    }
    received_.erase(0, used);
    return true;
  }

 private:
  const Protocol& protocol_;
  int fd_;
  int64_t sent_at_ns_ = 0;
  std::string received_;
};

size_t http_answer(const std::string& received, bool& accepted) {
  const size_t head = received.find("\r\n\r\n");
  if (head == std::string::npos) {
    return 0;
  }
  accepted = received.size() > 9 && received[9] == '2';
  const char* const kLength = "\r\ncontent-length:";
  size_t length = std::string::npos;
  for (size_t at = 0; at < head; ++at) {
    size_t i = 0;
    while (kLength[i] != 0 && static_cast<char>(std::tolower(received[at + i])) == kLength[i]) {
      ++i;
    }
    if (kLength[i] == 0) {
      length = static_cast<size_t>(std::atoll(received.c_str() + at + i));
      break;
    }
  }
  if (length == std::string::npos) {
    throw std::runtime_error("an answer without a length: " + received.substr(0, 200));
  }
  return received.size() >= head + 4 + length ? head + 4 + length : 0;
}

}  // namespace

Protocol http_protocol(std::function<std::string(uint64_t)> target, std::function<std::string(uint64_t)> body) {
  return {[target, body](uint64_t n) {
            const std::string content = body(n);
            return "POST " + target(n) + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
                   std::to_string(content.size()) + "\r\n\r\n" + content;
          },
          http_answer};
}

Protocol create_topic_protocol(std::function<std::string(uint64_t)> topic, std::function<std::string(uint64_t)> body) {
  return {[topic, body](uint64_t n) {
            std::string payload;
            payload.push_back(4);
            put_bytes(payload, topic(n));
            put_bytes(payload, body(n));
            std::string frame = "NRS1";
            frame.push_back(1);
            frame.push_back(8);
            put_number(frame, 0, 2);
            put_number(frame, n, 8);
            put_number(frame, payload.size(), 4);
            return frame + payload;
          },
          [](const std::string& received, bool& accepted) -> size_t {
            if (received.size() < 22 || received.size() < 20 + get_number(received, 16, 4)) {
              return 0;
            }
            accepted = get_number(received, 20, 2) == 201;
            return 20 + get_number(received, 16, 4);
          }};
}

LoadResult run_load(int port, int clients, double seconds, const Protocol& protocol, uint64_t& next) {
  const int poll = epoll_create1(0);
  std::vector<std::unique_ptr<Connection>> connections;
  for (int i = 0; i < clients; ++i) {
    connections.push_back(std::make_unique<Connection>(port, protocol));
    epoll_event interest{};
    interest.events = EPOLLIN;
    interest.data.ptr = connections.back().get();
    epoll_ctl(poll, EPOLL_CTL_ADD, connections.back()->fd(), &interest);
  }
  LoadResult result;
  const int64_t begin = now_ns();
  const int64_t end = begin + static_cast<int64_t>(seconds * 1e9);
  for (const auto& connection : connections) {
    connection->send(next++);
  }
  int under_way = clients;
  while (under_way > 0) {
    epoll_event events[256];
    const int ready = epoll_wait(poll, events, 256, 10'000);
    if (ready <= 0) {
      throw std::runtime_error("no answer for 10 seconds");
    }
    for (int i = 0; i < ready; ++i) {
      Connection& connection = *static_cast<Connection*>(events[i].data.ptr);
      if (!connection.receive(result)) {
        continue;
      }
      if (now_ns() < end) {
        connection.send(next++);
      } else {
        --under_way;
      }
    }
  }
  result.seconds = static_cast<double>(now_ns() - begin) / 1e9;
  close(poll);
  return result;
}

}  // namespace bench
