// Incoming connections: the greeting, then messages for the core and acknowledgements back.
#include <utility>

#include "io/check.h"
#include "io/probe.h"
#include "raft/server.h"

namespace raft {

namespace {
constexpr std::size_t kReadBytes = 256u << 10;
}  // namespace

void RaftServer::serve(std::unique_ptr<io::Stream> stream, std::string already_read) {
  if (!core_ || is_stopping_) return;
  wire::FrameReader reader;
  reader.add(std::move(already_read));
  auto hello = take_greeting(*stream, reader);
  if (is_stopping_) return;
  if (!hello.ok()) {
    const std::string address = stream->peer_address();
    log_refused_connection(address.substr(0, address.rfind(':')), address, hello.error().to_text());
    return;
  }
  const std::string reason = reason_to_refuse(*hello);
  const io::Instant deadline = env_.after(options_.link.write_timeout);
  std::string answer;
  if (!reason.empty()) {
    log_refused_connection(hello->from, stream->peer_address(), "server " + hello->from + ": " + reason);
    wire::encode(wire::Refusal{reason}, answer);
    if (stream->write(std::move(answer), deadline).ok()) (void)stream->shutdown_write();
    return;
  }
  wire::encode(wire::Welcome{}, answer);
  if (!stream->write(std::move(answer), deadline).ok() || is_stopping_) return;
  if (hello->purpose == wire::Purpose::snapshot) {
    receive_snapshot(*stream, reader, *hello);
  } else {
    receive(*stream, reader, *hello);
  }
}

io::Result<wire::Hello> RaftServer::take_greeting(io::Stream& stream, wire::FrameReader& reader) {
  const io::Instant deadline = env_.after(options_.link.dial_timeout);
  for (;;) {
    auto frame = reader.next(wire::kGreetingBytesMax);
    if (!frame.ok()) return frame.error();
    if (*frame) {
      auto decoded = wire::decode(**frame);
      if (!decoded.ok()) return decoded.error();
      if (auto* hello = std::get_if<wire::Hello>(&*decoded)) return std::move(*hello);
      return io::fail(io::ErrorKind::corrupt, "raft frame: the first one is no greeting");
    }
    auto bytes = stream.read(kReadBytes, deadline);
    if (!bytes.ok()) return bytes.error();
    if (bytes->empty()) return io::fail(io::ErrorKind::io, "closed before the greeting");
    reader.add(std::move(*bytes));
  }
}

std::string RaftServer::reason_to_refuse(const wire::Hello& hello) const {
  if (hello.version != wire::kProtocolVersion) {
    SOMETIMES("raft: greeting of another protocol version refused");
    return "speaks raft protocol version " + std::to_string(hello.version) + ", this server speaks " +
           std::to_string(wire::kProtocolVersion);
  }
  if (hello.to != options_.id) {
    SOMETIMES("raft: greeting for another server refused");
    return "looks for server " + hello.to + ", this is " + options_.id;
  }
  if (hello.from == options_.id) return "calls itself by this server's own name";
  if (hello.cluster.is_known() && core_->cluster().is_known() && hello.cluster != core_->cluster()) {
    SOMETIMES("raft: greeting of another cluster refused");
    return "belongs to cluster " + hello.cluster.to_string() + ", this server to " + core_->cluster().to_string();
  }
  return std::string();
}

void RaftServer::receive(io::Stream& stream, wire::FrameReader& reader, const wire::Hello& hello) {
  // A server has one connection; the older one is a leftover that nobody has noticed yet.
  Incoming& slot = incoming_[hello.from];
  if (slot.stream != nullptr) {
    SOMETIMES("raft: incoming connection replaced by a newer one");
    slot.stream->close();
  }
  slot = {&stream, hello.address};
  struct Forget {
    RaftServer& server;
    const ServerId& from;
    io::Stream* stream;
    ~Forget() {
      const auto at = server.incoming_.find(from);
      if (at == server.incoming_.end() || at->second.stream != stream) return;
      server.incoming_.erase(at);
      server.retire_links();
    }
  } forget{*this, hello.from, &stream};
  answer_incoming(hello.from, hello.address);

  std::uint64_t received = 0;
  std::uint64_t acknowledged = 0;
  io::Instant ack_due = io::kNever;
  for (;;) {
    auto stepped = step_all(reader, hello);
    if (!stepped.ok()) {
      log_refused_connection(hello.from, stream.peer_address(), "server " + hello.from + ": " + stepped.error().to_text());
      return;
    }
    received += *stepped;
    if (received > acknowledged && ack_due == io::kNever) ack_due = env_.after(options_.link.ack_interval);
    if (env_.now() >= ack_due) {
      std::string ack;
      wire::encode(wire::Ack{received}, ack);
      if (!stream.write(std::move(ack), env_.after(options_.link.write_timeout)).ok()) return;
      acknowledged = received;
      ack_due = io::kNever;
    }
    auto bytes = stream.read(kReadBytes, ack_due);
    if (is_stopping_) return;
    if (bytes.is(io::ErrorKind::timed_out)) continue;
    if (!bytes.ok() || bytes->empty()) return;
    reader.add(std::move(*bytes));
  }
}

// A link back to a server that has connected. Before run() there are no links: it calls this for whoever came earlier.
void RaftServer::answer_incoming(const ServerId& from, const std::string& address) {
  if (core_->configuration().find(from) == nullptr) {
    SOMETIMES("raft: a server outside the configuration is answered");
    link_to(from, address);
  }
  if (const auto link = links_.find(from); link != links_.end()) {
    link->second.link->set_heard_address(address);
    link->second.link->nudge();
  }
}

// Hands every whole message over to the core; returns how many there were.
io::Result<std::uint64_t> RaftServer::step_all(wire::FrameReader& reader, const wire::Hello& hello) {
  std::uint64_t messages = 0;
  for (;;) {
    auto frame = reader.next();
    if (!frame.ok()) return frame.error();
    if (!*frame) return messages;
    auto decoded = wire::decode(**frame);
    if (!decoded.ok()) return decoded.error();
    auto* message = std::get_if<Message>(&*decoded);
    if (message == nullptr) return io::fail(io::ErrorKind::corrupt, "raft frame: not a message");
    message->from = hello.from;
    message->to = options_.id;
    message->from_store = hello.store;
    message->session = hello.session;
    step(std::move(*message));
    ++messages;
  }
}

// `who` is a server's name once it has said it, else the address that it knocks from, without the port: each try has another.
void RaftServer::log_refused_connection(const std::string& who, const std::string& peer_address, const std::string& reason) {
  ++counters_.connections_refused;
  const auto left_out = connection_lines_.admit(who, env_.now());
  if (!left_out) return;
  env_.log.info("raft: incoming connection refused",
                {{"peer", peer_address}, {"reason", reason}, {"refused_since_last_line", *left_out}});
}

}  // namespace raft
