#include "io/real/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <charconv>
#include <cstring>

namespace io::real {

namespace {

Error bad_address(std::string_view text, std::string_view why) {
  return fail(ErrorKind::invalid, "address \"" + std::string(text) + "\": " + std::string(why));
}

}  // namespace

Result<HostPort> parse_host_port(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    return bad_address(text.substr(0, text.find('\0')), "it contains a zero byte");
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return bad_address(text, "the port is missing (host:port)");
  }
  HostPort parsed;
  std::string_view host = text.substr(0, colon);
  if (!host.empty() && host.front() == '[') {
    if (host.size() < 3 || host.back() != ']') {
      return bad_address(text, "a bracket is not closed before the port");
    }
    host = host.substr(1, host.size() - 2);
    in6_addr ignored{};
    const std::string address(host.substr(0, host.find('%')));
    if (inet_pton(AF_INET6, address.c_str(), &ignored) != 1) {
      return bad_address(text, "an IPv6 address is expected in brackets");
    }
  } else if (host.find(':') != std::string_view::npos) {
    return bad_address(text, "an IPv6 address stands in brackets ([::1]:7942)");
  } else if (host.find_first_of("[] \t/") != std::string_view::npos) {
    return bad_address(text, "the host is malformed");
  }
  parsed.host = std::string(host);
  const std::string_view port = text.substr(colon + 1);
  const char* end = port.data() + port.size();
  const auto [stopped, error] = std::from_chars(port.data(), end, parsed.port);
  if (port.empty() || stopped != end || error != std::errc()) {
    return bad_address(text, "the port is not a number from 0 to 65535");
  }
  return parsed;
}

std::string SocketAddress::to_text() const {
  char host[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    inet_ntop(AF_INET, &v4.sin_addr, host, sizeof host);
    return std::string(host) + ":" + std::to_string(ntohs(v4.sin_port));
  }
  if (family() != AF_INET6) {
    return "unknown";
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
  const std::string port = std::to_string(ntohs(v6.sin6_port));
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, v6.sin6_addr.s6_addr + 12, host, sizeof host);
    return std::string(host) + ":" + port;
  }
  inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof host);
  return "[" + std::string(host) + "]:" + port;
}

bool is_numeric(const std::string& host) {
  unsigned char ignored[sizeof(in6_addr)];
  const std::string address = host.substr(0, host.find('%'));
  return inet_pton(AF_INET, address.c_str(), ignored) == 1 || inet_pton(AF_INET6, address.c_str(), ignored) == 1;
}

Result<std::vector<SocketAddress>> resolve(const HostPort& where, bool passive) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  const bool literal = where.host.empty() || is_numeric(where.host);
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0) | (literal ? AI_NUMERICHOST : 0);
  addrinfo* found = nullptr;
  const char* host = where.host.empty() ? nullptr : where.host.c_str();
  const int error = getaddrinfo(host, std::to_string(where.port).c_str(), &hints, &found);
  if (error != 0) {
    const ErrorKind kind = error == EAI_MEMORY || error == EAI_SYSTEM ? ErrorKind::io : ErrorKind::not_found;
    return fail(kind, "host \"" + where.host + "\" does not resolve: " + gai_strerror(error));
  }
  std::vector<SocketAddress> addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
    address.length = each->ai_addrlen;
    addresses.push_back(address);
  }
  freeaddrinfo(found);
  if (addresses.empty()) {
    return fail(ErrorKind::not_found, "host \"" + where.host + "\" has no address");
  }
  return addresses;
}

SocketAddress local_address(int descriptor) {
  SocketAddress address;
  address.length = sizeof address.storage;
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&address.storage), &address.length);
  return address;
}

SocketAddress remote_address(int descriptor) {
  SocketAddress address;
  address.length = sizeof address.storage;
  getpeername(descriptor, reinterpret_cast<sockaddr*>(&address.storage), &address.length);
  return address;
}

}  // namespace io::real
