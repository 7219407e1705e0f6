#include "io/real/net.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "io/real/address.h"
#include "io/real/errno.h"
#include "io/real/socket.h"

namespace io::real {

namespace {

constexpr int kBacklog = 4096;
constexpr Duration kListenResolveLimit = 10s;

Error closed_error(const std::string& what) { return fail(ErrorKind::io, what + ": closed here"); }

void set_option(int descriptor, int level, int option) {
  const int on = 1;
  ::setsockopt(descriptor, level, option, &on, sizeof on);
}

// ---- Stream ---------------------------------------------------------------------------------------------------------

class TcpStream final : public Stream {
 public:
  TcpStream(std::unique_ptr<Socket> socket, SocketAddress peer) : socket_(std::move(socket)), peer_(peer) {
    set_option(socket_->descriptor(), IPPROTO_TCP, TCP_NODELAY);
  }

  Result<std::string> read(size_t max, Instant deadline) override;
  Status write(std::string data, Instant deadline) override;
  Status shutdown_write() override;
  void close() override { socket_->close(); }
  std::string peer_address() const override { return peer_.to_text(); }

 private:
  // Marks a direction as in use by one fiber.
  struct Busy {
    explicit Busy(bool& mark) : mark(mark) {
      NARAD_CHECK(!mark, "one fiber uses one direction of a stream at a time");
      mark = true;
    }
    ~Busy() { mark = false; }
    bool& mark;
  };

  std::string connection() const { return "connection with " + peer_.to_text(); }

  std::unique_ptr<Socket> socket_;
  SocketAddress peer_;
  bool write_ended_ = false;
  bool reading_ = false;
  bool writing_ = false;
};

Result<std::string> TcpStream::read(size_t max, Instant deadline) {
  NARAD_CHECK(max > 0, "a read of nothing");
  check_cancelled();
  Busy busy(reading_);
  Loop& loop = socket_->loop();
  loop.pace();
  const size_t wanted = std::min(max, Loop::kScratchBytes);
  while (socket_->is_open()) {
    if (!socket_->readable) {
      if (!socket_->wait_readable(deadline)) {
        return fail(ErrorKind::timed_out, connection() + ": nothing arrived by the deadline");
      }
      continue;
    }
    const ssize_t got = ::recv(socket_->descriptor(), loop.scratch(), wanted, MSG_DONTWAIT);
    if (got >= 0) {
      // The kernel gave all it had: more will be news, unless the end has been news already.
      socket_->readable = static_cast<size_t>(got) == wanted || socket_->ended();
      return std::string(loop.scratch(), static_cast<size_t>(got));
    }
    if (errno == EAGAIN) {
      socket_->readable = false;
    } else if (errno != EINTR) {
      return fail(ErrorKind::io, connection() + ": " + errno_text(errno));
    }
  }
  return closed_error(connection());
}

Status TcpStream::write(std::string data, Instant deadline) {
  check_cancelled();
  Busy busy(writing_);
  if (!socket_->is_open()) {
    return closed_error(connection());
  }
  if (write_ended_) {
    return fail(ErrorKind::invalid, connection() + ": its writing direction has ended");
  }
  // Part of the data may be on its way when this is left by an error, a deadline or cancellation: nothing may follow
  // it.
  struct EndUnlessSent {
    bool& ended;
    bool sent = false;
    ~EndUnlessSent() { ended = ended || !sent; }
  } guard{write_ended_};
  socket_->loop().pace();
  size_t done = 0;
  while (done < data.size()) {
    if (!socket_->is_open()) {
      return closed_error(connection());
    }
    if (!socket_->writable) {
      if (!socket_->wait_writable(deadline)) {
        return fail(ErrorKind::timed_out, connection() + ": the far side did not take the data by the deadline");
      }
      continue;
    }
    const ssize_t sent =
        ::send(socket_->descriptor(), data.data() + done, data.size() - done, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      done += static_cast<size_t>(sent);
    } else if (errno == EAGAIN) {
      socket_->writable = false;
    } else if (errno != EINTR) {
      return fail(ErrorKind::io, connection() + ": " + errno_text(errno));
    }
  }
  guard.sent = true;
  return {};
}

Status TcpStream::shutdown_write() {
  if (!socket_->is_open()) {
    return closed_error(connection());
  }
  write_ended_ = true;
  if (::shutdown(socket_->descriptor(), SHUT_WR) != 0) {
    return fail(ErrorKind::io, connection() + ": " + errno_text(errno));
  }
  return {};
}

// ---- Listener -------------------------------------------------------------------------------------------------------

class TcpListener final : public Listener {
 public:
  explicit TcpListener(std::unique_ptr<Socket> socket)
      : socket_(std::move(socket)), address_(local_address(socket_->descriptor()).to_text()) {}

  Result<std::unique_ptr<Stream>> accept(Instant deadline) override;
  std::string address() const override { return address_; }

 private:
  std::unique_ptr<Socket> socket_;
  std::string address_;
};

// Errors that belong to one connection which is gone already; the next may be fine.
bool concerns_one_connection(int error) {
  switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENOPROTOOPT:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case EOPNOTSUPP:
      return true;
    default:
      return false;
  }
}

Result<std::unique_ptr<Stream>> TcpListener::accept(Instant deadline) {
  check_cancelled();
  socket_->loop().pace();
  while (true) {
    if (!socket_->readable) {
      if (!socket_->wait_readable(deadline)) {
        return fail(ErrorKind::timed_out, "accept " + address_ + ": no connection by the deadline");
      }
      continue;
    }
    SocketAddress peer;
    peer.length = sizeof peer.storage;
    Descriptor accepted(::accept4(socket_->descriptor(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.length,
                                  SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (accepted.valid()) {
      return std::unique_ptr<Stream>(
          new TcpStream(std::make_unique<Socket>(socket_->loop(), std::move(accepted)), peer));
    }
    if (errno == EAGAIN) {
      socket_->readable = false;
    } else if (!concerns_one_connection(errno)) {
      return error_from_errno(errno, "accept " + address_);
    }
  }
}

// ---- Net ------------------------------------------------------------------------------------------------------------

class TcpNet final : public Net {
 public:
  explicit TcpNet(Loop& loop) : loop_(loop) {}

  Result<std::unique_ptr<Listener>> listen(std::string_view address) override;
  Result<std::unique_ptr<Stream>> connect(std::string_view address, Instant deadline) override;

 private:
  Result<std::vector<SocketAddress>> addresses_of(std::string_view address, bool passive, Instant deadline);
  Result<std::unique_ptr<Listener>> listen_on(const SocketAddress& address, bool dual);
  Result<std::unique_ptr<Stream>> connect_to(const SocketAddress& address, Instant deadline);

  Loop& loop_;
};

Result<std::vector<SocketAddress>> TcpNet::addresses_of(std::string_view address, bool passive, Instant deadline) {
  Result<HostPort> parsed = parse_host_port(address);
  if (!parsed.ok()) {
    return parsed.error();
  }
  if (parsed->host.empty() || is_numeric(parsed->host)) {
    return resolve(*parsed, passive);
  }
  return loop_
      .start_on_file_thread<std::vector<SocketAddress>>("resolve", "",
                                                        [where = *parsed, passive] { return resolve(where, passive); })
      .await(deadline);
}

// `dual`: an IPv6 socket for every address takes IPv4 connections too.
Result<std::unique_ptr<Listener>> TcpNet::listen_on(const SocketAddress& address, bool dual) {
  Descriptor descriptor(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!descriptor.valid()) {
    return error_from_errno(errno, address.to_text());
  }
  set_option(descriptor.get(), SOL_SOCKET, SO_REUSEADDR);
  if (address.family() == AF_INET6) {
    const int only = dual ? 0 : 1;
    ::setsockopt(descriptor.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
  }
  if (::bind(descriptor.get(), address.get(), address.length) != 0 || ::listen(descriptor.get(), kBacklog) != 0) {
    return error_from_errno(errno, address.to_text());
  }
  return std::unique_ptr<Listener>(new TcpListener(std::make_unique<Socket>(loop_, std::move(descriptor))));
}

Result<std::unique_ptr<Listener>> TcpNet::listen(std::string_view address) {
  const std::string what = "listen " + std::string(address) + ": ";
  Result<std::vector<SocketAddress>> addresses = addresses_of(address, true, loop_.clock().now() + kListenResolveLimit);
  if (!addresses.ok()) {
    return fail(addresses.error().kind, what + addresses.error().message);
  }
  const bool every = !address.empty() && address.front() == ':';
  if (every) {  // IPv6 first: its socket serves both families
    std::stable_partition(addresses->begin(), addresses->end(),
                          [](const SocketAddress& each) { return each.family() == AF_INET6; });
  }
  Error last;
  for (const SocketAddress& each : *addresses) {
    Result<std::unique_ptr<Listener>> listener = listen_on(each, every);
    if (listener.ok()) {
      return listener;
    }
    last = listener.error();
    if (last.kind == ErrorKind::busy) {
      break;
    }
  }
  const size_t reason = last.message.rfind(": ");
  return fail(last.kind, what + last.message.substr(reason == std::string::npos ? 0 : reason + 2));
}

Result<std::unique_ptr<Stream>> TcpNet::connect_to(const SocketAddress& address, Instant deadline) {
  Descriptor descriptor(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!descriptor.valid()) {
    return fail(error_from_errno(errno, "").kind, errno_text(errno));
  }
  auto socket = std::make_unique<Socket>(loop_, std::move(descriptor));
  if (::connect(socket->descriptor(), address.get(), address.length) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) {
      return fail(ErrorKind::io, errno_text(errno));
    }
    socket->readable = false;
    socket->writable = false;
    while (!socket->writable) {
      if (!socket->wait_writable(deadline)) {
        return fail(ErrorKind::timed_out, "no answer by the deadline");
      }
    }
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(socket->descriptor(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) {
      return fail(ErrorKind::io, errno_text(error));
    }
  }
  // An attempt on a free port of this machine may be given that very port as its own and meet itself.
  const SocketAddress local = local_address(socket->descriptor());
  if (local.length == address.length && std::memcmp(&local.storage, &address.storage, address.length) == 0) {
    return fail(ErrorKind::io, errno_text(ECONNREFUSED));
  }
  return std::unique_ptr<Stream>(new TcpStream(std::move(socket), address));
}

Result<std::unique_ptr<Stream>> TcpNet::connect(std::string_view address, Instant deadline) {
  check_cancelled();
  const std::string what = "connect " + std::string(address) + ": ";
  Result<std::vector<SocketAddress>> addresses = addresses_of(address, false, deadline);
  if (!addresses.ok()) {
    return fail(addresses.error().kind, what + addresses.error().message);
  }
  Error last;
  for (const SocketAddress& each : *addresses) {
    Result<std::unique_ptr<Stream>> stream = connect_to(each, deadline);
    if (stream.ok()) {
      return stream;
    }
    last = stream.error();
    if (last.kind == ErrorKind::timed_out) {
      break;
    }
  }
  return fail(last.kind, what + last.message);
}

}  // namespace

std::unique_ptr<Net> make_tcp_net(Loop& loop) { return std::make_unique<TcpNet>(loop); }

}  // namespace io::real
