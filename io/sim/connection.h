// One TCP-like connection of the simulated network: two ends, a pipe each way, and the segments between them. network.h
// says what its faults look like; the handles that processes hold (streams, listeners) are here too.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "io/fiber.h"
#include "io/net.h"
#include "io/random.h"
#include "io/sim/network.h"

namespace io::sim {

class Incarnation;
class Machine;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  static constexpr int kClient = 0;
  static constexpr int kServer = 1;

  Connection(Network& network, uint64_t id, Incarnation& client, uint16_t client_port, Machine& server, uint16_t port,
             bool via_loopback);

  uint64_t id() const { return id_; }

  // ---- What the owner of an end does; `end` is kClient or kServer ---------------------------------------------------
  // Until established; retries until the deadline.
  Status establish(Instant deadline);
  Result<std::string> read(int end, size_t max, Instant deadline);
  Status write(int end, std::string data, Instant deadline);
  Status shutdown_write(int end);
  // Both ways at once; resets the far side when unread bytes are lost by it.
  void close(int end);
  std::string peer_address(int end) const;

  // ---- What happens to it -------------------------------------------------------------------------------------------
  bool owned_by(const Incarnation& process, int end) const {
    return ends_[end].owner == &process && !ends_[end].closed;
  }
  bool joins(const Machine& a, const Machine& b) const;
  const Machine& machine(int end) const { return *ends_[end].machine; }
  // Its process has ended; silently: with its machine.
  void owner_ended(int end, bool silently);
  // Both ends will see a reset.
  void break_off();
  // Sends again what a cut or a dark machine held, once it can get through.
  void resume_held();

 private:
  enum class Segment : uint8_t { attempt, answer, refusal, data, end, reset };

  struct End {
    Machine* machine = nullptr;
    Incarnation* owner = nullptr;
    bool closed = false;  // by its owner or with it
    bool was_reset = false;
    bool sent_end = false;      // no more writes
    bool heard_end = false;     // the far side sends no more
    size_t unacknowledged = 0;  // bytes written here that the far side has not read
    std::deque<std::string> arrived;
    size_t arrived_bytes = 0;
    Condition readable;
    Condition writable;
    // The way from here to the far side.
    Instant last_arrival{};
    std::deque<std::pair<Segment, std::string>> held;
    size_t held_room = 0;  // acknowledgements from the far side that a cut holds
    bool resumption_scheduled = false;
    std::string label;  // "n1>n2:7000"
  };

  static bool is_handshake(Segment kind) { return kind <= Segment::refusal; }
  void transmit(int from, Segment kind, std::string bytes = {});
  void dispatch(int from, Segment kind, std::string bytes, Duration delay);
  void arrive(int from, Segment kind, std::string bytes);
  void attempt_arrived();
  void acknowledge(int reader, size_t bytes);
  void give_room(int writer, size_t bytes);
  void reset_end(int end);
  void forget_if_closed();
  bool reachable(int from) const;
  World& world() const;

  Network& network_;
  uint64_t id_;
  uint16_t client_port_;
  uint16_t server_port_;
  bool via_loopback_;
  bool established_ = false;  // the client knows
  bool refused_ = false;
  RandomStream draws_;
  End ends_[2];
};

struct ListenerState {
  Incarnation* process;
  uint16_t port;
  bool loopback_only;
  std::deque<std::shared_ptr<Connection>> backlog;
  Condition arrived;
};

class SimStream final : public Stream {
 public:
  SimStream(std::shared_ptr<Connection> connection, int end, Incarnation& process)
      : connection_(std::move(connection)), end_(end), process_(process) {}
  ~SimStream() override { close(); }

  Result<std::string> read(size_t max, Instant deadline) override { return connection_->read(end_, max, deadline); }
  Status write(std::string data, Instant deadline) override {
    return connection_->write(end_, std::move(data), deadline);
  }
  Status shutdown_write() override;
  void close() override;
  std::string peer_address() const override { return connection_->peer_address(end_); }

 private:
  std::shared_ptr<Connection> connection_;
  int end_;
  Incarnation& process_;
};

class SimListener final : public Listener {
 public:
  SimListener(Network& network, std::shared_ptr<ListenerState> state, std::string address)
      : network_(network), state_(std::move(state)), address_(std::move(address)) {}
  ~SimListener() override;
  Result<std::unique_ptr<Stream>> accept(Instant deadline) override;
  std::string address() const override { return address_; }

 private:
  Network& network_;
  std::shared_ptr<ListenerState> state_;
  std::string address_;
};

}  // namespace io::sim
