#include "chaos/driver.h"

#include <algorithm>
#include <optional>

#include "chaos/operator_calls.h"
#include "io/probe.h"
#include "raft/log_format.h"
#include "raft/snapshot_format.h"

namespace chaos {
namespace {

using namespace std::chrono_literals;

// How long after a fault has ended its echo may be heard: reconnecting, a restart, the state machine's retries (30 s).
constexpr io::Duration kEcho = 5s;
constexpr io::Duration kDiskEcho = 45s;
// A loss for good waits for its moment so often, so far apart.
constexpr int kLossTries = 30;
constexpr io::Duration kLossRetry = 300ms;

Store store_of(const Decision& decision) {
  return decision.store == "raft"     ? Store::raft
         : decision.store == "images" ? Store::images
         : decision.store == "log"    ? Store::log
         : decision.store == "term"   ? Store::term
                                      : Store::metastore;
}

bool fits(Trigger trigger, sim::Moment moment) {
  switch (trigger) {
    case Trigger::now: return false;
    case Trigger::elected: return moment == sim::Moment::elected;
    case Trigger::campaign: return moment == sim::Moment::campaign;
    case Trigger::vote: return moment == sim::Moment::vote;
    case Trigger::append: return moment == sim::Moment::append;
    case Trigger::install: return moment == sim::Moment::install;
  }
  return false;
}

}  // namespace

Driver::Driver(sim::World& world, const Plan& plan) : world_(world), plan_(plan) {
  for (int i = 0; i < world.node_count(); ++i) {
    capacities_.push_back(world.machine(i).volume().capacity());
    snapshot_damaged_until_.emplace_back();
    log_damaged_until_.emplace_back();
    DiskWork& work = work_.emplace_back(world, i);
    world.machine(i).volume().set_observer([&work](io::sim::DiskOp op, std::string_view path) { work.observe(op, path); });
  }
}

void Driver::schedule() {
  world_.io().network().set_loss(static_cast<uint32_t>(plan_.setup.loss_ppm));
  world_.io().network().set_latency(latency(0, 0s, true));
  if (plan_.setup.loss_ppm > 0 || plan_.setup.tail_ppm > 0) {
    world_.note_trouble(io::Instant(plan_.setup.safety) + kEcho);
  }
  world_.set_on_moment([this](sim::Moment moment, int node) { on_moment(moment, node); });
  armed_.reserve(plan_.decisions.size());
  for (const Decision& decision : plan_.decisions) {
    if (decision.kind == Kind::release && decision.at == 0s && decision.on == Trigger::now) {
      for (const int node : decision.node) {
        if (node >= 0) world_.set_release(node, *sim::find_release(decision.release));
      }
      continue;
    }
    world_.io().at(io::Instant(decision.at), [this, &decision] {
      if (is_healed_) {
        return;
      }
      if (decision.on == Trigger::now) {
        after(decision.wait, [this, &decision] { strike(decision, -1); });
      } else {
        armed_.push_back({&decision});
      }
    });
  }
}

void Driver::on_moment(sim::Moment moment, int node) {
  if (moment == sim::Moment::rebased) {
    after(0s, [this, node] { stores_.give_back(node); });
    return;
  }
  for (Armed& armed : armed_) {
    if (!armed.done && fits(armed.decision->on, moment)) {
      // "The leader" at an append is who leads; at an election or a vote it is whose moment it is.
      if (armed.decision->on == Trigger::append && node != world_.leader()) {
        continue;
      }
      armed.done = true;
      after(armed.decision->wait, [this, decision = armed.decision, node] { strike(*decision, node); });
    }
  }
}

std::vector<int> Driver::resolve(const std::vector<int>& names, io::RandomStream& draws, int moment_node) const {
  std::vector<int> nodes;
  const auto drawn = [&] { return static_cast<int>(draws.below(static_cast<uint64_t>(world_.node_count()))); };
  const int leader = moment_node >= 0 ? moment_node : world_.leader();
  for (const int name : names) {
    if (name == kAll) {
      for (int i = 0; i < world_.node_count(); ++i) {
        nodes.push_back(i);
      }
      continue;
    }
    int node = name;
    if (name == kLeader || name == kVoter) {
      node = leader >= 0 ? leader : drawn();
    } else if (name == kAnyNode) {
      node = drawn();
    } else if (name == kFollower) {
      node = drawn();
      if (node == leader) {
        node = (node + 1) % world_.node_count();
      }
    }
    nodes.push_back(node);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

io::sim::LatencyTable Driver::latency(uint64_t extra_ppm, io::Duration extra_delay, bool with_tail) const {
  const Setup& setup = plan_.setup;
  const uint64_t tail_ppm = with_tail ? setup.tail_ppm : 0;
  io::sim::LatencyTable table;
  table.rows.push_back({static_cast<uint32_t>(1'000'000 - tail_ppm - extra_ppm), setup.net_low, setup.net_high});
  if (tail_ppm > 0) {
    table.rows.push_back({static_cast<uint32_t>(tail_ppm), setup.net_high, std::max(setup.tail_max, setup.net_high)});
  }
  if (extra_ppm > 0) {
    table.rows.push_back({static_cast<uint32_t>(extra_ppm), setup.net_high, std::max(extra_delay, setup.net_high)});
  }
  return table;
}

void Driver::strike(const Decision& decision, int moment_node) {
  if (is_healed_) {
    return;
  }
  ++struck_;
  io::RandomStream draws(io::mix(io::mix(plan_.seed, io::stable_hash("decision")), decision.id));
  const std::vector<int> nodes = resolve(decision.node, draws, moment_node);
  world_.io().record(io::sim::TraceKind::world, nullptr, kind_name(decision.kind), decision.id,
                     nodes.empty() ? 0 : static_cast<uint64_t>(nodes[0]) + 1);
  world_.note_trouble(world_.now() + decision.span + decision.down + kEcho);
  switch (decision.kind) {
    case Kind::kill:
    case Kind::power_loss:
    case Kind::stop:
    case Kind::freeze:
    case Kind::slow:
    case Kind::restart_loop:
    case Kind::kill_at: return strike_process(decision, nodes);
    case Kind::fault_at:
      for (const int node : nodes) script_at_work(node, decision);
      return;
    case Kind::move:
      if (!nodes.empty()) move(nodes.front(), decision.down);
      return;
    case Kind::grow:
      for (const int node : nodes) world_.grow(node);
      return;
    case Kind::rolling: return roll(decision);
    case Kind::release:
      for (const int node : nodes) {
        change_release(node, *sim::find_release(decision.release), decision.down);
      }
      return;
    case Kind::cut:
    case Kind::partition:
    case Kind::heal:
    case Kind::loss:
    case Kind::slow_reader:
    case Kind::tail: return strike_network(decision, nodes, draws, moment_node);
    case Kind::disk_full:
    case Kind::disk_error:
    case Kind::disk_stall:
    case Kind::disk_shrink:
    case Kind::disk_damage:
    case Kind::snapshot_damage:
    case Kind::store_old:
    case Kind::store_gone:
    case Kind::store_blind:
    case Kind::store_foreign:
    case Kind::rejoin:
    case Kind::wipe:
    case Kind::foreign_write:
    case Kind::disk_slow: return strike_disk(decision, nodes, draws);
    case Kind::transfer:
      if (!nodes.empty()) {
        const std::vector<int> to = resolve(decision.peers, draws, moment_node);
        administrator_.transfer(nodes.front(), to.empty() ? -1 : to.front());
      }
      return;
    case Kind::take_out:
      if (!nodes.empty()) {
        administrator_.take_out(nodes.front(), decision.span);
      }
      return;
    case Kind::decommission:
      if (!nodes.empty()) depart(decision, nodes.front(), kLossTries);
      return;
    case Kind::abort_moves:
      for (const int node : nodes) abort_stuck_moves(world_, node);
      return;
    case Kind::forget:
      for (const int node : nodes) forget(node, resolve(decision.peers, draws, moment_node));
      return;
    case Kind::wall_jump:
    case Kind::drift: return strike_clock(decision, nodes);
  }
}

// ---- processes -------------------------------------------------------------------------------------------------------------

void Driver::strike_process(const Decision& decision, const std::vector<int>& nodes) {
  for (const int node : nodes) {
    io::sim::Machine& machine = world_.machine(node);
    switch (decision.kind) {
      case Kind::kill: world_.kill(node, decision.down); break;
      case Kind::power_loss: world_.power_loss(node, decision.down); break;
      case Kind::stop: world_.stop(node, decision.down); break;
      case Kind::freeze: machine.freeze(decision.span); break;
      case Kind::restart_loop: kill_again_and_again(node, decision); break;
      case Kind::slow:
        machine.set_slow_percent(static_cast<uint32_t>(decision.percent));
        after(decision.span, [&machine] { machine.set_slow_percent(100); });
        break;
      default: {
        io::sim::ScriptedFault fault;
        fault.action = decision.how == "kill" ? io::sim::FaultAction::kill : io::sim::FaultAction::power_loss;
        fault.nth = std::max<uint64_t>(decision.nth, 1);
        machine.volume().script(fault);
        world_.set_next_down(node, decision.down);
      }
    }
  }
}

// What the fault explains begins when it strikes, which may be late or never.
void Driver::script_at_work(int node, const Decision& decision) {
  const Work work = *work_by_name(decision.work);
  io::sim::ScriptedFault fault;
  fault.action = decision.fault == "kill"         ? io::sim::FaultAction::kill
                 : decision.fault == "power_loss" ? io::sim::FaultAction::power_loss
                 : decision.fault == "no_space"   ? io::sim::FaultAction::no_space
                 : decision.fault == "stall"      ? io::sim::FaultAction::stall
                                                  : io::sim::FaultAction::error;
  fault.nth = std::max<uint64_t>(decision.nth, 1);
  fault.when = [follower = &work_[static_cast<size_t>(node)], work](io::sim::DiskOp op, std::string_view path) {
    return follower->work_of(op, path) == work;
  };
  fault.struck = [this, node, &decision, work, action = fault.action] {
    io::probe(struck_probe(decision.fault, work).c_str());
    world_.note_trouble(world_.now() + decision.span + decision.down + kDiskEcho);
    switch (action) {
      case io::sim::FaultAction::no_space: return full_from_now(node, decision.span);
      case io::sim::FaultAction::stall: return hang_from_now(node, decision.span);
      case io::sim::FaultAction::error: return world_.explain(node, io::kNever);
      default: return world_.set_next_down(node, decision.down);
    }
  };
  world_.machine(node).volume().script(std::move(fault));
}

void Driver::full_from_now(int node, io::Duration span) {
  io::sim::Volume& volume = world_.machine(node).volume();
  world_.explain(node, world_.now() + span + kDiskEcho);
  volume.set_capacity(volume.used());
  after(span, [this, node, &volume] { volume.set_capacity(capacities_[static_cast<size_t>(node)]); });
}

void Driver::hang_from_now(int node, io::Duration span) {
  io::sim::Volume& volume = world_.machine(node).volume();
  world_.explain(node, world_.now() + span + kDiskEcho);
  volume.stall();
  after(span, [&volume] { volume.release(); });
}

// Not while the configuration may need every server that can be reached where it says.
void Driver::move(int node, io::Duration down) {
  if (administrator_.move(node)) {
    world_.change_address(node, down);
  }
}

void Driver::kill_again_and_again(int node, const Decision& decision) {
  for (uint64_t i = 0; i < decision.times; ++i) {
    const io::Duration delay = (decision.down + decision.gap) * static_cast<int64_t>(i);
    world_.note_trouble(world_.now() + delay + decision.down + kEcho);
    after(delay, [this, node, down = decision.down] {
      if (!is_healed_) {
        world_.kill(node, down);
      }
    });
  }
}

void Driver::roll(const Decision& decision) {
  for (int node = 0; node < world_.node_count(); ++node) {
    const io::Duration delay = (decision.down + decision.gap) * node;
    world_.note_trouble(world_.now() + delay + decision.down + kEcho);
    after(delay, [this, node, down = decision.down] {
      if (!is_healed_) {
        world_.stop(node, down);
      }
    });
  }
}

// Back past the boundary only to a release that stops there.
void Driver::change_release(int node, const sim::Release& release, io::Duration down) {
  if (!world_.may_change_release(node, release)) {
    return;
  }
  world_.set_release(node, release);
  if (world_.view(node) != nullptr) {
    world_.stop(node, down);
  } else {
    world_.kill(node, down);
  }
}

// ---- network ---------------------------------------------------------------------------------------------------------------

void Driver::cut_between(const std::vector<int>& from, const std::vector<int>& to, bool both, io::Duration span) {
  for (const int a : from) {
    for (const int b : to) {
      if (a == b) {
        continue;
      }
      io::sim::Machine& first = world_.machine(a);
      io::sim::Machine& second = world_.machine(b);
      io::sim::Network& network = world_.io().network();
      network.cut(first, second);
      if (both) {
        network.cut(second, first);
      }
      after(span, [&network, &first, &second, both] {
        network.heal(first, second);
        if (both) {
          network.heal(second, first);
        }
      });
    }
  }
}

void Driver::partition(const Decision& decision, io::RandomStream& draws, int moment_node) {
  const int count = world_.node_count();
  std::vector<int> order;
  for (int i = 0; i < count; ++i) {
    order.push_back(i);
  }
  draws.shuffle(order);
  if (decision.shape == "isolate") {
    const int alone = resolve({kLeader}, draws, moment_node).front();
    std::vector<int> others = order;
    std::erase(others, alone);
    cut_between({alone}, others, true, decision.span);
  } else if (decision.shape == "ring") {
    // Everyone hears its two neighbours; of three nodes one link goes, which leaves a line.
    for (int i = 0; i < count; ++i) {
      for (int j = i + 1; j < count; ++j) {
        const bool neighbours = j == i + 1 || (i == 0 && j == count - 1 && count > 3);
        if (!neighbours) {
          cut_between({order[static_cast<size_t>(i)]}, {order[static_cast<size_t>(j)]}, true, decision.span);
        }
      }
    }
  } else {
    // half, and bridge: the last node in the order hears both halves.
    const int split = decision.shape == "bridge" ? count - 1 : count;
    const auto middle = order.begin() + split / 2;
    cut_between({order.begin(), middle}, {middle, order.begin() + split}, true, decision.span);
  }
}

void Driver::strike_network(const Decision& decision, const std::vector<int>& nodes, io::RandomStream& draws,
                            int moment_node) {
  io::sim::Network& network = world_.io().network();
  switch (decision.kind) {
    case Kind::cut:
      cut_between(nodes, resolve(decision.peers, draws, moment_node), decision.way == "both", decision.span);
      break;
    case Kind::partition: partition(decision, draws, moment_node); break;
    case Kind::heal: network.heal_all(); break;
    case Kind::slow_reader:
      for (const int node : nodes) {
        io::sim::Machine& machine = world_.machine(node);
        world_.note_trouble(world_.now() + decision.span + decision.delay + kEcho);
        network.set_read_delay(machine, decision.delay);
        after(decision.span, [&network, &machine] { network.set_read_delay(machine, 0s); });
      }
      break;
    case Kind::loss:
      network.set_loss(static_cast<uint32_t>(decision.ppm));
      after(decision.span, [this, &network] {
        if (!is_healed_) {
          network.set_loss(static_cast<uint32_t>(plan_.setup.loss_ppm));
        }
      });
      break;
    default:
      network.set_latency(latency(decision.ppm, decision.delay, true));
      world_.note_trouble(world_.now() + decision.span + decision.delay + kEcho);
      after(decision.span, [this, &network] {
        if (!is_healed_) {
          network.set_latency(latency(0, 0s, true));
        }
      });
  }
}

// ---- disks and clocks ------------------------------------------------------------------------------------------------------

void Driver::shrink_room(int node, const Decision& decision) {
  constexpr int64_t kSteps = 8;
  io::sim::Volume& volume = world_.machine(node).volume();
  const uint64_t used = volume.used();
  for (int64_t step = 0; step < kSteps; ++step) {
    const uint64_t room = decision.bytes * static_cast<uint64_t>(kSteps - 1 - step) / (kSteps - 1);
    after(decision.span * step / kSteps, [this, &volume, capacity = used + room] {
      if (!is_healed_) {
        volume.set_capacity(capacity);
      }
    });
  }
  after(decision.span, [this, node, &volume] { volume.set_capacity(capacities_[static_cast<size_t>(node)]); });
}

bool Driver::is_damaged(int node) const {
  const auto at = static_cast<size_t>(node);
  return world_.now() <= std::max(log_damaged_until_[at], snapshot_damaged_until_[at]);
}

// Only where the node can tell damage from a torn tail: in the oldest batch, when several later ones say that it was synced.
// Within the envelope, because the node refuses to start until the bit is right again, and nobody else's copy is touched.
void Driver::damage_log(int node, const Decision& decision, io::RandomStream& draws) {
  namespace format = raft::log_format;
  constexpr int kLaterBatchesMin = 4;
  if (world_.now() <= log_damaged_until_[static_cast<size_t>(node)]) {
    return;
  }
  io::sim::Volume& volume = world_.machine(node).volume();
  const std::string folder = std::string(format::kDirectory) + "/";
  for (const std::string& path : volume.tree().files()) {
    const auto generation =
        path.starts_with(folder) ? format::generation_of(std::string_view(path).substr(folder.size())) : std::nullopt;
    if (!generation) {
      continue;
    }
    const std::string segment = volume.tree().content(path).value_or("");
    const auto oldest = format::find_batch(segment, *generation, format::kSegmentHeaderBytes);
    if (!oldest) {
      return;
    }
    const uint64_t end = format::batch_end(*oldest, *format::parse_batch_header(segment, *generation, *oldest));
    int later = 0;
    uint64_t at = end;
    while (const auto header = format::parse_batch_header(segment, *generation, at)) {
      later += header->frontier >= end ? 1 : 0;
      at = format::batch_end(at, *header);
    }
    if (later < kLaterBatchesMin) {
      return;
    }
    const uint64_t place = *oldest + format::kBatchHeaderBytes + draws.below(format::kEntryHeaderBytes);
    const int bit = static_cast<int>(draws.below(8));
    log_damaged_until_[static_cast<size_t>(node)] = world_.now() + decision.span;
    volume.flip_bit(path, place, bit);
    // The node does not start meanwhile, but another fault may have put a whole file in this one's place.
    const auto bit_of = [bit](const std::string& bytes, uint64_t at) { return at < bytes.size() ? (bytes[at] >> bit & 1) : -1; };
    const int damaged = bit_of(volume.tree().content(path).value_or(""), place);
    after(decision.span, [&volume, path, place, bit, bit_of, damaged] {
      if (bit_of(volume.tree().content(path).value_or(""), place) == damaged) {
        volume.flip_bit(path, place, bit);
      }
    });
    world_.kill(node, decision.down);
    return;
  }
}

// Of the newest complete snapshot: its ends, which a start reads, or anywhere.
void Driver::damage_snapshot(int node, const Decision& decision, io::RandomStream& draws) {
  namespace format = raft::snapshot_format;
  io::sim::Volume& volume = world_.machine(node).volume();
  const std::string folder = std::string(format::kDirectory) + "/";
  std::string newest;
  raft::Index newest_index = 0;
  for (const std::string& path : volume.tree().files()) {
    const auto name = path.starts_with(folder) ? format::parse_name(std::string_view(path).substr(folder.size())) : std::nullopt;
    if (name && name->index > newest_index) {
      newest = path;
      newest_index = name->index;
    }
  }
  if (newest.empty() || world_.now() <= snapshot_damaged_until_[static_cast<size_t>(node)]) {
    return;
  }
  snapshot_damaged_until_[static_cast<size_t>(node)] = world_.now() + decision.span;
  const uint64_t size = volume.tree().content(newest).value_or("").size();
  if (size < format::kHeaderBytes + format::kTrailerBytes) {
    return;  // published before it was written, which only a defect does
  }
  const uint64_t ends[] = {draws.below(format::kHeaderBytes), size - 1 - draws.below(format::kTrailerBytes), draws.below(size)};
  const uint64_t place = std::min(ends[draws.below(3)], size - 1);
  const int bit = static_cast<int>(draws.below(8));
  volume.flip_bit(newest, place, bit);
  const auto damaged = volume.tree().content(newest);
  // Unless the node has put something else in its place.
  after(decision.span, [&volume, newest, place, bit, damaged] {
    if (volume.tree().content(newest) == damaged) {
      volume.flip_bit(newest, place, bit);
    }
  });
  world_.kill(node, decision.down);
}

void Driver::strike_disk(const Decision& decision, const std::vector<int>& nodes, io::RandomStream& draws) {
  for (const int node : nodes) {
    io::sim::Volume& volume = world_.machine(node).volume();
    const io::Instant end = world_.now() + decision.span;
    world_.note_trouble(end + kDiskEcho);
    switch (decision.kind) {
      case Kind::disk_full:
        world_.explain(node, end + kDiskEcho);
        volume.set_capacity(volume.used() + decision.bytes);
        after(decision.span, [this, node, &volume] { volume.set_capacity(capacities_[static_cast<size_t>(node)]); });
        break;
      case Kind::disk_error: {
        world_.explain(node, io::kNever);
        io::sim::ScriptedFault fault;
        fault.action = io::sim::FaultAction::error;
        fault.op = decision.op == "read"    ? io::sim::DiskOp::read
                   : decision.op == "write" ? io::sim::DiskOp::write
                                            : io::sim::DiskOp::sync;
        fault.nth = std::max<uint64_t>(decision.nth, 1);
        if (decision.on == Trigger::install) fault.prefix = std::string(raft::snapshot_format::kDirectory) + "/";
        volume.script(fault);
        break;
      }
      case Kind::disk_shrink:
        world_.explain(node, end + kDiskEcho);
        shrink_room(node, decision);
        break;
      case Kind::disk_damage:
        world_.explain(node, end + kDiskEcho);
        damage_log(node, decision, draws);
        break;
      case Kind::snapshot_damage:
        world_.explain(node, end + kDiskEcho);
        damage_snapshot(node, decision, draws);
        break;
      case Kind::store_old:
        stores_.put_back(node, store_of(decision), decision.gap, decision.down, decision.span);
        break;
      case Kind::store_gone: stores_.take_away(node, store_of(decision), decision.down, decision.span); break;
      case Kind::store_blind: stores_.blind(node, decision.down, decision.span); break;
      case Kind::store_foreign: {
        const std::vector<int> others = resolve(decision.peers, draws, -1);
        if (!others.empty()) stores_.exchange(node, others.front(), decision.down, decision.span);
        break;
      }
      case Kind::rejoin: {
        const std::vector<int> others = resolve(decision.peers, draws, -1);
        lose_for_good(decision, node, others.empty() ? -1 : others.front(), kLossTries);
        break;
      }
      case Kind::wipe: lose_for_good(decision, node, -1, kLossTries); break;
      case Kind::foreign_write: stores_.write_foreign_row(node, decision.down); break;
      case Kind::disk_stall:
        world_.explain(node, end + kDiskEcho);
        volume.stall();
        after(decision.span, [&volume] { volume.release(); });
        break;
      default: {
        world_.explain(node, end + kDiskEcho);
        io::sim::FaultRates rates;
        rates.slow_ppm = static_cast<uint32_t>(decision.ppm);
        volume.set_rates({rates});
        after(decision.span, [&volume] { volume.set_rates({}); });
      }
    }
  }
}

// At the first moment at which the cluster can do without what the node has.
void Driver::lose_for_good(const Decision& decision, int node, int other, int tries) {
  if (is_healed_) {
    return;
  }
  const bool is_lost = !administrator_.is_busy() && (decision.kind == Kind::wipe ? stores_.wipe(node, decision.down)
                                                                                : stores_.lose(node, store_of(decision), other, decision.down));
  if (is_lost) {
    administrator_.take_out(node, 0s);
  } else if (tries > 1) {
    after(kLossRetry, [this, &decision, node, other, tries] { lose_for_good(decision, node, other, tries - 1); });
  }
}

// Likewise.
void Driver::depart(const Decision& decision, int node, int tries) {
  if (is_healed_ || departures_.begin(node, decision.span, decision.down, decision.times > 1) || tries <= 1) {
    return;
  }
  after(kLossRetry, [this, &decision, node, tries] { depart(decision, node, tries - 1); });
}

// One that never registered is out by that, and taken in again.
void Driver::forget(int node, const std::vector<int>& others) {
  if (others.empty()) {
    return;
  }
  const int other = others.front();
  ask_as_operator(world_, node, "POST", "/v1/cluster/members/" + world_.node_id(other) + "/forget", [this, other](const OperatorAnswer& answer) {
    if (answer.status == 200) {
      administrator_.take_out(other, 0s);
    }
  });
}

void Driver::strike_clock(const Decision& decision, const std::vector<int>& nodes) {
  for (const int node : nodes) {
    io::sim::MachineClock& clock = world_.machine(node).clock();
    if (decision.kind == Kind::wall_jump) {
      clock.jump_wall(decision.by);
    } else {
      clock.set_drift_ppm(std::clamp<int64_t>(decision.rate, -100'000, 100'000));
      after(decision.span, [&clock] { clock.set_drift_ppm(0); });
    }
  }
}

void Driver::heal() {
  is_healed_ = true;
  io::sim::Network& network = world_.io().network();
  network.heal_all();
  network.set_loss(0);
  network.set_latency(latency(0, 0s, false));
  for (int node = 0; node < world_.node_count(); ++node) {
    io::sim::Machine& machine = world_.machine(node);
    machine.volume().set_capacity(capacities_[static_cast<size_t>(node)]);
    machine.volume().clear_scripted();
    machine.volume().set_rates({});
    machine.volume().release();
    machine.set_slow_percent(100);
    network.set_read_delay(machine, 0s);
    machine.clock().set_drift_ppm(0);
  }
  for (int node = 0; node < world_.node_count(); ++node) {
    world_.grow(node);
  }
  // Whoever was rolled back too far, or left behind, can go on only as a release that knows every entry.
  for (int node = 0; node < world_.node_count(); ++node) {
    if (world_.is_outrun(world_.release(node))) {
      world_.set_release(node, sim::releases().back());
      world_.kill(node, 10ms);
    }
  }
  stores_.restore();
  administrator_.restore();
  departures_.restore();
  world_.note_trouble(world_.now() + kEcho);
}

}  // namespace chaos
