#include "tests/support/raft_cluster.h"

#include <algorithm>
#include <utility>

#include "io/check.h"

namespace tests {

using raft::Entry;
using raft::EntryType;
using raft::Message;
using raft::ServerId;

RaftCluster::RaftCluster(std::uint64_t seed) : seed_(seed) {}

void RaftCluster::add_servers(const std::vector<ServerId>& ids, bool is_settled) {
  raft::Configuration configuration;
  if (is_settled) configuration.cluster = raft::ClusterId{7, 7};
  for (const ServerId& id : ids) {
    Node& node = nodes_[id];
    node.id = id;
    node.store = raft::StoreId{1, ++stores_};
    configuration.servers.push_back(raft::Server{id, id + ":1", true, is_settled ? node.store : raft::StoreId{}});
  }
  configuration.normalise();
  for (const ServerId& id : ids) nodes_[id].base_configuration = configuration;
}

void RaftCluster::add_stranger(const ServerId& id) {
  Node& node = nodes_[id];
  node.id = id;
  node.store = raft::StoreId{1, ++stores_};
}

RaftCluster::Node& RaftCluster::node(const ServerId& id) {
  const auto at = nodes_.find(id);
  NARAD_CHECK(at != nodes_.end(), "the test names a server that it has added");
  return at->second;
}

Entry RaftCluster::given_entry(raft::Index index, raft::Term term) {
  return Entry{term, index, EntryType::command,
               std::make_shared<const std::string>("g" + std::to_string(index) + "." + std::to_string(term))};
}

void RaftCluster::start(const ServerId& id) {
  Node& node = this->node(id);
  NARAD_CHECK(!node.core, "the server is down");
  ++node.starts;
  repair(node);
  raft::Identity identity{id, node.store, ++sessions_, raft::ClusterId{8, sessions_}};
  raft::InitialState initial;
  initial.hard_state = node.hard_state;
  initial.base_index = node.base_index;
  initial.base_term = node.base_term;
  initial.base_configuration = node.base_configuration;
  if (!node.images.empty()) initial.snapshot = node.images.rbegin()->second.label;
  initial.entries = node.entries;
  if (node.applied > node.base_index + node.entries.size()) {
    violation_ = raft::Violation{"applied durable", id + "'s state machine is ahead of its log after a restart"};
    return;
  }
  initial.applied = node.applied;
  const io::RandomStream random(io::mix(io::mix(seed_, io::stable_hash(id)), node.starts));
  node.core = std::make_unique<raft::Core>(std::move(identity), settings, std::move(initial), random, now_);
  observe(node);
  settle(node);
}

// What raft::InitialState asks of a driver. A scenario's log that was given with a base gets the snapshot that goes with it.
void RaftCluster::repair(Node& node) {
  if (node.base_index > 0 && node.images.empty()) {
    const raft::SnapshotLabel label{node.base_index, node.base_term, 0, node.base_configuration};
    node.images[node.base_index] = Image{label, node.commands};
  }
  if (node.images.empty()) return;
  const Image& newest = node.images.rbegin()->second;
  const raft::Index index = newest.label.index;
  const raft::Index last = node.base_index + node.entries.size();
  const bool leads_there = index == node.base_index ? node.base_term == newest.label.term
                           : index > node.base_index && index <= last
                               ? node.entries[index - node.base_index - 1].term == newest.label.term
                               : false;
  if (!leads_there) {
    node.entries.clear();
    node.base_index = index;
    node.base_term = newest.label.term;
  }
  if (node.applied >= node.base_index) return;
  node.applied = index;
  node.commands = newest.commands;
}

void RaftCluster::kill(const ServerId& id) {
  Node& node = this->node(id);
  NARAD_CHECK(node.core != nullptr, "the server is up");
  node.core.reset();
  node.writes.clear();
  node.to_apply.clear();
  node.to_install.reset();
  node.reads_due.clear();
  node.reads.clear();
  node.transfers.clear();
  std::erase_if(shipments_, [&](const Shipment& shipment) { return shipment.offer.from == id; });
}

void RaftCluster::wipe(const ServerId& id) {
  Node& node = this->node(id);
  NARAD_CHECK(node.core == nullptr, "the server is down");
  node.store = raft::StoreId{1, ++stores_};
  node.hard_state = {};
  node.base_index = 0;
  node.base_term = 0;
  node.entries.clear();
  node.applied = 0;
  node.commands.clear();
  node.images.clear();
  node.base_configuration.cluster = {};
  for (raft::Server& server : node.base_configuration.servers) server.store = {};
}

void RaftCluster::tick(const ServerId& id) {
  Node& node = this->node(id);
  const io::Instant deadline = node.core->next_deadline();
  if (deadline != io::kNever) now_ = std::max(now_, deadline);
  node.core->tick(now_);
  settle(node);
}

void RaftCluster::run(io::Duration time) {
  const io::Instant end = now_ + time;
  for (int step = 0; step < 1'000'000; ++step) {
    if (violation_) return;
    deliver_all();
    Node* next = nullptr;
    for (auto& [id, node] : nodes_) {
      if (node.core && (next == nullptr || node.core->next_deadline() < next->core->next_deadline())) next = &node;
    }
    if (next == nullptr || next->core->next_deadline() > end) break;
    tick(next->id);
  }
  now_ = end;
}

raft::ProposeResult RaftCluster::propose(const ServerId& id, const std::vector<std::string>& commands) {
  Node& node = this->node(id);
  std::vector<raft::Payload> payloads;
  for (const std::string& command : commands) payloads.push_back(std::make_shared<const std::string>(command));
  const raft::ProposeResult result = node.core->propose(payloads);
  settle(node);
  return result;
}

raft::ReadRefusal RaftCluster::read(const ServerId& id, std::uint64_t context) {
  Node& node = this->node(id);
  const raft::ReadRefusal refusal = node.core->read_index(context);
  settle(node);
  return refusal;
}

raft::ChangeResult RaftCluster::change(const ServerId& id, const raft::ConfigurationChange& change) {
  Node& node = this->node(id);
  const raft::ChangeResult result = node.core->change_configuration(change);
  observe(node);
  settle(node);
  return result;
}

raft::TransferStart RaftCluster::transfer(const ServerId& id, const ServerId& to) {
  Node& node = this->node(id);
  const raft::TransferStart result = node.core->transfer_leadership(to);
  settle(node);
  return result;
}

void RaftCluster::persist(const ServerId& id, bool all) {
  Node& node = this->node(id);
  bool goes_on = !node.writes.empty() && finish_write(node);
  while (all && goes_on) goes_on = !node.writes.empty() && finish_write(node);
}

bool RaftCluster::finish_write(Node& node) {
  const bool has_trouble = trouble_ && trouble_->is_of_write() && trouble_->at == writes_;
  ++writes_;
  if (has_trouble && trouble_->kind == Trouble::Kind::restarts_before_write) {
    restart_running(node.id);
    return false;
  }
  Write write = std::move(node.writes.front());
  node.writes.pop_front();
  if (write.hard_state) node.hard_state = *write.hard_state;
  if (write.log_reset) {
    node.entries.clear();
    node.base_index = write.log_reset->index;
    node.base_term = write.log_reset->term;
  }
  if (!write.entries.empty()) {
    node.entries.resize(write.entries.front().index - node.base_index - 1);
    for (Entry& entry : write.entries) node.entries.push_back(entry);
  }
  if (has_trouble) {
    restart_running(node.id);
    return false;
  }
  if (write.hard_state) node.core->hard_state_persisted(*write.hard_state);
  if (write.log_reset) node.core->log_reset(write.log_reset->index);
  if (!write.entries.empty()) node.core->persisted(write.append_term, write.entries.back().index);
  observe(node);
  for (Message& message : write.messages_after) in_flight_.push_back(std::move(message));
  settle(node);
  return true;
}

void RaftCluster::apply(const ServerId& id) {
  Node& node = this->node(id);
  while (!node.to_apply.empty()) apply_one(node);
  settle(node);
  if (node.to_install) {
    install(node);
    settle(node);
  }
}

void RaftCluster::install(Node& node) {
  const Image& image = node.images.at(node.to_install->index);
  NARAD_CHECK(image.label == *node.to_install && node.to_apply.empty(), "an image is installed alone, and is there");
  NARAD_CHECK(node.base_index >= image.label.index, "the stored log is reset before the state machine is switched");
  node.to_install.reset();
  node.commands = image.commands;
  node.applied = image.label.index;
  node.core->snapshot_installed(image.label.index);
  observe(node);
}

bool RaftCluster::snapshot(const ServerId& id) {
  Node& node = this->node(id);
  const std::optional<raft::SnapshotLabel> label = node.core->label_at(node.applied);
  if (!label) return false;
  node.images[label->index] = Image{*label, node.commands};
  while (node.images.size() > 2) node.images.erase(node.images.begin());
  node.core->snapshot_available(*label);
  observe(node);
  settle(node);
  return true;
}

raft::Index RaftCluster::compact(const ServerId& id, raft::Index index, bool spares_transfers) {
  Node& node = this->node(id);
  const raft::Index base = node.core->compact(index, spares_transfers);
  observe(node);
  // A reset that is still to be written puts the stored log there anyway.
  const raft::Index last = node.base_index + node.entries.size();
  if (base > node.base_index && base <= last) {
    const auto end = node.entries.begin() + static_cast<std::ptrdiff_t>(base - node.base_index);
    node.base_term = std::prev(end)->term;
    node.entries.erase(node.entries.begin(), end);
    node.base_index = base;
  }
  settle(node);
  return base;
}

void RaftCluster::answer_reads(const ServerId& id, bool fails) {
  Node& node = this->node(id);
  while (!node.reads_due.empty()) answer_read(node, fails);
  settle(node);
}

void RaftCluster::answer_read(Node& node, bool fails) {
  const raft::LogRead read = std::move(node.reads_due.front());
  node.reads_due.pop_front();
  std::vector<Entry> entries;
  std::uint64_t cost = 0;
  for (raft::Index index = read.first; !fails && index > node.base_index && index <= read.last; ++index) {
    const Entry& entry = node.entries.at(index - node.base_index - 1);
    cost += entry.cost_bytes();
    if (!entries.empty() && cost > read.cost_bytes_max) break;
    entries.push_back(entry);
  }
  node.core->log_read(read.to, read.first, std::move(entries));
  observe(node);
}

// --- images under way ---

bool RaftCluster::can_reach(const ServerId& from, const ServerId& to) const {
  const auto at = nodes_.find(to);
  return at != nodes_.end() && at->second.core && !cut_links_.contains({from, to}) && !cut_links_.contains({to, from});
}

raft::OfferAnswer::Verdict RaftCluster::offer(Shipment shipment) {
  using Verdict = raft::OfferAnswer::Verdict;
  Verdict verdict = Verdict::refused;
  if (can_reach(shipment.offer.from, shipment.offer.to)) {
    Node& receiver = node(shipment.offer.to);
    verdict = receiver.core->offer_snapshot(shipment.offer, now_).verdict;
    observe(receiver);
    settle(receiver);
  }
  if (verdict == Verdict::wanted) {
    shipment.is_wanted = true;
    // A receiver listens to the newest stream alone.
    std::erase_if(shipments_, [&](const Shipment& other) { return other.is_wanted && other.offer.to == shipment.offer.to; });
    shipments_.push_back(std::move(shipment));
  } else {
    break_off(shipment);
  }
  return verdict;
}

void RaftCluster::receive(Shipment shipment, bool is_answer_lost) {
  const ServerId from = shipment.offer.from;
  const std::uint64_t number = shipment.number;
  if (!can_reach(from, shipment.offer.to)) return break_off(shipment);
  Node& receiver = node(shipment.offer.to);
  const raft::SnapshotLabel label = shipment.image.label;
  receiver.images[label.index] = shipment.image;
  receiver.core->snapshot_received(label);
  observe(receiver);
  settle(receiver);
  Node& sender = node(from);
  if (!sender.core) return;
  if (is_answer_lost) {
    shipment.is_wanted = false;
    shipment.is_retry = true;
    shipments_.push_back(std::move(shipment));
    return settle(sender);
  }
  sender.core->snapshot_sent(receiver.id, number, true);
  observe(sender);
  settle(sender);
}

void RaftCluster::break_off(const Shipment& shipment) {
  Node& sender = node(shipment.offer.from);
  if (!sender.core) return;
  sender.core->snapshot_sent(shipment.offer.to, shipment.number, false);
  observe(sender);
  settle(sender);
}

void RaftCluster::carry_images() {
  for (int step = 0; step < 1000 && !shipments_.empty() && !violation_; ++step) {
    Shipment shipment = std::move(shipments_.front());
    shipments_.erase(shipments_.begin());
    if (shipment.is_wanted) {
      receive(std::move(shipment));
    } else {
      offer(std::move(shipment));
    }
  }
}

void RaftCluster::apply_one(Node& node) {
  const Entry entry = std::move(node.to_apply.front());
  node.to_apply.pop_front();
  if (entry.type == EntryType::command) node.commands.emplace_back(entry.bytes());
  node.applied = entry.index;
  node.core->applied(entry.index);
}

void RaftCluster::settle(Node& node) {
  raft::Ready ready;
  while (node.core->has_ready()) {
    node.core->ready(ready);
    for (Message& message : ready.messages) in_flight_.push_back(std::move(message));
    for (const raft::ReadResult& read : ready.reads) node.reads[read.context] = read;
    for (const raft::TransferEnd& end : ready.transfers) node.transfers.push_back(end);
    for (Entry& entry : ready.committed) node.to_apply.push_back(std::move(entry));
    if (ready.install && !node.to_apply.empty()) {
      violation_ = raft::Violation{"applied in order", node.id + " is handed an image beside entries that are still to be applied"};
      return;
    }
    if (ready.install) node.to_install = std::move(ready.install);
    for (raft::LogRead& read : ready.log_reads) node.reads_due.push_back(std::move(read));
    for (raft::SnapshotWish& wish : ready.snapshot_wishes) {
      const Image image = node.images.at(wish.offer.label.index);
      NARAD_CHECK(image.label == wish.offer.label, "the image that is offered is the one with that label");
      shipments_.push_back(Shipment{wish.number, std::move(wish.offer), image});
    }
    if (ready.hard_state || ready.log_reset || !ready.entries.empty() || !ready.messages_after_persist.empty()) {
      node.writes.push_back(Write{std::move(ready.hard_state), ready.log_reset, std::move(ready.entries), ready.append_term,
                                  std::move(ready.messages_after_persist)});
    }
    observe(node);
    while (!node.is_apply_manual && !node.to_apply.empty()) apply_one(node);
    if (!node.is_apply_manual && node.to_install) install(node);
    while (!node.is_read_manual && !node.reads_due.empty()) answer_read(node, false);
    observe(node);
    if (!node.is_disk_manual && !node.writes.empty() && !finish_write(node)) return;
  }
  std::erase_if(shipments_, [&](const Shipment& shipment) {
    return shipment.is_retry && shipment.offer.from == node.id && !node.core->wants_snapshot_sent(shipment.offer.to, shipment.number);
  });
}

void RaftCluster::observe(Node& node) {
  if (!violation_) violation_ = invariants_.observe(*node.core);
}

void RaftCluster::deliver(Message message) {
  const auto at = nodes_.find(message.to);
  if (at == nodes_.end() || !at->second.core || cut_links_.contains({message.from, message.to})) return;
  if (is_lost_in_trouble(message) || !at->second.core) return;
  at->second.core->step(std::move(message), now_);
  observe(at->second);
  settle(at->second);
}

bool RaftCluster::is_lost_in_trouble(Message& message) {
  if (!trouble_ || deliveries_++ != trouble_->at || trouble_->is_of_write()) return false;
  switch (trouble_->kind) {
    case Trouble::Kind::lost:
      return true;
    case Trouble::Kind::repeated:
      in_flight_.push_back(message);
      return false;
    case Trouble::Kind::late:
      in_flight_.push_back(std::move(message));
      return true;
    case Trouble::Kind::receiver_restarts:
      restart_running(message.to);
      return false;
    case Trouble::Kind::sender_restarts:
      restart_running(message.from);
      return false;
    case Trouble::Kind::all_restart: {
      std::vector<ServerId> running;
      for (const auto& [id, node] : nodes_) {
        if (node.core) running.push_back(id);
      }
      for (const ServerId& id : running) kill(id);
      for (const ServerId& id : running) start(id);
      return false;
    }
    case Trouble::Kind::restarts_before_write:
    case Trouble::Kind::restarts_after_write:
      break;
  }
  return false;
}

void RaftCluster::restart_running(const ServerId& id) {
  if (!node(id).core) return;
  kill(id);
  start(id);
}

void RaftCluster::deliver_all() {
  for (int step = 0; step < 1'000'000 && !violation_; ++step) {
    if (in_flight_.empty()) {
      if (!are_images_manual) carry_images();
      if (in_flight_.empty()) return;
    }
    Message message = std::move(in_flight_.front());
    in_flight_.erase(in_flight_.begin());
    deliver(std::move(message));
  }
}

void RaftCluster::isolate(const ServerId& id) {
  for (const auto& [other, node] : nodes_) {
    if (other == id) continue;
    cut(id, other);
    cut(other, id);
  }
}

const raft::Core* RaftCluster::leader() const {
  const raft::Core* newest = nullptr;
  for (const auto& [id, node] : nodes_) {
    if (!node.core || node.core->role() != raft::Role::leader) continue;
    if (newest == nullptr || node.core->term() > newest->term()) newest = node.core.get();
  }
  return newest;
}

}  // namespace tests
