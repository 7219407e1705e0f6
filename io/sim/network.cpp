#include "io/sim/network.h"

#include <algorithm>
#include <optional>

#include "io/sim/connection.h"
#include "io/sim/world.h"

namespace io::sim {

namespace {

constexpr uint16_t kFirstListenPort = 49152;
constexpr uint16_t kFirstClientPort = 32768;

struct Address {
  std::string host;
  uint16_t port;
};

std::optional<Address> parse_address(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == text.size() || text.size() - colon > 6) {
    return std::nullopt;
  }
  uint32_t port = 0;
  for (char c : text.substr(colon + 1)) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    port = port * 10 + static_cast<uint32_t>(c - '0');
  }
  const std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (port > UINT16_MAX || (!bracketed && host.find_first_of(":[]") != std::string_view::npos)) {
    return std::nullopt;
  }
  return Address{std::string(host), static_cast<uint16_t>(port)};
}

bool is_loopback(std::string_view host) { return host == "127.0.0.1" || host == "localhost" || host == "[::1]"; }
bool is_any(std::string_view host) { return host.empty() || host == "0.0.0.0" || host == "[::]"; }

}  // namespace

Network::Network(World& world) : world_(world) { reset_latency(); }

Network::~Network() = default;

void Network::reset_latency() { latency_ = world_.settings().net.latency; }

// ---- Faults ---------------------------------------------------------------------------------------------------------

void Network::cut(const Machine& from, const Machine& to) {
  const std::pair path{from.id(), to.id()};
  auto at = std::lower_bound(cuts_.begin(), cuts_.end(), path);
  if (at == cuts_.end() || *at != path) {
    cuts_.insert(at, path);
    world_.record(TraceKind::fault, nullptr, "cut", from.id(), to.id());
  }
}

void Network::heal(const Machine& from, const Machine& to) {
  const std::pair path{from.id(), to.id()};
  auto at = std::lower_bound(cuts_.begin(), cuts_.end(), path);
  if (at != cuts_.end() && *at == path) {
    cuts_.erase(at);
    world_.record(TraceKind::fault, nullptr, "heal", from.id(), to.id());
    resume_held();
  }
}

void Network::cut_both(const Machine& a, const Machine& b) {
  cut(a, b);
  cut(b, a);
}

void Network::heal_both(const Machine& a, const Machine& b) {
  heal(a, b);
  heal(b, a);
}

void Network::heal_all() {
  if (!cuts_.empty()) {
    cuts_.clear();
    world_.record(TraceKind::fault, nullptr, "heal all");
    resume_held();
  }
}

bool Network::is_cut(const Machine& from, const Machine& to) const {
  return !cuts_.empty() && std::binary_search(cuts_.begin(), cuts_.end(), std::pair{from.id(), to.id()});
}

void Network::set_loss(uint32_t loss_ppm, uint32_t break_ppm) {
  loss_ppm_ = loss_ppm;
  break_ppm_ = break_ppm;
  world_.record(TraceKind::fault, nullptr, "loss", loss_ppm, break_ppm);
}

void Network::set_read_delay(const Machine& reader, Duration delay) {
  NARAD_CHECK(delay >= Duration::zero(), "a negative delay");
  if (delay == Duration::zero()) {
    read_delay_.erase(reader.id());
  } else {
    read_delay_[reader.id()] = delay;
  }
}

void Network::break_connections(const Machine& a, const Machine& b) {
  for (const auto& [id, connection] : connections_) {
    if (connection->joins(a, b)) {
      connection->break_off();
    }
  }
}

bool Network::unreachable(const Machine& from, const Machine& to) const { return !to.powered() || is_cut(from, to); }

Duration Network::draw_delay(const Machine& from, const Machine& to, size_t bytes, RandomStream& draws) const {
  const NetSettings& net = world_.settings().net;
  Duration delay = &from == &to ? net.loopback.draw(draws) : latency_.draw(draws);
  delay += Duration(static_cast<int64_t>(bytes) * net.byte_ps / 1000);
  if (!read_delay_.empty()) {
    const auto slow = read_delay_.find(to.id());
    delay += slow != read_delay_.end() ? slow->second : Duration::zero();
  }
  return delay;
}

void Network::resume_held() {
  for (const auto& [id, connection] : connections_) {
    connection->resume_held();
  }
}

void Network::machine_powered_on(Machine&) { resume_held(); }

// ---- What processes do ----------------------------------------------------------------------------------------------

uint16_t Network::free_port(const Machine& machine, uint16_t first) {
  uint16_t& last = last_port_[uint32_t{machine.id()} << 1 | (first == kFirstListenPort ? 1 : 0)];
  do {
    last = last < first || last == UINT16_MAX || (first == kFirstClientPort && last + 1 >= kFirstListenPort)
               ? first
               : static_cast<uint16_t>(last + 1);
  } while (listeners_.count({machine.id(), last}) > 0);
  return last;
}

Result<std::unique_ptr<Listener>> Network::listen(Incarnation& process, std::string_view address) {
  const std::optional<Address> wanted = parse_address(address);
  if (!process.live()) {
    check_cancelled();
  }
  const Machine& machine = process.machine();
  if (!wanted.has_value()) {
    return fail(ErrorKind::invalid, std::string(address) + ": not host:port");
  }
  if (!is_loopback(wanted->host) && !is_any(wanted->host) && wanted->host != machine.name()) {
    return fail(ErrorKind::not_found, "listen " + std::string(address) + ": not an address of this machine");
  }
  const uint16_t port = wanted->port != 0 ? wanted->port : free_port(machine, kFirstListenPort);
  auto state = std::make_shared<ListenerState>();
  state->process = &process;
  state->port = port;
  state->loopback_only = is_loopback(wanted->host);
  if (!listeners_.emplace(Port{machine.id(), port}, state).second) {
    return fail(ErrorKind::busy, "listen " + std::string(address) + ": address already in use");
  }
  return std::unique_ptr<Listener>(
      std::make_unique<SimListener>(*this, std::move(state), wanted->host + ":" + std::to_string(port)));
}

ListenerState* Network::listener_at(const Machine& machine, uint16_t port, bool via_loopback) const {
  auto listener = listeners_.find({machine.id(), port});
  if (listener == listeners_.end() || (listener->second->loopback_only && !via_loopback)) {
    return nullptr;
  }
  return listener->second.get();
}

Result<std::unique_ptr<Stream>> Network::connect(Incarnation& process, std::string_view address, Instant deadline) {
  check_cancelled();
  const std::optional<Address> wanted = parse_address(address);
  if (!wanted.has_value() || wanted->port == 0) {
    return fail(ErrorKind::invalid, std::string(address) + ": not host:port");
  }
  const bool via_loopback = is_loopback(wanted->host) || is_any(wanted->host);
  Machine* server = via_loopback ? &process.machine() : world_.find_machine(wanted->host);
  if (server == nullptr) {
    return fail(ErrorKind::not_found, std::string(address) + ": the host is not known");
  }
  world_.charge(world_.settings().cost.stream_call);
  const uint64_t id = next_connection_++;
  auto connection = std::make_shared<Connection>(*this, id, process, free_port(process.machine(), kFirstClientPort),
                                                 *server, wanted->port, via_loopback);
  connections_.emplace(id, connection);
  Status established = connection->establish(deadline);
  if (!established.ok()) {
    return established.error();
  }
  return std::unique_ptr<Stream>(std::make_unique<SimStream>(std::move(connection), Connection::kClient, process));
}

void Network::process_ended(Incarnation& process, bool silently) {
  std::erase_if(listeners_, [&process](const auto& listener) { return listener.second->process == &process; });
  std::vector<std::shared_ptr<Connection>> all;
  for (const auto& [id, connection] : connections_) {
    all.push_back(connection);
  }
  for (const auto& connection : all) {
    for (int end : {Connection::kClient, Connection::kServer}) {
      if (connection->owned_by(process, end)) {
        connection->owner_ended(end, silently);
      }
    }
  }
}

}  // namespace io::sim
