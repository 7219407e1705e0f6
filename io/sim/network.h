// The network between machines: TCP-like byte streams with latency, loss, cuts and bounded buffers.
//
// Addresses are "host:port" with the machine's name as host; "127.0.0.1", "localhost" and "[::1]" are the own machine,
// and "0.0.0.0" and "" listen to all. What listens on the loopback is reached from its own machine only.
//
// What each fault looks like to a process, as over TCP:
//  - a lost segment is sent again: it and all behind it on its connection come later (NetSettings::retransmission). A
//    share of losses (break_ppm) breaks the connection instead: both ends see a reset, and whether the bytes in flight
//    arrived before it is drawn, so a sender that tries again on a new connection may deliver twice;
//  - a cut, one way or both, holds what is in flight and what is sent later; neither end notices. After the heal it
//    flows again after NetSettings::resumption. A new attempt across a cut gets no answer and is repeated after 1 s, 2
//    s, 4 s ...;
//  - a killed or exited process: what it had sent arrives, then the end of the stream (or a reset, when it had unread
//    bytes, or by draw); later writes to it are reset. Nobody listens: the attempt is refused;
//  - a machine without power: silence. Peers stay half open until their own deadline, or until they send something
//    after the machine is back, which answers with a reset.
// Connections are independent: bytes of one may overtake bytes of another.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/net.h"
#include "io/sim/settings.h"

namespace io::sim {

class Connection;
class Incarnation;
class Machine;
struct ListenerState;
class World;

class Network {
 public:
  explicit Network(World& world);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // ---- Faults -------------------------------------------------------------------------------------------------------
  // One way: nothing goes from `from` to `to`.
  void cut(const Machine& from, const Machine& to);
  void heal(const Machine& from, const Machine& to);
  void cut_both(const Machine& a, const Machine& b);
  void heal_both(const Machine& a, const Machine& b);
  void heal_all();
  bool is_cut(const Machine& from, const Machine& to) const;
  // Chance that a write (or an attempt) is lost, and of those the chance that it takes its connection along.
  void set_loss(uint32_t loss_ppm, uint32_t break_ppm = 50'000);
  // Replaces the one-way latency between different machines; reset_latency returns to the settings'.
  void set_latency(LatencyTable table) { latency_ = std::move(table); }
  void reset_latency();
  // What arrives at `reader` becomes readable this much later (a slow reader); zero ends it.
  void set_read_delay(const Machine& reader, Duration delay);
  // Resets every connection between the two.
  void break_connections(const Machine& a, const Machine& b);

  // Connections with at least one open end.
  size_t open_connections() const { return connections_.size(); }

  // ---- For the parts of io/sim --------------------------------------------------------------------------------------
  Result<std::unique_ptr<Listener>> listen(Incarnation& process, std::string_view address);
  Result<std::unique_ptr<Stream>> connect(Incarnation& process, std::string_view address, Instant deadline);
  // The process has ended: `silently` when its machine lost power.
  void process_ended(Incarnation& process, bool silently);
  void machine_powered_on(Machine& machine);

 private:
  friend class Connection;
  friend class SimListener;
  using Port = std::pair<uint32_t, uint16_t>;  // machine id, port

  // True when nothing can get from one to the other now: the path is cut, or the receiver has no power.
  bool unreachable(const Machine& from, const Machine& to) const;
  // When something sent now arrives; a machine that reads slowly gets it later still.
  Duration draw_delay(const Machine& from, const Machine& to, size_t bytes, RandomStream& draws) const;
  void resume_held();
  ListenerState* listener_at(const Machine& machine, uint16_t port, bool via_loopback) const;
  uint16_t free_port(const Machine& machine, uint16_t first);

  World& world_;
  LatencyTable latency_;
  uint32_t loss_ppm_ = 0;
  uint32_t break_ppm_ = 0;
  std::vector<std::pair<uint32_t, uint32_t>> cuts_;  // (from, to), sorted
  std::map<uint32_t, Duration> read_delay_;
  std::map<Port, std::shared_ptr<ListenerState>> listeners_;
  std::map<uint64_t, std::shared_ptr<Connection>> connections_;
  std::map<uint32_t, uint16_t> last_port_;
  uint64_t next_connection_ = 1;
};

}  // namespace io::sim
