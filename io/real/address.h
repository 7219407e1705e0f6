// Address texts: "host:port", with an IPv6 address in brackets ("[::1]:7942"). An empty host means every local address
// when listening.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/result.h"

namespace io::real {

struct HostPort {
  std::string host;
  uint16_t port = 0;
};

// `invalid` names the text and what is wrong with it.
Result<HostPort> parse_host_port(std::string_view text);

// A kernel's socket address.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  // "127.0.0.1:7942", "[::1]:7942"; an IPv4 address mapped into IPv6 shows as IPv4.
  std::string to_text() const;
};

bool is_numeric(const std::string& host);
// Asks the resolver, which may block: on a file thread unless the host is empty or numeric. `not_found` when the host
// does not resolve. `passive`: addresses to listen on.
Result<std::vector<SocketAddress>> resolve(const HostPort& where, bool passive);

// The address that a socket is bound to, or connected to.
SocketAddress local_address(int descriptor);
SocketAddress remote_address(int descriptor);

}  // namespace io::real
