#include "io/sim/connection.h"

#include <algorithm>

#include "io/sim/world.h"

namespace io::sim {

namespace {

constexpr Duration kFirstRetry = 1s;

}  // namespace

Connection::Connection(Network& network, uint64_t id, Incarnation& client, uint16_t client_port, Machine& server,
                       uint16_t port, bool via_loopback)
    : network_(network),
      id_(id),
      client_port_(client_port),
      server_port_(port),
      via_loopback_(via_loopback),
      draws_(client.machine().world().stream("connection", id)) {
  ends_[kClient].machine = &client.machine();
  ends_[kClient].owner = &client;
  ends_[kServer].machine = &server;
  ends_[kServer].closed = true;  // until a listener takes it
  const std::string port_text = ":" + std::to_string(port);
  ends_[kClient].label = client.machine().name() + ">" + server.name() + port_text;
  ends_[kServer].label = client.machine().name() + "<" + server.name() + port_text;
}

World& Connection::world() const { return network_.world_; }

bool Connection::reachable(int from) const {
  return !network_.unreachable(*ends_[from].machine, *ends_[1 - from].machine);
}

bool Connection::joins(const Machine& a, const Machine& b) const {
  return (ends_[0].machine == &a && ends_[1].machine == &b) || (ends_[0].machine == &b && ends_[1].machine == &a);
}

std::string Connection::peer_address(int end) const {
  const std::string host = via_loopback_ ? "127.0.0.1" : ends_[1 - end].machine->name();
  return host + ":" + std::to_string(end == kClient ? server_port_ : client_port_);
}

// ---- The way between ------------------------------------------------------------------------------------------------

// A loss delays the segment and, because nothing overtakes on one connection, all that follows it; or it breaks the
// connection.
void Connection::transmit(int from, Segment kind, std::string bytes) {
  End& sender = ends_[from];
  Duration delay = network_.draw_delay(*sender.machine, *ends_[1 - from].machine, bytes.size(), draws_);
  world().record(TraceKind::net_send, sender.owner, sender.label, id_ << 8 | static_cast<uint64_t>(kind), bytes.size(),
                 bytes.empty() ? 0 : content_hash(bytes));
  if (network_.loss_ppm_ > 0 && ends_[0].machine != ends_[1].machine && draws_.chance_ppm(network_.loss_ppm_)) {
    if (is_handshake(kind)) {
      return;  // the client tries again
    }
    world().record(TraceKind::fault, sender.owner, sender.label, id_);
    const bool breaks = kind == Segment::data && draws_.chance_ppm(network_.break_ppm_);
    if (!breaks || draws_.below(2) == 0) {
      dispatch(from, kind, std::move(bytes), delay + world().settings().net.retransmission.draw(draws_));
    }
    if (breaks) {
      break_off();
    }
    return;
  }
  dispatch(from, kind, std::move(bytes), delay);
}

void Connection::dispatch(int from, Segment kind, std::string bytes, Duration delay) {
  Instant& last_arrival = ends_[from].last_arrival;
  last_arrival = std::max(world().effect_time() + delay, last_arrival);
  world().schedule(last_arrival, [self = shared_from_this(), from, kind, data = std::move(bytes)]() mutable {
    self->arrive(from, kind, std::move(data));
  });
}

void Connection::arrive(int from, Segment kind, std::string bytes) {
  End& sender = ends_[from];
  End& receiver = ends_[1 - from];
  world().note(TraceKind::net_deliver, receiver.machine);
  if (!reachable(from) || (!sender.held.empty() && !is_handshake(kind))) {
    if (!is_handshake(kind)) {
      sender.held.emplace_back(kind, std::move(bytes));
    }
    return;
  }
  world().record(TraceKind::net_deliver, receiver.owner, sender.label, id_ << 8 | static_cast<uint64_t>(kind),
                 bytes.size());
  switch (kind) {
    case Segment::attempt: attempt_arrived(); return;
    case Segment::answer:
      if (receiver.closed) {
        transmit(1 - from, Segment::reset);
        return;
      }
      established_ = true;
      receiver.writable.notify_all();
      return;
    case Segment::refusal:
      refused_ = !established_;
      receiver.writable.notify_all();
      return;
    case Segment::data:
      if (receiver.closed || receiver.was_reset) {
        if (!receiver.was_reset) {
          transmit(1 - from, Segment::reset);
        }
        return;
      }
      receiver.arrived_bytes += bytes.size();
      receiver.arrived.push_back(std::move(bytes));
      receiver.readable.notify_all();
      return;
    case Segment::end:
      receiver.heard_end = true;
      receiver.readable.notify_all();
      return;
    case Segment::reset: reset_end(1 - from); return;
  }
}

void Connection::reset_end(int end) {
  ends_[end].was_reset = true;
  ends_[end].readable.notify_all();
  ends_[end].writable.notify_all();
}

void Connection::attempt_arrived() {
  End& server = ends_[kServer];
  if (server.owner != nullptr) {
    if (!server.closed) {
      transmit(kServer, Segment::answer);  // an earlier answer was lost
    }
    return;
  }
  ListenerState* listener = network_.listener_at(*server.machine, server_port_, via_loopback_);
  if (listener == nullptr) {
    transmit(kServer, Segment::refusal);
    return;
  }
  if (listener->backlog.size() >= world().settings().net.accept_backlog) {
    return;  // dropped: the client tries again
  }
  network_.connections_.emplace(id_, shared_from_this());  // the client may have given up meanwhile
  server.owner = listener->process;
  server.closed = false;
  listener->backlog.push_back(shared_from_this());
  listener->arrived.notify_one();
  transmit(kServer, Segment::answer);
}

// Nothing sent later arrives: it comes behind the reset.
void Connection::break_off() {
  for (int from : {kClient, kServer}) {
    dispatch(from, Segment::reset, {}, network_.draw_delay(*ends_[from].machine, *ends_[1 - from].machine, 0, draws_));
  }
}

void Connection::resume_held() {
  for (int from : {kClient, kServer}) {
    End& sender = ends_[from];
    if ((sender.held.empty() && sender.held_room == 0) || sender.resumption_scheduled || !reachable(from)) {
      continue;
    }
    sender.resumption_scheduled = true;
    world().schedule(world().now() + world().settings().net.resumption.draw(draws_), [self = shared_from_this(), from] {
      End& resuming = self->ends_[from];
      resuming.resumption_scheduled = false;
      if (!self->reachable(from)) {
        return;
      }
      auto held = std::exchange(resuming.held, {});
      for (auto& [kind, bytes] : held) {
        self->arrive(from, kind, std::move(bytes));
      }
      self->give_room(1 - from, std::exchange(resuming.held_room, 0));
    });
  }
}

// ---- Its owners -----------------------------------------------------------------------------------------------------

Status Connection::establish(Instant deadline) {
  // A caller that gives up, whichever way, leaves nothing open here; an answer that comes later is reset.
  struct CloseUnlessEstablished {
    Connection& self;
    ~CloseUnlessEstablished() {
      if (!self.established_) {
        self.close(kClient);
      }
    }
  } guard{*this};
  Clock& clock = ends_[kClient].machine->clock();
  const Instant give_up = clock.now() + world().settings().net.connect_timeout;
  Duration wait = kFirstRetry;
  while (true) {
    transmit(kClient, Segment::attempt);
    const Instant again = clock.now() + wait;
    wait *= 2;
    bool woken = true;
    while (woken && !established_ && !refused_) {
      woken = ends_[kClient].writable.wait(std::min({deadline, again, give_up}));
    }
    if (established_) {
      return {};
    }
    if (refused_) {
      return fail(ErrorKind::io, peer_address(kClient) + ": connection refused");
    }
    if (clock.now() >= std::min(deadline, give_up)) {
      return fail(ErrorKind::timed_out, peer_address(kClient) + ": no answer");
    }
  }
}

Result<std::string> Connection::read(int end, size_t max, Instant deadline) {
  NARAD_CHECK(max > 0, "a read of nothing");
  check_cancelled();
  End& self = ends_[end];
  while (self.arrived.empty()) {
    if (self.closed) {
      return fail(ErrorKind::io, peer_address(end) + ": the stream is closed");
    }
    if (self.was_reset) {
      return fail(ErrorKind::io, peer_address(end) + ": connection reset");
    }
    if (self.heard_end) {
      return std::string();
    }
    if (!self.readable.wait(deadline) && self.arrived.empty() && !self.heard_end && !self.was_reset && !self.closed) {
      return fail(ErrorKind::timed_out, peer_address(end) + ": nothing to read by the deadline");
    }
  }
  size_t length = std::min(max, self.arrived_bytes);
  const uint32_t short_ppm = world().settings().net.short_read_ppm;
  if (length > 1 && short_ppm > 0 && draws_.chance_ppm(short_ppm)) {
    length = 1 + draws_.below(length - 1);
  }
  std::string bytes;
  if (self.arrived.front().size() == length) {
    bytes = std::move(self.arrived.front());
    self.arrived.pop_front();
  } else {
    bytes.reserve(length);
    while (bytes.size() < length) {
      std::string& front = self.arrived.front();
      const size_t part = std::min(length - bytes.size(), front.size());
      bytes.append(front, 0, part);
      if (part == front.size()) {
        self.arrived.pop_front();
      } else {
        front.erase(0, part);
      }
    }
  }
  self.arrived_bytes -= length;
  world().charge(world().settings().cost.stream_call);
  world().charge_bytes(length, world().settings().cost.stream_byte_ps);
  acknowledge(end, length);
  return bytes;
}

// The reader's acknowledgement opens the far side's window. It travels as an event only when somebody waits for it.
void Connection::acknowledge(int reader, size_t bytes) {
  const int writer = 1 - reader;
  if (!reachable(reader)) {
    ends_[reader].held_room += bytes;
    return;
  }
  if (ends_[writer].unacknowledged < world().settings().net.buffer_bytes) {
    ends_[writer].unacknowledged -= bytes;
    return;
  }
  const Duration delay = network_.draw_delay(*ends_[reader].machine, *ends_[writer].machine, 0, draws_);
  world().schedule(world().effect_time() + delay, [self = shared_from_this(), reader, bytes] {
    if (self->reachable(reader)) {
      self->give_room(1 - reader, bytes);
    } else {
      self->ends_[reader].held_room += bytes;
    }
  });
}

void Connection::give_room(int writer, size_t bytes) {
  NARAD_CHECK(ends_[writer].unacknowledged >= bytes, "more bytes acknowledged than sent");
  ends_[writer].unacknowledged -= bytes;
  ends_[writer].writable.notify_all();
}

Status Connection::write(int end, std::string data, Instant deadline) {
  check_cancelled();
  End& self = ends_[end];
  // Whatever ends this call early, part of the data may be out: nothing may follow it.
  struct EndUnlessSent {
    Connection& connection;
    int end;
    bool sent = false;
    ~EndUnlessSent() {
      if (!sent) {
        (void)connection.shutdown_write(end);
      }
    }
  } guard{*this, end};
  const size_t window = world().settings().net.buffer_bytes;
  size_t done = 0;
  do {
    if (self.closed) {
      return fail(ErrorKind::io, peer_address(end) + ": the stream is closed");
    }
    if (self.was_reset) {
      return fail(ErrorKind::io, peer_address(end) + ": connection reset");
    }
    if (self.sent_end) {
      return fail(ErrorKind::invalid, peer_address(end) + ": closed for writing");
    }
    if (self.unacknowledged >= window) {
      if (!self.writable.wait(deadline) && self.unacknowledged >= window && !self.was_reset && !self.closed) {
        return fail(ErrorKind::timed_out, peer_address(end) + ": the far side does not read");
      }
      continue;
    }
    const size_t part = std::min(window - self.unacknowledged, data.size() - done);
    self.unacknowledged += part;
    world().charge(world().settings().cost.stream_call);
    world().charge_bytes(part, world().settings().cost.stream_byte_ps);
    if (part == data.size()) {
      done = part;
      if (part > 0) {
        transmit(end, Segment::data, std::move(data));
      }
      break;
    }
    transmit(end, Segment::data, data.substr(done, part));
    done += part;
  } while (done < data.size());
  guard.sent = true;
  return {};
}

Status Connection::shutdown_write(int end) {
  End& self = ends_[end];
  if (self.owner != nullptr && !self.owner->live()) {
    return {};
  }
  if (self.closed || self.was_reset) {
    return fail(ErrorKind::io, peer_address(end) + (self.closed ? ": the stream is closed" : ": connection reset"));
  }
  if (self.sent_end) {
    return {};
  }
  self.sent_end = true;
  self.writable.notify_all();
  if (ends_[kServer].owner != nullptr) {
    transmit(end, Segment::end);
  }
  return {};
}

void Connection::close(int end) {
  End& self = ends_[end];
  if (self.closed || (self.owner != nullptr && !self.owner->live())) {
    return;
  }
  if (!self.arrived.empty()) {
    transmit(end, Segment::reset);
  } else {
    (void)shutdown_write(end);
  }
  self.closed = true;
  self.arrived.clear();
  self.arrived_bytes = 0;
  self.readable.notify_all();
  self.writable.notify_all();
  forget_if_closed();
}

void Connection::owner_ended(int end, bool silently) {
  End& self = ends_[end];
  if (silently) {
    self.held.clear();
  } else if (ends_[kServer].owner != nullptr && !self.was_reset) {
    if (!self.arrived.empty() || draws_.below(4) == 0) {
      transmit(end, Segment::reset);
    } else if (!self.sent_end) {
      transmit(end, Segment::end);
    }
  }
  self.closed = true;
  self.arrived.clear();
  self.arrived_bytes = 0;
  forget_if_closed();
}

void Connection::forget_if_closed() {
  if (ends_[0].closed && ends_[1].closed) {
    network_.connections_.erase(id_);
  }
}

// ---- Handles --------------------------------------------------------------------------------------------------------

Status SimStream::shutdown_write() { return connection_->shutdown_write(end_); }

void SimStream::close() {
  if (process_.live()) {
    connection_->close(end_);
  }
}

SimListener::~SimListener() {
  if (!state_->process->live()) {
    return;
  }
  network_.listeners_.erase({state_->process->machine().id(), state_->port});
  for (const auto& connection : state_->backlog) {
    connection->break_off();
    connection->close(Connection::kServer);
  }
}

Result<std::unique_ptr<Stream>> SimListener::accept(Instant deadline) {
  check_cancelled();
  while (state_->backlog.empty()) {
    if (!state_->arrived.wait(deadline) && state_->backlog.empty()) {
      return fail(ErrorKind::timed_out, address_ + ": nobody connected by the deadline");
    }
  }
  std::shared_ptr<Connection> connection = std::move(state_->backlog.front());
  state_->backlog.pop_front();
  World& world = state_->process->machine().world();
  world.charge(world.settings().cost.stream_call);
  return std::unique_ptr<Stream>(
      std::make_unique<SimStream>(std::move(connection), Connection::kServer, *state_->process));
}

}  // namespace io::sim
