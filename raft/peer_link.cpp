#include "raft/peer_link.h"

#include <algorithm>
#include <utility>

#include "io/check.h"
#include "io/probe.h"

namespace raft {

namespace {

constexpr std::size_t kReadBytes = 4096;
// One write: enough to keep the connection busy, little enough to notice a failure soon.
constexpr std::size_t kWriteBytes = 512u << 10;
constexpr io::Duration kFailureLogInterval = std::chrono::minutes(1);

std::uint64_t cost_of(const Message& message) {
  std::uint64_t bytes = 160;
  for (const Entry& entry : message.entries) bytes += entry.cost_bytes();
  return bytes;
}

}  // namespace

PeerLink::PeerLink(io::Env& env, const LinkSettings& settings, wire::Hello self, const ClusterId& cluster, ServerId to,
                   std::string address, std::uint64_t& messages_dropped)
    : env_(env),
      settings_(settings),
      self_(std::move(self)),
      cluster_(cluster),
      to_(std::move(to)),
      address_(std::move(address)),
      random_(env.random.stream("raft dial backoff", to_)),
      messages_dropped_(messages_dropped) {
  self_.to = to_;
}

void PeerLink::set_address(std::string address) {
  if (address == address_) return;
  SOMETIMES("raft: address of a server changed");
  address_ = std::move(address);
  is_heard_address_next_ = false;
  drop_connection();
}

void PeerLink::nudge() { nudged_.set(); }

bool PeerLink::send(Message&& message) {
  NARAD_CHECK(message.to == to_, "a link carries one server's messages");
  const std::uint64_t cost = cost_of(message);
  if (is_connected_) {
    if (queue_bytes_ + cost > settings_.queue_bytes_max && !queue_.empty()) {
      SOMETIMES("raft: message dropped, a link's queue is full");
      ++messages_dropped_;
      return false;
    }
  } else {
    while (!queue_.empty() && (queue_.size() >= settings_.queue_disconnected_max ||
                               queue_bytes_ + cost > settings_.queue_bytes_max)) {
      queue_bytes_ -= cost_of(queue_.front());
      queue_.pop_front();
      ++messages_dropped_;
    }
  }
  queue_bytes_ += cost;
  queue_.push_back(std::move(message));
  queued_.notify_all();
  return true;
}

void PeerLink::run() {
  io::Duration backoff = settings_.backoff_min;
  for (;;) {
    const io::Instant begun = env_.now();
    auto dialled = connect();
    if (dialled.ok()) {
      is_failure_logged_ = false;
      pump(**dialled);
      // A connection that held proves the way; one that broke at once does not.
      if (env_.now() - begun > settings_.backoff_max) backoff = settings_.backoff_min;
    } else {
      note_dial_failure(dialled.error());
    }
    nudged_.reset();
    const bool is_nudged = nudged_.wait(env_.after(random_.between(backoff / 2, backoff)));
    backoff = is_nudged ? settings_.backoff_min : std::min(backoff * 2, settings_.backoff_max);
  }
}

void PeerLink::note_dial_failure(const io::Error& error) {
  // What waited this long is of no use to anybody.
  messages_dropped_ += queue_.size();
  queue_.clear();
  queue_bytes_ = 0;
  const io::Instant now = env_.now();
  if (is_failure_logged_ && now < next_failure_log_) return;
  is_failure_logged_ = true;
  next_failure_log_ = now + kFailureLogInterval;
  env_.log.info("raft: no connection to a server",
                {{"server", to_}, {"address", address_}, {"reason", error.to_text()}});
}

// Connects and greets. The stream that comes back is ready for messages.
io::Result<std::unique_ptr<io::Stream>> PeerLink::connect() {
  self_.cluster = cluster_;
  const bool tries_heard = is_heard_address_next_ && !heard_address_.empty() && heard_address_ != address_;
  auto greeted = dial(env_, tries_heard ? heard_address_ : address_, self_, env_.after(settings_.dial_timeout));
  if (!greeted.ok()) {
    is_heard_address_next_ = !tries_heard;
    return greeted.error();
  }
  if (tries_heard) SOMETIMES("raft: a server is found where it says that it listens");
  incoming_ = std::move(greeted->frames);
  return std::move(greeted->stream);
}

// Writes what is queued until the connection breaks.
void PeerLink::pump(io::Stream& stream) {
  stream_ = &stream;
  is_connected_ = true;
  written_ = acknowledged_ = 0;
  struct Forget {
    PeerLink& link;
    ~Forget() {
      link.is_connected_ = false;
      link.stream_ = nullptr;
    }
  } forget{*this};
  io::with_scope([&](io::Scope& scope) {
    io::Task reader = scope.spawn("raft/acks", [this, &stream] { read_acks(stream); });
    while (!reader.done()) {
      if (queue_.empty()) {
        queued_.wait();
        continue;
      }
      std::string bytes = encode_queued();
      if (!stream.write(std::move(bytes), env_.after(settings_.write_timeout)).ok()) break;
    }
    stream.close();
  });
}

std::string PeerLink::encode_queued() {
  std::string bytes;
  if (written_ == acknowledged_) unacknowledged_since_ = env_.now();
  while (!queue_.empty() && bytes.size() < kWriteBytes) {
    const Message& message = queue_.front();
    wire::encode(message, bytes);
    queue_bytes_ -= cost_of(message);
    queue_.pop_front();
    ++written_;
    ++frames_sent_;
  }
  return bytes;
}

// Takes acknowledgements until the connection ends or falls silent.
void PeerLink::read_acks(io::Stream& stream) {
  while (take_acks()) {
    auto bytes = stream.read(kReadBytes, env_.after(settings_.ack_timeout));
    if (bytes.is(io::ErrorKind::timed_out)) {
      if (written_ == acknowledged_ || env_.now() - unacknowledged_since_ < settings_.ack_timeout) continue;
      SOMETIMES("raft: connection replaced, nothing is acknowledged on it");
      env_.log.info("raft: connection replaced, the other side has acknowledged nothing for too long", {{"server", to_}});
      break;
    }
    if (!bytes.ok() || bytes->empty()) break;
    incoming_.add(std::move(*bytes));
  }
  stream.close();
  queued_.notify_all();
}

// False when the other side broke the protocol.
bool PeerLink::take_acks() {
  for (;;) {
    auto frame = incoming_.next(wire::kGreetingBytesMax);
    if (!frame.ok()) return false;
    if (!*frame) return true;
    auto decoded = wire::decode(**frame);
    const wire::Ack* ack = decoded.ok() ? std::get_if<wire::Ack>(&*decoded) : nullptr;
    if (ack == nullptr || ack->frames < acknowledged_ || ack->frames > written_) return false;
    acknowledged_ = ack->frames;
    unacknowledged_since_ = env_.now();
  }
}

void PeerLink::drop_connection() {
  if (stream_ != nullptr) stream_->close();
}

}  // namespace raft
