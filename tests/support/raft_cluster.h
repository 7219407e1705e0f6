// A cluster of raft cores in a test's hand: time, network, disks and crashes are moved one step at a time.
//
// Every core is the production raft::Core. What a core hands out goes into a simple model of its surroundings: a list of
// messages and images under way, a queue of writes for each disk, a list of applied commands. raft::Invariants looks at every core
// after each step; the first violation is kept. Nothing happens by itself: no message arrives, no write ends and no timer
// fires unless a step says so (or run(), which lets the cluster live for a while).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "raft/core.h"
#include "raft/invariants.h"

namespace tests {

class RaftCluster {
 public:
  // Writes that a core handed out together; they become durable together.
  struct Write {
    std::optional<raft::HardState> hard_state;
    std::optional<raft::LogReset> log_reset;
    std::vector<raft::Entry> entries;
    raft::Term append_term = 0;
    std::vector<raft::Message> messages_after;
  };

  // What a state machine held at a snapshot's index.
  struct Image {
    raft::SnapshotLabel label;
    std::vector<std::string> commands;
  };

  // An image on its way: first its offer is judged, then it arrives as a whole or breaks.
  struct Shipment {
    std::uint64_t number = 0;
    raft::SnapshotOffer offer;
    Image image;
    bool is_wanted = false;  // the receiver has said so
    bool is_retry = false;   // of one whose end was not heard: given up once the leader does not wait for it any more
  };

  struct Node {
    raft::ServerId id;
    // --- survives a kill ---
    raft::StoreId store;
    raft::HardState hard_state;
    raft::Index base_index = 0;
    raft::Term base_term = 0;
    raft::Configuration base_configuration;
    std::vector<raft::Entry> entries;
    raft::Index applied = 0;
    std::vector<std::string> commands;  // applied, in order
    std::map<raft::Index, Image> images;
    // --- lost in a kill ---
    std::unique_ptr<raft::Core> core;
    std::deque<Write> writes;
    std::deque<raft::Entry> to_apply;
    std::optional<raft::SnapshotLabel> to_install;
    std::deque<raft::LogRead> reads_due;
    std::map<std::uint64_t, raft::ReadResult> reads;
    std::vector<raft::TransferEnd> transfers;  // ended, in order
    // --- how the driver behaves ---
    bool is_disk_manual = false;   // writes wait for persist()
    bool is_apply_manual = false;  // committed entries, and images, wait for apply()
    bool is_read_manual = false;   // reads of the stored log for followers wait for answer_reads()
    std::uint64_t starts = 0;
  };

  explicit RaftCluster(std::uint64_t seed = 1);

  raft::Settings settings;

  // --- before the start ---

  // `is_settled`: the configuration carries cluster and store ids, as after a first leader; else as bootstrap writes it.
  void add_servers(const std::vector<raft::ServerId>& ids, bool is_settled);
  // A server with an empty configuration.
  void add_stranger(const raft::ServerId& id);
  Node& node(const raft::ServerId& id);
  std::map<raft::ServerId, Node>& nodes() { return nodes_; }
  const std::map<raft::ServerId, Node>& nodes() const { return nodes_; }
  // The entry that stands for (index, term) in a given log: the same on every server.
  static raft::Entry given_entry(raft::Index index, raft::Term term);

  // --- steps ---

  void start(const raft::ServerId& id);
  // The process dies: what was not durable is gone. Messages it sent are still under way.
  void kill(const raft::ServerId& id);
  // A new, empty volume under the same name, with the configuration that bootstrap writes. The server must be down.
  void wipe(const raft::ServerId& id);

  io::Instant now() const { return now_; }
  // Time passes; nobody's timer fires.
  void pass(io::Duration time) { now_ += time; }
  // Time passes to the server's next deadline, and only its timer fires.
  void tick(const raft::ServerId& id);
  // The cluster lives for `time`: messages arrive in order and at once, timers fire, disks that are not manual write.
  void run(io::Duration time);

  raft::ProposeResult propose(const raft::ServerId& id, const std::vector<std::string>& commands);
  raft::ReadRefusal read(const raft::ServerId& id, std::uint64_t context);
  raft::ChangeResult change(const raft::ServerId& id, const raft::ConfigurationChange& change);
  raft::TransferStart transfer(const raft::ServerId& id, const raft::ServerId& to);
  // The oldest write, or with `all` every one, becomes durable and is reported.
  void persist(const raft::ServerId& id, bool all);
  void apply(const raft::ServerId& id);
  // The state machine's image becomes a durable snapshot. Returns whether its label was of use.
  bool snapshot(const raft::ServerId& id);
  // Cuts the log in front, in memory and on the disk. Returns its base.
  raft::Index compact(const raft::ServerId& id, raft::Index index, bool spares_transfers = true);
  // The stored log is read for the followers that asked, or (fails) is not.
  void answer_reads(const raft::ServerId& id, bool fails);

  // --- images under way ---

  bool are_images_manual = false;  // else deliver_all() and run() carry them too
  std::vector<Shipment>& shipments() { return shipments_; }
  // The receiver judges the offer. Wanted: the image is under way from now on; else the shipment ends.
  raft::OfferAnswer::Verdict offer(Shipment shipment);
  // The whole image arrives, is durable, and its sender hears of it (or, when `is_answer_lost`, does not, and will offer it again).
  void receive(Shipment shipment, bool is_answer_lost = false);
  // The connection breaks, and the sender notices.
  void break_off(const Shipment& shipment);

  // --- network ---

  std::vector<raft::Message>& in_flight() { return in_flight_; }
  // One trouble. At the n-th delivery (from 0): the message is lost, arrives a second time after the others, only then, or its receiver,
  // its sender or every server is killed and started again in front of it. At the n-th write to a disk: the server is killed and started
  // again in front of it, or behind it and before anything that waits for it.
  struct Trouble {
    enum class Kind { lost, repeated, late, receiver_restarts, sender_restarts, all_restart, restarts_before_write, restarts_after_write };
    Kind kind = Kind::lost;
    std::uint64_t at = 0;
    bool is_of_write() const { return kind == Kind::restarts_before_write || kind == Kind::restarts_after_write; }
  };
  void expect_trouble(Trouble trouble) { trouble_ = trouble; }
  std::uint64_t deliveries() const { return deliveries_; }
  std::uint64_t writes() const { return writes_; }
  // A message to a server that is down, or over a link that is cut, is lost.
  void deliver(raft::Message message);
  // Delivers what is under way, oldest first, and what is sent meanwhile, until nothing is.
  void deliver_all();
  void cut(const raft::ServerId& from, const raft::ServerId& to) { cut_links_.insert({from, to}); }
  void join(const raft::ServerId& from, const raft::ServerId& to) { cut_links_.erase({from, to}); }
  void isolate(const raft::ServerId& id);
  void heal() { cut_links_.clear(); }

  // --- observation ---

  const std::optional<raft::Violation>& violation() const { return violation_; }
  const raft::Invariants& invariants() const { return invariants_; }
  // The leader of the newest term among the running servers; null: none.
  const raft::Core* leader() const;

 private:
  // Takes everything the core has to hand out into the model, and checks the invariants.
  void settle(Node& node);
  void repair(Node& node);
  bool is_lost_in_trouble(raft::Message& message);
  void restart_running(const raft::ServerId& id);
  bool can_reach(const raft::ServerId& from, const raft::ServerId& to) const;
  void carry_images();
  void install(Node& node);
  void answer_read(Node& node, bool fails);
  // False: the server was killed over it, and started again.
  [[nodiscard]] bool finish_write(Node& node);
  void apply_one(Node& node);
  void observe(Node& node);

  std::uint64_t seed_;
  io::Instant now_{std::chrono::seconds(1000)};
  std::map<raft::ServerId, Node> nodes_;
  std::vector<raft::Message> in_flight_;
  std::vector<Shipment> shipments_;
  std::optional<Trouble> trouble_;
  std::uint64_t deliveries_ = 0;
  std::uint64_t writes_ = 0;
  std::set<std::pair<raft::ServerId, raft::ServerId>> cut_links_;
  raft::Invariants invariants_;
  std::optional<raft::Violation> violation_;
  std::uint64_t stores_ = 0;
  std::uint64_t sessions_ = 0;
};

}  // namespace tests
